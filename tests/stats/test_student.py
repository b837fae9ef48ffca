"""Student's t distribution against scipy."""

from __future__ import annotations

import pytest
from scipy import stats as scipy_stats

from src.stats.intervals import student_cdf, student_quantile
from tests.cases import each_case


@each_case("degrees", [0.7, 1, 1.3, 2.5, 4, 14.2, 99, 100_000])
def test_distribution_function_and_quantile_for_any_degrees_of_freedom(degrees: float) -> None:
    for t in (-40.0, -2.0, -1e-9, 0.0, 1e-9, 0.3, 1.0, 2.5, 40.0):
        assert student_cdf(t, degrees) == pytest.approx(float(scipy_stats.t.cdf(t, degrees)), rel=1e-9, abs=1e-15)
    for p in (0.001, 0.025, 0.3, 0.5, 0.6, 0.95, 0.975, 0.9999):
        assert student_quantile(p, degrees) == pytest.approx(float(scipy_stats.t.ppf(p, degrees)), rel=1e-8, abs=1e-9)
    for p, bad in ((0.0, 1.0), (1.0, 1.0), (0.5, 0.0)):
        with pytest.raises(ValueError, match="quantile"):
            student_quantile(p, bad)


@each_case("degrees", [1, 2, 3, 4, 5, 7, 10, 19, 29, 99, 999, 10_000, 100_000])
@each_case("p", [0.5, 0.55, 0.75, 0.9, 0.95, 0.975, 0.995, 0.9995])
def test_quantiles_for_whole_degrees_of_freedom(p: float, degrees: int) -> None:
    assert student_quantile(p, degrees) == pytest.approx(float(scipy_stats.t.ppf(p, degrees)), rel=1e-9, abs=1e-9)
