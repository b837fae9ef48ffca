"""Proportions of independent values with their intervals. Checked against scipy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist


@dataclass(frozen=True)
class Share:
    """A proportion with its interval; all None if n is 0."""

    count: int
    n: int
    value: float | None
    low: float | None
    high: float | None


def wilson(count: int, n: int, confidence: float = 0.95) -> Share:
    """Wilson's score interval for a proportion: it stays in [0, 1], and is not empty at 0 and 1."""
    if n == 0:
        return Share(0, 0, None, None, None)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    p = count / n
    center = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low = 0.0 if count == 0 else max(0.0, center - half)
    high = 1.0 if count == n else min(1.0, center + half)
    return Share(count, n, p, low, high)


# Student's t distribution in pure Python: the base install has no numerical library. Checked against scipy.


def student_cdf(t: float, degrees: float) -> float:
    """The distribution function, for any number of degrees of freedom above 0."""
    # There are two equivalent forms. For a small t, the second one would lose all its digits.
    square = t * t
    if square < degrees:
        tail = 0.5 - 0.5 * incomplete_beta(0.5, degrees / 2, square / (degrees + square))
    else:
        tail = 0.5 * incomplete_beta(degrees / 2, 0.5, degrees / (degrees + square))
    return 1 - tail if t > 0 else tail


@lru_cache(maxsize=4_096)
def student_quantile(p: float, degrees: float) -> float:
    """The quantile for 0 < p < 1 and any number of degrees of freedom above 0, by bisection."""
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


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function, by its continued fraction, which converges fast on one side only."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _continued_fraction(b, a, 1 - x)
    return _continued_fraction(a, b, x)


def _continued_fraction(a: float, b: float, x: float) -> float:
    """By Lentz's method."""
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
