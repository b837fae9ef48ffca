"""Our side: a process that runs a real command line and reports what it cost.

    python -m bench.harness '["run", ...]' --warm-up '["run", ...]' [--profile FILE]

Everything that `medicare-eval` does for this command is done here and counted. Only imports are not: the warm-up
command runs first, in the same process. A SIGINT stops a run cleanly, as on the command line, and its cost is still
reported, with the exit code.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from dataclasses import replace
from pathlib import Path

from src.cli import main as medicare_eval

from .costs import measured


def run(words: list[str]) -> int:
    """One command line; its exit code. Its output goes to stderr, because stdout is for the costs."""
    with contextlib.redirect_stdout(sys.stderr):
        return medicare_eval(words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", type=json.loads, help="the measured command line, as a JSON list")
    parser.add_argument("--warm-up", type=json.loads, required=True, help="the command line to run first")
    parser.add_argument("--profile", type=Path, help="write a cProfile of the measured command line")
    arguments = parser.parse_args()
    if code := run(arguments.warm_up):
        raise RuntimeError(f"the warm-up ended with exit code {code}")
    codes: list[int] = []
    costs = measured(lambda: codes.append(run(arguments.words)), arguments.profile)
    print(replace(costs, exit_code=codes[0]).to_json())


if __name__ == "__main__":
    main()
