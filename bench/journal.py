"""The journal alone: how many records a second its group commit makes durable, so many appending at once."""

from __future__ import annotations

import argparse
import asyncio
from itertools import islice
from pathlib import Path

from src import storage
from src.schemas import CallRecord
from src.store import hash_chain
from src.store.failpoints import Failpoints

from .costs import measured

SAMPLE = 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True, help="a run whose records are appended again")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--appends", type=int, default=10_000)
    parser.add_argument("--concurrency", type=int, default=64)
    arguments = parser.parse_args()
    reader = hash_chain.ChainReader(arguments.run / storage.JOURNAL, storage.manifest_sha256(arguments.run))
    records = [CallRecord.model_validate_json(line.payload) for line in islice(reader, SAMPLE)]

    async def append_all() -> int:
        journal = storage.Journal(
            arguments.out, hash_chain.GENESIS, wanted=lambda trial: False, failpoints=Failpoints(None)
        )
        numbers = iter(range(arguments.appends))

        async def worker() -> None:
            for number in numbers:
                await journal.append(records[number % len(records)])

        await asyncio.gather(*(worker() for _ in range(arguments.concurrency)))
        journal.close()
        return journal.calls

    print(measured(lambda: asyncio.run(append_all())).to_json())


if __name__ == "__main__":
    main()
