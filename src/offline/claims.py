"""Claims of a reply: one for every main clause, list item and table row, in its own words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..records.base import ClaimType, Confidence
from ..records.contracts import ExtractorInput, ExtractorReply, QuotedClaim
from ..text.coverage import is_factual, names_a_program
from ..text.figures import figures, fold, is_amount, kind
from ..text.quotes import SHORTEST
from ..text.sentences import clauses, sentences
from .reading import CONDITIONS, LOW, MEDIUM, NEGATIONS, read, spoken

MAX_QUOTE = 2_000
"""A longer sentence is not a sentence."""
_MOST_CLAIMS = 1_000
_FEWEST_WORDS = 4
_SEND = frozenset(["call", "contact", "ask", "visit"])
_ADVISE = frozenset(["should", "consider", "recommend", "suggest"])
_DOUBT = frozenset(["myth", "misconception", "wrong", "false", "heard", "told"])
"""Words of a heading whose items it does not mean."""


def extract(task: ExtractorInput) -> ExtractorReply:
    """Every sentence as a claim; if passages were left out, only those."""
    found: list[QuotedClaim] = []
    for passage in _passages(task.reply, task.plan_year):
        quotes, sentence = passage.quotes, passage.quotes[0]
        if task.left_out and not any(sentence in left for left in task.left_out):
            continue
        found.append(
            QuotedClaim(
                claim_id=f"C{len(found) + 1}",
                text=_plain(" ".join(quotes)),
                type=claim_type(sentence),
                confidence=confidence(sentence),
                # Every factual sentence must be checked, also one that advises or refers; see `text.coverage`.
                verifiable=passage.factual or claim_type(sentence) == "factual",
                quotes=quotes,
            )
        )
        if len(found) == _MOST_CLAIMS:
            break
    return ExtractorReply(claims=tuple(found))


class _Passage(NamedTuple):
    quotes: tuple[str, ...]
    """The clause first, then what a reader needs to understand it."""
    factual: bool
    """Whether its sentence must be checked."""


def _passages(reply: str, plan_year: int) -> Iterator[_Passage]:
    """Each clause, with what a reader needs to understand it: a table's header, or a heading that changes it.

    A sentence with a condition, a hedge or another limit is not split: the limit may hold for all of it.
    """
    header = heading = lead = ""
    end, items = 0, 0
    for span in sentences(reply):
        sentence = reply[span.start : span.end]
        if items and "\n\n" in reply[end : span.start]:
            lead = ""
        end = span.end
        if len(sentence) > MAX_QUOTE or sum(map(str.isalnum, sentence)) < SHORTEST:  # "**1." cannot be quoted
            continue
        if span.heading:
            heading, lead = _context(sentence, plan_year), ""
            continue
        for part in [span] if read(sentence).limits & CONDITIONS else clauses(reply, span):
            passage = (reply[part.start : part.end], heading, lead, header if span.row else "")
            yield _Passage(tuple(dict.fromkeys(filter(None, passage))), is_factual(sentence))
        header = (header or sentence) if span.row else ""
        items += 1
        if sentence.rstrip("*_ ").endswith(":"):
            lead, items = _context(sentence, plan_year), 0


def _context(text: str, plan_year: int) -> str:
    """A heading or lead-in, if what follows may be denied or may belong to another year; otherwise nothing."""
    said = read(text)
    denied = said.negations or _DOUBT.intersection(word.rstrip("s") for word in spoken(text))
    return text if denied or said.years - {str(plan_year)} else ""


def _plain(text: str) -> str:
    """Text without Markdown marks and table lines."""
    return " ".join(fold(text).replace("|", " ").split())


def declines(text: str) -> bool:
    """Whether the speaker says what it cannot or will not do or say: "I" and a negation close after it."""
    words = spoken(text)
    return any(NEGATIONS.intersection(words[at : at + 4]) for at, word in enumerate(words) if word == "i")


def has_done(words: list[str]) -> bool:
    """Whether the speaker says what it did: "I checked", "I have checked"."""
    return words[:1] == ["i"] and words[1:2] != [] and (words[1] in ("ve", "have") or words[1].endswith("ed"))


def claim_type(text: str) -> ClaimType:
    """What kind of sentence it is; only factual ones can be checked."""
    words, found = spoken(text), figures(text)
    start = set(words[:4])
    amount = any(map(is_amount, found))
    if text.rstrip("*_ \"'”’)").endswith("?") or (declines(text) and not amount):
        return "other"
    if _SEND & start or (any(kind(figure) == "phone" for figure in found) and not amount):
        return "referral"
    if _ADVISE & start:
        return "recommendation"
    rule = names_a_program(text) and len(words) >= _FEWEST_WORDS
    return "factual" if rule or is_factual(text) or has_done(words) else "other"


def confidence(text: str) -> Confidence:
    """How sure the sentence sounds."""
    words = set(spoken(text))
    return "low" if words & LOW or declines(text) else "medium" if words & MEDIUM else "high"
