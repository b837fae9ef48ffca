"""The citations of one target: how many, what became of them, and the shares that a report gives with intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass

from ...records.citation import CITATION_OUTCOMES, INVENTED, OFFICIAL
from ...trials.row import CitedPage, Row
from .estimates import Estimated, estimate_shares

COMPARED = frozenset({"supported", "not_supported"})
"""Outcomes of citations whose page was compared with the statement."""


@dataclass(frozen=True)
class TargetCitations:
    """The citations of one target, each as often as it backs a claim."""

    citations: int
    replies: int
    """Replies with a citation."""
    outcomes: Mapping[str, int]
    """Every outcome, also those that did not occur."""
    official: Estimated
    """Share of citations with an official host."""
    supported: Estimated
    """Share supported by their page, of those whose page was compared."""
    invented: Estimated
    """Share whose address is disguised, malformed or dead."""


def citations_of(rows: Iterable[Row]) -> TargetCitations:
    """Count the citations of some trials."""
    placed = [(row, one) for row in rows for one in row.citations]
    counts = Counter(one.outcome for _, one in placed)
    compared = [(row, one) for row, one in placed if one.outcome in COMPARED]
    return TargetCitations(
        citations=len(placed),
        replies=len({(row.trial_id, one.turn_id) for row, one in placed}),
        outcomes={outcome: counts[outcome] for outcome in CITATION_OUTCOMES},
        official=_share(placed, OFFICIAL, lambda one: one.host_class),
        supported=_share(compared, ("supported",), lambda one: one.outcome),
        invented=_share(placed, INVENTED, lambda one: one.outcome),
    )


def _share(
    placed: Iterable[tuple[Row, CitedPage]], wanted: Container[str], of: Callable[[CitedPage], str]
) -> Estimated:
    return estimate_shares((row.scenario_id, float(of(one) in wanted)) for row, one in placed)
