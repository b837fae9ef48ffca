"""How scores and the order of systems depend on the variant of a question. Pure functions.

A mean over scenarios gives each scenario the same weight, however many trials it has. Scenarios are the independent
units.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from .agreement import quantile
from .bounded import Bounded, Unit, bounded_mean


@dataclass(frozen=True)
class WorstVariant:
    """A scenario's variant with the worst mean, and how far it is from the scenario's mean over variants."""

    scenario: str
    n: int
    """Number of trials."""
    mean: float
    variants: int
    variant: str
    worst: float
    gap: float


@dataclass(frozen=True)
class WorstCase:
    """The mean over scenarios of the worst variant mean, with an interval over scenarios."""

    worst: Bounded
    scenarios: tuple[WorstVariant, ...]


def worst_case(values: Sequence[tuple[str, str, float]], *, less_is_better: bool = False) -> WorstCase:
    """Each value is (scenario, variant, score in [0, 1]); of variants that tie, the first by name is given.

    The worst of several noisy means tends to be worse than the worst true mean. Read it as an observation, and its
    interval as that of a variant chosen in advance.
    """
    sign = -1 if less_is_better else 1
    found: dict[str, dict[str, list[float]]] = {}
    for scenario, variant, value in values:
        found.setdefault(scenario, {}).setdefault(variant, []).append(value)
    scenarios = []
    for scenario, variants in found.items():
        means = {variant: _mean(scores) for variant, scores in variants.items()}
        variant = min(means, key=lambda name: (sign * means[name], name))
        mean, n = _mean(list(means.values())), sum(map(len, variants.values()))
        scenarios.append(
            WorstVariant(scenario, n, mean, len(variants), variant, means[variant], abs(mean - means[variant]))
        )
    return WorstCase(bounded_mean([Unit(one.worst) for one in scenarios]), tuple(scenarios))


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


@dataclass(frozen=True)
class RankChange:
    """The order of systems with one variant, compared with the order with the other variants."""

    variant: str
    n: int
    """Number of systems that have trials with this variant and with another."""
    tau: float | None
    """Kendall's tau-b of the two sets of means; None with fewer than 2 systems, or if all tie on one side."""
    low: float | None
    high: float | None
    swapped: tuple[tuple[str, str], ...]
    """Pairs of systems in the opposite order with this variant, without a tie in either order."""


Scores = Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]
"""System to variant to scenario to scores."""


def variant_means(scores: Scores) -> dict[str, dict[str, float]]:
    """System to variant to the mean over scenarios of each scenario's mean."""
    return {
        system: {variant: _mean([_mean(one) for one in found.values()]) for variant, found in variants.items() if found}
        for system, variants in scores.items()
    }


def rank_changes(
    scores: Scores, *, seed: int, resamples: int = 1_000, confidence: float = 0.95
) -> tuple[RankChange, ...]:
    """A system's score with a variant is the mean over scenarios; with the other variants, the mean of their scores.

    The interval is a percentile interval from resampling whole scenarios, the same ones for all systems. Resampling
    adds noise to both orders, so the interval is biased toward 0. It is None with fewer than 3 scenarios, if a
    resample has no tau, or if its ends are equal.
    """
    variants = list(dict.fromkeys(variant for found in scores.values() for variant in found))
    cells = {
        (system, variant): {scenario: _mean(values) for scenario, values in found.items() if values}
        for system, mine in scores.items()
        for variant, found in mine.items()
    }
    scenarios = sorted({scenario for means in cells.values() for scenario in means})
    points = _taus(cells, variants, scenarios)
    draws: dict[str, list[float | None]] = {variant: [] for variant in variants}
    draw = random.Random(seed)  # noqa: S311 - for resampling, not for secrets
    for _ in range(resamples if len(scenarios) > 2 and len(variants) > 1 else 0):
        again = _taus(cells, variants, draw.choices(scenarios, k=len(scenarios)))
        for variant in variants:
            draws[variant].append(again[variant].tau)
    tail = (1 - confidence) / 2
    changes = []
    for variant in variants:
        point = points[variant]
        ordered = sorted(one for one in draws[variant] if one is not None)
        known = point.tau is not None and ordered and len(ordered) == len(draws[variant])
        low, high = (quantile(ordered, tail), quantile(ordered, 1 - tail)) if known else (None, None)
        if low == high:  # the percentiles would seem to say that nothing is uncertain
            low = high = None
        changes.append(replace(point, low=low, high=high))
    return tuple(changes)


def _taus(
    cells: Mapping[tuple[str, str], Mapping[str, float]], variants: Sequence[str], scenarios: Sequence[str]
) -> dict[str, RankChange]:
    """The taus, without intervals, in these scenarios, of which some may occur several times."""
    means = {}
    for cell, by_scenario in cells.items():
        values = [by_scenario[scenario] for scenario in scenarios if scenario in by_scenario]
        if values:
            means[cell] = round(_mean(values), 12)
    systems = list(dict.fromkeys(system for system, _ in cells))
    found: dict[str, RankChange] = {}
    for variant in variants:
        here, there, named = [], [], []
        for system in systems:
            others = [means[system, other] for other in variants if other != variant and (system, other) in means]
            if (system, variant) in means and others:
                named.append(system)
                here.append(means[system, variant])
                there.append(round(_mean(others), 12))
        swapped = tuple(
            (named[i], named[j])
            for i, j in combinations(range(len(named)), 2)
            if (here[i] - here[j]) * (there[i] - there[j]) < 0
        )
        found[variant] = RankChange(variant, len(named), kendall_tau(here, there), None, None, swapped)
    return found


def kendall_tau(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Tau-b: concordant minus discordant pairs, divided by the root of the product of the untied pairs on each side."""
    score = left = right = 0
    for i, j in combinations(range(len(first)), 2):
        a = (first[i] > first[j]) - (first[i] < first[j])
        b = (second[i] > second[j]) - (second[i] < second[j])
        score, left, right = score + a * b, left + abs(a), right + abs(b)
    return score / math.sqrt(left * right) if left and right else None
