"""Paired comparisons against scipy, statsmodels and full enumeration; coverage of the intervals by simulation."""

from __future__ import annotations

import importlib
import itertools
import math
import random
import statistics
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats as scipy_stats

from src.stats.comparison import Difference, Effect, holm, paired_difference, sign_flips, sign_test, verdict
from tests.cases import each_case

multitest = importlib.import_module("statsmodels.stats.multitest")

SIMULATIONS = 400
NO_EFFECT = Effect(0, None, None)


def within(covered: int, nominal: float = 0.95, simulations: int = SIMULATIONS) -> bool:
    """Within 4 standard errors of nominal."""
    return abs(covered / simulations - nominal) <= 4 * math.sqrt(nominal * (1 - nominal) / simulations)


def clustered(draw: random.Random, sizes: Sequence[int], icc: float) -> list[tuple[str, float]]:
    """Values with mean 0, standard deviation 0.1 and this correlation within a cluster."""
    values = []
    for at, size in enumerate(sizes):
        shared = draw.gauss(0, math.sqrt(icc))
        values += [(f"c{at}", 0.1 * (shared + draw.gauss(0, math.sqrt(1 - icc)))) for _ in range(size)]
    return values


def pairs_of(values: Sequence[tuple[str, float]]) -> list[tuple[str, float, float]]:
    return [(cluster, value, 0.0) for cluster, value in values]


@pytest.mark.slow
@each_case("sizes", [[4] * 5, [1, 4, 7, 10] * 2, [1, 4, 7] * 10, [2] * 30], ids=str)
def test_the_interval_of_a_difference_covers(sizes: list[int]) -> None:
    draw = random.Random(11)
    covered = 0
    for _ in range(SIMULATIONS):
        found = paired_difference(pairs_of(clustered(draw, sizes, 0.4)), seed=1, permutations=1)
        assert found.low is not None and found.high is not None
        covered += found.low <= 0 <= found.high
    assert 0.92 <= covered / SIMULATIONS <= 1


def test_the_interval_covers_for_answers_that_are_right_or_wrong() -> None:
    draw = random.Random(12)
    covered = 0
    for _ in range(SIMULATIONS):
        pairs = []
        for at in range(12):
            first, second = draw.betavariate(2, 1), draw.betavariate(2, 1)
            pairs += [(str(at), float(draw.random() < first), float(draw.random() < second)) for _ in range(5)]
        found = paired_difference(pairs, seed=1, permutations=1)
        assert found.low is not None and found.high is not None and found.low >= -1 and found.high <= 1
        covered += found.low <= 0 <= found.high
    assert within(covered)


def enumerated(sums: Sequence[float]) -> float:
    observed = abs(sum(sums)) - 1e-9
    flips = list(itertools.product((1, -1), repeat=len(sums)))
    return sum(abs(sum(s * x for s, x in zip(f, sums, strict=True))) >= observed for f in flips) / len(flips)


@each_case("seed", range(5))
def test_p_counts_every_sign_flip_of_whole_clusters(seed: int) -> None:
    draw = random.Random(seed)
    values = [(f"c{draw.randint(0, 7)}", draw.choice([-1.0, -0.5, 0.0, 0.25, 1.0])) for _ in range(30)]
    sums: dict[str, float] = {}
    for cluster, value in values:
        sums[cluster] = sums.get(cluster, 0.0) + value
    found = paired_difference(pairs_of(values), seed=1)
    assert found.p == pytest.approx(enumerated(list(sums.values())), abs=1e-12)
    assert found.method.endswith("exact sign flips of clusters")


def test_p_agrees_with_scipys_permutation_test_of_pairs() -> None:
    draw = random.Random(3)
    a, b = [draw.random() for _ in range(9)], [draw.random() - 0.2 for _ in range(9)]
    theirs = scipy_stats.permutation_test(
        (a, b), lambda x, y: np.mean(x) - np.mean(y), permutation_type="samples", n_resamples=math.inf
    )
    found = paired_difference([(str(at), x, y) for at, (x, y) in enumerate(zip(a, b, strict=True))], seed=1)
    assert found.p == pytest.approx(float(theirs.pvalue), abs=1e-12)


def test_random_flips_come_near_the_exact_p_and_the_same_seed_gives_the_same() -> None:
    draw = random.Random(8)
    sums = [draw.gauss(0.4, 1) for _ in range(16)]
    exact = enumerated(sums)
    found = sign_flips(sums, seed=1, permutations=10_000)
    assert found[0] == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 10_000))
    assert found[1] == "10000 random sign flips"
    assert sign_flips(sums, seed=1, permutations=10_000) == found
    assert sign_flips(sums, seed=2, permutations=10_000)[0] != found[0]
    assert sign_flips([5.0] * 40, seed=1, permutations=99) == (0.01, "99 random sign flips")  # 1 is added


def test_the_sign_flip_test_rejects_a_true_null_hypothesis_at_its_level() -> None:
    draw = random.Random(21)
    rejected = 0
    for _ in range(SIMULATIONS):
        found = paired_difference(pairs_of(clustered(draw, [1, 4, 7, 2, 5, 3, 3, 8], 0.5)), seed=1)
        assert found.p is not None
        rejected += found.p < 0.05
    assert within(SIMULATIONS - rejected)


def test_effect_sizes() -> None:
    pairs = [("x", 1.0, 0.0), ("x", 0.5, 0.5), ("y", 0.0, 0.25), ("y", 1.0, 0.5), ("z", 0.75, 0.5)]
    d = [a - b for _, a, b in pairs]
    effect = paired_difference(pairs, seed=1).effect
    assert effect.n == 5
    assert effect.d_z == pytest.approx(statistics.fmean(d) / statistics.stdev(d))
    assert effect.delta == pytest.approx((3 - 1) / 5)


def test_what_is_not_defined_is_none() -> None:
    nothing = Difference(0, 0, None, None, None, None, None, None, None, "no pairs", NO_EFFECT)
    assert paired_difference([], seed=1) == nothing
    single = paired_difference([("x", 1.0, 0.5), ("x", 1.0, 0.25)], seed=1)
    assert (single.n, single.clusters, single.low, single.high, single.p) == (2, 1, None, None, None)
    assert single.method == "no interval; no test of clusters"
    two = paired_difference([("a", 1.0, 0.0), ("b", 0.5, 0.0), ("b", 0.25, 0.0)], seed=1)
    assert (two.low, two.high, two.p) == (None, None, 0.5)
    same = paired_difference([(c, 0.5, 0.5) for c in "aabbcc"], seed=1)
    assert (same.mean, same.p, same.error, same.effect.d_z, same.effect.delta) == (0, 1.0, None, None, 0)
    assert (same.low, same.high) == pytest.approx((0.025 ** (1 / 3) - 1, 1 - 0.025 ** (1 / 3)))
    shifted = paired_difference([(c, 0.3, 0.1) for c in "abc"] + [(c, 0.4, 0.2) for c in "abc"], seed=1)
    assert (shifted.error, shifted.p, shifted.effect.d_z) == (None, 0.25, None)  # 0.3 - 0.1 and 0.4 - 0.2: rounding
    assert shifted.method == "exact bound; exact sign flips of clusters"
    assert sign_flips([], seed=1, permutations=9) == (None, "no test")


def test_the_same_seed_gives_the_same_difference() -> None:
    pairs = pairs_of(clustered(random.Random(4), [3] * 20, 0.3))
    assert paired_difference(pairs, seed=7) == paired_difference(pairs, seed=7)
    turned = paired_difference([(c, b, a) for c, a, b in pairs], seed=7)
    forward = paired_difference(pairs, seed=7)
    assert turned.mean == pytest.approx(-(forward.mean or 0)) and turned.low == pytest.approx(-(forward.high or 0))


def difference(
    mean: float | None, low: float | None, high: float | None, p: float | None, unseen: float = 0.01
) -> Difference:
    return Difference(9, 9, mean, low, high, None, None, unseen, p, "", NO_EFFECT)


def test_verdicts() -> None:
    def said(*found: float | None) -> str:
        mean, low, high, p = found
        return verdict(difference(mean, low, high, p), alpha=0.05, floor=0.05)

    assert said(0.2, 0.1, 0.3, 0.01) == "a better"
    assert said(-0.2, -0.3, -0.1, 0.01) == "b better"
    assert said(0.02, 0.01, 0.03, 0.001) == "no meaningful difference"
    few = difference(0.02, 0.01, 0.03, 0.001, unseen=0.06)  # scenarios unlike these could add up to more than the floor
    assert verdict(few, alpha=0.05, floor=0.05) == "cannot tell"
    assert said(0.04, 0.01, 0.07, 0.01) == "cannot tell"  # significant, but maybe below the floor
    assert said(0.2, -0.01, 0.41, 0.04) == "cannot tell"  # p and interval disagree
    assert said(0.2, 0.1, 0.3, 0.06) == "cannot tell"
    assert said(0.2, None, None, 0.01) == "cannot tell"  # too few scenarios for an interval
    assert said(0.0, None, None, 1.0) == "cannot tell"
    assert said(None, None, None, None) == "cannot tell"
    with pytest.raises(ValueError, match="floor"):
        verdict(difference(0.2, 0.1, 0.3, 0.01), alpha=0.05, floor=-1)


@each_case(("up", "down"), [(0, 0), (3, 0), (1, 9), (10, 10), (40, 61)])
def test_the_sign_test_is_exact(up: int, down: int) -> None:
    expected = float(scipy_stats.binomtest(up, up + down).pvalue) if up + down else 1.0
    assert sign_test(up, down) == pytest.approx(expected, abs=1e-12)


@each_case("seed", range(4))
def test_adjusted_p_values(seed: int) -> None:
    draw = random.Random(seed)
    p = [round(draw.random() ** 3, 2) for _ in range(12)]
    assert holm(p) == pytest.approx(list(multitest.multipletests(p, method="holm")[1]), abs=1e-12)
    adjusted = holm([p[0], None, *p[1:], None])
    assert adjusted[1] is None and adjusted[-1] is None
    assert [one for one in adjusted if one is not None] == holm(p)
    assert holm([]) == []
    assert holm([None]) == [None]
