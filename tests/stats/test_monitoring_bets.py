"""Claims about a repeated study: the e-process is a fair bet, or nearly so, and is never ruined."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from src.stats import monitoring
from src.stats.monitoring import MOST_AT_STAKE, Cusum, Wealth
from tests.cases import each_case

from .monitoring_formulas import Numbers, design_of, points_of, steps_of

weight_lists = st.lists(st.integers(1, 9), min_size=1, max_size=6)


def mean_wealth(values: Numbers, weights: Sequence[int]) -> tuple[float, float]:
    """At the last point, over series, and its standard error."""
    design = design_of(weights)
    found = []
    for one in values:
        cusum, wealth = Cusum(design), Wealth(design)
        for point in points_of(one):
            if difference := cusum.add(point):
                wealth.add(difference)
        found.append(math.exp(wealth.log))
    return float(np.mean(found)), float(np.std(found) / math.sqrt(len(found)))


@each_case("weights", [[3] * 4, [8, 2, 2]])
@each_case("points", [3, 10])
def test_with_normal_noise_nothing_is_won_on_average(weights: list[int], points: int) -> None:
    random = np.random.default_rng(11)
    spread = random.uniform(0.05, 0.12, len(weights))
    mean, error = mean_wealth(0.5 + spread * random.standard_normal((1_000, points, len(weights))), weights)
    assert mean == pytest.approx(1.0, abs=3 * error)
    assert error < 0.05


def wealth_on_average(weights: Sequence[int], points: int, share: float) -> list[float]:
    """At each point: exactly, over all series in which a cluster is right with this probability, or wrong."""
    design, clusters = design_of(weights), len(weights)
    found = [0.0] * points
    for drawn in itertools.product((0.0, 1.0), repeat=points * clusters):
        steps = steps_of(points_of(np.reshape(drawn, (points, clusters))), design, limit=50.0, level=0.05)
        chance = math.prod(share if one else 1 - share for one in drawn)
        found = [sum_ + chance * math.exp(step.log_wealth) for sum_, step in zip(found, steps, strict=True)]
    return found


DRAWN: list[tuple[list[int], int, float]] = [([3], 9, 0.95), ([3], 9, 0.6), ([1], 9, 0.9), ([5, 2], 5, 0.9)]


@each_case(("weights", "points", "share"), DRAWN)
def test_bets_of_fixed_size_are_exactly_fair_however_skewed_answers_are(
    weights: list[int], points: int, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each difference is a contrast of points that the later ones treat alike, so that no product of them wins."""
    monkeypatch.setattr(monitoring, "FIRST_BETS", 10**12)
    assert wealth_on_average(weights, points, share) == pytest.approx([1.0] * points, abs=1e-6)


@each_case(("weights", "points", "share"), DRAWN)
def test_bets_that_follow_the_spread_win_next_to_nothing_on_skewed_answers(
    weights: list[int], points: int, share: float
) -> None:
    assert max(wealth_on_average(weights, points, share)) < 1.02


@settings(max_examples=60, deadline=None)
@given(weight_lists, st.integers(2, 12), st.integers(0, 9_999), st.sampled_from([0.5, 30.0]))
def test_no_bet_loses_more_than_four_fifths_on_one_cluster_and_none_is_ever_ruined(
    weights: list[int], points: int, seed: int, repeats: float
) -> None:
    """Answers are all right or all wrong, and there are so many of them that stakes want to be large."""
    design = design_of(weights, repeats, floor=0.5)
    cusum, wealth = Cusum(design), Wealth(design)
    for row in points_of(np.random.default_rng(seed).integers(0, 2, (points, len(weights))).astype(float)):
        if found := cusum.add(row):
            before = [bet.log_wealth for bet in wealth._bets]
            wealth.add(found)
            after = [bet.log_wealth for bet in wealth._bets]
            assert all(math.isfinite(one) for one in after)
            for one, other in zip(before, after, strict=False):
                assert other - one > len(weights) * math.log(1 - MOST_AT_STAKE)
    assert MOST_AT_STAKE < 1


def test_a_judge_that_fails_on_all_of_many_anchors_does_not_stop_the_program() -> None:
    values = np.ones((6, 600))
    values[5] = 0.0
    last = steps_of(points_of(values), design_of([3] * 600), limit=5.0, level=0.05)[-1]
    assert (last.alarm, last.claim) == ("down", "down")


def test_all_wealth_is_one_before_anything_is_known() -> None:
    """Shares of bets and what is not bet yet: they add up to 1 at every point if nothing is won or lost."""
    steps = steps_of([{"c0": 0.5, "c1": 0.5}] * 30, design_of([3, 3]), limit=5.0, level=0.05)
    assert [step.log_wealth for step in steps] == pytest.approx([0.0] * 30, abs=1e-12)


def too_many_claims(values: Numbers) -> bool:
    """At the level of 5%, and by more than chance."""
    design = design_of([3] * values.shape[2])
    found = [steps_of(points_of(one), design, limit=5.0, level=0.05)[-1].claim is not None for one in values]
    return float(np.mean(found)) > 0.05 + 2 * math.sqrt(0.05 * 0.95 / len(values))


@pytest.mark.parametrize("share", [0.99, pytest.param(0.95, marks=pytest.mark.nightly)])
def test_scenarios_that_rarely_fail_as_a_whole_make_no_more_claims_than_the_level(share: float) -> None:
    assert not too_many_claims((np.random.default_rng(2).random((120, 25, 34)) < share).astype(float))


@pytest.mark.nightly
def test_answers_that_are_rarely_wrong_make_no_more_claims_than_the_level() -> None:
    assert not too_many_claims(np.random.default_rng(2).binomial(6, 0.993, (300, 25, 34)) / 6)


@pytest.mark.nightly
@pytest.mark.parametrize("share", [0.5, 0.85])
def test_answers_that_vary_make_no_more_claims_than_the_level(share: float) -> None:
    assert not too_many_claims(np.random.default_rng(2).binomial(6, share, (120, 25, 34)) / 6)
