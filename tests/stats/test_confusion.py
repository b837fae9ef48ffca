"""A judge's confusion matrix: measures by hand, Rogan and Gladen's closed form, recovered shares, coverage."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest

from src.stats.confusion import (
    Corrected,
    accuracy,
    corrected_accuracy,
    corrected_shares,
    f1,
    macro_f1,
    measures,
    resampled,
    solve,
)
from src.stats.intervals import wilson

Cell = tuple[str, str | None]
LABELS = ("S", "C", "N")
MATRIX: dict[Cell, int] = {
    ("S", "S"): 40,
    ("S", "C"): 3,
    ("S", None): 2,
    ("C", "C"): 20,
    ("C", "S"): 4,
    ("N", "N"): 9,
    ("N", "S"): 1,
}
JUDGE = {"S": (0.9, 0.04, 0.06), "C": (0.08, 0.88, 0.04), "N": (0.1, 0.05, 0.85)}


def test_measures_by_hand() -> None:
    found = measures(MATRIX, "S", seed=1)
    assert found.sensitivity == wilson(40, 45)  # a missing verdict is a miss
    assert found.specificity == wilson(29, 34)
    assert found.precision == wilson(40, 45)
    assert found.f1 == pytest.approx(2 * (40 / 45) * (40 / 45) / (40 / 45 + 40 / 45))
    assert found.f1_low is not None and found.f1_high is not None and found.f1_low < 40 / 45 < found.f1_high
    assert found == measures(MATRIX, "S", seed=1)
    assert accuracy(MATRIX) == wilson(69, 79)
    expected = [2 * 40 / (80 + 5 + 5), 2 * 20 / (40 + 4 + 3), 2 * 9 / (18 + 1 + 0)]
    assert [f1(MATRIX, label) for label in LABELS] == pytest.approx(expected)
    assert macro_f1(MATRIX, LABELS) == pytest.approx(sum(expected) / 3)
    assert macro_f1(MATRIX, (*LABELS, "never")) == pytest.approx(sum(expected) / 3)


def test_measures_of_an_empty_matrix() -> None:
    assert accuracy({}) == wilson(0, 0)
    empty = measures({}, "S", seed=1)
    assert (empty.f1, empty.f1_low, empty.sensitivity.value) == (None, None, None)
    assert macro_f1({}, LABELS) is None


def test_resampling_keeps_the_number_of_each_gold_label() -> None:
    for drawn in resampled(MATRIX, 1, 20):
        totals: Counter[str] = Counter()
        for (gold, _), n in drawn.items():
            totals[gold] += n
        assert totals == {"S": 45, "C": 24, "N": 10}
        assert all(given is None or given in totals for _, given in drawn)


@pytest.mark.parametrize("seen", [0.0, 0.05, 0.3, 0.62, 0.95, 1.0])
def test_two_labels_are_rogan_and_gladens_closed_form(seen: float) -> None:
    matrix: dict[Cell, int] = {("y", "y"): 85, ("y", "n"): 15, ("n", "n"): 180, ("n", "y"): 20}
    expected = min(1.0, max(0.0, (seen + 0.9 - 1) / (0.85 + 0.9 - 1)))
    found = corrected_shares({"y": seen, "n": 1 - seen}, matrix, ("y", "n"))
    assert found is not None
    assert found["y"] == pytest.approx(expected, abs=1e-9) and found["n"] == pytest.approx(1 - expected, abs=1e-9)


def through(shares: dict[str, float]) -> dict[str, float]:
    return {given: sum(shares[gold] * JUDGE[gold][at] for gold in LABELS) for at, given in enumerate(LABELS)}


def test_the_true_shares_of_three_labels_are_recovered() -> None:
    matrix: dict[Cell, int] = {
        (gold, given): round(100 * p) for gold in LABELS for given, p in zip(LABELS, JUDGE[gold], strict=True)
    }
    for true in ({"S": 0.7, "C": 0.2, "N": 0.1}, {"S": 0.0, "C": 0.5, "N": 0.5}, {"S": 1.0, "C": 0.0, "N": 0.0}):
        found = corrected_shares(through(true), matrix, LABELS)
        assert found is not None
        assert [found[label] for label in LABELS] == pytest.approx([true[label] for label in LABELS], abs=1e-9)
    with_none: dict[Cell, int] = {**matrix, ("S", None): 50}
    assert corrected_shares(through({"S": 0.7, "C": 0.2, "N": 0.1}), with_none, LABELS) == pytest.approx(
        {"S": 0.7, "C": 0.2, "N": 0.1}
    )


def test_there_is_no_correction_for_a_judge_that_cannot_distinguish_labels() -> None:
    blind: dict[Cell, int] = dict.fromkeys([(gold, given) for gold in "ab" for given in "ab"], 5)
    assert corrected_shares({"a": 0.5, "b": 0.5}, blind, ("a", "b")) is None
    assert corrected_shares({"a": 0.5, "b": 0.5}, {("a", "a"): 5}, ("a", "b")) is None  # no gold claim of b


@pytest.mark.parametrize("seed", range(5))
def test_linear_systems(seed: int) -> None:
    draw = random.Random(seed)
    table = [[draw.gauss(0, 1) for _ in range(4)] for _ in range(4)]
    wanted = [draw.gauss(0, 1) for _ in range(4)]
    assert solve(table, wanted) == pytest.approx(
        [float(x) for x in np.linalg.solve(np.array(table), np.array(wanted))], abs=1e-9
    )
    assert solve([[1.0, 2.0], [2.0, 4.0]], [1.0, 2.0]) is None
    assert solve([[0.0, 1.0], [1.0, 0.0]], [3.0, 4.0]) == [4.0, 3.0]  # needs the pivot


def simulated(
    draw: random.Random, true: dict[str, float], trials: int, claims: int, gold: int
) -> tuple[list[Counter[str]], dict[Cell, int]]:
    def judged(label: str) -> str:
        return draw.choices(LABELS, JUDGE[label])[0]

    counts = [
        Counter(judged(draw.choices(LABELS, list(true.values()))[0]) for _ in range(claims)) for _ in range(trials)
    ]
    matrix = Counter((label, judged(label)) for label in LABELS for _ in range(gold))
    return counts, {(a, b): n for (a, b), n in matrix.items()}


@pytest.mark.slow
def test_corrected_accuracy_is_near_the_truth_where_the_raw_one_is_not_and_covers() -> None:
    """Measured in 300 simulations with judges wrong in 3 or 10%: 93 to 95% covered with 30 trials of 8 claims and 60
    gold claims per label, but 88 to 90% with 10 trials and 20 gold claims per label."""
    draw = random.Random(6)
    true = {"S": 0.72, "C": 0.18, "N": 0.1}
    simulations, covered, raw, corrected = 150, 0, 0.0, 0.0
    for at in range(simulations):
        counts, matrix = simulated(draw, true, 30, 8, 60)
        found = corrected_accuracy(counts, matrix, LABELS, seed=at, resamples=200)
        assert found.raw is not None and found.value is not None and found.low is not None and found.high is not None
        covered += found.low <= 0.8 <= found.high
        raw, corrected = raw + found.raw / simulations, corrected + found.value / simulations
    seen = through(true)
    assert raw == pytest.approx(seen["S"] / (seen["S"] + seen["C"]), abs=0.01)
    assert abs(corrected - 0.8) < 0.012 < abs(raw - 0.8)
    assert covered / simulations >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / simulations)


def test_corrected_accuracy_of_very_few_trials() -> None:
    perfect: dict[Cell, int] = {(label, label): 10 for label in LABELS}
    assert corrected_accuracy([], perfect, LABELS, seed=1) == Corrected(None, None, None, None)
    assert corrected_accuracy([Counter(), Counter()], perfect, LABELS, seed=1) == Corrected(None, None, None, None)
    assert corrected_accuracy([{"N": 3}, {"N": 2}], perfect, LABELS, seed=1) == Corrected(None, None, None, None)
    assert corrected_accuracy([{"S": 3, "C": 1}], perfect, LABELS, seed=1) == Corrected(0.75, 0.75, None, None)
    assert corrected_accuracy([{"S": 3}, {"C": 1}], {}, LABELS, seed=1) == Corrected(0.75, None, None, None)
    found = corrected_accuracy([{"S": 3}, {"C": 1}, {"S": 2}], perfect, LABELS, seed=4)
    assert found == corrected_accuracy([{"S": 3}, {"C": 1}, {"S": 2}], perfect, LABELS, seed=4)
