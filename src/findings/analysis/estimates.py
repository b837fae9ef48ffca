"""Estimates with intervals from the trials of one target.

Answers to one question are first averaged over repeats, then over variants, so neither adds to n. Every different
question then has the same weight. A number about questions in general takes scenarios as the independent units. A
number about certain questions, such as a question group of the published study, takes the questions as fixed and the
scripts (a scenario with one of its variants) as the units.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal, NamedTuple

from ...stats.bounded import LEAST_IN_STRATA, LEAST_UNITS, Bounded, Stratum, bounded_by_cluster, stratified_mean
from ...text.count import counted
from .missing import MISSING, measured_score
from .trial_row import SCORES, Row

UnitKind = Literal["scenario", "script"]


class Question(NamedTuple):
    """A question of a scenario; for a score of whole trials, the group is empty."""

    scenario_id: str
    group: str


class Answer(NamedTuple):
    question: Question
    variant: str
    value: float | None
    """None if it is missing."""


class QuestionValue(NamedTuple):
    question: Question
    value: float


@dataclass(frozen=True)
class Estimated:
    """A mean of values in [0, 1] with its 95% interval, and what is behind it."""

    value: float | None
    low: float | None
    high: float | None
    units: int
    """Scenarios, or scripts, that are the independent units."""
    unit: UnitKind
    questions: int
    """Different questions; for scores of trials, scenarios."""
    answers: int
    """Answers, or trials, that count."""
    missing: int
    """Answers, or trials, that are missing."""
    effective: float | None
    """How many independent answers would tell as much. Never more than there are questions, or questions in scripts."""
    lowest: float | None = None
    highest: float | None = None
    """The value if all missing answers had been 0, or 1. None if none is missing."""
    why_no_interval: str | None = None


def answers_of(rows: Iterable[Row], measure: str) -> list[Answer]:
    """What every trial adds to a measure: one answer per question, or one score."""
    found: list[Answer] = []
    for row in rows:
        variant = row.variant or ""
        if measure in SCORES:
            score = measured_score(row.outcome, measure, row.score(measure))
            if score.missing or score.value is not None:
                found.append(Answer(Question(row.scenario_id, ""), variant, score.value))
            continue
        for group, code in row.counted:
            value = None if code == MISSING else float(code == measure)
            found.append(Answer(Question(row.scenario_id, group), variant, value))
    return found


def question_values(answers: Iterable[Answer]) -> list[QuestionValue]:
    """One value per question: the mean over variants of the mean over repeats. Missing answers are left out."""
    return [QuestionValue(name, _mean(list(variants.values()))) for name, variants in _by_variant(answers).items()]


def _by_variant(answers: Iterable[Answer]) -> dict[Question, dict[str, float]]:
    listed: dict[Question, dict[str, list[float]]] = {}
    for question, variant, value in answers:
        if value is not None:
            listed.setdefault(question, {}).setdefault(variant, []).append(value)
    return {
        question: {variant: _mean(values) for variant, values in variants.items()}
        for question, variants in listed.items()
    }


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def estimate(rows: Iterable[Row], measure: str) -> Estimated:
    """A measure over all questions, by scenario."""
    answers = answers_of(rows, measure)
    by_question = question_values(answers)
    found = bounded_by_cluster((one.question.scenario_id, one.value) for one in by_question)
    return _estimated(found, "scenario", len(by_question), len(by_question), answers)


def estimate_groups(
    rows: Iterable[Row], measure: str, wanted: Container[tuple[str, str]], confidence: float = 0.95
) -> Estimated:
    """A measure over certain (scenario, group) questions, by script."""
    answers = [one for one in answers_of(rows, measure) if one.question in wanted]
    by_variant = _by_variant(answers)
    most = sum(map(len, by_variant.values()))
    return _estimated(
        stratified_mean(_strata(by_variant), confidence=confidence), "script", len(by_variant), most, answers
    )


def _strata(by_variant: Mapping[Question, Mapping[str, float]]) -> list[Stratum]:
    """One stratum per scenario: the mean of each script over the questions, weighted by the number of questions.

    Scripts that lack some question count with what they have.
    """
    scripts: dict[str, dict[str, list[float]]] = {}
    questions: dict[str, int] = {}
    for question, variants in by_variant.items():
        questions[question.scenario_id] = questions.get(question.scenario_id, 0) + 1
        for variant, value in variants.items():
            scripts.setdefault(question.scenario_id, {}).setdefault(variant, []).append(value)
    return [
        Stratum(tuple(_mean(values) for values in variants.values()), float(questions[scenario_id]))
        for scenario_id, variants in scripts.items()
    ]


def _estimated(found: Bounded, unit: UnitKind, questions: int, most: int, answers: Sequence[Answer]) -> Estimated:
    missing = sum(one.value is None for one in answers)
    lowest = highest = None
    if missing:
        ends = [
            _mean([one.value for one in question_values(_filled(answers, end))]) if answers else None
            for end in (0.0, 1.0)
        ]
        lowest, highest = ends
    return Estimated(
        found.value,
        found.low,
        found.high,
        found.units,
        unit,
        questions,
        len(answers) - missing,
        missing,
        None if found.effective is None else min(found.effective, float(most)),
        lowest,
        highest,
        _why_no_interval(found, unit),
    )


def _filled(answers: Iterable[Answer], end: float) -> list[Answer]:
    """The answers, with every missing one at an end of the scale."""
    return [one if one.value is not None else one._replace(value=end) for one in answers]


def _why_no_interval(found: Bounded, unit: UnitKind) -> str | None:
    if found.value is None or found.low is not None:
        return None
    if unit == "scenario":
        return f"{counted(found.units, unit)}: {LEAST_UNITS} are needed for an interval"
    return f"one script in a scenario: {LEAST_IN_STRATA} are needed for an interval"
