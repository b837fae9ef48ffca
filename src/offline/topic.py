"""Whether a claim and a statement of the key can be about the same thing.

The topic score is the overlap of their weighted words in both directions; words that are rarer in the key have more
weight. A statement is compared as a whole and clause by clause. Different members of an exclusive group (Part A and
Part B, QMB and SLMB) are never the same topic.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from ..text.figures import is_amount, kind
from ..text.sentences import sentences
from .text import (
    Reading,
    Word,
    canonical,
    read_words,
)
from .words import (
    LEADING_GROUPS,
    MEASURES,
    SERVICES,
    STRICT_GROUPS,
)

MEASURED = frozenset(canonical(word) for word in MEASURES)
AGES = frozenset({"n65"})
EVERYWHERE = frozenset({"medicar", "plan"})
_MEDICAID = frozenset({"@medicaid"})
_MEDICARE = frozenset({"medicar"}) | LEADING_GROUPS[0] | LEADING_GROUPS[1]
_PERIODS = STRICT_GROUPS[2]
_UNKNOWN = math.log(5) * 0.35
"""Weight of a word that is not in the key: it may be a paraphrase or about something else."""
_SEGMENT = re.compile(
    r"[;:]\s+|,\s+(?:and|but|while|whereas|or|with|which)\s+|\s+\(|\)\s*|\s+(?:but|while|whereas|because)\s+"
)
_APART = re.compile(r"(?:apart from|aside from|except for|other than|besides)\b.*,\s+(\S[^,]{20,})$", re.IGNORECASE)
_ELLIPSIS = re.compile(
    r"\b((?:do|does|can|will|is|are|may|must)(?: not|n't|n’t)?|cannot|won't|can't)[.\s]*$", re.IGNORECASE
)
_PREDICATE = re.compile(r"\b(?:do not|does not|do|does|can|will|may|must|is|are|cannot)\s+(\S.*)$", re.IGNORECASE)


@lru_cache(maxsize=256)
def weigh(statements: frozenset[str]) -> dict[str, float]:
    """The weight of each token in a key: rare tokens say more about the topic of a statement."""
    counts: dict[str, int] = {}
    for statement in statements:
        for token in read_words(statement).content:
            counts[token] = counts.get(token, 0) + 1
    # At least four, so that a key of one or two facts still distinguishes rare words from common ones.
    total = max(len(statements), 4)
    return {token: math.log(1 + total / count) * _kind_weight(token) for token, count in sorted(counts.items())}


def _kind_weight(token: str) -> float:
    if token in EVERYWHERE:
        return 0.4
    return 1.3 if token.startswith("@") or token in MEASURED else 1.0


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
        apart = _APART.match(sentence)
        parts += [apart.group(1)] if apart else []
    lead = next((word for word in whole.words if word.token[0] == "@"), None)
    readings = [_with_program(read_words(part), lead) for part in dict.fromkeys(parts)]
    return (whole, *(part for part in readings if len(part.content) >= (1 if part.figures and named(part) else 3)))


def _completed(pieces: list[str]) -> list[str]:
    """`A may require it; B does not`: the second clause gets the predicate of the first."""
    completed: list[str] = []
    for piece in pieces:
        predicate = _PREDICATE.search(completed[-1]) if completed else None
        ellipsis = _ELLIPSIS.search(piece)
        completed.append(f"{piece[: ellipsis.end(1)]} {predicate.group(1)}" if ellipsis and predicate else piece)
    return completed


def _with_program(part: Reading, lead: Word | None) -> Reading:
    """A clause that names no program is about the first program of its statement."""
    if lead is None or named(part):
        return part
    return replace(part, words=(Word(lead.token), *part.words), content=part.content | {lead.token})


@dataclass(frozen=True)
class Overlap:
    score: float
    precision: float
    """The share of the claim that the statement says."""
    recall: float
    """The share of the statement, or of its closest part, that the claim says."""


_NO_OVERLAP = Overlap(0.0, 0.0, 0.0)


def topic(claim: Reading, statement: str, weights: dict[str, float]) -> Overlap:
    """How much the claim and the statement overlap, each from 0 to 1."""
    best = _NO_OVERLAP
    for at, part in enumerate(segments(statement)):
        found = _overlap(claim, part, weights)
        score = found.score * (0.93 if at else 1.0)
        if score > best.score:
            best = Overlap(score, found.precision, found.recall)
    return best


def _overlap(claim: Reading, part: Reading, weights: dict[str, float]) -> Overlap:
    shared = claim.content & part.content
    if not shared:
        return _NO_OVERLAP
    same = claim.figures & part.figures
    kinds = {kind(figure) for figure in claim.figures} & {kind(figure) for figure in part.figures}
    evidence = len(shared - EVERYWHERE) + len(same - AGES)
    # A program and figures of one kind: both say when or how much about the same thing.
    evidence += bool(kinds - {"number", "year"} and named(claim) & named(part))
    if evidence < 2:
        return _NO_OVERLAP
    common = sum(weights.get(token, _UNKNOWN) for token in sorted(shared))
    of_claim = sum(weights.get(token, _UNKNOWN) for token in sorted(claim.content))
    of_part = sum(weights.get(token, _UNKNOWN) for token in sorted(part.content))
    # A common figure is strong evidence that both are about the same thing.
    bonus = sum(0.7 if kind(figure) in ("year", "number") else 1.4 for figure in sorted(same - AGES))
    precision, recall = (common + bonus) / (of_claim + bonus), (common + bonus) / (of_part + bonus)
    if evidence == 2 and min(precision, recall) < 0.55:
        return _NO_OVERLAP
    return Overlap(math.sqrt(precision * recall), precision, recall)


def compatible(claim: Reading, fact: Reading) -> bool:
    """Whether they can be about the same program, part, period and measure."""
    for group in STRICT_GROUPS:
        mine, theirs = claim.content & group, fact.content & group
        if mine and theirs and not mine <= theirs:
            return False
    for group in (*LEADING_GROUPS, MEASURED):
        theirs = fact.content & group
        lead = next((word.token for word in claim.words if word.token in group), None)
        paired = group is MEASURED and claim.content & theirs and pairs_of(claim.words, group)
        contrasted = any(word.head and word.token in theirs for word in claim.words)
        if lead and theirs and lead not in theirs and not paired and not contrasted:
            return False
    # Part D is drug coverage: to name one is to name the other.
    services = claim.content & SERVICES - ({"drug"} if "@d" in fact.content else frozenset())
    if not services <= fact.content:
        return False
    if _periods_over(fact) & claim.content - _periods_over(claim) and not claim.content & {"end", "miss", "after"}:
        return False
    mine_bounds, their_bounds = _bounds(claim), _bounds(fact)
    if any(their_bounds.get(figure, side) != side for figure, side in mine_bounds.items()):
        return False
    return not _other_payer(claim, fact)


def _periods_over(reading: Reading) -> frozenset[str]:
    """Periods that are over in the text: what is true after a period is not true in it."""
    pairs = pairwise(word.token for word in reading.words if word.token not in ("@medigap", "@ma"))
    return frozenset(second for first, second in pairs if first == "after" and second in _PERIODS)


def _bounds(reading: Reading) -> dict[str, str]:
    """Numbers that bound a case from one side: `20 or more`, `fewer than 20`. The other side is a different case."""
    bounds: dict[str, str] = {}
    for at, word in enumerate(reading.words):
        if word.token.startswith("#"):
            near = reading.words[max(0, at - 1) : at + 2]
            side = next((other.token for other in near if other.token in ("higher", "lower")), "")
            if side:
                bounds[word.token] = side
    return bounds


def _other_payer(claim: Reading, fact: Reading) -> bool:
    """Whether one names Medicare and the other is only about Medicaid."""
    mine = {_program(word.token) for word in claim.words} - {""}
    theirs = {_program(word.token) for word in fact.words} - {""}
    return len(mine) == 1 and len(theirs) == 1 and mine != theirs


def _program(token: str) -> str:
    return "medicaid" if token in _MEDICAID else "medicare" if token in _MEDICARE else ""


def named(reading: Reading) -> frozenset[str]:
    return frozenset(token for token in reading.content if token.startswith("@"))


def nearest(claim: Reading, statement: str) -> Reading:
    """The sentence or clause of the statement that is closest to the claim."""

    def closeness(part: Reading) -> tuple[int, float]:
        shared = len(claim.content & part.content)
        return shared, shared / (len(part.content) or 1)

    parts = segments(statement)
    return max(parts[1:], key=closeness, default=parts[0])


def pairs_of(words: tuple[Word, ...], group: frozenset[str]) -> dict[str, str]:
    """Amounts and their group members, if amounts and members strictly alternate."""
    line = [word.token for word in words if word.token in group or (word.token[0] == "#" and is_amount(word.token[1:]))]
    if len(line) % 2 or any((a[0] == "#") == (b[0] == "#") for a, b in zip(line[::2], line[1::2], strict=True)):
        return {}
    pairs = [(a, b) if a[0] == "#" else (b, a) for a, b in zip(line[::2], line[1::2], strict=True)]
    return dict(pairs) if len({a for a, _ in pairs}) == len(pairs) else {}
