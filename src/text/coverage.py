"""Which sentences of a reply no claim covers, and which state something that a key could check.

There is one meaning of "checkable", here and in the extractor's prompt. A sentence is checkable if it states an amount,
a percentage, a date or a duration, or if it asserts anything that is not about the conversation itself. Questions,
greetings, offers, announcements of what follows, and what the assistant says of itself or of its answer are not, unless
they assert a rule besides ("I can tell you that Part B is free").
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..schemas import Claim
from .assertions import FEWEST, assertion
from .figures import figures, kind
from .patterns import load_patterns
from .quantities import unstated
from .sentences import Span, announces, clauses, contexts, is_title, sentences

_FEWEST_WORDS = 4
_CHECKABLE_KINDS = frozenset({"money", "percent", "date"})
_PATTERNS = load_patterns(Path(__file__).with_suffix(".toml"))
COVERAGE_BELOW = 0.8
"""Fraction of factual sentences that claims must cover; below it the extractor is asked once more for the rest."""


def names_a_program(text: str) -> bool:
    return _PATTERNS["program"].search(text) is not None


@dataclass(frozen=True)
class Coverage:
    sentences: int
    """How many sentences a claim must cover; see `coverage`. What is said twice counts once."""
    left_out: tuple[Span, ...]
    """Those that no claim covers."""
    others: tuple[Span, ...] = ()
    """Other sentences that no claim covers: they state nothing that a key could check."""
    remainders: tuple[Span, ...] = ()
    """Parts of covered sentences that no claim quotes and that have a figure or a rule of their own."""

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


def states_a_fact(sentence: str) -> bool:
    """Whether a sentence states something that a key could check: see the module's text."""
    if has_checkable_figure(sentence):
        return True
    if _is_question(sentence) or announces(sentence) or len(sentence.split()) < _FEWEST_WORDS:
        return False
    return _asserts(sentence)


@lru_cache(maxsize=1024)
def _asserts(sentence: str) -> bool:
    """False if a sentence only speaks about the conversation: then its words after that hold no rule of a program."""
    plain = sentence.strip("*_ \"'“‘(").lower().replace("’", "'")
    about_itself = _PATTERNS["about_the_conversation"].match(plain)
    if not about_itself:
        return True
    rest = _PATTERNS["ability"].sub(" ", plain[about_itself.end() :])
    rest = _PATTERNS["asked_not_said"].split(rest, maxsplit=1)[0]
    return bool(_PATTERNS["program"].search(rest) and _PATTERNS["rule"].search(rest))


def coverage(reply: str, claims: Sequence[Claim]) -> Coverage:
    """Which sentences claims cover: their quotes hold at least half of the letters, and their texts every figure.

    A factual sentence must be covered by claims that are checked; for any other, a claim of any kind is enough. A
    sentence that says the same as a covered one is covered.
    """
    spans, above = sentences(reply), contexts(reply)
    checked = [claim for claim in claims if claim.verifiable]
    in_checked, in_any = _places(reply, checked), _places(reply, claims)
    texts = _texts_by_sentence(spans, checked)
    groups: dict[tuple[object, ...], _Group] = {}
    others, remainders = list[Span](), list[Span]()
    for place, one in enumerate(spans):
        text = reply[one.start : one.end]
        under = above.get(one, ())
        factual = is_factual(text)
        if _counts(reply, one, under):
            covered = _covers(text, (in_checked if factual else in_any)[one.start : one.end], texts[place])
            groups.setdefault(_said(reply, one, under), _Group(one)).add(covered)
            if covered:
                remainders += _remainders(reply, one, in_any)
        elif not _covers(text, in_any[one.start : one.end], ()) and _is_other(reply, one):
            others.append(one)
    left_out = tuple(group.first for group in groups.values() if not group.covered)
    return Coverage(len(groups), left_out, tuple(others), tuple(remainders))


@dataclass
class _Group:
    """Sentences that say the same."""

    first: Span
    covered: bool = False

    def add(self, covered: bool) -> None:
        self.covered = self.covered or covered


def _said(reply: str, one: Span, under: Sequence[Span]) -> tuple[object, ...]:
    """What a sentence says, with what it stands under; short ones may mean another thing at another place."""
    says = assertion(reply[one.start : one.end])
    if under:
        return (*says, *(assertion(reply[span.start : span.end]) for span in under))
    return says if len(says) >= FEWEST else (one,)


def _remainders(reply: str, sentence: Span, quoted: bytes) -> Iterator[Span]:
    """Runs of words that no claim quotes, if they have a rule or a figure."""
    run: list[re.Match[str]] = []
    for word in (*re.finditer(r"\S+", reply[sentence.start : sentence.end]), None):
        if word and not any(quoted[sentence.start + word.start() : sentence.start + word.end()]):
            run.append(word)
            continue
        if len(run) >= _FEWEST_WORDS:
            start, end = sentence.start + run[0].start(), sentence.start + run[-1].end()
            text = reply[start:end]
            if states_a_fact(text) and (has_checkable_figure(text) or _PATTERNS["rule"].search(text)):
                yield Span(start, end)
        run = []


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


def _counts(reply: str, one: Span, under: Sequence[Span]) -> bool:
    """Whether a claim must cover a sentence: it has a clause that states a fact, or completes a lead-in that does."""
    text = reply[one.start : one.end]
    if has_checkable_figure(text):
        return True
    if is_title(reply, one) or _is_question(text) or announces(text):
        return False
    if any(states_a_fact(reply[clause.start : clause.end]) for clause in clauses(reply, one)):
        return True
    whole = " ".join(reply[span.start : span.end].rstrip("*_ :") for span in (*under, one))
    return (
        one.item and has_content(text) and any(announces(reply[s.start : s.end]) for s in under) and is_factual(whole)
    )


def _is_other(reply: str, one: Span) -> bool:
    """Whether a sentence that states no fact is one that the extractor gives a claim of another type for."""
    text = reply[one.start : one.end]
    return not (is_title(reply, one) or announces(text) or _is_question(text)) and len(text.split()) >= _FEWEST_WORDS


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
