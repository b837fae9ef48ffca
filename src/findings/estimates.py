"""Estimates with intervals from the trials of one target.

Answers to one question are first averaged over repeats, then over variants, so neither adds to n. Every different
question then has the same weight. A number about questions in general takes scenarios as the independent units. A
number about certain questions, such as a question group of the published study, takes the questions as fixed and the
scripts (a scenario with one of its variants) as the units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Literal, NamedTuple

from ..scoring.definitions import SCORES
from ..stats import clustered
from ..stats.bounded import LEAST_IN_STRATA, LEAST_UNITS, Bounded, Stratum, bounded_by_cluster, stratified_mean
from ..text.count import counted
from ..trials.missing import MISSING, measured_score
from ..trials.row import NO_CLAIMS, ClaimCount, Row

UnitKind = Literal["scenario", "script"]
End = Literal["lowest", "highest"]
ENDS: tuple[End, End] = ("lowest", "highest")


class Question(NamedTuple):
    """A question of a scenario; for a score of whole trials, the group is empty."""

    scenario_id: str
    group: str


class Answer(NamedTuple):
    question: Question
    variant: str
    value: float | None
    """None if it is missing."""
    lowest: float | None = None
    highest: float | None = None
    """What it could be, if claims of the trial are open."""

    def at(self, end: End) -> float:
        """The value at one end of what it could be; a missing one could be anything."""
        if self.value is None:
            return float(end == "highest")
        found = self.lowest if end == "lowest" else self.highest
        return self.value if found is None else found


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
    """The value if all missing answers had been 0, or 1, and all open claims had fallen so. None if there are none."""
    why_no_interval: str | None = None
    open: int = 0
    """Of `answers`, trials with open claims."""
    claims: ClaimsBehind | None = None
    """For scores of trials: the claims of those that count."""


@dataclass(frozen=True)
class ClaimsBehind:
    """Claims that judges were given."""

    judged: int
    open: int
    """Of these, without a final label."""


def answers_of(rows: Iterable[Row], measure: str) -> list[Answer]:
    """What every trial adds to a measure: one answer per question, or one score."""
    found: list[Answer] = []
    for row in rows:
        variant = row.variant or ""
        if measure in SCORES:
            score = measured_score(row.outcome, measure, row.score(measure), undecided=row.undecided(measure))
            if score.missing or score.value is not None:
                found.append(Answer(Question(row.scenario_id, ""), variant, score.value, *_ends(row, measure)))
            continue
        for group, code in row.counted:
            value = None if code == MISSING else float(code == measure)
            found.append(Answer(Question(row.scenario_id, group), variant, value))
    return found


def _ends(row: Row, measure: str) -> tuple[float | None, float | None]:
    if row.ends is None:
        return None, None
    place = SCORES.index(measure)
    return row.ends.lowest[place], row.ends.highest[place]


@dataclass(slots=True)
class AnswerCount:
    """The answers to one question in one variant."""

    total: float = 0.0
    n: int = 0
    missing: int = 0
    open: int = 0
    """Of `n`, those that open claims could move."""
    lowest: float = 0.0
    highest: float = 0.0
    """The total, with all answers at that end."""

    def add(self, answer: Answer, n: int = 1) -> None:
        if answer.value is None:
            self.missing += n
        else:
            self.total += n * answer.value
            self.n += n
            self.open += n * (answer.lowest is not None)
        self.lowest += n * answer.at("lowest")
        self.highest += n * answer.at("highest")

    def mean(self, end: End | None = None) -> float | None:
        """The mean over repeats, without missing answers; or with all at one end of what they could be."""
        if end is None:
            return self.total / self.n if self.n else None
        return (self.lowest if end == "lowest" else self.highest) / (self.n + self.missing)


Tallies = dict[Question, dict[str, AnswerCount]]
"""By question and variant."""


def tallied(answers: Iterable[Answer]) -> Tallies:
    found: Tallies = {}
    for answer in answers:
        found.setdefault(answer.question, {}).setdefault(answer.variant, AnswerCount()).add(answer)
    return found


def tallied_rows(rows: Iterable[Row], measure: str) -> Tallies:
    """The same as `tallied(answers_of(rows, measure))`, for many rows: trials with the same codes are counted first."""
    return _tallied_scores(rows, measure) if measure in SCORES else _tallied_codes(rows, measure)


def _tallied_codes(rows: Iterable[Row], code: str) -> Tallies:
    found: Tallies = {}
    alike = Counter([(row.scenario_id, row.variant, row.counted) for row in rows])
    for (scenario_id, variant, coded), n in alike.items():
        for group, given in coded:
            question = Question(scenario_id, group)
            tally = found.setdefault(question, {}).setdefault(variant or "", AnswerCount())
            tally.add(Answer(question, variant or "", None if given == MISSING else float(given == code)), n)
    return found


def _tallied_scores(rows: Iterable[Row], name: str) -> Tallies:
    found: Tallies = {}
    place = SCORES.index(name)
    alike = Counter(
        [
            (row.scenario_id, row.variant, row.outcome, row.scores[place], row.undecided(name), *_ends(row, name))
            for row in rows
        ]
    )
    for (scenario_id, variant, outcome, value, undecided, *ends), n in alike.items():
        measured = measured_score(outcome, name, value, undecided=undecided)
        if measured.missing or measured.value is not None:
            question = Question(scenario_id, "")
            tally = found.setdefault(question, {}).setdefault(variant or "", AnswerCount())
            tally.add(Answer(question, variant or "", measured.value, *ends), n)
    return found


def question_values(tallies: Tallies, end: End | None = None) -> list[QuestionValue]:
    """One value per question: the mean over variants of the mean over repeats.

    Missing answers are left out; or all answers are at one end of what they could be.
    """
    found = []
    for question, variants in tallies.items():
        means = [mean for tally in variants.values() if (mean := tally.mean(end)) is not None]
        if means:
            found.append(QuestionValue(question, _mean(means)))
    return found


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def estimate(rows: Iterable[Row], measure: str) -> Estimated:
    """A measure over all questions, by scenario."""
    listed = list(rows)
    tallies = tallied_rows(listed, measure)
    by_question = question_values(tallies)
    found = bounded_by_cluster((one.question.scenario_id, one.value) for one in by_question)
    claims = claims_behind(row for row in listed if row.score(measure) is not None) if measure in SCORES else None
    return replace(_estimated(found, "scenario", tallies, most=len(by_question)), claims=claims)


def claims_behind(rows: Iterable[Row]) -> ClaimsBehind:
    counts = [(row.judged, row.unresolved) for row in rows]
    return ClaimsBehind(sum(judged for judged, _ in counts), sum(still_open for _, still_open in counts))


def estimate_shares(values: Iterable[tuple[str, float]]) -> Estimated:
    """A share of things that have a scenario, such as the citations of replies: by scenario, each with weight one."""
    listed = list(values)
    found = bounded_by_cluster(listed)
    effective = None if found.effective is None else min(found.effective, float(len(listed)))
    return Estimated(
        found.value,
        found.low,
        found.high,
        found.units,
        "scenario",
        len(listed),
        len(listed),
        0,
        effective,
        why_no_interval=_why_no_interval(found, "scenario"),
    )


def estimate_groups(
    rows: Iterable[Row], measure: str, wanted: Container[tuple[str, str]], confidence: float = 0.95
) -> Estimated:
    """A measure over certain (scenario, group) questions, by script."""
    return estimate_questions(tallied_rows(rows, measure), wanted, confidence)


def estimate_questions(tallies: Tallies, wanted: Container[tuple[str, str]], confidence: float = 0.95) -> Estimated:
    """The same from answers that were tallied before, for many estimates from one run."""
    mine = {question: variants for question, variants in tallies.items() if question in wanted}
    found = stratified_mean(_strata(mine), confidence=confidence)
    scripts = sum(tally.n > 0 for variants in mine.values() for tally in variants.values())
    return _estimated(found, "script", mine, most=scripts)


def _strata(tallies: Tallies) -> list[Stratum]:
    """One stratum per scenario: the mean of each script over the questions, weighted by the number of questions.

    Where a script lacks an answer, the question's mean over the other scripts takes its place, so that a script that
    failed after an easy question is not taken for a good one. A script without any answer is left out.
    """
    asked: dict[str, list[dict[str, float]]] = {}
    for question, variants in tallies.items():
        means = {variant: mean for variant, tally in variants.items() if (mean := tally.mean()) is not None}
        if means:
            asked.setdefault(question.scenario_id, []).append(means)
    strata = []
    for questions in asked.values():
        scripts = dict.fromkeys(variant for means in questions for variant in means)
        others = [_mean(list(means.values())) for means in questions]
        values = [
            _mean([means.get(script, other) for means, other in zip(questions, others, strict=True)])
            for script in scripts
        ]
        strata.append(Stratum(tuple(values), float(len(questions))))
    return strata


def _estimated(found: Bounded, unit: UnitKind, tallies: Tallies, *, most: int) -> Estimated:
    """`most` is the highest effective n that is printed."""
    every = [tally for variants in tallies.values() for tally in variants.values()]
    missing, still_open = sum(tally.missing for tally in every), sum(tally.open for tally in every)
    lowest, highest = (
        _mean([one.value for one in question_values(tallies, end)]) if missing or still_open else None for end in ENDS
    )
    return Estimated(
        found.value,
        found.low,
        found.high,
        found.units,
        unit,
        len(question_values(tallies)),
        sum(tally.n for tally in every),
        missing,
        None if found.effective is None else min(found.effective, float(most)),
        lowest,
        highest,
        _why_no_interval(found, unit),
        still_open,
    )


def _why_no_interval(found: Bounded, unit: UnitKind) -> str | None:
    if found.value is None or found.low is not None:
        return None
    if unit == "scenario":
        return f"{counted(found.units, unit)}: {LEAST_UNITS} are needed for an interval"
    return f"one script in a scenario: {LEAST_IN_STRATA} are needed for an interval"


def key_coverage(rows: Iterable[Row]) -> clustered.ClusteredShare:
    """Key coverage over the scored trials among these; scenarios are the independent units."""
    clusters: dict[str, ClaimCount] = {}
    alike = Counter([(row.scenario_id, row.claims) for row in rows if row.outcome == "scored"])
    for (scenario_id, claims), n in alike.items():
        before = clusters.get(scenario_id, NO_CLAIMS)
        clusters[scenario_id] = ClaimCount(before.decided + n * claims.decided, before.factual + n * claims.factual)
    return clustered.share_by_unit([clustered.ClusterCount(*counts) for counts in clusters.values()])


def group_coverage(trials: Counter[ClaimCount]) -> clustered.ClusteredShare:
    """Of one question group of one scenario, so without an interval."""
    decided, factual = (sum(counts[place] * n for counts, n in trials.items()) for place in (0, 1))
    return clustered.share_by_unit([clustered.ClusterCount(decided, factual)])
