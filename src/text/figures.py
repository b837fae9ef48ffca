"""Figures in English text, normalized so that two spellings of one figure give the same token.

Money is `$2000` or `$202.90`, a percentage `20%`, a duration `7 months`, a date `10-15` (month-day), a year `2026`,
a phone number `tel:18006334227`, any other number `n65`. Text is folded without changing its length, split into
small tokens, and read once from left to right; no pattern can backtrack over more than a few characters. Numbers are
handled as strings, so length and locale do not matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

_SPACES = "\t\x0b\x0c\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad"
_FOLD = str.maketrans(
    dict.fromkeys(_SPACES + _INVISIBLE + "*_`~\\", " ")
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-")
    | dict.fromkeys("\u2018\u2019\u201b\u02bc\u00b4", "'")
    | dict.fromkeys("\u201c\u201d\u201e", '"')
    | {"\uff04": "$", "\ufe69": "$", "\uff05": "%", "\ufe6a": "%"}
)
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
_UNITS = _list(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_TENS = {word: ten * 10 for ten, word in enumerate(_list("twenty thirty forty fifty sixty seventy eighty ninety"), 2)}
_SMALL = {word: value for value, word in enumerate(_UNITS)}
_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9}
_SHORT_SCALES = {"k": 3, "m": 6, "mm": 6, "bn": 9}
_ORDINAL_WORDS = _list(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)
_ORDINALS = {word: value for value, word in enumerate(_ORDINAL_WORDS, 1)} | {"thirtieth": 30}
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
            "september sept sep", "october oct", "november nov", "december dec",
        ),
        1,
    )
    for name in names.split()
}  # fmt: skip
_TIME = {
    **{unit: unit for unit in ("minute", "hour", "day", "week", "month", "year")},
    **{f"{unit}s": unit for unit in ("minute", "hour", "day", "week", "month", "year")},
    "yr": "year", "yrs": "year", "mo": "month", "mos": "month", "hrs": "hour",
}  # fmt: skip
_BETWEEN_NUMBER_AND_TIME = frozenset(
    _list("full consecutive calendar straight continuous whole additional uncovered more extra complete or and a")
)
_COMMON_FRACTIONS = {("1", "2"), ("1", "3"), ("1", "4"), ("2", "3"), ("3", "4"), ("1", "5")}


@dataclass(frozen=True)
class Figure:
    token: str
    start: int
    end: int


@dataclass
class _Number:
    """A number and, once known, its unit."""

    value: str
    start: int
    end: int
    place: int
    """Index of its first token."""
    after: int
    """Index of the first token after it."""
    lone_one: bool = False
    grouped: bool = False
    unit: str = ""
    attached: bool = False
    """A letter is directly before it, as in B12."""


@dataclass(frozen=True)
class _Token:
    text: str
    lower: str
    start: int
    end: int


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
    """The figures that carry information: all except years, and 65, an age that is mentioned everywhere."""
    return frozenset(token for token in tokens if kind(token) != "year") - {"n65"}


def fold(text: str) -> str:
    """Text with plain characters for typographic and Markdown ones; every character keeps its position."""
    return _THIN_THOUSANDS.sub(",", text).translate(_FOLD)


@lru_cache(maxsize=4096)
def find_figures(text: str) -> tuple[Figure, ...]:
    """The figures, in order of position."""
    plain = fold(text)
    found: list[Figure] = []
    for pattern in (_PHONE, _VANITY):
        for match in pattern.finditer(plain):
            digits = "".join(part for part in match.groups() if part).lower().translate(_KEYPAD)[:10]
            found.append(Figure(f"tel:1{digits}", match.start(), match.end()))
        plain = pattern.sub(_blank, plain)
    for pattern in (_URL, _LIST_MARK, _SAVINGS_PLAN):
        plain = pattern.sub(_blank, plain)
    tokens = [_Token(m.group(), m.group().lower(), m.start(), m.end()) for m in _TOKEN.finditer(plain)]
    taken: set[int] = set()
    found += _dates(tokens, taken)
    found += _quantities(tokens, taken)
    return tuple(sorted(found, key=lambda figure: (figure.start, figure.token)))


def _blank(match: re.Match[str]) -> str:
    # A period keeps the text before and after a removed number from being read together.
    return "." * len(match.group())


def _lower(tokens: list[_Token], index: int) -> str:
    return tokens[index].lower if 0 <= index < len(tokens) else ""


def _dates(tokens: list[_Token], taken: set[int]) -> list[Figure]:
    found: list[Figure] = []
    for index, token in enumerate(tokens):
        month = _MONTHS.get(token.lower)
        if month and not (token.lower in ("may", "march", "mar") and token.text[0].islower()):
            found += _named_date(tokens, index, month, taken)
        elif token.text.isascii() and token.text.isdigit() and index not in taken:
            found += _numeric_date(tokens, index, taken)
    return found


def _named_date(tokens: list[_Token], index: int, month: int, taken: set[int]) -> list[Figure]:
    after = index + 1 + (_lower(tokens, index + 1) == ".")
    after += _lower(tokens, after) == "the"
    day, behind = _day(tokens, after)
    if day and after not in taken and not _has_unit(tokens, behind):
        found = [_date(tokens, month, day, index, behind)]
        taken.update(range(index, behind))
        if _lower(tokens, behind) in ("-", "to", "through", "thru"):
            last, end = _day(tokens, behind + 1)
            if last and not _has_unit(tokens, end):
                found.append(_date(tokens, month, last, behind + 1, end))
                taken.update(range(behind + 1, end))
        return found
    before = index - 1 - (_lower(tokens, index - 1) == "of")
    width = 2 if _lower(tokens, before) in ("st", "nd", "rd", "th") else 1
    day, behind = _day(tokens, before - width + 1)
    if day and behind == before + 1 and before not in taken:
        taken.update(range(before - width + 1, index + 1))
        return [_date(tokens, month, day, before - width + 1, index + 1)]
    return []


def _day(tokens: list[_Token], index: int) -> tuple[int, int]:
    """A day of a month and the index after it, or (0, index)."""
    word = _lower(tokens, index)
    if word in _ORDINALS:
        return _ORDINALS[word], index + 1
    if word.isascii() and word.isdigit() and len(word) <= 2 and 1 <= int(word) <= 31:
        suffix = _lower(tokens, index + 1) in ("st", "nd", "rd", "th")
        return int(word), index + 1 + suffix
    return 0, index


def _has_unit(tokens: list[_Token], index: int) -> bool:
    return _lower(tokens, index) in ("%", "percent", "dollars") or _lower(tokens, index) in _TIME


def _date(tokens: list[_Token], month: int, day: int, first: int, behind: int) -> Figure:
    return Figure(f"{month:02d}-{day:02d}", tokens[first].start, tokens[behind - 1].end)


def _numeric_date(tokens: list[_Token], index: int, taken: set[int]) -> list[Figure]:
    """10/15, 10/15/2026 and 2026-10-15; the year is left for the next pass."""
    parts = [_lower(tokens, index + step) for step in range(0, 5, 2)]
    marks = (_lower(tokens, index + 1), _lower(tokens, index + 3))
    if _lower(tokens, index - 1) in ("$", "/", "-"):
        return []
    if marks == ("-", "-") and _is_year(parts[0]):
        month, day, at = parts[1], parts[2], index + 2
    elif marks[0] == "/" and (parts[0], parts[1]) not in _COMMON_FRACTIONS:
        month, day, at = parts[0], parts[1], index
    else:
        return []
    numeric = all(part.isascii() and part.isdigit() and len(part) <= 2 for part in (month, day))
    if not numeric or not 1 <= int(month) <= 12 or not 1 <= int(day) <= 31:
        return []
    if _lower(tokens, at + 3) == "%":
        return []
    taken.update((at, at + 1, at + 2))
    return [_date(tokens, int(month), int(day), at, at + 3)]


def _is_year(digits: str) -> bool:
    return len(digits) == 4 and digits.isascii() and digits.isdigit() and "1900" <= digits <= "2099"


def _quantities(tokens: list[_Token], taken: set[int]) -> list[Figure]:
    numbers = _numbers(tokens, taken)
    for number in numbers:
        number.unit = _unit(tokens, number)
    for number, following in pairwise(numbers):
        link = _lower(tokens, number.after)
        joined = following.place - number.after <= 2 and link in ("-", "to", "through", "thru", "or")
        joined |= link == "and" and following.place == number.after + 1 and _before(tokens, number) == "between"
        if not joined:
            continue
        if not number.unit and following.unit and not _is_year(number.value):
            number.unit = following.unit
        elif number.unit == "$" and not following.unit and link != "or":
            following.unit = "$"
    found = []
    for number in numbers:
        if number.lone_one and number.unit in ("", "day", "hour", "minute"):
            continue
        if number.attached and not number.unit and not _is_year(number.value):
            continue
        found.append(Figure(_spell(number), number.start, number.end))
    return found


def _numbers(tokens: list[_Token], taken: set[int]) -> list[_Number]:
    numbers: list[_Number] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if index in taken:
            index += 1
        elif token.text[0] in "0123456789":
            number = _digits(tokens, index)
            index = number.after if number else index + 2
            numbers += [number] if number else []
        elif token.lower in _SMALL or token.lower in _TENS or _scaled_article(tokens, index):
            number = _words(tokens, index)
            numbers.append(number)
            index = number.after
        else:
            index += 1
    return numbers


def _digits(tokens: list[_Token], index: int) -> _Number | None:
    token = tokens[index]
    value, after, end = _plain(token.text.replace(",", "")), index + 1, token.end
    glued = after < len(tokens) and tokens[after].start == token.end
    following = _lower(tokens, after)
    if glued and following in ("st", "nd", "rd", "th"):
        return None  # an ordinal is a position, not an amount
    scale = _SCALES.get(following) or (_SHORT_SCALES.get(following) if glued else None)
    if scale:
        value, end, after = _shift(value, scale), tokens[after].end, after + 1
    before = tokens[index - 1] if index else None
    attached = before is not None and before.end == token.start and before.text.isalpha()
    return _Number(value, token.start, end, index, after, grouped="," in token.text, attached=attached)


def _scaled_article(tokens: list[_Token], index: int) -> bool:
    return _lower(tokens, index) == "a" and _lower(tokens, index + 1) in _SCALES


def _words(tokens: list[_Token], index: int) -> _Number:
    """A number in words: tens and units, then hundreds and thousands, as long as they form one number."""
    total, part, place, ceiling = 0, 0, index, 10**12
    lone = _lower(tokens, index) == "one"
    if _lower(tokens, index) == "a":
        part, place = 1, place + 1
    else:
        part, place = _below_hundred(tokens, place)
    while _lower(tokens, place) in _SCALES:
        scale = 10 ** _SCALES[_lower(tokens, place)]
        # Each scale once, in descending order: "one hundred one hundred" is two numbers.
        if not part or (part >= 100 if scale == 100 else scale >= ceiling):
            break
        lone = False
        if scale == 100:
            part *= 100
        else:
            total, part, ceiling = total + part * scale, 0, scale
        place += 1
        following = place + (_lower(tokens, place) in ("and", "-"))
        if _lower(tokens, following) in _SMALL or _lower(tokens, following) in _TENS:
            extra, place = _below_hundred(tokens, following)
            part += extra
    return _Number(str(total + part), tokens[index].start, tokens[place - 1].end, index, place, lone_one=lone)


def _below_hundred(tokens: list[_Token], index: int) -> tuple[int, int]:
    word = _lower(tokens, index)
    if word in _SMALL:
        return _SMALL[word], index + 1
    value, place = _TENS[word], index + 1
    unit = place + (_lower(tokens, place) == "-")
    if 1 <= _SMALL.get(_lower(tokens, unit), 0) <= 9:
        return value + _SMALL[_lower(tokens, unit)], unit + 1
    return value, place


def _before(tokens: list[_Token], number: _Number) -> str:
    return _lower(tokens, number.place - 1)


def _unit(tokens: list[_Token], number: _Number) -> str:
    place = number.after + (_lower(tokens, number.after) == "-")
    word = _lower(tokens, place)
    if _before(tokens, number) in ("$", "usd") or word in ("dollar", "dollars", "usd", "bucks"):
        return "$"
    if word == "cents":
        number.value = _shift(number.value, -2)
        return "$"
    if word in ("%", "percent", "percentage", "pct") or (word == "per" and _lower(tokens, place + 1) == "cent"):
        return "%"
    for step in range(3):
        word = _lower(tokens, place + step)
        if word in _TIME:
            return "" if _is_age(tokens, place + step + 1) else _TIME[word]
        if word not in _BETWEEN_NUMBER_AND_TIME or (step == 0 and word in ("and", "a")):
            break
    return ""


def _is_age(tokens: list[_Token], index: int) -> bool:
    index += _lower(tokens, index) == "-"
    return _lower(tokens, index) in ("old", "olds") or (
        _lower(tokens, index) == "of" and _lower(tokens, index + 1) == "age"
    )


def _plain(digits: str) -> str:
    whole, _, fraction = digits.partition(".")
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole


def _shift(value: str, places: int) -> str:
    """Move the decimal point to the right (left if negative)."""
    whole, _, fraction = value.partition(".")
    if places < 0:
        whole = whole.rjust(1 - places, "0")
        return _plain(f"{whole[:places]}.{whole[places:]}{fraction}")
    fraction = fraction.ljust(places, "0")
    return _plain(f"{whole}{fraction[:places]}.{fraction[places:]}")


def _spell(number: _Number) -> str:
    if number.unit == "$":
        whole, _, fraction = number.value.partition(".")
        return f"${whole}.{fraction.ljust(2, '0')}" if fraction else f"${whole}"
    if number.unit == "%":
        return f"{number.value}%"
    if number.unit:
        return f"{number.value} {number.unit}" + ("" if number.value == "1" else "s")
    if _is_year(number.value) and not number.grouped:
        return number.value
    return f"n{number.value}"
