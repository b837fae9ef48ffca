"""Check a citation of a statement against a snapshot: all that code can decide; the rest is a question for a verifier.

A verifier is asked as always, with a key of one fact: the passage of the page. It never sees the address.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ...records.base import Label
from ...records.citation import CheckedCitation, Citation, CitationOutcome, FigureFinding, SnapshotPage
from ...records.contracts import Claim, ClaimInView, FactInView, KeyInView
from ...text.figures import TextFigure, figures, find_figures, fold, kind
from ...text.quantities import says_as_much, single_times
from ...text.retrieval import terms
from ...text.sentences import Span, sentences
from .addresses import Address, classify
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
class CitedClaims:
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
        request.statement, request.citation, request.address, outcome, why, page=request.page, figures=request.figures
    )


def attach(reply: str, claims: Sequence[Claim], citations: Sequence[Citation]) -> tuple[CitedClaims, ...]:
    """Which claims each citation backs: those whose quotes it overlaps, else those of its sentence, else of its
    paragraph or list item."""
    return tuple(CitedClaims(one, _backed(reply, claims, one)) for one in citations)


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


# What a page says about a statement: whether it states its figures, and the passage that is about it.

PASSAGE = 2_400
"""Characters of a passage, about a long paragraph for each of the best places; a shorter page is shown whole."""
_FIGURE_WEIGHT = 2.0
"""A shared figure says more than a shared word."""
_NEIGHBOR = 0.5
"""How much of its score a sentence lends to the one before and after it: what it means is often said there."""
_GAP = " [...] "
_NUMBERED = re.compile(
    r"\b(day|week|month|year)s? ([0-9]{1,4})(?: ?(?:-|to|through|and) ?([0-9]{1,4}))?\b", re.IGNORECASE
)


def figure_findings(statement: str, page_text: str, given: Sequence[str] = ()) -> tuple[FigureFinding, ...]:
    """Each figure of a statement, and whether the page states it or an equal quantity.

    A calendar year counts only if the statement has no other figure: pages often give the year in a heading, or not
    at all, and which year a figure is of is for the support check. Small numbers in words ("two ways") do not count.

    Args:
        statement: what the page is cited for.
        page_text: the whole text of the page.
        given: texts whose figures the page need not state: the question, and what is known about the person.

    Example:
        >>> figure_findings("Part B costs $202.90 a month in 2026.", "The premium is $202.90 per month.")
        (FigureFinding(figure='$202.90', on_page=True),)
    """
    found = (figure for figure in find_figures(statement) if not _is_count(figure, statement))
    tokens = dict.fromkeys(figure.token for figure in found)
    unknown = [token for token in tokens if not any(says_as_much(token, statement, text) for text in given)]
    telling = [token for token in unknown if not _is_year(token)] or unknown
    stated = single_times(page_text) | _numbered(page_text)
    return tuple(
        FigureFinding(figure=one, on_page=one in stated or says_as_much(one, statement, page_text)) for one in telling
    )


@lru_cache(maxsize=256)
def _numbered(text: str) -> frozenset[str]:
    """Durations that a page gives as numbers of days ("days 21-100"), and numbers that it gives with a unit."""
    found = {
        f"{number} {match[1].lower()}s" for match in _NUMBERED.finditer(fold(text)) for number in match.groups()[1:]
    }
    return frozenset(found) | {f"n{token.partition(' ')[0]}" for token in figures(text) if " " in token}


def _is_count(figure: TextFigure, text: str) -> bool:
    return kind(figure.token) == "number" and not re.search("[0-9]", text[figure.start : figure.end])


def _is_year(token: str) -> bool:
    return kind(token) == "year" and " " not in token


def passage_for(statement: str, page_text: str, limit: int = PASSAGE) -> str:
    """The sentences of a page that share most with a statement, with those around them, in the order of the page."""
    if len(page_text) <= limit:
        return page_text
    spans = _pieces(page_text, limit)
    scores = _scores(statement, page_text, spans)
    lent = [
        score + _NEIGHBOR * max([*scores[max(0, place - 1) : place], *scores[place + 1 : place + 2]], default=0.0)
        for place, score in enumerate(scores)
    ]
    chosen: set[int] = set()
    left = limit
    for place in sorted(range(len(spans)), key=lambda place: (-lent[place], place)):
        size = spans[place].end - spans[place].start + len(_GAP)
        if size <= left and lent[place] > 0:
            chosen.add(place)
            left -= size
    return _joined(page_text, spans, sorted(chosen)) if chosen else page_text[:limit]


def _pieces(text: str, limit: int) -> list[Span]:
    """Sentences; one that is too long for a passage is cut into parts."""
    step = limit // 3
    return [
        Span(start, min(start + step, span.end))
        for span in sentences(text)
        for start in range(span.start, span.end, step)
    ]


def _scores(statement: str, text: str, spans: Sequence[Span]) -> list[float]:
    """How much each sentence shares with the statement; a term counts the more, the fewer sentences have it."""
    wanted = terms(statement)
    held = [terms(text[span.start : span.end]) & wanted for span in spans]
    counts = Counter(term for one in held for term in one)
    weights = {term: math.log(1 + len(spans) / count) for term, count in counts.items()}
    numbers = {figure.token for figure in find_figures(statement)}
    scores = [sum(weights[term] * (_FIGURE_WEIGHT if term in numbers else 1.0) for term in sorted(one)) for one in held]
    elsewhere = [token for token in numbers if token not in counts and not _is_year(token)]
    for place, span in enumerate(spans if elsewhere else ()):
        if scores[place] or len(spans) < 1_000:
            same = sum(says_as_much(token, statement, text[span.start : span.end]) for token in elsewhere)
            scores[place] += same * _FIGURE_WEIGHT * math.log(1 + len(spans))
    return scores


def _joined(text: str, spans: Sequence[Span], chosen: Sequence[int]) -> str:
    parts: list[str] = []
    for number, place in enumerate(chosen):
        if number:
            follows = place == chosen[number - 1] + 1
            parts.append(text[spans[place - 1].end : spans[place].start] or " " if follows else _GAP)
        parts.append(text[spans[place].start : spans[place].end])
    return "".join(parts)
