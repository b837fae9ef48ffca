"""How many trials a comparison needs, and which differences it can detect. Pure functions.

The test is the two-sided paired t test. If there is a difference, its statistic is noncentral t with noncentrality
sqrt(n') * difference / sd, where sd is the standard deviation of the paired differences, and n' is n divided by the
design effect 1 + (m - 1) * icc, with m the mean number of pairs per cluster. There are n - 1 degrees of freedom without
clusters, and clusters - 1 with clusters, as in `comparison.paired_difference` for clusters of equal size. Differences
are assumed to be normal and, within a cluster, equally correlated.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .intervals import student_quantile

MOST = 10_000_000
"""If more trials than this are needed, the answer is None: no one will run them."""


def noncentral_power(critical: float, degrees: float, noncentrality: float) -> float:
    """P(|T| > critical) for a noncentral t variable T, with critical >= 0.

    T is (Z + noncentrality) / S, where S is the square root of a chi-square variable divided by its degrees of freedom.
    The normal tails given S are integrated over log S by the trapezoid rule, which converges geometrically because the
    integrand is smooth and vanishes at both ends. The density is scaled to sum to 1 over the same points.
    """
    spread = 1 / math.sqrt(2 * degrees)
    step = min(0.05, spread / 5, 0.2 / (1 + abs(noncentrality)))
    step = max(step, 1e-4, spread / 200)
    # log S has density exp(degrees * (x - exp(2x) / 2)) * constant: an exponential tail below, a steeper one above.
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
            raise ValueError("a correlation within clusters needs a number of clusters")
        return 1.0
    if clusters < 1 or clusters > n:
        raise ValueError(f"{n} trials cannot fill {clusters} clusters")
    if not 0 <= icc <= 1:
        raise ValueError(f"the correlation within clusters must be in [0, 1], not {icc}")
    return 1 + (n / clusters - 1) * icc


def _check(alpha: float, power: float = 0.5) -> None:
    if not 0 < alpha < 1 or not 0 < power < 1:
        raise ValueError(f"alpha and power must be between 0 and 1, not {alpha} and {power}")


def power_of(
    n: int, difference: float, sd: float, *, alpha: float = 0.05, clusters: int | None = None, icc: float = 0.0
) -> float | None:
    """The probability that n pairs show a difference at two-sided alpha. None without degrees of freedom or spread."""
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
    """The smallest total number of pairs whose power reaches `power`, spread over `clusters` clusters if given.

    None if no number up to `MOST` is enough: there is no difference, no spread, or there are so few clusters, so
    similar within, that more trials in them do not help.
    """
    _check(alpha, power)
    low = 2 if clusters is None else clusters

    def enough(n: int) -> bool:
        found = power_of(n, difference, sd, alpha=alpha, clusters=clusters, icc=icc)
        return found is not None and found >= power

    if difference == 0 or low < 2 or sd <= 0 or not enough(MOST):
        return None
    return _fewest(low, enough)


def clusters_needed(
    difference: float, sd: float, *, per_cluster: int = 1, power: float = 0.8, alpha: float = 0.05, icc: float = 0.0
) -> int | None:
    """The smallest number of clusters, with `per_cluster` pairs in each, whose power reaches `power`.

    None if no number of pairs up to `MOST` is enough: there is no difference or no spread.
    """
    _check(alpha, power)

    def enough(clusters: int) -> bool:
        found = power_of(clusters * per_cluster, difference, sd, alpha=alpha, clusters=clusters, icc=icc)
        return found is not None and found >= power

    if difference == 0 or sd <= 0 or per_cluster < 1 or not enough(max(2, MOST // per_cluster)):
        return None
    return _fewest(2, enough)


def most_power(difference: float, sd: float, *, clusters: int, icc: float, alpha: float = 0.05) -> float | None:
    """What power comes near to as the number of pairs in these clusters grows; None without degrees or spread."""
    _check(alpha)
    if clusters < 2 or sd <= 0:
        return None
    if icc <= 0:
        return 1.0 if difference else alpha
    noncentrality = math.sqrt(clusters / icc) * abs(difference) / sd
    return noncentral_power(student_quantile(1 - alpha / 2, clusters - 1), clusters - 1, noncentrality)


def _fewest(low: int, enough: Callable[[int], bool]) -> int:
    """The smallest n >= low that is enough, if all larger ones are."""
    if enough(low):
        return low
    high = low * 2
    while not enough(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def detectable(error: float, degrees: float, *, power: float = 0.8, alpha: float = 0.05) -> float | None:
    """The smallest true difference that an estimate with this standard error shows with probability `power`.

    `degrees` of freedom may be any number from 0.5, as Satterthwaite's are no whole numbers. None without error or
    degrees, or if power is not above alpha (any difference would do).
    """
    _check(alpha, power)
    if error <= 0 or degrees < 0.5 or power <= alpha:
        return None
    critical = student_quantile(1 - alpha / 2, degrees)
    low, high = 0.0, 1.0
    while noncentral_power(critical, degrees, high) < power:
        low, high = high, high * 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if noncentral_power(critical, degrees, middle) < power else (low, middle)
    return (low + high) / 2 * error
