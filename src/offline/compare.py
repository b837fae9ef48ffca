"""One claim against one statement of the key: same topic, same figures, same polarity?

A claim and a statement are about the same thing when they share enough weighted words, rarer words weighing more,
and name no two members of an exclusive group (Part A and Part B, QMB and SLMB, premium and deductible). Only then
are figures and polarity looked at. Unsure means unrelated: a judge that stays silent does less harm than a wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from ..figures import is_amount, kind, telling
from .text import Reading, Word, canonical, read_words
from .topic import AGES, EVERYWHERE, MEASURED, Overlap, compatible, named, nearest, pairs_of, topic
from .words import (
    ANTONYMS,
    DIRECTIONAL,
    LEADING_GROUPS,
    RESTRICTED,
    STRICT_GROUPS,
    UNIVERSALS,
    WEAK_ANTONYMS,
)

Relation = Literal["supports", "partly", "contradicts", "unrelated"]
"""`partly`: borne out but for figures that this statement does not have; another may have them."""

SUPPORT_AT = 0.46
CLASH_AT = 0.44
POLARITY_AT = 0.48
PARITY_AT = 0.62
ASSERT_AT = 0.55
"""Topic scores from which a match supports; contradicts by a figure, by a denied word, by a bare negation; and from
which a claim is taken to assert a disallowed one."""

_PAIRED = (*STRICT_GROUPS, LEADING_GROUPS[0], MEASURED)
_ANTONYMS = tuple((canonical(a), canonical(b)) for a, b in ANTONYMS)
_WEAK = frozenset((canonical(a), canonical(b)) for a, b in WEAK_ANTONYMS)
_TIMES = frozenset({"daily", "weekly", "monthly", "quarterly", "yearly"})
_PIECE = re.compile(r"[,;:]\s+|\s+(?:but|and)\s+")
_STATES = re.compile(
    r"^(?!\s*(?:if|when|with|even)\b).*\b(?:is|are|was|costs?|pays?|adds?|charges?|owes?)\b", re.IGNORECASE
)


@dataclass(frozen=True)
class Match:
    fact_id: str
    relation: Relation
    topic: float
    reason: str
    figures: frozenset[str] = frozenset()
    """The claim's figures that this statement bears out."""
    bad: frozenset[str] = frozenset()
    """The claim's figures that this statement contradicts."""


def _first_payer(reading: Reading) -> str:
    """Who is said to pay first: `medicare`, `group` or nobody."""
    payer = ""
    for at, word in enumerate(reading.words):
        if word.token in ("medicar", "employer"):
            payer = "medicare" if word.token == "medicar" else "group"  # noqa: S105 -- a word
        following = {other.token for other in reading.words[at + 1 : at + 3]}
        if word.token == "pay" and payer and "first" in following:  # noqa: S105
            return payer
        if word.token == "pay" and payer and "second" in following:  # noqa: S105
            return "group" if payer == "medicare" else "medicare"
    return ""


def compare(
    claim: Reading,
    statement: str,
    *,
    fact_id: str,
    weights: dict[str, float],
    quoted: frozenset[str],
    asked: Reading,
) -> Match:
    """What the statement says about the claim. `quoted` are the figures that stand in the claim's own quotes."""
    fact = read_words(statement)
    found = topic(claim, statement, weights)
    score = found.score
    if score < min(SUPPORT_AT, CLASH_AT) or not compatible(claim, fact):
        return Match(fact_id, "unrelated", score, "")
    good = claim.figures & fact.figures
    bad, why = _figure_clash(claim, fact)
    level = _same_level(claim, statement)
    clash = why or _payer_clash(claim, fact) or _mispaired(claim, fact)
    clash = clash or ("" if level else _sign_clash(claim, statement, score)) or _antonym_clash(claim, fact, score)
    if clash and score >= CLASH_AT and _same_subject(claim, fact, asked, found):
        return Match(fact_id, "contradicts", score, clash, good, bad)
    if not clash and not level and score >= PARITY_AT and _same_subject(claim, fact, asked, found):
        return Match(fact_id, "contradicts", score, "denies what the key asserts, or asserts what it denies", good)
    borne_out = level and _about_the_same(claim, nearest(claim, statement), asked) and _bears_out(claim, quoted, fact)
    if score >= SUPPORT_AT and not clash and borne_out:
        return Match(fact_id, "partly" if _beyond(claim, fact) else "supports", score, "", good)
    return Match(fact_id, "unrelated", score, "", good)


def _same_subject(claim: Reading, fact: Reading, asked: Reading, found: Overlap) -> bool:
    """Whether the claim names the statement's programme, or leaves it out because the question named it."""
    programmes = named(fact)
    if not programmes or programmes & named(claim):
        return True
    return not named(claim) and bool(programmes & named(asked)) and found.precision >= 0.88


def _about_the_same(claim: Reading, fact: Reading, asked: Reading) -> bool:
    """Whether the claim names the programme the statement leads with, or gives its figure, or was asked about it."""
    lead = next((word.token for word in fact.words if word.token[0] == "@"), None)
    if lead is None or lead in claim.content:
        return True
    if named(claim) and not named(claim) & named(fact):
        return False
    shared = any(kind(figure) not in ("number", "year") for figure in claim.figures & fact.figures)
    return shared or (not named(claim) and lead in asked.content)


def _payer_clash(claim: Reading, fact: Reading) -> str:
    mine, theirs = _first_payer(claim), _first_payer(fact)
    return f"says {mine} pays first where the key says {theirs}" if mine and theirs and mine != theirs else ""


def _bears_out(claim: Reading, quoted: frozenset[str], fact: Reading) -> bool:
    """Whether nothing in the claim goes beyond the statement, and one of its figures is in the answer's own words."""
    told = telling(fact.figures)
    if told and not told & quoted & claim.figures:
        return False
    if _other_year(claim, fact) or _over_general(claim, fact):
        return False
    numbers = _of_kind(claim.figures, "number") - AGES
    theirs = _of_kind(fact.figures, "number") - AGES
    return not numbers or not theirs or bool(numbers & theirs)


def _beyond(claim: Reading, fact: Reading) -> frozenset[str]:
    """The claim's figures of a kind the statement has, that the statement does not give."""
    kinds = {kind(figure) for figure in fact.figures} - {"number", "year"}
    return frozenset(figure for figure in claim.figures - fact.figures if kind(figure) in kinds)


def asserts(claim: Reading, statement: str, weights: dict[str, float]) -> float:
    """How strongly the claim says what the statement says; 0 where it denies it or differs in a figure."""
    other = read_words(statement)
    score = topic(claim, statement, weights).score
    if (
        score < ASSERT_AT
        or not _same_level(claim, statement)
        or not compatible(claim, other)
        or _figure_clash(claim, other)[0]
    ):
        return 0.0
    amounts = {figure for figure in other.figures if is_amount(figure)}
    if amounts and not amounts & claim.figures:
        return 0.0
    return 0.0 if _mispaired(claim, other) or _antonym_clash(claim, other, score) else score
