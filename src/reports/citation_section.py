"""The sources that targets cite: real, official, and supporting what they are cited for?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..findings.estimates import Estimated, estimate_shares
from ..records.citation import CITATION_OUTCOMES, INVENTED, OFFICIAL
from ..schemas import RunPlan
from ..text.count import counted
from ..trials.row import CitedPage, Row
from .document import Block, Cell, Column, Paragraph, Section, Table, count_cell, share_cell, words
from .series import Runs, Series

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


HOW = (
    "Citations are addresses in replies, and sources that a provider attached to them. Code checks the form of an "
    "address, whose it is, and whether the figures of the statement are on the page; a verifier reads the page's "
    "passage as a key of one fact. Nothing is fetched while a run goes on: a page that the snapshot lacks accuses "
    "nobody. A citation that backs two claims counts twice. Disguised and malformed addresses, and those of pages "
    "that an official site does not have, are fabricated specifics."
)


def citation_sections(runs: Runs) -> Iterator[Section]:
    """One section, if a reply of these runs cites anything."""
    found = [(series, citations_of(series.rows)) for series in runs.series]
    if not any(cited.citations for _, cited in found):
        return
    blocks: tuple[Block, ...] = (
        Paragraph(words(HOW)),
        *(Paragraph(words(text)) for text in _snapshots(runs)),
        _shares(runs, found),
        _outcomes(runs, found),
    )
    yield Section(words("Sources that the targets cite"), blocks, short="Citations")


def _snapshots(runs: Runs) -> Iterator[str]:
    """What the citations were checked against, each sentence once."""
    return iter(dict.fromkeys(_snapshot(run.found.manifest.plan) for run in runs.runs))


def _snapshot(plan: RunPlan) -> str:
    checks = plan.citation_checks
    if checks is None:
        return "Citations were not checked: the run was made by an earlier release."
    if not checks.pages:
        return "No snapshot of pages was used, so only addresses were checked."
    days = sorted(page.fetched.isoformat() for page in checks.pages)
    when = f"on {days[0]}" if days[0] == days[-1] else f"from {days[0]} to {days[-1]}"
    partial = sum(not page.whole for page in checks.pages)
    parts = f" Of {counted(partial, 'page')} it has only a part, which can confirm but not refute." if partial else ""
    return f"The snapshot has {counted(len(checks.pages), 'page')}, taken {when}.{parts}"


Found = list[tuple[Series, TargetCitations]]


def _shares(runs: Runs, found: Found) -> Table:
    rows = tuple(
        (
            *runs.lead(series),
            count_cell(cited.citations),
            count_cell(cited.replies),
            *(share_cell(share) if share.value is not None else Cell("none") for share in _listed(cited)),
        )
        for series, cited in found
    )
    names = ("of an official site", "supported, of those compared", "invented addresses")
    columns = (
        *runs.lead_columns(),
        Column("citations"),
        Column("replies that cite"),
        *(Column(name, "other") for name in names),
    )
    return Table("Citations by target, with 95% intervals clustered by scenario.", columns, rows)


def _listed(cited: TargetCitations) -> Iterator[Estimated]:
    yield from (cited.official, cited.supported, cited.invented)


def _outcomes(runs: Runs, found: Found) -> Table:
    rows = tuple((*runs.lead(series), *(count_cell(n) for n in cited.outcomes.values())) for series, cited in found)
    columns = (*runs.lead_columns(), *(Column(name) for name in OUTCOME_NAMES.values()))
    return Table("What became of each citation.", columns, rows)
