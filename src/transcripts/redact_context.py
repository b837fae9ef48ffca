"""What is personal because of the words around it: dates of birth, member ids, driver's licenses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..records.transcript import RedactionKind
from .codes import CodePiece, chars_of, runs
from .redact_numbers import PersonalText, is_toll_free, kind_of_digits

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?)\.?"
)
_ONES = r"(?:one|two|three|four|five|six|seven|eight|nine)"
_TENS = r"(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)"
_TEENS = r"(?:ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen)"
_ORDINAL = (
    r"(?:(?:twenty|thirty)[- ](?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth)|first|second|third|fourth|"
    r"fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth|fourteenth|fifteenth|sixteenth|seventeenth|"
    r"eighteenth|nineteenth|twentieth|thirtieth)"
)
_DAY = (
    r"(?:(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?|"
    rf"{_ORDINAL}|(?:twenty|thirty)[- ]{_ONES}|{_TEENS}|twenty|thirty|{_ONES})"
)
_BIRTH_YEAR = (
    rf"(?:(?:19\d\d|200\d|201\d)|'\d\d|nineteen[ -](?:hundred(?: and)?|oh|o|{_TENS}|{_TEENS})?[ -]?{_ONES}?|"
    rf"two thousand(?: and)?(?: {_ONES}| {_TEENS})?|{_TENS}[- ]{_ONES}|{_TENS}|\d\d)"
)
_DATE = re.compile(
    rf"(?i)\b(?:{_MONTH}\s+(?:the\s+)?{_DAY}(?!\d)(?:(?:\s*,\s*|\s+)(?:of\s+|in\s+)?(?P<year1>{_BIRTH_YEAR}))?"
    rf"|(?:the\s+)?{_DAY}\s+(?:day\s+)?(?:of\s+)?{_MONTH}(?:(?:\s*,\s*|\s+)(?:of\s+|in\s+)?(?P<year2>{_BIRTH_YEAR}))?"
    rf"|{_MONTH}\s*,?\s*(?:of\s+)?(?P<year3>19\d\d|nineteen[ -]{_TENS}(?:[ -]{_ONES})?)"
    r"|\d{1,2}\s?[-/.]\s?\d{1,2}\s?[-/.]\s?(?P<year4>\d{4}|\d{2})|(?P<year5>19\d\d)[-/]\d{1,2}[-/]\d{1,2}|"
    r"\d{1,2}/\d{1,2})(?![\w/])"
)
_BIRTH = re.compile(
    r"(?i)\b(?:dates? of birth|birth ?dates?|birth ?days?|d\.?o\.?b\b\.?|was born|were born|is born|i'm born|born "
    r"on|born in|born)"
)
_IS_BIRTH = re.compile(
    r"(?i)^[\s,]*(?:is|was|that's|which is|being)\s+(?:my|his|her|the|their|your|when)\b[^.?!]{0,20}?\b(?:birth|"
    r"born|dob)"
)
_CONNECT = re.compile(
    r"(?i)(?:[\s,:;.?#!-]|\b(?:is|was|on|the|it's|its|it|are|that's|that|um|uh|sure|yes|yeah|okay|ok|and|would|be|"
    r"my|of|please|"
    r"in|here|so|for|me|your|listed|as|well|right|his|her|number|caller|i|am)\b)*"
)
_AND = re.compile(
    r"(?i)\s*[,;]?\s*(?:and|while|but)\s+(?:[a-z]+(?:'s)?\s+){0,4}?(?:(?:is|was|in|on|born)\s+){1,2}(?:on\s+|in\s+)?"
)
"""What joins a second date of birth to the first."""
_IF = re.compile(
    r"(?i)\b(?:if|when|suppose|say|anyone|someone|people|everyone|those|example|person|whose)\b[^.?!\n]{0,40}$"
)
_CODE_CONTEXT = re.compile(
    r"(?i)\b(?:(?P<license>(?:driver'?s?'? )?licen[sc]e|state id|passport)(?: (?:number|no\.?|id|#))?"
    r"|(?P<medicare>medicare (?:number|id|card number|card|claim number|beneficiary (?:number|identifier))|mbi|hicn|"
    r"beneficiary (?:number|identifier|id))"
    r"|(?:member(?:ship)?|policy|case|confirmation|group|subscriber|claim|account|acct\.?|routing|bank|checking|"
    r"savings|card|"
    r"credit card|debit card|medicaid|reference|ticket|record|medical record|customer|enrollee|enrollment|application|"
    r"certificate|contract holder|patient|insurance|prescription|rx|badge|employee|tracking|file|personal|client|order|"
    r"authorization|referral|social security|social|tax|taxpayer|identification|my|your|her|his|plan member|health "
    r"plan)"
    r"(?:'s)? (?:id|i\.d\.|ids|number|numbers|no\.?|num|code|#|identifier|identification)(?: number| code)?"
    r"|ssn|rxbin|rxpcn|rxgrp|mrn|npi|social security|my social|your social|pin|cvv|cvc|security code|code on the "
    r"back|routing|"
    r"checking account|"
    r"bank account|id number|identification number|confirmation)(?![\w])"
)
_CODE_CONNECT = re.compile(
    r"(?i)(?:'s\b)?(?:[\s,:;.?#!-]|\b(?:is|was|on|the|it's|its|it|are|that's|that|um|uh|sure|yes|yeah|okay|ok|would|"
    r"be|my|of|please|"
    r"here|so|for|you|me|your|ends?|ending|with|in|starts?|starting|begins?|reads?|says?|card|number|as|follows|and|"
    r"let|see|have|"
    r"caller|gave|got|given|received|they|again|go|ahead|oh|well|right|am|i|id|code|new|old|current|one moment|"
    r"hold)\b)*"
)
_LONG_CODE = re.compile(
    r"(?<![\w$.-])(?:(?=[A-Z0-9-]*[A-Z])(?=(?:[A-Z-]*\d){5})[A-Z0-9-]{8,}|\d{7,})(?![\w%])", re.IGNORECASE
)
"""Letters and at least five digits in one word, or seven digits: a code, wherever it is in a sentence that says so."""
_CARD_CODE = re.compile(
    r"(?i)(?:\d[ -]?){12,18}\d[^.?!\n]{0,60}?\b(?:code|cvv2?|cvc2?|cid|security)\b[^.?!\n\d]{0,20}"
    r"(?P<code>\d{3,4})(?!\w)"
)
"""The security code of a card whose number was said before it."""
_PLAN_ID = re.compile(r"[HRSE]\d{4}(?:\d{3}){0,2}")


def find_in_context(text: str) -> Iterator[PersonalText]:
    """Everything that the words around it make personal, in folded text."""
    yield from _births(text)
    yield from _codes(text)


def _found(kind: RedactionKind, text: str, start: int, end: int) -> PersonalText:
    return PersonalText(kind, start, end, "".join(char for char in text[start:end].lower() if char.isalnum()))


def _births(text: str) -> Iterator[PersonalText]:
    for context in _BIRTH.finditer(text):
        end = context.end()
        loose = re.match(r"(?s).{0,90}", text[end:])
        window = text[end : end + len(loose[0] if loose else "")]
        connected = len((_CONNECT.match(window) or [""])[0])
        date = _DATE.search(text, end, min(len(text), end + 150))
        if date and date.start() - end <= 90:
            direct = date.start() - end <= connected
            if _is_birth(text, context, date, direct):
                yield _found("DATE OF BIRTH", text, *date.span())
                yield from _second_birth(text, date.end())
                continue
        yield from _birth_digits(text, context, end + connected)
    for date in _DATE.finditer(text):
        if _IS_BIRTH.match(text[date.end() : date.end() + 60]):
            yield _found("DATE OF BIRTH", text, *date.span())


def _second_birth(text: str, end: int) -> Iterator[PersonalText]:
    """`Her birthday is ... and mine is ...`: a date with a year that is joined to a date of birth."""
    joined = _AND.match(text, end)
    date = _DATE.match(text, joined.end()) if joined else None
    if date and any(value for name, value in date.groupdict().items() if name.startswith("year")):
        yield _found("DATE OF BIRTH", text, *date.span())


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
    example = _IF.search(text[max(0, context.start() - 60) : context.start()])
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
        yield _found("DATE OF BIRTH", text, start + row[0].start, start + row[-1].end)


def _codes(text: str) -> Iterator[PersonalText]:
    """Codes behind the words that say what they are: `member ID is ...`, `case number ...`."""
    for context in _CODE_CONTEXT.finditer(text):
        connected = _CODE_CONNECT.match(text, context.end(), min(len(text), context.end() + 120))
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
    for card in _CARD_CODE.finditer(text):
        yield _found("ID", text, *card.span("code"))


def _long_code(text: str, end: int) -> Iterator[PersonalText]:
    """A code in the rest of the sentence, with other words before it."""
    rest = re.match(r"[^.?!\n]{0,60}", text[end:])
    found = _LONG_CODE.search(text, end, end + len(rest[0]) + 40) if rest else None
    if (
        found
        and found.start() <= end + len(rest[0] if rest else "")
        and not _PLAN_ID.fullmatch(found[0].replace("-", ""))
    ):
        yield _found("ID", text, *found.span())


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
