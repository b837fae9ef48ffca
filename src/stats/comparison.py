"""Two or more systems on the same questions: differences, with intervals and tests. Pure functions.

A pair is (cluster, a, b): a scenario, and the values of two systems on one of its questions. Questions of one scenario
are similar, so scenarios are the independent units: intervals and tests treat clusters as drawn independently at
random, and make no assumption about what happens within a cluster. Every pair counts the same, so a scenario with more
questions has more weight.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from .bounded import DIFFERENCE, bounded_by_cluster
from .intervals import NO_INTERVAL, Interval
from .student import student_quantile

Pairs = Sequence[tuple[str, float, float]]
Verdict = Literal["a better", "b better", "no meaningful difference", "cannot tell"]
EXACT = 14
"""With up to this many units, all 2**units sign flips are counted; with more, random ones."""
ROUNDING = 1e-12
"""Spread below this, relative to the values, is rounding error."""


@dataclass(frozen=True)
class SignFlips:
    """A two-sided p, and how it was computed."""

    p: float | None
    method: str


def sign_flips(sums: Sequence[float], *, seed: int, permutations: int) -> SignFlips:
    """Test a sum of independent units, each of which is as likely to have had the opposite sign.

    The null hypothesis is that every unit's distribution is symmetric about 0. With up to `EXACT` units (not counting
    those at 0), all flips are counted; with more, `permutations` random ones, with 1 added to both counts.
    """
    if not sums:
        return SignFlips(None, "no test")
    moving = [one for one in sums if one]
    reach = abs(math.fsum(moving)) - 1e-9 * math.fsum(abs(one) for one in moving)
    if len(moving) <= EXACT:
        flips = _flipped(moving)
        return SignFlips(sum(abs(flip) >= reach for flip in flips) / len(flips), "exact sign flips")
    draw = random.Random(seed)  # noqa: S311 - for resampling, not for secrets
    blocks = [_flipped(moving[at : at + 10]) for at in range(0, len(moving), 10)]
    hits = sum(abs(sum(map(draw.choice, blocks))) >= reach for _ in range(permutations))
    return SignFlips((hits + 1) / (permutations + 1), f"{permutations} random sign flips")


def _flipped(values: Sequence[float]) -> list[float]:
    """The sums for all choices of signs."""
    found = [0.0]
    for value in values:
        found = [one + signed for one in found for signed in (value, -value)]
    return found


@dataclass(frozen=True)
class Effect:
    """Effect sizes, which have no unit."""

    n: int
    d_z: float | None
    """Mean difference divided by the standard deviation of the differences; None if they are all equal."""
    d_z_low: float | None
    d_z_high: float | None
    """t interval from the jackknife over clusters."""
    delta: float | None
    """Share of pairs where a is above b, minus the share where it is below: Cliff's delta for pairs."""
    delta_low: float | None
    delta_high: float | None
    """`bounded_by_cluster` of the signs."""


@dataclass(frozen=True)
class Difference:
    """a minus b, over pairs. The interval is from `bounded`, p from `sign_flips`."""

    n: int
    clusters: int
    mean: float | None
    low: float | None
    high: float | None
    """None with fewer than 3 clusters."""
    error: float | None
    degrees: float | None
    """Of the interval; None if all clusters have the same difference."""
    unseen: float | None
    """The share of clusters, all unlike these, that so few of them cannot exclude; None with fewer than 3."""
    p: float | None
    method: str
    effect: Effect

    @property
    def excludes_zero(self) -> bool:
        """Whether there is an interval and 0 is outside of it."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def paired_difference(
    pairs: Pairs,
    *,
    seed: int,
    confidence: float = 0.95,
    permutations: int = 10_000,
) -> Difference:
    """The mean of a - b over pairs, its interval by clusters, a p from sign flips of clusters, and effect sizes.

    p cannot be below 2 / 2**clusters, so with 5 or fewer clusters it is never below 0.05. With one cluster there is
    neither interval nor test.
    """
    differences = [(cluster, a - b) for cluster, a, b in pairs]
    found = bounded_by_cluster(differences, DIFFERENCE, confidence)
    by_cluster: dict[str, list[float]] = {}
    for cluster, difference in differences:
        by_cluster.setdefault(cluster, []).append(difference)
    units = list(by_cluster.values())
    sums = [_rounded_sum(unit) for unit in units] if len(units) > 1 else []
    test = sign_flips(sums, seed=seed, permutations=permutations)
    kind = "no interval" if found.low is None else "exact bound" if found.degrees is None else "mid-P, CR2"
    free = f", {found.degrees:.1f} df" if found.degrees is not None and found.low is not None else ""
    method = f"{kind}{free}; {test.method} of clusters" if pairs else "no pairs"
    effect = _effect(differences, units, confidence)
    return Difference(
        len(differences),
        found.units,
        found.value,
        found.low,
        found.high,
        found.error,
        found.degrees,
        found.unseen,
        test.p,
        method,
        effect,
    )


def _rounded_sum(values: Sequence[float]) -> float:
    """The sum, or 0 if it is only rounding error."""
    total = math.fsum(values)
    return 0.0 if abs(total) <= ROUNDING * math.fsum(abs(value) for value in values) else total


def _effect(differences: Sequence[tuple[str, float]], units: Sequence[Sequence[float]], confidence: float) -> Effect:
    signs = bounded_by_cluster(
        ((cluster, float((d > ROUNDING) - (d < -ROUNDING))) for cluster, d in differences), DIFFERENCE, confidence
    )
    n = len(differences)
    center = math.fsum(d for _, d in differences) / n if n else 0.0
    sums = [
        (len(unit), math.fsum(d - center for d in unit), math.fsum((d - center) ** 2 for d in unit)) for unit in units
    ]
    scale = max((abs(d) for _, d in differences), default=0.0)
    whole = (n, math.fsum(part[1] for part in sums), math.fsum(part[2] for part in sums))
    left_out = [_d_z((n - m, whole[1] - s, whole[2] - q), center, scale) for m, s, q in sums]
    value = _d_z(whole, center, scale)
    interval = jackknife_interval(value, left_out, confidence)
    return Effect(
        n,
        value,
        interval.low,
        interval.high,
        signs.value,
        signs.low,
        signs.high,
    )


def _d_z(sums: tuple[int, float, float], center: float, scale: float) -> float | None:
    """From the count, the sum and the sum of squares of the values minus `center`."""
    n, total, squares = sums
    if n < 2:
        return None
    spread = squares - total * total / n
    if spread <= (ROUNDING * scale) ** 2 * n:
        return None
    return (center + total / n) / math.sqrt(spread / (n - 1))


def jackknife_interval(value: float | None, left_out: Sequence[float | None], confidence: float) -> Interval:
    """A t interval around an estimate, from the G estimates that each leave out one independent unit.

    The variance is (G - 1) / G times their sum of squared distances from their mean, with G - 1 degrees of freedom.
    There is no interval with fewer than 2 units, or if one of the estimates is undefined, or if all are equal.
    """
    found = [one for one in left_out if one is not None]
    units = len(left_out)
    if value is None or units < 2 or len(found) < units:
        return NO_INTERVAL
    mean = math.fsum(found) / units
    error = math.sqrt((units - 1) / units * math.fsum((one - mean) ** 2 for one in found))
    if error <= ROUNDING * max(abs(one) for one in found):
        return NO_INTERVAL
    half = student_quantile(0.5 + confidence / 2, units - 1) * error
    return Interval(value - half, value + half)


def verdict(difference: Difference, *, alpha: float, floor: float) -> Verdict:
    """The verdict on a difference; `floor` is the smallest difference that matters.

    No meaningful difference: the interval is within +-floor, even if it excludes 0, and so are clusters that may be
    unlike these: with few of them, nobody knows. One is better: p < alpha, the mean
    reaches the floor, and the interval excludes 0. Otherwise: cannot tell, which includes the case of too few
    scenarios for an interval.
    """
    if floor < 0:
        raise ValueError(f"the floor must not be negative: {floor}")
    mean, low, high = difference.mean, difference.low, difference.high
    if low is not None and high is not None and -floor < low and high < floor and (difference.unseen or 0.0) < floor:
        return "no meaningful difference"
    significant = difference.p is not None and difference.p < alpha and difference.excludes_zero
    if mean and abs(mean) >= floor and significant:
        return "a better" if mean > 0 else "b better"
    return "cannot tell"


def sign_test(up: int, down: int) -> float:
    """Exact two-sided p for these counts if up and down are equally likely; 1 if both are 0."""
    n = up + down
    tail = sum(math.comb(n, k) for k in range(min(up, down) + 1))
    return min(1.0, 2 * tail / (1 << n))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjusted p values, in the given order: the family-wise error rate under any dependence.

    A None stays None and does not count as a test.
    """
    found: list[float | None] = [None] * len(p_values)
    ordered = _ordered(p_values)
    worst = 0.0
    for rank, (p, at) in enumerate(ordered):
        worst = max(worst, min(1.0, p * (len(ordered) - rank)))
        found[at] = worst
    return found


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Benjamini and Hochberg's step-up adjusted p values, in the given order: the false discovery rate.

    The tests must be independent or positively dependent. A None stays None and does not count as a test.
    """
    found: list[float | None] = [None] * len(p_values)
    ordered = _ordered(p_values)
    best = 1.0
    for rank, (p, at) in reversed(list(enumerate(ordered, start=1))):
        best = min(best, p * len(ordered) / rank)
        found[at] = best
    return found


def _ordered(p_values: Sequence[float | None]) -> list[tuple[float, int]]:
    return sorted((p, at) for at, p in enumerate(p_values) if p is not None)


@dataclass(frozen=True)
class SystemRank:
    """One system among others. `ranks[0]` is the share of resamples in which it is first; ties share their ranks."""

    system: str
    n: int
    clusters: int
    mean: float | None
    low: float | None
    high: float | None
    ranks: tuple[float, ...] | None


def rank_stability(
    scores: Mapping[str, Mapping[str, Sequence[float]]],
    *,
    seed: int,
    less_is_better: bool = False,
    resamples: int = 2_000,
    confidence: float = 0.95,
) -> tuple[SystemRank, ...]:
    """Systems by their mean over all values in [0, 1], the best first, with the share of each rank in a bootstrap.

    Each resample draws as many whole clusters as there are, the same ones for all systems. A resample in which a system
    has no value is left out. The interval is from `bounded`, which is valid with fewer clusters than a percentile
    interval. Ranks are None with fewer than 2 clusters; systems without a value are not ranked and come last.
    """
    means = {
        system: bounded_by_cluster(
            ((name, value) for name, values in found.items() for value in values), confidence=confidence
        )
        for system, found in scores.items()
    }
    sign = -1 if less_is_better else 1
    ranked = [system for system in scores if means[system].units]
    names = sorted({name for system in ranked for name, values in scores[system].items() if values})
    sums = {s: [(math.fsum(v), len(v)) for v in (scores[s].get(name, ()) for name in names)] for s in ranked}
    counts = {system: [0.0] * len(ranked) for system in ranked}
    draw = random.Random(seed)  # noqa: S311 - for resampling, not for secrets
    used = 0
    for _ in range(resamples if len(names) > 1 else 0):
        drawn = draw.choices(range(len(names)), k=len(names))
        sizes = {system: sum(sums[system][at][1] for at in drawn) for system in ranked}
        if all(sizes.values()):
            used += 1
            drawn_means = {s: math.fsum(sums[s][at][0] for at in drawn) / sizes[s] for s in ranked}
            _add_ranks(counts, {s: round(sign * mean, 12) for s, mean in drawn_means.items()})
    return tuple(
        SystemRank(
            s,
            sum(len(values) for values in scores[s].values()),
            m.units,
            m.value,
            m.low,
            m.high,
            tuple(c / used for c in counts[s]) if s in counts and used else None,
        )
        for s, m in sorted(means.items(), key=lambda one: (one[1].value is None, -sign * (one[1].value or 0.0), one[0]))
    )


def _add_ranks(counts: Mapping[str, list[float]], means: Mapping[str, float]) -> None:
    """Count one ranking; systems that tie share their ranks."""
    for system, mean in means.items():
        above = sum(other > mean for other in means.values())
        level = sum(other == mean for other in means.values())
        for rank in range(above, above + level):
            counts[system][rank] += 1 / level
