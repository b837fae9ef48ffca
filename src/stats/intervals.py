"""Proportions of independent values with their intervals. Checked against scipy."""

from __future__ import annotations

import math
from dataclasses import dataclass
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
