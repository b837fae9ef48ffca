"""Real kills on a real study: `python -m tests.crash --kills 200 --seed 1`.

A child process carries out a study through the real journal; every call it makes is first written to a ledger of its
own, as a provider's bill would be. The child is killed with SIGKILL at a random moment, again and again, and resumed
until the study is complete; then the next study begins, until there were enough kills. After every kill it is checked:

- nothing committed is lost: the journal and the results still begin with every byte they had at the kill;
- nothing is paid twice but what was in flight: a call in the ledger again was not in the journal at the kill before;
- the finished results.jsonl is identical to that of a study never killed, and `verify` and `replay` agree.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from src import audit, orchestrator, storage
from src.adapters.base import Adapter, ModelReply, ModelRequest
from src.adapters.registry import make_adapter
from src.calls.gateway import CallResources, Stop
from src.calls.limits import Limits
from src.schemas import CallRecord
from src.store.hash_chain import ChainReader, is_recovery
from tests.runs import ROOT, THREE, call, environment

REPEATS = 3


class Billed:
    """An adapter that writes every call to the ledger before it is answered, and takes a moment to answer."""

    def __init__(self, inner: Adapter, ledger: int) -> None:
        self._inner = inner
        self._ledger = ledger

    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        await asyncio.sleep(random.random() * 0.01)
        os.write(self._ledger, f"{request.sha256()}\n".encode())
        await asyncio.sleep(random.random() * 0.01)
        return await self._inner.complete(request, timeout_s=timeout_s)

    async def aclose(self) -> None:
        await self._inner.aclose()


def child(folder: Path, ledger: Path) -> None:
    """Carry out, or go on with, the study in this folder."""
    bill = os.open(ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    made: dict[str, Adapter] = {}

    def adapter_for(provider: str) -> Adapter:
        if provider not in made:
            made[provider] = Billed(make_adapter(provider), bill)
        return made[provider]

    asyncio.run(
        orchestrator.execute(
            folder,
            storage.read_manifest(folder),
            concurrency=8,
            resources=CallResources(adapter_for=adapter_for, limits=Limits(64), stop=Stop()),
            on_call=lambda record: None,
            on_start=lambda total, done: None,
            on_trial=lambda: None,
        )
    )


@dataclass
class Tally:
    kills: int = 0
    studies: int = 0
    calls: int = 0
    in_flight: int = 0
    torn: int = 0
    problems: list[str] = field(default_factory=list)


def journaled(folder: Path) -> set[str]:
    """The requests whose records are whole in the journal."""
    reader = ChainReader(folder / storage.JOURNAL, storage.manifest_sha256(folder))
    return {
        CallRecord.model_validate_json(line.payload).request_sha256 for line in reader if not is_recovery(line.payload)
    }


def read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def one_study(folder: Path, expected: bytes, dice: random.Random, tally: Tally) -> None:
    """Kill and resume until the study is complete, checking after each kill."""
    ledger = folder / "ledger"
    allowed: Counter[str] = Counter()
    before_journal = before_results = b""
    while not (folder / storage.SEAL).exists():
        arguments = [sys.executable, "-m", "tests.crash", "--child", str(folder), "--ledger", str(ledger)]
        process = subprocess.Popen(arguments, cwd=ROOT, env=environment())
        began, paid = time.monotonic(), len(read(ledger))
        while len(read(ledger)) == paid and process.poll() is None and time.monotonic() - began < 30:
            time.sleep(0.002)
        try:
            process.wait(timeout=dice.random() * 0.25)
            if process.returncode:
                tally.problems.append(f"{folder.name}: the child ended with {process.returncode}")
                return
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            tally.kills += 1
        journal, results = read(folder / storage.JOURNAL), read(folder / storage.RESULTS)
        if not journal.startswith(before_journal) or not results.startswith(before_results):
            tally.problems.append(f"{folder.name}: bytes of before the kill are gone or changed")
        before_journal, before_results = journal, results
        if not expected.startswith(results):
            tally.problems.append(f"{folder.name}: results.jsonl is no beginning of the unkilled run's")
        billed = Counter(read(ledger).decode().split())
        pending = set(billed) - (journaled(folder) if journal else set())
        for request, times in billed.items():
            if times > 1 + allowed[request]:
                often = f"paid {times} times, in flight {allowed[request]} times"
                tally.problems.append(f"{folder.name}: {request} was {often}")
        allowed.update(pending)
    tally.studies += 1
    tally.calls += len(journaled(folder))
    tally.in_flight += sum(times - 1 for times in Counter(read(ledger).decode().split()).values())
    if read(folder / storage.RESULTS) != expected:
        tally.problems.append(f"{folder.name}: results.jsonl differs from the unkilled run's")
    tally.torn += audit.verify(folder).torn_lines
    code, _, err = call("replay", folder)
    if code:
        tally.problems.append(f"{folder.name}: replay: {err}")


def unkilled(parent: Path) -> Path:
    parent.mkdir(parents=True)
    plan_arguments = ["--scenario", THREE, "--target", "fake:careful", "--target", "fake:wrong"]
    code, _, err = call("run", *plan_arguments, "--repeats", REPEATS, "--out", parent, "--quiet")
    assert code == 0, err
    return next(parent.iterdir())


def soak(kills: int, seed: int, parent: Path) -> Tally:
    """At least so many kills, over as many studies as that takes."""
    reference = unkilled(parent / "reference")
    expected = (reference / storage.RESULTS).read_bytes()
    dice = random.Random(seed)
    tally = Tally()
    while tally.kills < kills and not tally.problems:
        folder = parent / f"study-{tally.studies + 1}"
        folder.mkdir()
        shutil.copy(reference / storage.MANIFEST, folder)
        one_study(folder, expected, dice, tally)
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--child", type=Path)
    parser.add_argument("--ledger", type=Path)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child, arguments.ledger)
        return 0
    with tempfile.TemporaryDirectory(prefix="crash-") as parent:
        tally = soak(arguments.kills, arguments.seed, Path(parent))
    for problem in tally.problems:
        print(problem)
    print(
        f"{tally.kills} kills over {tally.studies} studies and {tally.calls} calls: {tally.in_flight} calls were in "
        f"flight at a kill and made again, {tally.torn} torn lines recovered, {len(tally.problems)} problems"
    )
    return 1 if tally.problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
