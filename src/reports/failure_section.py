"""The report's sections on what went well, on common failures, on cost and on why calls failed.

Well: questions that all targets answered fully, and the best scenarios of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ..findings.cost import UNUSABLE, CallError
from ..findings.estimates import Question, Tallies, question_values, tallied_rows
from ..findings.read_run import Findings
from ..text.rounded import percent
from . import read_sections
from .document import Cell, Line, Section, Table, linked, text_cell
from .links import of_question, of_trial
from .score_section import scored
from .series import ReportedRun, ReportedTarget, Runs
from .study_section import Counted

SHOWN = 8
"""Questions in the table of those that all targets answered fully."""
BEST = 3
"""Scenarios shown for each target."""
MOST_INCORRECT = 10
ERRORS_CSV = "errors.csv"
TOP = 10
"""Kinds that each table of the report shows; the CSV file has all."""
LONGEST = 300
"""Characters of a message that a report shows; the CSV file has more."""
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


@dataclass(frozen=True)
class _Best:
    series: ReportedTarget
    scenario_id: str
    share: float
    questions: int
    answers: int

    def title(self) -> str:
        planned = self.series.run.found.manifest.plan.scenarios
        return next((p.scenario.title for p in planned if p.scenario.scenario_id == self.scenario_id), self.scenario_id)


def failure_sections(runs: Runs, counted: Counted) -> tuple[Section, ...]:
    """What went well, and common failure modes."""
    tallies = {series: tallied_rows(series.rows, "accurate_complete") for series in runs.series}
    names = Counter(error for series in runs.series for row in series.rows for error in row.errors)
    order = sorted(names, key=lambda name: (-names[name], name))
    wrong = [one for one in counted.items() if one[1].codes["incorrect"]]
    return read_sections.sections(
        "failures",
        runs=runs,
        lead=runs.lead_columns(),
        targets=sum(map(bool, tallies.values())),
        full=list(_answered_fully(tallies)),
        most_shown=SHOWN,
        best=[one for series, given in tallies.items() for one in _best(series, given)],
        most_best=BEST,
        percent=percent,
        categories=[name.replace("_", " ") for name in order],
        failed=[_failed(series, order) for series in runs.series],
        wrong=sorted(wrong, key=lambda one: (-one[1].codes["incorrect"] / one[1].n, -one[1].codes["incorrect"])),
        most_incorrect=MOST_INCORRECT,
    )


def _answered_fully(tallies: dict[ReportedTarget, Tallies]) -> Iterator[tuple[str, str, str, int]]:
    """Questions to which every answer of every target was accurate and complete: topic, evidence, scenario, answers."""
    answered = {series: given for series, given in tallies.items() if given}
    if not answered:
        return
    first = next(iter(answered))
    full = [{one.question for one in question_values(given) if one.value == 1.0} for given in answered.values()]
    every = set.intersection(*full)
    for question in dict.fromkeys(Question(*rule) for series in tallies for rule in series.run.found.rules):
        if question in every:
            scenario_id, group = question
            rule = first.run.found.rules.get(question)
            answers = sum(tally.n for given in answered.values() for tally in given.get(question, {}).values())
            yield (rule and rule.topic) or group, of_question(first, *question), scenario_id, answers


def _best(series: ReportedTarget, tallies: Tallies) -> list[_Best]:
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


def _failed(series: ReportedTarget, order: list[str]) -> tuple[ReportedTarget, list[int], int, int, int]:
    """Trials with each kind of failure, scored trials, and those with a refusal and with a fabricated specific."""
    errors = Counter(error for row in series.rows for error in row.errors)
    refusals, fabricated = (sum(getattr(row, name) for row in series.rows) for name in ("refusal", "fabricated"))
    return series, [errors[name] for name in order], scored(series.rows), refusals, fabricated


def cost_section(runs: Runs) -> Section:
    without_usage = sum(one.without_usage for run in runs.runs for one in run.calls.spending)
    dates = ", ".join(dict.fromkeys(run.found.manifest.prices_as_of for run in runs.runs))
    return read_sections.section("cost", runs=runs, without_usage=without_usage, dates=dates)


def kind_text(error: CallError) -> str:
    return KINDS.get(error.outcome, error.outcome)


def shortened(message: str, longest: int) -> str:
    return message if len(message) <= longest else f"{message[: longest - 1].rstrip()}…"


def nothing_scored(found: Findings) -> Line:
    """That no trial of a run has a score, what became of them, and the most frequent reason."""
    top = found.errors[0] if found.errors else None
    return read_sections.line(
        "parts",
        "nothing_scored",
        trials=len(found.rows),
        became=Counter(row.outcome for row in found.rows).most_common(),
        short=SHORT_OUTCOMES,
        top=top,
        kind=kind_text(top) if top else "",
        message=shortened(top.message, LONGEST) if top else "",
    )


def error_sections(runs: Runs) -> tuple[Section, ...]:
    """Nothing if no call failed."""
    found = [(run, error, _example(runs, run, error)) for run in runs.runs for error in run.found.errors]
    lost = [(run, error, error.lost, example) for run, error, example in found if error.lost]
    again = [(run, error, error.tried_again, example) for run, error, example in found if error.tried_again]
    return read_sections.sections(
        "errors",
        runs=runs,
        found=found,
        lost=sorted(lost, key=lambda one: -one[2]),
        again=sorted(again, key=lambda one: -one[2]),
        most=TOP,
        kind_text=kind_text,
        shortened=lambda message: shortened(message, LONGEST),
    )


def _example(runs: Runs, run: ReportedRun, error: CallError) -> Cell:
    """The trial of the example, with a link to its page if it has one."""
    trial_id = error.example.partition("|")[0]
    for series in runs.series:
        if series.run is run and any(row.trial_id == trial_id for row in series.rows):
            return linked(text_cell(trial_id), of_trial(series, trial_id))
    return text_cell(trial_id)


def error_table(runs: Runs) -> Table:
    """Every kind, for the CSV file."""
    return read_sections.table("parts", "errors", runs=runs)
