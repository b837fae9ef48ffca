"""Redaction: find what is personal in a whole conversation, and put placeholders for it, before anything is stored.

The utterances are read as one text, because people say a number in several breaths, with the other side's "okay" in
between. The same value gets the same placeholder everywhere. Original values live only in memory.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

from ..records.transcript import RedactionKind
from .codes import folded
from .redact_addresses import find_addresses
from .redact_context import find_in_context
from .redact_names import find_names
from .redact_numbers import PersonalText, find_numbers
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
