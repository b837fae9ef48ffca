"""Rows of the result and how they are shown."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

BEGIN, END = "<!-- measured: written by `python -m bench --write` -->", "<!-- /measured -->"
HEAD = ("measure", "ours", "other", "ratio", "goal", "met")


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


def write(path: Path, measured: str) -> None:
    """Put what was measured into the file, between its marks; the rest of it stays as it is."""
    text = path.read_text(encoding="utf-8") if path.exists() else f"# JudgeClients\n\n{BEGIN}\n{END}\n"
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{before}{BEGIN}\n\n{measured}\n\n{END}{after}", encoding="utf-8")
