"""Where the spread of scores comes from. Pure functions.

Components of variance by Henderson's method 1: for each random factor, and for the observations and the whole, the
uncorrected sum of squares T = sum over groups of (sum of group)**2 / (size of group) is set equal to its expectation,
which is linear in the components, and the equations are solved. It asks for no balance and no normality, only that all
effects are independent with mean 0 and, within a factor, one variance. With balanced data these are the ANOVA
estimates. An estimate may come out negative; it is then cut to 0 and flagged.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from .agreement import quantile
from .comparison import jackknife_interval
from .confusion import solve
from .intervals import Estimate, mean_interval

RESIDUAL = "residual"
_TINY = 1e-12


@dataclass(frozen=True)
class Component:
    """One source of variance. Low and high: jackknife t interval over the groups of the first factor, cut at 0.

    It needs 3 such groups and is rough: of 95% intervals of nested components, 5 to 20 outermost groups, 84 to 89%
    covered the outermost component and 90 to 95% the others (normal effects, simulated).
    """

    name: str
    groups: int
    """How many groups the factor has; for the residual, how many observations."""
    variance: float | None
    low: float | None
    high: float | None
    share: float | None
    """Of the sum of all components, after cutting; None where that is 0."""
    share_low: float | None
    share_high: float | None
    negative: bool
    """The estimate was below 0 and is given as 0."""


@dataclass(frozen=True)
class Components:
    n: int
    total: float | None
    parts: tuple[Component, ...]
    """In the order of the factors, the residual last.

    A factor's variance is None where it has a single group, or the same groups as one before it (that one's then holds
    both); all are None where the data do not part them.
    """
    merged: tuple[str, ...]
    """Inner levels with one value a group: they cannot be told from the residual and are counted there."""

    def part(self, name: str) -> Component:
        return next(part for part in self.parts if part.name == name)


_Factor = Sequence[Hashable]
"""The group of each observation."""


def nested(
    values: Sequence[tuple[Sequence[str], float]],
    levels: Sequence[str] = ("scenario", "variant", "repeat"),
    confidence: float = 0.95,
) -> Components:
    """Components of nested random effects; each value comes with its path, one name a level, outermost first.

    A name counts within its parents only. Intervals leave out one group of the outermost level at a time, so they speak
    of other such groups.
    """
    for path, _ in values:
        if len(path) != len(levels):
            raise ValueError(f"the path {tuple(path)} has not one name for each of {tuple(levels)}")
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
    """Components of two crossed random factors with one value a (row, column); cells may be missing.

    What a row and a column do together cannot be told from the residual and is counted there. With no cell missing the
    row's share is the intraclass correlation ICC(2,1), the reliability of one column's value (unless something was
    cut). Intervals leave out one row at a time: they speak of other rows under the same columns, so the columns'
    component has none.
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
    variances, shares = _cut(raw)
    outer = list(dict.fromkeys(factors[0]))
    left_out = []
    for group in outer if len(outer) > 2 else ():
        kept = [at for at, name in enumerate(factors[0]) if name != group]
        left_out.append(_henderson([[factor[at] for at in kept] for factor in factors], [values[at] for at in kept]))
    parts = []
    for at, name in enumerate((*names, RESIDUAL)):
        # The interval is that of the uncut estimate: cut ones would understate the spread.
        value = raw[at]
        low, high = jackknife_interval(value, [one[at] for one in left_out], confidence)
        share_low, share_high = jackknife_interval(shares[at], [_cut(one)[1][at] for one in left_out], confidence)
        parts.append(
            Component(
                name,
                len(set(factors[at])) if at < len(factors) else len(values),
                variances[at],
                None if low is None else max(0.0, low),
                None if high is None else max(0.0, high),
                shares[at],
                None if share_low is None else max(0.0, share_low),
                None if share_high is None else min(1.0, share_high),
                value is not None and value < 0,
            )
        )
    total = None if raw[-1] is None else math.fsum(v for v in variances if v is not None)
    return Components(len(values), total, tuple(parts), merged)


def _cut(raw: Sequence[float | None]) -> tuple[list[float | None], list[float | None]]:
    """Components not below 0, and their shares."""
    variances = [None if value is None else max(0.0, value) for value in raw]
    total = math.fsum(value for value in variances if value is not None)
    return variances, [value / total if total and value is not None else None for value in variances]


def _henderson(factors: Sequence[_Factor], values: Sequence[float]) -> list[float | None]:
    """The uncut components, the residual last."""
    n = len(values)
    found: list[float | None] = [None] * (len(factors) + 1)
    if n < 2:
        return found
    apart = [at for at in range(len(factors)) if _tells(factors[at], factors[:at])]
    told = [factors[at] for at in apart]
    mean = math.fsum(values) / n
    centred = [value - mean for value in values]  # The sums below are of small numbers then; nothing else changes.
    everything: _Factor = [None] * n
    each: _Factor = range(n)
    base = _expected(everything, told)
    table, wanted = [], []
    for factor in (*told, each):
        row = _expected(factor, told)
        table.append([(a - b) / n for a, b in zip(row, base, strict=True)])
        wanted.append((_squares(factor, centred) - _squares(everything, centred)) / n)
    solved = solve(table, wanted)
    if solved is not None:
        rounding = _TINY * max(abs(value) for value in values) ** 2
        for at, value in zip((*apart, len(factors)), solved, strict=True):
            found[at] = 0.0 if abs(value) <= rounding else value
    return found


def _tells(factor: _Factor, before: Sequence[_Factor]) -> bool:
    """Whether a factor has groups, and not the very groups of one before it."""
    groups = len(set(factor))
    same = any(len(set(other)) == groups == len(set(zip(factor, other, strict=True))) for other in before)
    return groups > 1 and not same


def _squares(factor: _Factor, values: Sequence[float]) -> float:
    sums: dict[Hashable, list[float]] = {}
    for group, value in zip(factor, values, strict=True):
        sums.setdefault(group, []).append(value)
    return math.fsum(math.fsum(part) ** 2 / len(part) for part in sums.values())


def _expected(factor: _Factor, factors: Sequence[_Factor]) -> list[float]:
    """How often each component, the residual last, is in the expectation of a factor's T.

    For a random factor: the sum over groups g of this factor and h of that one of n(g and h)**2 / n(g).
    """
    sizes = Counter(factor)
    found = []
    for other in factors:
        both = Counter(zip(factor, other, strict=True))
        found.append(math.fsum(count * count / sizes[group] for (group, _), count in both.items()))
    return [*found, float(len(sizes))]


@dataclass(frozen=True)
class WorstVariant:
    """A scenario's variant with the lowest mean, and how far that is below the mean of the scenario's trials."""

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
    """Each value is (scenario, variant, score in [0, 1]); of variants that tie the first by name is given.

    The lowest of several noisy means lies below the lowest true mean: read it as what was seen, and its interval as
    that of one variant named beforehand.
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
    """One variant's order of systems against the order under the other variants."""

    variant: str
    n: int
    """Systems that have trials under this variant and under another."""
    tau: float | None
    """Kendall's tau-b of the two sets of means; None with fewer than 2 systems or where all tie on one side."""
    low: float | None
    high: float | None
    swapped: tuple[tuple[str, str], ...]
    """Pairs of systems in the opposite order under this variant, neither order a tie."""


def rank_changes(
    scores: Mapping[str, Mapping[str, Sequence[float]]], *, seed: int, resamples: int = 1_000, confidence: float = 0.95
) -> tuple[RankChange, ...]:
    """Scores by system and variant. A system's standing under the other variants is the mean of their resources.

    The interval is a percentile one from drawing each cell's trials again, taken as independent. Drawing adds noise to
    both orders, so it leans towards 0; it is None where no cell has 2 trials or some resample has no tau.
    """
    variants = list(dict.fromkeys(variant for found in scores.values() for variant in found))
    cells = {(s, v): list(values) for s, found in scores.items() for v, values in found.items() if values}
    points = _taus(cells, variants)
    draws: dict[str, list[float | None]] = {variant: [] for variant in variants}
    draw = random.Random(seed)  # noqa: S311 - resampling, no secret
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
    """Tau-b: concordant less discordant pairs over the root of the pairs that do not tie on each side."""
    score = left = right = 0
    for i, j in combinations(range(len(first)), 2):
        a = (first[i] > first[j]) - (first[i] < first[j])
        b = (second[i] > second[j]) - (second[i] < second[j])
        score, left, right = score + a * b, left + abs(a), right + abs(b)
    return score / math.sqrt(left * right) if left and right else None
