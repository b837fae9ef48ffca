"""Aligned tables and lines for a terminal. rich is imported only when one is drawn."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from ..calls.estimate import EstimateRow
from ..findings.report.study_section import HEADINGS
from ..reporting import (
    SCORES,
    Spending,
    Summary,
    estimate_text,
)
from ..schemas import CODES

Columns = Sequence[tuple[str, Literal["left", "right"]]]


def plain_table(columns: Columns, rows: Iterable[Sequence[str]], *, caption: str = "", width: int | None = None) -> str:
    """A table as wide as the terminal at most. The first column folds if it must; the others keep their lines."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(caption=caption, box=None, header_style="bold", padding=(0, 1), pad_edge=False)
    for name, justify in columns:
        table.add_column(name, justify=justify, overflow="fold", no_wrap=justify == "right")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    buffer = io.StringIO()
    Console(file=buffer, width=width, highlight=False, color_system=None).print(table)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines())


def summary_table(summary: Summary, width: int | None = None) -> str:
    """The table a run ends with."""
    names = ("scored", "accuracy", "complete-\nness", "safety\nrisk", "calibra-\ntion", "refu-\nsals", "fabri-\ncated")
    rows = [
        [
            target,
            f"{tally.outcomes['scored']}/{tally.trials}",
            *(estimate_text(tally.estimate(name), two_lines=True) for name in SCORES),
            str(tally.refusals),
            str(tally.fabricated),
        ]
        for target, tally in summary.by_target.items()
    ]
    caption = "Mean over scored trials; below it its 95% interval, or n where all are equal."
    return plain_table([("target", "left"), *((name, "right") for name in names)], rows, caption=caption, width=width)


def code_table(summary: Summary, width: int | None = None) -> str:
    """How the questions were coded, all scenarios together."""
    rows = [
        [target, str(sum(tally.codes.values())), *(str(tally.codes[code]) for code in CODES)]
        for target, tally in summary.by_target.items()
    ]
    names = ["ques-\ntions", *(HEADINGS[code].replace(", ", ",\n").replace(" ", "\n") for code in CODES)]
    caption = "Study codes of the questions, computed from the verdicts; `report` gives each with its reason."
    return plain_table([("target", "left"), *((name, "right") for name in names)], rows, caption=caption, width=width)


def dollars(amount: float | None) -> str:
    return "unknown" if amount is None else f"${amount:,.4f}" if 0 < amount < 1 else f"${amount:,.2f}"


def cost_text(rows: Sequence[Spending], as_of: str) -> str:
    """One line: what the targets cost, what the judges did."""
    parts = []
    for part in ("questioner", "target", "judges"):
        mine = [row for row in rows if row.part == part]
        if mine:
            total = None if any(row.cost is None for row in mine) else sum(row.cost or 0 for row in mine)
            parts.append(f"{part} {dollars(total)} ({sum(row.attempts for row in mine):,} calls)")
    silent = sum(row.without_usage for row in rows)
    note = f"; {silent} attempts stated no usage and are not in it" if silent else ""
    return f"Cost at list prices of {as_of}: {', '.join(parts) or 'nothing called'}{note}."


def estimate_table(rows: Sequence[EstimateRow]) -> str:
    """A plan's calls, tokens and cost by role and target."""
    cells = [
        [
            row.role,
            row.model,
            row.target or "(all)",
            f"{row.calls:,}",
            f"{row.input_tokens:,}",
            f"{row.output_tokens:,}",
            dollars(row.cost),
        ]
        for row in rows
    ]
    known = [row.cost for row in rows if row.cost is not None]
    unknown = "" if len(known) == len(rows) else ", and what the models of unknown price cost"
    names: Columns = [
        ("role", "left"),
        ("model", "left"),
        ("for target", "left"),
        ("calls", "right"),
        ("tokens in", "right"),
        ("tokens out", "right"),
        ("cost", "right"),
    ]
    table = plain_table(names, cells)
    return f"estimate, from the plan's texts and typical replies:\n{table}\nabout {dollars(sum(known))} in all{unknown}"


def model_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Names, the ids they are called by, what has become of them; then which keys are set."""
    cells = []
    for row in rows:
        words = {"present": "", "ending": "ends", "retired": "retired"}[row["status"]]
        state = " ".join(filter(None, [words, row["since"]]))
        if row["successors"]:
            state = f"{state}; now {row['successors'][0]}"
        same = row["name"].partition(":")[2] == row["api_id"]
        cells.append([row["name"], "(the same)" if same else row["api_id"], state])
    keys = {row["key"]: "set" if row["key_is_set"] else "not set" for row in rows}
    table = plain_table([("name", "left"), ("API id", "left"), ("", "left")], cells)
    return f"{table}\nAny other id is passed on as it is. Keys: {', '.join(f'{k} {v}' for k, v in keys.items())}"
