"""Worst variants and the order of systems by variant, by hand and against scipy."""

from __future__ import annotations

import random

import pytest
from scipy import stats as scipy_stats

from src.stats.bounded import Unit, bounded_mean
from src.stats.variants import kendall_tau, rank_changes, variant_means, worst_case
from tests.cases import each_case


def test_the_worst_variant_of_each_scenario() -> None:
    values = [
        ("s1", "plain", 1.0),
        ("s1", "plain", 0.5),
        ("s1", "terse", 0.25),
        ("s1", "terse", 0.5),
        ("s2", "b", 0.5),
        ("s2", "a", 0.5),
    ]
    found = worst_case(values)
    first, second = found.scenarios
    assert (first.scenario, first.n, first.variants, first.variant) == ("s1", 4, 2, "terse")
    assert (first.mean, first.worst) == (0.5625, 0.375)
    assert first.gap == pytest.approx(0.5625 - 0.375)
    assert (second.variant, second.gap) == ("a", 0)  # a tie: by name
    assert found.worst == bounded_mean([Unit(0.375), Unit(0.5)])
    less = worst_case(values, less_is_better=True).scenarios[0]
    assert (less.variant, less.worst, less.gap) == ("plain", 0.75, 0.75 - 0.5625)
    assert worst_case([]).worst.value is None and worst_case([]).scenarios == ()


@each_case("seed", range(5))
def test_kendalls_tau(seed: int) -> None:
    draw = random.Random(seed)
    first, second = [draw.randint(0, 4) for _ in range(9)], [draw.randint(0, 4) for _ in range(9)]
    assert kendall_tau(first, second) == pytest.approx(
        float(scipy_stats.kendalltau(first, second).statistic), abs=1e-12
    )
    assert kendall_tau([1, 1, 1], [1, 2, 3]) is None
    assert kendall_tau([1], [2]) is None


def test_a_scenario_with_more_trials_or_variants_weighs_no_more() -> None:
    many = worst_case([("s", "a", 1.0)] * 9 + [("s", "b", 0.0)])
    assert many.scenarios[0].mean == 0.5
    scores = {"a": {"plain": {"s1": [1.0] * 9, "s2": [0.0]}}}
    assert variant_means(scores) == {"a": {"plain": 0.5}}


def by_scenario(*values: float) -> dict[str, list[float]]:
    return {f"s{at}": [value] for at, value in enumerate(values)}


def test_ranks_change_with_the_variant() -> None:
    scores = {
        "a": {"plain": by_scenario(0.9, 0.8, 0.85), "terse": by_scenario(0.9, 0.9), "odd": by_scenario(0.1, 0.2, 0.15)},
        "b": {"plain": by_scenario(0.6, 0.5, 0.55), "terse": by_scenario(0.6, 0.6), "odd": by_scenario(0.5, 0.5, 0.5)},
        "c": {"plain": by_scenario(0.3, 0.2, 0.25), "terse": by_scenario(0.2, 0.2), "odd": by_scenario(0.9, 0.8, 0.85)},
    }
    plain, _, odd = rank_changes(scores, seed=1)
    assert (plain.variant, plain.n, odd.n) == ("plain", 3, 3)
    assert odd.tau == -1 and odd.swapped == (("a", "b"), ("a", "c"), ("b", "c"))
    others = [(0.85 + 0.9) / 2, (0.55 + 0.6) / 2, (0.25 + 0.2) / 2]
    assert odd.tau == pytest.approx(float(scipy_stats.kendalltau([0.15, 0.5, 0.85], others).statistic))
    assert odd.low is None and odd.high is None  # all resamples agree
    assert rank_changes(scores, seed=1) == rank_changes(scores, seed=1)


def test_scenarios_are_resampled_whole() -> None:
    # In s0 the order turns around, in s1 and s2 it does not: resamples without s0, or with s0 alone, differ.
    scores = {
        "a": {"x": by_scenario(0.0, 0.9, 0.9), "y": by_scenario(0.9, 0.9, 0.9)},
        "b": {"x": by_scenario(0.5, 0.8, 0.8), "y": by_scenario(0.8, 0.8, 0.8)},
    }
    first = rank_changes(scores, seed=1)[0]
    assert (first.tau, first.low, first.high) == (-1, -1, 1)


def test_rank_changes_of_very_few_values() -> None:
    assert rank_changes({}, seed=1) == ()
    alone = rank_changes({"a": {"plain": by_scenario(0.5)}, "b": {"plain": by_scenario(0.2), "terse": {}}}, seed=1)
    assert [(one.n, one.tau, one.low) for one in alone] == [(0, None, None), (0, None, None)]
    tied = rank_changes({s: {"x": by_scenario(0.5, 0.5, 0.5), "y": by_scenario(0.5)} for s in "ab"}, seed=1)
    assert [(one.n, one.tau, one.low, one.swapped) for one in tied] == [(2, None, None, ()), (2, None, None, ())]
    two = {
        "a": {"x": by_scenario(0.5, 0.6), "y": by_scenario(0.6)},
        "b": {"x": by_scenario(0.1), "y": by_scenario(0.2)},
    }
    assert [(one.tau, one.low) for one in rank_changes(two, seed=1)] == [(1.0, None), (1.0, None)]  # two scenarios
