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


def _same_level(claim: Reading, statement: str) -> bool:
    """Whether both deny or both assert, in the clauses that are closest to each other.

    An amount that both give as what something is or costs settles it: a negation elsewhere is a side remark.
    """
    agreed = (claim.figures & read_words(statement).figures) - {"$0"}
    if claim.denials and any(is_amount(figure) for figure in agreed):
        for piece in _PIECE.split(claim.text):
            part = read_words(piece)
            if part.figures & agreed and not part.denials and _STATES.search(piece):
                return True
    theirs = nearest(claim, statement)
    mine = nearest(theirs, claim.text)
    return bool(mine.denials % 2) == bool(theirs.denials % 2)


def _of_kind(figures: Iterable[str], wanted: str) -> frozenset[str]:
    return frozenset(figure for figure in figures if kind(figure) == wanted)


def _other_year(claim: Reading, fact: Reading) -> bool:
    mine, theirs = _of_kind(claim.figures, "year"), _of_kind(fact.figures, "year")
    return bool(mine and theirs and not mine & theirs)


def _figure_clash(claim: Reading, fact: Reading) -> tuple[frozenset[str], str]:
    """The claim's figures that differ from the statement's of the same kind, and how."""
    kinds = sorted({kind(figure) for figure in claim.figures} & {kind(figure) for figure in fact.figures})
    if _other_year(claim, fact):
        # Another year's amount is another fact; a different year alone is a different answer.
        kinds = ["year"] if kinds == ["year"] else []
    for wanted in kinds:
        mine, theirs = _of_kind(claim.figures, wanted), _of_kind(fact.figures, wanted)
        bad, missing = mine - theirs, theirs - mine
        if wanted == "number":
            bad = _same_context(claim, fact, bad, missing)
        if wanted == "year" and len(kinds) > 1:
            continue
        partly = bool(mine & theirs) and wanted != "date" and len(mine) != len(theirs)
        if bad and missing and not partly:
            return bad, f"says {_names(bad)} where the key says {_names(missing)}"
    return frozenset(), ""


def _names(figures: Iterable[str]) -> str:
    return " and ".join(figure.removeprefix("n") for figure in sorted(figures)[:3])


def _contexts(reading: Reading, figure: str) -> set[str]:
    found: set[str] = set()
    words = reading.words
    for at, word in enumerate(words):
        if word.token == f"#{figure}":
            unit = next((other.token for other in reversed(words[:at]) if other.token[0] != "#"), "")
            if unit in _TIMES:
                continue  # "days 21 to 100" names a case, it counts nothing
            near = [*reversed(words[max(0, at - 2) : at]), *words[at + 1 : at + 3]]
            found.update(other.token for other in near if not other.token.startswith(("#", "@")))
    return found


def _same_context(claim: Reading, fact: Reading, bad: frozenset[str], missing: frozenset[str]) -> frozenset[str]:
    """Plain numbers differ only where they count the same thing: 50 employees and 20 employees."""
    theirs = set().union(*(_contexts(fact, figure) for figure in sorted(missing))) if missing else set()
    return frozenset(figure for figure in bad - AGES if _contexts(claim, figure) & theirs - EVERYWHERE - _TIMES)


def _mispaired(claim: Reading, fact: Reading) -> str:
    """An amount of the statement, given to another member of a group than the statement gives it to."""
    for group in _PAIRED:
        mine, theirs = pairs_of(claim.words, group), pairs_of(fact.words, group)
        for amount in sorted(mine.keys() & theirs.keys()):
            if mine[amount] != theirs[amount] and (mine[amount] in theirs.values() or group is MEASURED):
                return f"gives {amount[1:]} to {mine[amount]} where the key gives it to {theirs[amount]}"
    return ""


def _signs(words: tuple[Word, ...]) -> dict[str, set[str]]:
    """For each token: denied (-), plain (+), or in the wake of a negation (?)."""
    signs: dict[str, set[str]] = {}
    for word in words:
        signs.setdefault(word.token, set()).add("-" if word.head else "?" if word.negated else "+")
    return signs


def _sign_clash(claim: Reading, statement: str, score: float) -> str:
    """A word denied on one side only, against that part of the statement which the claim is closest to."""
    if score < POLARITY_AT:
        return ""
    whole, mine = _signs(read_words(statement).words), _signs(claim.words)
    theirs = _signs(nearest(claim, statement).words)
    for token in sorted(mine.keys() & theirs.keys() - EVERYWHERE):
        a, b, everywhere = mine[token], theirs[token], whole.get(token, set())
        if token.startswith(("#", "@")):
            continue
        if a == {"-"} and b == {"+"} and "-" not in everywhere:
            return f"denies '{token}' where the key asserts it"
        if a == {"+"} and b == {"-"} and "+" not in everywhere:
            return f"asserts '{token}' where the key denies it"
    return ""


def _antonym_clash(claim: Reading, fact: Reading, score: float) -> str:
    for pair in _ANTONYMS:
        for mine, theirs in (pair, pair[::-1]):
            if mine not in claim.content or theirs not in fact.content:
                continue
            if theirs in claim.content or mine in fact.content or (pair in _WEAK and score < 0.8):
                continue
            if _negates(claim, mine) or _negates(fact, theirs):
                continue
            if mine in DIRECTIONAL and not _followers(claim, mine) & _followers(fact, theirs):
                continue
            return f"says '{mine}' where the key says '{theirs}'"
    return _offset_clash(claim, fact)


def _offset_clash(claim: Reading, fact: Reading) -> str:
    """`a year after` and `the month after` are different times."""
    for side in sorted(DIRECTIONAL):
        mine, theirs = _leaders(claim, side) & _TIMES, _leaders(fact, side) & _TIMES
        if mine and theirs and not mine & theirs:
            return f"says '{min(mine)} {side}' where the key says '{min(theirs)} {side}'"
    return ""


def _leaders(reading: Reading, token: str) -> set[str]:
    return {word.token for word, after in pairwise(reading.words) if after.token == token}


def _negates(reading: Reading, token: str) -> bool:
    return any(word.token == token and word.negated for word in reading.words)


def _followers(reading: Reading, token: str) -> set[str]:
    return {after.token for word, after in pairwise(reading.words) if word.token == token}


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


def _over_general(claim: Reading, fact: Reading) -> bool:
    return bool(claim.raw & UNIVERSALS and fact.raw & RESTRICTED and not fact.raw & UNIVERSALS)


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
