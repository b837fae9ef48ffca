"""Key coverage: the share of factual claims that the answer key could decide. Accuracy speaks of these claims only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ...stats.clustered import ClusteredShare, Tally, clustered_share
from .trial_row import LEAST_SCENARIOS, ClaimCount, Row


def key_coverage(rows: Iterable[Row]) -> ClusteredShare:
    """Over the scored trials among these.

    Scenarios are the independent units, or trials if there are too few scenarios to say how much they differ.
    """
    scored = [row for row in rows if row.outcome == "scored"]
    by_scenario = len({row.scenario_id for row in scored}) >= LEAST_SCENARIOS
    clusters: dict[str, ClaimCount] = {}
    for row in scored:
        name = row.scenario_id if by_scenario else row.trial_id
        before = clusters.get(name, ClaimCount(0, 0))
        clusters[name] = ClaimCount(before.decided + row.claims.decided, before.factual + row.claims.factual)
    return clustered_share([Tally(*counts) for counts in clusters.values()])


def group_coverage(trials: Sequence[Counter[ClaimCount]]) -> ClusteredShare:
    """Of question groups; trials are the independent units."""
    return clustered_share([Tally(*counts) for group in trials for counts in group.elements()])
