"""Figures in English text, normalized so that two spellings of one figure give the same token.

Money is `$2000` or `$202.90`, a percentage `20%`, a duration `7 months`, a date `10-15` (month-day), a year `2026`,
a phone number `tel:18006334227`, any other number `n65`. Text is folded without changing its length, split into
small tokens, and read once from left to right; no pattern can backtrack over more than a few characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from .numbers import TIME, Token, is_year, lower, read_numbers, spell

_SPACES = "\t\x0b\x0c\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad"
_FOLD = str.maketrans(
    dict.fromkeys(_SPACES + _INVISIBLE + "*_`~\\", " ")
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-")
    | dict.fromkeys("\u2018\u2019\u201b\u02bc\u00b4", "'")
    | dict.fromkeys("\u201c\u201d\u201e", '"')
    | {"\uff04": "$", "\ufe69": "$", "\uff05": "%", "\ufe6a": "%", "\uff0c": ",", "\uff0e": "."}
    | {0xFF10 + digit: str(digit) for digit in range(10)}
)
_ACCENTS = str.maketrans("áéíóúñüÁÉÍÓÚÑÜ", "aeiounuAEIOUNU")
_THIN_THOUSANDS = re.compile("(?<=[0-9])[\u00a0\u2009\u202f](?=[0-9]{3}(?![0-9]))")
_URL = re.compile(r"https?://\S+")
_LIST_MARK = re.compile(r"^[ \t>]*(?:\(?[0-9]{1,2}[.)])(?=\s)", re.MULTILINE)
_SAVINGS_PLAN = re.compile(r"\b40[13] ?\(?[kKbB]\)?(?![a-zA-Z])")
_PHONE = re.compile(
    r"(?<![\w$.,-])(?:\+?1[-. ]{1,2}\(?([2-9][0-9]{2})\)?[-. ]{1,2}|\(([2-9][0-9]{2})\) ?|([2-9][0-9]{2})[-.])"
    r"([0-9]{3})[-. ]([0-9]{4})(?!\w)"
)
_VANITY = re.compile(r"(?<![\w$.,-])(?:1[- ])?\(?(8[0-8]{2})\)?-([a-zA-Z]{7,12})(?!\w)")
_KEYPAD = str.maketrans("abcdefghijklmnopqrstuvwxyz", "22233344455566677778889999")
_TOKEN = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?|[A-Za-z]+|[^\sA-Za-z0-9]")
_list = str.split
_ORDINAL_WORDS = _list(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)
_ORDINALS = {word: value for value, word in enumerate(_ORDINAL_WORDS, 1)} | {"thirtieth": 30}
_ORDINALS["primero"] = 1
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan enero", "february feb febrero", "march mar marzo", "april apr abril", "may mayo",
            "june jun junio", "july jul julio", "august aug agosto", "september sept sep septiembre",
            "october oct octubre", "november nov noviembre", "december dec diciembre",
        ),
        1,
    )
    for name in names.split()
}  # fmt: skip
_COMMON_FRACTIONS = {("1", "2"), ("1", "3"), ("1", "4"), ("2", "3"), ("3", "4"), ("1", "5")}


@dataclass(frozen=True)
class TextFigure:
    token: str
    start: int
    end: int


@lru_cache(maxsize=4096)
def figures(text: str) -> frozenset[str]:
    """All figures in the text, normalized; see the module docstring for the forms."""
    return frozenset(figure.token for figure in find_figures(text))


def is_amount(token: str) -> bool:
    """Whether a figure is money or a percentage."""
    return token.startswith("$") or token.endswith("%")


@lru_cache(maxsize=4096)
def kind(token: str) -> str:
    """money, percent, the unit of a duration, date, year, phone or number. Compare only figures of one kind."""
    if token.startswith("$"):
        return "money"
    if token.endswith("%"):
        return "percent"
    if token.startswith("tel:"):
        return "phone"
    if token.startswith("n"):
        return "number"
    if " " in token:
        return token.rsplit(" ", 1)[1].rstrip("s")
    return "date" if "-" in token else "year"


def telling(tokens: Iterable[str]) -> frozenset[str]:
    """The figures that carry information: all except calendar years, and 65, an age that is mentioned everywhere."""
    return frozenset(token for token in tokens if kind(token) != "year" or " " in token) - {"n65"}


def fold(text: str) -> str:
    """Text with plain characters for typographic and Markdown ones; every character keeps its position."""
    return _THIN_THOUSANDS.sub(",", text).translate(_FOLD)


@lru_cache(maxsize=4096)
def find_figures(text: str) -> tuple[TextFigure, ...]:
    """The figures, in order of position."""
    plain = fold(text).translate(_ACCENTS)
    found: list[TextFigure] = []
    for pattern in (_PHONE, _VANITY):
        for match in pattern.finditer(plain):
            digits = "".join(part for part in match.groups() if part).lower().translate(_KEYPAD)[:10]
            found.append(TextFigure(f"tel:1{digits}", match.start(), match.end()))
        plain = pattern.sub(_blank, plain)
    for pattern in (_URL, _LIST_MARK, _SAVINGS_PLAN):
        plain = pattern.sub(_blank, plain)
    tokens = [Token(m.group(), m.group().lower(), m.start(), m.end()) for m in _TOKEN.finditer(plain)]
    taken: set[int] = set()
    found += _dates(tokens, taken)
    found += [TextFigure(spell(number), number.start, number.end) for number in read_numbers(tokens, taken)]
    return tuple(sorted(found, key=lambda figure: (figure.start, figure.token)))


def _blank(match: re.Match[str]) -> str:
    # A period keeps the text before and after a removed number from being read together.
    return "." * len(match.group())


def _dates(tokens: list[Token], taken: set[int]) -> list[TextFigure]:
    found: list[TextFigure] = []
    for index, token in enumerate(tokens):
        month = _MONTHS.get(token.lower)
        if month and not (token.lower in ("may", "march", "mar") and token.text[0].islower()):
            found += _named_date(tokens, index, month, taken)
        elif token.text.isascii() and token.text.isdigit() and index not in taken:
            found += _numeric_date(tokens, index, taken)
    return found


def _named_date(tokens: list[Token], index: int, month: int, taken: set[int]) -> list[TextFigure]:
    after = index + 1 + (lower(tokens, index + 1) == ".")
    after += lower(tokens, after) == "the"
    day, behind = _day(tokens, after)
    if day and after not in taken and not _has_unit(tokens, behind):
        found = [_date(tokens, month, day, index, behind)]
        taken.update(range(index, behind))
        if lower(tokens, behind) in ("-", "to", "through", "thru"):
            last, end = _day(tokens, behind + 1)
            if last and not _has_unit(tokens, end):
                found.append(_date(tokens, month, last, behind + 1, end))
                taken.update(range(behind + 1, end))
        return found
    before = index - 1 - (lower(tokens, index - 1) in ("of", "de"))
    width = 2 if lower(tokens, before) in ("st", "nd", "rd", "th") else 1
    day, behind = _day(tokens, before - width + 1)
    if day and behind == before + 1 and before not in taken:
        taken.update(range(before - width + 1, index + 1))
        return [_date(tokens, month, day, before - width + 1, index + 1)]
    return []


def _day(tokens: list[Token], index: int) -> tuple[int, int]:
    """A day of a month and the index after it, or (0, index)."""
    word = lower(tokens, index)
    if word in _ORDINALS:
        return _ORDINALS[word], index + 1
    if word.isascii() and word.isdigit() and len(word) <= 2 and 1 <= int(word) <= 31:
        suffix = lower(tokens, index + 1) in ("st", "nd", "rd", "th")
        return int(word), index + 1 + suffix
    return 0, index


def _has_unit(tokens: list[Token], index: int) -> bool:
    return lower(tokens, index) in ("%", "percent", "dollars") or lower(tokens, index) in TIME


def _date(tokens: list[Token], month: int, day: int, first: int, behind: int) -> TextFigure:
    return TextFigure(f"{month:02d}-{day:02d}", tokens[first].start, tokens[behind - 1].end)


def _numeric_date(tokens: list[Token], index: int, taken: set[int]) -> list[TextFigure]:
    """10/15, 10/15/2026 and 2026-10-15; the year is left for the next pass."""
    parts = [lower(tokens, index + step) for step in range(0, 5, 2)]
    marks = (lower(tokens, index + 1), lower(tokens, index + 3))
    if lower(tokens, index - 1) in ("$", "/", "-"):
        return []
    if marks == ("-", "-") and is_year(parts[0]):
        month, day, at = parts[1], parts[2], index + 2
    elif marks[0] == "/" and (parts[0], parts[1]) not in _COMMON_FRACTIONS:
        month, day, at = parts[0], parts[1], index
    else:
        return []
    numeric = all(part.isascii() and part.isdigit() and len(part) <= 2 for part in (month, day))
    if not numeric or not 1 <= int(month) <= 12 or not 1 <= int(day) <= 31:
        return []
    if lower(tokens, at + 3) == "%":
        return []
    taken.update((at, at + 1, at + 2))
    return [_date(tokens, int(month), int(day), at, at + 3)]
