"""Which extracted claims are which gold claims. Pure functions.

Pairs of claims are found and ranked by `text.claim_matching`, and the best is taken first, each claim once. Then:

- An extracted claim that is left over is a part of the gold claim that it fits best.
- A gold claim that is left over shares the extracted claim that fits it best, if that claim's text has most words of
  its text or of its quotes: the extractor left two statements in one claim. Otherwise it was missed.
- An extracted claim whose quotes are on no gold claim is spurious.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..text.claim_matching import Placed, best_pairs, ranked_pairs, words_of

LEAST_WORDS = 2 / 3
"""Of the words of a gold claim, or of its quotes, that must be in the extracted claim which it shares with another."""


@dataclass(frozen=True)
class PlacedGold(Placed):
    """A gold claim."""

    quotes: tuple[str, ...]

    def is_within(self, other: Placed) -> bool:
        """Whether the other claim's text has most words of this one, or of its quotes."""
        mine = (self.words, words_of(" ".join(self.quotes)))
        return any(one and len(one & other.words) >= LEAST_WORDS * len(one) for one in mine)


@dataclass(frozen=True)
class Matches:
    of_gold: tuple[tuple[int, ...], ...]
    """By gold claim: its extracted claims, the best first; empty if it was missed."""
    spurious: tuple[int, ...]
    """Extracted claims that match no gold claim."""


def match(gold: Sequence[PlacedGold], extracted: Sequence[Placed]) -> Matches:
    ranked = ranked_pairs(gold, extracted)
    of_gold: list[list[int]] = [[] for _ in gold]
    used: set[int] = set()
    for one, other in best_pairs(ranked):
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
