"""How often 95% intervals contain the true share: the method of release 0.4 (trials as units) and the one in use.

`python -m tests.stats.coverage_of_intervals` prints the table of docs/intervals.md. A scenario has its own chance of a
right answer, drawn around the true share; its questions, in each repeat, are right with that chance. Scenarios have 2 to
6 questions. Correlation within a scenario is low or high. The chances come from one of three distributions; the
constants of the method were chosen on the first.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from scipy import optimize
from scipy import stats as scipy_stats

from src.stats.bounded import Unit, bounded_mean

SCENARIOS = (3, 5, 8, 12, 20, 34)
REPEATS = (1, 3, 10)
CORRELATIONS = {"low": 0.1, "high": 0.8}
SHARES = (0.03, 0.1, 0.5, 0.9, 0.97)
SIMULATIONS = 1_000
Chance = Callable[[random.Random, float, float], float]


def beta(draw: random.Random, share: float, correlation: float) -> float:
    size = (1 - correlation) / correlation
    return draw.betavariate(share * size, (1 - share) * size)


def two_point(draw: random.Random, share: float, correlation: float) -> float:
    """Scenarios of two kinds, on either side of the mean: near 0 and 1, a few scenarios are unlike all others."""
    spread = math.sqrt(correlation)
    return share + spread * ((1 - share) if draw.random() < share else -share)


def logit_normal(draw: random.Random, share: float, correlation: float) -> float:
    """The chance of a logistic model with a normal effect of the scenario, as mixed models assume it."""
    deviation = 1.0 if correlation < 0.5 else 5.0
    return _logistic(_center(share, deviation) + deviation * draw.gauss(0, 1))


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


@cache
def _center(share: float, deviation: float) -> float:
    """Where the effects are centered if the mean of the chances is `share`."""
    points = [n / 100 for n in range(-600, 601)]
    weights = [math.exp(-point * point / 2) for point in points]

    def mean(center: float) -> float:
        values = (weight * _logistic(center + deviation * point) for weight, point in zip(weights, points, strict=True))
        return math.fsum(values) / math.fsum(weights)

    return float(optimize.brentq(lambda center: mean(center) - share, -60, 60))


@dataclass(frozen=True)
class Cell:
    scenarios: int
    repeats: int
    correlation: float
    share: float


@dataclass(frozen=True)
class Covered:
    before: float
    after: float
    width: float
    """Mean width of the interval in use."""


def coverage(cell: Cell, chance: Chance, simulations: int, seed: int) -> Covered:
    draw = random.Random(f"{seed} {cell}")
    before = after = 0
    width = 0.0
    for _ in range(simulations):
        trials: list[float] = []
        units: list[Unit] = []
        for at in range(cell.scenarios):
            questions = at % 5 + 2
            p = chance(draw, cell.share, cell.correlation)
            right = [sum(draw.random() < p for _ in range(questions)) / questions for _ in range(cell.repeats)]
            trials += right
            units.append(Unit(math.fsum(right) / len(right), questions))
        before += _over_trials(trials, cell.share)
        found = bounded_mean(units)
        assert found.low is not None and found.high is not None
        after += found.low <= cell.share <= found.high
        width += found.high - found.low
    return Covered(before / simulations, after / simulations, width / simulations)


@cache
def _t(degrees: int) -> float:
    return float(scipy_stats.t.ppf(0.975, degrees))


def _over_trials(values: list[float], share: float) -> bool:
    """Whether Student's t interval over all trials, as release 0.4 had it, contains the share."""
    n = len(values)
    mean = math.fsum(values) / n
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    half = _t(n - 1) * deviation / math.sqrt(n)
    return mean - half <= share <= mean + half


def lines(simulations: int = SIMULATIONS) -> Iterator[str]:
    """The table: one line per design, with the coverage for each of `SHARES` in percent."""
    shares = ", ".join(f"{share:.0%}" for share in SHARES)
    yield f"| scenarios | repeats | correlation | before: true share {shares} | now: true share {shares} | now: mean width |"
    yield "| ---: | ---: | --- | --- | --- | ---: |"
    for scenarios in SCENARIOS:
        for repeats in REPEATS:
            for name, correlation in CORRELATIONS.items():
                found = [coverage(Cell(scenarios, repeats, correlation, s), beta, simulations, 1) for s in SHARES]
                old, new = (", ".join(f"{100 * getattr(one, at):.1f}" for one in found) for at in ("before", "after"))
                width = math.fsum(one.width for one in found) / len(found)
                yield f"| {scenarios} | {repeats} | {name} | {old} | {new} | {width:.2f} |"


def main() -> None:
    for line in lines():
        print(line, flush=True)


if __name__ == "__main__":
    main()
