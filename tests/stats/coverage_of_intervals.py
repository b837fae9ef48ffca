"""How often 95% intervals contain the true share: the method of version 0.4 (trials as units) and the one in use.

`python -m tests.stats.coverage_of_intervals` prints the table. A scenario has its own chance of a right answer, drawn
around the true share; its questions, in each repeat, are right with that chance. Correlation within a scenario is low
or high. Scenarios have 2 to 6 questions.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from scipy import stats as scipy_stats

from src.stats.bounded import Unit, bounded_mean

SCENARIOS = (3, 5, 8, 12, 20, 34)
REPEATS = (1, 3, 10)
CORRELATIONS = (0.1, 0.8)
SHARES = (0.03, 0.1, 0.5, 0.9, 0.97)
Chance = Callable[[random.Random, float, float], float]


def beta(draw: random.Random, share: float, correlation: float) -> float:
    size = (1 - correlation) / correlation
    return draw.betavariate(share * size, (1 - share) * size)


def two_point(draw: random.Random, share: float, correlation: float) -> float:
    """Scenarios of two kinds, on either side of the mean; nothing in the method was chosen on these."""
    spread = math.sqrt(correlation)
    return share + spread * ((1 - share) if draw.random() < share else -share)


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


def cells() -> Iterator[Cell]:
    for scenarios in SCENARIOS:
        for repeats in REPEATS:
            for correlation in CORRELATIONS:
                for share in SHARES:
                    yield Cell(scenarios, repeats, correlation, share)


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


def _over_trials(values: list[float], share: float) -> bool:
    """Whether Student's t interval over all trials, cut off at 0 and 1, contains the share."""
    n = len(values)
    mean = math.fsum(values) / n
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    half = float(scipy_stats.t.ppf(0.975, n - 1)) * deviation / math.sqrt(n)
    return mean - half <= share <= mean + half


def main() -> None:
    simulations = 1_000
    print("| scenarios | repeats | correlation | before: all shares | now: all shares | now: mean width |")
    print("| ---: | ---: | --- | ---: | ---: | ---: |")
    for scenarios in SCENARIOS:
        for repeats in REPEATS:
            for correlation in CORRELATIONS:
                found = [coverage(Cell(scenarios, repeats, correlation, s), beta, simulations, 1) for s in SHARES]
                old, new = ([f"{100 * getattr(one, name):.1f}" for one in found] for name in ("before", "after"))
                width = math.fsum(one.width for one in found) / len(found)
                name = "low" if correlation < 0.5 else "high"
                print(f"| {scenarios} | {repeats} | {name} | {' '.join(old)} | {' '.join(new)} | {width:.2f} |")


if __name__ == "__main__":
    main()
