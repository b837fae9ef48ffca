"""Addresses that an answer cites, the pages that a snapshot keeps, and what checking one against the other found."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal, get_args

from pydantic import Field, StringConstraints

from .base import Line, Record, Sha256
from .target import WebCitation

MAX_ADDRESS = 2_048
"""Longest address that is well formed here; longer ones are kept as they are and called malformed."""
HostClass = Literal[
    "medicare", "cms", "ssa", "other_federal", "state_agency", "ship", "other", "disguised", "malformed"
]  # fmt: skip
"""Whose address it is, by its host name alone.

`other_federal`: any other .gov or .mil name. A few of these belong to counties, cities and tribes, which a name alone
does not show. `ship`: the national site of the State Health Insurance Assistance Programs. `disguised`: made to look
like an official address. `malformed`: no address that a browser could open as it is written.
"""
OFFICIAL: frozenset[HostClass] = frozenset({"medicare", "cms", "ssa", "other_federal", "state_agency", "ship"})
FEDERAL: frozenset[HostClass] = frozenset({"medicare", "cms", "ssa", "other_federal"})
"""Their pages are in the public domain, so a snapshot keeps the text."""
CitationOutcome = Literal[
    "supported", "not_supported", "not_in_snapshot", "not_official", "disguised", "malformed", "dead", "undecided"
]  # fmt: skip
"""`dead`: the snapshot says that the official site has no such page. `undecided`: the support check was not made or
failed."""
CITATION_OUTCOMES: tuple[CitationOutcome, ...] = get_args(CitationOutcome)
INVENTED: frozenset[CitationOutcome] = frozenset({"disguised", "malformed", "dead"})
"""Outcomes that count as a fabricated specific: the address does not exist, or is not what it looks like."""
Origin = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class Citation(WebCitation):
    """One address that an answer cites, as the provider or the reply gives it.

    For an address in the text, the span is where the address is.
    """

    where: Literal["annotation", "text"]


class FigureFinding(Record):
    """A figure of the statement, normalized as in `text.figures`, and whether the page states it."""

    figure: str
    on_page: bool


class CheckedCitation(Citation):
    """A citation and what was found out about it."""

    claim_id: str | None = None
    """The claim that it was checked for; None if it backs none."""
    host_class: HostClass
    outcome: CitationOutcome
    resolved_url: str | None = None
    """Where a redirect leads, if the address itself says so."""
    final_url: str | None = None
    """Where the page was found when the snapshot was made."""
    page_date: date | None = None
    page_sha256: Sha256 | None = None
    figures: tuple[FigureFinding, ...] = ()
    why: Line

    @property
    def invented(self) -> bool:
        """Whether the address counts as a fabricated specific."""
        return self.outcome in INVENTED


class SnapshotPage(Record):
    """One line of `pages.jsonl`: a page as it was on one day."""

    url: Annotated[str, StringConstraints(pattern=r"^https?://[^\s]+$", max_length=MAX_ADDRESS)]
    final_url: Annotated[str, StringConstraints(pattern=r"^https?://[^\s]+$", max_length=MAX_ADDRESS)]
    """After redirects."""
    fetched: date
    status: int = Field(ge=100, le=599)
    """HTTP status. 404 and 410 mean that the site has no such page."""
    content_type: Annotated[str, StringConstraints(max_length=200)]
    bytes: int = Field(ge=0)
    sha256: Sha256
    """Of the bytes as they were received; of the text where `origin` says that it is no copy of the page."""
    title: Annotated[str, StringConstraints(max_length=1_000)] | None
    text: str | None
    """None for pages that are not of the U.S. government, and for formats that are not read."""
    origin: Origin
    """Where the text comes from."""
    whole: bool = True
    """Whether `text` is all of the page. If not, what it lacks says nothing about the page."""

    @property
    def is_missing(self) -> bool:
        return self.status in (404, 410)
