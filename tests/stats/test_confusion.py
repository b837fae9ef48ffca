"""Judges' errors: shares by hand, true shares recovered against numpy and scipy, and when there is no correction."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest
from scipy.optimize import minimize

from src.stats.clustered import ClusterCount, clustered_share
from src.stats.confusion import (
    LEAST_GOLD_CLAIMS,
    MOST_AMPLIFIED,
    Corrected,
    JudgedGold,
    Labels,
    Table,
    amplification,
    corrected_accuracy,
    precision,
    precision_with_spurious,
    recall,
    share_right,
    solve,
    table,
    true_counts,
)
from tests.cases import each_case

LABELS = Labels("S", "C", "N")
GOOD: Table = [[0.86, 0.03, 0.05], [0.04, 0.80, 0.06], [0.05, 0.04, 0.85]]


def gold_replies(
    t: Table, per_label: int = 40, replies: int = 10, spurious: dict[str, int] | None = None
) -> list[JudgedGold]:
    """Replies whose counts give about this table; what is left of a row is missed."""
    confusion: Counter[tuple[str, str]] = Counter()
    for label, row in zip(LABELS.all, t, strict=True):
        given = {other: round(per_label * share) for other, share in zip(LABELS.all, row, strict=True)}
        confusion.update({(label, other): n for other, n in given.items()})
        confusion[label, "missed"] += per_label - sum(given.values())
    return [JudgedGold(dict(confusion), spurious or {})] * replies


def test_shares_by_hand() -> None:
    replies = [
        {("S", "S"): 8, ("S", "missed"): 1, ("C", "S"): 1, ("N", "N"): 3},
        {("S", "S"): 5, ("S", "N"): 2, ("C", "C"): 4, ("C", "open"): 1},
    ]
    assert share_right(replies) == clustered_share([ClusterCount(11, 13), ClusterCount(9, 12)])
    assert recall(replies, "S") == clustered_share([ClusterCount(8, 9), ClusterCount(5, 7)])
    assert precision(replies, "S") == clustered_share([ClusterCount(8, 9), ClusterCount(5, 5)])
    assert precision(replies, "C") == clustered_share([ClusterCount(0, 0), ClusterCount(4, 4)])
    assert recall(replies, "other").value is None
    spurious = [JudgedGold(replies[0], {"S": 2, "N": 7}), JudgedGold(replies[1], {"C": 1})]
    assert precision_with_spurious(spurious, "S") == clustered_share([ClusterCount(8, 11), ClusterCount(5, 5)])
    assert precision_with_spurious(spurious, "C") == clustered_share([ClusterCount(0, 0), ClusterCount(4, 5)])


def test_the_table_holds_missed_open_and_spurious_claims() -> None:
    replies = [
        JudgedGold({("S", "S"): 3, ("S", "missed"): 1, ("C", "C"): 1, ("N", "N"): 2}, {"N": 2}),
        JudgedGold({("S", "C"): 1, ("C", "open"): 1, ("N", "S"): 1}, {"S": 1}),
    ]
    assert table(replies, LABELS) == [
        pytest.approx([3 / 5 + 1 / 10, 1 / 5, 2 / 10]),
        pytest.approx([1 / 10, 1 / 2, 2 / 10]),
        pytest.approx([1 / 3 + 1 / 10, 0, 2 / 3 + 2 / 10]),
    ]


@each_case("seed", range(5))
def test_true_counts_are_numpy_s_solution_where_it_is_in_range(seed: int) -> None:
    draw = np.random.default_rng(seed)
    t = np.eye(3) * 0.7 + draw.uniform(0.01, 0.08, size=(3, 3))
    true = draw.uniform(5, 500, size=3)
    found = true_counts([float(n) for n in true @ t], [[float(n) for n in row] for row in t])
    assert found == pytest.approx([float(n) for n in np.linalg.solve(t.T, true @ t)])
    assert found == pytest.approx([float(n) for n in true])


@each_case("observed", [[30.0, 0.0, 70.0], [0.0, 50.0, 2.0], [97.0, 2.0, 1.0], [1.0, 0.0, 0.0]])
def test_out_of_range_true_counts_are_the_most_likely_ones_in_range(observed: list[float]) -> None:
    t = np.array(GOOD)
    assert np.linalg.solve(t.T, np.array(observed)).min() < 0

    def loss(free: np.ndarray) -> float:
        weights = np.exp(np.array([*free, 0.0]))
        seen = weights / weights.sum() @ (t / t.sum(axis=1, keepdims=True))
        return -float(np.array(observed) @ np.log(seen))

    best = min((minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12, "maxiter": 9_000})
                for start in ([0.0, 0.0], [4.0, -4.0], [-4.0, 4.0])), key=lambda one: one.fun)  # fmt: skip
    weights = np.exp(np.array([*best.x, 0.0]))
    expected = weights / weights.sum() / t.sum(axis=1)
    found = np.array(true_counts(observed, GOOD))
    assert min(found) >= 0
    assert found / found.sum() == pytest.approx(expected / expected.sum(), abs=2e-3)


@each_case("seed", range(3))
def test_amplification_is_the_norm_of_the_inverse(seed: int) -> None:
    t = np.eye(3) * 0.5 + np.random.default_rng(seed).uniform(0.0, 0.2, size=(3, 3))
    scaled = (t / t.sum(axis=1, keepdims=True)).T
    expected = float(np.linalg.norm(np.linalg.inv(scaled), 1))
    assert amplification([[float(n) for n in row] for row in t]) == pytest.approx(expected)


def test_there_is_no_amplification_without_labels_or_a_difference() -> None:
    assert amplification([[0.5, 0.5], [0.5, 0.5]]) is None
    assert amplification([[0.0, 0.0], [0.5, 0.5]]) is None


@each_case("seed", range(5))
def test_linear_systems(seed: int) -> None:
    draw = random.Random(seed)
    left = [[draw.gauss(0, 1) for _ in range(4)] for _ in range(4)]
    wanted = [draw.gauss(0, 1) for _ in range(4)]
    assert solve(left, wanted) == pytest.approx(
        [float(x) for x in np.linalg.solve(np.array(left), np.array(wanted))], abs=1e-9
    )
    assert solve([[1.0, 2.0], [2.0, 4.0]], [1.0, 2.0]) is None
    assert solve([[0.0, 1.0], [1.0, 0.0]], [3.0, 4.0]) == [4.0, 3.0]  # needs the pivot


def corrected(clusters: list[dict[str, int]], gold: list[JudgedGold]) -> Corrected:
    return corrected_accuracy(clusters, gold, LABELS, seed=1, draws=400)


def test_corrected_accuracy_is_what_the_true_claims_give() -> None:
    gold = gold_replies(GOOD, per_label=100)
    seen = [round(n) for n in np.array([700, 200, 300]) @ np.array(GOOD)]
    clusters = [dict(zip(LABELS.all, [n // 10 for n in seen], strict=True)) for _ in range(10)]
    observed = [10 * (n // 10) for n in seen]
    expected = np.linalg.solve(np.array(GOOD).T, np.array(observed))
    found = corrected(clusters, gold)
    assert found.value == pytest.approx(float(expected[0] / (expected[0] + expected[1])))
    assert found.value == pytest.approx(7 / 9, abs=0.02)
    assert found.low is not None and found.high is not None and found.value is not None
    assert found.low < found.value < found.high
    assert found == corrected(clusters, gold)


def test_no_contradiction_seen_does_not_mean_none() -> None:
    """36 claims without a contradiction: the interval says that 7% or more may still be wrong."""
    perfect = gold_replies([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]], per_label=20)
    found = corrected([{"S": 6}] * 6, perfect)
    assert (found.raw, found.value, found.high) == (1.0, 1.0, 1.0)
    assert found.low is not None and 0.8 < found.low < 0.93
    many = corrected([{"S": 60}] * 60, perfect)
    assert many.low is not None and found.low < many.low < 1.0
    none_right = corrected([{"C": 6}] * 6, perfect)
    assert none_right.low == 0.0 and none_right.high is not None and 0.07 < none_right.high < 0.2


@each_case("clusters", [[{"S": 90, "C": 1, "N": 9}] * 10, [{"S": 4, "C": 94, "N": 2}] * 10])
def test_an_interval_at_the_edge_has_a_width_and_stays_in_range(clusters: list[dict[str, int]]) -> None:
    """Fewer contradictions than the judges' false alarms on gold claims: most draws are out of range."""
    draw = np.random.default_rng(4)
    rows = [[*row, 1 - sum(row)] for row in GOOD]
    gold = [
        JudgedGold(
            {
                (label, given): int(n)
                for label, row in zip(LABELS.all, rows, strict=True)
                for given, n in zip((*LABELS.all, "missed"), draw.multinomial(4, row), strict=True)
            },
            {},
        )
        for _ in range(12)
    ]
    assert min(np.linalg.solve(np.array(table(gold, LABELS)).T, [clusters[0][label] for label in LABELS.all])) < 0
    found = corrected(clusters, gold)
    assert found.low is not None and found.high is not None and found.why_not is None
    assert 0 <= found.low < found.high <= 1


def test_why_there_is_no_correction() -> None:
    good = gold_replies(GOOD)
    assert corrected([], good).why_not == corrected([{"N": 5}], good).why_not
    assert corrected([{"N": 5}], good) == Corrected(None, why_not="no claim was labeled SUPPORTED or CONTRADICTED")
    few = [JudgedGold({("S", "S"): 30, ("C", "C"): LEAST_GOLD_CLAIMS - 1, ("N", "N"): 30}, {})]
    found = corrected([{"S": 5, "C": 1}] * 4, few)
    assert found.raw == pytest.approx(5 / 6) and found.value is None
    assert (
        found.why_not is not None and "the gold set has 19 C claims, and 20 of each label are needed" in found.why_not
    )
    alone = corrected([{"S": 5, "C": 1}] * 4, gold_replies(GOOD, replies=9))
    assert alone.why_not == "the judges were measured on 9 gold replies, and 10 are needed"
    blind = corrected([{"S": 5, "C": 1}] * 4, gold_replies([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0, 0, 1.0]]))
    assert blind.why_not is not None and "would grow without limit" in blind.why_not
    nearly = corrected([{"S": 5, "C": 1}] * 4, gold_replies([[0.5, 0.45, 0.05], [0.45, 0.5, 0.05], [0, 0, 1.0]]))
    assert nearly.why_not is not None
    assert f"would grow by a factor of 20 (limit: {MOST_AMPLIFIED:.0f})" in nearly.why_not
    nothing_decided = corrected([{"S": 3, "C": 2, "N": 95}] * 10, gold_replies(GOOD))
    assert nothing_decided.why_not == "the share of claims that the key decides cannot be distinguished from 0"
    strange = corrected([{"S": 100, "N": 100}] * 40, gold_replies([[0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]))
    assert strange.why_not is not None and strange.why_not.endswith("so the gold set does not fit the run")


def test_a_missed_label_and_a_spurious_one_move_the_estimate_back() -> None:
    """Judges that miss half of the contradictions, or invent supported claims, make accuracy look better than it is."""
    clusters = [{"S": 60, "C": 20, "N": 20}] * 10
    missing = corrected(clusters, gold_replies([[1.0, 0, 0], [0, 0.5, 0], [0, 0, 1.0]]))
    assert missing.value == pytest.approx(60 / 100)
    inventing = corrected(clusters, gold_replies([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]], spurious={"S": 12}))
    expected = (60 - 0.1 * 100 / 1.1) / (80 - 0.1 * 100 / 1.1)
    assert inventing.value == pytest.approx(expected)
    assert math.isclose(missing.raw or 0, 0.75) and math.isclose(inventing.raw or 0, 0.75)
