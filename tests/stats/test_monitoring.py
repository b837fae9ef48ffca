"""Alarms and claims about a repeated study: residuals, deviates and both rules, each computed again."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from src.stats.monitoring import (
    LEAST_DEGREES,
    LEAST_FLIPS,
    Cusum,
    Design,
    Step,
    follow,
    normal_deviate,
    student_deviate,
)
from tests.cases import each_case

from .monitoring_formulas import FLOOR, Expected, Numbers, design_of, followed, points_of, shares, steps_of

# Residuals


def test_one_cluster_has_the_recursive_residuals_of_statsmodels() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from statsmodels.regression.recursive_ls import RecursiveLS  # type: ignore[import-untyped]

        values = np.random.default_rng(4).random(15)
        expected = RecursiveLS(values, np.ones(15)).fit().resid_recursive[1:]
    cusum = Cusum(design_of([3]))
    found = [cusum.add({"c0": float(one)}) for one in values]
    assert found[0] is None
    assert [one.total for one in found if one] == pytest.approx(expected.tolist())


@each_case("weights", [[3, 3, 3], [16, 8, 2, 2, 2, 2], [1, 5]])
def test_residuals_of_many_clusters_are_weighted_and_scaled_and_their_error_is_pooled(weights: list[int]) -> None:
    """What all clusters share is a move of their weighted mean. Only what is left of the differences is chance."""
    values = shares(weights, 8, 2)[0]
    scales = np.array(weights) / np.mean(weights)
    cusum = Cusum(design_of(weights))
    pooled = LEAST_DEGREES * LEAST_FLIPS * (1 - LEAST_FLIPS) * np.mean(scales**2 / (2 * np.array(weights)))
    degrees = LEAST_DEGREES
    for n, row in enumerate(points_of(values)):
        found = cusum.add(row)
        if n == 0:
            assert found is None
            continue
        assert found is not None
        differences = values[n] - values[:n].mean(axis=0)
        left = differences - np.average(differences, weights=weights)
        pooled += ((scales * left) ** 2).sum() / (1 + 1 / n)
        degrees += len(weights) - 1
        assert list(found.parts) == pytest.approx((scales * differences / math.sqrt(1 + 1 / n)).tolist())
        assert found.total == pytest.approx(math.fsum(found.parts))
        assert list(found.scales) == pytest.approx(scales.tolist())
        assert found.reach == pytest.approx(len(weights) / math.sqrt(1 + 1 / n))
        assert found.degrees == degrees
        assert found.error == pytest.approx(math.sqrt(len(weights) * pooled / degrees))


@each_case("weights", [[3, 3, 3], [16, 8, 2, 2]])
def test_a_move_that_all_clusters_share_is_no_noise(weights: list[int]) -> None:
    values = np.tile(np.linspace(0.3, 0.9, len(weights)), (5, 1))
    values[3] -= 0.2
    values[4] += 0.1
    noise = follow(points_of(values), design_of(weights), limit=5.0, level=0.05)[1]
    assert (noise.squares, noise.degrees) == pytest.approx((0.0, 4 * (len(weights) - 1)), abs=1e-12)


def test_a_single_cluster_is_measured_by_the_points_before_it_only() -> None:
    """Otherwise the first change would hide itself."""
    first = 2 * 0.05 * 0.95 / 6
    cusum = Cusum(design_of([3]))
    cusum.add({"c0": 0.5})
    one, two = cusum.add({"c0": 0.9}), cusum.add({"c0": 0.7})
    assert one is not None and two is not None
    assert one.total == pytest.approx(0.4 * math.sqrt(1 / 2))
    assert (one.degrees, one.error) == pytest.approx((2, math.sqrt(first / 2)))
    assert (two.degrees, two.error) == pytest.approx((3, math.sqrt((first + 0.08) / 3)))


# Deviates


@each_case("degrees", [2, 3, 4, 5, 8, 15, 40, 150, 800])
def test_a_deviate_is_that_of_scipy(degrees: int) -> None:
    """To 0.5 / degrees**2 up to three standard deviations: 0.125 for 2 degrees, 0.005 for 10."""
    for z in np.linspace(-3, 3, 61):
        t = float(stats.t.isf(stats.norm.sf(abs(z)), degrees) * np.sign(z))
        assert normal_deviate(t, degrees) == pytest.approx(z, abs=max(0.5 / degrees**2, 1e-4))


@given(st.floats(-40, 40), st.integers(2, 2_000))
def test_the_two_deviates_undo_each_other(t: float, degrees: int) -> None:
    assert student_deviate(normal_deviate(t, degrees), degrees) == pytest.approx(t, rel=1e-9, abs=1e-9)


# Both rules, computed again from what the module says of itself


def first(said: Sequence[str | None]) -> tuple[int, str] | None:
    return next(((at, one) for at, one in enumerate(said) if one), None)


def alarms(expected: Expected, at: int, limit: float) -> list[str | None]:
    return [
        "up" if up > limit else "down" if down > limit else None
        for up, down in zip(expected.top_up[at], expected.top_down[at], strict=True)
    ]


@each_case("missing", [0.0, 0.1, 0.5])
@each_case("weights", [[3], [3, 3], [5, 1], [16, 8, 2, 2, 2], [3] * 12])
def test_alarms_and_claims_are_those_of_the_formulas(weights: list[int], missing: float) -> None:
    """In two segments. The second one starts anew, but knows what the first one showed of chance."""
    values = shares(weights, 32, 5, series=12, missing=missing)
    for start in (0, 16):
        values[6:, start + 9 : start + 16] = np.maximum(0.0, values[6:, start + 9 : start + 16] - 0.3)
    answers = [2.0 * one for one in weights]
    before = followed(values[:, :16], weights, answers, FLOOR)
    after = followed(values[:, 16:], weights, answers, FLOOR, learned=(before.squares, before.degrees))
    design, limit, level = design_of(weights), 3.2, 0.5
    for at, one in enumerate(values):
        learned = None
        for part, expected in ((one[:16], before), (one[16:], after)):
            steps, learned = follow(points_of(part), design, limit=limit, level=level, learned=learned)
            said = first([step.alarm for step in steps])
            until = said[0] if said else len(steps)  # an alarm sets the CUSUM of the other direction back
            for name, count in (("z", None), ("up", until), ("down", until), ("log_wealth", None)):
                shown = [getattr(step, name) for step in steps][:count]
                assert shown == pytest.approx(getattr(expected, name)[at].tolist()[:count], abs=1e-9)
            assert (learned.squares, learned.degrees) == pytest.approx((expected.squares[at], expected.degrees[at]))
            assert said == first(alarms(expected, at, limit))
            rich = np.logical_or.accumulate(expected.log_wealth[at] >= -math.log(level))
            assert [step.claim is not None for step in steps] == rich.tolist()
    tops = np.maximum(before.top_up, before.top_down).max(axis=1)
    assert (tops > limit).any(), "some series must have an alarm"


def test_value_and_reference_are_weighted_means_of_the_clusters_that_are_there() -> None:
    points = [{"c0": 0.2, "c1": 0.6}, {"c0": 0.4, "c1": 0.6}, {"c1": 0.9}]
    first, second, third = steps_of(points, design_of([1, 3]), limit=5, level=0.05)
    assert first.value == pytest.approx(0.5)
    assert (first.reference, first.low, first.high) == (None, None, None)
    assert (second.value, second.reference) == pytest.approx((0.55, 0.5))
    assert (third.value, third.reference) == pytest.approx((0.9, 0.6))


def test_a_change_is_dated_and_a_claim_stays_and_names_its_direction() -> None:
    noise = 0.02 * np.random.default_rng(3).standard_normal((16, 12))
    values = 0.7 + noise
    values[5:10] -= 0.3
    values[10:] += 0.2
    steps = steps_of(points_of(values), design_of([3] * 12), limit=5.0, level=0.05)
    assert [step.alarm for step in steps[:6]] == [None] * 5 + ["down"]
    assert steps[5].since == 5
    assert (steps[-1].alarm, steps[-1].since) == ("up", 10)
    claims = [step.claim for step in steps]
    assert claims[:5] == [None] * 5 and set(claims[-8:]) == {"down"}


# What must not matter


weight_lists = st.lists(st.integers(1, 9), min_size=1, max_size=6)


@st.composite
def series(draw: st.DrawFn) -> tuple[list[int], Numbers]:
    weights = draw(weight_lists)
    values = shares(
        weights, draw(st.integers(2, 9)), draw(st.integers(0, 9_999)), missing=draw(st.sampled_from([0.0, 0.3]))
    )
    return weights, values[0]


def numbers(steps: Sequence[Step]) -> list[tuple[float, ...]]:
    return [(one.z, one.up, one.down, one.log_wealth, one.low or 0.0, one.high or 0.0) for one in steps]


def close(found: Sequence[Step], expected: Sequence[Step]) -> None:
    for one, other in zip(numbers(found), numbers(expected), strict=True):
        assert one == pytest.approx(other, abs=1e-9)
    assert [one.alarm for one in found] == [one.alarm for one in expected]
    assert [one.claim for one in found] == [one.claim for one in expected]


@settings(max_examples=60, deadline=None)
@given(series(), st.randoms(use_true_random=False))
def test_the_order_of_clusters_does_not_matter(drawn: tuple[list[int], Numbers], shuffler: random.Random) -> None:
    weights, values = drawn
    design = design_of(weights)
    names = list(design.clusters)
    shuffler.shuffle(names)
    turned = Design({name: design.clusters[name] for name in names}, FLOOR)
    points = points_of(values)
    mixed = [{name: point[name] for name in names if name in point} for point in points]
    close(steps_of(mixed, turned, limit=1.5, level=0.6), steps_of(points, design, limit=1.5, level=0.6))


@settings(max_examples=60, deadline=None)
@given(series())
def test_wrong_answers_mirror_right_ones(drawn: tuple[list[int], Numbers]) -> None:
    weights, values = drawn
    one = steps_of(points_of(values), design_of(weights), limit=1.5, level=0.6)
    other = steps_of(points_of(1 - values), design_of(weights), limit=1.5, level=0.6)
    for here, there in zip(one, other, strict=True):
        assert (here.z, here.up, here.down) == pytest.approx((-there.z, there.down, there.up), abs=1e-9)
        assert here.log_wealth == pytest.approx(there.log_wealth)
        assert (here.alarm == "up", here.alarm == "down") == (there.alarm == "down", there.alarm == "up")
        assert (here.claim == "up", here.claim == "down") == (there.claim == "down", there.claim == "up")


@settings(max_examples=60, deadline=None)
@given(series(), st.integers(0, 9_999), st.sampled_from([0.1, 7.0]))
def test_neither_the_level_of_a_scenario_nor_the_unit_of_weights_matters(
    drawn: tuple[list[int], Numbers], seed: int, factor: float
) -> None:
    weights, values = drawn
    moved = values + np.random.default_rng(seed).uniform(-1, 1, len(weights))
    design = design_of(weights)
    other = Design({n: replace(one, weight=factor * one.weight) for n, one in design.clusters.items()}, FLOOR)
    found = steps_of(points_of(moved), other, limit=1.5, level=0.6)
    expected = steps_of(points_of(values), design, limit=1.5, level=0.6)
    for one, two in zip(found, expected, strict=True):
        assert (one.z, one.up, one.down, one.log_wealth) == pytest.approx(
            (two.z, two.up, two.down, two.log_wealth), abs=1e-8
        )


@each_case("weights", [[3], [3, 3], [16, 8, 2, 2]])
def test_answers_that_never_vary_never_alarm(weights: list[int]) -> None:
    levels = np.linspace(0, 1, len(weights)) if len(weights) > 1 else np.array([0.7])
    steps = steps_of(points_of(np.tile(levels, (80, 1))), design_of(weights), limit=1.01, level=0.9)
    assert {(step.alarm, step.claim) for step in steps} == {(None, None)}
    assert [step.z for step in steps] == pytest.approx([0.0] * 80, abs=1e-9)


LIMITS = [(1, 10.8), (2, 7.4), (10, 5.25), (34, 5.17)]
"""Thresholds as simulated for so many scenarios of three questions."""


@each_case("at", [1, 10, 24])
@each_case(("clusters", "limit"), LIMITS)
def test_one_answer_that_differs_after_many_that_did_not_is_no_alarm(clusters: int, limit: float, at: int) -> None:
    values = np.ones((25, clusters))
    values[at, 0] = 5 / 6
    steps = steps_of(points_of(values), design_of([3] * clusters), limit=limit, level=0.05)
    assert {(step.alarm, step.claim) for step in steps} == {(None, None)}


@each_case(("clusters", "limit"), LIMITS[2:])
def test_one_answer_that_differs_after_a_segment_without_any_is_no_alarm(clusters: int, limit: float) -> None:
    values = np.ones((25, clusters))
    design = design_of([3] * clusters)
    learned = follow(points_of(values), design, limit=limit, level=0.05)[1]
    values[20, 0] = 5 / 6
    steps = follow(points_of(values), design, limit=limit, level=0.05, learned=learned)[0]
    assert {step.alarm for step in steps} == {None}


def test_a_point_without_any_cluster_changes_nothing() -> None:
    values = shares([3, 3, 5], 9, 1)[0]
    points = points_of(values)
    design = design_of([3, 3, 5])
    whole = steps_of(points, design, limit=1.0, level=0.6)
    holed = steps_of([*points[:4], {}, *points[4:]], design, limit=1.0, level=0.6)
    assert (holed[4].value, holed[4].reference, holed[4].z) == (None, None, 0.0)
    assert (holed[4].up, holed[4].down, holed[4].log_wealth) == (whole[3].up, whole[3].down, whole[3].log_wealth)
    assert numbers(holed[5:]) == numbers(whole[4:])
