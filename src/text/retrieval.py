"""Find the facts that a text is about, by the words and figures they share: no model, and the same on every machine.

The ranking is BM25 with every term counted once per fact. A term is the stem of a word, a figure, or a letter with what
it names (Part B, Plan G). Words that people use and the statement does not have (`other_words`) count less. A term of a
claim counts three times as much as one that only its quotes have. Weights are whole numbers, so that a sum does not
depend on the order of its terms.
"""

from __future__ import annotations

import math
import re
import sys
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Protocol

from .figures import figures
from .overlap import words

LIMIT = 8
"""Facts that are found for one text, at most. On the gold set more of them find hardly any more of the right facts."""
_LETTERED = re.compile(r"\b([Pp]art|[Pp]lan)s? ([A-N])\b")
_UNIT = 1_000_000
_LENGTH = 0.75
_SATURATION = 1.2
"""BM25's b and k1, at their usual values."""
_TERM = 1 << 48
"""Added to the weight of a term, so that a sum of weights also counts the terms; larger than any sum of weights."""
_LANE = 64
"""Bits for one fact where the weights of all facts are one large number."""
_COMMON = 32
"""Facts that hold a term, from which on adding one large number is faster than adding to each fact."""
_REMEMBERED = 1_024
"""Texts whose facts are kept: a claim is looked up once alone, and once with those that share its call."""
_OTHER = 0.7
"""How much an other word of a fact counts, beside a word of its statement."""
_IN_CLAIM = 3
"""How much a term of a claim counts; one of its quotes alone counts 1."""
_SHARED = 4 * _IN_CLAIM
"""What a claim and a fact must share: two terms of the statement, one of which two other words can replace."""
_COVERED = 0.15
"""Share of a fact's weight that the text must cover."""


class Fact(Protocol):
    """Anything with an id and a statement, such as a `BackgroundFact`."""

    @property
    def fact_id(self) -> str: ...

    @property
    def statement(self) -> str: ...

    @property
    def other_words(self) -> str: ...


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
        held_by_all = tuple(terms(fact.statement) for fact in ordered)
        others = tuple(terms(fact.other_words) - held for fact, held in zip(ordered, held_by_all, strict=True))
        holding = Counter(term for listed in (held_by_all, others) for held in listed for term in held)
        weights = {term: _weight(len(ordered), count) for term, count in holding.items()}
        mean = sum(map(len, held_by_all)) / max(len(ordered), 1) or 1
        found_in: dict[str, dict[int, int]] = {}
        self._needed: list[int] = []
        for place, held in enumerate(held_by_all):
            length = 1 - _LENGTH + _LENGTH * len(held) / mean
            share = (_SATURATION + 1) / (1 + _SATURATION * length)
            own = {term: round(weights[term] * share) for term in held}
            for term, weight in own.items():
                found_in.setdefault(term, {})[place] = 2 * _TERM + weight
            for term in others[place]:
                found_in.setdefault(term, {})[place] = _TERM + round(_OTHER * weights[term] * share)
            self._needed.append(round(_COVERED * _IN_CLAIM * sum(own.values())))
        self._rare = {term: tuple(added.items()) for term, added in found_in.items() if len(added) < _COMMON}
        self._common = {term: self._as_one(added) for term, added in found_in.items() if len(added) >= _COMMON}
        self._remembered = lru_cache(maxsize=_REMEMBERED)(self._find)

    def _as_one(self, added: Mapping[int, int]) -> int:
        lanes = array("Q", bytes(_LANE // 8 * len(self._ids)))
        for place, weight in added.items():
            lanes[place] = weight
        return int.from_bytes(lanes.tobytes(), sys.byteorder)

    def find(self, text: str, quotes: Sequence[str] = (), limit: int = LIMIT) -> tuple[str, ...]:
        """The ids of the facts nearest to a claim and its quotes, best first; none if nothing is near enough.

        Facts that are equally near are in the order of their ids.
        """
        return self._remembered(text, tuple(quotes), limit)

    def _find(self, text: str, quotes: tuple[str, ...], limit: int) -> tuple[str, ...]:
        needed, least = self._needed, _SHARED * _TERM
        asked = dict.fromkeys(frozenset[str]().union(*map(terms, quotes)), 1) | dict.fromkeys(terms(text), _IN_CLAIM)
        common = sum(self._common.get(term, 0) * times for term, times in asked.items())
        sums = array("Q", common.to_bytes(_LANE // 8 * len(self._ids), sys.byteorder))
        for term, times in asked.items():
            for place, added in self._rare.get(term, ()):
                sums[place] += added * times
        near = [
            (-(total % _TERM), place)
            for place, total in enumerate(sums)
            if total >= least and total % _TERM >= needed[place]
        ]
        return tuple(self._ids[place] for _, place in sorted(near)[:limit])


@lru_cache(maxsize=8_192)
def terms(text: str) -> frozenset[str]:
    """What a text is looked up by."""
    lettered = (f"{noun.lower()} {letter}" for noun, letter in _LETTERED.findall(text))
    return words(text) | figures(text) | frozenset(lettered)


def _weight(facts: int, holding: int) -> int:
    """How much a term says: the fewer facts hold it, the more."""
    return round(_UNIT * math.log(1 + (facts - holding + 0.5) / (holding + 0.5)))
