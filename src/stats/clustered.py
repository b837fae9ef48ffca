"""Shares of claims that come in clusters, such as the claims of one reply. Checked by simulation.

Claims of one cluster are alike, so they tell less than as many independent claims. The effective number is the number
of independent claims that would give the same variance; Wilson's interval is computed with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from .bounded import Unit, bounded_mean
from .intervals import student_quantile

ASSUMED_CORRELATION = 0.1
"""Within a cluster, where the data cannot tell: all claims have the same outcome, or there is one cluster."""
_Z = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True)
class ClusterCount:
    """One cluster: how many of its claims have the property."""

    count: int
    n: int


@dataclass(frozen=True)
class ClusteredShare:
    """A proportion with its 95% interval; all None if n is 0, and the interval with too few clusters."""

    count: int
    n: int
    effective: float | None
    """How many independent claims would tell as much; None with one cluster, which cannot tell."""
    value: float | None
    low: float | None
    high: float | None


def effective_size(clusters: Sequence[ClusterCount]) -> float:
    """How many independent claims would tell as much as these. Never more than there are.

    The variance is that of a ratio over clusters; few clusters estimate it badly, so the size is reduced by the square
    of normal to Student's quantile.
    """
    held = [one for one in clusters if one.n]
    n, count = sum(one.n for one in held), sum(one.count for one in held)
    if not n:
        return 0.0
    if len(held) < 2 or count in (0, n):
        mean_size = sum(one.n**2 for one in held) / n
        return n / (1 + (mean_size - 1) * ASSUMED_CORRELATION)
    share, k = count / n, len(held)
    variance = k / (k - 1) * math.fsum((one.count - share * one.n) ** 2 for one in held) / n**2
    ratio = _Z / student_quantile(0.975, k - 1)
    return ratio**2 * min(n, share * (1 - share) / variance if variance else n)


def clustered_share(clusters: Sequence[ClusterCount]) -> ClusteredShare:
    """Wilson's interval with the effective number of claims."""
    n, count = sum(one.n for one in clusters), sum(one.count for one in clusters)
    if not n:
        return ClusteredShare(0, 0, 0.0, None, None, None)
    size, p, z = effective_size(clusters), count / n, _Z
    center = (p + z * z / (2 * size)) / (1 + z * z / size)
    half = z / (1 + z * z / size) * math.sqrt(p * (1 - p) / size + z * z / (4 * size * size))
    low = 0.0 if count == 0 else max(0.0, center - half)
    high = 1.0 if count == n else min(1.0, center + half)
    return ClusteredShare(count, n, size, p, low, high)


def share_by_unit(clusters: Sequence[ClusterCount]) -> ClusteredShare:
    """A share with clusters as the independent units, as for every mean over scenarios; see `bounded`."""
    n, count = sum(one.n for one in clusters), sum(one.count for one in clusters)
    found = bounded_mean([Unit(one.count / one.n, one.n) for one in clusters if one.n])
    effective = None if found.effective is None else min(found.effective, float(n))
    return ClusteredShare(count, n, effective, found.value, found.low, found.high)
