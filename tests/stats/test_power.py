"""Power and numbers of trials against scipy, statsmodels and simulation."""

from __future__ import annotations

import importlib
import math
import random

import numpy as np
import pytest
from scipy import integrate
from scipy import stats as scipy_stats

from src.stats.intervals import student_quantile
from src.stats.power import (
    clusters_needed,
    design_effect,
    detectable,
    most_power,
    noncentral_power,
    power_of,
    trials_needed,
)
from tests.cases import each_case

theirs = importlib.import_module("statsmodels.stats.power")


@each_case("degrees", [1, 2, 3, 4.5, 9, 29, 200, 5_000])
@each_case("noncentrality", [0.0, 0.1, 1.0, 2.5, 4.0, 7.0])
def test_the_noncentral_t(degrees: float, noncentrality: float) -> None:
    for alpha in (0.2, 0.05, 0.01):
        critical = student_quantile(1 - alpha / 2, degrees)
        found = noncentral_power(critical, degrees, noncentrality)
        if noncentrality == 0:
            assert found == pytest.approx(alpha, abs=1e-9)
            continue
        below = float(scipy_stats.nct.cdf(-critical, degrees, noncentrality))
        expected = float(scipy_stats.nct.sf(critical, degrees, noncentrality)) + (0 if math.isnan(below) else below)
        assert found == pytest.approx(expected, abs=1e-9)  # scipy gives nan if the far tail is negligible


@each_case(("degrees", "noncentrality"), [(1, 40.0), (3, 15.0), (8, 9.0)])
def test_the_noncentral_t_by_another_integral(degrees: int, noncentrality: float) -> None:
    critical = student_quantile(0.995, degrees)

    def under(v: float) -> float:
        s = math.sqrt(v / degrees) * critical
        tails = scipy_stats.norm.sf(s - noncentrality) + scipy_stats.norm.cdf(-s - noncentrality)
        return float(tails * scipy_stats.chi2.pdf(v, degrees))

    points = [0.001, 0.1, 1, 5, 20, 100]
    expected = sum(
        integrate.quad(under, a, b, epsabs=1e-12, limit=200)[0]
        for a, b in zip([0, *points], [*points, 300], strict=True)
    )
    assert noncentral_power(critical, degrees, noncentrality) == pytest.approx(expected, abs=1e-7)


@each_case("effect", [0.15, 0.3, 0.5, 0.8, 1.5])
def test_paired_power_and_trials_agree_with_statsmodels(effect: float) -> None:
    for n in (3, 8, 30, 200):
        expected = float(theirs.TTestPower().power(effect, n, 0.05, alternative="two-sided"))
        assert power_of(n, effect * 0.2, 0.2) == pytest.approx(expected, abs=1e-6)
    for power in (0.8, 0.95):
        fewest = trials_needed(-effect * 0.2, 0.2, power=power)
        assert fewest is not None
        assert theirs.TTestPower().power(effect, fewest, 0.05) >= power - 1e-9
        assert fewest == 2 or theirs.TTestPower().power(effect, fewest - 1, 0.05) < power


def test_clusters_need_more_trials() -> None:
    assert design_effect(40, 10, 0.2) == pytest.approx(1.6)
    assert design_effect(40, None, 0.0) == 1
    # By hand: 40 / 1.6 = 25 effective pairs, 9 degrees.
    critical = float(scipy_stats.t.ppf(0.975, 9))
    expected = float(scipy_stats.nct.sf(critical, 9, 5 * 0.6) + scipy_stats.nct.cdf(-critical, 9, 5 * 0.6))
    assert power_of(40, 0.6, 1.0, clusters=10, icc=0.2) == pytest.approx(expected, abs=1e-9)
    n = trials_needed(0.6, 1.0, clusters=10, icc=0.2)
    assert n is not None
    reached, before = power_of(n, 0.6, 1.0, clusters=10, icc=0.2), power_of(n - 1, 0.6, 1.0, clusters=10, icc=0.2)
    assert reached is not None and before is not None and before < 0.8 <= reached
    assert trials_needed(0.6, 1.0, clusters=10, icc=0.9) is None  # more trials of similar clusters do not help
    assert trials_needed(5.0, 1.0, clusters=10, icc=0.9) == 10


def test_the_clusters_needed_are_the_fewest_that_reach_the_power() -> None:
    for per_cluster, icc in ((1, 0.0), (1, 0.7), (4, 0.3), (10, 1.0)):
        fewest = clusters_needed(0.1, 0.3, per_cluster=per_cluster, icc=icc)
        assert fewest is not None
        reached, before = (power_of(k * per_cluster, 0.1, 0.3, clusters=k, icc=icc) for k in (fewest, fewest - 1))
        assert reached is not None and before is not None and before < 0.8 <= reached
    # One pair in each cluster: as many clusters as independent pairs, whatever they would have in common.
    assert clusters_needed(0.1, 0.3, icc=0.7) == clusters_needed(0.1, 0.3) == trials_needed(0.1, 0.3)
    # Pairs that are all alike within a cluster add nothing.
    assert clusters_needed(0.1, 0.3, per_cluster=10, icc=1.0) == clusters_needed(0.1, 0.3)
    assert clusters_needed(0.0, 0.3) is None and clusters_needed(0.1, 0.0) is None


def test_repeats_come_near_to_the_most_power_and_do_not_pass_it() -> None:
    most = most_power(0.1, 0.3, clusters=12, icc=0.4)
    steps = [power_of(12 * each, 0.1, 0.3, clusters=12, icc=0.4) for each in (1, 3, 10, 100, 10_000)]
    assert most is not None and None not in steps
    assert steps == sorted(steps, key=float) and float(steps[-1] or 0) < most  # type: ignore[arg-type]
    assert steps[-1] == pytest.approx(most, abs=1e-4)
    assert most_power(0.1, 0.3, clusters=12, icc=0.0) == 1
    assert most_power(0.1, 0.3, clusters=1, icc=0.4) is None


def test_power_agrees_with_simulated_tests_of_cluster_means() -> None:
    draw = random.Random(5)
    simulations, clusters, size, icc, shift = 400, 8, 4, 0.3, 0.8
    seen = 0
    for _ in range(simulations):
        means = []
        for _ in range(clusters):
            shared = shift + draw.gauss(0, math.sqrt(icc))
            means.append(sum(shared + draw.gauss(0, math.sqrt(1 - icc)) for _ in range(size)) / size)
        test = scipy_stats.ttest_1samp(means, 0)
        seen += bool(test.pvalue < 0.05 and test.statistic > 0)
    expected = power_of(clusters * size, shift, 1.0, clusters=clusters, icc=icc)
    assert expected is not None
    assert seen / simulations == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / simulations))


def test_the_detectable_difference_is_the_inverse_of_power() -> None:
    for n, power, alpha in ((5, 0.8, 0.05), (30, 0.9, 0.01), (400, 0.5, 0.2)):
        least = detectable(2.0 / math.sqrt(n), n - 1, power=power, alpha=alpha)
        assert least is not None
        assert power_of(n, least, 2.0, alpha=alpha) == pytest.approx(power, abs=1e-9)
        solved = theirs.TTestPower().solve_power(nobs=n, alpha=alpha, power=power)
        assert least / 2 == pytest.approx(np.asarray(solved).item(), rel=1e-5)


@each_case("degrees", [1, 2.4, 3.7, 9, 33, 400])
def test_the_detectable_difference_from_an_error_has_the_wanted_power(degrees: float) -> None:
    for error, power, alpha in ((0.02, 0.8, 0.05), (0.3, 0.9, 0.01), (4.0, 0.5, 0.2)):
        least = detectable(error, degrees, power=power, alpha=alpha)
        assert least is not None
        critical = float(scipy_stats.t.ppf(1 - alpha / 2, degrees))
        below = float(scipy_stats.nct.cdf(-critical, degrees, least / error))
        above = float(scipy_stats.nct.sf(critical, degrees, least / error))
        assert above + (0 if math.isnan(below) else below) == pytest.approx(power, abs=1e-6)


def test_the_detectable_difference_is_wider_than_half_the_interval() -> None:
    for degrees in (2.0, 9.0, 40.0):
        least = detectable(0.1, degrees)
        assert least is not None and least > 0.1 * float(scipy_stats.t.ppf(0.975, degrees))


def test_no_detectable_difference_without_error_or_degrees() -> None:
    assert detectable(0.0, 9) is None
    assert detectable(0.1, 0) is None
    assert detectable(0.1, 9, power=0.05) is None
    with pytest.raises(ValueError, match="alpha and power"):
        detectable(0.1, 9, alpha=1)


def test_none_where_there_is_no_answer() -> None:
    assert power_of(1, 0.5, 1.0) is None
    assert power_of(0, 0.5, 1.0) is None
    assert power_of(10, 0.5, 0.0) is None
    assert power_of(10, 0.0, 1.0) == pytest.approx(0.05)
    assert trials_needed(0.0, 1.0) is None
    assert trials_needed(0.5, 0.0) is None
    assert trials_needed(0.5, 1.0, clusters=1) is None
    assert trials_needed(1e-6, 1.0) is None
    assert trials_needed(100.0, 1.0) == 2
    with pytest.raises(ValueError, match="alpha and power"):
        power_of(10, 0.5, 1.0, alpha=0)
    with pytest.raises(ValueError, match="alpha and power"):
        trials_needed(0.5, 1.0, power=1)
    with pytest.raises(ValueError, match="number of clusters"):
        power_of(10, 0.5, 1.0, icc=0.2)
    with pytest.raises(ValueError, match="cannot fill"):
        power_of(10, 0.5, 1.0, clusters=20)
    with pytest.raises(ValueError, match="correlation"):
        power_of(10, 0.5, 1.0, clusters=5, icc=1.5)
