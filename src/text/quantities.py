"""Whether two texts state the same quantity: for anchoring claims in quotes, and for the points of an answer key.

Equal are identical figures; amounts a month and a year, if one text speaks of a month and the other of a year;
durations in other units (6 months, half a year; 30 days are not a month); amounts rounded to a whole dollar or percent;
and coarser rounding where the rounded figure is marked as such ("about $200"). Nothing is rounded to zero; words for
zero ("free", "at no cost") state $0. Texts are indexed once and looked up, so the work grows with their length only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from .figures import TextFigure, figures, find_figures, fold, is_amount, kind
from .patterns import load_patterns

_COARSE = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
_COARSE_ERROR = Decimal("0.03")
"""How far off a marked rounding may be: "about $200" for $202.90, but not "about $2,000" for $2,100."""
_LONGEST = 15
"""Longer numbers are not money or time; they are compared as text."""
_DERIVED_FROM = 100
"""Sums and multiples are looked for among this many stated values of a kind, so that long texts stay cheap."""
_LEAST_GIVEN = 130
"""Smaller numbers without a unit are ages and counts of people, not amounts."""
_IN_UNITS = {"minute": 1, "hour": 60, "day": 1_440, "week": 10_080, "month": 1, "year": 12}
_BARE = re.compile(r"\s*(?:$|[.,;:!?)\]}\"'])")
"""What follows a number that counts nothing, as in "income: 1600"."""


@dataclass(frozen=True)
class PointNeeds:
    """The figures that must be stated for a point of the key to be made."""

    all_of: tuple[str, ...]
    """Every one of these."""
    any_of: tuple[str, ...]
    """At least one of these, if not empty."""


@dataclass(frozen=True)
class _Value:
    """A figure as a number of one unit: dollars, percent, months, minutes, or none."""

    unit: str
    number: Decimal
    marked: bool
    """The text says that it is rounded."""


_Key = tuple[str, Decimal]


@dataclass(frozen=True)
class _Lookup:
    """Values by unit and number."""

    exact: frozenset[_Key] = frozenset()
    whole: frozenset[_Key] = frozenset()
    """Amounts that are not whole, rounded to whole ones."""
    coarse: frozenset[_Key] = frozenset()
    """What a marked rounding could make of the values."""
    marked: frozenset[_Key] = frozenset()


@dataclass(frozen=True)
class _Stated:
    """What a text states."""

    tokens: frozenset[str]
    values: tuple[_Value, ...]
    units: frozenset[str]
    """Of the values."""
    plain: _Lookup
    times_12: _Lookup
    """Amounts a month as amounts a year; empty if the text does not speak of a month."""
    speaks_of_year: bool


@dataclass(frozen=True)
class _Pool:
    """Stated values from which a claim's figure can be computed."""

    by_unit: dict[str, set[Decimal]]
    multiples: _Lookup


def unstated(text: str, sources: Sequence[str], *, given: Sequence[str] = ()) -> tuple[str, ...]:
    """Figures of `text` that neither the sources nor the given context state, also not as an equal quantity. In order.

    Args:
        text: A claim.
        sources: Its quotes.
        given: What the claim may take for granted: the question, the persona, the plan year. A number without a unit in
            it ("income: 1600") states an amount of money of that value.

    Returns:
        Normalized figures as `figures` gives them. A figure is also stated if it is the sum or difference of two stated
        figures, or one stated figure times 12, divided by 12 or doubled.
    """
    missing: list[str] = []
    pool = _pool((*sources, *given))
    for token in dict.fromkeys(figure.token for figure in find_figures(text)):
        if any(_states(source, token, text) or token in single_times(source) for source in (*sources, *given)):
            continue
        if _is_given(token, given) or _is_nearby_year(token, sources, given) or _is_counted(token, sources):
            continue
        if not _derived(_value(token), pool):
            missing.append(token)
    return tuple(missing)


def point_needs(statement: str, tells: Sequence[str], *, given: Sequence[str] = ()) -> PointNeeds:
    """What must be stated for a fact's point to be made.

    Args:
        statement: The fact.
        tells: The figures that the key's author requires; they replace those of the statement.
        given: The question and the persona. What they state already is never required.
    """

    def wanted(token: str, text: str) -> bool:
        return not _is_given(token, given) and not any(_states(one, token, text) for one in given)

    listed = tuple(dict.fromkeys(figure.token for line in tells for figure in find_figures(line)))
    if listed:
        return PointNeeds(tuple(token for token in listed if wanted(token, statement)), ())
    telling = tuple(
        dict.fromkeys(
            figure.token
            for figure in find_figures(statement)
            if _tells_something(figure, statement) and wanted(figure.token, statement)
        )
    )
    amounts = tuple(filter(is_amount, telling))
    return PointNeeds(amounts, () if amounts else telling)


def conveys(needs: PointNeeds, statement: str, sources: Sequence[str]) -> bool:
    """Whether the sources together state what a point needs; `statement` is the fact, which may say "a month"."""

    def stated(token: str) -> bool:
        return any(says_as_much(token, statement, source) for source in sources)

    return all(map(stated, needs.all_of)) and (not needs.any_of or any(map(stated, needs.any_of)))


def says_as_much(token: str, statement: str, source: str) -> bool:
    """Whether a source states a figure of a statement, also as an equal quantity, as "within a year", or, if the figure
    is one end of a range, as a range inside that."""
    return _states(source, token, statement) or _lasts(source, token) or _is_narrower(source, token, statement)


def _is_narrower(source: str, token: str, statement: str) -> bool:
    value = _value(token)
    return value is not None and any(
        value.number in (low, high) and unit == value.unit and low <= inner_low and inner_high <= high
        for unit, low, high in _ranges(statement)
        for inner_unit, inner_low, inner_high in _ranges(source)
        if inner_unit == unit
    )


@lru_cache(maxsize=4096)
def _ranges(text: str) -> tuple[tuple[str, Decimal, Decimal], ...]:
    """`$30 to $180` and `between 3 and 6 months`: unit, lower and upper end."""
    found = []
    for one, other in pairwise(find_figures(text)):
        low, high = _value(one.token), _value(other.token)
        link = fold(text[one.end : other.start]).strip(" $").lower()
        joined = link in ("-", "to", "through") or (
            link == "and" and fold(text[: one.start]).rstrip(" $").lower().endswith("between")
        )
        if joined and low and high and low.unit == high.unit and low.number < high.number:
            found.append((low.unit, low.number, high.number))
    return tuple(found)


def _states(source: str, token: str, text: str) -> bool:
    return _is_in(token, text, _stated(source))


def _is_in(token: str, text: str, stated: _Stated) -> bool:
    """Whether a figure of a text is among what another text states."""
    value = _value(token)
    if token in stated.tokens or value is None:
        return token in stated.tokens
    if value.unit not in stated.units:
        return False
    value = _Value(value.unit, value.number, token in marked(text))
    if _near(value, stated.plain):
        return True
    a_year = _Value(value.unit, value.number * 12, value.marked)
    return value.unit == "$" and (
        (stated.speaks_of_year and speaks_of_month(text) and _near(a_year, stated.plain))
        or (speaks_of_year(text) and _near(value, stated.times_12))
    )


def _near(value: _Value, among: _Lookup) -> bool:
    key = (value.unit, value.number)
    if key in among.exact or key in among.whole or not among.exact.isdisjoint(_to_whole(value)):
        return True
    if value.marked and key in among.coarse:
        return True
    return bool(among.marked) and not among.marked.isdisjoint(_coarse(value))


@lru_cache(maxsize=4096)
def _to_whole(value: _Value) -> frozenset[_Key]:
    """The whole amount that an amount is rounded to; nothing if it is whole, or would become zero."""
    whole = value.number.quantize(Decimal(1), ROUND_HALF_UP)
    rounds = value.unit in ("$", "%") and whole and whole != value.number
    return frozenset({(value.unit, whole)} if rounds else ())


@lru_cache(maxsize=4096)
def _coarse(value: _Value) -> frozenset[_Key]:
    if value.unit not in ("$", "%", "n"):
        return frozenset()
    rounded = ((value.number / step).quantize(Decimal(1), ROUND_HALF_UP) * step for step in _COARSE)
    error = _COARSE_ERROR * value.number
    return frozenset((value.unit, one) for one in rounded if one and abs(one - value.number) <= error)


@lru_cache(maxsize=4096)
def _value(token: str) -> _Value | None:
    """The number that a figure stands for; None for dates, phone numbers, years and very long numbers."""
    unit, digits = kind(token), token.strip("$%n")
    if " " in token:
        digits, factor = token.partition(" ")[0], _IN_UNITS[unit]
        unit = "months" if unit in ("month", "year") else "minutes"
    elif unit in ("money", "percent", "number"):
        unit, factor = {"money": "$", "percent": "%", "number": "n"}[unit], 1
    else:
        return None
    return _Value(unit, Decimal(digits) * factor, False) if len(digits) <= _LONGEST else None


@lru_cache(maxsize=4096)
def _stated(text: str) -> _Stated:
    tokens = set(figures(text))
    tokens |= figures_in_words(text) | ({"$0", "0%"} if "n0" in tokens else set())
    rounded = marked(text)
    values = ((token, _value(token)) for token in sorted(tokens))
    with_marks = tuple(_Value(one.unit, one.number, token in rounded) for token, one in values if one)
    return _stated_by(frozenset(tokens), with_marks, text)


def _stated_by(tokens: frozenset[str], values: tuple[_Value, ...], text: str) -> _Stated:
    money = (one for one in values if one.unit == "$" and speaks_of_month(text))
    times_12 = _lookup(_Value("$", one.number * 12, one.marked) for one in money)
    units = frozenset(one.unit for one in values)
    return _Stated(tokens, values, units, _lookup(values), times_12, speaks_of_year(text))


def _lookup(values: Iterable[_Value]) -> _Lookup:
    listed = tuple(values)
    return _Lookup(
        exact=frozenset((one.unit, one.number) for one in listed),
        whole=frozenset(key for one in listed for key in _to_whole(one)),
        coarse=frozenset(key for one in listed for key in _coarse(one)),
        marked=frozenset((one.unit, one.number) for one in listed if one.marked),
    )


def _lasts(source: str, token: str) -> bool:
    """Whether a source says a duration without a number that equals the figure: "within a year" for 12 months."""
    value = _value(token)
    found = (_value(one) for one in single_durations(source))
    return value is not None and any(one is not None and one == value for one in found)


def _is_counted(token: str, sources: Iterable[str]) -> bool:
    """Whether a number is a source's duration without its unit, or the reverse: "the other ten" are the 10 days."""
    if token.startswith("n"):
        return any(token[1:] in _counts(source) for source in sources)
    if " " not in token or not token[0].isdigit():
        return False
    number = Decimal(token.partition(" ")[0])
    return any(number in _bare_numbers(source) for source in sources)


@lru_cache(maxsize=4096)
def _counts(text: str) -> frozenset[str]:
    return frozenset(token.partition(" ")[0] for token in figures(text) if " " in token)


def _is_given(token: str, given: Iterable[str]) -> bool:
    """Whether the context states the amount as a bare number: "income: 1600"."""
    value = _value(token)
    if value is None or value.unit != "$" or value.number < _LEAST_GIVEN:
        return False
    return any(value.number in _bare_numbers(one) for one in given)


@lru_cache(maxsize=4096)
def _bare_numbers(text: str) -> frozenset[Decimal]:
    """Numbers without a unit and without a noun; digits of four places may be read as a year."""
    found = (one for one in find_figures(text) if kind(one.token) in ("number", "year") and " " not in one.token)
    bare = (one.token.lstrip("n") for one in found if _BARE.match(text, one.end))
    return frozenset(Decimal(digits) for digits in bare if len(digits) <= _LONGEST and digits != "0")


def _is_nearby_year(token: str, sources: Iterable[str], given: Iterable[str]) -> bool:
    """Whether a year is the "next year" or "last year" of a source, seen from a given year."""
    if kind(token) != "year" or " " in token:
        return False
    known = frozenset[str]().union(*map(figures, given))
    steps = frozenset[int]().union(*map(steps_to_year, sources))
    return any(str(int(token) - step) in known for step in steps)


def _pool(texts: Sequence[str]) -> _Pool:
    by_unit: dict[str, set[Decimal]] = {"$": set(), "%": set(), "months": set(), "minutes": set()}
    for text in texts:
        for value in _stated(text).values:
            if value.unit in by_unit and len(by_unit[value.unit]) < _DERIVED_FROM:
                by_unit[value.unit].add(value.number)
    multiples = _lookup(
        _Value(unit, result, False)
        for unit, numbers in by_unit.items()
        for one in numbers
        for result in (one * 12, one * 2, one / 12)
    )
    return _Pool(by_unit, multiples)


def _derived(value: _Value | None, pool: _Pool) -> bool:
    """Whether a value is a sum or difference of two stated values, or twelve times, a twelfth or twice one."""
    if value is None or not value.number:
        return False
    stated = pool.by_unit.get(value.unit, set())
    pairs = any(value.number - one in stated or value.number + one in stated for one in stated)
    return pairs or _near(value, pool.multiples)


def _tells_something(figure: TextFigure, text: str) -> bool:
    """Not a calendar year, a phone number or an age."""
    if kind(figure.token) == "phone" or (kind(figure.token) == "year" and " " not in figure.token):
        return False
    return kind(figure.token) != "number" or not is_age(figure, text)


# What words say about figures: that an amount is zero, rounded, for a month or a year, or that a number is an age.

_PATTERNS = load_patterns(Path(__file__).with_name("quantity_words.toml"))
_ORDINAL = re.compile(r"(?<![0-9.,$])([0-9]{1,3})(?:st|nd|rd|th)\b")
_PARTS = {"half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10}
_COUNTED = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
_NAMES = (
    (re.compile(r"\bhalf (?:of|the)\b", re.IGNORECASE), "50%"),
    (re.compile(r"\bNew Year['’]?s\b|\bfirst of (?:the|next) year\b", re.IGNORECASE), "01-01"),
)
"""Words for figures."""
_NEARBY_YEAR = (
    (re.compile(r"\b(?:next|following|coming) (?:\w+ )?year\b|\bpr[oó]ximo a[nñ]o\b", re.IGNORECASE), 1),
    (re.compile(r"\b(?:last|previous|prior) (?:\w+ )?year\b|\ba[nñ]o pasado\b", re.IGNORECASE), -1),
)
_OLDEST, _YOUNGEST = 110, 18


def figures_in_words(text: str) -> frozenset[str]:
    """Figures that the text states in words: $0 for "free", 20% for "a fifth of", 65 for "65th birthday"."""
    found = {token for pattern, token in _NAMES if pattern.search(text)}
    found |= {_as_percent(*match.groups()) for match in _PATTERNS["fraction"].finditer(text)}
    if _PATTERNS["zero"].search(_PATTERNS["not_zero"].sub(" ", text)):
        found |= {"$0", "0%", "n0"}
    return frozenset(found | {f"n{match.group(1)}" for match in _ORDINAL.finditer(fold(text))})


def _as_percent(counted: str | None, part: str | None, above: str | None, below: str | None) -> str:
    """A fraction, in words or as 1/5, as a percentage."""
    top = int(above) if above else _COUNTED[(counted or "").lower()]
    share = f"{100 * top / (int(below) if below else _PARTS[(part or '').lower()]):.4f}"
    return f"{share.rstrip('0').rstrip('.')}%"


@lru_cache(maxsize=4096)
def marked(text: str) -> frozenset[str]:
    """The figures that the text calls rounded."""
    found = find_figures(text)
    return frozenset(one.token for one in found if _PATTERNS["mark"].search(text[max(0, one.start - 32) : one.start]))


@lru_cache(maxsize=4096)
def speaks_of_month(text: str) -> bool:
    return _PATTERNS["monthly"].search(fold(text)) is not None


@lru_cache(maxsize=4096)
def speaks_of_year(text: str) -> bool:
    return _PATTERNS["yearly"].search(fold(text)) is not None


@lru_cache(maxsize=4096)
def single_times(text: str) -> frozenset[str]:
    """Times named without a number: "1 year" for "a year" or "the first year"."""
    return frozenset(f"1 {one.group(1).lower()}" for one in _PATTERNS["one_unit"].finditer(fold(text)))


@lru_cache(maxsize=4096)
def single_durations(text: str) -> frozenset[str]:
    """Of these, the ones that something lasts or takes: "within a year", but not "$20 a year"."""
    return frozenset(f"1 {one.group(1).lower()}" for one in _PATTERNS["lasting"].finditer(fold(text)))


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
    if _PATTERNS["age_before"].search(before) or _PATTERNS["age_after"].match(after.lstrip()):
        return True
    return int(digits) >= _YOUNGEST and bool(
        _PATTERNS["age_place"].search(before) and _PATTERNS["no_noun"].match(after)
    )
