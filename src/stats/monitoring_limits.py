"""The threshold of the CUSUM, and the power of both rules, simulated for a study's own design. Pure functions.

Series without any change are simulated with the clusters, weights and numbers of answers of the study, for several
kinds of chance: every answer a toss of a coin, a mixture of sure and unsure answers, answers that hardly ever vary,
and answers that are nearly always right; and each of them with all answers of a cluster changing together. The
threshold is the highest that any of them needs.
"""

from __future__ import annotations

import math
import random
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from statistics import median
from typing import Literal, get_args

from ..records.series import FoundShare
from .monitoring import Cusum, Design, Monitor

Chance = Literal["even", "mixed", "steady", "skewed"]
CHANCES: tuple[Chance, ...] = get_args(Chance)
_STEPS = 200
"""Probabilities are rounded to this fraction, so that tables can be shared."""


@dataclass(frozen=True)
class Drop:
    """A drop of the mean share from one point on."""

    drop: float
    after: int
    """Points before it, the first one included."""


def threshold(design: Design, *, points: int, level: float, series: int, seed: int) -> float:
    """The limit that at most a share `level` of unchanged series of so many points passes, up or down.

    `points` does not count the first one, which is compared with nothing.
    """
    highest = 0.0
    together = Design({name: replace(one, answers=1) for name, one in design.clusters.items()}, design.floor)
    passing = math.floor(level * series)
    for chance in CHANCES:
        for drawn in (design, together):  # in the second, all answers of a cluster are right, or all are wrong
            draw = random.Random(f"{seed} {chance} {drawn is design}")  # noqa: S311 - a simulation
            tops = sorted(_top(design, drawn, points, chance, draw) for _ in range(series))
            highest = max(highest, tops[-1 - passing])
    return highest


def _top(design: Design, drawn: Design, points: int, chance: Chance, draw: random.Random) -> float:
    """The highest value of the CUSUM in one unchanged series, whose answers are drawn by another design."""
    cusum, top = Cusum(design), 0.0
    for values in simulated(drawn, points + 1, chance, draw):
        cusum.add(values)
        top = max(top, cusum.top_up, cusum.top_down)
    return top


def power(
    design: Design,
    *,
    limit: float,
    level: float,
    points: int,
    change: Drop,
    chance: Chance = "mixed",
    series: int,
    seed: int,
) -> tuple[FoundShare, FoundShare]:
    """How many changed series have an alarm, and how many a claim, in the direction of the change and not before it.

    With a drop of 0: how many unchanged ones have one, in either direction.
    """
    # These words never change: series that exist, and the documents, have numbers that were drawn with them.
    named = f"Change(drop={change.drop!r}, after={change.after!r})"
    draw = random.Random(f"{seed} {chance} {named}")  # noqa: S311 - a simulation
    alarms: list[int] = []
    claims: list[int] = []
    for _ in range(series):
        monitor = Monitor(design, limit=limit, level=level)
        steps = [monitor.add(values) for values in simulated(design, points + 1, chance, draw, change)]
        alarms += _first([step.alarm for step in steps], change)
        claims += _first([step.claim for step in steps], change)
    return _found(alarms, series), _found(claims, series)


def _first(said: Sequence[str | None], change: Drop) -> list[int]:
    """How many points the first alarm took, if there is one that counts."""
    place = next((place for place, one in enumerate(said) if one), None)
    if place is None or (change.drop and (place < change.after or said[place] != "down")):
        return []
    return [place - change.after + 1]


def _found(delays: Sequence[int], series: int) -> FoundShare:
    """The median delay counts the first changed point; there is none if fewer than half of the series were found."""
    missed = [math.inf] * (series - len(delays))
    middle = median([*delays, *missed]) if series else math.inf
    return FoundShare(share=len(delays) / series, delay=None if math.isinf(middle) else middle)


def simulated(
    design: Design, points: int, chance: Chance, draw: random.Random, change: Drop | None = None
) -> Iterator[dict[str, float]]:
    """The values of each cluster at every point of one series."""
    shares = {name: _share(chance, draw) for name in design.clusters}
    total = sum(design.scale(name) for name in shares)
    mean = sum(design.scale(name) * share for name, share in shares.items()) / total
    kept = 1 - change.drop / mean if change and mean > change.drop else 1.0
    sizes = {name: max(1, round(one.answers)) for name, one in design.clusters.items()}
    for point in range(points):
        factor = kept if change and point >= change.after else 1.0
        yield {
            name: bisect(_binomial(size, round(factor * shares[name] * _STEPS)), draw.random()) / size
            for name, size in sizes.items()
        }


def _share(chance: Chance, draw: random.Random) -> float:
    """The probability of a good answer in one cluster."""
    match chance:
        case "even":
            return 0.5
        case "mixed":
            return draw.betavariate(0.4, 0.3)
        case "steady":
            return 0.98 if draw.random() < 0.6 else 0.02
        case "skewed":
            return 0.95


@lru_cache(maxsize=65_536)
def _binomial(n: int, step: int) -> tuple[float, ...]:
    """The distribution function of how many of n answers are good, without its last value."""
    share = step / _STEPS
    if share in (0.0, 1.0):
        return (float(not share),) + (float(not share),) * (n - 1)
    whole, odds = math.lgamma(n + 1), math.log(share) - math.log1p(-share)
    logs = (whole - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * odds for k in range(n))
    return tuple(accumulate(math.exp(one + n * math.log1p(-share)) for one in logs))
