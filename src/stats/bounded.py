"""Means of values within a known range, over independent units of unequal weight. Checked by simulation.

A unit is a scenario (or a script), and its value is already the mean over everything that was asked within it. The
interval follows Korn and Graubard: the cluster-robust variance of the mean (CR2) says how many independent yes-or-no
values would tell as much (the effective n), and the limits are those of a proportion with that n, by the mid-P variant
of Clopper and Pearson's method. So limits stay within the range and are never equal. Four details:

- Few units, or few that differ from the rest, estimate a variance badly. The effective n is reduced by the square of
  the normal to Student's quantile. The degrees of freedom are Bell and McCaffrey's, or 1.5 k - 0.75 if that is less,
  where k is the number of units that really contribute to the variance: (sum of squares)**2 / (sum of fourth powers).
  Nor are they more than the weights allow if all units vary alike, for one unit may outweigh all others.
- Values within [0, 1] vary at most as much as yes and no do, so the effective n is at least the number of units
  (Kish's number, if weights differ).
- If all units have the same value, the variance is unknown. With confidence 1 - alpha, the share of units that differ
  is at most 1 - alpha ** (1 / units), exactly, and the limits are the farthest means that this allows (for
  differences, with alpha / 2). A few stray errors must not promise more than none, so the upper limit of a share is
  never below that of a share of 0, and the lower one never above that of a share of 1. Limits of differences are not
  widened so: it would hide every difference that is small and the same everywhere. Who wants to show that there is no
  difference must look at `unseen` as well.
- So a share below that bound can be missed on one side only. The limit on that side then has the whole alpha, not
  half of it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

from .intervals import incomplete_beta, student_quantile

LEAST_UNITS = 3
"""With fewer, a mean that is meant to hold for other units has no interval: how much units differ is not known."""
LEAST_IN_STRATA = 2
"""For fixed strata two units are enough to print the interval of two yes-or-no answers, which is wide."""
ROUNDING = 1e-12
"""Spread below this, relative to the range, is rounding error."""
MOST_EFFECTIVE = 1e6
"""Beyond this effective n the limits no longer change in print."""


@dataclass(frozen=True)
class Unit:
    value: float
    weight: float = 1.0


class Interval(NamedTuple):
    """What a value may be at all, or the limits of what it probably is."""

    low: float
    high: float


SHARE = Interval(0.0, 1.0)
DIFFERENCE = Interval(-1.0, 1.0)


@dataclass(frozen=True)
class Bounded:
    """A weighted mean over units. The interval is None with too few of them."""

    units: int
    value: float | None
    low: float | None = None
    high: float | None = None
    effective: float | None = None
    """The number of independent yes-or-no values that would tell as much, and that the limits are of."""
    error: float | None = None
    """Standard error; None if all units have the same value."""
    degrees: float | None = None
    """Degrees of freedom of the error."""
    unseen: float | None = None
    """The share of units, all unlike these, that so few of them cannot exclude."""


@dataclass(frozen=True)
class _Spread:
    """What the data say about the error of a mean."""

    variance: float
    degrees: float
    least: float
    """The effective n if every unit were a single yes or no."""


_OF_SHARES = (1.5, 0.75)
"""How many degrees of freedom k contributing units allow: the first times k, less the second."""
_OF_ESTIMATES = (2.0, 1.0)
"""Where the values of units are estimates and vary more evenly. Both were chosen by simulation."""


def bounded_mean(units: Sequence[Unit], within: Interval = SHARE, confidence: float = 0.95) -> Bounded:
    """The weighted mean over units, with its interval."""
    total = math.fsum(unit.weight for unit in units)
    if not total:
        return Bounded(0, None)
    value = math.fsum(unit.weight * unit.value for unit in units) / total
    if len(units) < 2:
        return Bounded(len(units), value)
    spread = _spread(units, value, total)
    return _bounded(Bounded(len(units), value), spread, within, confidence, least=LEAST_UNITS)


def _spread(units: Sequence[Unit], value: float, total: float, slope_less: tuple[float, float] = _OF_SHARES) -> _Spread:
    """The cluster-robust variance of a weighted mean, and its degrees of freedom."""
    shares = [unit.weight / total for unit in units]
    free = [1 - share for share in shares]
    parts = [(share * (unit.value - value)) ** 2 / rest for unit, share, rest in zip(units, shares, free, strict=True)]
    squares = [share * share / rest for share, rest in zip(shares, free, strict=True)]
    together = math.fsum(squares)
    off = together * together - math.fsum(one * one for one in squares)
    kish = math.fsum(share * share for share in shares)
    # Bell and McCaffrey's degrees of freedom, for units of `weight` independent values of equal variance; and
    # Satterthwaite's, for units of equal variance.
    degrees = min(1 / (kish + off), max(1.0, kish * kish / math.fsum(share**4 for share in shares)))
    return _Spread(math.fsum(parts), min(degrees, _contributing(parts, slope_less)), 1 / kish)


def bounded_with_error(
    units: Sequence[Unit], error: float, within: Interval = SHARE, confidence: float = 0.95
) -> Bounded:
    """The mean of a share over units whose values are estimates themselves, so that they may be out of range.

    What is known of values in range does not hold here: the effective n may be less than the number of units. At 0 and
    1, where a proportion has no variance, the effective n is that of a share one standard error away.
    `error`: a variance that the units do not show.
    """
    total = math.fsum(unit.weight for unit in units)
    plain = bounded_mean(units, within, confidence)
    if plain.value is None or plain.low is None:
        return plain
    found = _spread(units, plain.value, total, _OF_ESTIMATES)
    width = within.high - within.low
    value = min(within.high, max(within.low, plain.value))
    share, spread = (value - within.low) / width, math.sqrt(found.variance + error) / width
    if spread <= ROUNDING:
        return replace(plain, value=value)
    away = min(0.5, spread)
    moved = min(1 - away, max(away, share))
    tail = (1 - confidence) / 2
    ratio = NormalDist().inv_cdf(1 - tail) / student_quantile(1 - tail, found.degrees)
    effective = min(MOST_EFFECTIVE, moved * (1 - moved) / spread**2 * ratio**2)
    limits = mid_p_limits(share, effective, tail)
    low, high = (within.low + width * one for one in (limits.low, limits.high))
    return Bounded(plain.units, value, low, high, effective, spread * width, found.degrees, plain.unseen)


def bounded_by_cluster(
    values: Iterable[tuple[Hashable, float]], within: Interval = SHARE, confidence: float = 0.95
) -> Bounded:
    """The mean over values of equal weight, with clusters as the units."""
    clusters: dict[Hashable, list[float]] = {}
    for cluster, value in values:
        clusters.setdefault(cluster, []).append(value)
    return bounded_mean(
        [Unit(math.fsum(part) / len(part), len(part)) for part in clusters.values()], within, confidence
    )


@dataclass(frozen=True)
class Stratum:
    """Units that differ only by chance from one another, such as the scripts of one scenario."""

    values: tuple[float, ...]
    weight: float


def stratified_mean(strata: Sequence[Stratum], within: Interval = SHARE, confidence: float = 0.95) -> Bounded:
    """The weighted mean over fixed strata, each estimated by the plain mean of its units.

    The degrees of freedom are Welch and Satterthwaite's. A stratum with one unit shows no spread, so there is no
    interval then.
    """
    held = [one for one in strata if one.values and one.weight]
    total = math.fsum(one.weight for one in held)
    if not total:
        return Bounded(0, None)
    means = [math.fsum(one.values) / len(one.values) for one in held]
    value = math.fsum(one.weight * mean for one, mean in zip(held, means, strict=True)) / total
    units = sum(len(one.values) for one in held)
    if any(len(one.values) < 2 for one in held):
        return Bounded(units, value)
    parts: list[float] = []
    by_stratum: list[tuple[float, int]] = []
    least = 0.0
    for one, mean in zip(held, means, strict=True):
        share, n = one.weight / total, len(one.values)
        mine = [share * share * (single - mean) ** 2 / (n * (n - 1)) for single in one.values]
        parts += mine
        by_stratum.append((math.fsum(mine), n - 1))
        least += share * share / n
    variance = math.fsum(parts)
    denominator = math.fsum(part * part / free for part, free in by_stratum)
    degrees = variance * variance / denominator if denominator else 1.0
    spread = _Spread(variance, min(degrees, _contributing(parts)), 1 / least)
    return _bounded(Bounded(units, value), spread, within, confidence, least=LEAST_IN_STRATA)


def _contributing(parts: Sequence[float], slope_less: tuple[float, float] = _OF_SHARES) -> float:
    """Degrees of freedom that the unequal contributions of units to the variance allow; at least 1."""
    fourth = math.fsum(part * part for part in parts)
    k = math.fsum(parts) ** 2 / fourth if fourth else float(len(parts))
    slope, less = slope_less
    return max(1.0, slope * k - less)


def _bounded(mean: Bounded, spread: _Spread, within: Interval, confidence: float, *, least: int) -> Bounded:
    """The mean with its interval."""
    units, value, width = mean.units, mean.value, within.high - within.low
    assert value is not None
    share = min(1.0, max(0.0, (value - within.low) / width))
    same = math.sqrt(spread.variance) <= ROUNDING * width
    tail = (1 - confidence) / 2
    effective = spread.least if same else _size(share, width, spread, tail)
    error = None if same else math.sqrt(spread.variance)
    degrees = None if same else spread.degrees
    if units < least:
        return Bounded(units, value, None, None, effective, error, degrees)
    # A share that is 0 or 1 can be missed on one side only; a difference on both.
    most = 1 - (2 * tail if within == SHARE else tail) ** (1 / spread.least)
    limits = Interval(share * (1 - most), share + most * (1 - share)) if same else mid_p_limits(share, effective, tail)
    if within == SHARE and not same:
        one_sided = mid_p_limits(share, _size(share, width, spread, 2 * tail), 2 * tail)
        limits = Interval(
            one_sided.low if one_sided.low <= most else max(limits.low, most),
            one_sided.high if one_sided.high >= 1 - most else min(limits.high, 1 - most),
        )
    if within == SHARE:
        limits = Interval(
            min(limits.low, 1 - most) if share > most else limits.low,
            max(limits.high, most) if share < 1 - most else limits.high,
        )
    low, high = (within.low + width * one for one in (limits.low, limits.high))
    return Bounded(units, value, min(low, value), max(high, value), effective, error, degrees, most)


def _size(share: float, width: float, spread: _Spread, tail: float) -> float:
    """The effective n, reduced for a variance that few units estimate."""
    ratio = NormalDist().inv_cdf(1 - tail) / student_quantile(1 - tail, spread.degrees)
    found = share * (1 - share) * width * width / spread.variance * ratio * ratio
    return min(MOST_EFFECTIVE, max(spread.least, found))


@lru_cache(maxsize=4_096)
def mid_p_limits(share: float, n: float, tail: float = 0.025) -> Interval:
    """Mid-P limits of a proportion; n need not be whole. At 0 and at 1 it is the exact one-sided limit."""
    count = share * n
    if min(count, n - count) <= 1e-9:
        most = 1 - (2 * tail) ** (1 / n)
        return Interval(0.0, most) if share < 0.5 else Interval(1 - most, 1.0)
    return Interval(_lower(count, n - count, tail), 1 - _lower(n - count, count, tail))


def _lower(count: float, rest: float, tail: float) -> float:
    """Where half the chance of this count, plus that of more, is `tail`."""
    low, high = 0.0, 1.0
    choices = math.lgamma(count + rest + 1) - math.lgamma(count + 1) - math.lgamma(rest + 1)
    for _ in range(45):
        middle = (low + high) / 2
        of_this = math.exp(choices + count * math.log(middle) + rest * math.log1p(-middle))
        chance = of_this / 2 + incomplete_beta(count + 1, rest, middle)
        low, high = (middle, high) if chance < tail else (low, middle)
    return (low + high) / 2
