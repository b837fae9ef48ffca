"""Numbers in the tokens of a text, in digits and in English or simple Spanish words, with their units.

Every function reads forward from a token and looks at a few tokens around it, so that the work grows with the length
of the text only. Numbers are handled as strings, so length and locale do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from .patterns import WORDS

_list = str.split
UNITS = _list(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
TENS = _list("twenty thirty forty fifty sixty seventy eighty ninety")
_TENS = {word: ten * 10 for ten, word in enumerate(TENS, 2)}
_SMALL = {word: value for value, word in enumerate(UNITS)}
# Spanish, without accents and without the words that mean something else in English or Spanish (once, uno).
_SPANISH = dict(zip(_list("dos tres cuatro cinco seis siete ocho nueve"), range(2, 10), strict=True))
_SMALL |= _SPANISH | dict(zip(_list("diez doce trece catorce quince cien"), (10, 12, 13, 14, 15, 100), strict=True))
_SMALL |= {
    ten + word: start + value for word, value in _SPANISH.items() for ten, start in (("dieci", 10), ("veinti", 20))
}
_TENS |= dict(
    zip(_list("veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa"), range(20, 100, 10), strict=True)
)
_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9}
_SHORT_SCALES = {"k": 3, "m": 6, "mm": 6, "bn": 9}
TIME = {
    **{unit: unit for unit in ("minute", "hour", "day", "week", "month", "year")},
    **{f"{unit}s": unit for unit in ("minute", "hour", "day", "week", "month", "year")},
    "yr": "year", "yrs": "year", "mo": "month", "mos": "month", "hrs": "hour",
    "ano": "year", "anos": "year", "mes": "month", "meses": "month", "semana": "week", "semanas": "week",
    "dia": "day", "dias": "day", "hora": "hour", "horas": "hour",
}  # fmt: skip
_BETWEEN_NUMBER_AND_TIME = WORDS["between_number_and_time"]


@dataclass
class ReadNumber:
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
class Token:
    text: str
    lower: str
    start: int
    end: int


def lower(tokens: Sequence[Token], index: int) -> str:
    return tokens[index].lower if 0 <= index < len(tokens) else ""


def is_year(digits: str) -> bool:
    return len(digits) == 4 and digits.isascii() and digits.isdigit() and "1900" <= digits <= "2099"


def read_numbers(tokens: list[Token], taken: set[int]) -> list[ReadNumber]:
    """The numbers that say something, with their units, in order; tokens in `taken` belong to dates."""
    numbers = _numbers(tokens, taken)
    for number in numbers:
        number.unit = _unit(tokens, number)
    for number, following in pairwise(numbers):
        link = lower(tokens, number.after)
        joined = following.place - number.after <= 2 and link in ("-", "to", "through", "thru", "or")
        joined |= link == "and" and following.place == number.after + 1 and _before(tokens, number) == "between"
        if not joined:
            continue
        if not number.unit and following.unit and not is_year(number.value) and _rises(number, following):
            number.unit = following.unit
        elif number.unit == "$" and not following.unit and link != "or":
            following.unit = "$"
    return [number for number in numbers if not _says_nothing(number)]


def _rises(number: ReadNumber, following: ReadNumber) -> bool:
    """Whether two numbers can be a range: not in "when you turn 65 to three months after"."""
    whole, next_whole = (one.value.partition(".")[0] for one in (number, following))
    return (len(whole), whole) <= (len(next_whole), next_whole)


def _says_nothing(number: ReadNumber) -> bool:
    """A "one" that counts nothing ("no one"), and a number that is part of a name (B12)."""
    if number.lone_one:
        return number.unit in ("", "day", "hour", "minute")
    return number.attached and not number.unit and not is_year(number.value)


def _numbers(tokens: list[Token], taken: set[int]) -> list[ReadNumber]:
    numbers: list[ReadNumber] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if index in taken:
            index += 1
        elif token.text[0] in "0123456789":
            number = _digits(tokens, index)
            index = number.after if number else index + 2
            numbers += [number] if number else []
        elif part := _part_of_time(tokens, index):
            numbers.append(part)
            index = part.after
        elif token.lower in _SMALL or token.lower in _TENS or _scaled_article(tokens, index):
            number = _words(tokens, index)
            _add_half(tokens, number)
            numbers.append(number)
            index = number.after
        else:
            index += 1
    return numbers


def _digits(tokens: list[Token], index: int) -> ReadNumber | None:
    token = tokens[index]
    value, after, end = _plain(token.text.replace(",", "")), index + 1, token.end
    glued = after < len(tokens) and tokens[after].start == token.end
    following = lower(tokens, after)
    if glued and following in ("st", "nd", "rd", "th"):
        return None  # an ordinal is a position, not an amount
    scale = _SCALES.get(following) or (_SHORT_SCALES.get(following) if glued else None)
    if scale:
        value, end, after = _shift(value, scale), tokens[after].end, after + 1
    elif following == "dozen" and value.isdigit() and len(value) < 16:  # more digits than any count of dozens has
        value, end, after = str(int(value) * 12), tokens[after].end, after + 1
    before = tokens[index - 1] if index else None
    attached = before is not None and before.end == token.start and before.text.isalpha()
    number = ReadNumber(value, token.start, end, index, after, grouped="," in token.text, attached=attached)
    _add_half(tokens, number)
    return number


def _add_half(tokens: list[Token], number: ReadNumber) -> None:
    """`and a half`, `½` or `1/2` directly after a whole number."""
    following = tuple(lower(tokens, number.after + step) for step in range(3))
    width = 1 if following[0] == "\u00bd" else 3 if following in (("and", "a", "half"), ("1", "/", "2")) else 0
    if width and "." not in number.value:
        number.value, number.lone_one = f"{number.value}.5", False
        number.after += width
        number.end = tokens[number.after - 1].end


def _part_of_time(tokens: list[Token], index: int) -> ReadNumber | None:
    """`half a year`, `a couple of weeks`, and the `a` of `a year and a half`."""
    word, following = lower(tokens, index), lower(tokens, index + 1)
    if word in ("half", "medio"):
        after = index + 1 + (following in ("a", "an", "-"))
        value = "0.5"
    elif (word, following) == ("a", "couple"):
        after = index + 2 + (lower(tokens, index + 2) == "of")
        value = "2"
    elif word in ("a", "un") and _and_a_half(tokens, index + 2):
        after, value = index + 1, "1"
    else:
        return None
    if lower(tokens, after) not in TIME:
        return None
    return ReadNumber(value, tokens[index].start, tokens[after - 1].end, index, after)


def _and_a_half(tokens: list[Token], index: int) -> bool:
    words = tuple(lower(tokens, index + step) for step in range(3))
    return words == ("and", "a", "half") or words[:2] == ("y", "medio")


def _scaled_article(tokens: list[Token], index: int) -> bool:
    return lower(tokens, index) == "a" and (lower(tokens, index + 1) in _SCALES or lower(tokens, index + 1) == "dozen")


def _words(tokens: list[Token], index: int) -> ReadNumber:
    """A number in words: tens and units, then hundreds and thousands, as long as they form one number."""
    total, part, place, ceiling = 0, 0, index, 10**12
    lone = lower(tokens, index) == "one"
    if lower(tokens, index) == "a":
        part, place = 1, place + 1
    else:
        part, place = _below_hundred(tokens, place)
    while lower(tokens, place) in _SCALES:
        scale = 10 ** _SCALES[lower(tokens, place)]
        # Each scale once, in descending order: "one hundred one hundred" is two numbers.
        if not part or (part >= 100 if scale == 100 else scale >= ceiling):
            break
        lone = False
        if scale == 100:
            part *= 100
        else:
            total, part, ceiling = total + part * scale, 0, scale
        place += 1
        following = place + (lower(tokens, place) in ("and", "-"))
        if lower(tokens, following) in _SMALL or lower(tokens, following) in _TENS:
            extra, place = _below_hundred(tokens, following)
            part += extra
    if lower(tokens, place) == "dozen":
        part, place, lone = part * 12, place + 1, False
    return ReadNumber(str(total + part), tokens[index].start, tokens[place - 1].end, index, place, lone_one=lone)


def _below_hundred(tokens: list[Token], index: int) -> tuple[int, int]:
    word = lower(tokens, index)
    if word in _SMALL:
        return _SMALL[word], index + 1
    value, place = _TENS[word], index + 1
    unit = place + (lower(tokens, place) in ("-", "y"))
    if 1 <= _SMALL.get(lower(tokens, unit), 0) <= 9:
        return value + _SMALL[lower(tokens, unit)], unit + 1
    return value, place


def _before(tokens: list[Token], number: ReadNumber) -> str:
    return lower(tokens, number.place - 1)


def _unit(tokens: list[Token], number: ReadNumber) -> str:
    place = number.after
    while place - number.after < 2 and lower(tokens, place) in ("-", "+", "plus"):
        place += 1
    word = lower(tokens, place)
    if _before(tokens, number) in ("$", "usd") or word in ("dollar", "dollars", "usd", "bucks", "dolares"):
        return "$"
    if word == "cents":
        number.value = _shift(number.value, -2)
        return "$"
    if word in ("%", "percent", "percentage", "pct") or (
        (word, lower(tokens, place + 1)) in (("per", "cent"), ("por", "ciento"))
    ):
        return "%"
    for step in range(3):
        word = lower(tokens, place + step)
        if word in TIME:
            if _and_a_half(tokens, place + step + 1) and "." not in number.value:
                number.value, number.lone_one = f"{number.value}.5", False
            return "" if _is_age(tokens, place + step + 1) else TIME[word]
        if word not in _BETWEEN_NUMBER_AND_TIME or (step == 0 and word in ("and", "a")):
            break
    return ""


def _is_age(tokens: list[Token], index: int) -> bool:
    index += lower(tokens, index) == "-"
    return lower(tokens, index) in ("old", "olds") or (
        lower(tokens, index) == "of" and lower(tokens, index + 1) == "age"
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


def spell(number: ReadNumber) -> str:
    """The token of a number with its unit."""
    if number.unit == "$":
        whole, _, fraction = number.value.partition(".")
        return f"${whole}.{fraction.ljust(2, '0')}" if fraction else f"${whole}"
    if number.unit == "%":
        return f"{number.value}%"
    if number.unit:
        return f"{number.value} {number.unit}" + ("" if number.value == "1" else "s")
    if is_year(number.value) and not number.grouped:
        return number.value
    return f"n{number.value}"
