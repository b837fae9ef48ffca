"""The report's tables as CSV. A typed column becomes several; no cell is run as a formula by a spreadsheet."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from io import StringIO
from typing import TextIO

import msgspec

from ... import storage
from ...stats.bounded import Bounded
from ...stats.clustered import ClusteredShare
from ...store import hash_chain
from ...text.escape import defused, plain
from ..analysis.estimates import Estimated
from .document import (
    Cell,
    Column,
    Count,
    Mean,
    Proportion,
    Table,
    shown,
    unlinked,
)
from .series import Runs

_PARTS = {
    "mean": ("", "_low", "_high", "_scenarios", "_missing"),
    "share": ("_share", "_low", "_high", "_effective_n"),
}


def table_csv(table: Table) -> str:
    """Every column that has a CSV name; a mean becomes five columns and a share four."""
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    places = [place for place, column in enumerate(table.columns) if column.key]
    writer.writerow([name for place in places for name in _names(table.columns[place])])
    for row in table.rows:
        writer.writerow([value for place in places for value in _values(row[place])])
    return buffer.getvalue()


def _names(column: Column) -> Iterator[str]:
    return (f"{column.key}{part}" for part in _PARTS.get(column.kind, ("",)))


def _values(cell: Cell) -> list[str]:
    cell = unlinked(cell)
    match cell:
        case Mean():
            estimate = cell.estimate
            counts = str(estimate.units), str(estimate.missing)
            return [*map(_number, (estimate.value, estimate.low, estimate.high)), *counts]
        case Proportion():
            share = cell.share
            effective = share.effective if isinstance(share, Estimated | ClusteredShare | Bounded) else float(share.n)
            return [*map(_number, (share.value, share.low, share.high)), _effective(effective)]
        case Count():
            return [str(cell.value)]
        case _:
            return [safe(shown(cell))]


def _effective(n: float | None) -> str:
    return "" if n is None else f"{n:.1f}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def safe(text: str) -> str:
    """One line without control or direction characters that a spreadsheet will not run as a formula."""
    return defused(plain(text).strip())


class BackingFields(msgspec.Struct):
    quotes: list[str]
    evidence: list[str]


class PointFields(msgspec.Struct):
    point: str
    claims: list[BackingFields]


class OwnPointsFields(msgspec.Struct):
    code: str
    points_met: list[PointFields]
    points_missed: list[str]


class CodeFields(msgspec.Struct):
    question_group: str
    code: str | None
    answer: str | None
    reason: str
    points_met: list[PointFields]
    points_missed: list[str]
    partial_points_met: list[PointFields]
    wrong: list[BackingFields]
    minor: list[BackingFields]
    fabricated: list[str]
    own: OwnPointsFields | None = None


class TargetFields(msgspec.Struct):
    name: str


class TrialFields(msgspec.Struct):
    trial_id: str
    scenario_id: str
    variant: str | None
    target: TargetFields
    study_codes: list[CodeFields]


_decode = msgspec.json.Decoder(TrialFields).decode
CODES_HEADER = (
    "run", "trial_id", "scenario_id", "variant", "target", "question_group", "code", "answer", "reason", "points_met",
    "points_missed", "partial_points_met", "wrong", "minor", "fabricated",
    "own_code", "own_points_met", "own_points_missed",
)  # fmt: skip


def write_codes(runs: Runs, file: TextIO) -> None:
    """One line per study code, with its reason and the quotes behind it, read from the results one by one.

    Only the trials that were gathered before are written: a run in progress may have more by now.
    """
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(CODES_HEADER)
    for run in runs.runs:
        path = run.found.folder / storage.RESULTS
        lines = hash_chain.ChainReader(path, hash_chain.GENESIS) if run.found.rows else ()
        for _, line in zip(run.found.rows, lines, strict=False):
            trial = _decode(line.payload)
            lead = (run.name, trial.trial_id, trial.scenario_id, trial.variant or "", trial.target.name)
            for code in trial.study_codes:
                cells = (*lead, code.question_group, code.code or "", code.answer or "", code.reason, *_evidence(code))
                writer.writerow([safe(cell) for cell in cells])


def _evidence(code: CodeFields) -> Iterator[str]:
    yield _points(code.points_met)
    yield "; ".join(code.points_missed)
    yield _points(code.partial_points_met)
    for claims in (code.wrong, code.minor):
        yield "; ".join(f"{', '.join(claim.evidence)}: {_quoted(claim.quotes)}" for claim in claims)
    yield _quoted(code.fabricated)
    yield code.own.code if code.own else ""
    yield _points(code.own.points_met) if code.own else ""
    yield "; ".join(code.own.points_missed) if code.own else ""


def _points(points: Iterable[PointFields]) -> str:
    return "; ".join(f"{one.point}: {_quoted(q for claim in one.claims for q in claim.quotes)}" for one in points)


def _quoted(quotes: Iterable[str]) -> str:
    return " / ".join(f"“{' '.join(quote.split())}”" for quote in quotes)
