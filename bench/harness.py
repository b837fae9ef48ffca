"""Our side: a process that carries out a study by the real command line and says what it cost.

Everything a user's `medicare-eval run` does is done here and counted: the plan, adapters on the SDK, limiter, journal
with its syncs, checks of every reply, results in plan order, the seal, the summary. Only imports are not: a warm-up run
of a few trials comes first. A SIGINT stops the run cleanly, as the command line does, and what it cost is still said.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from pathlib import Path

from src.cli import parser

from .costs import measured
from .study import JUDGES, KEY, TARGET

WARM_UP_TRIALS = 8
OK, INCOMPLETE = 0, 4


def run(out: Path, scenario: Path, trials: int, concurrency: int) -> int:
    """One run of the command line; its exit code. Its own output goes to stderr."""
    words = ["run", "--scenario", scenario, "--target", TARGET, "--out", out, "--repeats", trials]
    words += ["--concurrency", concurrency, "--quiet"]
    for judge in JUDGES:
        words += ["--judge-model", judge]
    with contextlib.redirect_stdout(sys.stderr):
        return parser.main([str(word) for word in words])


def calls_in(journal: Path) -> int:
    """Calls recorded; anything but a first attempt with an answer voids the measurement."""
    calls = 0
    with journal.open("rb") as lines:
        for line in lines:
            calls += 1
            call = line[: line.index(b'","', 80)]
            if not call.endswith(b"|0|1") or b'"outcome":"ok"' not in line:
                raise RuntimeError(f"line {calls} of the journal is no plain call: {line[:300]!r}")
    return calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--scenario", type=Path, required=True)
    parser.add_argument("--trials", type=int, required=True)
    parser.add_argument("--concurrency", type=int, default=64, help="trials at once")
    parser.add_argument("--calls-a-trial", type=int, help="the limiter's width, times concurrency (default: as it is)")
    parser.add_argument("--profile", type=Path, help="write a cProfile of the measured part")
    arguments = parser.parse_args()
    os.environ |= {"COMPATIBLE_BASE_URL": arguments.base_url, "COMPATIBLE_API_KEY": KEY}
    if arguments.calls_a_trial:
        assert run.CALLS_A_TRIAL, "the command line sets its limiter otherwise now: mend the bench"
        run.CALLS_A_TRIAL = arguments.calls_a_trial
    if run(arguments.out / "warm-up", arguments.scenario, WARM_UP_TRIALS, WARM_UP_TRIALS) != OK:
        raise RuntimeError("the warm-up run did not end well")
    codes: list[int] = []

    def work() -> int:
        codes.append(run(arguments.out / "runs", arguments.scenario, arguments.trials, arguments.concurrency))
        return 1

    costs = measured(work, arguments.profile)
    if codes[0] not in (OK, INCOMPLETE):
        raise RuntimeError(f"the run ended with exit code {codes[0]}")
    folder = next((arguments.out / "runs").iterdir())
    print(costs.to_json(folder=str(folder), calls=calls_in(folder / "calls.jsonl")))


if __name__ == "__main__":
    main()
