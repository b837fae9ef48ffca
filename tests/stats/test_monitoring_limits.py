"""The threshold of alarms and the power of both rules: what is simulated, and what is made of it."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from src.stats.monitoring import Cluster, Cusum, Design
from src.stats.monitoring_limits import CHANCES, Chance, Drop, _binomial, _first, power, simulated, threshold
from tests.cases import each_case

from .monitoring_formulas import FLOOR, Numbers, design_of, followed

KINDS: list[tuple[Chance, bool]] = [(chance, alone) for chance in CHANCES for alone in (True, False)]
"""Answers vary one by one, or all of a cluster together."""


def tops(weights: Sequence[int], points: int, kind: tuple[Chance, bool], count: int, seed: int) -> Numbers:
    """The highest that each simulated series comes to, by the CUSUM or in a single point."""
    chance, alone = kind
    draw = random.Random(f"{seed} {chance} {alone}")
    drawn = design_of(weights)
    if not alone:
        drawn = Design({name: Cluster(one.weight, 1) for name, one in drawn.clusters.items()}, FLOOR)
    names = list(drawn.clusters)
    values = np.array(
        [[[row[name] for name in names] for row in simulated(drawn, points + 1, chance, draw)] for _ in range(count)]
    )
    assert alone or set(np.unique(values)) <= {0.0, 1.0}
    found = followed(values, weights, [2.0 * one for one in weights], FLOOR, claims=False)
    return np.sort(np.maximum(found.top_up, found.top_down).max(axis=1))


@each_case("weights", [[3], [4, 1], [3] * 5, [3] * 6])
def test_the_threshold_is_passed_by_the_level_in_the_worst_kind_of_chance_and_by_fewer_in_others(
    weights: list[int],
) -> None:
    found = threshold(design_of(weights), points=8, level=0.06, series=90, seed=3)
    each = {kind: tops(weights, 8, kind, 90, 3) for kind in KINDS}
    passed = [int((one > found + 1e-9).sum()) for one in each.values()]
    assert max(passed) <= math.floor(0.06 * 90)
    assert found == pytest.approx(max(float(one[-1 - 5]) for one in each.values()))


@each_case("weights", [[3], [4, 1], [16, 8, 2, 2, 2, 2]])
def test_answers_that_change_together_raise_the_threshold(weights: list[int]) -> None:
    found = threshold(design_of(weights), points=12, level=0.05, series=200, seed=3)
    alone = max(float(tops(weights, 12, (chance, True), 200, 3)[-1 - 10]) for chance in CHANCES)
    assert found > alone + 0.5


def test_the_limit_of_single_points_raises_the_threshold() -> None:
    weights = [3] * 6
    found = threshold(design_of(weights), points=3, level=0.05, series=400, seed=3)
    design, draw = design_of(weights), random.Random("3 even True")
    cusum = []
    for _ in range(400):
        one, top = Cusum(design), 0.0
        for values in simulated(design, 4, "even", draw):
            one.add(values)
            top = max(top, one.up, one.down)
        cusum.append(top)
    assert found > sorted(cusum)[-1 - 20] + 0.3


def test_the_same_seed_has_the_same_threshold_and_another_one_does_not() -> None:
    def once(seed: int, level: float = 0.05, points: int = 10) -> float:
        return threshold(design_of([3, 3, 5]), points=points, level=level, series=60, seed=seed)

    assert once(1) == once(1)
    assert once(1) != once(2)
    assert once(1, level=0.01) > once(1) > once(1, level=0.3)
    assert once(1, points=40) > once(1) > once(1, points=2)


@each_case(("answers", "share"), [(1, 0.5), (6, 0.98), (32, 0.02), (96, 0.95), (6, 0.0), (6, 1.0), (50, 0.995)])
def test_simulated_answers_are_binomial(answers: int, share: float) -> None:
    expected = stats.binom.cdf(np.arange(answers), answers, share)
    assert _binomial(answers, round(share * 200)) == pytest.approx(expected.tolist(), abs=1e-9)


@each_case(("answers", "share"), [(150, 0.995), (200, 0.98), (300, 0.95), (1_100, 0.5)])
def test_many_simulated_answers_are_binomial(answers: int, share: float) -> None:
    expected = stats.binom.cdf(np.arange(answers), answers, share)
    assert _binomial(answers, round(share * 200)) == pytest.approx(expected.tolist(), abs=1e-6)


@each_case("chance", CHANCES)
def test_the_weighted_mean_drops_by_what_was_asked_for(chance: Chance) -> None:
    weights, draw = [9, 3, 3, 3], random.Random(6)
    design, change = design_of(weights), Drop(0.2, 3)
    falls = []
    for _ in range(400):
        values = [list(row.values()) for row in simulated(design, 6, chance, draw, change)]
        means = np.average(np.array(values), axis=1, weights=weights)
        if means[:3].mean() > 0.35:  # Where there is enough to lose.
            falls.append(means[:3].mean() - means[3:].mean())
    error = float(np.std(falls)) / math.sqrt(len(falls))
    assert float(np.mean(falls)) == pytest.approx(0.2, abs=3 * error + 0.01)


def test_a_large_drop_is_found_at_once_and_an_alarm_before_it_does_not_count() -> None:
    design = design_of([3] * 8)

    def of(limit: float, level: float, drop: float) -> tuple[float, float | None, float, float | None]:
        alarm, claim = power(
            design, limit=limit, level=level, points=10, change=Drop(drop, 5), chance="skewed", series=60, seed=1
        )
        return alarm.share, alarm.delay, claim.share, claim.delay

    assert of(4.5, 0.05, 0.6) == (1.0, 1, 1.0, 2)
    early = of(0.01, 0.999_999, 0.6)
    assert early[0] < 0.1 and early[1] is None
    assert of(0.01, 0.05, 0.0)[0] == 1.0
    assert of(50.0, 1e-30, 0.0) == (0.0, None, 0.0, None)


def test_only_a_first_alarm_downward_and_not_before_the_drop_counts_as_found() -> None:
    drop, nothing = Drop(0.1, 2), Drop(0.0, 2)
    assert _first([None, None, "down", "up"], drop) == [1]
    assert _first([None, None, None, "down"], drop) == [2]
    assert _first([None, None, "up", "down"], drop) == []
    assert _first([None, "down", "down"], drop) == []
    assert _first([None, None, "up"], nothing) == [1]
    assert _first([None, None], nothing) == []
