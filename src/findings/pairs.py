"""Trials of two targets, or of two runs, paired by scenario, variant and repetition, and question by question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import fsum
from typing import NamedTuple

from ..schemas import RunPlan
from ..scoring.definitions import SCORES
from ..trials.missing import MISSING, measured_score
from ..trials.row import Row
from .estimates import ENDS, Answer, End, Question, answers_of, question_values, tallied
from .read_run import Findings

TrialKey = tuple[str, str | None, int]
"""What two trials must share to be a pair: scenario, variant and repetition."""


class ScorePair(NamedTuple):
    """Two values that are compared, and the scenario they belong to."""

    scenario_id: str
    first: float
    second: float


Planned = Callable[[TrialKey], bool]


def planned_in(plan: RunPlan, target: str) -> Planned:
    """Whether a run planned a trial of this target."""
    repeats = {
        (planned.scenario.scenario_id, planned.variant): plan.repeats_of(target, planned.name)
        for planned in plan.scenarios
    }
    return lambda one: 1 <= one[2] <= repeats.get(one[:2], 0)


def key(row: Row) -> TrialKey:
    return row.scenario_id, row.variant, row.repetition


def value(row: Row, measure: str) -> float | None:
    """A trial's score, or the share of its questions that got a code, without missing ones; None if there is none."""
    if measure in SCORES:
        return measured_score(row.outcome, measure, row.score(measure)).value
    codes = [one.value for one in row.counted if one.value != MISSING]
    return sum(code == measure for code in codes) / len(codes) if codes else None


def values_of(rows: Iterable[Row], measure: str) -> list[float]:
    return [one for row in rows if (one := value(row, measure)) is not None]


def pair(first: Iterable[Row], second: Iterable[Row], measure: str) -> list[ScorePair]:
    """Whole trials with a value on both sides: their scores, or the shares of the questions that both answered."""
    found: list[ScorePair] = []
    for mine, theirs in _matched(first, second)[0]:
        both = [
            (a.value, b.value)
            for a, b in _questions(mine, theirs, measure)
            if a.value is not None and b.value is not None
        ]
        if both:
            one, two = (fsum(values) / len(both) for values in zip(*both, strict=True))
            found.append(ScorePair(mine.scenario_id, one, two))
    return found


@dataclass(frozen=True)
class PairedQuestions:
    """Questions that were answered on both sides, each averaged over repeats and then over variants."""

    pairs: list[ScorePair]
    """One per question, or per scenario for scores of whole trials."""
    answers: int
    """Pairs of answers, or of trials, behind them."""
    one_sided: int
    """Pairs in which an answer is missing on one side."""
    neither: int
    """Pairs in which it is missing on both."""
    open: int
    """Of `answers`, pairs with open claims."""
    unmatched: int
    """Trials that the other side had not planned."""
    lowest: float | None
    highest: float | None
    """The mean difference if all missing answers had been at the ends of the scale, and all open claims had fallen for
    one side and against the other; None if there are none."""


def pair_questions(
    first: Sequence[Row], second: Sequence[Row], measure: str, planned: Planned = lambda _: False
) -> PairedQuestions:
    """`planned` says which trials both sides planned: where one side has not run one, its answers are missing there."""
    matched, alone = _matched(first, second)
    answers = [both for rows in matched for both in _questions(*rows, measure)]
    unmatched = 0
    for row, is_first in alone:
        if not planned(key(row)):
            unmatched += 1
            continue
        for answer in answers_of([row], measure):
            gone = answer._replace(value=None)
            answers.append((answer, gone) if is_first else (gone, answer))
    known = [(a, b) for a, b in answers if a.value is not None and b.value is not None]
    neither = sum(a.value is None and b.value is None for a, b in answers)
    still_open = sum(any(one.lowest is not None for one in both) for both in known)
    ends: list[float | None] = [None, None]
    if still_open or len(known) < len(answers):
        ends = [_mean_difference(answers, *at) for at in (ENDS, ENDS[::-1])]
    return PairedQuestions(
        _by_question(known), len(known), len(answers) - len(known) - neither, neither, still_open, unmatched, *ends
    )


_AnswerPair = tuple[Answer, Answer]


def _matched(first: Iterable[Row], second: Iterable[Row]) -> tuple[list[tuple[Row, Row]], list[tuple[Row, bool]]]:
    """The pairs of trials, and each trial without a partner with whether it is on the first side."""
    others = {key(row): row for row in second}
    both: list[tuple[Row, Row]] = []
    alone: list[tuple[Row, bool]] = []
    for row in first:
        other = others.pop(key(row), None)
        if other is None:
            alone.append((row, True))
        else:
            both.append((row, other))
    return both, [*alone, *((row, False) for row in others.values())]


def _questions(first: Row, second: Row, measure: str) -> Iterator[_AnswerPair]:
    """The questions that two trials have in common; a missing answer has no value."""
    theirs = {answer.question: answer for answer in answers_of([second], measure)}
    for answer in answers_of([first], measure):
        if answer.question in theirs:
            yield answer, theirs[answer.question]


def _by_question(answers: Sequence[_AnswerPair]) -> list[ScorePair]:
    firsts, seconds = (dict(question_values(tallied(both[place] for both in answers))) for place in (0, 1))
    return [ScorePair(question.scenario_id, one, seconds[question]) for question, one in firsts.items()]


def _mean_difference(answers: Sequence[_AnswerPair], first: End, second: End) -> float:
    """The mean difference if the answers of either side were at these ends of what they could be."""
    pairs = _by_question([(a._replace(value=a.at(first)), b._replace(value=b.at(second))) for a, b in answers])
    return fsum(one.first - one.second for one in pairs) / len(pairs)


@dataclass(frozen=True)
class System:
    """A target of a run."""

    rows: list[Row]
    planned: Planned


def by_system(found: Sequence[Findings]) -> dict[str, System]:
    """Every target of every run; one that is in several runs is named with its run."""
    names = [target for one in found for target in one.plan_targets]
    systems: dict[str, System] = {}
    for one in found:
        for target in one.plan_targets:
            name = target if names.count(target) == 1 else f"{target} ({one.manifest.run_id})"
            if name in systems:
                name = f"{target} ({one.folder})"
            systems[name] = System(one.of_target(target), planned_in(one.manifest.plan, target))
    return systems


def pair_systems(first: System, second: System, measure: str) -> PairedQuestions:
    return pair_questions(
        first.rows, second.rows, measure, lambda trial: first.planned(trial) and second.planned(trial)
    )


def pair_codes(first: Iterable[Row], second: Iterable[Row]) -> list[tuple[Question, str, str]]:
    """The codes of every question that both trials of a pair have, as they count in estimates."""
    return [
        (Question(mine.scenario_id, group), code, theirs[group])
        for mine, other in _matched(first, second)[0]
        for theirs in [dict(other.counted)]
        for group, code in mine.counted
        if group in theirs
    ]
