"""Redaction: find what is personal in a whole conversation, and put placeholders for it, before anything is stored.

The utterances are read as one text, because people say a number in several breaths, with the other side's "okay" in
between. The same value gets the same placeholder everywhere. Original values live only in memory.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

from ...records.transcript import RedactionKind
from .codes import NUMBER_WORDS, PATTERNS, WORDS, CodePiece, chars_of, folded, runs
from .redact_names import find_names
from .redact_numbers import PersonalText, find_numbers, is_toll_free, kind_of_digits, personal_text
from .utterances import Utterance, WordConfidence

KINDS: tuple[RedactionKind, ...] = get_args(RedactionKind)
"""In the order of precedence: of two findings that overlap, the longer one gives its kind, then the earlier one."""
_PLACEHOLDER = re.compile(rf"\[(?:{'|'.join(KINDS)}) \d+\]")
_BREATH = re.compile(
    r"(?i)[\s.,?!-]*(?:(?:okay|ok|yes|yeah|mm|hmm|mhm|uh|huh|um|right|got it|go ahead|sure|great)[\s.,?!-]*)*"
)


@dataclass(frozen=True)
class PersonalDetail:
    """Something personal, for a person to confirm. The value is never printed or stored."""

    number: int
    """From 1, by which a person can keep it."""
    kind: RedactionKind
    placeholder: str
    pieces: tuple[tuple[int, int, int], ...]
    """Utterance index, start and end."""
    hint: str
    """Its first character and its length."""


@dataclass(frozen=True)
class Redacted:
    utterances: tuple[Utterance, ...]
    findings: tuple[PersonalDetail, ...]
    kept: tuple[PersonalDetail, ...] = ()


@dataclass(frozen=True)
class RedactionRules:
    """What a person adds to the rules."""

    names: Sequence[str] = ()
    keep: Sequence[int] = ()
    """Numbers of findings that are not personal."""
    also: Sequence[str] = ()
    """Texts to redact as well."""
    fictional: Sequence[str] = ()
    """Texts about invented people: the persona and the script. What they say is not personal."""
    taken: Mapping[str, int] = field(default_factory=dict)
    """How many placeholders of each kind are already in use."""


def redact(utterances: Sequence[Utterance], rules: RedactionRules | None = None) -> Redacted:
    """The utterances with placeholders for what is personal.

    Example:
        >>> said = [Utterance("Caller", "Call me at 615-555-0142. Is it still $202.90?")]
        >>> redact(said).utterances[0].text
        'Call me at [PHONE 1]. Is it still $202.90?'
    """
    rules = rules or RedactionRules()
    text = "\n".join(one.text for one in utterances)
    starts = _starts(utterances)
    found = find_personal(text, rules)
    # What a person adds is numbered behind what the rules find, so that numbers that were shown stay the same.
    added = _added(text, rules, [one for number, one in enumerate(found, 1) if number not in rules.keep])
    findings = _numbered([*found, *added], text, starts, utterances, rules)
    used = [one for one in findings if one.number not in rules.keep and one.pieces]
    kept = tuple(one for one in findings if one.number in rules.keep)
    edits: dict[int, list[tuple[int, int, str]]] = {}
    for one in used:
        for index, start, end in one.pieces:
            edits.setdefault(index, []).append((start, end, one.placeholder))
    redacted = tuple(edited(one, edits.get(index, ())) for index, one in enumerate(utterances))
    return Redacted(redacted, tuple(used), kept)


def find_personal(text: str, rules: RedactionRules) -> list[PersonalText]:
    """What is personal in a text, without overlaps, in order."""
    plain = folded(text)
    found = [*find_numbers(plain), *_emails(plain), *_streets(plain), *_births(plain), *_codes(plain)]
    found += find_names(plain, rules.names)
    known = [re.findall(r"\w+", folded(one).lower()) for one in rules.fictional]
    found = [one for one in found if not _is_fictional(one, plain, known)]
    old = {place for one in _PLACEHOLDER.finditer(plain) for place in range(*one.span())}
    return _merged(one for one in found if one.start not in old or one.end - 1 not in old)


def _added(text: str, rules: RedactionRules, others: Sequence[PersonalText]) -> list[PersonalText]:
    """Where the texts are that a person adds, without what is redacted anyway."""
    plain = folded(text)
    taken = [(one.start, one.end) for one in others]
    added: list[PersonalText] = []
    for wanted in filter(str.strip, rules.also):
        pattern = r"\s+".join(re.escape(part) for part in folded(wanted).split())
        for one in re.finditer(f"(?i){pattern}", plain):
            start = one.start()
            for begin, end in sorted(span for span in taken if span[0] < one.end() and one.start() < span[1]):
                if start < begin:
                    added.append(PersonalText("REDACTED", start, begin, one[0].lower()))
                start = max(start, end)
            if start < one.end():
                added.append(PersonalText("REDACTED", start, one.end(), one[0].lower()))
            taken.append(one.span())
    return added


def _is_fictional(one: PersonalText, text: str, known: Sequence[Sequence[str]]) -> bool:
    """Whether an invented person's data say the same: a name by its words, anything else as a whole."""
    said = re.findall(r"\w+", text[one.start : one.end].lower().replace("'s", ""))
    if not said:
        return False
    whole = f" {' '.join(said)} "
    return any((one.kind == "NAME" and set(said) <= set(words)) or whole in f" {' '.join(words)} " for words in known)


def _merged(found: Iterable[PersonalText]) -> list[PersonalText]:
    """Overlapping findings as one, so that no part of a value is left over."""
    merged: list[PersonalText] = []
    for one in sorted(found, key=lambda one: (one.start, -one.end)):
        last = merged[-1] if merged else None
        if last is None or one.start >= last.end:
            merged.append(one)
            continue
        first = min((last, one), key=lambda item: (item.start - item.end, KINDS.index(item.kind)))
        merged[-1] = replace(first, start=last.start, end=max(last.end, one.end))
    return merged


def _starts(utterances: Sequence[Utterance]) -> list[int]:
    """Where each utterance begins in the text of all."""
    starts, at = [], 0
    for one in utterances:
        starts.append(at)
        at += len(one.text) + 1
    return starts


def _numbered(
    found: Sequence[PersonalText],
    text: str,
    starts: Sequence[int],
    utterances: Sequence[Utterance],
    rules: RedactionRules,
) -> list[PersonalDetail]:
    names: dict[tuple[RedactionKind, str], str] = {}
    counts = dict(rules.taken)
    findings = []
    for number, one in enumerate(found, 1):
        key = (one.kind, one.value)
        if key not in names:
            counts[one.kind] = counts.get(one.kind, 0) + 1
            names[key] = f"[{one.kind} {counts[one.kind]}]"
        said = text[one.start : one.end]
        hint = f"{said[:1]}… ({len(said)} characters)"
        findings.append(PersonalDetail(number, one.kind, names[key], _pieces(one, starts, utterances), hint))
    return findings


def _pieces(
    one: PersonalText, starts: Sequence[int], utterances: Sequence[Utterance]
) -> tuple[tuple[int, int, int], ...]:
    """The parts of a finding in each utterance, without those that only say "okay"."""
    pieces = []
    index = bisect_right(starts, one.start) - 1
    while index < len(starts) and starts[index] < one.end:
        start = max(one.start - starts[index], 0)
        end = min(one.end - starts[index], len(utterances[index].text))
        said = utterances[index].text[start:end]
        if said.strip() and not _BREATH.fullmatch(said):
            pieces.append((index, start, end))
        index += 1
    return tuple(pieces)


def edited(one: Utterance, edits: Sequence[tuple[int, int, str]]) -> Utterance:
    """An utterance with parts replaced. Words with a confidence move; those that were replaced are dropped."""
    if not edits:
        return one
    text, at, moves = "", 0, list[tuple[int, int, int]]()
    for start, end, new in sorted(edits):
        text += one.text[at:start] + new
        moves.append((start, end, len(new) - (end - start)))
        at = end
    words = []
    for word in one.words:
        if any(start < word.end and word.start < end for start, end, _ in moves):
            continue
        shift = sum(size for _, end, size in moves if end <= word.start)
        words.append(WordConfidence(word.start + shift, word.end + shift, word.confidence))
    return replace(one, text=text + one.text[at:], words=tuple(words))


# Street addresses and e-mail addresses, written and spoken. Places such as a county, and websites, stay.

_EMAIL = re.compile(r"[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}")
_MAIL = re.compile(r"(?i)\be-?mails?\b|\be mail\b")
_NOT_LOCAL = WORDS["not_local"]
_LOCAL_MARKS = WORDS["local_marks"]
_ADDRESSES = (PATTERNS["address_to_first_end"], PATTERNS["address_to_last_end"])
_OFFICIAL = re.compile(r"(?i)medicare premium|collection center|cms\b|social security admin|department of")
_DIRECTIONS = WORDS["directions"]


def _emails(text: str) -> Iterator[PersonalText]:
    for one in _EMAIL.finditer(text):
        yield personal_text("EMAIL", text, *one.span())
    for at in PATTERNS["spoken_at"].finditer(text):
        start = _local_part(text, at)
        if start is not None:
            yield personal_text("EMAIL", text, start, at.end())


def _local_part(text: str, at: re.Match[str]) -> int | None:
    """Where a spoken e-mail address begins; None if "at" is followed by a website: "look at medicare dot gov"."""
    before = text[max(0, at.start() - 160) : at.start()]
    offset = at.start() - len(before)
    words = list(re.finditer(r"[\w'-]+|[.?!\n]", before))
    mail = list(_MAIL.finditer(before))
    host = at["domain"].split()[0].lower()
    known = host in WORDS["mail_hosts"]
    if mail:
        first = mail[-1].end()
        lead = re.compile(
            r"(?i)(?:[\s,:;?.-]|\b(?:address|is|it's|its|that|that's|would|be|um|uh|my|me|the|and|sure|yes|at|to|us|"
            r"them|him|her)\b)*"
        )
        match = lead.match(before, first)
        begin = match.end() if match else first
        local = before[begin:].strip()
        if local and len(local) <= 60 and not re.search(r"[|?!\n]", local):
            return offset + begin
    start, expect_mark = None, False
    for word in reversed(words):
        said = word[0].lower()
        is_mark = said in _LOCAL_MARKS
        is_piece = len(said) == 1 or said in NUMBER_WORDS or said.isdigit()
        if expect_mark and not is_mark and not is_piece:
            break
        if not re.match(r"\w", said) or said in _NOT_LOCAL:
            break
        start = word.start()
        expect_mark = not is_mark and not is_piece
        if is_mark:
            known = True
    return offset + start if known and start is not None else None


def _streets(text: str) -> Iterator[PersonalText]:
    for pattern in _ADDRESSES:
        for one in pattern.finditer(text):
            if _is_street(text, one):
                yield personal_text("ADDRESS", text, *one.span())
    for one in PATTERNS["numbered_road"].finditer(text):
        yield personal_text("ADDRESS", text, *one.span())
    for one in PATTERNS["po_box"].finditer(text):
        if not _OFFICIAL.search(text, max(0, one.start() - 100), min(len(text), one.end() + 60)):
            yield personal_text("ADDRESS", text, *one.span())


def _is_street(text: str, one: re.Match[str]) -> bool:
    names = [word.strip(".").lower() for word in one["name"].split()]
    if any(name in WORDS["no_street"] and name not in _DIRECTIONS for name in names):
        return False
    spelled_out = not re.match(r"\d", one["house"])
    suffix = one["suffix"]
    lower = one["name"].islower() and suffix.islower()
    if re.search(
        r"(?i)[$%]\s?$|\b(?:part|plan|section|age|ages|title)\s$", text[max(0, one.start() - 9) : one.start()]
    ):
        return False
    return suffix.lower() in WORDS["street_kinds"] if lower or spelled_out else True


# What is personal because of the words around it: dates of birth, member ids, driver's licenses.

_PLAN_ID = re.compile(r"[HRSE]\d{4}(?:\d{3}){0,2}")


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
        for begin in _code_starts(text, context.end(), start):
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


def _code_starts(text: str, context_end: int, connected_end: int) -> list[int]:
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
