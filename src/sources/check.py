"""Check a citation of a statement against a snapshot: all that code can decide; the rest is a question for a verifier.

A verifier is asked as always, with a key of one fact: the passage of the page. It never sees the address.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..records.base import Label
from ..records.citation import (
    CheckedCitation,
    Citation,
    CitationOutcome,
    FigureFinding,
    SnapshotPage,
)
from ..records.contracts import Claim, ClaimInView, FactInView, KeyInView
from ..text.sentences import sentences
from .addresses import Address, classify
from .passages import figure_findings, passage_for
from .snapshot import Snapshot

PASSAGE_ID = "P1"
_PARAGRAPH = re.compile(r"\n[ \t]*\n|\n(?=[ \t]*(?:[-+*•‣◦▪–·]|\(?[0-9]{1,3}[.)]|#{1,6})[ \t])")
"""Where a paragraph, a list item or a heading begins."""


@dataclass(frozen=True)
class Statement:
    """What a citation is cited for."""

    text: str
    claim_id: str | None = None
    quotes: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    """Texts whose figures the page need not state: the question, and what is known about the person."""


@dataclass(frozen=True)
class SupportRequest:
    """What is left to ask of a verifier: does the passage support the statement?"""

    statement: Statement
    citation: Citation
    address: Address
    page: SnapshotPage
    passage: str
    figures: tuple[FigureFinding, ...]

    @property
    def key(self) -> KeyInView:
        """The passage as a key of one fact."""
        fact = FactInView(fact_id=PASSAGE_ID, statement=self.passage, severity_if_wrong="medium")
        return KeyInView(canonical_facts=(fact,), disallowed_claims=())

    @property
    def claim(self) -> ClaimInView:
        one = self.statement
        return ClaimInView(claim_id=one.claim_id or "C1", text=one.text, quotes=one.quotes or (one.text,))


@dataclass(frozen=True)
class Backing:
    """A citation and the claims that it backs; none if its place in the reply is not known or has no claim."""

    citation: Citation
    claim_ids: tuple[str, ...]


def check_citation(
    statement: Statement | None, citation: Citation, snapshot: Snapshot
) -> CheckedCitation | SupportRequest:
    """What code finds out about one citation of one statement.

    Args:
        statement: what it is cited for; None if it backs no claim. Then only the address and the page are checked.
        citation: the address as it was given.
        snapshot: the pages that are known.

    Returns:
        The outcome, or a `SupportRequest` for a verifier, whose label `settle` turns into the outcome.

    Example:
        >>> one = Citation(url="https://medicare-gov.com/costs", where="text")
        >>> check_citation(None, one, Snapshot(())).outcome
        'disguised'
    """
    address = classify(citation.url)
    by_address = _by_address(citation, address)
    if by_address:
        return _checked(statement, citation, address, *by_address)
    page = snapshot.find(address.resolved_url or citation.url)
    if page is None:
        why = "The address is official and well formed, but the page is not in the snapshot."
        return _checked(statement, citation, address, "not_in_snapshot", why)
    by_page = _by_page(statement, page)
    if by_page:
        return _checked(statement, citation, address, *by_page, page=page)
    assert statement is not None
    assert page.text is not None
    figures = figure_findings(statement.text, page.text, statement.given)
    missing = [one.figure for one in figures if not one.on_page]
    if missing and page.whole:
        listed = ", ".join(_readable(one) for one in missing[:5])
        why = f"The page does not state {listed}."
        return _checked(statement, citation, address, "not_supported", why, page=page, figures=figures)
    return SupportRequest(statement, citation, address, page, passage_for(statement.text, page.text), figures)


def settle(request: SupportRequest, label: Label | None, failure: str | None = None) -> CheckedCitation:
    """The outcome of a support check.

    Args:
        request: what was asked.
        label: the verifier's label for the claim; None if it gave none.
        failure: why it gave none, in a few words.
    """
    day = request.page.fetched.isoformat()
    outcome: CitationOutcome
    if label is None:
        outcome, why = "undecided", f"The support check failed: {failure or 'the judge gave no label'}."
    elif label == "SUPPORTED":
        outcome, why = "supported", f"The page of {day} says so."
    elif label == "CONTRADICTED":
        outcome, why = "not_supported", f"The page of {day} says something else."
    elif request.page.whole:
        outcome, why = "not_supported", f"The page of {day} does not say so."
    else:
        outcome, why = (
            "not_in_snapshot",
            "The snapshot has only a part of this page, which does not cover the statement.",
        )
    return _checked(
        request.statement,
        request.citation,
        request.address,
        outcome,
        why,
        page=request.page,
        figures=request.figures,
    )


def attach(reply: str, claims: Sequence[Claim], citations: Sequence[Citation]) -> tuple[Backing, ...]:
    """Which claims each citation backs: those whose quotes it overlaps, else those of its sentence, else of its
    paragraph or list item."""
    return tuple(Backing(one, _backed(reply, claims, one)) for one in citations)


def _backed(reply: str, claims: Sequence[Claim], citation: Citation) -> tuple[str, ...]:
    if citation.start is None or citation.end is None:
        return ()
    for start, end in _around(reply, citation.start, citation.end):
        found = [
            claim.claim_id
            for claim in claims
            if any(span.start < end and start < span.end for span in claim.quote_spans)
        ]
        if found:
            return tuple(found)
    return ()


def _around(reply: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The span itself, its sentence, and its paragraph."""
    yield start, end
    touched = [span for span in sentences(reply) if span.start < end and start < span.end]
    if touched:
        yield touched[0].start, touched[-1].end
    breaks = [0, *(match.end() for match in _PARAGRAPH.finditer(reply)), len(reply)]
    yield max(one for one in breaks if one <= start), min((one for one in breaks if one >= end), default=len(reply))


def _by_address(citation: Citation, address: Address) -> tuple[CitationOutcome, str] | None:
    """The outcome that the address alone decides; None if it is official."""
    if address.redirect == "unresolved":
        return "not_in_snapshot", address.why
    if address.host_class == "malformed":
        return "malformed", address.why
    if address.host_class == "disguised":
        return "disguised", address.why
    if address.is_official:
        return None
    shown = _shown_host(citation)
    if shown:
        return "disguised", f"The link shows {shown[:80]}, but leads to another site."
    return "not_official", address.why


def _shown_host(citation: Citation) -> str | None:
    """The official address that a link in the text shows though it leads elsewhere. Titles that providers give are
    often the name of the site behind a redirect, so they count for nothing here."""
    if citation.where != "text" or not citation.title:
        return None
    words = [word.strip(".,;:()[]*_") for word in citation.title.split()]
    named = [word for word in words if "." in word and classify(word).is_official]
    return named[0] if named and len(words) == 1 else None


def _by_page(statement: Statement | None, page: SnapshotPage) -> tuple[CitationOutcome, str] | None:
    """The outcome that the page decides before its text is read."""
    day = page.fetched.isoformat()
    if page.is_missing:
        return "dead", f"The official site had no such page on {day} (status {page.status})."
    if not page.text:
        return "not_in_snapshot", f"The page existed on {day}, but the snapshot has no text of it."
    if statement is None:
        return "undecided", "The page is in the snapshot, but the citation backs no statement that could be checked."
    return None


def _checked(
    statement: Statement | None,
    citation: Citation,
    address: Address,
    outcome: CitationOutcome,
    why: str,
    *,
    page: SnapshotPage | None = None,
    figures: tuple[FigureFinding, ...] = (),
) -> CheckedCitation:
    given: dict[str, Any] = dict(citation)
    host_class = "disguised" if outcome == "disguised" else address.host_class
    return CheckedCitation(
        **given,
        claim_id=statement.claim_id if statement else None,
        host_class=host_class,
        outcome=outcome,
        resolved_url=address.resolved_url,
        final_url=page.final_url if page else None,
        page_date=page.fetched if page else None,
        page_sha256=page.sha256 if page else None,
        figures=figures,
        why=" ".join(why.split())[:1_000],
    )


def _readable(token: str) -> str:
    """A normalized figure as a person reads it: n65 is 65, tel:1800... is a phone number."""
    return token.removeprefix("tel:").removeprefix("n") if not token.startswith("$") else token
