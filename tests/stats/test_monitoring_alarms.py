"""Where an alarm of a repeated study begins, what a single point can do, and what a new segment knows of chance."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from src.stats.monitoring import JUMP, SLACK, ChanceVariance, Cusum, Step, follow
from tests.cases import each_case

from .monitoring_formulas import Numbers, design_of, points_of, shares, steps_of

# The control band


def alarm_if_moved(weights: Sequence[int], points: Sequence[dict[str, float]], to: float) -> str | None:
    """Of the last point, if all of its clusters move equally, so that its value is `to`."""
    design = design_of(weights)
    last = steps_of(points, design, limit=LIMIT, level=0.05)[-1]
    assert last.value is not None
    by = to - last.value
    moved = [*points[:-1], {name: one + by for name, one in points[-1].items()}]
    return steps_of(moved, design, limit=LIMIT, level=0.05)[-1].alarm


LIMIT = 4.0


def check_band(weights: Sequence[int], points: Sequence[dict[str, float]]) -> None:
    least = 1e-6
    last = steps_of(points, design_of(weights), limit=LIMIT, level=0.05)[-1]
    assert last.low and last.high and 0 < last.low < last.high < 1, "at 0 and 1 the band is cut off"
    assert alarm_if_moved(weights, points, last.low + least) is None
    assert alarm_if_moved(weights, points, last.low - least) == "down"
    assert alarm_if_moved(weights, points, last.high - least) is None
    assert alarm_if_moved(weights, points, last.high + least) == "up"


def steady(clusters: int, points: int, seed: int) -> Numbers:
    return np.random.default_rng(seed).uniform(0.45, 0.55, (points, clusters))


@each_case("seed", range(4))
@each_case("weights", [[3] * 3, [3] * 10, [2] * 34])
def test_an_alarm_begins_at_the_edge_of_the_control_band(weights: list[int], seed: int) -> None:
    values = steady(len(weights), 6 + 2 * seed, seed)
    check_band(weights, points_of(values))
    values[-1, 0] = np.nan
    check_band(weights, points_of(values))


def test_an_alarm_of_a_single_cluster_begins_at_the_edge_of_the_control_band() -> None:
    check_band([3], points_of(steady(1, 30, 1)))


@each_case("way", [1, -1])
@each_case("weights", [[3] * 10, [16, 8, 2, 2, 2, 2, 2, 2]])
def test_the_band_is_narrower_where_the_cusum_is_high_already(weights: list[int], way: int) -> None:
    """Then the CUSUM alarms before a single point would."""
    values = steady(len(weights), 12, 9)
    for _ in range(100):
        values[-3:-1] += way * 0.001
        points = points_of(values)
        before, last = steps_of(points, design_of(weights), limit=LIMIT, level=0.05)[-2:]
        if (before.up if way > 0 else before.down) > JUMP + SLACK + 0.5:
            break
    assert before.alarm is None and max(before.up, before.down) > JUMP + SLACK
    check_band(weights, points)
    assert last.low is not None and last.high is not None and last.reference is not None
    above, below = last.high - last.reference, last.reference - last.low
    assert (above < below) == (way > 0)


UNEQUAL = [16, 8, 2, 2, 2, 2, 2, 2]


@each_case("gone", [None, 0, 5])
def test_an_alarm_begins_at_the_edge_of_the_control_band_with_unequal_weights(gone: int | None) -> None:
    values = steady(len(UNEQUAL), 8, 1)
    if gone is not None:
        values[-1, gone] = np.nan
    check_band(UNEQUAL, points_of(values))


def test_value_and_reference_are_of_the_same_clusters() -> None:
    points = [{"c0": 0.5}, {"c0": 0.5}, {"c0": 0.5, "c1": 0.9}]
    last = steps_of(points, design_of([3, 3]), limit=5, level=0.05)[-1]
    assert last.value == last.reference == 0.5


# Single points, and what follows on an alarm


def test_a_single_point_raises_an_alarm_if_it_differs_by_the_threshold_less_the_jump() -> None:
    """The CUSUM alone would not: it takes the slack off, and must pass the whole threshold."""
    values, design, limit = steady(10, 8, 1), design_of([3] * 10), 5.0

    def last(moved: float) -> Step:
        points = values.copy()
        points[-1] += moved
        return steps_of(points_of(points), design, limit=limit, level=0.05)[-1]

    for way, said in ((1, "up"), (-1, "down")):
        low, high = 0.0, 0.5
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (low, middle) if way * last(way * middle).z > limit - JUMP else (middle, high)
        assert last(way * high).z == pytest.approx(way * 4.0)
        assert max(last(way * high).up, last(way * high).down) < limit
        assert last(way * (low - 1e-6)).alarm is None
        assert (last(way * (high + 1e-6)).alarm, last(way * (high + 1e-6)).since) == (said, 7)


def test_a_repaired_drop_is_not_called_a_drop_again() -> None:
    values = 0.7 + 0.05 * np.random.default_rng(3).standard_normal((20, 10))
    values[6:14] -= 0.15
    steps = steps_of(points_of(values), design_of([3] * 10), limit=5.25, level=0.05)
    said = [step.alarm for step in steps]
    assert said[13] == "down"
    repaired = said.index("up")
    assert repaired > 13
    assert set(said[repaired:]) == {"up"}


# What is learned of chance in one segment is used in the next


def test_a_segment_that_learned_noise_has_more_degrees_of_freedom_and_pools_the_squares() -> None:
    weights = [5, 2, 2]
    values = shares(weights, 14, 9)[0]
    design = design_of(weights)
    learned = follow(points_of(values[:8]), design, limit=5.0, level=0.05)[1]
    assert learned.degrees == 7 * 2
    found = {}
    for noise in (None, learned):
        cusum = Cusum(design, noise)
        cusum.add(points_of(values)[8])
        found[noise] = cusum.add(points_of(values)[9])
    alone, with_more = found[None], found[learned]
    assert alone is not None and with_more is not None
    assert (alone.degrees, with_more.degrees) == (2 + 2, 2 + 2 + 14)
    squares = (alone.error**2 * alone.degrees / 3 + learned.squares) / with_more.degrees
    assert with_more.error == pytest.approx(math.sqrt(3 * squares))
    assert (with_more.parts, with_more.reach) == (alone.parts, alone.reach)


def test_noise_of_segments_adds_up_and_the_assumed_part_counts_once() -> None:
    values, design = shares([5, 2, 2], 24, 9)[0], design_of([5, 2, 2])
    learned, each = None, []
    for start in (0, 8, 16):
        part = points_of(values[start : start + 8])
        learned = follow(part, design, limit=5.0, level=0.05, learned=learned)[1]
        each.append(follow(part, design, limit=5.0, level=0.05)[1])
    assert learned is not None
    assert learned.degrees == sum(one.degrees for one in each)
    assert learned.squares == pytest.approx(math.fsum(one.squares for one in each))
    assert Cusum(design).noise == ChanceVariance()


def test_a_new_segment_is_never_compared_with_the_level_of_the_one_before() -> None:
    values, design = steady(10, 20, 5), design_of([3] * 10)
    learned = follow(points_of(values[:10]), design, limit=5.0, level=0.05)[1]
    here, moved = (
        follow(points_of(values[10:] - by), design, limit=5.0, level=0.05, learned=learned)[0] for by in (0.0, 0.4)
    )
    assert (moved[0].reference, moved[0].z, moved[0].up, moved[0].down, moved[0].log_wealth) == (None, 0, 0, 0, 0)
    for one, other in zip(here, moved, strict=True):
        assert (one.z, one.up, one.down, one.log_wealth) == pytest.approx(
            (other.z, other.up, other.down, other.log_wealth)
        )
    assert {(step.alarm, step.claim) for step in moved} == {(None, None)}


def test_bets_do_not_depend_on_learned_noise() -> None:
    values, design = shares([3] * 5, 20, 5)[0], design_of([3] * 5)
    with_more = follow(points_of(values), design, limit=5.0, level=0.05, learned=ChanceVariance(40.0, 200))[0]
    alone = steps_of(points_of(values), design, limit=5.0, level=0.05)
    assert [one.log_wealth for one in with_more] == [one.log_wealth for one in alone]
    assert max(abs(one.z) for one in with_more) < 0.7 * max(abs(one.z) for one in alone)
