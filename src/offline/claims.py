"""A reply cut into claims: sentences, list items, clauses and table cells, each with its exact words.

A claim that names no program and leans on what was said before (`It started in 2025.`) is led by the program it
leans on, as the reply wrote it: `Extra Help: It started in 2025.` Only what stands before a sentence is looked at, so
that nothing added later changes a claim.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..records.base import ClaimType, Confidence
from ..records.contracts import ExtractorInput, ExtractorReply, QuotedClaim
from ..text.figures import figures, is_amount, kind
from ..text.sentences import Span, sentences
from . import frames
from .text import read_words, strip_markup
from .topic import EVERYWHERE, named
from .words import DOMAIN

_MAX_CLAIMS = 1_000
_MAX_QUOTE = 20_000
_STRETCH = 400

# Two clauses with a subject and a verb each, joined by a semicolon or by ", and", ", but" and the like.
_SUBJECT = (
    r"(?:medicare|medicaid|part [abcd]|medigap|original|most|some|many|hmos?|ppos?|social security|extra help|qmb|slmb|"
    r"the (?:part|plan|penalty|premium|deductible|standard|annual|initial|general|special|medigap|income|limit)|"
    r"coverage|enrollment)"
)
_LEANING = (
    r"(?:it|they|there|that|this|these|those|none|each|every|you|your|its|their|what|who|people|the|neither|both|all)"
)
_JOINT = re.compile(
    rf";\s+(?=\S)|,\s+(?:and|but|while|whereas)\s+(?={_SUBJECT}\b)|,\s+and\s+(?:\*\*|__)?(?={_LEANING}\b)",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"\b(?:is|are|was|were|be|has|have|had|can|can't|can’t|cannot|could|may|might|must|will|won't|won’t|would|"
    r"should|do|does|"
    r"don't|don’t|doesn't|doesn’t|isn't|isn’t|aren't|aren’t|pays?|covers?|starts?|begins?|ends?|lasts?|runs?|"
    r"costs?|uses?|"
    r"needs?|gets?|applies|apply|allows?|includes?|requires?|charges?|keeps?|goes|offers?|counts?|depends?|stays?|"
    r"limits?|helps?|enroll|loses?|owes?|comes?|adds?|lets?|gives?|makes?|takes?|cuts?|brings?|sets?|launched|started|"
    r"it's|it’s|there's|there’s|that's|that’s|you'll|you’ll|they're|they’re|you're|you’re)\b",
    re.IGNORECASE,
)
_PROGRAMME = re.compile(
    r"\b(?:Original Medicare|Medicare Advantage|Medicare Prescription Payment Plan|Medicare Savings Programs?|"
    r"Extra Help|"
    r"Part [ABD](?! and\b)|Medigap|QMB|SLMB|QI|D-SNPs?|IRMAA|COBRA|Medicaid|HMOs?|PPOs?|SHIP|"
    r"(?:[Ii]nitial|[Gg]eneral|[Ss]pecial|[Aa]nnual) [Ee]nrollment [Pp]eriod|(?:[Mm]edigap )?[Oo]pen "
    r"[Ee]nrollment(?: [Pp]eriod)?)"
    r"(?!\w)"
)
_LEANS = re.compile(
    r"\W*(?:it|they|this|that|these|those|its|their|he|she)\b(?!\s+(?:depends|is worth|is best))", re.IGNORECASE
)

_BREAK = re.compile(r"[;,]\s+(?:but|and|so|which|yet|though)\b|;\s")
_POINTS_BACK = re.compile(r"\b(?:it|them|they|one|those)\b", re.IGNORECASE)


@dataclass(frozen=True)
class _Piece:
    """A claim's quotes and its words before context is added."""

    text: str
    quotes: tuple[str, ...]


def extract(task: ExtractorInput) -> ExtractorReply:
    """A claim for every sentence, list item, clause or table cell with content."""
    claims: list[QuotedClaim] = []
    for piece in _pieces(task.reply):
        if not piece.text or any(len(quote) > _MAX_QUOTE for quote in piece.quotes) or len(claims) == _MAX_CLAIMS:
            continue
        kind_of_claim = _claim_type(piece.text)
        claims.append(
            QuotedClaim(
                claim_id=f"C{len(claims) + 1}",
                text=piece.text,
                type=kind_of_claim,
                confidence=_confidence(piece.text),
                verifiable=kind_of_claim == "factual",
                quotes=piece.quotes,
            )
        )
    return ExtractorReply(claims=tuple(claims))


def _pieces(reply: str) -> Iterator[_Piece]:
    spans = sentences(reply)
    header: list[str] = []
    context = ""
    for at, span in enumerate(spans):
        quote = reply[span.start : span.end]
        if span.row:
            is_header = at + 1 < len(spans) and spans[at + 1].row and (at == 0 or not spans[at - 1].row)
            if is_header:
                header = _cells(quote)
            elif _has_content(quote):
                yield from _row(reply, quote, header if at and spans[at - 1].row else [])
            continue
        if span.heading or not _has_content(quote):
            context = _programme(quote) or ("" if span.heading else context)
            continue
        for start, end in _clauses(reply, span):
            clause = reply[start:end]
            text = strip_markup(clause)
            pronoun = bool(_LEANS.match(text))
            led = text
            if context and (pronoun or (start > span.start and _POINTS_BACK.search(text))):
                led = _led(text, context, pronoun=pronoun)
            yield _Piece(led, (clause,))
            if led == text:  # what leans on a program still speaks of it
                context = _programme(clause) or context


def _programme(text: str) -> str:
    """The program a sentence begins with, or else the one it names last: what a pronoun behind it stands for."""
    found = list(_PROGRAMME.finditer(text))
    if not found:
        return ""
    leads = len(text[: found[0].start()].split()) <= 3
    return found[0 if leads else -1].group()


def _led(text: str, context: str, *, pronoun: bool) -> str:
    """The text behind the program it leans on, unless it names that, or leans on none and names another."""
    reading = read_words(text)
    own = named(read_words(context)) <= named(reading)
    other = not pronoun and bool(named(reading) or "medicar" in reading.content)
    return text if own or other else f"{context}: {text}"


# ---- tables -----------------------------------------------------------------------------------------------------


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def _row(reply: str, quote: str, header: list[str]) -> Iterator[_Piece]:
    """A row of two columns is one claim; of more, each cell is one, under its heading and behind its row's label."""
    cells = _cells(quote)
    plain = [strip_markup(cell) for cell in cells]
    names = [strip_markup(cell) for cell in header] if len(header) == len(cells) else [""] * len(cells)
    if len(cells) <= 2 or not plain[0]:
        said = [f"{name}: {cell}" if name else cell for name, cell in zip(names, plain, strict=True) if cell]
        yield _Piece(" | ".join(said), (quote, *_with_figures(header, quote)))
        return
    for name, cell, words in zip(names[1:], cells[1:], plain[1:], strict=True):
        if not words or not any(letter.isalnum() for letter in words):
            continue
        quotes = (cell,) if reply.count(cell) == 1 else (quote,)
        lead = [part for part in (name, plain[0]) if part]
        told = [part for part in (*header, cells[0]) if part and figures(part) - figures(" ".join(quotes))]
        yield _Piece(f"{' | '.join(lead)}: {words}", (*quotes, *dict.fromkeys(told)))


def _with_figures(header: list[str], quote: str) -> list[str]:
    return [cell for cell in dict.fromkeys(header) if cell and figures(cell) - figures(quote)]


# ---- sentences --------------------------------------------------------------------------------------------------


def _has_content(quote: str) -> bool:
    """A label such as `**Costs**` or a lead-in such as `You have two choices:` claims nothing that can be checked."""
    words = re.findall(r"[^\W\d_]+", quote)
    label = bool(re.fullmatch(r"\s*(\*\*|__)[^*_]{1,80}\1:?\s*", quote)) and not quote.rstrip("*_ ").endswith(
        (".", "!")
    )
    if quote.rstrip("*_ ").endswith(":") or label:
        return bool(figures(quote)) and len(words) >= 5 and bool(_VERB.search(quote)) and not label
    return len(words) >= 3 or (bool(figures(quote)) and len(words) >= 1)


def _clauses(reply: str, span: Span) -> Iterator[tuple[int, int]]:
    start = span.start
    for joint in _JOINT.finditer(reply, span.start, span.end):
        # Looking at a stretch on each side is enough, and keeps time in step with length.
        left = reply[max(start, joint.start() - _STRETCH) : joint.start()]
        right = reply[joint.end() : min(span.end, joint.end() + _STRETCH)]
        whole = _VERB.search(left) and _VERB.search(right) and min(len(left.split()), len(right.split())) >= 4
        conditional = re.match(r"\W*(?:if|when|because|since|although|while|once|after|before|whether)\b", left, re.I)
        bidding = re.match(r"\W*(?:sign|enroll|wait|apply|join|miss|take|say|suppose)\b", left, re.IGNORECASE)
        if whole and not bidding and not (conditional and "," not in left):
            yield start, joint.start()
            start = joint.end()
    yield start, span.end


def _claim_type(text: str) -> ClaimType:
    if frames.is_question(text) or frames.is_chatter(text):
        return "other"
    if frames.is_refusal(text) or frames.is_unknowing(text) or frames.is_opinion(text):
        return "factual" if _tells_something(text) else "other"
    if not frames.is_consequence(text):
        if frames.is_referral(text):
            return "referral"
        if frames.is_recommendation(text):
            return "recommendation"
    return "factual" if _is_of_the_field(text) else "other"


def _is_of_the_field(text: str) -> bool:
    """Whether it has a telling figure, a name, a program or a word of the field; or else is a full statement."""
    reading = read_words(text)
    telling = any(is_amount(figure) or kind(figure) not in ("number", "year") for figure in reading.figures)
    if telling or named(reading) or reading.content & (DOMAIN | EVERYWHERE):
        return True
    if frames.names(text) and _VERB.search(text):
        return True
    return len(reading.content) >= 4 and bool(_VERB.search(text))


def _tells_something(text: str) -> bool:
    """Whether a refusal comes behind a statement: `There is a limit on income, but I can't quote it.`"""
    first = _BREAK.split(text, maxsplit=1)[0]
    if first == text or frames.is_refusal(first) or frames.is_unknowing(first) or frames.is_chatter(first):
        return False
    return len(first.split()) >= 5 and bool(_VERB.search(first) and read_words(first).content & DOMAIN)


def _confidence(text: str) -> Confidence:
    return {"strong": "low", "mild": "medium"}.get(frames.hedge(text), "high")  # type: ignore[return-value]
