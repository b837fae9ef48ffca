"""A mean with its interval. Pure Python, so that the base install needs no numerical library; checked against scipy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist


@dataclass(frozen=True)
class Estimate:
    n: int
    mean: float | None
    low: float | None
    high: float | None
    """The interval is None where n < 2 or all values are equal: nothing is known of the spread then."""


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> Estimate:
    """Student's t interval for the mean of scores in [0, 1], cut to that range."""
    n = len(values)
    if n == 0:
        return Estimate(0, None, None, None)
    mean = math.fsum(values) / n
    if n == 1:
        return Estimate(1, mean, None, None)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    if min(values) == max(values):
        return Estimate(n, mean, None, None)
    half = t_quantile(0.5 + confidence / 2, n - 1) * deviation / math.sqrt(n)
    return Estimate(n, mean, max(0.0, mean - half), min(1.0, mean + half))


@dataclass(frozen=True)
class Share:
    """A proportion with its interval; all None where n is 0."""

    count: int
    n: int
    value: float | None
    low: float | None
    high: float | None


def wilson(count: int, n: int, confidence: float = 0.95) -> Share:
    """Wilson's score interval for a proportion: stays in [0, 1] and has a width at 0 and at 1."""
    if n == 0:
        return Share(0, 0, None, None, None)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    p = count / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low = 0.0 if count == 0 else max(0.0, centre - half)
    high = 1.0 if count == n else min(1.0, centre + half)
    return Share(count, n, p, low, high)


def t_quantile(p: float, degrees: int) -> float:
    """The p-quantile of Student's t, for p >= 0.5, by bisection on its distribution function."""
    low, high = 0.0, 1.0
    while _t_cdf(high, degrees) < p:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if _t_cdf(middle, degrees) < p:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _t_cdf(t: float, degrees: int) -> float:
    return 1 - 0.5 * _incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t))


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Lentz's method)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x) - math.log(a)
    )
    tiny = 1e-300
    fraction, c, d = 1.0, 1.0, 0.0
    for step in range(1_000):
        m = step // 2
        if step == 0:
            term = 1.0
        elif step % 2 == 0:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / (1 + term * d or tiny)
        c = 1 + term / c or tiny
        fraction *= c * d
        if abs(1 - c * d) < 1e-15 and step:
            break
    return front * (fraction - 1)
