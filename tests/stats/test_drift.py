"""Drift between two runs: verdicts, their error rates, and codes by question."""

from __future__ import annotations

import random

import pytest
from scipy import stats as scipy_stats

from src.stats.bounded import DIFFERENCE, bounded_by_cluster
from src.stats.comparison import holm
from src.stats.drift import drift, question_drift


def runs(
    draw: random.Random, shift: float, *, clusters: int = 12, noise: float = 0.1
) -> list[tuple[str, float, float]]:
    pairs = []
    for at in range(clusters):
        moved = shift + draw.gauss(0, noise / 2)
        for _ in range(3):
            before = draw.random()
            pairs.append((str(at), before, before + moved + draw.gauss(0, noise)))
    return pairs


def test_three_verdicts() -> None:
    draw = random.Random(1)
    fell = drift(runs(draw, -0.3), floor=0.1, seed=1)
    assert fell.verdict == "drifted" and fell.difference.mean is not None and fell.difference.mean < -0.2
    still = drift(runs(draw, 0.0, clusters=40), floor=0.1, seed=1)
    assert still.verdict == "no evidence" and still.low is not None and still.low > -0.1
    assert drift(runs(draw, 0.0, clusters=4, noise=0.5), floor=0.1, seed=1).verdict == "cannot tell"
    small = drift(runs(draw, 0.05, clusters=40, noise=0.02), floor=0.1, seed=1)
    assert small.difference.p is not None and small.difference.p < 0.05 and small.verdict == "no evidence"


def test_few_scenarios_never_show_that_nothing_changed() -> None:
    """One stray answer among equal ones must not say more than none."""
    for clusters in (6, 20, 58):
        pairs = [(str(at), 0.5, 0.5) for at in range(clusters)]
        stray = [("0", 0.5, 0.5 + 1 / 300), *pairs[1:]]
        assert drift(stray, floor=0.05, seed=1).verdict == "cannot tell"
    many = [("0", 0.5, 0.5 + 1 / 300), *((str(at), 0.5, 0.5) for at in range(1, 60))]
    assert drift(many, floor=0.05, seed=1).verdict == "no evidence"


def test_the_inner_interval_is_that_of_two_one_sided_tests() -> None:
    draw = random.Random(2)
    pairs = [(str(at), draw.random(), draw.random()) for at in range(15)]
    found = drift(pairs, floor=0.1, alpha=0.05, seed=1)
    changes = [(c, after - before) for c, before, after in pairs]
    inner, outer = (bounded_by_cluster(changes, DIFFERENCE, confidence) for confidence in (0.9, 0.95))
    assert (found.low, found.high) == (inner.low, inner.high)
    assert (found.difference.low, found.difference.high) == (outer.low, outer.high)
    assert found == drift(pairs, floor=0.1, alpha=0.05, seed=1)


@pytest.mark.slow
def test_error_rates_stay_below_alpha() -> None:
    """A true change of exactly the floor is called "no evidence" in at most alpha of runs; no change "drifted" likewise."""
    draw = random.Random(3)
    simulations = 300
    missed = sum(
        drift(runs(draw, 0.1, noise=0.08), floor=0.1, seed=1).verdict == "no evidence" for _ in range(simulations)
    )
    alarms = sum(drift(runs(draw, 0.0), floor=0.001, seed=1).verdict == "drifted" for _ in range(simulations))
    most = 0.05 + 4 * (0.05 * 0.95 / simulations) ** 0.5
    assert missed / simulations <= most
    assert alarms / simulations <= most


def test_identical_answers_are_no_change_and_say_what_would_exclude_one() -> None:
    few = drift([(str(at), 0.5, 0.5) for at in range(5)], floor=0.1, seed=1)
    assert (few.verdict, few.clusters_needed) == ("no change", 29)
    # The bound is Clopper and Pearson's: none of 5 changed.
    assert few.high == pytest.approx(scipy_stats.binomtest(0, 5, alternative="less").proportion_ci(0.95).high)
    assert few.low == pytest.approx(-(few.high or 0))
    enough = drift([(str(at), 0.5, 0.5) for at in range(29)], floor=0.1, seed=1)
    assert enough.high is not None and enough.high < 0.1
    almost = drift([(str(at), 0.5, 0.5) for at in range(28)], floor=0.1, seed=1)
    assert almost.high is not None and almost.high > 0.1
    moved = drift([*((str(at), 0.5, 0.5) for at in range(20)), ("x", 0.5, 0.6)], floor=0.1, seed=1)
    assert moved.verdict != "no change" and moved.clusters_needed is None


def test_drift_of_very_few_pairs_or_none() -> None:
    for pairs in ([], [("a", 0.1, 0.9)]):
        assert drift(pairs, floor=0.1, seed=1).verdict == "cannot tell"
    shifted = drift([(str(at), 0.25, 0.75) for at in range(10)], floor=0.1, seed=1)
    assert shifted.verdict == "drifted" and shifted.difference.p == 2 / 1024
    for floor, alpha in ((0.0, 0.05), (0.1, 0.0), (0.1, 0.5)):
        with pytest.raises(ValueError, match="drift needs"):
            drift([], floor=floor, alpha=alpha, seed=1)


def test_codes_by_question() -> None:
    codes: list[tuple[str, float | None, float | None]] = [("q2", 1, 2)] * 8 + [
        ("q2", 2, 1),
        ("q2", 1, 1),
        ("q2", None, 1),
    ]
    codes += [("q1", 0, 0)] * 3 + [("q3", None, None)]
    second, first, third = question_drift(codes)
    assert (second.question, second.n, second.better, second.worse, second.same, second.missing) == (
        "q2",
        10,
        8,
        1,
        1,
        1,
    )
    assert second.p == pytest.approx(float(scipy_stats.binomtest(8, 9).pvalue))
    assert (second.rose.count, second.rose.n) == (8, 9)
    assert (first.n, first.p, first.rose.value) == (3, 1.0, None)
    assert (third.n, third.missing, third.p, third.p_holm) == (0, 1, None, None)
    assert [one.p_holm for one in (second, first, third)] == holm([second.p, first.p, third.p])
    assert question_drift([]) == ()
