"""Split a reply into claims: sentences, list items, clauses and table cells, each with its exact words.

If a claim names no program and refers to an earlier sentence (`It started in 2025.`), it starts with the program that
it refers to, as the reply wrote it: `Extra Help: It started in 2025.` Only text before the sentence counts, so nothing
added later changes a claim.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..records.base import ClaimType, Confidence
from ..records.contracts import ExtractorInput, ExtractorReply, QuotedClaim
from ..text.figures import figures, is_amount, kind
from ..text.sentences import Span, sentences
from . import sentence_kinds
from .text import read_words, strip_markup
from .topic import EVERYWHERE, named
from .words import DOMAIN

_MAX_CLAIMS = 1_000
MAX_QUOTE = 20_000
_STRETCH = 400

# Two clauses with a subject and a verb each, joined by a semicolon or by ", and", ", but" and the like.
_SUBJECT = (
    r"(?:medicare|medicaid|part [abcd]|medigap|original|most|some|many|hmos?|ppos?|social security|extra help|qmb|slmb|"
    r"the (?:part|plan|penalty|premium|deductible|standard|annual|initial|general|special|medigap|income|limit)|"
    r"coverage|enrollment)"
)
_REFERRING = (
    r"(?:it|they|there|that|this|these|those|none|each|every|you|your|its|their|what|who|people|the|neither|both|all)"
)
_JOINT = re.compile(
    rf";\s+(?=\S)|,\s+(?:and|but|while|whereas)\s+(?={_SUBJECT}\b)|,\s+and\s+(?:\*\*|__)?(?={_REFERRING}\b)",
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
_PROGRAM = re.compile(
    r"\b(?:Original Medicare|Medicare Advantage|Medicare Prescription Payment Plan|Medicare Savings Programs?|"
    r"Extra Help|"
    r"Part [ABD](?! and\b)|Medigap|QMB|SLMB|QI|D-SNPs?|IRMAA|COBRA|Medicaid|HMOs?|PPOs?|SHIP|"
    r"(?:[Ii]nitial|[Gg]eneral|[Ss]pecial|[Aa]nnual) [Ee]nrollment [Pp]eriod|(?:[Mm]edigap )?[Oo]pen "
    r"[Ee]nrollment(?: [Pp]eriod)?)"
    r"(?!\w)"
)
_STARTS_WITH_PRONOUN = re.compile(
    r"\W*(?:it|they|this|that|these|those|its|their|he|she)\b(?!\s+(?:depends|is worth|is best))", re.IGNORECASE
)

_BREAK = re.compile(r"[;,]\s+(?:but|and|so|which|yet|though)\b|;\s")
_POINTS_BACK = re.compile(r"\b(?:it|them|they|one|those)\b", re.IGNORECASE)


@dataclass(frozen=True)
class _Piece:
    """The text and the quotes of a claim."""

    text: str
    quotes: tuple[str, ...]


def extract(task: ExtractorInput) -> ExtractorReply:
    """A claim for every sentence, list item, clause or table cell with content."""
    claims: list[QuotedClaim] = []
    for piece in _pieces(task.reply):
        if not piece.text or any(len(quote) > MAX_QUOTE for quote in piece.quotes) or len(claims) == _MAX_CLAIMS:
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
            context = _program(quote) or ("" if span.heading else context)
            continue
        for start, end in _clauses(reply, span):
            clause = reply[start:end]
            text = strip_markup(clause)
            pronoun = bool(_STARTS_WITH_PRONOUN.match(text))
            full = text
            if context and (pronoun or (start > span.start and _POINTS_BACK.search(text))):
                full = _with_program(text, context, pronoun=pronoun)
            yield _Piece(full, (clause,))
            if full == text:  # otherwise the claim is still about the same program
                context = _program(clause) or context


def _program(text: str) -> str:
    """The program that a pronoun after this text refers to: the one it begins with, or else the last one it names."""
    found = list(_PROGRAM.finditer(text))
    if not found:
        return ""
    leads = len(text[: found[0].start()].split()) <= 3
    return found[0 if leads else -1].group()


def _with_program(text: str, context: str, *, pronoun: bool) -> str:
    """The text after the program in context, unless it names that program, or names another and has no pronoun."""
    reading = read_words(text)
    own = named(read_words(context)) <= named(reading)
    other = not pronoun and bool(named(reading) or "medicar" in reading.content)
    return text if own or other else f"{context}: {text}"


# ---- tables -----------------------------------------------------------------------------------------------------


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def _row(reply: str, quote: str, header: list[str]) -> Iterator[_Piece]:
    """A row of two columns is one claim; in a longer row, each cell is a claim with its heading and its row's label."""
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
        stated = [part for part in (*header, cells[0]) if part and figures(part) - figures(" ".join(quotes))]
        yield _Piece(f"{' | '.join(lead)}: {words}", (*quotes, *dict.fromkeys(stated)))


def _with_figures(header: list[str], quote: str) -> list[str]:
    return [cell for cell in dict.fromkeys(header) if cell and figures(cell) - figures(quote)]


# ---- sentences --------------------------------------------------------------------------------------------------


def _has_content(quote: str) -> bool:
    """Whether there is something to check: not in a label (`**Costs**`) or a lead-in (`You have two choices:`)."""
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
        # A limited stretch on each side is enough, and keeps the time linear in the length.
        left = reply[max(start, joint.start() - _STRETCH) : joint.start()]
        right = reply[joint.end() : min(span.end, joint.end() + _STRETCH)]
        whole = _VERB.search(left) and _VERB.search(right) and min(len(left.split()), len(right.split())) >= 4
        conditional = re.match(r"\W*(?:if|when|because|since|although|while|once|after|before|whether)\b", left, re.I)
        instruction = re.match(r"\W*(?:sign|enroll|wait|apply|join|miss|take|say|suppose)\b", left, re.IGNORECASE)
        if whole and not instruction and not (conditional and "," not in left):
            yield start, joint.start()
            start = joint.end()
    yield start, span.end


def _claim_type(text: str) -> ClaimType:
    if sentence_kinds.is_question(text) or sentence_kinds.is_chatter(text):
        return "other"
    if sentence_kinds.is_refusal(text) or sentence_kinds.is_unknowing(text) or sentence_kinds.is_opinion(text):
        return "factual" if _starts_with_a_statement(text) else "other"
    if not sentence_kinds.is_consequence(text):
        if sentence_kinds.is_referral(text):
            return "referral"
        if sentence_kinds.is_recommendation(text):
            return "recommendation"
    return "factual" if _is_about_medicare(text) else "other"


def _is_about_medicare(text: str) -> bool:
    """Whether it has an amount, date or duration, a name, a program or a Medicare word, or is a full statement."""
    reading = read_words(text)
    specific = any(is_amount(figure) or kind(figure) not in ("number", "year") for figure in reading.figures)
    if specific or named(reading) or reading.content & (DOMAIN | EVERYWHERE):
        return True
    if sentence_kinds.names(text) and _VERB.search(text):
        return True
    return len(reading.content) >= 4 and bool(_VERB.search(text))


def _starts_with_a_statement(text: str) -> bool:
    """Whether a refusal comes after a statement: `There is a limit on income, but I can't quote it.`"""
    first = _BREAK.split(text, maxsplit=1)[0]
    if (
        first == text
        or sentence_kinds.is_refusal(first)
        or sentence_kinds.is_unknowing(first)
        or sentence_kinds.is_chatter(first)
    ):
        return False
    return len(first.split()) >= 5 and bool(_VERB.search(first) and read_words(first).content & DOMAIN)


def _confidence(text: str) -> Confidence:
    return {"strong": "low", "mild": "medium"}.get(sentence_kinds.hedge(text), "high")  # type: ignore[return-value]
