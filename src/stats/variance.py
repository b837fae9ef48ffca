"""Where the variation of scores comes from. Pure functions.

Components of variance by Henderson's method 1. For each random factor, for the observations and for the total, the
uncorrected sum of squares T = sum over groups of (sum of group)**2 / (size of group) is set equal to its expectation,
which is linear in the components; the equations are then solved. The method assumes neither balance nor normality, only
that all effects are independent with mean 0 and, within a factor, equal variance. For balanced data, these are the
ANOVA estimates. A negative estimate is set to 0 and flagged.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from .agreement import quantile
from .comparison import ROUNDING, jackknife_interval
from .confusion import solve
from .intervals import Estimate, mean_interval

RESIDUAL = "residual"


@dataclass(frozen=True)
class Component:
    """One source of variance. Low and high: jackknife t interval over the groups of the first factor, clipped at 0.

    It needs 3 such groups and is rough: in simulations of nested components with normal effects and 5 to 20 outermost
    groups, 84 to 89% of the 95% intervals covered the outermost component, and 90 to 95% the others.
    """

    name: str
    groups: int
    """Number of groups of the factor; for the residual, number of observations."""
    variance: float | None
    low: float | None
    high: float | None
    share: float | None
    """Share of the sum of all components after clipping; None if the sum is 0."""
    share_low: float | None
    share_high: float | None
    negative: bool
    """The estimate was below 0 and was set to 0."""


@dataclass(frozen=True)
class Components:
    n: int
    total: float | None
    parts: tuple[Component, ...]
    """In the order of the factors, the residual last.

    A factor's variance is None if it has a single group, or the same groups as an earlier factor (whose variance then
    includes both). All are None if the data cannot separate them.
    """
    merged: tuple[str, ...]
    """Inner levels with one value per group: they cannot be separated from the residual and are counted in it."""

    def part(self, name: str) -> Component:
        return next(part for part in self.parts if part.name == name)


_Factor = Sequence[Hashable]
"""The group of each observation."""


def nested(
    values: Sequence[tuple[Sequence[str], float]],
    levels: Sequence[str] = ("scenario", "variant", "repeat"),
    confidence: float = 0.95,
) -> Components:
    """Components of nested random effects; each value has a path with one name per level, outermost first.

    A name is unique only within its parents. Intervals leave out one group of the outermost level at a time, so they
    are about other such groups.
    """
    for path, _ in values:
        if len(path) != len(levels):
            raise ValueError(f"the path {tuple(path)} does not have one name for each of {tuple(levels)}")
    names = list(levels)
    while len(names) > 1 and len({tuple(path[: len(names)]) for path, _ in values}) == len(values):
        names.pop()
    factors = [[tuple(path[: depth + 1]) for path, _ in values] for depth in range(len(names))]
    return _components(names, factors, [value for _, value in values], tuple(levels[len(names) :]), confidence)


def crossed(
    values: Mapping[tuple[str, str], float],
    names: tuple[str, str] = ("trial", "judge"),
    confidence: float = 0.95,
) -> Components:
    """Components of two crossed random factors with one value per (row, column); cells may be missing.

    The interaction of row and column cannot be separated from the residual and is counted in it. If no cell is missing,
    the row's share is the intraclass correlation ICC(2,1), the reliability of one column's value (unless something was
    clipped). Intervals leave out one row at a time, so they are about other rows with the same columns, and the
    columns' component has no interval.
    """
    rows, columns = [row for row, _ in values], [column for _, column in values]
    found = _components(list(names), [rows, columns], list(values.values()), (), confidence)
    parts = tuple(
        Component(p.name, p.groups, p.variance, None, None, p.share, None, None, p.negative)
        if p.name == names[1]
        else p
        for p in found.parts
    )
    return Components(found.n, found.total, parts, found.merged)


def _components(
    names: Sequence[str],
    factors: Sequence[_Factor],
    values: Sequence[float],
    merged: tuple[str, ...],
    confidence: float,
) -> Components:
    raw = _henderson(factors, values)
    variances, shares = _clipped(raw)
    outer = list(dict.fromkeys(factors[0]))
    left_out = []
    for group in outer if len(outer) > 2 else ():
        kept = [at for at, name in enumerate(factors[0]) if name != group]
        left_out.append(_henderson([[factor[at] for at in kept] for factor in factors], [values[at] for at in kept]))
    parts = []
    for at, name in enumerate((*names, RESIDUAL)):
        # The interval is of the unclipped estimate: clipped ones would understate the spread.
        value = raw[at]
        interval = jackknife_interval(value, [one[at] for one in left_out], confidence)
        share = jackknife_interval(shares[at], [_clipped(one)[1][at] for one in left_out], confidence)
        parts.append(
            Component(
                name,
                len(set(factors[at])) if at < len(factors) else len(values),
                variances[at],
                None if interval.low is None else max(0.0, interval.low),
                None if interval.high is None else max(0.0, interval.high),
                shares[at],
                None if share.low is None else max(0.0, share.low),
                None if share.high is None else min(1.0, share.high),
                value is not None and value < 0,
            )
        )
    total = None if raw[-1] is None else math.fsum(v for v in variances if v is not None)
    return Components(len(values), total, tuple(parts), merged)


def _clipped(raw: Sequence[float | None]) -> tuple[list[float | None], list[float | None]]:
    """Components clipped at 0, and their shares."""
    variances = [None if value is None else max(0.0, value) for value in raw]
    total = math.fsum(value for value in variances if value is not None)
    return variances, [value / total if total and value is not None else None for value in variances]


def _henderson(factors: Sequence[_Factor], values: Sequence[float]) -> list[float | None]:
    """The unclipped components, the residual last."""
    n = len(values)
    found: list[float | None] = [None] * (len(factors) + 1)
    if n < 2:
        return found
    apart = [at for at in range(len(factors)) if _separates(factors[at], factors[:at])]
    separate = [factors[at] for at in apart]
    mean = math.fsum(values) / n
    centered = [value - mean for value in values]  # Keeps the sums below small; nothing else changes.
    everything: _Factor = [None] * n
    each: _Factor = range(n)
    base = _expected(everything, separate)
    table, wanted = [], []
    for factor in (*separate, each):
        row = _expected(factor, separate)
        table.append([(a - b) / n for a, b in zip(row, base, strict=True)])
        wanted.append((_squares(factor, centered) - _squares(everything, centered)) / n)
    solved = solve(table, wanted)
    if solved is not None:
        rounding = ROUNDING * max(abs(value) for value in values) ** 2
        for at, value in zip((*apart, len(factors)), solved, strict=True):
            found[at] = 0.0 if abs(value) <= rounding else value
    return found


def _separates(factor: _Factor, before: Sequence[_Factor]) -> bool:
    """Whether a factor has several groups, and not the same groups as an earlier factor."""
    groups = len(set(factor))
    same = any(len(set(other)) == groups == len(set(zip(factor, other, strict=True))) for other in before)
    return groups > 1 and not same


def _squares(factor: _Factor, values: Sequence[float]) -> float:
    sums: dict[Hashable, list[float]] = {}
    for group, value in zip(factor, values, strict=True):
        sums.setdefault(group, []).append(value)
    return math.fsum(math.fsum(part) ** 2 / len(part) for part in sums.values())


def _expected(factor: _Factor, factors: Sequence[_Factor]) -> list[float]:
    """The coefficient of each component, the residual last, in the expectation of a factor's T.

    For a random factor: the sum of n(g and h)**2 / n(g) over groups g of this factor and h of the other.
    """
    sizes = Counter(factor)
    found = []
    for other in factors:
        both = Counter(zip(factor, other, strict=True))
        found.append(math.fsum(count * count / sizes[group] for (group, _), count in both.items()))
    return [*found, float(len(sizes))]


@dataclass(frozen=True)
class WorstVariant:
    """A scenario's variant with the lowest mean, and how far it is below the mean of the scenario's trials."""

    scenario: str
    n: int
    mean: float
    variants: int
    variant: str
    worst: Estimate
    gap: float


@dataclass(frozen=True)
class WorstCase:
    """The mean over scenarios of the lowest variant mean, with a t interval over scenarios."""

    worst: Estimate
    scenarios: tuple[WorstVariant, ...]


def worst_case(values: Sequence[tuple[str, str, float]]) -> WorstCase:
    """Each value is (scenario, variant, score in [0, 1]); of variants that tie, the first by name is given.

    The lowest of several noisy means tends to be below the lowest true mean. Read it as an observation, and its
    interval as that of a variant chosen in advance.
    """
    found: dict[str, dict[str, list[float]]] = {}
    for scenario, variant, value in values:
        found.setdefault(scenario, {}).setdefault(variant, []).append(value)
    scenarios = []
    for scenario, variants in found.items():
        means = {variant: math.fsum(scores) / len(scores) for variant, scores in variants.items()}
        variant = min(means, key=lambda name: (means[name], name))
        everything = [score for scores in variants.values() for score in scores]
        mean = math.fsum(everything) / len(everything)
        worst = mean_interval(variants[variant])
        scenarios.append(
            WorstVariant(scenario, len(everything), mean, len(variants), variant, worst, mean - means[variant])
        )
    return WorstCase(
        mean_interval([one.worst.mean for one in scenarios if one.worst.mean is not None]), tuple(scenarios)
    )


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


def rank_changes(
    scores: Mapping[str, Mapping[str, Sequence[float]]], *, seed: int, resamples: int = 1_000, confidence: float = 0.95
) -> tuple[RankChange, ...]:
    """Scores by system and variant. A system's score with the other variants is the mean of their means.

    The interval is a percentile interval from resampling each cell's trials, which are treated as independent.
    Resampling adds noise to both orders, so the interval is biased toward 0. It is None if no cell has 2 trials, or if
    a resample has no tau.
    """
    variants = list(dict.fromkeys(variant for found in scores.values() for variant in found))
    cells = {(s, v): list(values) for s, found in scores.items() for v, values in found.items() if values}
    points = _taus(cells, variants)
    draws: dict[str, list[float | None]] = {variant: [] for variant in variants}
    draw = random.Random(seed)  # noqa: S311 - for resampling, not for secrets
    for _ in range(resamples if any(len(values) > 1 for values in cells.values()) else 0):
        again = _taus({cell: draw.choices(values, k=len(values)) for cell, values in cells.items()}, variants)
        for variant in variants:
            draws[variant].append(again[variant][1])
    tail = (1 - confidence) / 2
    changes = []
    for variant in variants:
        n, tau, swapped = points[variant]
        ordered = sorted(one for one in draws[variant] if one is not None)
        known = tau is not None and ordered and len(ordered) == len(draws[variant])
        low, high = (quantile(ordered, tail), quantile(ordered, 1 - tail)) if known else (None, None)
        changes.append(RankChange(variant, n, tau, low, high, swapped))
    return tuple(changes)


_Tau = tuple[int, float | None, tuple[tuple[str, str], ...]]


def _taus(cells: Mapping[tuple[str, str], Sequence[float]], variants: Sequence[str]) -> dict[str, _Tau]:
    means = {cell: round(math.fsum(values) / len(values), 12) for cell, values in cells.items()}
    systems = list(dict.fromkeys(system for system, _ in cells))
    found: dict[str, _Tau] = {}
    for variant in variants:
        here, there, named = [], [], []
        for system in systems:
            others = [means[system, other] for other in variants if other != variant and (system, other) in means]
            if (system, variant) in means and others:
                named.append(system)
                here.append(means[system, variant])
                there.append(round(math.fsum(others) / len(others), 12))
        swapped = tuple(
            (named[i], named[j])
            for i, j in combinations(range(len(named)), 2)
            if (here[i] - here[j]) * (there[i] - there[j]) < 0
        )
        found[variant] = (len(named), kendall_tau(here, there), swapped)
    return found


def kendall_tau(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Tau-b: concordant minus discordant pairs, divided by the root of the product of the untied pairs on each side."""
    score = left = right = 0
    for i, j in combinations(range(len(first)), 2):
        a = (first[i] > first[j]) - (first[i] < first[j])
        b = (second[i] > second[j]) - (second[i] < second[j])
        score, left, right = score + a * b, left + abs(a), right + abs(b)
    return score / math.sqrt(left * right) if left and right else None
