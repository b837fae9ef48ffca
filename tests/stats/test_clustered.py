"""Shares of claims in clusters: against Wilson where there is no clustering, and coverage by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from src.stats.clustered import ASSUMED_CORRELATION, ClusterCount, clustered_share, effective_size
from src.stats.intervals import wilson
from tests.cases import each_case


def test_many_clusters_of_one_claim_are_wilson_s_interval() -> None:
    clusters = [ClusterCount(int(at < 300), 1) for at in range(1_000)]
    found, plain = clustered_share(clusters), wilson(300, 1_000)
    assert (found.count, found.n, found.value) == (300, 1_000, 0.3)
    assert found.effective == pytest.approx(1_000, rel=0.01)
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high), abs=0.001)


def test_claims_that_always_agree_within_a_cluster_count_once() -> None:
    apart = clustered_share([ClusterCount(at % 2, 1) for at in range(40)])
    together = clustered_share([ClusterCount(10 * (at % 2), 10) for at in range(40)])
    assert together.effective == pytest.approx(apart.effective, rel=0.01)
    assert (together.low, together.high) == pytest.approx((apart.low, apart.high), abs=0.001)


def test_the_effective_number_is_never_more_than_the_claims() -> None:
    assert effective_size([ClusterCount(5, 10)] * 30) <= 300  # all clusters alike: no variance between them


@each_case("count", [0, 10])
def test_without_variation_a_correlation_is_assumed_and_the_interval_has_a_width(count: int) -> None:
    found = clustered_share([ClusterCount(count, 10)] * 4)
    assert found.effective == pytest.approx(40 / (1 + 9 * ASSUMED_CORRELATION))
    assert found.low is not None and found.high is not None
    assert found.high - found.low > 0.1
    assert {0: found.low, 10: 1 - found.high}[count] == 0.0


def test_nothing_and_a_single_cluster() -> None:
    assert clustered_share([]) == clustered_share([ClusterCount(0, 0)])
    assert clustered_share([]).value is None
    one = clustered_share([ClusterCount(3, 10)])
    assert one.low is not None and one.low < 0.3 * 0.5


@each_case(("share", "correlation"), [(0.9, 0.0), (0.9, 0.2), (0.5, 0.1), (0.97, 0.1)])
def test_the_interval_covers(share: float, correlation: float) -> None:
    """Found with 2,000 simulations of 36 replies of 10 claims: 94 to 97%; Wilson's interval over claims: 77 to 96%."""
    random = np.random.default_rng(3)
    simulations, covered = 300, 0
    for _ in range(simulations):
        odds = 1 / correlation - 1 if correlation else 0.0
        shares = random.beta(share * odds, (1 - share) * odds, size=36) if correlation else np.full(36, share)
        found = clustered_share([ClusterCount(int(n), 10) for n in random.binomial(10, shares)])
        assert found.low is not None and found.high is not None
        covered += found.low <= share <= found.high
    assert covered / simulations >= 0.91
