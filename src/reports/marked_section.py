"""Replies that the screen marked: how many, what the passages do to each measure, and the passages themselves.

A reply that the screen marks is judged as it was written and without the marked passage. Which of the two is the
target's real answer is for a person to say, so the report gives the estimate for both, and the lowest and the highest
estimate that any choice between them gives. An answer that is missing on one side could have been anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum

from ..findings.estimates import Answer, Question, answers_of, estimate, question_values, tallied
from ..scoring.definitions import MEASURES
from ..trials.row import NO_SCORES, Row
from .document import Section
from .evidence_shell import scores_text
from .exhibits import case_section
from .score_section import MARKING
from .series import Runs


@dataclass(frozen=True)
class Bounds:
    """Estimates of a measure for a target; None if no answer has a value."""

    as_written: float | None
    without: float | None
    """With every marked trial as if the passages had not been written."""
    low: float | None
    high: float | None


def bounds(rows: Sequence[Row], measure: str) -> Bounds:
    return Bounds(
        estimate(rows, measure).value,
        estimate([_without(row) for row in rows], measure).value,
        _end(rows, measure, 0.0),
        _end(rows, measure, 1.0),
    )


def _without(row: Row) -> Row:
    """The trial without its marked passages; itself if none is marked. If a judge failed on it, it has no scores."""
    if row.without is None:
        return row
    scores = row.without.scores or NO_SCORES
    return row._replace(scores=scores, counted=row.without.counted, ends=row.without.ends)


def _end(rows: Sequence[Row], measure: str, end: float) -> float | None:
    """The estimate if every marked answer were the one, of the two, that is closer to this end of the scale."""
    values = [one.value for one in question_values(tallied(_chosen(rows, measure, end)))]
    return fsum(values) / len(values) if values else None


def _chosen(rows: Sequence[Row], measure: str, end: float) -> Iterator[Answer]:
    for row in rows:
        if row.without is None:
            yield from answers_of([row], measure)
            continue
        sides: dict[Question, list[Answer]] = {}
        for side in (row, _without(row)):
            for answer in answers_of([side], measure):
                sides.setdefault(answer.question, []).append(answer)
        for both in sides.values():
            known = [one.value for one in both if one.value is not None]
            unknown = len(known) < len(both) or len(both) < 2
            value = end if unknown else min(known, key=lambda one: abs(one - end))
            yield both[0]._replace(value=value)


def marked_section(runs: Runs) -> Section:
    marked = any(row.marked for series in runs.series for row in series.rows)
    return case_section(
        "marked",
        runs,
        counts={series: _counts(series.rows) for series in runs.series} if marked else {},
        bounds=[
            (series, measure.heading, bounds(series.rows, measure.name))
            for series in runs.series
            if any(row.without for row in series.rows)
            for measure in MEASURES.values()
        ],
        early=any(run.found.manifest.format < MARKING for run in runs.runs),
        cases=[(run, run.found.trial(name)) for run in runs.runs for name in run.found.marked],
        scores_text=scores_text,
    )


def _counts(rows: Sequence[Row]) -> tuple[int, int, int]:
    """Replies marked, in how many trials, and how many of these are scored."""
    marked = [row for row in rows if row.marked]
    return sum(row.marked for row in marked), len(marked), sum(row.without is not None for row in rows)
