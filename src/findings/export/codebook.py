"""The codebook that comes with exported tables, as CSV and as Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from ...scoring.definitions import IF_REFUSED_TEXT, MEASURES
from ...text.escape import defused, inert
from ...trials.columns import JOINED, MISSING, Column, Kind, Table
from ...trials.terms import alphabetical
from .tables import TABLES, TEXT_CUT, TEXTS

CODEBOOK_CSV, CODEBOOK_MD = "codebook.csv", "codebook.md"
_HEADER = ("table", "column", "type", "meaning", "values", "missing", "missing_stata", "missing_spss")
_TYPES: dict[Kind, str] = {
    "text": "text",
    "category": "category",
    "reason": "reason for a missing value",
    "integer": "integer",
    "number": "number",
    "flag": "yes or no",
}
_NOTES = (
    "Start with `start.R`, `start.do` (Stata) or `start.py`: each loads the tables, joins them and computes "
    f"{MEASURES['accurate_complete'].brief}, as the report does.",
    "Tables join on `run_id`, `trial_id` and the other keys named below. A cell that lists several values separates "
    "them with `; `.",
    "**A missing value always has a reason.** If a cell can be empty for several reasons, a column `<name>_missing` "
    "says which. The cell itself is empty in CSV and null in JSONL and Parquet. Stata files use extended missing "
    "values (.a, .b, ...) and SPSS files user-missing values (-1, -2, ...), both with labels.",
    "**What counts.** Scores and `counted_code` follow the report's rule for missing data. A reply that was refused, "
    "blocked or empty conveys nothing: its question is `not_substantive`, and a trial in which every question was "
    f"refused has {IF_REFUSED_TEXT}. What failed, was cut off, was not asked or could not be judged is "
    "missing. Leave it out, and say how much it is. Average repeats first, then variants, then questions; take "
    "scenarios as the independent units.",
    "CSV: text that a spreadsheet would run as a formula has a `'` in front, and control characters are written as "
    "escapes (`\\x1b`); line breaks are kept. Yes and no are `true` and `false`. JSONL and Parquet contain the text "
    "verbatim. Excel can hold 32,767 characters in a cell. Longer texts are cut and end with a note, `text_cut` is "
    f"true in their row, and `{TEXTS}` has the whole text with the keys of the row. Excel opens the first 1,048,576 "
    "rows of a file.",
    "Stata (format 118, Stata 14 or newer) and SPSS: categories are numbers with value labels, yes and no are 1 and 0, "
    "and a NUL character is written as `␀`. An SPSS cell can contain up to 32,767 bytes; longer texts are cut, and "
    "`text_cut` is 1 in their row. SPSS drops spaces at the end of a text. Large tables are split into several files "
    "(`verdict.dta`, `verdict.2.dta`, ...); append them to one another.",
)


def codebook_rows() -> Iterator[dict[str, str]]:
    """One row per column of each table."""
    for table in TABLES:
        for column in (*table.columns, TEXT_CUT):
            yield _row(table, column)


def _row(table: Table[Any], column: Column[Any]) -> dict[str, str]:
    if column.missing:
        why = JOINED.join(f"{one.name}: {one.meaning}" for one in column.missing)
    else:
        why = f"empty: {column.absent}" if column.absent else "never"
    coded = column.kind == "category"
    values = [f"{n} = {value}" if coded else value for n, value in enumerate(column.values, 1)]
    return {
        "table": table.name,
        "column": column.name,
        "type": _TYPES[column.kind],
        "meaning": column.meaning,
        "values": JOINED.join(values) or ("0 = no; 1 = yes" if column.kind == "flag" else ""),
        "missing": why,
        "missing_stata": JOINED.join(f".{one.stata} = {one.name}" for one in column.missing),
        "missing_spss": JOINED.join(f"{one.spss} = {one.name}" for one in column.missing),
    }


def codebook_csv() -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, _HEADER, lineterminator="\n")
    writer.writeheader()
    for row in codebook_rows():
        writer.writerow({name: defused(cell) for name, cell in row.items()})
    return buffer.getvalue()


def codebook_md() -> str:
    lines = ["# Codebook", ""]
    for note in _NOTES:
        lines += [note, ""]
    lines += ["## Missing values", "", "| reason | Stata | SPSS | meaning |", "| --- | --- | ---: | --- |"]
    lines += [f"| `{one.name}` | .{one.stata} | {one.spss} | {inert(one.meaning)} |" for one in MISSING.values()]
    for table in TABLES:
        keys = ", ".join(f"`{key}`" for key in table.keys)
        lines += ["", f"## {table.name}", "", f"{table.meaning} Keys: {keys}.", ""]
        lines += ["| column | type | meaning | values | missing |", "| --- | --- | --- | --- | --- |"]
        for column in (*table.columns, TEXT_CUT):
            row = _row(table, column)
            cells = (inert(row[name]) for name in ("type", "meaning", "values", "missing"))
            lines.append(f"| `{column.name}` | {' | '.join(cells)} |")
    lines += ["", "## Words", ""]
    lines += [f"- **{one.name}**: {inert(one.meaning)}" for one in alphabetical("\n".join(lines))]
    return "\n".join([*lines, ""])
