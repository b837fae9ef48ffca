"""Which sentences of a reply no claim covers, and which state something that a key could check."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..schemas import Claim
from .figures import figures, kind
from .patterns import load_patterns
from .quantities import unstated
from .sentences import Span, sentences

_FEWEST_WORDS = 4
_IN_BOLD = re.compile(r"(\*\*|__)[^*_]+\1[.:]?")
_CHECKABLE_KINDS = frozenset({"money", "percent", "date"})
_PATTERNS = load_patterns(Path(__file__).with_suffix(".toml"))
COVERAGE_BELOW = 0.8
"""Fraction of factual sentences that claims must cover; below it the extractor is asked once more for the rest."""


def names_a_program(text: str) -> bool:
    return _PATTERNS["program"].search(text) is not None


@dataclass(frozen=True)
class Coverage:
    sentences: int
    """How many sentences a claim must cover; see `coverage`."""
    left_out: tuple[Span, ...]
    """Those that no claim covers."""

    @property
    def covered(self) -> int:
        return self.sentences - len(self.left_out)

    @property
    def enough(self) -> bool:
        return self.covered >= COVERAGE_BELOW * self.sentences


@lru_cache(maxsize=1024)
def is_factual(sentence: str) -> bool:
    """Whether a sentence states a fact: it has an amount, a date or a duration, or a rule about a program."""
    if _is_question(sentence):
        return False
    if has_checkable_figure(sentence):
        return True
    return (
        bool(_PATTERNS["program"].search(sentence) and _PATTERNS["rule"].search(sentence))
        and len(sentence.split()) >= _FEWEST_WORDS
    )


def _is_checkable(figure: str) -> bool:
    """Money, a percentage, a date or a duration."""
    return kind(figure) in _CHECKABLE_KINDS or " " in figure


def factual_sentences(reply: str) -> list[Span]:
    return [span for span in sentences(reply) if not span.heading and is_factual(reply[span.start : span.end])]


def coverage(reply: str, claims: Sequence[Claim]) -> Coverage:
    """Which sentences claims cover: their quotes hold at least half of the letters, and their texts every figure.

    A factual sentence must be covered by claims that are checked; for any other, a claim of any kind is enough.
    """
    spans = sentences(reply)
    checked = [claim for claim in claims if claim.verifiable]
    in_checked, in_any = _places(reply, checked), _places(reply, claims)
    texts = _texts_by_sentence(spans, checked)
    counted, left_out = 0, []
    for place, one in enumerate(spans):
        text = reply[one.start : one.end]
        if not _counts(text, one.heading):
            continue
        counted += 1
        quoted = in_checked if is_factual(text) or has_checkable_figure(text) else in_any
        if not _covers(text, quoted[one.start : one.end], texts[place]):
            left_out.append(one)
    return Coverage(counted, tuple(left_out))


def _texts_by_sentence(found: Sequence[Span], claims: Sequence[Claim]) -> list[list[str]]:
    """For each sentence, the texts of the claims whose quotes overlap it."""
    starts = [span.start for span in found]
    texts: list[list[str]] = [[] for _ in found]
    for claim in claims:
        for quote in claim.quote_spans:
            for place in range(max(0, bisect_right(starts, quote.start) - 1), bisect_left(starts, quote.end)):
                if quote.start < found[place].end:
                    texts[place].append(claim.text)
    return texts


def _places(reply: str, claims: Iterable[Claim]) -> bytes:
    """One byte per character of the reply: 1 where a claim quotes it."""
    places = bytearray(len(reply))
    for claim in claims:
        for span in claim.quote_spans:
            places[span.start : span.end] = b"\1" * (span.end - span.start)
    return bytes(places)


def _counts(sentence: str, heading: bool) -> bool:
    """Whether a claim must cover a sentence. Anything with an amount, percentage, date or duration counts.

    Otherwise questions, headings, lines in bold, lead-ins to a list and fragments do not.
    """
    if has_checkable_figure(sentence):
        return True
    if heading or _is_question(sentence) or len(sentence.split()) < _FEWEST_WORDS:
        return False
    return is_factual(sentence) or not (sentence.rstrip("*_ ").endswith(":") or _IN_BOLD.fullmatch(sentence))


@lru_cache(maxsize=1024)
def has_checkable_figure(text: str) -> bool:
    return any(map(_is_checkable, figures(text)))


def _is_question(sentence: str) -> bool:
    return sentence.rstrip("*_ \"'”’)").endswith("?")


def _covers(sentence: str, quoted: bytes, texts: Sequence[str]) -> bool:
    letters = bytes(map(str.isalnum, sentence))
    if 2 * (int.from_bytes(letters) & int.from_bytes(quoted)).bit_count() < letters.count(1):
        return False
    # A claim that quotes a whole sentence may still be silent about the half of it that is wrong.
    return not any(map(_is_checkable, unstated(sentence, texts))) if has_checkable_figure(sentence) else True


# Replies that no judge needs to read: without a letter or digit, a stock refusal, or a few words without a fact.

_ANSWERS = re.compile(r"\b(?:yes|no|nothing|free|ask|call|must|need|have to|never|always)\b", re.IGNORECASE)
"""Words that make even a short reply an answer."""
SHORT = 3
"""A reply of at most this many words needs no judge if it answers nothing; four words can be a false statement."""
BOILERPLATE_LENGTH = 40
STOCK_REFUSAL = "a stock refusal"
STOCK_QUOTE = 1_000
"""How many characters of a stock refusal are kept as its quote."""


def has_content(text: str) -> bool:
    """Whether there is any letter or digit."""
    return any(char.isalnum() for char in text)


def says_nothing(reply: str) -> str | None:
    """Why a reply needs no judge (a stock refusal, or a few words without a fact); None if a judge must read it."""
    if factual_sentences(reply):
        return None
    words = len(reply.split())
    if words <= BOILERPLATE_LENGTH and _PATTERNS["boilerplate"].search(reply):
        return STOCK_REFUSAL
    answers = names_a_program(reply) or figures(reply) or _ANSWERS.search(reply)
    return "a few words without a fact" if words <= SHORT and not answers else None
