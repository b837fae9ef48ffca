"""Amounts of money spoken as words, and the figures that they mean.

A speech recognizer may write "two hundred two dollars and ninety cents". Judges compare figures, so the figure is put
in square brackets behind the words, and the words stay. "Two hundred two ninety" is an amount only if words such as
"premium" or "a month" are near; without them it is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .numbers import TENS, UNITS, Token, lower
from .patterns import WORDS

_UNITS = {word: value for value, word in enumerate(UNITS[:10])}
_TEENS = {word: value for value, word in enumerate(UNITS[10:], 10)}
_TENS = {word: ten * 10 for ten, word in enumerate(TENS, 2)}
_OH = frozenset(("oh", "o", "zero"))
_DOLLARS = frozenset(("dollars", "dollar", "bucks"))
_CONTEXT = re.compile(
    r"(?i)\b(?:dollars?|premiums?|deductibles?|co-?pays?|co-?payments?|coinsurance|costs?|pay|pays|paying|price|"
    r"(?:a|per|each|every) (?:month|year|day|visit)|monthly|yearly|annually|out[- ]of[- ]pocket)\b"
)
_PRICE = re.compile(r"(?i)\b(?:dollars?|premiums?|deductibles?|co-?pays?|co-?payments?|costs?|pay|pays|paying|price)\b")
_NEAR = 60
_RANGE = frozenset(("through", "thru", "to"))
_OTHER_UNIT = WORDS["units_not_of_money"]
_TOKEN = re.compile(r"[A-Za-z]+|[0-9]+|[^\sA-Za-z0-9]")


@dataclass(frozen=True)
class SpokenAmount:
    """An amount in words: where it is, and its figure."""

    start: int
    end: int
    figure: str


@dataclass(frozen=True)
class _Value:
    value: int
    after: int
    """Index of the first token behind it."""
    scaled: bool
    """Whether "hundred" or "thousand" is in it."""


def spoken_amounts(text: str) -> list[SpokenAmount]:
    """The amounts of money in a text that are said in words, in order.

    Example:
        >>> [one.figure for one in spoken_amounts("The premium is two hundred two ninety a month.")]
        ['$202.90']
    """
    tokens = [Token(one[0], one[0].lower(), one.start(), one.end()) for one in _TOKEN.finditer(text)]
    found: list[SpokenAmount] = []
    place = 0
    while place < len(tokens):
        amount, after = _amount(tokens, place, text)
        if amount:
            found.append(amount)
        place = max(after, place + 1)
    return found


def _amount(tokens: Sequence[Token], place: int, text: str) -> tuple[SpokenAmount | None, int]:
    """The amount that begins here, if one does, and where to read on."""
    whole = _cardinal(tokens, place)
    if whole is None:
        return None, place + 1
    after = whole.after
    if whole.scaled and lower(tokens, place) in _TENS and lower(tokens, place - 1) in _RANGE:
        return None, _past(tokens, after)  # "days 61 through ninety four hundred dollars" has two numbers
    if lower(tokens, after) in _DOLLARS:
        return _with_dollars(tokens, place, whole)
    if whole.value >= 10 and _per_time(tokens, after) and _PRICE.search(text, *_before(tokens, place)):
        return SpokenAmount(tokens[place].start, tokens[after - 1].end, _figure(whole.value)), after
    return _without_dollars(tokens, place, whole, text)


def _without_dollars(tokens: Sequence[Token], place: int, whole: _Value, text: str) -> tuple[SpokenAmount | None, int]:
    """`two hundred two ninety`, if money is spoken of."""
    grouped = _grouped(tokens, place, whole)
    if grouped is None:
        return None, _past(tokens, whole.after)
    figure, after = grouped
    if lower(tokens, after) in _DOLLARS:
        return SpokenAmount(tokens[place].start, tokens[after].end, figure), after + 1
    if lower(tokens, after) in _OTHER_UNIT or _cardinal(tokens, after) or not _is_money(text, tokens, place, after):
        return None, _past(tokens, after)
    return SpokenAmount(tokens[place].start, tokens[after - 1].end, figure), after


def _with_dollars(tokens: Sequence[Token], place: int, whole: _Value) -> tuple[SpokenAmount | None, int]:
    """`two hundred two dollars and ninety cents`, `two hundred two dollars`."""
    after = whole.after + 1
    at = after + (lower(tokens, after) == "and")
    cents = _cardinal(tokens, at)
    if cents and 0 < cents.value < 100 and lower(tokens, cents.after) in ("cents", "cent"):
        figure = _figure(whole.value, cents.value)
        return SpokenAmount(tokens[place].start, tokens[cents.after].end, figure), cents.after + 1
    return SpokenAmount(tokens[place].start, tokens[whole.after].end, _figure(whole.value)), after


def _grouped(tokens: Sequence[Token], place: int, first: _Value) -> tuple[str, int] | None:
    """`two hundred two ninety`, `two oh two ninety`, `two eighty three`, `one eighty five fifty`; None if it is none.

    "Seventeen thirty six" is left alone: it can be $1,736 or $17.36. So is "twenty twenty six", a year.
    """
    hundreds, after = None, first.after
    if first.scaled and first.value >= 100:
        hundreds = first.value
    elif 1 <= first.value <= 9:
        tail = _two_digits(tokens, after)
        if tail:
            hundreds, after = first.value * 100 + tail.value, tail.after
    if hundreds is None:
        return None
    cents = _two_digits(tokens, after)
    if cents and lower(tokens, cents.after) not in _OTHER_UNIT:
        return _figure(hundreds, cents.value), cents.after
    return None if first.scaled else (_figure(hundreds), after)


def _two_digits(tokens: Sequence[Token], place: int) -> _Value | None:
    """Ten to ninety-nine, or `oh five`."""
    if lower(tokens, place) in _OH and _UNITS.get(lower(tokens, place + 1), 0) >= 1:
        return _Value(_UNITS[lower(tokens, place + 1)], place + 2, False)
    value = _cardinal(tokens, place)
    return value if value and 10 <= value.value <= 99 and not value.scaled else None


def _cardinal(tokens: Sequence[Token], place: int) -> _Value | None:
    """A whole number in words: `nine thousand two hundred fifty`."""
    total = part = 0
    scaled = False
    start, at = place, place
    if lower(tokens, at) == "a" and lower(tokens, at + 1) in ("hundred", "thousand"):
        part, at = 1, at + 1
    else:
        small = _below_hundred(tokens, at)
        if small is None:
            return None
        part, at = small.value, small.after
    while lower(tokens, at) in ("hundred", "thousand"):
        if lower(tokens, at) == "hundred":
            if not 0 < part < 100:
                break
            part *= 100
        else:
            if total or not part:
                break
            total, part = part * 1000, 0
        scaled, at = True, at + 1
        tail = _below_hundred(tokens, at + (lower(tokens, at) == "and"))
        if tail:
            following = lower(tokens, tail.after)
            if following == "hundred" and total and not part:
                part, at = tail.value, tail.after
                continue
            if following in ("hundred", "thousand"):
                break
            part, at = part + tail.value, tail.after
            break
    return _Value(total + part, at, scaled) if at > start else None


def _below_hundred(tokens: Sequence[Token], place: int) -> _Value | None:
    word = lower(tokens, place)
    if word in _UNITS or word in _TEENS:
        return _Value(_UNITS.get(word, _TEENS.get(word, 0)), place + 1, False)
    if word not in _TENS:
        return None
    unit = place + 1 + (lower(tokens, place + 1) == "-")
    value = _UNITS.get(lower(tokens, unit), 0)
    if value:
        return _Value(_TENS[word] + value, unit + 1, False)
    return _Value(_TENS[word], place + 1, False)


def _per_time(tokens: Sequence[Token], place: int) -> bool:
    """`a month`, `per year`."""
    times = ("month", "year", "day", "visit")
    return lower(tokens, place) in ("a", "per", "each", "every") and lower(tokens, place + 1) in times


def _before(tokens: Sequence[Token], place: int) -> tuple[int, int]:
    return max(0, tokens[place].start - _NEAR), tokens[place].start


def _is_money(text: str, tokens: Sequence[Token], place: int, after: int) -> bool:
    start, end = tokens[place].start, tokens[after - 1].end
    return bool(_CONTEXT.search(text, max(0, start - _NEAR), min(len(text), end + _NEAR // 2)))


def _past(tokens: Sequence[Token], place: int) -> int:
    """Behind all number words: what was left alone is not read again from its middle."""
    while (following := _cardinal(tokens, place)) is not None or lower(tokens, place) in _OH:
        place = following.after if following else place + 1
    return place


def _figure(dollars: int, cents: int | None = None) -> str:
    return f"${dollars:,}" if cents is None else f"${dollars:,}.{cents:02}"
