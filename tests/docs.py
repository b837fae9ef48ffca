"""Command output shown in documents: written by running the commands, and checked by a test.

In a Markdown file, a comment before a fenced block says which command printed it:

    <!-- output: medicare-eval verify RUN -->
    <!-- output last 12: medicare-eval demo --quiet -->

`first N` and `last N` keep only so many lines; the cut is shown as `...`. In a block without them, a `...` line that was
typed by hand matches any lines. The commands of one document run in order in one empty folder, with no API key set and
80 columns; RUN is the newest run folder there, and OLD the one before it. Time stamps are replaced by fixed ones.

`python -m tests.docs` checks all documents; `python -m tests.docs --write` writes them (`make docs`).
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
MARKER = re.compile(r"^<!-- output(?: first (?P<first>\d+))?(?: last (?P<last>\d+))?: (?P<command>.+?) -->$")
STAMP = re.compile(r"\d{8}T\d{6}Z(?:-\d+)?")
FIXED_STAMP = "20261116T120000Z"
PROGRAM = "medicare-eval"
GAP = "..."


@dataclass(frozen=True)
class Block:
    """A fenced block whose text a command prints."""

    path: Path
    line: int
    """Of the marker, from 1."""
    command: str
    first: int | None
    last: int | None
    start: int
    """Index of the first line inside the fence."""
    end: int
    """Index of the closing fence."""
    shown: tuple[str, ...]

    @property
    def where(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}"


def blocks(path: Path) -> Iterator[Block]:
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        marker = MARKER.match(line)
        if not marker:
            continue
        start = number + 1
        if start >= len(lines) or not lines[start].startswith("```"):
            raise ValueError(f"{path.name}:{number + 1}: an output marker needs a fenced block on the next line")
        end = next(at for at in range(start + 1, len(lines)) if lines[at].startswith("```"))
        yield Block(
            path,
            number + 1,
            marker["command"],
            int(marker["first"]) if marker["first"] else None,
            int(marker["last"]) if marker["last"] else None,
            start + 1,
            end,
            tuple(lines[start + 1 : end]),
        )


def environment() -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.endswith(("_API_KEY", "_BASE_URL")) and not name.startswith(("COV_", "COVERAGE_", "PYTEST_"))
    }
    return kept | {
        "COLUMNS": "80",
        "LINES": "50",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "MEDICARE_EVAL_TODAY": "2026-11-16",
        "PYTHONPATH": str(ROOT),
    }


def printed(command: str, folder: Path) -> list[str]:
    """What a command prints in a folder, with fixed time stamps. A failing command shows its error and code."""
    words = shlex.split(command)
    if words[0] != PROGRAM:
        raise ValueError(f"{command}: only {PROGRAM} commands can be shown")
    runs = sorted(folder.glob("runs/*"), key=lambda path: path.stat().st_mtime_ns)
    places = {"RUN": -1, "OLD": -2}
    words = [str(runs[places[word]].relative_to(folder)) if word in places else word for word in words]
    done = subprocess.run(
        [sys.executable, "-m", "src.orchestrator", *words[1:]],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    text = done.stdout
    if done.returncode not in (0, 7, 8) or not text.strip():
        text += done.stderr
    text = STAMP.sub(FIXED_STAMP, text).replace("python -m src.orchestrator", PROGRAM)
    return [line.rstrip() for line in text.rstrip("\n").splitlines()]


def cut(block: Block, lines: list[str]) -> list[str]:
    """The lines of an output that a block shows."""
    if block.first is None and block.last is None:
        return lines
    first, last = block.first or 0, block.last or 0
    if len(lines) <= first + last:
        return lines
    head = [*lines[:first], GAP] if first else []
    tail = [] if not last else lines[-last:] if first else [GAP, *lines[-last:]]
    return [*head, *tail]


def fits(shown: tuple[str, ...], lines: list[str]) -> bool:
    """Whether a block shows an output; `...` alone on a line matches any lines."""
    parts = [re.escape(line) if line.strip() != GAP else None for line in shown]
    pattern = r"\n".join(r"(?:.*\n?)*?.*" if part is None else part for part in parts)
    return re.fullmatch(pattern, "\n".join(lines)) is not None


@dataclass(frozen=True)
class Stale:
    block: Block
    lines: list[str]
    """What the block should show."""


def stale(path: Path) -> list[Stale]:
    """The blocks of a document that do not show what their commands print."""
    found = []
    with tempfile.TemporaryDirectory() as name:
        for block in blocks(path):
            output = printed(block.command, Path(name))
            wanted = cut(block, output)
            by_hand = block.first is None and block.last is None and GAP in block.shown
            if list(block.shown) != wanted and not (by_hand and fits(block.shown, output)):
                found.append(Stale(block, wanted))
    return found


def rewrite(path: Path, found: list[Stale]) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    for one in sorted(found, key=lambda one: -one.block.start):
        lines[one.block.start : one.block.end] = one.lines
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="Check, or write, the command output shown in documents.")
    parser.add_argument("--write", action="store_true", help="replace what is out of date")
    parser.add_argument("documents", nargs="*", type=Path, help="(default: all)")
    arguments = parser.parse_args()
    total = 0
    for path in arguments.documents or DOCUMENTS:
        found = stale(path.resolve())
        total += len(found)
        for one in found:
            print(f"{one.block.where}: {one.block.command}: {'rewritten' if arguments.write else 'out of date'}")
        if arguments.write and found:
            rewrite(path, found)
    print(f"{total} blocks {'rewritten' if arguments.write else 'out of date'}")
    return int(bool(total) and not arguments.write)


if __name__ == "__main__":
    raise SystemExit(main())
