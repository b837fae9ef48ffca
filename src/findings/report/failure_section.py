"""The report's sections on what went well, on common failures and on cost.

Well: questions that all targets answered fully, and the best scenarios of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...text.rounded import percent
from ..analysis.estimates import Question, Tallies, question_values, tallied_rows
from .document import Block, Cell, Column, Count, Linked, Money, Of, Paragraph, Section, Table, Text, Words, say, words
from .links import of_question, of_scenario
from .score_section import scored
from .series import Runs, Series
from .study_section import CodeCounts, Counted

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


MOST_INCORRECT = 10


def failure_section(runs: Runs, counted: Counted) -> Section:
    names = Counter(error for series in runs.series for row in series.rows for error in row.errors)
    order = sorted(names, key=lambda name: (-names[name], name))
    rows = []
    for series in runs.series:
        errors = Counter(error for row in series.rows for error in row.errors)
        done = len(series.rows)
        rows.append(
            (
                *runs.lead(series),
                *(Of(errors[name], scored(series.rows)) for name in order),
                Of(sum(row.refusal for row in series.rows), done),
                Of(sum(row.fabricated for row in series.rows), done),
            )
        )
    columns = (
        *runs.lead_columns(),
        *(Column(name.replace("_", " "), "other") for name in order),
        Column("any refusal", "other"),
        Column("any fabricated specific", "other"),
    )
    note = words("Error categories are counted over scored trials; the last two columns over all trials run.")
    blocks: list[Block] = [
        Paragraph(note),
        Table("Trials with each kind of failure.", columns, tuple(rows)),
        _incorrect_table(runs, counted),
    ]
    return Section(words("Common failure modes"), tuple(blocks))


class _Question(NamedTuple):
    """A question group of one target that was answered incorrectly at least once."""

    series: Series
    scenario_id: str
    group: str
    counts: CodeCounts

    @property
    def incorrect(self) -> int:
        return self.counts.codes["incorrect"]


def _incorrect_table(runs: Runs, counted: Counted) -> Table:
    wrong = [_Question(*key, counts) for key, counts in counted.items() if counts.codes["incorrect"]]
    wrong.sort(key=lambda one: (-one.incorrect / one.counts.n, -one.incorrect))
    rows = []
    for one in wrong[:MOST_INCORRECT]:
        rule = one.series.run.found.rules.get((one.scenario_id, one.group))
        group = Linked(Text(one.group), of_question(one.series, one.scenario_id, one.group))
        named = (Text(one.scenario_id), group, Text(rule.topic if rule else ""))
        rows.append((*runs.lead(one.series), *named, Of(one.incorrect, one.counts.n)))
    columns = (
        *runs.lead_columns(),
        *(Column(name, "text") for name in ("scenario", "question group", "topic")),
        Column("incorrect", "other"),
    )
    more = f"; {len(wrong) - MOST_INCORRECT} more are in per_question.csv" if len(wrong) > MOST_INCORRECT else ""
    return Table(f"Questions most often answered incorrectly{more}.", columns, tuple(rows))


def cost_section(runs: Runs) -> Section:
    rows: list[tuple[Cell, ...]] = []
    without_usage = 0
    for run in runs.runs:
        spent = run.calls.spending
        without_usage += sum(one.without_usage for one in spent)
        rows += [
            (
                *runs.lead(run),
                Words(one.part),
                Text(one.model),
                Count(one.attempts),
                Count(one.input_tokens),
                Count(one.output_tokens),
                Count(one.without_usage),
                Money(one.cost),
            )
            for one in spent
        ]
    columns = (
        *runs.lead_columns(target=False),
        Column("part", "text"),
        Column("model", "text"),
        Column("attempts"),
        Column("tokens in"),
        Column("tokens out"),
        Column("no usage reported"),
        Column("cost", "other"),
    )
    dates = ", ".join(dict.fromkeys(run.found.manifest.prices_as_of for run in runs.runs))
    usage = (
        f"{without_usage:,} attempts reported no token usage and are not included in the cost."
        if without_usage
        else "All attempts reported their token usage."
    )
    note = say("At list prices as of ", Text(dates), ". ", usage)
    return Section(words("Cost"), (Paragraph(note), Table("Calls, tokens and cost.", columns, tuple(rows))))
