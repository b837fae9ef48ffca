"""95% intervals contain the true share in 95% of studies, however many repeats there are."""

from __future__ import annotations

import math
import random

import pytest

from src.stats.bounded import Stratum, stratified_mean

from .coverage_of_intervals import SHARES, Cell, Chance, beta, coverage, two_point

SIMULATIONS = 300
LEAST = 0.93


def at_least(share: float, simulations: int) -> float:
    """`LEAST`, less what chance explains in so few simulations."""
    return share - 2.5 * math.sqrt(share * (1 - share) / simulations)


@pytest.mark.slow
@pytest.mark.parametrize("chance", [beta, two_point], ids=["beta", "two_point"])
@pytest.mark.parametrize("correlation", [0.1, 0.8], ids=["low", "high"])
@pytest.mark.parametrize("repeats", [1, 3, 10])
@pytest.mark.parametrize("scenarios", [3, 8, 20, 34])
def test_intervals_cover(scenarios: int, repeats: int, correlation: float, chance: Chance) -> None:
    found = [coverage(Cell(scenarios, repeats, correlation, s), chance, SIMULATIONS, 2).after for s in SHARES]
    assert min(found) >= at_least(LEAST, SIMULATIONS), found
    assert sum(found) / len(found) >= 0.94, found


@pytest.mark.slow
@pytest.mark.parametrize("repeats", [1, 3, 10])
def test_with_many_scenarios_intervals_are_not_wider_than_they_must_be(repeats: int) -> None:
    """Shares in the middle of the scale; near 0 and 1 whole counts make every honest interval cover more."""
    for correlation in (0.1, 0.8):
        found = coverage(Cell(34, repeats, correlation, 0.5), beta, 600, 3)
        assert LEAST <= found.after <= 0.98


@pytest.mark.slow
def test_taking_trials_as_units_covers_less_the_more_repeats_there_are() -> None:
    """What was wrong before: the reason for taking scenarios as units."""
    found = [coverage(Cell(20, repeats, 0.8, 0.5), beta, SIMULATIONS, 4).before for repeats in (1, 3, 10)]
    assert found[0] > found[1] > found[2] and found[2] < 0.6


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.1, 0.8], ids=["low", "high"])
@pytest.mark.parametrize("scripts", [2, 3, 6])
def test_intervals_over_scripts_cover_where_questions_are_fixed(scripts: int, correlation: float) -> None:
    """Two scenarios of the study with fixed shares; each script has its own chance around them."""
    draw = random.Random(f"{scripts} {correlation}")
    weights, shares = (7, 9), (0.7, 0.4)
    true = sum(w * s for w, s in zip(weights, shares, strict=True)) / sum(weights)
    covered = 0
    for _ in range(SIMULATIONS):
        strata = []
        for weight, share in zip(weights, shares, strict=True):
            chances = [beta(draw, share, correlation) for _ in range(scripts)]
            values = [sum(draw.random() < p for _ in range(weight)) / weight for p in chances]
            strata.append(Stratum(tuple(values), weight))
        found = stratified_mean(strata)
        assert found.low is not None and found.high is not None
        covered += found.low <= true <= found.high
    assert covered / SIMULATIONS >= at_least(LEAST, SIMULATIONS)
