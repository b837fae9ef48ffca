"""Compare a claim with a statement of the key: same topic, same figures, same polarity?

A claim and a statement are about the same thing if they share enough weighted words (rarer words have more weight) and
do not name different members of an exclusive group (Part A and Part B, QMB and SLMB, premium and deductible). Only then
are figures and polarity compared. In doubt, they are unrelated: a silent judge does less harm than a wrong one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ..records.contracts import FactInView
from ..text.figures import (
    figures,
    is_amount,
    kind,
    telling,
)
from ..text.overlap import shares_a_word
from .polarity import (
    antonym_clash,
    excepts,
    exclusive_clash,
    over_general,
    removal_clash,
    same_level,
    sign_clash,
    sweeping_clash,
)
from .quantities import (
    costs_nothing,
    derived,
    figure_clash,
    in_span,
    limit_clash,
    mispaired,
    of_kind,
    other_year,
    quantity_clash,
)
from .text import Reading, read_words
from .topic import (
    AGES,
    EVERYWHERE,
    Overlap,
    compatible,
    named,
    nearest,
    topic,
)
from .words import EXCLUSIVE, SERVICES

Relation = Literal["supports", "partly", "contradicts", "unrelated"]
"""`partly`: supported except for figures that this statement does not have; another may have them."""

SUPPORT_AT = 0.46
CLASH_AT = 0.44
PARITY_AT = 0.62
PARITY_PRECISION = 0.75
CLOSE = 0.85
ASSERT_RECALL = 0.64
CLEAR_RECALL, CLEAR_PRECISION = 0.8, 0.7
MAIN_CLAUSE = 5
ALIKE, NEARLY = 0.7, 0.88
_CONDITION = re.compile(r",?\s+(?:if|when|because|since|as long as|provided|once|even if)\s", re.IGNORECASE)
ASSERT_AT = 0.55
"""SUPPORT_AT, CLASH_AT, PARITY_AT and ASSERT_AT are the topic scores from which a statement supports a claim,
contradicts it by a figure, contradicts it by a bare negation, and from which a claim asserts a disallowed one. A bare
negation also needs PARITY_PRECISION; from the precision CLOSE on, a claim says only what the statement says."""
_NONE = frozenset[str]()

_IMPLIED = (
    ("drug", "@d"), ("@maoep", "@ma"), ("@mgoep", "@medigap"), ("@dsnp", "@ma"), ("@a", "@orig"), ("@b", "@orig"),
)  # fmt: skip


@dataclass(frozen=True)
class ComparedClaim:
    """A claim, its quotes, and the question."""

    claim: Reading
    quotes: tuple[str, ...]
    asked: Reading
    quoted: frozenset[str]
    """The figures in the quotes."""


def figures_quoted(quotes: tuple[str, ...]) -> frozenset[str]:
    """The figures in the quotes, including `$0` for `nothing`."""
    found = frozenset(figure for quote in quotes for figure in figures(quote))
    return found | {"$0"} if any(costs_nothing(read_words(quote)) for quote in quotes) else found


@dataclass(frozen=True)
class Match:
    fact_id: str
    relation: Relation
    topic: float
    reason: str
    figures: frozenset[str] = frozenset()
    """The claim's figures that this statement has too."""
    bad: frozenset[str] = frozenset()
    """The claim's figures that this statement contradicts."""
    doubt: float = 0.0
    """How much closer this contradiction must be than a statement that supports the claim."""


def _first_payer(reading: Reading) -> str:
    """Who pays first according to the text: `medicare`, `group` or unknown (empty)."""
    payer = ""
    for at, word in enumerate(reading.words):
        if word.token in ("medicar", "employer"):
            payer = "medicare" if word.token == "medicar" else "group"  # noqa: S105 - not a password
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
    """How a bare statement relates to a claim. `quoted` are the figures in the claim's quotes."""
    fact = FactInView(fact_id=fact_id, statement=statement, severity_if_wrong="low")
    return compare_with_fact(ComparedClaim(claim, (claim.text,), asked, quoted), fact, weights)


def compare_with_fact(compared: ComparedClaim, fact: FactInView, weights: dict[str, float]) -> Match:
    """How a fact of the key relates to a claim."""
    claim, reading = compared.claim, read_words(fact.statement)
    found = topic(claim, fact.statement, weights)
    outright = removal_clash(claim, reading) or limit_clash(claim, reading)
    if outright:
        return Match(fact.fact_id, "contradicts", max(found.score, CLASH_AT), outright)
    if found.score < min(SUPPORT_AT, CLASH_AT) or not compatible(claim, reading):
        return Match(fact.fact_id, "unrelated", found.score, "")
    return _clash(compared, fact, found) or _support(compared, fact, found)


def _clash(compared: ComparedClaim, fact: FactInView, found: Overlap) -> Match | None:
    """The contradiction, if there is one; `unrelated` if claim and statement differ without contradiction."""
    claim, statement, score = compared.claim, fact.statement, found.score
    reading = read_words(statement)
    good = claim.figures & reading.figures
    figure = figure_clash(claim, reading)
    counted = quantity_clash(claim, reading)
    clash = figure.reason or _payer_clash(claim, reading) or mispaired(claim, reading) or counted
    clash = clash or sign_clash(claim, statement, score) or antonym_clash(claim, reading, score)
    clash = clash or sweeping_clash(claim, reading) or exclusive_clash(claim, reading, score)
    if not figure.reason and excepts(claim, reading) and claim.denials and not reading.denials:
        return Match(fact.fact_id, "unrelated", score, "", good)
    if clash:
        same = score >= CLASH_AT and _same_subject(
            claim, reading, compared.asked, found, figured=bool(figure.reason or counted)
        )
        # A difference in quantity counts even if another statement has the same figures.
        bad = figure.figures if same and not counted else _NONE
        return Match(fact.fact_id, "contradicts" if same else "unrelated", score, clash, good, bad)
    near = score >= PARITY_AT and found.precision >= PARITY_PRECISION
    if near and not same_level(claim, statement) and _same_subject(claim, reading, compared.asked, found):
        reason = "denies what the key asserts, or asserts what it denies"
        return Match(fact.fact_id, "contradicts", score, reason, good, doubt=0.1)
    return None


def _support(compared: ComparedClaim, fact: FactInView, found: Overlap) -> Match:
    """Whether a statement that does not contradict the claim supports it."""
    claim, asked = compared.claim, compared.asked
    reading = read_words(fact.statement)
    good = claim.figures & reading.figures
    supported = (
        found.score >= SUPPORT_AT
        and same_level(claim, fact.statement)
        and _names_no_other(claim, reading)
        and _about_the_same(claim, nearest(claim, fact.statement), asked)
        and _stays_within(claim, reading)
        and not excepts(claim, reading)
        and (found.precision >= CLOSE or _shares_more_than_programs(claim, reading))
        and may_credit(compared, fact)
    )
    if not supported:
        return Match(fact.fact_id, "unrelated", found.score, "", good)
    return Match(fact.fact_id, "partly" if _beyond(claim, reading, asked) else "supports", found.score, "", good)


def _same_subject(claim: Reading, fact: Reading, asked: Reading, found: Overlap, *, figured: bool = False) -> bool:
    """Whether the claim names the statement's program, or leaves it out because the question named it."""
    programs = named(fact)
    if not programs or programs & named(claim):
        return True
    if named(claim):
        return False
    if programs & named(asked):
        return found.precision >= (ALIKE if figured else NEARLY)
    return figured and found.precision >= ALIKE


def _names_no_other(claim: Reading, fact: Reading) -> bool:
    """Whether the claim names no program that the statement does not name or imply (drug coverage is Part D)."""
    implied = {program for other, program in _IMPLIED if other in fact.content}
    return not named(fact) or named(claim) <= named(fact) | implied


def _shares_more_than_programs(claim: Reading, fact: Reading) -> bool:
    """Whether they share more than programs: a word about them, or a figure."""
    shared = {token for token in claim.content & fact.content if token[0] != "@"} - EVERYWHERE - {"drug", "individual"}
    return bool(shared or (claim.figures & fact.figures) - AGES)


def _about_the_same(claim: Reading, fact: Reading, asked: Reading) -> bool:
    """Whether the claim names the first program of the statement, or gives its figure, or was asked about it."""
    lead = next((word.token for word in fact.words if word.token[0] == "@"), None)
    if lead is None or lead in claim.content:
        return True
    if named(claim) and not named(claim) & named(fact):
        return False
    if any(lead in group and named(claim) & named(fact) & group for group in EXCLUSIVE):
        return True  # "Part A and Part B": a statement about both is about each
    shared = any(kind(figure) not in ("number", "year") for figure in claim.figures & fact.figures)
    return shared or (not named(claim) and lead in asked.content)


def _payer_clash(claim: Reading, fact: Reading) -> str:
    mine, theirs = _first_payer(claim), _first_payer(fact)
    return f"says {mine} pays first where the key says {theirs}" if mine and theirs and mine != theirs else ""


def may_credit(compared: ComparedClaim, fact: FactInView) -> bool:
    """Whether the claim's quotes have the fact's required figures and share a word with it."""
    stated = telling(figures(fact.statement)) - compared.asked.figures
    listed = frozenset(figure for line in fact.tells for figure in figures(line))
    needed = listed - compared.asked.figures
    if needed - compared.quoted or (stated and not needed and not stated & compared.quoted):
        return False
    # One of several amounts is enough: $109,000 (single), although the fact also has $218,000 (married).
    amounts = frozenset(filter(is_amount, stated))
    if not needed and amounts and not amounts & compared.quoted:
        return False
    return shares_a_word([*compared.quotes, compared.claim.text], fact.statement)


def _stays_within(claim: Reading, fact: Reading) -> bool:
    """Whether nothing in the claim goes beyond the statement."""
    stated = telling(fact.figures)
    mine = claim.figures | ({"$0"} if costs_nothing(claim) else frozenset())
    if stated and not stated & mine:
        return False
    if other_year(claim, fact) or over_general(claim, fact):
        return False
    numbers = of_kind(claim.figures - derived(claim.text), "number") - AGES
    theirs = of_kind(fact.figures, "number") - AGES
    return not numbers or not theirs or bool(numbers & theirs)


def _beyond(claim: Reading, fact: Reading, asked: Reading) -> frozenset[str]:
    """The claim's amounts, dates and phone numbers, and figures of a kind the statement has, that it does not give."""
    kinds = ({kind(figure) for figure in fact.figures} | {"money", "percent", "date", "phone"}) - {"number", "year"}
    own = claim.figures - fact.figures - asked.figures - derived(claim.text)
    return frozenset(figure for figure in own if kind(figure) in kinds and figure != "$0" and not in_span(figure, fact))


def asserts(claim: Reading, statement: str, weights: dict[str, float], *, outright: bool = False) -> float:
    """How strongly the claim says what the statement says; 0 if it denies it or has another figure.

    `outright` requires nearly all of the statement and little else, for a reader who has no facts to compare with.
    """
    main = _CONDITION.split(claim.text)[0]
    readings = [claim] if main == claim.text or len(main.split()) < MAIN_CLAUSE else [claim, read_words(main)]
    return max(_asserts(reading, statement, weights, outright=outright) for reading in readings)


def _asserts(claim: Reading, statement: str, weights: dict[str, float], *, outright: bool) -> float:
    other = read_words(statement)
    found = topic(claim, statement, weights)
    near = found.score >= ASSERT_AT and found.recall >= (CLEAR_RECALL if outright else ASSERT_RECALL)
    if outright and (found.precision < CLEAR_PRECISION or sign_clash(claim, statement, found.score)):
        return 0.0
    if (
        not near
        or not same_level(claim, statement)
        or not compatible(claim, other)
        or figure_clash(claim, other).figures
    ):
        return 0.0
    elsewhere = named(other) and named(claim) and not named(claim) & named(other)
    amounts = {figure for figure in other.figures if is_amount(figure)}
    if elsewhere or not other.content & SERVICES <= claim.content or (amounts and not amounts & claim.figures):
        return 0.0
    return 0.0 if mispaired(claim, other) or antonym_clash(claim, other, found.score) else found.score
