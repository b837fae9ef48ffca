"""Rows of the result and how they are shown."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

BEGIN, END = "<!-- measured: written by the benchmark with --write -->", "<!-- /measured -->"
HEAD = ("measure", "ours", "other", "ratio", "goal", "met")


@dataclass(frozen=True)
class Goal:
    """At most, or with `least` at least, this much."""

    limit: float
    least: bool = False

    def __str__(self) -> str:
        return f"{'>=' if self.least else '<='} {self.limit:g}"

    def met(self, value: float) -> bool:
        return value >= self.limit if self.least else value <= self.limit


@dataclass(frozen=True)
class Row:
    measure: str
    ours: str
    other: str = ""
    ratio: float | None = None
    goal: str = ""
    met: bool | None = None

    def cells(self) -> tuple[str, ...]:
        met = "" if self.met is None else "yes" if self.met else "NO"
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        return (self.measure, self.ours, self.other, ratio, self.goal, met)


def compared(measure: str, ours: float, other: float, *, form: str = ".2f", goal: Goal | None = None) -> Row:
    """A row of two numbers and their ratio, ours to other, which the goal is about."""
    ratio = ours / other
    met = None if goal is None else goal.met(ratio)
    return Row(measure, format(ours, form), format(other, form), ratio, str(goal) if goal else "", met)


def aligned(rows: list[Row]) -> str:
    lines = [HEAD, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    rule = tuple("-" * width for width in widths)
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in (0, 4) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in (lines[0], rule, *lines[1:])
    )


def markdown(rows: list[Row]) -> str:
    lines = ["| " + " | ".join(HEAD) + " |", "|---|---:|---:|---:|---|---|"]
    return "\n".join([*lines, *("| " + " | ".join(row.cells()) + " |" for row in rows)])


def measured_on(*packages: str) -> str:
    """When, and on what; the machine only by its size."""
    memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    day = datetime.now(UTC).date().isoformat()
    return f"{day}; {os.cpu_count()} cores, {memory} GiB; Python {platform.python_version()}, {versions}"


def publish(rows: list[Row], notes: Sequence[str], to: Path | None) -> None:
    """Print a table with its notes, and put both into a document if one is given."""
    print("\n".join([aligned(rows), "", *notes]))
    if to:
        write(to, "\n\n".join([markdown(rows), *notes]))


def trial_arguments(prog: str, description: str | None, trials: int, smoke: int) -> argparse.Namespace:
    """The arguments of a benchmark over the trials of one run; `trials` of the result is how many."""
    parser = argparse.ArgumentParser(
        prog=prog, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=trials, help=f"trials of the run (default: {trials:,})")
    parser.add_argument("--smoke", action="store_true", help=f"{smoke} trials: checks that everything runs")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the table into this file")
    given = parser.parse_args()
    given.trials = smoke if given.smoke else given.trials
    return given


def write(path: Path, measured: str) -> None:
    """Put what was measured into the file, between its marks; the rest of the file stays as it is."""
    text = path.read_text(encoding="utf-8") if path.exists() else f"# Benchmark\n\n{BEGIN}\n{END}\n"
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    path.write_text(f"{before}{BEGIN}\n\n{measured}\n\n{END}{after}", encoding="utf-8")
