"""Agreement of raters against krippendorff, statsmodels and irrCAC, on tables with ratings missing."""

from __future__ import annotations

import importlib
import math
import random
from collections import Counter

import numpy as np
import pytest

from src.stats.agreement import (
    Agreement,
    Label,
    base_rates,
    bootstrap,
    cohen_kappa,
    krippendorff_alpha,
    mean_cohen_kappa,
    percent_agreement,
    quantile,
)
from tests.cases import each_case

krippendorff = importlib.import_module("krippendorff")
raters = importlib.import_module("statsmodels.stats.inter_rater")

Table = list[list[Label | None]]
# Computed once with irrCAC 0.4.4 (CAC(table, digits=15), without rows that have no rating). It requires scipy 1.12 and
# coverage below 7, so it is not installed here. Case: seed, items, raters, labels, share missing, share correct.
IRRCAC = [
    ((1, 40, 3, "abc", 0.2, 0.6), 0.380988593155894, 0.558823529411765),
    ((2, 25, 2, "ab", 0.3, 0.5), 0.404761904761905, 0.692307692307692),
    ((3, 60, 5, "abcd", 0.5, 0.7), 0.626927029804728, 0.714965986394558),
    ((4, 12, 4, "abc", 0.1, 0.0), 0.098712446351932, 0.388888888888889),
    ((5, 200, 3, "abc", 0.4, 0.9), 0.751317523056654, 0.841025641025641),
    ((6, 30, 3, "ab", 0.0, 0.8), 0.602678571428571, 0.8),
]


def table(seed: int, items: int, columns: int, labels: str, missing: float, right: float) -> Table:
    draw = random.Random(seed)
    rows: Table = []
    for _ in range(items):
        truth = draw.choice(labels)
        rows.append(
            [
                None if draw.random() < missing else truth if draw.random() < right else draw.choice(labels)
                for _ in range(columns)
            ]
        )
    return rows


@each_case(("case", "alpha", "agreement"), IRRCAC)
def test_against_irrcac(case: tuple[int, int, int, str, float, float], alpha: float, agreement: float) -> None:
    ratings = table(*case)
    assert krippendorff_alpha(ratings) == pytest.approx(alpha, abs=1e-9)
    assert percent_agreement(ratings) == pytest.approx(agreement, abs=1e-9)


@each_case("seed", range(20))
def test_alpha_against_krippendorff(seed: int) -> None:
    draw = random.Random(seed)
    ratings = table(seed, draw.randint(4, 60), draw.randint(2, 6), "abcd", draw.choice([0.0, 0.2, 0.5]), draw.random())
    codes = np.array(
        [[np.nan if one is None else "abcd".index(str(one)) for one in row] for row in ratings], dtype=float
    )
    with np.errstate(invalid="ignore"):
        expected = float(krippendorff.alpha(reliability_data=codes.T, level_of_measurement="nominal"))
    if math.isnan(expected):  # every item rated twice got the same label
        assert krippendorff_alpha(ratings) is None
    else:
        assert krippendorff_alpha(ratings) == pytest.approx(expected, abs=1e-9)


@each_case("seed", range(8))
def test_kappas_against_statsmodels(seed: int) -> None:
    ratings = table(seed, 40, 3, "abc", 0.0, 0.5)
    pairs = []
    for a, b in ((0, 1), (0, 2), (1, 2)):
        square = np.array([[sum(row[a] == x and row[b] == y for row in ratings) for y in "abc"] for x in "abc"])
        pairs.append(float(raters.cohens_kappa(square, return_results=False)))
        assert cohen_kappa([(row[a], row[b]) for row in ratings]) == pytest.approx(pairs[-1], abs=1e-9)
    assert mean_cohen_kappa(ratings) == pytest.approx(sum(pairs) / 3, abs=1e-9)


def test_cohen_leaves_out_items_not_rated_by_both() -> None:
    ratings: Table = [["a", "a"], ["a", None], [None, "b"], ["b", "b"], ["a", "b"]]
    assert cohen_kappa(ratings) == cohen_kappa([["a", "a"], ["b", "b"], ["a", "b"]])


def test_what_is_not_defined_is_none() -> None:
    tables: list[Table] = [[], [["a"], ["b"]], [[None, None]], [["a", None]]]
    for nothing in tables:
        assert percent_agreement(nothing) is None and krippendorff_alpha(nothing) is None
    assert cohen_kappa([]) is None and mean_cohen_kappa([]) is None
    assert base_rates([]) == {} and base_rates([["a", "b"], ["a", None]]) == {"a": 0.75, "b": 0.25}
    assert percent_agreement([["a", "a"]] * 4) == 1
    assert krippendorff_alpha([["a", "a"]] * 4) is None


def test_the_bootstrap_resamples_whole_clusters_and_is_reproducible() -> None:
    tables = [table(seed, 3, 3, "ab", 0.1, 0.7) for seed in range(15)]
    clusters = [Counter(tuple(row) for row in one) for one in tables]
    found = bootstrap(clusters, krippendorff_alpha, seed=1, resamples=300)
    assert found == bootstrap(clusters, krippendorff_alpha, seed=1, resamples=300)
    assert found.value == pytest.approx(krippendorff_alpha([row for one in tables for row in one]), abs=1e-12)
    assert found.low is not None and found.value is not None and found.high is not None
    assert found.low <= found.value <= found.high
    assert bootstrap([], krippendorff_alpha, seed=1) == Agreement(None, None, None)
    alone = bootstrap(clusters[:1], percent_agreement, seed=1)
    assert alone.value is not None and alone.low is None
    narrower = bootstrap(clusters, krippendorff_alpha, seed=1, resamples=300, confidence=0.5)
    assert narrower.low is not None and narrower.low > found.low


def test_quantiles_equal_those_of_numpy() -> None:
    draw = random.Random(1)
    values = sorted(draw.random() for _ in range(37))
    for p in (0.0, 0.025, 0.31, 0.5, 0.975, 1.0):
        assert quantile(values, p) == pytest.approx(float(np.quantile(values, p)), abs=1e-12)
    assert quantile([0.4], 0.3) == 0.4


def test_perfect_agreement_has_a_bound_and_never_an_interval_without_a_width() -> None:
    clusters = [Counter({("S", "S"): 5, ("C", "C"): 2})] * 4
    found = bootstrap(clusters, percent_agreement, seed=1, resamples=50)
    assert found.value == found.high == 1.0 and found.low == pytest.approx(0.05**0.25)
    beyond_chance = bootstrap(clusters, krippendorff_alpha, seed=1, resamples=50)
    assert (beyond_chance.value, beyond_chance.low, beyond_chance.high) == (1.0, None, None)
