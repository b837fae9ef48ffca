"""The report's tables as CSV. A typed column becomes several; no cell is run as a formula by a spreadsheet."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from io import StringIO
from typing import TextIO

from ..findings.estimates import Estimated
from ..records.study_code import MadePoint
from ..schemas import QuestionCode, TrialResult
from ..stats.bounded import Bounded
from ..stats.clustered import ClusteredShare
from ..store.projection import projection
from ..text.escape import defused, plain
from .document import Cell, Column, Table
from .series import Runs

_PARTS = {
    "mean": ("", "_low", "_high", "_lowest", "_highest", "_scenarios", "_trials", "_missing"),
    "share": ("_share", "_low", "_high", "_effective_n"),
}


def table_csv(table: Table) -> str:
    """Every column that has a CSV name; a mean becomes eight columns and a share four."""
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    places = [place for place, column in enumerate(table.columns) if column.key]
    writer.writerow([name for place in places for name in _names(table.columns[place])])
    for row in table.rows:
        writer.writerow([value for place in places for value in _values(table.columns[place], row[place])])
    return buffer.getvalue()


def _names(column: Column) -> Iterator[str]:
    return (f"{column.key}{part}" for part in _PARTS.get(column.kind, ("",)))


def _values(column: Column, cell: Cell) -> list[str]:
    found = cell.source
    if found is None or column.kind not in _PARTS:
        return [str(found) if isinstance(found, int) else safe(cell.text)]
    assert not isinstance(found, int)
    ends = map(_number, (found.value, found.low, found.high))
    if column.kind == "mean":
        assert isinstance(found, Estimated)
        bounds = map(_number, (found.lowest, found.highest))
        return [*ends, *bounds, str(found.units), str(found.answers), str(found.missing)]
    effective = found.effective if isinstance(found, Estimated | ClusteredShare | Bounded) else float(found.n)
    return [*ends, _effective(effective)]


def _effective(n: float | None) -> str:
    return "" if n is None else f"{n:.1f}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def safe(text: str) -> str:
    """One line without control or direction characters that a spreadsheet will not run as a formula."""
    return defused(plain(text).strip())


CODES_HEADER = (
    "run", "trial_id", "scenario_id", "variant", "target", "question_group", "code", "answer", "reason", "points_met",
    "points_missed", "partial_points_met", "wrong", "minor", "fabricated",
    "own_code", "own_points_met", "own_points_missed",
)  # fmt: skip
_decode = projection(TrialResult, {"": "trial_id scenario_id variant study_codes", "target": "name"})


def write_codes(runs: Runs, file: TextIO) -> None:
    """One line per study code, with its reason and the quotes behind it, read from the results one by one."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(CODES_HEADER)
    for run in runs.runs:
        for trial in run.found.decoded((row.trial_id for row in run.found.rows), _decode):
            lead = (run.name, trial.trial_id, trial.scenario_id, trial.variant or "", trial.target.name)
            for code in trial.study_codes:
                cells = (*lead, code.question_group, code.code or "", code.answer or "", code.reason, *_evidence(code))
                writer.writerow([safe(cell) for cell in cells])


def _evidence(code: QuestionCode) -> Iterator[str]:
    yield _points(code.points_met)
    yield "; ".join(code.points_missed)
    yield _points(code.partial_points_met)
    for claims in (code.wrong, code.minor):
        yield "; ".join(f"{', '.join(claim.evidence)}: {quoted(claim.quotes)}" for claim in claims)
    yield quoted(code.fabricated)
    yield code.own.code if code.own else ""
    yield _points(code.own.points_met) if code.own else ""
    yield "; ".join(code.own.points_missed) if code.own else ""


def _points(points: Iterable[MadePoint]) -> str:
    return "; ".join(f"{one.point}: {quoted(q for claim in one.claims for q in claim.quotes)}" for one in points)


def quoted(quotes: Iterable[str]) -> str:
    return " / ".join(f"“{' '.join(quote.split())}”" for quote in quotes)
