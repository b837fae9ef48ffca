"""A share of things of a kind, corrected for the errors of what tells the kind. Pure functions, checked by simulation.

A test finds a share of those that are of the kind (its sensitivity) and wrongly gives the kind to a share of the others
(its false alarms). Both were counted where the truth is known. So an observed share is corrected by Rogan and Gladen's
formula: (observed - false alarms) / (sensitivity - false alarms), cut off at 0 and 1.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from .agreement import quantile
from .bounded import Limits, mid_p_limits
from .clustered import Tally, effective_size

DRAWS = 4_000
PSEUDO_COUNT = 0.5
"""Jeffreys' prior: an error that was not observed is not held impossible."""
_TAIL = 0.025
_LEAST_SIZE, _MOST_SIZE = 0.01, 1e6
_HALVINGS = 25
"""Of the ratio of these two: to five digits."""


@dataclass(frozen=True)
class ErrorRates:
    """What a test did where the truth is known."""

    found: tuple[Tally, ...]
    """Of those of the kind, how many the test gave the kind, in each cluster, such as the scenarios."""
    wrongly: tuple[Tally, ...]
    """Of the others, how many it gave the kind."""

    @property
    def sensitivity(self) -> float:
        return _share(self.found)

    @property
    def false_alarms(self) -> float:
        return _share(self.wrongly)


def _share(clusters: Sequence[Tally]) -> float:
    return sum(one.count for one in clusters) / sum(one.n for one in clusters)


def rogan_gladen(observed: float, sensitivity: float, false_alarms: float) -> float:
    """The true share behind an observed one, if the test's rates are known; may be below 0 or above 1."""
    return (observed - false_alarms) / (sensitivity - false_alarms)


def independent_size(share: float, limits: Limits) -> float:
    """How many independent yes-or-no values would give a share limits as far apart as these, by the mid-P method."""
    width = limits.high - limits.low
    least, most = _LEAST_SIZE, _MOST_SIZE
    for _ in range(_HALVINGS):
        middle = math.sqrt(least * most)
        found = mid_p_limits(share, middle)
        least, most = (middle, most) if found.high - found.low > width else (least, middle)
    return most


def corrected_limits(
    observed: float, size: float, rates: ErrorRates, *, seed: int, draws: int = DRAWS
) -> Limits | None:
    """95% limits of a corrected share, that carry the error of the observed share and of both rates.

    Limits are those of all draws, cut off at 0 and 1, widened to those of the draws in range: where most draws are out
    of range, the first alone would have no width. None if hardly any draw is in range: the rates then do not fit what
    was observed.

    Args:
        observed: the share that the test gave.
        size: the number of independent values that it rests on.
        rates: of the test.
        seed: of the draws.
        draws: how many.
    """
    draw = random.Random(seed)  # noqa: S311 - for draws, not for secrets
    values: list[float] = []
    found_n, wrongly_n = (effective_size(clusters) for clusters in (rates.found, rates.wrongly))
    for _ in range(draws):
        share = _draw(draw, observed * size, size)
        found = _draw(draw, rates.sensitivity * found_n, found_n)
        wrongly = _draw(draw, rates.false_alarms * wrongly_n, wrongly_n)
        if found > wrongly:
            values.append(rogan_gladen(share, found, wrongly))
    values.sort()
    in_range = [value for value in values if 0 <= value <= 1]
    if len(in_range) < _TAIL * draws or len(values) < (1 - _TAIL) * draws:
        return None
    ends = [quantile(listed, tail) for listed in (values, in_range) for tail in (_TAIL, 1 - _TAIL)]
    return Limits(max(0.0, min(ends)), min(1.0, max(ends)))


def _draw(draw: random.Random, count: float, n: float) -> float:
    return draw.betavariate(count + PSEUDO_COUNT, n - count + PSEUDO_COUNT)
