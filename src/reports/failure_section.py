"""The report's sections on what went well, on common failures, on cost and on why calls failed.

Well: questions that all targets answered fully, and the best scenarios of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..findings.cost import UNUSABLE, CallError
from ..findings.estimates import Question, Tallies, question_values, tallied_rows
from ..findings.read_run import Findings
from ..text.count import counted
from ..text.rounded import percent
from . import read_sections
from .document import Block, Cell, Column, Paragraph, Section, Table, count_cell, linked, of_cell, say, text_cell, words
from .links import of_question, of_scenario, of_trial
from .score_section import scored
from .series import Run, Runs, Series
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
        (
            linked(_topic(first, one), of_question(first, *one)),
            text_cell(one.scenario_id),
            count_cell(_count(tallies, one)),
        )
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
    return text_cell(rule.topic if rule and rule.topic else question.group)


def _count(tallies: dict[Series, Tallies], question: Question) -> int:
    return sum(tally.n for given in tallies.values() for tally in given.get(question, {}).values())


def _best_table(runs: Runs, tallies: dict[Series, Tallies]) -> list[Block]:
    best = [one for series, given in tallies.items() for one in _best(series, given)]
    if not best:
        return []
    rows = tuple(
        (
            *runs.lead(one.series),
            linked(text_cell(_title(one)), of_scenario(one.series, one.scenario_id)),
            Cell(f"{percent(one.share)}%"),
            count_cell(one.questions),
            count_cell(one.answers),
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
                *(of_cell(errors[name], scored(series.rows)) for name in order),
                of_cell(sum(row.refusal for row in series.rows), done),
                of_cell(sum(row.fabricated for row in series.rows), done),
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
        group = linked(text_cell(one.group), of_question(one.series, one.scenario_id, one.group))
        named = (text_cell(one.scenario_id), group, text_cell(rule.topic if rule else ""))
        rows.append((*runs.lead(one.series), *named, of_cell(one.incorrect, one.counts.n)))
    columns = (
        *runs.lead_columns(),
        *(Column(name, "text") for name in ("scenario", "question group", "topic")),
        Column("incorrect", "other"),
    )
    more = f"; {len(wrong) - MOST_INCORRECT} more are in per_question.csv" if len(wrong) > MOST_INCORRECT else ""
    return Table(f"Questions most often answered incorrectly{more}.", columns, tuple(rows))


def cost_section(runs: Runs) -> Section:
    without_usage = sum(one.without_usage for run in runs.runs for one in run.calls.spending)
    dates = ", ".join(dict.fromkeys(run.found.manifest.prices_as_of for run in runs.runs))
    return read_sections.section("cost", runs=runs, without_usage=without_usage, dates=dates)


ERRORS_CSV = "errors.csv"
TOP = 10
"""Kinds that each table of the report shows; the CSV file has all."""
LONGEST = 300
"""Characters of a message that a report shows; the CSV file has more."""
NOTHING_LOST = "No call ended without a usable answer."
NOTE = f"One message stands for all that differ only in numbers and ids. All kinds are in {ERRORS_CSV}."
KINDS = {
    "transient": "server or network error",
    "timeout": "no answer in time",
    "rate_limited": "too many requests",
    "malformed": "response not readable",
    "permanent": "request rejected",
    "denied": "key, account or model refused",
    "refused": "declined to answer",
    "blocked": "blocked by a content filter",
    "truncated": "cut off at the length limit",
    "empty": "empty answer",
    UNUSABLE: "answers not usable",
}
"""Classes of failures in plain words."""
SHORT_OUTCOMES = {"truncated": "cut off", "judge_failure": "not judged", "questioner_failure": "not asked"}


class _Found(NamedTuple):
    run: Run
    error: CallError


def kind_text(error: CallError) -> str:
    return KINDS.get(error.outcome, error.outcome)


def shortened(message: str, longest: int) -> str:
    return message if len(message) <= longest else f"{message[: longest - 1].rstrip()}…"


def nothing_scored(found: Findings) -> tuple[Cell, ...]:
    """That no trial of a run has a score, what became of them, and the most frequent reason."""
    outcomes = Counter(row.outcome for row in found.rows).most_common()
    became = ", ".join(f"{count:,} {SHORT_OUTCOMES.get(name, name)}" for name, count in outcomes)
    told = f"Nothing was scored ({counted(len(found.rows), 'trial')}: {became})."
    if not found.errors:
        return words(told)
    top = found.errors[0]
    message = shortened(top.message, LONGEST)
    said: tuple[Cell, ...] = (Cell(": "), text_cell(message)) if message else ()
    times = counted(top.lost or top.attempts, "time")
    start = say(f"{told} Most frequent reason, {times}: {top.role} ", text_cell(top.model), f", {kind_text(top)}")
    return (*start, *said, *(() if message.endswith((".", "…")) else words(".")))


def error_sections(runs: Runs) -> Iterator[Section]:
    """Nothing if no call failed."""
    found = _found(runs)
    if not found:
        return
    lost, again = (sum(count(one.error) for one in found) for count in (_lost, _tried_again))
    first = f"{counted(lost, 'call')} ended without a usable answer, so data is missing." if lost else NOTHING_LOST
    second = f" {counted(again, 'failed attempt was', 'failed attempts were')} tried again: that cost only time."
    blocks: list[Block] = [Paragraph(words(f"{first}{second if again else ''} {NOTE}"))]
    missing = sorted((one for one in found if one.error.lost), key=lambda one: -one.error.lost)
    retried = sorted((one for one in found if one.error.tried_again), key=lambda one: -one.error.tried_again)
    if missing:
        blocks.append(_top_table(runs, "Why data is missing", missing, lost=True))
    if retried:
        blocks.append(_top_table(runs, "Why attempts were repeated", retried, lost=False))
    yield Section(words("Why calls failed"), tuple(blocks), short="Failed calls")


def _found(runs: Runs) -> list[_Found]:
    return [_Found(run, error) for run in runs.runs for error in run.found.errors]


def _lost(error: CallError) -> int:
    return error.lost


def _tried_again(error: CallError) -> int:
    return error.tried_again


def _top_table(runs: Runs, caption: str, found: Sequence[_Found], *, lost: bool) -> Table:
    count = _lost if lost else _tried_again
    rows = tuple(
        (
            *runs.lead(one.run),
            text_cell(one.error.role),
            text_cell(one.error.model),
            text_cell(kind_text(one.error)),
            text_cell(shortened(one.error.message, LONGEST)),
            count_cell(count(one.error)),
            _example(runs, one),
        )
        for one in found[:TOP]
    )
    columns = (
        *runs.lead_columns(target=False),
        *(Column(name, "text") for name in ("role", "model", "what happened", "message")),
        Column("calls lost" if lost else "tried again"),
        Column("for example", "text"),
    )
    more = f"; {counted(len(found) - TOP, 'more kind')} in {ERRORS_CSV}" if len(found) > TOP else ""
    return Table(f"{caption}{more}.", columns, rows)


def _example(runs: Runs, one: _Found) -> Cell:
    """The trial of the example, with a link to its page if it has one."""
    trial_id = one.error.example.partition("|")[0]
    for series in runs.series:
        if series.run is one.run and any(row.trial_id == trial_id for row in series.rows):
            return linked(text_cell(trial_id), of_trial(series, trial_id))
    return text_cell(trial_id)


def error_table(runs: Runs) -> Table:
    """Every kind, for the CSV file."""
    rows = tuple(
        (
            *runs.lead(run),
            text_cell(error.role),
            text_cell(error.model),
            text_cell(error.outcome),
            text_cell("" if error.status is None else str(error.status)),
            text_cell(error.message),
            count_cell(error.attempts),
            count_cell(error.lost),
            text_cell(error.example),
        )
        for run, error in _found(runs)
    )
    names = ("role", "model", "outcome", "status", "message", "attempts", "lost", "example")
    columns = tuple(Column(name, "count" if name in ("attempts", "lost") else "text", name) for name in names)
    return Table("Failed attempts by kind.", (*runs.lead_columns(target=False), *columns), rows)
