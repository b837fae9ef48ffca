"""Which extracted claims are which gold claims. Pure functions.

An extracted claim can be a gold claim if their quotes overlap by at least half of the characters of the shorter one.
Among such pairs the best is taken first, each claim once: pairs are ranked by how much of their quotes is the same, and
how many of their words, because claims of one sentence often have the same quote. Then:

- An extracted claim that is left over is a part of the gold claim that it fits best.
- A gold claim that is left over shares the extracted claim that fits it best, if that claim's text has most words of
  its text or of its quotes: the extractor left two statements in one claim. Otherwise it was missed.
- An extracted claim whose quotes are on no gold claim is spurious.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ..schemas import QuoteSpan

LEAST_OVERLAP = 0.5
"""Of the characters of the shorter of two claims' quotes."""
LEAST_WORDS = 2 / 3
"""Of the words of a gold claim, or of its quotes, that must be in the extracted claim which it shares with another."""


@dataclass(frozen=True)
class Placed:
    """A claim by its text and by where its quotes are in the reply."""

    text: str
    spans: tuple[QuoteSpan, ...]
    quotes: tuple[str, ...]

    @cached_property
    def characters(self) -> frozenset[int]:
        return frozenset(at for span in self.spans for at in range(span.start, span.end))

    @cached_property
    def words(self) -> frozenset[str]:
        return _words(self.text)

    def is_within(self, other: Placed) -> bool:
        """Whether the other claim's text has most words of this one, or of its quotes."""
        mine = (self.words, _words(" ".join(self.quotes)))
        return any(one and len(one & other.words) >= LEAST_WORDS * len(one) for one in mine)


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))


@dataclass(frozen=True)
class Matches:
    of_gold: tuple[tuple[int, ...], ...]
    """By gold claim: its extracted claims, the best first; empty if it was missed."""
    spurious: tuple[int, ...]
    """Extracted claims that match no gold claim."""


def match(gold: Sequence[Placed], extracted: Sequence[Placed]) -> Matches:
    fits = {
        (one, other): _likeness(claim, found)
        for one, claim in enumerate(gold)
        for other, found in enumerate(extracted)
        if _overlap(claim, found) >= LEAST_OVERLAP
    }
    ranked = sorted(fits, key=lambda pair: (-fits[pair], pair))
    of_gold: list[list[int]] = [[] for _ in gold]
    used: set[int] = set()
    for one, other in ranked:
        if not of_gold[one] and other not in used:
            of_gold[one].append(other)
            used.add(other)
    left = [one for one, found in enumerate(of_gold) if not found]
    for one, other in ranked:
        if other not in used and of_gold[one]:
            of_gold[one].append(other)
            used.add(other)
    for one in left:
        near = (other for gold_at, other in ranked if gold_at == one)
        of_gold[one] += [other for other in near if gold[one].is_within(extracted[other])][:1]
    return Matches(tuple(map(tuple, of_gold)), tuple(at for at in range(len(extracted)) if at not in used))


def _overlap(one: Placed, other: Placed) -> float:
    """Share of the shorter one's characters that are in both."""
    shorter = min(len(one.characters), len(other.characters))
    return len(one.characters & other.characters) / shorter if shorter else 0.0


def _likeness(one: Placed, other: Placed) -> float:
    """From 0 to 2: how much of their quotes is the same, plus how many of their words."""
    return _in_both(one.characters, other.characters) + _in_both(one.words, other.words)


def _in_both(one: frozenset[int] | frozenset[str], other: frozenset[int] | frozenset[str]) -> float:
    everything = len(one | other)
    return len(one & other) / everything if everything else 0.0
