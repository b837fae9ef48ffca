"""Key coverage: the share of factual claims that the answer key could decide. Accuracy speaks of these claims only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ...stats.clustered import ClusteredShare, Tally, clustered_share
from .trial_row import ClaimCount, Row


def key_coverage(rows: Iterable[Row]) -> ClusteredShare:
    """Over the scored trials among these. Scenarios are the independent units, or trials if there is one scenario."""
    scored = [row for row in rows if row.outcome == "scored"]
    one = len({row.scenario_id for row in scored}) == 1
    clusters: dict[str, ClaimCount] = {}
    for row in scored:
        name = row.trial_id if one else row.scenario_id
        before = clusters.get(name, ClaimCount(0, 0))
        clusters[name] = ClaimCount(before.decided + row.claims.decided, before.factual + row.claims.factual)
    return clustered_share([Tally(*counts) for counts in clusters.values()])


def group_coverage(trials: Sequence[Counter[ClaimCount]]) -> ClusteredShare:
    """Of question groups; trials are the independent units."""
    return clustered_share([Tally(*counts) for group in trials for counts in group.elements()])
