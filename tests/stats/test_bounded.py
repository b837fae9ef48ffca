"""Means within a range over independent units, against matrices, statsmodels and scipy; coverage is in test_coverage_of_intervals."""

from __future__ import annotations

import importlib
import math
import random
import statistics
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import optimize
from scipy import stats as scipy_stats

from src.stats.bounded import (
    DIFFERENCE,
    LEAST_UNITS,
    Bounded,
    Stratum,
    Unit,
    bounded_by_cluster,
    bounded_mean,
    mid_p_limits,
    stratified_mean,
)
from tests.cases import each_case

proportion = importlib.import_module("statsmodels.stats.proportion")
formula = importlib.import_module("statsmodels.formula.api")


def cr2(values: Sequence[tuple[str, float]]) -> tuple[float, float]:
    """Standard error and degrees of freedom from the matrices of Bell and McCaffrey, without simplification."""
    y = np.array([value for _, value in values])
    names = [cluster for cluster, _ in values]
    n = len(y)
    x = np.ones((n, 1))
    hat = x @ np.linalg.inv(x.T @ x) @ x.T
    residuals = y - hat @ y
    variance, columns = 0.0, []
    for cluster in dict.fromkeys(names):
        at = [i for i, name in enumerate(names) if name == cluster]
        eigen, vectors = np.linalg.eigh(np.eye(len(at)) - hat[np.ix_(at, at)])
        adjust = vectors @ np.diag(eigen**-0.5) @ vectors.T
        weights = (x.T[:, at] @ adjust / n).ravel()
        variance += float(weights @ residuals[at]) ** 2
        columns.append((np.eye(n) - hat)[:, at] @ weights)
    together = np.array(columns) @ np.array(columns).T
    return math.sqrt(variance), float(np.trace(together) ** 2 / np.trace(together @ together))


@each_case("seed", range(6))
def test_the_error_is_cr2_and_the_degrees_are_at_most_bell_and_mccaffreys(seed: int) -> None:
    draw = random.Random(seed)
    values = [
        (f"c{at}", min(1.0, max(0.0, center + draw.gauss(0, 0.1))))
        for at in range(draw.randint(3, 12))
        for center in [draw.random()]
        for _ in range(draw.randint(1, 9))
    ]
    found = bounded_by_cluster(values)
    error, degrees = cr2(values)
    assert found.error == pytest.approx(error, abs=1e-9)
    assert found.degrees is not None and found.degrees <= degrees + 1e-9
    assert found.value == pytest.approx(statistics.fmean(value for _, value in values))


def test_units_of_one_size_have_the_error_of_a_plain_mean() -> None:
    values = [0.1, 0.5, 0.4, 0.9, 0.3, 0.6, 0.2]
    found = bounded_mean([Unit(value) for value in values])
    assert found.error == pytest.approx(float(scipy_stats.sem(values)))
    assert found.value is not None and found.error is not None and found.degrees is not None
    reduced = (scipy_stats.norm.ppf(0.975) / scipy_stats.t.ppf(0.975, found.degrees)) ** 2
    effective = found.value * (1 - found.value) / found.error**2 * reduced
    assert found.effective == pytest.approx(max(7, effective))


@each_case(("count", "n"), [(0, 10), (1, 10), (5, 10), (10, 10), (3, 40), (39, 40), (30, 200)])
def test_limits_are_the_mid_p_limits_of_a_proportion(count: int, n: int) -> None:
    found = mid_p_limits(count / n, n)

    def above(p: float) -> float:
        return float(scipy_stats.binom.sf(count, n, p) + scipy_stats.binom.pmf(count, n, p) / 2 - 0.025)

    def below(p: float) -> float:
        return float(scipy_stats.binom.cdf(count, n, p) - scipy_stats.binom.pmf(count, n, p) / 2 - 0.025)

    exact = proportion.proportion_confint(count, n, method="beta")
    if count in (0, n):
        one_sided = proportion.proportion_confint(count, n, alpha=0.1, method="beta")
        assert (found.low, found.high) == pytest.approx(one_sided)
        return
    low, high = (optimize.brentq(one, 1e-12, 1 - 1e-12) for one in (above, below))
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)
    assert exact[0] <= found.low and found.high <= exact[1]


def test_yes_or_no_units_are_a_proportion_of_that_many() -> None:
    units = [Unit(1.0)] * 12 + [Unit(0.0)] * 8
    found = bounded_mean(units)
    assert found.effective == pytest.approx(20, abs=1.1)  # the unbiased variance makes it 19
    exact = mid_p_limits(0.6, 20)
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=0.01)


@each_case("copies", [2, 10])
def test_copies_within_a_unit_change_nothing(copies: int) -> None:
    values = [("a", 1.0), ("b", 0.0), ("c", 1.0), ("d", 1.0)]
    assert bounded_by_cluster(values * copies) == bounded_by_cluster(values)


@each_case("value", [0.0, 1.0, 0.5, 0.74])
@each_case("units", [3, 34])
def test_units_that_agree_have_an_exact_bound_within_the_range(value: float, units: int) -> None:
    found = bounded_mean([Unit(value)] * units)
    most = scipy_stats.binomtest(0, units, alternative="less").proportion_ci(0.95).high  # exact: none of these differs
    low, high = value - most * value, value + most * (1 - value)
    assert found.low == pytest.approx(min(low, 1 - most) if value > most else low)
    assert found.high == pytest.approx(max(high, most) if value < 1 - most else high)
    assert found.low is not None and found.high is not None and 0 <= found.low < found.high <= 1


def test_a_few_stray_errors_do_not_promise_more_than_none() -> None:
    none = bounded_mean([Unit(0.0)] * 34)
    few = bounded_mean([Unit(0.01)] * 20 + [Unit(0.0)] * 14)
    assert few.high is not None and none.high is not None and few.high >= none.high


@each_case("units", range(LEAST_UNITS))
def test_too_few_units_have_no_interval(units: int) -> None:
    found = bounded_mean([Unit(at / 2) for at in range(units)])
    assert (found.units, found.low, found.high) == (units, None, None)
    assert found.value == (None if not units else pytest.approx(0.25 * (units - 1)))


def test_limits_stay_within_the_range_and_around_the_value() -> None:
    draw = random.Random(3)
    for _ in range(300):
        size = draw.randint(3, 9)
        units = [Unit(draw.choice((0.0, 0.0, 1.0, draw.random())), draw.randint(1, 6)) for _ in range(size)]
        share = bounded_mean(units)
        assert share.low is not None and share.high is not None and share.value is not None
        assert 0 <= share.low <= share.value <= share.high <= 1 and share.low < share.high
        moved = bounded_mean([Unit(2 * one.value - 1, one.weight) for one in units], DIFFERENCE)
        assert moved.low is not None and moved.high is not None and moved.value is not None
        assert -1 <= moved.low <= moved.value <= moved.high <= 1 and moved.low < moved.high


def test_more_confidence_is_wider() -> None:
    units = [Unit(value) for value in (0.2, 0.9, 0.4, 1.0, 0.7)]
    narrow, wide = (bounded_mean(units, confidence=level) for level in (0.9, 0.99))
    assert wide.low is not None and narrow.low is not None and wide.low < narrow.low
    assert wide.high is not None and narrow.high is not None and wide.high > narrow.high


def test_fixed_strata_leave_out_the_differences_between_them() -> None:
    """Two scenarios that differ much, each asked in four scripts that agree well."""
    far = stratified_mean([Stratum((0.9, 1.0, 0.9, 1.0), 2.0), Stratum((0.1, 0.0, 0.1, 0.0), 1.0)])
    assert far.value == pytest.approx((2 * 0.95 + 0.05) / 3)
    variance = sum((w / 3) ** 2 * statistics.variance(v) / 4 for w, v in ((2, (0.9, 1, 0.9, 1)), (1, (0.1, 0, 0.1, 0))))
    assert far.error == pytest.approx(math.sqrt(variance))
    assert far.low is not None and far.high is not None and far.high - far.low < 0.25
    assert stratified_mean([Stratum((0.5, 0.7), 1.0), Stratum((0.2,), 1.0)]).low is None
    assert stratified_mean([]) == Bounded(0, None)
    two = stratified_mean([Stratum((1.0, 1.0), 1.0)])
    assert (two.low, two.high) == pytest.approx((0.05**0.5, 1.0))
