"""Whether the figures of a claim and a statement differ: amounts, dates, years, counts, ranges, times and rates."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from ..text.figures import (
    figures,
    fold,
    is_amount,
    kind,
)
from .text import Reading, canonical, plain_lower
from .topic import (
    AGES,
    EVERYWHERE,
    MEASURED,
    pairs_of,
)
from .words import DIRECTIONAL, LEADING_GROUPS, STRICT_GROUPS

TIMES = frozenset({"daily", "weekly", "monthly", "quarterly", "yearly"})
_PAIRED = (*STRICT_GROUPS, LEADING_GROUPS[0], MEASURED)
_RANGE = re.compile(
    r"\b(day|month|week|year)s? ([0-9]{1,3})(?: to| through| thru| until)? (?:day |month )?([0-9]{1,3})\b"
)
_ONE = re.compile(r"\b(?:one|a single|1) ([a-z]{4,})\b")
_UNCOUNTED = TIMES | {"individual", "couple", "benefit", "first", "second", "plan"}
_DATED_YEAR = re.compile(r"\b(?:[0-9]{1,2}|[a-z]{3,9})\.?,? ((?:19|20)[0-9]{2})\b")
_EVENT = frozenset({"begin", "end", "remov", "launch", "introduc", "creat", "last", "open", "close", "eliminat"})
_SUM = re.compile(
    r"(\$?[0-9][0-9,]*(?:\.[0-9]+)?)[^=0-9$+×]{0,24}?(×|\bx\b|\btimes\b|\+|-)\s*(\$?[0-9][0-9,]*(?:\.[0-9]+)?)"
    r"[^=0-9$]{0,24}=\s*(\$?[0-9][0-9,]*(?:\.[0-9]+)?)"
)
_OFTEN = re.compile(
    r"\b(once|twice|one time|two times|three times|[0-9]+ times) (?:a|per|each|every) (month|year|quarter|week|day)\b"
)
_TIMES_A = {"one time": "once", "two times": "twice", "2 times": "twice"}
_DAYS = {"day": 1.0, "week": 7.0, "month": 30.4, "year": 365.0}
_PERSON_SHARE = re.compile(
    r"\b(?:you|person|beneficiary|member|patient|enrollee)\b[^.;,%]{0,60}?\b(?:pay|pays|owe|owes|responsible "
    r"for|left with)\b"
    r"[^.;,%]{0,12}?([0-9]+) ?(?:%|percent)"
)
_INSURER_SHARE = re.compile(
    r"\b(?:part [abd]|medicare|plan|insurer|policy|medigap) (?:(?:generally|usually|then|will|would|only|may) )*"
    r"(?:pays?|covers?)\b[^.;,%]{0,12}?([0-9]+) ?(?:%|percent)"
)
_AS_MANY = re.compile(r"\b(?:as many|unlimited|any number of|several|multiple|repeated) ([a-z]{4,})\b")
_OVER = re.compile(r"\b(?:over|above|exceeds?|past|beyond|too (?:high|much))\b")
_SPAN = re.compile(r"\b(?:up to|through|to|and|less than) (?:and including )?\$", re.IGNORECASE)
_PERSONS = frozenset({"couple"})
_UNITS = {"monthstart": "1 month", "monthly": "1 month", "yearly": "1 year", "daily": "1 day", "weekly": "1 week"}


def of_kind(tokens: Iterable[str], wanted: str) -> frozenset[str]:
    return frozenset(figure for figure in tokens if kind(figure) == wanted)


def other_year(claim: Reading, fact: Reading) -> bool:
    mine, theirs = of_kind(claim.figures, "year"), of_kind(fact.figures, "year")
    return bool(mine and theirs and not mine & theirs)


@lru_cache(maxsize=4096)
def derived(text: str) -> frozenset[str]:
    """Results that the text itself computes (`10 × $217 = $2,170`), and the plain numbers in them."""
    found: set[str] = set()
    for match in _SUM.finditer(fold(text)):
        left, right, total = (float(match.group(at).replace("$", "").replace(",", "")) for at in (1, 3, 4))
        results = {"+": left + right, "-": left - right}
        if abs(results.get(match.group(2), left * right) - total) < 0.06:
            found |= figures(match.group(4))
            found |= {figure for at in (1, 3) for figure in figures(match.group(at)) if not is_amount(figure)}
    given = figures(text)
    counts = {int(figure[1:]) for figure in given if figure.startswith("n") and figure[1:].isdigit()}
    counts |= {int(figure.split()[0]) for figure in given if " " in figure and figure.split()[0].isdigit()} | {12}
    amounts = {figure: _value(figure) for figure in given if is_amount(figure)}
    for figure, value in amounts.items():
        parts = [part for other, part in amounts.items() if part and kind(other) == kind(figure)]
        if any(abs(part * count - value) < 0.006 for part in parts for count in counts if count > 1):
            found.add(figure)
    return frozenset(found)


def _value(figure: str) -> float:
    return float(figure.strip("$%"))


def in_span(figure: str, fact: Reading) -> bool:
    """Whether an amount is inside the statement's range: $120,000 in `above $109,000 and up to $137,000`."""
    money = sorted(_value(other) for other in of_kind(fact.figures, "money") if _SPAN.search(fact.text))
    return kind(figure) == "money" and any(low < _value(figure) <= high for low, high in pairwise(money[-2:]))


def limit_clash(claim: Reading, fact: Reading) -> str:
    """The claim puts an income above the limit within it, or the reverse."""
    caps, given = of_kind(fact.figures, "money"), of_kind(claim.figures, "money")
    same_case = all(claim.content & group == fact.content & group for group in (_PERSONS, TIMES))
    if len(caps) != 1 or len(given) != 1 or caps == given or "limit" not in fact.content or not same_case:
        return ""
    if not any(claim.content & fact.content & group for group in (STRICT_GROUPS[0], LEADING_GROUPS[2])):
        return ""
    amount, cap = _value(min(given)), _value(min(caps))
    out = _OVER.search(plain_lower(claim.text)) or negates(claim, "eligible")
    within = not out and not claim.denials and "eligible" in claim.content
    if (out and amount < cap) or (within and amount > cap):
        return f"puts {min(given)} on the wrong side of the key's limit of {min(caps)}"
    return ""


@dataclass(frozen=True)
class FigureClash:
    figures: frozenset[str] = frozenset()
    """The claim's figures that differ."""
    reason: str = ""
    """Empty if none does."""


def figure_clash(claim: Reading, fact: Reading) -> FigureClash:
    """The claim's figures that differ from the statement's figures of the same kind."""
    given = claim.figures - derived(claim.text)
    kinds = sorted({kind(figure) for figure in given} & {kind(figure) for figure in fact.figures})
    if other_year(claim, fact):
        # An amount of another year is another fact; another year alone, or with the same date, is a different answer.
        dated = kinds == ["date", "year"] and of_kind(given, "date") == of_kind(fact.figures, "date")
        kinds = ["year"] if kinds == ["year"] or dated or _of_event(claim, fact) else []
    for wanted in kinds:
        mine, theirs = of_kind(given, wanted), of_kind(fact.figures, wanted)
        bad, missing = mine - theirs, theirs - mine
        if wanted == "number":
            bad = _same_context(claim, fact, bad, missing)
        if wanted == "year" and len(kinds) > 1:
            continue
        if wanted == "date" and len(mine) == 1 < len(theirs) and "begin" in claim.content - fact.content:
            continue  # when a change takes effect differs from when it can be made
        partly = bool(mine & theirs) and wanted != "date" and len(mine) != len(theirs)
        if bad and missing and not partly:
            return FigureClash(bad, f"says {_names(bad)}, but the key says {_names(missing)}")
    return FigureClash()


def _of_event(claim: Reading, fact: Reading) -> bool:
    """Whether both say in which year something happened, without an amount."""
    amounts = any(is_amount(figure) for figure in claim.figures | fact.figures)
    return not amounts and bool(claim.content & fact.content & _EVENT)


def _names(tokens: Iterable[str]) -> str:
    return " and ".join(figure.removeprefix("n") for figure in sorted(tokens)[:3])


def _contexts(reading: Reading, figure: str) -> set[str]:
    found: set[str] = set()
    words = reading.words
    for at, word in enumerate(words):
        if word.token == f"#{figure}":
            unit = next((other.token for other in reversed(words[:at]) if other.token[0] != "#"), "")
            if unit in TIMES:
                continue  # "days 21 to 100" is a range, not a count
            near = [*reversed(words[max(0, at - 2) : at]), *words[at + 1 : at + 3]]
            found.update(other.token for other in near if not other.token.startswith(("#", "@")))
    return found


def _same_context(claim: Reading, fact: Reading, bad: frozenset[str], missing: frozenset[str]) -> frozenset[str]:
    """Plain numbers differ only if they count the same thing: 50 employees and 20 employees."""
    theirs = set().union(*(_contexts(fact, figure) for figure in sorted(missing))) if missing else set()
    return frozenset(figure for figure in bad - AGES if _contexts(claim, figure) & theirs - EVERYWHERE - TIMES)


def mispaired(claim: Reading, fact: Reading) -> str:
    """The claim gives an amount of the statement to another member of a group."""
    for group in _PAIRED:
        mine, theirs = pairs_of(claim.words, group), pairs_of(fact.words, group)
        for amount in sorted(mine.keys() & theirs.keys()):
            if mine[amount] != theirs[amount] and (mine[amount] in theirs.values() or group is MEASURED):
                return f"gives {amount[1:]} to {mine[amount]}, but the key gives it to {theirs[amount]}"
    return ""


def quantity_clash(claim: Reading, fact: Reading) -> str:
    """Differences that comparing figures of one kind does not show: one and many, ranges of days, periods, rates."""
    for clash in (
        _count_clash, _often_clash, _share_clash, _length_clash, _bound_clash, _range_clash, _offset_clash, _span_clash,
    ):  # fmt: skip
        if found := clash(claim, fact):
            return found
    return ""


def _ones(text: str) -> set[str]:
    return {canonical(match.group(1)) for match in _ONE.finditer(plain_lower(text))} - _UNCOUNTED


def _many(reading: Reading) -> set[str]:
    found = set()
    for word, after in pairwise(reading.words):
        if word.token.startswith("#n") and word.token[2:].isdigit() and 1 < int(word.token[2:]) < 60:
            found.add(after.token)
    return found | {canonical(match.group(1)) for match in _AS_MANY.finditer(plain_lower(reading.text))}


def _count_clash(claim: Reading, fact: Reading) -> str:
    """`one change` and `six changes`."""
    both = (_ones(claim.text) & _many(fact)) | (_many(claim) & _ones(fact.text))
    both -= _ones(claim.text) & _ones(fact.text)
    return f"counts '{min(both)}' differently from the key" if both else ""


@lru_cache(maxsize=4096)
def _ranges(text: str) -> frozenset[tuple[str, int, int]]:
    return frozenset((m.group(1), int(m.group(2)), int(m.group(3))) for m in _RANGE.finditer(plain_lower(text)))


@lru_cache(maxsize=4096)
def _often(text: str) -> frozenset[tuple[str, str]]:
    """How often something happens: (`once`, `month`)."""
    return frozenset((_TIMES_A.get(m.group(1), m.group(1)), m.group(2)) for m in _OFTEN.finditer(plain_lower(text)))


def _often_clash(claim: Reading, fact: Reading) -> str:
    mine, theirs = _often(claim.text), _often(fact.text)
    if mine and theirs and not mine & theirs:
        return f"says {' a '.join(min(mine))}, but the key says {' a '.join(min(theirs))}"
    return ""


@lru_cache(maxsize=4096)
def _shares(text: str) -> dict[str, str]:
    """Who pays which percentage."""
    plain = plain_lower(text)
    found = {match.group(1): "insurer" for match in _INSURER_SHARE.finditer(plain)}
    # "a person in Original Medicare pays 20%": the person pays.
    return found | {match.group(1): "person" for match in _PERSON_SHARE.finditer(plain)}


def _share_clash(claim: Reading, fact: Reading) -> str:
    mine, theirs = _shares(claim.text), _shares(fact.text)
    swapped = [share for share in sorted(mine.keys() & theirs.keys()) if mine[share] != theirs[share] and share != "50"]
    return (
        f"says that the {mine[swapped[0]]} pays {swapped[0]}%, but in the key the other one pays it" if swapped else ""
    )


def _length_clash(claim: Reading, fact: Reading) -> str:
    """Lengths of a period in different units: 63 days and 8 months."""
    mine, theirs = _lengths(claim), _lengths(fact)
    if len(mine) != 1 or len(theirs) != 1 or not claim.content & fact.content & STRICT_GROUPS[2]:
        return ""
    if not {"last", "long", "lasts"} & claim.raw:
        return ""
    (a,), (b,) = mine.items(), theirs.items()
    differ = kind(a[0]) != kind(b[0]) and max(a[1], b[1]) > 1.1 * min(a[1], b[1])
    return f"says {a[0]}, but the key says {b[0]}" if differ else ""


def _lengths(reading: Reading) -> dict[str, float]:
    spans = (figure for figure in reading.figures if kind(figure) in _DAYS)
    return {figure: float(figure.split()[0]) * _DAYS[kind(figure)] for figure in spans}


def _bound_clash(claim: Reading, fact: Reading) -> str:
    """`can be higher than $615` and `cannot be higher than $615`."""
    mine, theirs = _bounds(claim), _bounds(fact)
    for figure in sorted(mine.keys() & theirs.keys()):
        if {mine[figure], theirs[figure]} == {"higher", "limit"}:
            return f"one of claim and key has {figure[1:]} as a limit, and the other goes beyond it"
    return ""


def _bounds(reading: Reading) -> dict[str, str]:
    words = [word.token for word in reading.words]
    sides = ((b, a) for a, b in pairwise(words) if a in ("higher", "limit") and b[0] == "#" and is_amount(b[1:]))
    return dict(sides)


def _range_clash(claim: Reading, fact: Reading) -> str:
    """`days 1 to 30` and `days 1 to 20` at the same price."""
    same = (claim.figures & fact.figures) | ({"$0"} if costs_nothing(claim) and costs_nothing(fact) else set())
    if not any(is_amount(figure) for figure in same):
        return ""
    for unit, first, last in sorted(_ranges(claim.text)):
        for other, start, end in sorted(_ranges(fact.text)):
            inside = start <= first and last <= end
            if unit == other and not inside and (first == start or last == end):
                return f"says {unit}s {first} to {last}, but the key says {start} to {end}"
    return ""


def costs_nothing(reading: Reading) -> bool:
    return "$0" in reading.figures or "free" in reading.content


def _steps(reading: Reading, side: str) -> dict[str, str]:
    """The time before `after` or `before`, by the word that follows: `3 months after sign-up`."""
    words = [word.token for word in reading.words]
    found = {}
    for at, token in enumerate(words):
        if token == side and at:
            unit = _UNITS.get(words[at - 1]) or (words[at - 1][1:] if words[at - 1][0] == "#" else "")
            if unit and kind(unit) in ("day", "week", "month", "year"):
                found[words[at + 1] if at + 1 < len(words) else ""] = unit
    return found


def _offset_clash(claim: Reading, fact: Reading) -> str:
    """`a year after` and `the month after` are different times."""
    for side in sorted(DIRECTIONAL):
        mine, theirs = _steps(claim, side), _steps(fact, side)
        for event in sorted(mine.keys() & theirs.keys()):
            if mine[event] != theirs[event]:
                return f"says '{mine[event]} {side}', but the key says '{theirs[event]} {side}'"
    return ""


def _span_clash(claim: Reading, fact: Reading) -> str:
    """Something that lasts for life does not end after five years and is not paid only once."""
    for mine, theirs in ((claim, fact), (fact, claim)):
        ending = mine.content & {"end", "last", "temporary", "expir"} and any(
            kind(figure) in ("month", "year", "day", "week") and " " in figure for figure in mine.figures
        )
        if "lifelong" in theirs.content - mine.content and ending and not negates(theirs, "lifelong"):
            return "one of claim and key says for life, and the other gives an end"
    return ""


def negates(reading: Reading, token: str) -> bool:
    return any(word.token == token and word.negated for word in reading.words)
