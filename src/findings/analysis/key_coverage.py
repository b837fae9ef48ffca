"""Key coverage of trials: see `scoring.definitions`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ...stats.clustered import ClusteredShare, Tally, share_by_unit
from ...trials.row import NO_CLAIMS, ClaimCount, Row


def key_coverage(rows: Iterable[Row]) -> ClusteredShare:
    """Over the scored trials among these; scenarios are the independent units."""
    clusters: dict[str, ClaimCount] = {}
    alike = Counter([(row.scenario_id, row.claims) for row in rows if row.outcome == "scored"])
    for (scenario_id, claims), n in alike.items():
        before = clusters.get(scenario_id, NO_CLAIMS)
        clusters[scenario_id] = ClaimCount(before.decided + n * claims.decided, before.factual + n * claims.factual)
    return share_by_unit([Tally(*counts) for counts in clusters.values()])


def group_coverage(trials: Counter[ClaimCount]) -> ClusteredShare:
    """Of one question group of one scenario, so without an interval."""
    decided, factual = (sum(counts[place] * n for counts, n in trials.items()) for place in (0, 1))
    return share_by_unit([Tally(decided, factual)])
