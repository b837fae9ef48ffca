"""Two or more systems on the same questions: differences, with intervals and tests. Pure functions.

A pair is (cluster, a, b): a scenario, and the values of two systems on one of its questions. Questions of one scenario
are similar, so scenarios are the independent units: intervals and tests treat clusters as drawn independently at
random, and make no assumption about what happens within a cluster. Every pair counts the same, so a scenario with more
questions has more weight.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .bounded import DIFFERENCE, bounded_by_cluster

Pairs = Sequence[tuple[str, float, float]]
Verdict = Literal["a better", "b better", "no meaningful difference", "cannot tell"]
EXACT = 14
"""With up to this many units, all 2**units sign flips are counted; with more, random ones."""
ROUNDING = 1e-12
"""Spread below this, relative to the values, is rounding error."""


def sign_flips(sums: Sequence[float], *, seed: int, permutations: int) -> tuple[float | None, str]:
    """A two-sided p and how it was computed: of a sum of units, each as likely to have had the opposite sign.

    The null hypothesis is that every unit's distribution is symmetric about 0. With up to `EXACT` units (not counting
    those at 0), all flips are counted; with more, `permutations` random ones, with 1 added to both counts.
    """
    if not sums:
        return None, "no test"
    moving = [one for one in sums if one]
    reach = abs(math.fsum(moving)) - 1e-9 * math.fsum(abs(one) for one in moving)
    if len(moving) <= EXACT:
        flips = _flipped(moving)
        return sum(abs(flip) >= reach for flip in flips) / len(flips), "exact sign flips"
    draw = random.Random(seed)  # noqa: S311 - for resampling, not for secrets
    blocks = [_flipped(moving[at : at + 10]) for at in range(0, len(moving), 10)]
    hits = sum(abs(sum(map(draw.choice, blocks))) >= reach for _ in range(permutations))
    return (hits + 1) / (permutations + 1), f"{permutations} random sign flips"


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
    delta: float | None
    """Share of pairs where a is above b, minus the share where it is below: Cliff's delta for pairs."""


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


def paired_difference(pairs: Pairs, *, seed: int, confidence: float = 0.95, permutations: int = 10_000) -> Difference:
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
    p, flips = sign_flips(sums, seed=seed, permutations=permutations)
    kind = "no interval" if found.low is None else "exact bound" if found.degrees is None else "mid-P, CR2"
    free = f", {found.degrees:.1f} df" if found.degrees is not None and found.low is not None else ""
    method = f"{kind}{free}; {flips} of clusters" if pairs else "no pairs"
    return Difference(
        len(differences),
        found.units,
        found.value,
        found.low,
        found.high,
        found.error,
        found.degrees,
        found.unseen,
        p,
        method,
        _effect([gap for _, gap in differences]),
    )


def _rounded_sum(values: Sequence[float]) -> float:
    """The sum, or 0 if it is only rounding error."""
    total = math.fsum(values)
    return 0.0 if abs(total) <= ROUNDING * math.fsum(abs(value) for value in values) else total


def _effect(differences: Sequence[float]) -> Effect:
    n = len(differences)
    if not n:
        return Effect(0, None, None)
    mean = math.fsum(differences) / n
    spread = math.fsum((one - mean) ** 2 for one in differences)
    alike = n < 2 or spread <= (ROUNDING * max(map(abs, differences))) ** 2 * n
    above = sum(one > ROUNDING for one in differences) - sum(one < -ROUNDING for one in differences)
    return Effect(n, None if alike else mean / math.sqrt(spread / (n - 1)), above / n)


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
    ordered = sorted((p, at) for at, p in enumerate(p_values) if p is not None)
    worst = 0.0
    for rank, (p, at) in enumerate(ordered):
        worst = max(worst, min(1.0, p * (len(ordered) - rank)))
        found[at] = worst
    return found
