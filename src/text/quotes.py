"""Find a quote in a reply: exactly, or after folding typography, or not at all.

A judge that quotes "don't" has quoted a reply with a curly apostrophe; a judge that changes a word has not. A match
after folding is marked "typographic", and its span still points into the reply as written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import NamedTuple

from ..schemas import QuotedClaim, QuoteSpan

SHORTEST = 2
"""Letters or digits that a quote must have; a single letter occurs in every reply."""
_FOLDS = {
    **dict.fromkeys("‘’‛ʼ`´", "'"),
    **dict.fromkeys("“”„‟«»", '"'),
    **dict.fromkeys("‐‑‒–—−", "-"),
    "…": "...",
    **dict.fromkeys("*_#\u200b\u200c\u200d\u2060\ufeff\u00ad", ""),  # Markdown marks and invisible characters
}


@lru_cache(maxsize=256)
def _fold(text: str) -> tuple[str, tuple[int, ...]]:
    """The folded text, and the original position of each of its characters."""
    out: list[str] = []
    places: list[int] = []
    for place, char in enumerate(text):
        folded = " " if char.isspace() else _FOLDS.get(char, char)
        if folded == " " and out and out[-1] == " ":
            continue
        for piece in folded:
            out.append(piece)
            places.append(place)
    return "".join(out), tuple(places)


def find_quote(reply: str, quote: str) -> QuoteSpan | None:
    """Where the quote first is in the reply, or None."""
    return next(_occurrences(reply, quote), None)


def _occurrences(reply: str, quote: str) -> Iterator[QuoteSpan]:
    """Where the quote is in the reply, in order: as it is written, or else after folding."""
    if len(list(islice(filter(str.isalnum, quote), SHORTEST))) < SHORTEST:
        return
    exact = False
    for start in _find_whole(reply, quote):
        exact = True
        yield QuoteSpan(start=start, end=start + len(quote))
    folded_quote = fold(quote).strip()
    if exact or not folded_quote:
        return
    folded_reply, places = _fold(reply)
    for start in _find_whole(folded_reply, folded_quote):
        yield QuoteSpan(start=places[start], end=places[start + len(folded_quote) - 1] + 1, match="typographic")


MOST_PLACES = 50
"""Places of one quote that are looked at."""


def place_quotes(reply: str, claims: Sequence[QuotedClaim]) -> list[tuple[QuoteSpan | None, ...]]:
    """Where the quotes of each claim are; None for one that is not in the reply.

    Claims come in the order in which the reply makes them. So a quote that occurs several times is at the place that is
    nearest to the other quotes of its claim, or else at the first place from where the claim before it begins. A claim
    that is given again is at the next place.
    """
    found: dict[str, tuple[QuoteSpan, ...]] = {}
    placed: list[tuple[QuoteSpan | None, ...]] = []
    here = 0
    given = Counter[str]()
    for claim in claims:
        quotes = claim.quotes
        for quote in quotes:
            if quote not in found:
                found[quote] = tuple(islice(_occurrences(reply, quote), MOST_PLACES))
        again, given[claim.text] = given[claim.text], given[claim.text] + 1
        sure = [found[quote][0].start for quote in quotes if len(found[quote]) == 1]
        chosen = tuple(_nearest(found[quote], sure, here, again) for quote in quotes)
        here = min((span.start for span in chosen if span), default=here)
        placed.append(chosen)
    return placed


def _nearest(places: Sequence[QuoteSpan], sure: Sequence[int], here: int, again: int) -> QuoteSpan | None:
    if len(places) < 2:
        return places[0] if places else None
    if sure:
        return min(places, key=lambda one: min(abs(one.start - at) for at in sure))
    if again:
        return places[min(again, len(places) - 1)]
    return next((one for one in places if one.start >= here), places[0])


def fold(text: str) -> str:
    """Text with plain typography."""
    return _fold(text)[0]


def _find_whole(reply: str, quote: str) -> Iterator[int]:
    """The positions of the quote as whole words and numbers (not "covered" in "uncovered")."""
    start = reply.find(quote)
    while start >= 0:
        end = start + len(quote)
        if not _continues(reply[max(0, start - 2) : start][::-1], quote[0]) and not _continues(
            reply[end : end + 2], quote[-1]
        ):
            yield start
        start = reply.find(quote, start + 1)


def _continues(beyond: str, edge: str) -> bool:
    """Whether the word or number at the edge of a quote continues; `beyond` is read away from the quote."""
    if not beyond or not edge.isalnum():
        return False
    if beyond[0].isalnum():
        return True
    return edge.isdigit() and beyond[0] in ".," and beyond[1:2].isdigit()


# Which claims of two lists about the same reply are the same, by the characters that they quote. Pure functions.
#
# Two claims can be the same if their quotes overlap by at least half of the characters of the shorter one. Pairs are
# ranked by how much of their quotes is the same, and how many of their words, because claims of one sentence often have
# the same quote.

LEAST_OVERLAP = 0.5
"""Of the characters of the shorter of two claims' quotes."""


@dataclass(frozen=True)
class Placed:
    """A claim by its text and by where its quotes are in the reply."""

    text: str
    spans: tuple[QuoteSpan, ...]

    @cached_property
    def start(self) -> int:
        return min((span.start for span in self.spans), default=0)

    @cached_property
    def end(self) -> int:
        return max((span.end for span in self.spans), default=0)

    @cached_property
    def characters(self) -> frozenset[int]:
        return frozenset(at for span in self.spans for at in range(span.start, span.end))

    @cached_property
    def words(self) -> frozenset[str]:
        return words_of(self.text)


class Pair(NamedTuple):
    """Places of two claims in their lists."""

    first: int
    second: int


def words_of(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))


def ranked_pairs(first: Sequence[Placed], second: Sequence[Placed]) -> list[Pair]:
    """All pairs that can be the same claim, the best first. The order does not depend on which list is the first."""
    found = {
        Pair(one, two): _likeness(claim, other)
        for one, claim in enumerate(first)
        for two, other in enumerate(second)
        if _overlaps(claim, other)
    }
    return sorted(found, key=lambda pair: (-found[pair], abs(pair.first - pair.second), sum(pair), pair))


def best_pairs(ranked: Iterable[Pair]) -> list[Pair]:
    """Each claim once, with the best claim that is still free."""
    chosen: list[Pair] = []
    firsts: set[int] = set()
    seconds: set[int] = set()
    for pair in ranked:
        if pair.first not in firsts and pair.second not in seconds:
            chosen.append(pair)
            firsts.add(pair.first)
            seconds.add(pair.second)
    return chosen


def _overlaps(one: Placed, other: Placed) -> bool:
    if one.end <= other.start or other.end <= one.start:  # most pairs: decided without comparing characters
        return False
    shorter = min(len(one.characters), len(other.characters))
    return len(one.characters & other.characters) >= LEAST_OVERLAP * shorter


def _likeness(one: Placed, other: Placed) -> float:
    """From 0 to 2: how much of their quotes is the same, plus how many of their words."""
    return _in_both(one.characters, other.characters) + _in_both(one.words, other.words)


def _in_both(one: frozenset[int] | frozenset[str], other: frozenset[int] | frozenset[str]) -> float:
    everything = len(one | other)
    return len(one & other) / everything if everything else 0.0
