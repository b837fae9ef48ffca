"""Find the facts that a text is about, by the words and figures they share: no model, and the same on every machine.

The ranking is BM25 with every term counted once per fact. A term is the stem of a word, a figure, or a letter with
what it names (Part B, Plan G). Weights are whole numbers, so that a sum does not depend on the order of its terms.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Protocol

from .figures import figures
from .overlap import words

LIMIT = 5
"""Facts that are found for one text, at most."""
_LETTERED = re.compile(r"\b([Pp]art|[Pp]lan)s? ([A-N])\b")
_UNIT = 1_000_000
_LENGTH = 0.75
_SATURATION = 1.2
"""BM25's b and k1, at their usual values."""
_SHARED = 2
"""Terms that a text and a fact must share."""
_COVERED = 0.25
"""Share of a fact's weight that the text must cover."""


class Fact(Protocol):
    """Anything with an id and a statement, such as a `BackgroundFact`."""

    @property
    def fact_id(self) -> str: ...

    @property
    def statement(self) -> str: ...


class Retriever:
    """An index of facts, made once and asked for each claim.

    Example:
        retriever = Retriever(plan.background)
        retriever.find("Everyone pays $202.90 a month for Part B.")
    """

    def __init__(self, facts: Sequence[Fact]) -> None:
        """Index the facts; their order does not matter."""
        ordered = sorted(facts, key=lambda fact: fact.fact_id)
        self._ids = tuple(fact.fact_id for fact in ordered)
        held = [terms(fact.statement) for fact in ordered]
        within: dict[str, int] = {}
        for each in held:
            for term in each:
                within[term] = within.get(term, 0) + 1
        mean = sum(map(len, held)) / len(held) if held else 1
        self._weights = {term: _weight(len(held), count) for term, count in within.items()}
        self._found_in: dict[str, list[tuple[int, int]]] = {}
        self._needed: list[int] = []
        for place, each in enumerate(held):
            length = 1 - _LENGTH + _LENGTH * len(each) / (mean or 1)
            share = (_SATURATION + 1) / (1 + _SATURATION * length)
            for term in each:
                self._found_in.setdefault(term, []).append((place, round(self._weights[term] * share)))
            self._needed.append(round(_COVERED * share * sum(self._weights[term] for term in each)))

    def find(self, text: str, limit: int = LIMIT) -> tuple[str, ...]:
        """The ids of the facts nearest to a text, best first; none if nothing is near enough."""
        scores: dict[int, int] = {}
        shared: dict[int, int] = {}
        for term in terms(text):
            for place, weight in self._found_in.get(term, ()):
                scores[place] = scores.get(place, 0) + weight
                shared[place] = shared.get(place, 0) + 1
        near = [
            (-score, place)
            for place, score in scores.items()
            if shared[place] >= _SHARED and score >= self._needed[place]
        ]
        return tuple(self._ids[place] for _, place in sorted(near)[:limit])


def terms(text: str) -> frozenset[str]:
    """What a text is looked up by."""
    lettered = (f"{noun.lower()} {letter}" for noun, letter in _LETTERED.findall(text))
    return words(text) | figures(text) | frozenset(lettered)


def _weight(facts: int, holding: int) -> int:
    """How much a term says: the fewer facts hold it, the more."""
    return round(_UNIT * math.log(1 + (facts - holding + 0.5) / (holding + 0.5)))
