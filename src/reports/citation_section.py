"""The sources that targets cite: real, official, and supporting what they are cited for?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ..findings.estimates import Estimated, estimate_shares
from ..records.citation import CITATION_OUTCOMES, INVENTED, OFFICIAL
from ..schemas import RunPlan
from ..trials.row import CitedPage, Row
from . import read_sections
from .document import Section
from .series import Runs

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


OUTCOME_NAMES = {
    "supported": "supported",
    "not_supported": "not supported",
    "not_in_snapshot": "page not in snapshot",
    "not_official": "not official",
    "disguised": "disguised",
    "malformed": "malformed",
    "dead": "no such page",
    "undecided": "undecided",
}


class _Snapshot(NamedTuple):
    """The pages that citations were checked against."""

    pages: int
    partial: int
    """Pages of which it has only a part."""
    first: str
    """The day on which the first page was taken."""
    last: str


def citation_sections(runs: Runs) -> tuple[Section, ...]:
    """One section, if a reply of these runs cites anything."""
    found = [(series, citations_of(series.rows)) for series in runs.series]
    if not any(cited.citations for _, cited in found):
        return ()
    snapshots = dict.fromkeys(_snapshot(run.found.manifest.plan) for run in runs.runs)
    names = list(OUTCOME_NAMES.values())
    return read_sections.sections("citations", runs=runs, found=found, snapshots=list(snapshots), names=names)


def _snapshot(plan: RunPlan) -> _Snapshot | None:
    """None if a release made the run that did not check citations."""
    if plan.citation_checks is None:
        return None
    pages = plan.citation_checks.pages
    days = sorted(page.fetched.isoformat() for page in pages) or [""]
    return _Snapshot(len(pages), sum(not page.whole for page in pages), days[0], days[-1])
