"""`make bench`, or `python -m bench [--part NAME]... [--smoke] [--write FILE]`.

One loopback server in a process of its own, and every measurement in a fresh process. Short measurements are repeated,
each side in turn, and the best is taken. Numbers depend on the machine: compare the ratios. The exit code is 0 unless
something breaks; no goal makes it fail. All traffic stays on 127.0.0.1.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from .loopback import running_server
from .measure import Measurer
from .parts import FULL, SMOKE, Parts, SkippedError
from .replies import REPLIES
from .study import CALLS_PER_TURN, ROOT
from .table import Row, measured_on, publish

PARTS = (
    "cpu", "isolation", "reread", "start", "wall", "efficiency", "processes", "memory", "resume", "replay", "inspect",
    "transports",
)  # fmt: skip


def reply_size() -> str:
    words = [len(reply.text().split()) for reply in REPLIES]
    claims = {len(reply.claims) for reply in REPLIES}
    return f"{min(words)} to {max(words)} words and {', '.join(map(str, claims))} claims per reply"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", action="append", choices=PARTS, help="run only this part; repeatable")
    parser.add_argument("--smoke", action="store_true", help="tiny counts: checks that every part runs")
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="put the table into this file, such as docs/bench.md"
    )
    arguments = parser.parse_args()
    rows: list[Row] = []
    notes = [
        f"Measured {measured_on('openai', 'httpx2', 'pydantic')}; {CALLS_PER_TURN} calls per turn but where "
        f"--isolation is named; {reply_size()}."
    ]
    if arguments.smoke:
        notes.append("Smoke run: the counts are too small for the figures to mean anything.")
    with tempfile.TemporaryDirectory(prefix=".work-", dir=ROOT / "bench") as work, running_server() as server:
        parts = Parts(Measurer(server, Path(work)), SMOKE if arguments.smoke else FULL)
        for part in arguments.part or PARTS:
            print(f"{part} ...", file=sys.stderr)
            try:
                for row in parts.run(part):
                    rows.append(row)
                    print("  " + "  ".join(cell for cell in row.cells() if cell), file=sys.stderr)
            except SkippedError as why:
                notes.append(f"{part}: skipped: {why}.")
    publish(rows, notes, arguments.write)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
