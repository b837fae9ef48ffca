"""Personal numbers in text, written and spoken: what they are, and where. Amounts, dates and public numbers stay.

First come the written forms that leave no doubt, such as 123-45-6789. Then amounts, dates and toll-free numbers are
masked, and rows of digits and letters are read as people say them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...records.transcript import RedactionKind
from .codes import PATTERNS, WORDS, CodePiece, chars_of, digit_rows, gaps, runs

TOLL_FREE = WORDS["toll_free"]
_LETTER = "[A-Z]"
_MBI = re.compile(rf"[1-9]{_LETTER}[A-Z0-9][0-9]{_LETTER}[A-Z0-9][0-9]{_LETTER}{{2}}[0-9]{{2}}")
"""The pattern of CMS, with all letters: people misread S, L, O, I, B and Z into it."""
_MBI_DIGITS = (0, 3, 6, 9, 10)
_LOCAL_PHONE = re.compile(r"(?<![\w$.,/-])[2-9]\d\d-\d{4}(?![\w-]|\.\d)")
_ABROAD = re.compile(r"(?<!\w)\+(?!1\D?\d{3}\D)\d{1,3}[-. ]?\d(?:[-. ]?\d){6,12}(?!\d)")
_SSN = re.compile(r"(?<![\w$.-])(?:\d{3}[- .]\d{2}[- .]\d{4})(?![\d]|[-.]\d)")
_MASKED_SSN = re.compile(r"(?i)(?<!\w)[x*#]{3}[- ]?[x*#]{2}[- ]?\d{4}(?!\d)")
_HICN_SUFFIX = re.compile(r"[- ]?[A-HJ-MTW](?:[0-9A-Z])?(?![\w'])")
_ZIP4 = re.compile(r"(?<![\w$.-])\d{5}-\d{4}(?![\w-])")
_CARD = re.compile(r"(?<![\w$.])(?:\d{4}[- ]){3}\d{1,7}(?!\w)|(?<![\w$.])3\d{3}[- ]\d{6}[- ]\d{5}(?!\w)")
_BARE = re.compile(r"(?<![\w$.,/-])\d{7,25}(?![\w,/]|\.\d)")
_TIN_CONTEXT = re.compile(r"(?i)social|ssn|tax|itin")
_NEAR = 90
MASKS = (PATTERNS["laws"], *(pattern for name, pattern in PATTERNS.items() if name.startswith("mask_")))
"""Figures that are not personal: money, amounts, percentages, times, years, dates, plans, toll-free numbers, laws."""


@dataclass(frozen=True)
class PersonalText:
    """A place in a text that says something personal."""

    kind: RedactionKind
    start: int
    end: int
    value: str
    """What is the same for every way to say it. Never stored."""


def personal_text(kind: RedactionKind, text: str, start: int, end: int) -> PersonalText:
    return PersonalText(kind, start, end, "".join(char for char in text[start:end].lower() if char.isalnum()))


def find_numbers(text: str) -> list[PersonalText]:
    """Personal numbers in folded text."""
    laws = [one.span() for one in PATTERNS["laws"].finditer(text)]
    found = [one for one in _written(text) if not any(start < one.end and one.start < end for start, end in laws)]
    masked = [(one.start, one.end) for one in found]
    masked += [one.span() for pattern in MASKS for one in pattern.finditer(text)]
    found += _last_four(text)
    for run in runs(text, masked):
        found += _medicare_numbers(run)
        for row in digit_rows(run):
            before = next((piece.chars for piece in reversed(run) if piece.end <= row[0].start), "")
            if not (before in ("H", "R", "S", "E") and len(chars_of(row)) in (4, 7, 10)):  # a plan's contract number
                found += _recited(row, text)
    return found


def is_toll_free(digits: str) -> bool:
    """Public numbers are advice: 1-800-MEDICARE, Social Security, plans."""
    digits = digits[1:] if len(digits) == 11 and digits[0] == "1" else digits
    return len(digits) == 10 and digits[:3] in TOLL_FREE


def _written(text: str) -> Iterator[PersonalText]:
    for one in PATTERNS["railroad"].finditer(text):
        yield _as_found("MEDICARE NUMBER", text, *one.span())
    for one in _SSN.finditer(text):
        suffix = _HICN_SUFFIX.match(text, one.end())
        if suffix:
            yield _as_found("MEDICARE NUMBER", text, one.start(), suffix.end())
        else:
            yield _as_found("SSN", text, *one.span())
    for one in _MASKED_SSN.finditer(text):
        yield _as_found("SSN", text, *one.span())
    for one in _CARD.finditer(text):
        yield _as_found("CARD", text, *one.span())
    for one in _ZIP4.finditer(text):
        yield _as_found("ZIP", text, *one.span())
    yield from _phones(text)
    for one in _BARE.finditer(text):
        yield from _bare(text, one)


def _phones(text: str) -> Iterator[PersonalText]:
    for one in PATTERNS["phone"].finditer(text):
        if one[1] not in TOLL_FREE:
            yield PersonalText("PHONE", *one.span(), "".join(one.groups()))
    for pattern in (_LOCAL_PHONE, _ABROAD):
        for one in pattern.finditer(text):
            area = re.search(r"(\d{3})\)?[-. ]{0,3}$", text[max(0, one.start() - 8) : one.start()])
            if area is None or area[1] not in TOLL_FREE:
                yield _as_found("PHONE", text, *one.span())


def _bare(text: str, one: re.Match[str]) -> Iterator[PersonalText]:
    """A long number without any marks in it."""
    digits = one[0]
    is_date = re.fullmatch(r"20\d\d(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])", digits)
    if is_toll_free(digits) or is_date or text[: one.start()].rstrip().endswith("$"):
        return
    suffix = _HICN_SUFFIX.match(text, one.end()) if len(digits) == 9 else None
    if suffix and text[one.end() : one.end() + 1] == "-":
        yield _as_found("MEDICARE NUMBER", text, one.start(), suffix.end())
        return
    yield PersonalText(kind_of_digits(digits), *one.span(), digits)


def kind_of_digits(digits: str) -> RedactionKind:
    if len(digits) == 9:
        return "SSN"
    if len(digits) in (7, 10) or (len(digits) == 11 and digits[0] == "1"):
        return "PHONE"
    return "CARD" if 13 <= len(digits) <= 19 and _luhn(digits) else "NUMBER"


def _luhn(digits: str) -> bool:
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def _medicare_numbers(run: Sequence[CodePiece]) -> Iterator[PersonalText]:
    """Eleven characters in the order of a Medicare number, however they are cut."""
    place = 0
    while place < len(run):
        end, size = place, 0
        while end < len(run) and size < 11:
            size += len(run[end].chars)
            end += 1
        if size == 11 and _MBI.fullmatch(_as_mbi(chars_of(run[place:end]))):
            yield PersonalText("MEDICARE NUMBER", run[place].start, run[end - 1].end, _as_mbi(chars_of(run[place:end])))
            place = end
        else:
            place += 1


def _as_mbi(chars: str) -> str:
    """O read as zero where a digit must be, and zero as O where a letter must be."""
    fixed = [("0" if char == "O" else char) if place in _MBI_DIGITS else char for place, char in enumerate(chars)]
    return "".join(fixed)


def _recited(row: Sequence[CodePiece], text: str) -> Iterator[PersonalText]:
    """Seven or more digits said one by one, or in groups such as "six fifteen"."""
    digits = chars_of(row)
    if len(digits) < 7 or is_toll_free(digits) or len(row) == 1:
        return
    start, end = row[0].start, row[-1].end
    near = bool(PATTERNS["context"].search(text, max(0, start - _NEAR), start))
    spoken = any(piece.spoken for piece in row)
    singles = sum(len(piece.chars) for piece in row if piece.single)
    between = "".join(gaps(row, text))
    whole = len(digits) in (9, 10, 11) and len(row) <= 6 and (near or "," not in between)
    local = near and len(row) == 2 and len(digits) == 7 and "," not in between
    written = singles == len(digits) or whole or local or (near and len(digits) >= 12)
    if (singles >= 5 or near) if spoken else written:
        yield PersonalText(_kind_of_row(row, text), start, end, digits)


def _kind_of_row(row: Sequence[CodePiece], text: str) -> RedactionKind:
    digits = chars_of(row)
    if len(digits) == 9 and not _TIN_CONTEXT.search(text, max(0, row[0].start - _NEAR), row[0].start):
        size = 0
        for piece, gap in zip(row, gaps(row, text), strict=False):
            size += len(piece.chars)
            if size == 5 and re.search(r"(?i)-|dash|hyphen", gap):
                return "ZIP"
    return kind_of_digits(digits)


def _last_four(text: str) -> Iterator[PersonalText]:
    """`The last four of my social are 6789`, also spoken."""
    for pattern in (PATTERNS["last_four"], PATTERNS["ending_in"]):
        for one in pattern.finditer(text):
            run = next(iter(runs(text[one.end() : one.end() + 60])), [])
            row = next(digit_rows(run), [])
            count = next((count for count in range(1, len(row) + 1) if len(chars_of(row[:count])) >= 4), 0)
            if count and row[0].start == 0 and len(chars_of(row[:count])) == 4:
                kind: RedactionKind = "ID" if re.search(r"(?i)account|card", one[0]) else "SSN"
                yield PersonalText(kind, one.end(), one.end() + row[count - 1].end, chars_of(row[:count]))


def _as_found(kind: RedactionKind, text: str, start: int, end: int) -> PersonalText:
    value = "".join(char for char in text[start:end] if char.isalnum()).upper()
    return PersonalText(kind, start, end, value)
