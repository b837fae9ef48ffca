"""Both rules of a series, computed again in numpy from what `src/stats/monitoring.py` says of itself; for tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from src.stats.monitoring import Cluster, Design, Step, follow

Numbers = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
FLOOR = 0.05


def design_of(weights: Sequence[float], repeats: float = 2, floor: float = FLOOR) -> Design:
    return Design({f"c{at}": Cluster(one, one * repeats) for at, one in enumerate(weights)}, floor)


def points_of(values: Numbers) -> list[dict[str, float]]:
    """Of one series, by point and cluster; NaN is missing."""
    return [{f"c{at}": float(one) for at, one in enumerate(row) if not math.isnan(one)} for row in values]


def shares(weights: Sequence[int], points: int, seed: int, *, series: int = 1, missing: float = 0.0) -> Numbers:
    random = np.random.default_rng(seed)
    sizes = 2 * np.asarray(weights)
    found = random.binomial(sizes, random.uniform(0.3, 0.9, len(weights)), (series, points, len(weights))) / sizes
    return np.asarray(np.where(random.random(found.shape) < missing, np.nan, found), float)


def steps_of(points: Sequence[dict[str, float]], design: Design, *, limit: float, level: float) -> list[Step]:
    return follow(points, design, limit=limit, level=level)[0]


@dataclass(frozen=True)
class Expected:
    """By series and point."""

    z: Numbers
    up: Numbers
    down: Numbers
    top_up: Numbers
    top_down: Numbers
    log_wealth: Numbers
    squares: Numbers
    """Learned of chance by the end, by series: sums of squares about the shared move."""
    degrees: Numbers


@dataclass(frozen=True)
class _Parts:
    """By series, point and cluster; 0 where a cluster is not compared."""

    compared: Numbers
    own: Numbers
    reach: Numbers
    scale: Numbers

    @property
    def count(self) -> Numbers:
        return np.asarray(self.compared.sum(axis=2))


def followed(
    values: Numbers,
    weights: Sequence[float],
    answers: Sequence[float],
    floor: float,
    *,
    learned: tuple[Numbers, Numbers] | None = None,
    claims: bool = True,
) -> Expected:
    """All series at once; `values` by series, point and cluster, NaN where missing. `learned`: squares and degrees."""
    scale = np.asarray(weights, float) / np.mean(weights)
    per_flip = float(np.mean(scale**2 / np.asarray(answers, float)))
    parts = _parts(values, scale)
    count, total = parts.count, parts.own.sum(axis=2)
    moved = total / np.maximum(parts.reach.sum(axis=2), 1e-300)
    about = ((parts.own - moved[:, :, None] * parts.reach) ** 2).sum(axis=2)
    # One cluster alone moves as all do. Its square is learned after it was judged.
    alone = np.where(count == 1, (parts.own**2).sum(axis=2), 0.0)
    before = learned or (np.zeros(len(values)), np.zeros(len(values)))
    squares = before[0][:, None] + np.cumsum(about + alone, axis=1)
    degrees = before[1][:, None] + np.cumsum(np.where(count == 1, 1, np.maximum(count - 1, 0)), axis=1)
    known = degrees - (count == 1) + 2
    least = 0.05 * 0.95 * per_flip  # chance is never taken to be less than one answer in twenty
    error = np.sqrt(np.maximum(count, 1) * np.maximum((squares - alone + 2 * least) / known, least))
    t = total / error
    z = np.sign(t) * np.sqrt(known * np.log1p(t * t / known)) * (8 * known + 1) / (8 * known + 3)
    up, down = _cusum(z, count), _cusum(-z, count)
    wealth = _log_wealth(parts, per_flip / 4, floor) if claims else np.zeros(z.shape)
    top_up, top_down = (np.where(count > 0, np.maximum(one, 1 + way * z), 0.0) for one, way in ((up, 1), (down, -1)))
    return Expected(z, up, down, top_up, top_down, wealth, squares[:, -1], degrees[:, -1])


def _parts(values: Numbers, scale: Numbers) -> _Parts:
    """The difference to the mean of all points before, times the weight, times sqrt(n / (n + 1))."""
    here = ~np.isnan(values)
    filled = np.where(here, values, 0.0)
    n = np.cumsum(here, axis=1) - here
    compared = here & (n > 0)
    mean = (np.cumsum(filled, axis=1) - filled) / np.maximum(n, 1)
    reach = np.where(compared, scale * np.sqrt(n / (n + 1)), 0.0)
    return _Parts(np.asarray(compared, float), np.asarray((filled - mean) * reach), np.asarray(reach), scale)


def _cusum(z: Numbers, count: Numbers) -> Numbers:
    found = np.zeros(z.shape)
    for at in range(1, z.shape[1]):
        found[:, at] = np.maximum(0, found[:, at - 1] + np.where(count[:, at] > 0, z[:, at] - 0.5, 0.0))
    return found


def _log_wealth(parts: _Parts, coin: float, floor: float) -> Numbers:
    """Bets on a change after each point, of one, two or four floors, up or down; coins count as four points.

    A bet multiplies its wealth by 1 + stake * part for each cluster, and no cluster can take more than 80% of it.
    """
    count, clusters = parts.count, len(parts.scale)
    place = np.cumsum(count > 0, axis=1)
    squares = (parts.own**2).sum(axis=2)
    before, seen = np.cumsum(squares, axis=1) - squares, np.cumsum(count, axis=1) - count
    variance = (before + 4 * clusters * coin) / (seen + 4 * clusters)
    safe = np.maximum(place, 1)
    whole = 1 / (place + 1.0)
    """What is not bet yet: 1 less all shares 1 / (k (k + 1)) so far."""
    for after in range(1, int(place.max()) + 1):
        for size in (1, 2, 4):
            shift = size * floor * after / np.sqrt(safe * (safe + 1.0))
            stake = np.minimum((shift / variance)[:, :, None], 0.8 / parts.scale)
            for sign in (1, -1):
                won = np.log1p(sign * stake * parts.own).sum(axis=2)
                won = np.cumsum(np.where(place >= after, won, 0.0), axis=1)
                whole = whole + np.where(place >= after, np.exp(won) / (6 * after * (after + 1)), 0.0)
    return np.asarray(np.log(whole))
