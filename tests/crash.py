"""Real kills on a real study: `python -m tests.crash --kills 200 --seed 1`.

A child process runs a study through the real journal; every call it makes is first written to a ledger, as a provider's
bill would be. The child is killed with SIGKILL after a random number of calls, again and again, and resumed until the
study is complete; then the next study begins, until there were enough kills. After every kill it is checked:

- nothing saved is lost: the journal and the results still begin with every byte they had at the kill;
- nothing is paid twice except calls in flight: a call in the ledger again was not in the journal at the kill before;
- the finished results.jsonl is identical to that of a study that was never killed, and `verify` and `replay` agree.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import signal
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
from src.calls.limits import Limits
from src.calls.resources import CallResources
from src.calls.stop import Stop
from src.schemas import CallRecord
from src.store.hash_chain import ChainReader, is_recovery
from tests.runs import ROOT, THREE, call, environment

REPEATS = 3
CALLS_PER_KILL = 50
"""At most. Counted in calls and not in seconds, so that a slow machine gets as far between kills as a fast one."""
NO_CALL_S = 120.0
"""A child that makes no call for so long hangs."""


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
    """Run or resume the study in this folder."""
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


def wait_for_calls(process: subprocess.Popen[bytes], ledger: Path, calls: int) -> bool:
    """Whether the child made so many more calls before it ended."""
    before, seen, since = read(ledger).count(b"\n"), -1, time.monotonic()
    while process.poll() is None:
        made = read(ledger).count(b"\n") - before
        if made >= calls:
            return True
        if made > seen:
            seen, since = made, time.monotonic()
        if time.monotonic() - since > NO_CALL_S:
            process.kill()
            raise RuntimeError(f"the child made no call for {NO_CALL_S:.0f} seconds")
        time.sleep(0.002)
    return False


def one_study(folder: Path, expected: bytes, dice: random.Random, tally: Tally) -> None:
    """Kill and resume until the study is complete, checking after each kill."""
    ledger = folder / "ledger"
    allowed: Counter[str] = Counter()
    before_journal = before_results = b""
    while not (folder / storage.SEAL).exists():
        arguments = [sys.executable, "-m", "tests.crash", "--child", str(folder), "--ledger", str(ledger)]
        process = subprocess.Popen(arguments, cwd=ROOT, env=environment())
        if wait_for_calls(process, ledger, dice.randint(1, CALLS_PER_KILL)):
            time.sleep(dice.random() * 0.01)  # anywhere between two calls
            process.kill()
        if process.wait() == -signal.SIGKILL:
            tally.kills += 1
        elif process.returncode:
            tally.problems.append(f"{folder.name}: the child ended with {process.returncode}")
            return
        journal, results = read(folder / storage.JOURNAL), read(folder / storage.RESULTS)
        if not journal.startswith(before_journal) or not results.startswith(before_results):
            tally.problems.append(f"{folder.name}: bytes written before the kill are gone or changed")
        before_journal, before_results = journal, results
        if not expected.startswith(results):
            tally.problems.append(f"{folder.name}: results.jsonl is not the start of the unkilled run's")
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
    """At least this many kills, over as many studies as that takes."""
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
