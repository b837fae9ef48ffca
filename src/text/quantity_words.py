"""What words say about figures: that an amount is zero, rounded, for a month or a year, or that a number is an age."""

from __future__ import annotations

import re
from functools import lru_cache

from .figures import TextFigure, find_figures, fold

_MONTHLY = re.compile(
    r"\bmonthly\b|\b(?:per|a|each|every|one|al|por|cada) (?:month|mes)\b|/ ?mo(?:nth)?\b|\bmensual",
    re.IGNORECASE,
)
_YEARLY = re.compile(
    r"\b(?:yearly|annual|annually)\b|\b(?:per|a|each|every|one|full|whole|the|al|por|cada) (?:year|a[nñ]o)\b|"
    r"/ ?y(?:ea)?r\b|\banual|\b(?:12|twelve) months\b",
    re.IGNORECASE,
)
_MARK = re.compile(
    r"(?:\b(?:about|around|roughly|approximately|approx\.?|nearly|almost|just (?:over|under|above|below)|more than|"
    r"close to|some|un[oa]s|alrededor de|casi)|[~≈])(?: (?:an?|another|only|just))?[ *]{0,3}(?:US)?[ $*]{0,4}$",
    re.IGNORECASE,
)
_ZERO = re.compile(
    r"\b(?:pay|pays|paid|paying|owes?|costs?|charged?|charges?)\b[^.;]{0,30}?\b(?:nothing|zero)\b|"
    r"\bnothing (?:for|extra|more|out of pocket)\b|"
    r"(?<![\w-])(?:(?:premium|cost|copay|charge)-)?free\b(?!-| to\b| from\b| up\b)|"
    r"\b(?:no|zero|without(?: any)?) (?:additional |extra |further |out-of-pocket |monthly |annual |yearly |upfront )?"
    r"(?:costs?|charges?|fees?|copay(?:ment)?s?|coinsurance|premiums?|deductibles?)\b"
    r"(?![- ](?:higher|above|over|more|increases?|limits?|caps?|shar|changes?))|"
    r"(?:\bnot|n['’]t)\b[^.;]{0,12}\b(?:pay|cost|owe)\b[^.;]{0,12}\banything\b|\b(?:fully covered|covered in full)\b|"
    r"\bgrat(?:is|uit[oa]s?)\b|\bsin (?:costo|cargo)\b|\bno (?:cuesta|paga) nada\b",
    re.IGNORECASE,
)
_NOT_ZERO = re.compile(
    r"(?:\bnot|\bnever|n['’]t)(?: (?:quite|always|entirely|completely|really|a|at|for|come|be|get)){0,2} "
    r"(?:(?:premium|cost|copay)-)?(?:free|without|no)\b[^.;,]{0,20}|\btoll[- ]free\b|\bfeel free\b|\bno es gratis\b",
    re.IGNORECASE,
)
_ORDINAL = re.compile(r"(?<![0-9.,$])([0-9]{1,3})(?:st|nd|rd|th)\b")
_ONE_UNIT = re.compile(
    r"\b(?:a|an|per|each|every|the|this|next|first|last|whole|full|entire|cada|un|una) "
    r"(?:full |whole |entire |single )?(day|week|month|year)\b",
    re.IGNORECASE,
)
_LASTING = re.compile(
    r"\b(?:within|for|after|in|lasts?|least|to|than|about|during|over) (?:a|an) (?:full |whole |entire |single )?"
    r"(week|month|year)\b",
    re.IGNORECASE,
)
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
_AGE_BEFORE = re.compile(
    r"\b(?:aged?|ages|edad de|turn(?:s|ed|ing)?|(?:older|younger) than|cumpl\w{1,4})(?: of| between)?"
    r"(?: [0-9]{1,3}(?: to| through| and| or|-))? ?$",
    re.IGNORECASE,
)
_AGE_AFTER = re.compile(
    r"-? ?(?:(?:or|and) (?:older|over|above|up|younger|under)\b|\+? ?years? (?:old|of age)|-?year-olds?|"
    r"(?:st|nd|rd|th)? birthday|(?:or|o) m[aá]s a[nñ]os|a[nñ]os de edad)",
    re.IGNORECASE,
)
_AGE_PLACE = re.compile(
    r"\b(?:at|by|until|before|past|over|under|after|is|are|be|reach(?:es|ed|ing)?) $", re.IGNORECASE
)
_NO_NOUN = re.compile(
    r" ?(?:$|[.,;:)!?]|(?:and|or|who|with|without|can|may|for|if|when|because|has|have|is|are|gets?|on|but|to)\b)",
    re.IGNORECASE,
)
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
