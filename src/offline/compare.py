"""One claim against one statement of the key: same topic, same figures, same polarity?

A claim and a statement are about the same thing when they share enough weighted words, rarer words weighing more,
and name no two members of an exclusive group (Part A and Part B, QMB and SLMB, premium and deductible). Only then
are figures and polarity looked at. Unsure means unrelated: a judge that stays silent does less harm than a wrong one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from ..figures import is_amount, kind
from .text import Reading, Word, canonical, read_words, sentences
from .words import (
    ANTONYMS,
    DIRECTIONAL,
    LEADING_GROUPS,
    MEASURES,
    RESTRICTED,
    SERVICES,
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

_MEASURES = frozenset(canonical(word) for word in MEASURES)
_PAIRED = (*STRICT_GROUPS, LEADING_GROUPS[0], _MEASURES)
_ANTONYMS = tuple((canonical(a), canonical(b)) for a, b in ANTONYMS)
_WEAK = frozenset((canonical(a), canonical(b)) for a, b in WEAK_ANTONYMS)
_AGES = frozenset({"n65"})
_TIMES = frozenset({"daily", "weekly", "monthly", "quarterly", "yearly"})
_MEDICAID = frozenset({"@medicaid"})
_MEDICARE = frozenset({"medicar"}) | LEADING_GROUPS[0] | LEADING_GROUPS[1]
_EVERYWHERE = frozenset({"medicar", "plan"})
_UNKNOWN = math.log(5) * 0.35
"""Weight of a word the key does not have: it may be a paraphrase or another matter."""
_SEGMENT = re.compile(
    r"[;:]\s+|,\s+(?:and|but|while|whereas|or|with)\s+|\s+\(|\)\s*|\s+(?:but|while|whereas|because)\s+"
)
_PIECE = re.compile(r"[,;:]\s+|\s+(?:but|and)\s+")
_STATES = re.compile(
    r"^(?!\s*(?:if|when|with|even)\b).*\b(?:is|are|was|costs?|pays?|adds?|charges?|owes?)\b", re.IGNORECASE
)
_ELLIPSIS = re.compile(
    r"\b((?:do|does|can|will|is|are|may|must)(?: not|n't|n’t)?|cannot|won't|can't)[.\s]*$", re.IGNORECASE
)
_PREDICATE = re.compile(r"\b(?:do not|does not|do|does|can|will|may|must|is|are|cannot)\s+(\S.*)$", re.IGNORECASE)


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


@lru_cache(maxsize=256)
def weigh(statements: frozenset[str]) -> dict[str, float]:
    """Each token's weight within a key: rare tokens say more about what a statement is about."""
    counts: dict[str, int] = {}
    for statement in statements:
        for token in read_words(statement).content:
            counts[token] = counts.get(token, 0) + 1
    # At least four, so that a key of one or two facts still tells a rare word from a common one.
    total = max(len(statements), 4)
    return {token: math.log(1 + total / count) * _kind_weight(token) for token, count in sorted(counts.items())}


def _kind_weight(token: str) -> float:
    if token in _EVERYWHERE:
        return 0.4
    return 1.3 if token.startswith("@") or token in _MEASURES else 1.0


@lru_cache(maxsize=4096)
def segments(statement: str) -> tuple[Reading, ...]:
    """The whole statement, then its sentences and clauses: a claim often repeats only one of them."""
    whole = read_words(statement)
    spans = sentences(statement)
    parts: list[str] = []
    for span in spans:
        sentence = statement[span.start : span.end]
        parts += [sentence] if len(spans) > 1 else []
        pieces = [piece for piece in _SEGMENT.split(sentence) if piece and len(piece.split()) >= 3]
        parts += _completed(pieces) if len(pieces) > 1 else []
    lead = next((word for word in whole.words if word.token[0] == "@"), None)
    readings = [_led(read_words(part), lead) for part in dict.fromkeys(parts)]
    return (whole, *(part for part in readings if len(part.content) >= (1 if part.figures and _named(part) else 3)))


def _completed(pieces: list[str]) -> list[str]:
    """`A may require it; B does not`: the second clause borrows the first one's predicate."""
    completed: list[str] = []
    for piece in pieces:
        predicate = _PREDICATE.search(completed[-1]) if completed else None
        ellipsis = _ELLIPSIS.search(piece)
        completed.append(f"{piece[: ellipsis.end(1)]} {predicate.group(1)}" if ellipsis and predicate else piece)
    return completed


def _led(part: Reading, lead: Word | None) -> Reading:
    """A clause that names no programme speaks of the one its statement named first."""
    if lead is None or _named(part):
        return part
    return replace(part, words=(Word(lead.token), *part.words), content=part.content | {lead.token})


@dataclass(frozen=True)
class Overlap:
    score: float
    precision: float
    """How much of the claim the statement says."""
    recall: float
    """How much of the statement, or of its nearest part, the claim says."""


_NOTHING = Overlap(0.0, 0.0, 0.0)


def topic(claim: Reading, statement: str, weights: dict[str, float]) -> Overlap:
    """How much of the claim the statement says and how much of the statement the claim says, 0 to 1."""
    best = _NOTHING
    for at, part in enumerate(segments(statement)):
        found = _overlap(claim, part, weights)
        score = found.score * (0.93 if at else 1.0)
        if score > best.score:
            best = Overlap(score, found.precision, found.recall)
    return best


def _overlap(claim: Reading, part: Reading, weights: dict[str, float]) -> Overlap:
    shared = claim.content & part.content
    same = claim.figures & part.figures
    kinds = {kind(figure) for figure in claim.figures} & {kind(figure) for figure in part.figures}
    telling = len(shared - _EVERYWHERE) + len(same - _AGES)
    # A programme and figures of one kind: both say when, or how much, of the same thing.
    telling += bool(kinds - {"number", "year"} and _named(claim) & _named(part))
    if telling < 2:
        return _NOTHING
    common = sum(weights.get(token, _UNKNOWN) for token in sorted(shared))
    of_claim = sum(weights.get(token, _UNKNOWN) for token in sorted(claim.content))
    of_part = sum(weights.get(token, _UNKNOWN) for token in sorted(part.content))
    # A figure both give is strong evidence that both speak of the same thing.
    bonus = sum(0.7 if kind(figure) in ("year", "number") else 1.4 for figure in sorted(same - _AGES))
    precision, recall = (common + bonus) / (of_claim + bonus), (common + bonus) / (of_part + bonus)
    if telling == 2 and min(precision, recall) < 0.55:
        return _NOTHING
    return Overlap(math.sqrt(precision * recall), precision, recall)


def compatible(claim: Reading, fact: Reading) -> bool:
    """Whether they can be about the same programme, part, period and measure."""
    for group in STRICT_GROUPS:
        mine, theirs = claim.content & group, fact.content & group
        if mine and theirs and not mine <= theirs:
            return False
    for group in (*LEADING_GROUPS, _MEASURES):
        theirs = fact.content & group
        lead = next((word.token for word in claim.words if word.token in group), None)
        paired = group is _MEASURES and claim.content & theirs and _pairs(claim.words, group)
        if lead and theirs and lead not in theirs and not paired:
            return False
    # Part D is drug coverage: whoever names the one has named the other.
    services = claim.content & SERVICES - ({"drug"} if "@d" in fact.content else frozenset())
    if not services <= fact.content:
        return False
    mine_bounds, their_bounds = _bounds(claim), _bounds(fact)
    if any(their_bounds.get(figure, side) != side for figure, side in mine_bounds.items()):
        return False
    return not _other_payer(claim, fact)


def _bounds(reading: Reading) -> dict[str, str]:
    """Numbers that bound a case from one side: `20 or more`, `fewer than 20`. The other side is another case."""
    bounds: dict[str, str] = {}
    for at, word in enumerate(reading.words):
        if word.token.startswith("#"):
            near = reading.words[max(0, at - 1) : at + 2]
            side = next((other.token for other in near if other.token in ("higher", "lower")), "")
            if side:
                bounds[word.token] = side
    return bounds


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


def _other_payer(claim: Reading, fact: Reading) -> bool:
    """Medicare named where the statement is about Medicaid only, or the other way round."""
    mine = {_programme(word.token) for word in claim.words} - {""}
    theirs = {_programme(word.token) for word in fact.words} - {""}
    return len(mine) == 1 and len(theirs) == 1 and mine != theirs


def _programme(token: str) -> str:
    return "medicaid" if token in _MEDICAID else "medicare" if token in _MEDICARE else ""


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
    borne_out = (
        level
        and _about_the_same(claim, _nearest(claim, statement), asked)
        and _bears_out(claim, quoted, fact, found.recall)
    )
    if score >= SUPPORT_AT and not clash and borne_out:
        return Match(fact_id, "partly" if _beyond(claim, fact) else "supports", score, "", good)
    return Match(fact_id, "unrelated", score, "", good)


def _same_subject(claim: Reading, fact: Reading, asked: Reading, found: Overlap) -> bool:
    """Whether the claim names the statement's programme, or leaves it out because the question named it."""
    programmes = _named(fact)
    if not programmes or programmes & _named(claim):
        return True
    return not _named(claim) and bool(programmes & _named(asked)) and found.precision >= 0.88


def _about_the_same(claim: Reading, fact: Reading, asked: Reading) -> bool:
    """Whether the claim names the programme the statement leads with, or gives its figure, or was asked about it."""
    lead = next((word.token for word in fact.words if word.token[0] == "@"), None)
    if lead is None or lead in claim.content:
        return True
    if _named(claim) and not _named(claim) & _named(fact):
        return False
    shared = any(kind(figure) not in ("number", "year") for figure in claim.figures & fact.figures)
    return shared or (not _named(claim) and lead in asked.content)


def _named(reading: Reading) -> frozenset[str]:
    return frozenset(token for token in reading.content if token.startswith("@"))


def _payer_clash(claim: Reading, fact: Reading) -> str:
    mine, theirs = _first_payer(claim), _first_payer(fact)
    return f"says {mine} pays first where the key says {theirs}" if mine and theirs and mine != theirs else ""


def _nearest(claim: Reading, statement: str) -> Reading:
    """The sentence or clause of the statement that the claim is closest to."""

    def closeness(part: Reading) -> tuple[int, float]:
        shared = len(claim.content & part.content)
        return shared, shared / (len(part.content) or 1)

    parts = segments(statement)
    return max(parts[1:], key=closeness, default=parts[0])


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
    theirs = _nearest(claim, statement)
    mine = _nearest(theirs, claim.text)
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
            named = next((other.token for other in reversed(words[:at]) if other.token[0] != "#"), "")
            if named in _TIMES:
                continue  # "days 21 to 100" names a case, it counts nothing
            near = [*reversed(words[max(0, at - 2) : at]), *words[at + 1 : at + 3]]
            found.update(other.token for other in near if not other.token.startswith(("#", "@")))
    return found


def _same_context(claim: Reading, fact: Reading, bad: frozenset[str], missing: frozenset[str]) -> frozenset[str]:
    """Plain numbers differ only where they count the same thing: 50 employees and 20 employees."""
    theirs = set().union(*(_contexts(fact, figure) for figure in sorted(missing))) if missing else set()
    return frozenset(figure for figure in bad - _AGES if _contexts(claim, figure) & theirs - _EVERYWHERE - _TIMES)


def _pairs(words: tuple[Word, ...], group: frozenset[str]) -> dict[str, str]:
    """Amount to group member, where amounts and members strictly alternate."""
    line = [word.token for word in words if word.token in group or (word.token[0] == "#" and is_amount(word.token[1:]))]
    if len(line) % 2 or any((a[0] == "#") == (b[0] == "#") for a, b in zip(line[::2], line[1::2], strict=True)):
        return {}
    pairs = [(a, b) if a[0] == "#" else (b, a) for a, b in zip(line[::2], line[1::2], strict=True)]
    return dict(pairs) if len({a for a, _ in pairs}) == len(pairs) else {}


def _mispaired(claim: Reading, fact: Reading) -> str:
    """An amount of the statement, given to another member of a group than the statement gives it to."""
    for group in _PAIRED:
        mine, theirs = _pairs(claim.words, group), _pairs(fact.words, group)
        for amount in sorted(mine.keys() & theirs.keys()):
            if mine[amount] != theirs[amount] and (mine[amount] in theirs.values() or group is _MEASURES):
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
    theirs = _signs(_nearest(claim, statement).words)
    for token in sorted(mine.keys() & theirs.keys() - _EVERYWHERE):
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


def _bears_out(claim: Reading, quoted: frozenset[str], fact: Reading, recall: float) -> bool:
    """Whether nothing in the claim goes beyond the statement, and its amounts are in the answer's own words."""
    telling = {figure for figure in fact.figures if kind(figure) not in ("year", "number")}
    if telling and not telling & claim.figures and recall < 0.7:
        return False
    amounts = {figure for figure in fact.figures if is_amount(figure)}
    if amounts and not amounts & quoted & claim.figures:
        return False
    if _other_year(claim, fact) or _over_general(claim, fact):
        return False
    numbers = _of_kind(claim.figures, "number") - _AGES
    theirs = _of_kind(fact.figures, "number") - _AGES
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
