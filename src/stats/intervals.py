"""Means and proportions with their intervals. Checked against scipy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from .student import student_quantile


@dataclass(frozen=True)
class Estimate:
    n: int
    mean: float | None
    low: float | None
    high: float | None
    """The interval is None if n < 2 or all values are equal: the spread is unknown then."""


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> Estimate:
    """Student's t interval for the mean of scores in [0, 1], clipped to that range."""
    n = len(values)
    if n == 0:
        return Estimate(0, None, None, None)
    mean = math.fsum(values) / n
    if n == 1:
        return Estimate(1, mean, None, None)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    if min(values) == max(values):
        return Estimate(n, mean, None, None)
    half = student_quantile(0.5 + confidence / 2, n - 1) * deviation / math.sqrt(n)
    return Estimate(n, mean, max(0.0, mean - half), min(1.0, mean + half))


@dataclass(frozen=True)
class Interval:
    low: float | None
    high: float | None


NO_INTERVAL = Interval(None, None)


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
