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
from ..records.contracts import QuoteSpan
from ..schemas import Scores, TrialResult
from ..scoring.definitions import MEASURES
from ..trials.row import NO_SCORES, Row
from .document import (
    Block,
    Cell,
    Column,
    Entry,
    Exhibit,
    Paragraph,
    Section,
    Table,
    count_cell,
    number_cell,
    text_cell,
    words,
)
from .evidence_shell import scores_text
from .exhibits import exhibit_title, passage
from .score_section import MARKING
from .series import Run, Runs


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
    return row._replace(scores=row.without.scores or NO_SCORES, counted=row.without.counted)


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


MARKED = (
    "The screen marks passages that speak to those who check the reply, or that hide something. It voids nothing: a "
    "marked reply is judged claim by claim, as it was written and without the marked passages, and a person should "
    "read it. The scores in this report are those of the replies as written."
)
BOUNDS = (
    "Means over all scored trials of a target: with its marked replies as written, without the passages, and the "
    "lowest and highest mean that any choice between the two for each marked trial gives."
)


def marked_section(runs: Runs) -> Section:
    title = words("Replies that speak to their checkers")
    if not any(row.marked for series in runs.series for row in series.rows):
        early = any(run.found.manifest.format < MARKING for run in runs.runs)
        note = "The screen marked no reply." + (" Releases before 0.3 did not mark replies." if early else "")
        return Section(title, (Paragraph(words(note)),))
    exhibits = [_exhibit(runs, run, run.found.trial(name)) for run in runs.runs for name in run.found.marked]
    blocks: tuple[Block, ...] = (Paragraph(words(MARKED)), _count_table(runs), _bounds_table(runs), *exhibits)
    return Section(title, blocks)


def _count_table(runs: Runs) -> Table:
    rows = tuple(
        (
            *runs.lead(series),
            count_cell(sum(row.marked for row in series.rows)),
            count_cell(sum(row.marked > 0 for row in series.rows)),
            count_cell(sum(row.without is not None for row in series.rows)),
        )
        for series in runs.series
    )
    columns = (*runs.lead_columns(), Column("replies marked"), Column("in trials"), Column("of these, scored"))
    return Table("Marked replies by target.", columns, rows)


def _bounds_table(runs: Runs) -> Table:
    rows = tuple(
        (
            *runs.lead(series),
            Cell(measure.heading),
            *(number_cell(value) for value in (found.as_written, found.without, found.low, found.high)),
        )
        for series in runs.series
        if any(row.without for row in series.rows)
        for measure in MEASURES.values()
        for found in [bounds(series.rows, measure.name)]
    )
    names = ("as written", "without", "lowest", "highest")
    columns = (*runs.lead_columns(), Column("measure", "text"), *(Column(name, "other") for name in names))
    return Table(BOUNDS, columns, rows)


def _exhibit(runs: Runs, run: Run, trial: TrialResult) -> Exhibit:
    entries = [("Target", (text_cell(trial.target.name),)), *_passages(trial), *_results(trial)]
    return Exhibit(exhibit_title(runs, run, trial), tuple(entries))


def _passages(trial: TrialResult) -> Iterator[Entry]:
    exchanges = {exchange.turn_id: exchange for exchange in trial.conversation}
    for reading in trial.readings:
        if reading.marked:
            exchange = exchanges[reading.turn_id]
            spans = [QuoteSpan(start=one.start, end=one.end) for one in reading.marked]
            yield ("Asked", (text_cell(exchange.user_message),))
            yield ("Answered", (passage(exchange.reply or "", spans),))
            yield from (("Marked", (text_cell(one.why),)) for one in reading.marked)


def _results(trial: TrialResult) -> Iterator[Entry]:
    if trial.without_marked is None:
        yield ("Scores", words("none, because the trial was not scored"))
        return
    yield ("As written", words(_scores_text(trial.final_scores)))
    yield ("Without", words(_scores_text(trial.without_marked.final_scores)))


def _scores_text(scores: Scores | None) -> str:
    if scores is None:
        return "not known, because a judge failed"
    return scores_text(scores)
