"""Whether a claim denies what a statement asserts, or says the opposite."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise, zip_longest

from ..text.figures import is_amount
from .quantities import negates
from .sentence_kinds import names
from .text import (
    Reading,
    Word,
    canonical,
    plain_lower,
    read_words,
)
from .topic import EVERYWHERE, nearest
from .words import (
    ANTONYMS,
    ANYBODY,
    CONTEXTUAL,
    DIRECTIONAL,
    GROUPED,
    POSSIBLE,
    RESTRICTED,
    STATES,
    UNIVERSALS,
    WEAK_ANTONYMS,
)

POLARITY_AT = 0.48
"""The topic score from which a denied word counts."""

_ANTONYMS = tuple((canonical(a), canonical(b)) for a, b in ANTONYMS)
_WEAK = frozenset((canonical(a), canonical(b)) for a, b in WEAK_ANTONYMS)
_CONTEXTUAL = frozenset((canonical(a), canonical(b)) for a, b in CONTEXTUAL)
_PIECE = re.compile(r"[,;:]\s+|\s+(?:but|and)\s+")
_STATES = re.compile(
    r"^(?!\s*(?:if|when|with|even)\b).*\b(?:is|are|was|costs?|pays?|adds?|charges?|owes?)\b", re.IGNORECASE
)
_REMOVED = re.compile(
    r"\b(?:was|were|has been|have been|is|are) (?:removed|eliminated|abolished|ended|repealed|gone|closed)\b"
)
_GONE = re.compile(
    r"\b(?:remov|eliminat|abolish|ended|gone|repeal|clos|no longer|not|no|never|used to|was|were|until|before|"
    r"disappear)"
)
_EVERY = re.compile(
    r"\b(?:every(?! (?:month|year|day|week|time|quarter|full|dollar))|everyone|everybody|always|without exception|"
    r"no exceptions?|in all cases|no matter what|all (?:people|plans|states|doctors|hospitals|beneficiaries))\b"
)


def same_level(claim: Reading, statement: str) -> bool:
    """Whether both deny or both assert, in the clauses that are closest to each other.

    If both state the same amount as what something is or costs, they agree: a negation elsewhere does not matter.
    """
    agreed = (claim.figures & read_words(statement).figures) - {"$0"}
    if claim.denials and any(is_amount(figure) for figure in agreed):
        for piece in _PIECE.split(claim.text):
            part = read_words(piece)
            if part.figures & agreed and not part.denials and _STATES.search(piece):
                return True
    if _denied(claim) and _denied(claim) == _denied(read_words(statement)):
        return True
    theirs = nearest(claim, statement)
    mine = nearest(theirs, claim.text)
    return (mine.denials > 0) == (theirs.denials > 0)


def _denied(reading: Reading) -> set[str]:
    return {word.token for word in reading.words if word.head} - EVERYWHERE


def _signs(words: tuple[Word, ...]) -> dict[str, set[str]]:
    """For each token: denied (-), asserted (+), or somewhere after a negation (?)."""
    signs: dict[str, set[str]] = {}
    for word, after in zip_longest(words, words[1:]):
        # "no yearly limit" denies the limit, not that it is yearly.
        denied = word.head and not (after and after.head)
        signs.setdefault(word.token, set()).add("-" if denied else "?" if word.negated else "+")
    return signs


def sign_clash(claim: Reading, statement: str, score: float) -> str:
    """A word that only one side denies, compared with the part of the statement that is closest to the claim."""
    if score < POLARITY_AT:
        return ""
    fact = read_words(statement)
    whole, mine = _signs(fact.words), _signs(claim.words)
    theirs = _signs(nearest(claim, statement).words)
    both_deny = claim.denials > 0 and fact.denials > 0 and same_level(claim, statement)
    for token in sorted(mine.keys() & whole.keys() - EVERYWHERE):
        a, b, everywhere = mine[token], theirs.get(token, whole[token]), whole[token]
        if token.startswith("#") or (token not in GROUPED if token.startswith("@") else both_deny):
            continue
        if a == {"-"} and b == {"+"} and "-" not in everywhere:
            return f"denies '{token}', which the key asserts"
        if a == {"+"} and b == {"-"} and "+" not in everywhere:
            return f"asserts '{token}', which the key denies"
    return ""


def antonym_clash(claim: Reading, fact: Reading, score: float) -> str:
    for pair in _ANTONYMS:
        for mine, theirs in (pair, pair[::-1]):
            if mine not in claim.content or theirs not in fact.content:
                continue
            if theirs in claim.content or mine in fact.content or (pair in _WEAK and score < 0.8):
                continue
            if negates(claim, mine) or negates(fact, theirs):
                continue
            if mine in DIRECTIONAL and not _followers(claim, mine) & _followers(fact, theirs):
                continue
            if pair in _CONTEXTUAL and not _neighbors(claim, mine) & _neighbors(fact, theirs):
                continue
            return f"says '{mine}', but the key says '{theirs}'"
    return ""


def removal_clash(claim: Reading, fact: Reading) -> str:
    """The claim treats something as current that the key says was removed."""
    thing = _removed(fact.text)
    if not thing or not thing <= claim.content or _GONE.search(plain_lower(claim.text)):
        return ""
    return "treats as current what the key says has ended"


@lru_cache(maxsize=4096)
def _removed(statement: str) -> frozenset[str]:
    """The words for what the statement says was removed."""
    plain = plain_lower(statement)
    removed = _REMOVED.search(plain)
    return read_words(plain[: removed.start()].split(",")[0]).content - EVERYWHERE if removed else frozenset()


def _neighbors(reading: Reading, token: str) -> set[str]:
    words = [word.token for word in reading.words]
    places = [at for at, word in enumerate(words) if word == token]
    return {near for at in places for near in (*words[max(0, at - 1) : at], *words[at + 1 : at + 2])}


def _followers(reading: Reading, token: str) -> set[str]:
    return {after.token for word, after in pairwise(reading.words) if word.token == token}


_ONLY = re.compile(r"(?<!not )\b(?:only|solely|exclusively)\b")
_MOST = re.compile(r"\b(?:most|some|many|several|certain|not all|few)\b ([a-z]+)")
_ALL = re.compile(
    r"\b(?:every(?! (?:month|year|day|week|time|quarter|full|dollar))|all (?:fifty|50|of the)|always|"
    r"without exception|no exceptions?|in all cases)\b"
)


def sweeping_clash(claim: Reading, fact: Reading) -> str:
    """The claim explicitly says about all what the key says about most or some."""
    sweeping = _ALL.search(plain_lower(claim.text))
    some = [canonical(match.group(1)) for match in _MOST.finditer(plain_lower(fact.text))]
    if sweeping and not claim.denials and any(noun in claim.content for noun in some):
        return f"says '{sweeping.group()}', but the key limits it"
    return ""


def exclusive_clash(claim: Reading, fact: Reading, score: float) -> str:
    """`only` on one side, `any` or `all` on the other."""
    if score < POLARITY_AT or claim.denials or fact.denials:
        return ""
    mine, theirs = _ONLY.search(plain_lower(claim.text)), _ONLY.search(plain_lower(fact.text))
    if mine and not theirs and fact.raw & ANYBODY and not claim.raw & ANYBODY:
        return "says 'only', but the key says any or all"
    if theirs and not mine and claim.raw & ANYBODY and not fact.raw & ANYBODY:
        return "says any or all, but the key says 'only'"
    return ""


def excepts(claim: Reading, fact: Reading) -> bool:
    """Whether the claim is about a named case and the key about some or several cases, which may not include it."""
    some = _MOST.search(plain_lower(fact.text))
    cases = {*names(claim.text), *STATES.findall(claim.text)}
    return bool(some) and any(name not in fact.text for name in cases)


def over_general(claim: Reading, fact: Reading) -> bool:
    """Whether the claim says about all, or always, what the key says about some, or says that it can be."""
    if fact.raw & UNIVERSALS:
        return False
    every = _EVERY.search(plain_lower(claim.text))
    return bool((claim.raw & UNIVERSALS and fact.raw & RESTRICTED) or (every and fact.raw & POSSIBLE))
