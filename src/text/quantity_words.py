"""What words say about figures: that an amount is zero, rounded, for a month or a year, or that a number is an age."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from .figures import TextFigure, find_figures, fold
from .patterns import load_patterns

_PATTERNS = load_patterns(Path(__file__).with_suffix(".toml"))
_MONTHLY = _PATTERNS["monthly"]
_YEARLY = _PATTERNS["yearly"]
_MARK = _PATTERNS["mark"]
_ZERO = _PATTERNS["zero"]
_NOT_ZERO = _PATTERNS["not_zero"]
_ORDINAL = re.compile(r"(?<![0-9.,$])([0-9]{1,3})(?:st|nd|rd|th)\b")
_ONE_UNIT = _PATTERNS["one_unit"]
_LASTING = _PATTERNS["lasting"]
_NAMES = (
    (re.compile(r"\ba quarter of\b", re.IGNORECASE), "25%"),
    (re.compile(r"\bhalf (?:of|the)\b", re.IGNORECASE), "50%"),
    (re.compile(r"\bNew Year['’]?s\b|\bfirst of (?:the|next) year\b", re.IGNORECASE), "01-01"),
)
"""Words for figures."""
_NEARBY_YEAR = (
    (re.compile(r"\b(?:next|following|coming) (?:\w+ )?year\b|\bpr[oó]ximo a[nñ]o\b", re.IGNORECASE), 1),
    (re.compile(r"\b(?:last|previous|prior) (?:\w+ )?year\b|\ba[nñ]o pasado\b", re.IGNORECASE), -1),
)
_AGE_BEFORE = _PATTERNS["age_before"]
_AGE_AFTER = _PATTERNS["age_after"]
_AGE_PLACE = _PATTERNS["age_place"]
_NO_NOUN = _PATTERNS["no_noun"]
_OLDEST, _YOUNGEST = 110, 18


def figures_in_words(text: str) -> frozenset[str]:
    """Figures that the text states in words: $0 for "free", 25% for "a quarter of", 65 for "65th birthday"."""
    found = {token for pattern, token in _NAMES if pattern.search(text)}
    if _ZERO.search(_NOT_ZERO.sub(" ", text)):
        found |= {"$0", "0%", "n0"}
    return frozenset(found | {f"n{match.group(1)}" for match in _ORDINAL.finditer(fold(text))})


@lru_cache(maxsize=4096)
def marked(text: str) -> frozenset[str]:
    """The figures that the text calls rounded."""
    found = find_figures(text)
    return frozenset(one.token for one in found if _MARK.search(text[max(0, one.start - 32) : one.start]))


@lru_cache(maxsize=4096)
def speaks_of_month(text: str) -> bool:
    return _MONTHLY.search(fold(text)) is not None


@lru_cache(maxsize=4096)
def speaks_of_year(text: str) -> bool:
    return _YEARLY.search(fold(text)) is not None


@lru_cache(maxsize=4096)
def single_times(text: str) -> frozenset[str]:
    """Times named without a number: "1 year" for "a year" or "the first year"."""
    return frozenset(f"1 {one.group(1).lower()}" for one in _ONE_UNIT.finditer(fold(text)))


@lru_cache(maxsize=4096)
def single_durations(text: str) -> frozenset[str]:
    """Of these, the ones that something lasts or takes: "within a year", but not "$20 a year"."""
    return frozenset(f"1 {one.group(1).lower()}" for one in _LASTING.finditer(fold(text)))


@lru_cache(maxsize=4096)
def steps_to_year(text: str) -> frozenset[int]:
    """1 if the text speaks of the next year, -1 if of the last year."""
    return frozenset(step for pattern, step in _NEARBY_YEAR if pattern.search(text))


def is_age(figure: TextFigure, text: str) -> bool:
    """Whether the text says that a number is an age: "65 or older", "turns 65", "at 65"."""
    digits = figure.token[1:]
    if not digits.isdigit() or len(digits) > len(str(_OLDEST)) or int(digits) > _OLDEST:
        return False
    before, after = fold(text[max(0, figure.start - 32) : figure.start]), fold(text[figure.end : figure.end + 32])
    if _AGE_BEFORE.search(before) or _AGE_AFTER.match(after.lstrip()):
        return True
    return int(digits) >= _YOUNGEST and bool(_AGE_PLACE.search(before) and _NO_NOUN.match(after))
