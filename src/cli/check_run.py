"""`verify` and `replay`: is a run what was written, and can its results be computed again?"""

from __future__ import annotations

import argparse
import gc
import json
from dataclasses import asdict

from .. import audit
from ..errors import IncompleteRun
from ..store.run_folder import is_series
from ..text.count import counted


def verify(arguments: argparse.Namespace) -> int:
    if is_series(arguments.run):
        return _verify_series(arguments)
    found = audit.verify(arguments.run, arguments.expect)
    if arguments.json:
        print(json.dumps(asdict(found), indent=2))
    else:
        trials = f"{found.trials} of {found.planned} trials"
        print(f"{arguments.run}: OK. {trials} and {found.calls:,} calls match what was recorded.")
        if found.torn_lines:
            print(f"  lines left incomplete by crashes, and recovered: {found.torn_lines}")
        print(f"  results hash: {found.head}")
    if not found.sealed:
        raise _not_complete(arguments)
    return 0


def _verify_series(arguments: argparse.Namespace) -> int:
    from ..series.actions import verify_series

    found = verify_series(arguments.run, arguments.expect)
    if arguments.json:
        print(json.dumps(asdict(found), indent=2))
    else:
        what = (
            f"{counted(found.points, 'point')}, {counted(found.runs, 'run')} and {counted(found.checks, 'judge check')}"
        )
        print(f"{arguments.run}: OK. {what} match what was recorded.")
        print(f"  chain value of the last line: {found.head}")
    return 0


def replay(arguments: argparse.Namespace) -> int:
    from ..api import checks  # `verify` starts in half the time without it

    gc.freeze()  # what is loaded by now stays, also in the processes that share it
    gc.set_threshold(50_000, 20, 50)
    found = checks.replay(arguments.run)
    if arguments.json:
        print(json.dumps(asdict(found), indent=2))
    else:
        trials = f"{found.trials} of {found.planned} results"
        print(f"{arguments.run}: OK. Recomputed {trials} from the journal; byte-for-byte identical.")
        print(f"  results hash: {found.head}")
    if found.trials < found.planned:
        raise _not_complete(arguments)
    return 0


def _not_complete(arguments: argparse.Namespace) -> IncompleteRun:
    return IncompleteRun(f"{arguments.run} is not complete. To continue: medicare-eval resume {arguments.run}")
