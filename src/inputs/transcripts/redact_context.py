"""What is personal because of the words around it: dates of birth, member ids, driver's licenses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...records.transcript import RedactionKind
from .codes import PATTERNS, CodePiece, chars_of, runs
from .redact_numbers import PersonalText, is_toll_free, kind_of_digits, personal_text

_PLAN_ID = re.compile(r"[HRSE]\d{4}(?:\d{3}){0,2}")


def find_in_context(text: str) -> Iterator[PersonalText]:
    """Everything that the words around it make personal, in folded text."""
    yield from _births(text)
    yield from _codes(text)


def _births(text: str) -> Iterator[PersonalText]:
    for context in PATTERNS["birth"].finditer(text):
        end = context.end()
        loose = re.match(r"(?s).{0,90}", text[end:])
        window = text[end : end + len(loose[0] if loose else "")]
        connected = len((PATTERNS["connect"].match(window) or [""])[0])
        date = PATTERNS["date"].search(text, end, min(len(text), end + 150))
        if date and date.start() - end <= 90:
            direct = date.start() - end <= connected
            if _is_birth(text, context, date, direct):
                yield personal_text("DATE OF BIRTH", text, *date.span())
                yield from _second_birth(text, date.end())
                continue
        yield from _birth_digits(text, context, end + connected)
    for date in PATTERNS["date"].finditer(text):
        if PATTERNS["is_birth"].match(text[date.end() : date.end() + 60]):
            yield personal_text("DATE OF BIRTH", text, *date.span())


def _second_birth(text: str, end: int) -> Iterator[PersonalText]:
    """`Her birthday is ... and mine is ...`: a date with a year that is joined to a date of birth."""
    joined = PATTERNS["and"].match(text, end)
    date = PATTERNS["date"].match(text, joined.end()) if joined else None
    if date and any(value for name, value in date.groupdict().items() if name.startswith("year")):
        yield personal_text("DATE OF BIRTH", text, *date.span())


def _is_birth(text: str, context: re.Match[str], date: re.Match[str], direct: bool) -> bool:
    """A date with a year of birth near the context, or any date right behind it that is not an example."""
    years = [value for name, value in date.groupdict().items() if name.startswith("year") and value]
    year = years[0].lower() if years else ""
    full = re.fullmatch(r"19\d\d|200\d|201\d|'\d\d|nineteen.*|two thousand.*", year)
    between = text[context.end() : date.start()]
    if full and (direct or len(re.findall(r"[.?!\n]", between)) <= 2):
        return not re.search(r"(?i)\bor (?:later|after|before|earlier)", text[date.end() : date.end() + 20])
    if year and direct and not re.fullmatch(r"20[2-9]\d", year):
        return True
    if context[0].lower().startswith("born"):
        return False  # "Born June 1: the period runs ..." is an example; "I was born" is another context
    example = PATTERNS["if"].search(text[max(0, context.start() - 60) : context.start()])
    return direct and not example


def _birth_digits(text: str, context: re.Match[str], start: int) -> Iterator[PersonalText]:
    """`date of birth oh three oh three fifty eight`, `DOB 03031958`, `birthday is 7 4 51`."""
    window = text[start : start + 120]
    first = re.match(r"(?:\s|,)*", window)
    at = first.end() if first else 0
    run = next((run for run in runs(window) if run[0].start == at), [])
    row: list[CodePiece] = []
    for piece in run:
        if not piece.digits or len(chars_of([*row, piece])) > 8:
            break
        row.append(piece)
    digits = chars_of(row)
    whole_year = re.fullmatch(r"(?:19|20)\d\d", digits)
    if 3 <= len(digits) <= 8 and not whole_year and (len(row) > 1 or len(digits) >= 6):
        yield personal_text("DATE OF BIRTH", text, start + row[0].start, start + row[-1].end)


def _codes(text: str) -> Iterator[PersonalText]:
    """Codes behind the words that say what they are: `member ID is ...`, `case number ...`."""
    for context in PATTERNS["code_context"].finditer(text):
        connected = PATTERNS["code_connect"].match(text, context.end(), min(len(text), context.end() + 120))
        start = connected.end() if connected else context.end()
        for begin in _starts(text, context.end(), start):
            run = next(iter(runs(text[begin : begin + 200], capitals=True)), [])
            if run and run[0].start == 0:
                found = _code(text, begin, run, context)
                if found:
                    yield found
                    break
        else:
            yield from _long_code(text, context.end())
    for card in PATTERNS["card_code"].finditer(text):
        yield personal_text("ID", text, *card.span("code"))


def _long_code(text: str, end: int) -> Iterator[PersonalText]:
    """A code in the rest of the sentence, with other words before it."""
    rest = re.match(r"[^.?!\n]{0,60}", text[end:])
    found = PATTERNS["long_code"].search(text, end, end + len(rest[0]) + 40) if rest else None
    if (
        found
        and found.start() <= end + len(rest[0] if rest else "")
        and not _PLAN_ID.fullmatch(found[0].replace("-", ""))
    ):
        yield personal_text("ID", text, *found.span())


def _starts(text: str, context_end: int, connected_end: int) -> list[int]:
    """Where the code can begin: after the connecting words, or at a single letter that looks like one of them."""
    starts = [connected_end]
    starts += [context_end + one.start() for one in re.finditer(r"(?<![\w'])[\w]", text[context_end:connected_end])]
    return sorted(set(starts), reverse=True)


def _code(text: str, begin: int, run: list[CodePiece], context: re.Match[str]) -> PersonalText | None:
    pieces = _until_amount(text, begin, run)
    chars = chars_of(pieces)
    digits = sum(char.isdigit() for char in chars)
    long_enough = (
        (len(chars) >= 4 and digits >= 2) or (len(chars) >= 5 and digits >= 1) or (len(chars) >= 3 and digits >= 3)
    )
    spelled = len(chars) >= 5 and all(len(piece.chars) == 1 for piece in pieces)
    before = text[max(0, begin - 3) : begin]
    if not pieces or not (long_enough or spelled) or "$" in before or _PLAN_ID.fullmatch(chars) or is_toll_free(chars):
        return None
    if re.fullmatch(r"(?:19|20)\d\d", chars) and re.search(
        r"(?i)\b(?:in|for|since|by|until|from) *$", text[max(0, begin - 8) : begin]
    ):
        return None
    kind: RedactionKind = "ID"
    if re.match(r"(?i)(?:my|your|her|his)\b", context[0]) and chars.isdigit():
        kind = kind_of_digits(chars)
    elif context["license"]:
        kind = "LICENSE"
    elif context["medicare"]:
        kind = "MEDICARE NUMBER"
    elif chars.isdigit() and _says_kind(chars, context[0].lower()):
        kind = kind_of_digits(chars)
    return PersonalText(kind, begin + pieces[0].start, begin + pieces[-1].end, chars)


def _says_kind(digits: str, context: str) -> bool:
    """Whether the digits themselves show what they are: a card, or a Social Security number where one is named."""
    kind = kind_of_digits(digits)
    return kind == "CARD" or (kind == "SSN" and ("social" in context or "ssn" in context))


def _until_amount(text: str, begin: int, run: list[CodePiece]) -> list[CodePiece]:
    """The pieces of a code; a figure with a unit behind it is no part of one."""
    kept: list[CodePiece] = []
    for piece in run:
        after = text[begin + piece.end : begin + piece.end + 14].lower()
        if re.match(
            r"\s?(?:%|percent|digit|character|letter|dollar|cent|day|month|year|time|,\d{3}|\.\d{2}(?!\d)|a\.?m\b|"
            r"p\.?m\b)",
            after,
        ):
            break
        kept.append(piece)
    while (
        kept
        and kept[-1].chars in ("A", "I")
        and not kept[-1].spoken
        and text[begin + kept[-1].start - 1 : begin + kept[-1].start] == " "
    ):
        kept.pop()  # the article, or "I", behind the code
    return kept
