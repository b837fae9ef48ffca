"""Both rules of a series, computed again in numpy from what `src/stats/monitoring.py` says of itself; for tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from src.stats.monitoring import Cluster, Design

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


@dataclass(frozen=True)
class Followed:
    """By series and point."""

    z: Numbers
    up: Numbers
    down: Numbers
    log_wealth: Numbers


def followed(values: Numbers, weights: Sequence[float], answers: Sequence[float], floor: float) -> Followed:
    """All series at once; `values` by series, point and cluster, NaN where missing."""
    series, points, clusters = values.shape
    scale = np.asarray(weights, float) / np.mean(weights)
    per_flip = float(np.mean(scale**2 / np.asarray(answers, float)))
    here = ~np.isnan(values)
    filled = np.where(here, values, 0.0)
    n = np.cumsum(here, axis=1) - here
    compared = here & (n > 0)
    mean = (np.cumsum(filled, axis=1) - filled) / np.maximum(n, 1)
    residual = np.where(compared, scale * (filled - mean) * np.sqrt(n / (n + 1)), 0.0)
    count, total, squares = compared.sum(axis=2), residual.sum(axis=2), (residual**2).sum(axis=2)
    some = np.maximum(count, 1)
    about = np.where(compared, (residual - (total / some)[:, :, None]) ** 2, 0.0).sum(axis=2)
    alone = np.where(count == 1, squares, 0.0)
    spread = 2 * 0.05 * 0.95 * per_flip + np.cumsum(about + alone, axis=1) - alone
    degrees = 2 + np.cumsum(np.where(count == 1, 1, np.maximum(count - 1, 0)), axis=1) - (count == 1)
    t = total / np.sqrt(some * spread / degrees)
    z = np.sign(t) * np.sqrt(degrees * np.log1p(t * t / degrees)) * (8 * degrees + 1) / (8 * degrees + 3)
    up, down = np.zeros((series, points)), np.zeros((series, points))
    for at in range(1, points):
        step = np.where(count[:, at] > 0, 1.0, 0.0)
        up[:, at] = np.maximum(0, up[:, at - 1] + step * (z[:, at] - 0.5))
        down[:, at] = np.maximum(0, down[:, at - 1] - step * (z[:, at] + 0.5))
    return Followed(z, up, down, _log_wealth(count, total, squares, clusters, per_flip / 4, floor))


def _log_wealth(count: Numbers, total: Numbers, squares: Numbers, clusters: int, coin: float, floor: float) -> Numbers:
    """Bets on a change after each point, of one, two or four floors, up or down; coins count as four points."""
    place = np.cumsum(count > 0, axis=1)
    before, seen = np.cumsum(squares, axis=1) - squares, np.cumsum(count, axis=1) - count
    variance = (before + 4 * clusters * coin) / (seen + 4 * clusters)
    safe = np.maximum(place, 1)
    logs = [-np.log(place + 1.0)]
    for after in range(1, int(place.max()) + 1):
        for size in (1, 2, 4):
            shift = size * floor * after / np.sqrt(safe * (safe + 1.0))
            stake = np.where((place >= after) & (count > 0), shift / variance, 0.0)
            won, paid = np.cumsum(stake * total, axis=1), np.cumsum((stake**2) * squares / 2, axis=1)
            for sign in (1, -1):
                held = sign * won - paid - math.log(6 * after * (after + 1))
                logs.append(np.where(place >= after, held, -np.inf))
    return np.asarray(special.logsumexp(np.array(logs), axis=0))
