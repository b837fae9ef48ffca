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
from .codes import NUMBER_WORDS, PATTERNS, WORDS, folded
from .redact_context import find_in_context
from .redact_names import find_names
from .redact_numbers import PersonalText, find_numbers, personal_text
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
    found = [*find_numbers(plain), *find_addresses(plain), *find_in_context(plain), *find_names(plain, rules.names)]
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


def find_addresses(text: str) -> Iterator[PersonalText]:
    """Street addresses with a house number, post boxes and e-mail addresses, in folded text."""
    yield from _emails(text)
    yield from _streets(text)


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
