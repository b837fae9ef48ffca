"""How a sentence differs from a statement of the key: not at all, in one figure, in one negation, or otherwise.

Only nearly equal wording counts. Everything else is `other`, however true or false the sentence may be.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from ..text.figures import is_amount, kind
from .reading import COMPARISONS, LOW, Reading

Kind = Literal["same", "figure", "negation", "other"]
_LONGEST = 60
"""Content words of the longest sentence that is compared."""
_SAME = 0.65
"""Least share of the words of a statement in a sentence that says the same, and of the sentence in the statement."""
_MOSTLY = 0.65
"""Least share of the words of a statement in a sentence that has no words of its own, but another figure."""
_NEARLY_ALL = 0.85
"""The same for a sentence that differs by a negation."""
_IN_ORDER = 0.8
"""Least share of the shared words that must be in the same order."""
_NEAR = 0.025
"""How far off, of the larger amount, a rounded amount may be."""
_MOST_TIMES = 60


@dataclass(frozen=True)
class Difference:
    kind: Kind
    shared: float = 0.0
    """Share of the words of both that both have."""
    exact: bool = False
    """Whether the sentence has no content word of its own."""


def compare(said: Reading, statement: Reading, years: frozenset[str]) -> Difference:
    """How a sentence differs from a statement.

    Args:
        years: years that the sentence may name although the statement does not.
    """
    if not statement.content or not 2 <= len(said.words) <= _LONGEST:
        return Difference("other")
    missing, extra = statement.content - said.content, said.content - statement.content
    if missing & statement.names or extra & said.names or said.years - statement.years - years:
        return Difference("other")
    shared = len(said.content & statement.content)
    alike = shared / len(said.content | statement.content)
    if _says_the_same(said, statement, shared):
        return Difference("same", alike, exact=not extra)
    # A word of its own may name another quantity, person or time, so there must be none.
    if extra or said.hedges:
        return Difference("other")
    return Difference(_opposition(said, statement, shared / len(statement.content)), alike, exact=True)


def _says_the_same(said: Reading, statement: Reading, shared: int) -> bool:
    return (
        said.figures == statement.figures
        and said.negations == statement.negations
        and said.denied() == statement.denied()
        and said.limits - LOW == statement.limits
        and shared >= _SAME * max(len(said.content), len(statement.content))
        and _in_order(said, statement)
    )


def _in_order(said: Reading, statement: Reading) -> bool:
    """Whether the shared words are in the same order, and none stands where the other has a word of its own.

    "Resource limit" for "income limit", or "Medicaid pays before Medicare" for the reverse, is something else.
    """
    matcher = SequenceMatcher(None, said.words, statement.words, autojunk=False)
    swapped = any(
        tag == "replace"
        and not (statement.content.issuperset(said.words[a:b]) and said.content.issuperset(statement.words[c:d]))
        for tag, a, b, c, d in matcher.get_opcodes()
    )
    shared = len(said.content & statement.content)
    return not swapped and sum(block.size for block in matcher.get_matching_blocks()) >= _IN_ORDER * shared


def _opposition(said: Reading, statement: Reading, covered: float) -> Kind:
    """How a sentence without words of its own opposes a statement; `covered`: its share of the statement's words."""
    if said.limits - statement.limits or (statement.limits - said.limits) & COMPARISONS:
        return "other"
    turned = abs(said.negations - statement.negations)
    if turned == 1 and said.figures <= statement.figures and said.limits == statement.limits:
        return "negation" if covered >= _NEARLY_ALL and _in_order(said, statement) else "other"
    differs = turned == 0 and _one_figure_differs(said.figures, statement.figures)
    return "figure" if differs and covered >= _MOSTLY else "other"


def _one_figure_differs(said: frozenset[str], stated: frozenset[str]) -> bool:
    """Whether one figure, or both ends of a range of dates, has another value that is not just another form of it."""
    new, old = said - stated, stated - said
    kinds = {kind(figure) for figure in new | old}
    if len(new) != len(old) or len(kinds) != 1 or kinds & {"phone", "number"}:
        return False
    if len(new) > 1:
        return kinds == {"date"} and len(new) == 2 == len(stated)
    return not _related(*new, *old)


def _related(one: str, other: str) -> bool:
    """Whether one amount may be the other rounded, or a multiple of it (a year of a monthly amount, two people)."""
    if not is_amount(one):
        return False
    low, high = sorted(float(figure.strip("$%")) for figure in (one, other))
    if high - low <= _NEAR * high:
        return True
    times = round(high / low) if low else 0
    return 2 <= times <= _MOST_TIMES and abs(high - times * low) <= _NEAR * low
