"""A share that judges gave, corrected by people's labels on a part of the answers. Pure functions.

All answers have a judge's value. People labeled all answers of some strata (the flagged trials) and a simple random
sample of trials of the others. The estimate is the judges' share plus, for each stratum, its weight times the mean
difference between people's and judges' values of the answers that people labeled. This is the stratified difference
estimator, also known as prediction-powered inference. It is right however wrong the judges are; the better they are,
the more precise it is.

It estimates what people would say of answers to scenarios like these, so scenarios are the independent units, as for
the judges' own interval. For its variance, every answer has the judges' value plus the mean difference of its stratum,
and every labeled answer also its residual, times the number of answers that it represents. The sums by scenario then
carry both the choice of scenarios and the choice of labeled trials (CR2). Few labels may show hardly any difference by
chance; the variance of a mean difference is taken as at least `UNSEEN` / (labeled trials * labeled answers). Limits are
those of a proportion with the effective n, as in `bounded`. docs/review_coverage.md has how often they hold.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from .bounded import Unit, bounded_with_error

LEAST_TRIALS = 12
"""Labeled trials of a stratum that is not labeled in full. With fewer, there is no estimate."""
LEAST_SCENARIOS = 8
"""Of which the labeled trials must be."""
UNSEEN = 0.25
"""Differences that are taken to have been seen where fewer were; see above. All three were chosen by simulation."""


@dataclass(frozen=True)
class JudgedAnswer:
    """One answer: what judges said of it, and people, if they were asked."""

    scenario: Hashable
    trial: Hashable
    stratum: Hashable
    judged: float
    labeled: float | None
    weight: float = 1.0


@dataclass(frozen=True)
class StratumLabels:
    """What people labeled of one stratum."""

    trials: int
    labeled: int
    scenarios: int
    """Of the labeled trials."""
    difference: float | None
    """Mean of people's minus judges' values over labeled answers."""


@dataclass(frozen=True)
class CorrectedByPeople:
    judged: float | None
    """The judges' share of the same answers."""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    scenarios: int = 0
    strata: dict[Hashable, StratumLabels] | None = None
    why_not: str | None = None
    """Why there is no estimate, or no interval; None if there are both."""


def corrected_by_people(answers: Sequence[JudgedAnswer]) -> CorrectedByPeople:
    """The share that people would have given, with its 95% interval."""
    total = math.fsum(one.weight for one in answers)
    if not total:
        return CorrectedByPeople(None, why_not="no answer was coded")
    judged = math.fsum(one.weight * one.judged for one in answers) / total
    names = dict.fromkeys(one.stratum for one in answers)
    strata = {name: _Stratum([one for one in answers if one.stratum == name]) for name in names}
    known = {name: stratum.labels for name, stratum in strata.items()}
    scenarios = len({one.scenario for one in answers})
    for stratum in strata.values():
        if why_not := _too_few(stratum.labels):
            return CorrectedByPeople(judged, None, None, None, scenarios, known, why_not)
    sums: dict[Hashable, float] = {}
    weights: dict[Hashable, float] = {}
    for one in answers:
        stratum = strata[one.stratum]
        assert stratum.labels.difference is not None
        value = one.judged + stratum.labels.difference
        if one.labeled is not None:
            value += stratum.expansion * (one.labeled - value)
        sums[one.scenario] = sums.get(one.scenario, 0.0) + one.weight * value
        weights[one.scenario] = weights.get(one.scenario, 0.0) + one.weight
    units = [Unit(sums[name] / weights[name], weights[name]) for name in sums if weights[name]]
    unseen = math.fsum(stratum.unseen * (stratum.weight / total) ** 2 for stratum in strata.values())
    found = bounded_with_error(units, unseen)
    share = None if found.value is None else min(1.0, max(0.0, found.value))
    no_interval = None if found.low is not None else f"too few scenarios: {found.units}"
    return CorrectedByPeople(judged, share, found.low, found.high, scenarios, known, no_interval)


def _too_few(labels: StratumLabels) -> str | None:
    if labels.labeled == labels.trials and labels.difference is not None:
        return None
    if labels.labeled < LEAST_TRIALS:
        return f"too few labeled trials: {labels.labeled} of {labels.trials}, and {LEAST_TRIALS} are needed"
    if labels.scenarios < LEAST_SCENARIOS:
        return f"too few labeled trials: they are of {labels.scenarios} scenarios, and {LEAST_SCENARIOS} are needed"
    return None


class _Stratum:
    """The answers of one stratum, of which some or all are labeled."""

    def __init__(self, answers: Sequence[JudgedAnswer]) -> None:
        labeled = [one for one in answers if one.labeled is not None]
        trials = {one.trial for one in answers}
        with_label = {one.trial for one in labeled}
        self.weight = math.fsum(one.weight for one in answers)
        mine = math.fsum(one.weight for one in labeled)
        self.expansion = self.weight / mine if mine else 0.0
        """Answers that a labeled one represents."""
        differences = math.fsum(one.weight * (one.labeled - one.judged) for one in labeled if one.labeled is not None)
        self.labels = StratumLabels(
            len(trials), len(with_label), len({one.scenario for one in labeled}), differences / mine if mine else None
        )
        left = 1 - len(with_label) / len(trials)
        self.unseen = 0.0
        """Variance of the mean difference that the sample does not show, because it happens to have few differences."""
        if labeled and left:
            seen = _variance_of_mean(labeled, mine)
            self.unseen = left * max(0.0, UNSEEN / (len(with_label) * len(labeled)) - seen)


def _variance_of_mean(labeled: Sequence[JudgedAnswer], weight: float) -> float:
    """Of the mean difference, over trials that were drawn independently."""
    differences = [(one, (one.labeled or 0.0) - one.judged) for one in labeled]
    mean = math.fsum(one.weight * difference for one, difference in differences) / weight
    by_trial: dict[Hashable, float] = {}
    for one, difference in differences:
        by_trial[one.trial] = by_trial.get(one.trial, 0.0) + one.weight * (difference - mean)
    n = len(by_trial)
    return n / (n - 1) * math.fsum(part * part for part in by_trial.values()) / weight**2 if n > 1 else 0.0
