"""What the targets did well: questions that all of them answered fully, and the best scenarios of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...text.rounded import percent
from ..analysis.estimates import Question, Tallies, question_values, tallied_rows
from .document import Block, Cell, Column, Count, Linked, Paragraph, Section, Table, Text, Words, words
from .links import of_question, of_scenario
from .series import Runs, Series

SHOWN = 8
"""Questions in the table of those that all targets answered fully."""
BEST = 3
"""Scenarios shown for each target."""


@dataclass(frozen=True)
class _Best:
    series: Series
    scenario_id: str
    share: float
    questions: int
    answers: int


def strength_section(runs: Runs) -> Section:
    title = words("What went well")
    tallies = {series: tallied_rows(series.rows, "accurate_complete") for series in runs.series}
    blocks: list[Block] = [*_full_table(runs, tallies), *_best_table(runs, tallies)]
    return Section(title, tuple(blocks) or (Paragraph(words("No answer was accurate and complete.")),))


def _full_table(runs: Runs, tallies: dict[Series, Tallies]) -> list[Block]:
    """Questions to which every answer of every target was accurate and complete."""
    full = [{one.question for one in question_values(given) if one.value == 1.0} for given in tallies.values() if given]
    if not full:
        return []
    every = set.intersection(*full)
    order = [question for question in _questions(runs.series) if question in every]
    if not order:
        return [Paragraph(words("No question was answered accurately and completely by every target each time."))]
    first = next(series for series in runs.series if tallies[series])
    rows = tuple(
        (Linked(_topic(first, one), of_question(first, *one)), Text(one.scenario_id), Count(_count(tallies, one)))
        for one in order[:SHOWN]
    )
    which = "all targets" if len(full) > 1 else "the target"
    more = f" {SHOWN} of {len(order)} shown; per_question.csv has all." if len(order) > SHOWN else ""
    caption = f"Questions that {which} answered accurately and completely each time.{more}"
    return [Table(caption, (Column("question", "text"), Column("scenario", "text"), Column("answers")), rows)]


def _questions(every: Sequence[Series]) -> list[Question]:
    """In the order of the plans."""
    return list(dict.fromkeys(Question(*rule) for series in every for rule in series.run.found.rules))


def _topic(series: Series, question: Question) -> Cell:
    rule = series.run.found.rules.get((question.scenario_id, question.group))
    return Text(rule.topic if rule and rule.topic else question.group)


def _count(tallies: dict[Series, Tallies], question: Question) -> int:
    return sum(tally.n for given in tallies.values() for tally in given.get(question, {}).values())


def _best_table(runs: Runs, tallies: dict[Series, Tallies]) -> list[Block]:
    best = [one for series, given in tallies.items() for one in _best(series, given)]
    if not best:
        return []
    rows = tuple(
        (
            *runs.lead(one.series),
            Linked(Text(_title(one)), of_scenario(one.series, one.scenario_id)),
            Words(f"{percent(one.share)}%"),
            Count(one.questions),
            Count(one.answers),
        )
        for one in best
    )
    columns = (
        *runs.lead_columns(),
        Column("scenario", "text"),
        Column("accurate and complete", "other"),
        Column("questions"),
        Column("answers"),
    )
    return [Table(f"Up to {BEST} scenarios in which each target did best.", columns, rows)]


def _best(series: Series, tallies: Tallies) -> list[_Best]:
    by_scenario: dict[str, list[float]] = {}
    for one in question_values(tallies):
        by_scenario.setdefault(one.question.scenario_id, []).append(one.value)
    listed = [
        _Best(
            series,
            scenario_id,
            sum(values) / len(values),
            len(values),
            sum(tally.n for one in tallies if one.scenario_id == scenario_id for tally in tallies[one].values()),
        )
        for scenario_id, values in by_scenario.items()
        if any(values)
    ]
    return sorted(listed, key=lambda one: (-one.share, -one.questions, one.scenario_id))[:BEST]


def _title(one: _Best) -> str:
    planned = one.series.run.found.manifest.plan.scenarios
    return next((p.scenario.title for p in planned if p.scenario.scenario_id == one.scenario_id), one.scenario_id)
