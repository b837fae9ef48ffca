"""Which claims of two lists about the same reply are the same, by the characters that they quote. Pure functions.

Two claims can be the same if their quotes overlap by at least half of the characters of the shorter one. Pairs are
ranked by how much of their quotes is the same, and how many of their words, because claims of one sentence often have
the same quote.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ..schemas import QuoteSpan

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
