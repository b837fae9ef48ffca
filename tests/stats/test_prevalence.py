"""Shares corrected for a test's errors: by hand, and how often the interval covers the truth, by simulation.

Simulated with 2,000 pairs of a run and a gold set for each setting (true shares 0.05, 0.3 and 0.6; gold sets of 60 and
200; 10 and 100 independent answers; tests that find 90% and wrongly give 5%, or 75% and 10%; errors within a scenario
that are alike, or not): the table is in docs/judging.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import pytest

from src.findings.code_error import corrected_share
from src.findings.estimates import Estimated
from src.records.judge_check import CodesMeasured, ReplyCode
from src.stats.bounded import Interval, mid_p_limits
from src.stats.clustered import ClusterCount
from src.stats.confusion import ErrorRates, corrected_limits, independent_size, rogan_gladen
from tests.cases import each_case


def alone(count: int, n: int) -> tuple[ClusterCount, ...]:
    """So many of n, each in a cluster of its own."""
    return (*(ClusterCount(1, 1),) * count, *(ClusterCount(0, 1),) * (n - count))


GOOD = ErrorRates(alone(90, 100), alone(5, 100))


def test_the_formula_by_hand() -> None:
    assert rogan_gladen(0.5, 1.0, 0.0) == 0.5
    assert rogan_gladen(0.9, 0.9, 0.1) == pytest.approx(1.0)
    assert rogan_gladen(0.1, 0.9, 0.1) == pytest.approx(0.0)
    assert rogan_gladen(0.3, 0.8, 0.1) == pytest.approx(2 / 7)
    assert rogan_gladen(0.02, 0.9, 0.05) < 0


@each_case("share", [0.0, 0.05, 0.4, 1.0])
@each_case("n", [2.5, 10, 137, 20_000])
def test_the_number_of_independent_values_is_found_from_the_limits(share: float, n: float) -> None:
    assert independent_size(share, mid_p_limits(share, n)) == pytest.approx(n, rel=1e-4)


def test_a_wide_interval_rests_on_hardly_any_value() -> None:
    assert independent_size(0.5, Interval(0.0, 1.0)) < 1


@pytest.mark.slow
def test_limits_agree_with_the_delta_method_where_there_is_much_data() -> None:
    rates = ErrorRates(alone(9_000, 10_000), alone(500, 10_000))
    observed, size = 0.4, 5_000.0
    limits = corrected_limits(observed, size, rates, seed=1)
    assert limits is not None
    apart = 0.85
    value = (observed - 0.05) / apart
    variance = (
        observed * (1 - observed) / size + value**2 * 0.9 * 0.1 / 10_000 + (1 - value) ** 2 * 0.05 * 0.95 / 10_000
    ) / apart**2
    half = NormalDist().inv_cdf(0.975) * variance**0.5
    assert (limits.low, limits.high) == pytest.approx((value - half, value + half), abs=0.002)


def test_limits_carry_the_error_of_the_gold_set_and_of_the_run() -> None:
    def width(size: float, gold: int) -> float:
        rates = ErrorRates(alone(round(0.9 * gold), gold), alone(round(0.1 * gold), gold))
        limits = corrected_limits(0.4, size, rates, seed=1)
        assert limits is not None
        return limits.high - limits.low

    assert width(1_000, 1_000) < width(1_000, 30) < width(20, 30)
    assert width(1_000, 1_000) < width(20, 1_000) < width(20, 30)


def test_limits_are_in_range_and_never_equal() -> None:
    for observed in (0.0, 0.02, 0.9, 0.95):
        limits = corrected_limits(observed, 40.0, GOOD, seed=3)
        assert limits is not None and 0 <= limits.low < limits.high <= 1


def test_there_are_no_limits_where_the_rates_do_not_fit() -> None:
    """Nothing was observed where false alarms alone would give half."""
    assert corrected_limits(0.0, 500.0, ErrorRates(alone(95, 100), alone(50, 100)), seed=1) is None


def test_the_same_seed_gives_the_same_limits() -> None:
    assert corrected_limits(0.3, 20.0, GOOD, seed=1) == corrected_limits(0.3, 20.0, GOOD, seed=1)
    assert corrected_limits(0.3, 20.0, GOOD, seed=1) != corrected_limits(0.3, 20.0, GOOD, seed=2)


# --- coverage ---


SCENARIOS = {60: 20, 200: 40}
"""Of a gold set, by the number of its replies."""


@dataclass(frozen=True)
class Setting:
    share: float
    gold: int
    answers: int
    found: float = 0.9
    wrongly: float = 0.05
    alike: float = 0.0
    """Correlation of the judges' errors on replies to the same scenario."""


def estimated(count: int, n: int) -> Estimated:
    limits = mid_p_limits(count / n, n)
    return Estimated(count / n, limits.low, limits.high, n, "scenario", n, n, 0, float(n))


def rate_of_a_scenario(draw: np.random.Generator, mean: float, alike: float) -> float:
    """The judges' rate on the replies of one scenario: the correlation of a beta distribution is 1 / (a + b + 1)."""
    size = 1 / alike - 1 if alike else 0.0
    return draw.beta(mean * size, (1 - mean) * size) if alike else mean


def gold_replies(setting: Setting, draw: np.random.Generator) -> Iterator[ReplyCode]:
    """Judged gold replies; 40% have the code."""
    rates = [
        [rate_of_a_scenario(draw, mean, setting.alike) for mean in (setting.wrongly, setting.found)]
        for _ in range(SCENARIOS[setting.gold])
    ]
    for number in range(setting.gold):
        place = number % len(rates)
        has = bool(draw.random() < 0.4)
        given = bool(draw.random() < rates[place][has])
        gold, code = ("incorrect" if one else "not_substantive" for one in (has, given))
        yield ReplyCode.model_construct(
            reply_id=f"r{number}", scenario_id=f"s{place}", question_group="g", gold=gold, given=code
        )


def simulated(setting: Setting, seed: int) -> bool | None:
    """Whether the interval covers the truth; None if the share was not corrected."""
    draw = np.random.default_rng(seed)
    measured = CodesMeasured(replies=tuple(gold_replies(setting, draw)), left_out={})
    rate = setting.share * setting.found + (1 - setting.share) * setting.wrongly
    run = estimated(int(draw.binomial(setting.answers, rate)), setting.answers)
    one = corrected_share(run, measured, "incorrect", seed=seed, draws=400)
    if one.why_not:
        return None
    assert one.low is not None and one.high is not None and 0 <= one.low < one.high <= 1
    return one.low <= setting.share <= one.high


def coverage(setting: Setting, simulations: int) -> float:
    given = [one for seed in range(simulations) if (one := simulated(setting, seed)) is not None]
    assert len(given) >= 0.95 * simulations
    return sum(given) / len(given)


def allowed(simulations: int) -> float:
    """Three standard errors."""
    return 3 * math.sqrt(0.95 * 0.05 / simulations)


@pytest.mark.slow
@each_case("setting", [Setting(0.05, 60, 100), Setting(0.3, 60, 10, alike=0.2), Setting(0.6, 200, 100, alike=0.2)])
def test_the_interval_covers_in_a_few_simulations(setting: Setting) -> None:
    assert coverage(setting, 80) >= 0.94 - allowed(80)


@pytest.mark.nightly
@pytest.mark.parametrize("alike", [0.0, 0.2])
@pytest.mark.parametrize("found", [0.9, 0.75])
@pytest.mark.parametrize("answers", [10, 100])
@pytest.mark.parametrize("gold", [60, 200])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.6])
def test_the_interval_covers(share: float, gold: int, answers: int, found: float, alike: float) -> None:
    """At most 98.5%: near 0 the interval ends at the edge and can miss on one side only."""
    setting = Setting(share, gold, answers, found, 0.05 if found == 0.9 else 0.1, alike)
    assert 0.94 - allowed(500) <= coverage(setting, 500) <= 0.985 + allowed(500)
