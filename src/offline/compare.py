"""One claim against one statement of the key: same topic, same figures, same polarity?

A claim and a statement are about the same thing when they share enough weighted words, rarer words weighing more,
and name no two members of an exclusive group (Part A and Part B, QMB and SLMB, premium and deductible). Only then
are figures and polarity looked at. Unsure means unrelated: a judge that stays silent does less harm than a wrong one.
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
"""`partly`: borne out but for figures that this statement does not have; another may have them."""

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
"""Topic scores from which a match supports; contradicts by a figure or by a bare negation; and from which a claim is
taken to assert a disallowed one. A bare negation asks for this share of the claim in the statement; and from `CLOSE`
on a claim says nothing but what the statement says."""
_NONE = frozenset[str]()

_IMPLIED = (
    ("drug", "@d"), ("@maoep", "@ma"), ("@mgoep", "@medigap"), ("@dsnp", "@ma"), ("@a", "@orig"), ("@b", "@orig"),
)  # fmt: skip


@dataclass(frozen=True)
class Saying:
    """A claim as it is compared: what it says, what stands in its quotes, and what was asked."""

    claim: Reading
    quotes: tuple[str, ...]
    asked: Reading
    quoted: frozenset[str]
    """Figures in the answer's own words."""


def figures_quoted(quotes: tuple[str, ...]) -> frozenset[str]:
    """The figures of the quotes, `$0` for `nothing` among them."""
    found = frozenset(figure for quote in quotes for figure in figures(quote))
    return found | {"$0"} if any(costs_nothing(read_words(quote)) for quote in quotes) else found


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
    doubt: float = 0.0
    """How much closer a contradiction must be than a statement that bears the claim out."""


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
    """What a bare statement says about the claim. `quoted` are the figures that stand in the claim's own quotes."""
    fact = FactInView(fact_id=fact_id, statement=statement, severity_if_wrong="low")
    return hold_against(Saying(claim, (claim.text,), asked, quoted), fact, weights)


def hold_against(saying: Saying, fact: FactInView, weights: dict[str, float]) -> Match:
    """What a fact of the key says about the claim."""
    claim, reading = saying.claim, read_words(fact.statement)
    found = topic(claim, fact.statement, weights)
    outright = removal_clash(claim, reading) or limit_clash(claim, reading)
    if outright:
        return Match(fact.fact_id, "contradicts", max(found.score, CLASH_AT), outright)
    if found.score < min(SUPPORT_AT, CLASH_AT) or not compatible(claim, reading):
        return Match(fact.fact_id, "unrelated", found.score, "")
    return _clash(saying, fact, found) or _support(saying, fact, found)


def _clash(saying: Saying, fact: FactInView, found: Overlap) -> Match | None:
    """How the statement contradicts the claim, if it does; `unrelated` if they differ without contradiction."""
    claim, statement, score = saying.claim, fact.statement, found.score
    reading = read_words(statement)
    good = claim.figures & reading.figures
    bad, why = figure_clash(claim, reading)
    counted = quantity_clash(claim, reading)
    clash = why or _payer_clash(claim, reading) or mispaired(claim, reading) or counted
    clash = clash or sign_clash(claim, statement, score) or antonym_clash(claim, reading, score)
    clash = clash or sweeping_clash(claim, reading) or exclusive_clash(claim, reading, score)
    if not why and excepts(claim, reading) and claim.denials and not reading.denials:
        return Match(fact.fact_id, "unrelated", score, "", good)
    if clash:
        same = score >= CLASH_AT and _same_subject(claim, reading, saying.asked, found, figured=bool(why or counted))
        # A difference in kind stands even where another statement has the same figures.
        bad = bad if same and not counted else _NONE
        return Match(fact.fact_id, "contradicts" if same else "unrelated", score, clash, good, bad)
    near = score >= PARITY_AT and found.precision >= PARITY_PRECISION
    if near and not same_level(claim, statement) and _same_subject(claim, reading, saying.asked, found):
        why = "denies what the key asserts, or asserts what it denies"
        return Match(fact.fact_id, "contradicts", score, why, good, doubt=0.1)
    return None


def _support(saying: Saying, fact: FactInView, found: Overlap) -> Match:
    """Whether the statement bears the claim out, where it does not contradict it."""
    claim, asked = saying.claim, saying.asked
    reading = read_words(fact.statement)
    good = claim.figures & reading.figures
    borne_out = (
        found.score >= SUPPORT_AT
        and same_level(claim, fact.statement)
        and _names_no_other(claim, reading)
        and _about_the_same(claim, nearest(claim, fact.statement), asked)
        and _bears_out(claim, reading)
        and not excepts(claim, reading)
        and (found.precision >= CLOSE or _shares_matter(claim, reading))
        and may_credit(saying, fact)
    )
    if not borne_out:
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
    """Whether the claim brings in no program that the statement does not speak of; drug coverage is Part D."""
    implied = {program for other, program in _IMPLIED if other in fact.content}
    return not named(fact) or named(claim) <= named(fact) | implied


def _shares_matter(claim: Reading, fact: Reading) -> bool:
    """Whether they share more than programs: a word for what is said of them, or a figure."""
    matter = {token for token in claim.content & fact.content if token[0] != "@"} - EVERYWHERE - {"drug", "individual"}
    return bool(matter or (claim.figures & fact.figures) - AGES)


def _about_the_same(claim: Reading, fact: Reading, asked: Reading) -> bool:
    """Whether the claim names the program the statement leads with, or gives its figure, or was asked about it."""
    lead = next((word.token for word in fact.words if word.token[0] == "@"), None)
    if lead is None or lead in claim.content:
        return True
    if named(claim) and not named(claim) & named(fact):
        return False
    if any(lead in group and named(claim) & named(fact) & group for group in EXCLUSIVE):
        return True  # "Part A and Part B": what is said of both is said of each
    shared = any(kind(figure) not in ("number", "year") for figure in claim.figures & fact.figures)
    return shared or (not named(claim) and lead in asked.content)


def _payer_clash(claim: Reading, fact: Reading) -> str:
    mine, theirs = _first_payer(claim), _first_payer(fact)
    return f"says {mine} pays first where the key says {theirs}" if mine and theirs and mine != theirs else ""


def may_credit(saying: Saying, fact: FactInView) -> bool:
    """Whether the fact's telling figures stand in the claim's own quotes, and both have a word in common."""
    told = telling(figures(fact.statement)) - saying.asked.figures
    named_as_telling = frozenset(figure for line in fact.tells for figure in figures(line))
    needed = named_as_telling - saying.asked.figures
    if needed - saying.quoted or (told and not needed and not told & saying.quoted):
        return False
    # An amount for one case of several is credited: $109,000 (single) where the fact also has $218,000 (married).
    amounts = frozenset(filter(is_amount, told))
    if not needed and amounts and not amounts & saying.quoted:
        return False
    return shares_a_word([*saying.quotes, saying.claim.text], fact.statement)


def _bears_out(claim: Reading, fact: Reading) -> bool:
    """Whether nothing in the claim goes beyond the statement."""
    told = telling(fact.figures)
    mine = claim.figures | ({"$0"} if costs_nothing(claim) else frozenset())
    if told and not told & mine:
        return False
    if other_year(claim, fact) or over_general(claim, fact):
        return False
    numbers = of_kind(claim.figures - derived(claim.text), "number") - AGES
    theirs = of_kind(fact.figures, "number") - AGES
    return not numbers or not theirs or bool(numbers & theirs)


def _beyond(claim: Reading, fact: Reading, asked: Reading) -> frozenset[str]:
    """The claim's figures that the statement does not give: amounts, dates, telephones, or of a kind it has."""
    kinds = ({kind(figure) for figure in fact.figures} | {"money", "percent", "date", "phone"}) - {"number", "year"}
    own = claim.figures - fact.figures - asked.figures - derived(claim.text)
    return frozenset(figure for figure in own if kind(figure) in kinds and figure != "$0" and not in_span(figure, fact))


def asserts(claim: Reading, statement: str, weights: dict[str, float], *, outright: bool = False) -> float:
    """How strongly the claim says what the statement says; 0 where it denies it or differs in a figure.

    `outright`: nearly all of it, and little besides. For a reader who has no facts to set against it.
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
    if not near or not same_level(claim, statement) or not compatible(claim, other) or figure_clash(claim, other)[0]:
        return 0.0
    elsewhere = named(other) and named(claim) and not named(claim) & named(other)
    amounts = {figure for figure in other.figures if is_amount(figure)}
    if elsewhere or not other.content & SERVICES <= claim.content or (amounts and not amounts & claim.figures):
        return 0.0
    return 0.0 if mispaired(claim, other) or antonym_clash(claim, other, found.score) else found.score
