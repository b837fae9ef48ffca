"""How many trials a comparison needs, and what it can see. Pure functions; Student's and the noncentral t by hand.

CallResources: the two-sided paired t test. If there is a difference its statistic is noncentral t with noncentrality
sqrt(n') * difference / sd, where sd is that of the differences of pairs and n' is n over the design effect
1 + (m - 1) * icc, m being the mean number of pairs of a cluster. Without clusters there are n - 1 degrees of freedom;
with clusters there are clusters - 1, as the interval of `comparison.paired_difference` has where clusters are of one
size. Differences are taken to be normal and, within a cluster, equally correlated.

Shares: two independent samples by Cohen's arcsine transformation, h = 2 asin(sqrt p1) - 2 asin(sqrt p2), whose
difference is taken to be normal with variance 1/n1 + 1/n2; two-sided, both tails counted. An approximation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

from .intervals import _incomplete_beta

_NORMAL = NormalDist()
MOST = 10_000_000
"""Above so many trials the answer is None: nobody will run them."""


def student_cdf(t: float, degrees: float) -> float:
    """Student's distribution function, for any number of degrees of freedom above 0."""
    # Of the two forms the one whose argument is far from 1: for a small t the other would lose all its digits.
    square = t * t
    if square < degrees:
        tail = 0.5 - 0.5 * _incomplete_beta(0.5, degrees / 2, square / (degrees + square))
    else:
        tail = 0.5 * _incomplete_beta(degrees / 2, 0.5, degrees / (degrees + square))
    return 1 - tail if t > 0 else tail


@lru_cache(maxsize=4_096)
def student_quantile(p: float, degrees: float) -> float:
    """Student's quantile for 0 < p < 1 and any degrees above 0 (`intervals.t_quantile` is for whole ones), bisected."""
    if not 0 < p < 1 or degrees <= 0:
        raise ValueError(f"a quantile needs 0 < p < 1 and degrees of freedom above 0, not {p} and {degrees}")
    tail = min(p, 1 - p)
    if tail == 0.5:
        return 0.0
    low, high = 0.0, 1.0
    while student_cdf(-high, degrees) > tail:
        low, high = high, high * 2
    while (middle := (low + high) / 2) not in (low, high):
        if student_cdf(-middle, degrees) > tail:
            low = middle
        else:
            high = middle
    return middle if p > 0.5 else -middle


def noncentral_power(critical: float, degrees: float, noncentrality: float) -> float:
    """P(|T| > critical) for T noncentral t, critical >= 0.

    T is (Z + noncentrality) / S with S the root of a chi-square over its degrees. The normal tails given S are
    integrated over log S by the trapezoid rule, which converges geometrically as the integrand is smooth and dies at
    both ends; the density is scaled to sum to 1 over the same points.
    """
    spread = 1 / math.sqrt(2 * degrees)
    step = min(0.05, spread / 5, 0.2 / (1 + abs(noncentrality)))
    step = max(step, 1e-4, spread / 200)
    # log S has density exp(degrees * (x - exp(2x) / 2)) * constant: an exponential tail below, a steeper above.
    low, high = -40 / degrees - 9 * spread, min(9 * spread, 4.0)
    weights, terms = [], []
    for at in range(math.floor(low / step), math.ceil(high / step) + 1):
        x = at * step
        weight = math.exp(degrees * (x + 0.5 - math.exp(2 * x) / 2))
        scaled = critical * math.exp(x)
        weights.append(weight)
        terms.append(weight * (_upper(scaled - noncentrality) + _upper(scaled + noncentrality)))
    return math.fsum(terms) / math.fsum(weights)


def _upper(z: float) -> float:
    return 0.5 * math.erfc(z / math.sqrt(2))


def design_effect(n: float, clusters: int | None, icc: float) -> float:
    """1 + (m - 1) * icc with m = n / clusters; 1 without clusters."""
    if clusters is None:
        if icc:
            raise ValueError("a correlation within clusters needs the number of clusters")
        return 1.0
    if clusters < 1 or clusters > n:
        raise ValueError(f"{n} trials cannot fill {clusters} clusters")
    if not 0 <= icc <= 1:
        raise ValueError(f"the correlation within clusters must lie in [0, 1], not {icc}")
    return 1 + (n / clusters - 1) * icc


def _check(alpha: float, power: float = 0.5) -> None:
    if not 0 < alpha < 1 or not 0 < power < 1:
        raise ValueError(f"alpha and power must lie between 0 and 1, not {alpha} and {power}")


def power_of(
    n: int, difference: float, sd: float, *, alpha: float = 0.05, clusters: int | None = None, icc: float = 0.0
) -> float | None:
    """The chance that n pairs show a difference at two-sided alpha. None with no degree of freedom or no spread."""
    _check(alpha)
    degrees = (n if clusters is None else clusters) - 1
    if degrees < 1 or sd <= 0:
        return None
    effective = n / design_effect(n, clusters, icc)
    return noncentral_power(
        student_quantile(1 - alpha / 2, degrees), degrees, math.sqrt(effective) * abs(difference) / sd
    )


def trials_needed(
    difference: float,
    sd: float,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    clusters: int | None = None,
    icc: float = 0.0,
) -> int | None:
    """The fewest pairs in all whose power reaches `power`, spread over `clusters` clusters where given.

    None where no number will do: no difference, no spread, or so few clusters, so alike within, that more trials in
    them do not help; and above `MOST`.
    """
    _check(alpha, power)
    low = 2 if clusters is None else clusters

    def enough(n: int) -> bool:
        found = power_of(n, difference, sd, alpha=alpha, clusters=clusters, icc=icc)
        return found is not None and found >= power

    if difference == 0 or low < 2 or sd <= 0 or not enough(MOST):
        return None
    return _fewest(low, enough)


def _fewest(low: int, enough: Callable[[int], bool]) -> int:
    """The least n >= low that is enough, where all above it are."""
    if enough(low):
        return low
    high = low * 2
    while not enough(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def detectable(
    sd: float, n: int, *, power: float = 0.8, alpha: float = 0.05, clusters: int | None = None, icc: float = 0.0
) -> float | None:
    """The least true mean difference that n pairs show with chance `power`; `power_of` the other way round.

    None with no degree of freedom or no spread, or where power is not above alpha (any difference would do).
    """
    _check(alpha, power)
    degrees = (n if clusters is None else clusters) - 1
    if degrees < 1 or sd <= 0 or power <= alpha:
        return None
    error = sd * math.sqrt(design_effect(n, clusters, icc) / n)
    critical = student_quantile(1 - alpha / 2, degrees)
    low, high = 0.0, 1.0
    while noncentral_power(critical, degrees, high) < power:
        low, high = high, high * 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if noncentral_power(critical, degrees, middle) < power else (low, middle)
    return (low + high) / 2 * error


def shares_power_of(p1: float, p2: float, n1: int, n2: int, *, alpha: float = 0.05) -> float | None:
    """The chance that two independent samples show a difference of shares; arcsine. None where a sample is empty."""
    _check(alpha)
    if n1 < 1 or n2 < 1:
        return None
    shift = _h(p1, p2) / math.sqrt(1 / n1 + 1 / n2)
    critical = _NORMAL.inv_cdf(1 - alpha / 2)
    return _upper(critical - shift) + _upper(critical + shift)


def shares_needed(p1: float, p2: float, *, power: float = 0.8, alpha: float = 0.05) -> int | None:
    """The fewest trials of each of two independent samples; arcsine approximation. None if p1 = p2, or above `MOST`."""
    _check(alpha, power)

    def enough(n: int) -> bool:
        found = shares_power_of(p1, p2, n, n, alpha=alpha)
        return found is not None and found >= power

    if p1 == p2 or not enough(MOST):
        return None
    return _fewest(1, enough)


def _h(p1: float, p2: float) -> float:
    if not (0 <= p1 <= 1 and 0 <= p2 <= 1):
        raise ValueError(f"shares must lie in [0, 1], not {p1} and {p2}")
    return abs(2 * math.asin(math.sqrt(p1)) - 2 * math.asin(math.sqrt(p2)))
