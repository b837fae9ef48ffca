"""Redacted utterances and their alignment to the turns of a conversation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import get_args

from ...records.transcript import (
    AddedFigure,
    Aside,
    Conversation,
    ConversationKind,
    RecordedTurn,
    Redaction,
    RedactionKind,
    Side,
    UnsureWords,
)
from ...text.spoken_numbers import spoken_amounts
from .align import Alignment, Correction, Match, align, corrected
from .read_file import ReadFile
from .redact import PersonalDetail, Redacted, RedactionRules, edited, redact
from .utterances import NO_SPEAKER, AskedScript, Utterance, as_one, joined, mean_confidence, speakers

UNSURE = 0.5
"""Confidence below which a word is marked."""
_PLACEHOLDER = re.compile(rf"\[({'|'.join(get_args(RedactionKind))}) \d+\]")


@dataclass(frozen=True)
class UtterancePlace:
    """Where an utterance went."""

    turn_id: str | None
    side: Side


@dataclass(frozen=True)
class Assembled:
    turns: tuple[RecordedTurn, ...]
    before: tuple[Aside, ...]
    places: Mapping[int, UtterancePlace]
    """Of each utterance, by its index."""


def assemble(alignment: Alignment, kind: ConversationKind) -> Assembled:
    """One record per scripted turn. What the other side says until the next scripted question is the reply."""
    starts = sorted(
        (alignment.calls[match.calls[0] - 1], match) for match in alignment.matches if match.calls
    )  # two matches never have the same utterance
    edges = [start for start, _ in starts] + [len(alignment.utterances)]
    places = {index: UtterancePlace(None, "before") for index in range(edges[0])}
    made: dict[str, RecordedTurn] = {}
    for number, (start, match) in enumerate(starts):
        indices = range(start, edges[number + 1])
        asked = {alignment.calls[call - 1] for call in match.calls}
        for index in indices:
            is_caller = alignment.utterances[index].speaker == alignment.caller
            side: Side = "question" if index in asked else "other" if is_caller else "reply"
            places[index] = UtterancePlace(match.turn_id, side)
        made[match.turn_id] = _turn(alignment, match, indices, places, kind)
    turns = tuple(
        made.get(match.turn_id)
        or RecordedTurn(turn_id=match.turn_id, outcome="not_asked", answered_early=match.asked_with)
        for match in alignment.matches
    )
    before = tuple(_aside(alignment, index) for index in range(edges[0]))
    return Assembled(turns, before, places)


def _aside(alignment: Alignment, index: int) -> Aside:
    said = alignment.utterances[index]
    return Aside(speaker="caller" if said.speaker == alignment.caller else "other", text=said.text)


def _turn(
    alignment: Alignment,
    match: Match,
    indices: Iterable[int],
    places: Mapping[int, UtterancePlace],
    kind: ConversationKind,
) -> RecordedTurn:
    sides: dict[Side, list[int]] = {}
    for index in indices:
        sides.setdefault(places[index].side, []).append(index)
    question = " ".join(alignment.utterances[index].text for index in sides["question"])
    other = tuple(_aside(alignment, index) for index in sides.get("other", ()))
    parts = [alignment.utterances[index] for index in sides.get("reply", ())]
    if not parts:
        return RecordedTurn(turn_id=match.turn_id, outcome="no_reply", question=question, other=other)
    reply = as_one(parts, "\n")
    confidence = mean_confidence(parts)
    figures = with_figures(reply) if kind == "phone" else WithFigures(reply, ())
    return RecordedTurn(
        turn_id=match.turn_id,
        outcome="answered",
        question=question,
        reply=figures.utterance.text,
        confidence=None if confidence is None else round(confidence, 4),
        words_with_low_confidence=tuple(
            UnsureWords(start=word.start, end=word.end, confidence=round(word.confidence, 4))
            for word in figures.utterance.words
            if word.confidence < UNSURE
        ),
        added_figures=figures.added,
        other=other,
    )


@dataclass(frozen=True)
class WithFigures:
    utterance: Utterance
    added: tuple[AddedFigure, ...]


def with_figures(reply: Utterance) -> WithFigures:
    """The figure behind every amount that is spoken in words: `two hundred dollars [$200]`."""
    edits, added, shift = [], [], 0
    for amount in spoken_amounts(reply.text):
        text = f" [{amount.figure}]"
        edits.append((amount.end, amount.end, text))
        start = amount.end + shift
        added.append(AddedFigure(start=start, end=start + len(text), figure=amount.figure))
        shift += len(text)
    return WithFigures(edited(reply, edits), tuple(added))


def find_redactions(turns: Sequence[RecordedTurn], before: Sequence[Aside]) -> tuple[Redaction, ...]:
    """Where placeholders are in the texts that are stored."""
    found: list[Redaction] = []
    for number, aside in enumerate(before):
        found += _in_text(aside.text, None, "before", number)
    for turn in turns:
        found += _in_text(turn.question or "", turn.turn_id, "question", 0)
        found += _in_text(turn.reply or "", turn.turn_id, "reply", 0)
        for number, aside in enumerate(turn.other):
            found += _in_text(aside.text, turn.turn_id, "other", number)
    return tuple(found)


def _in_text(text: str, turn_id: str | None, side: Side, part: int) -> Iterator[Redaction]:
    for one in _PLACEHOLDER.finditer(text):
        kind: RedactionKind = next(kind for kind in get_args(RedactionKind) if kind == one[1])
        yield Redaction(
            kind=kind, turn_id=turn_id, side=side, part=part, start=one.start(), end=one.end(), placeholder=one[0]
        )


# One file to one conversation: read, redact, align, assemble. Nothing is written here.


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    system: str = ""
    caller: str | None = None
    corrections: Mapping[str, Correction] = field(default_factory=dict)
    rules: RedactionRules = field(default_factory=RedactionRules)
    redacted_by: str = "rules"
    collected: date | None = None


@dataclass(frozen=True)
class ConversationDraft:
    """A conversation that is ready to be saved, and what a person confirms before."""

    conversation: Conversation
    alignment: Alignment
    findings: tuple[PersonalDetail, ...]
    kept: tuple[PersonalDetail, ...]
    """Findings that a person says are not personal."""
    places: dict[int, str]
    """Number of a finding to where it is: `Q2, reply`."""


def kind_of(read: ReadFile) -> ConversationKind:
    """Phone, unless it is a chat pasted from an app."""
    return "chat" if read.source.format == "chat" else "phone"


def draft(read: ReadFile, script: AskedScript, options: ImportOptions, kind: ConversationKind) -> ConversationDraft:
    """Make a conversation from a file that was read.

    Raises:
        InputError: it cannot be recognized who asks, or a correction does not fit.
    """
    messages = read.source.format == "chat"  # a message without a reply is not part of the next one
    found = redact(read.utterances if messages else joined(read.utterances), options.rules)
    alignment = align(found.utterances, script.turns, caller=options.caller, where=read.source.name)
    if options.corrections:
        alignment = corrected(alignment, options.corrections)
    made = assemble(alignment, kind)
    conversation = Conversation(
        conversation_id=f"c{read.source.sha256[:12]}",
        scenario_id=script.scenario_id,
        variant=script.variant,
        kind=kind,
        collected=options.collected,
        system=options.system,
        source=read.source.model_copy(update={"name": _safe_name(read.source.name, options.rules)}),
        before=made.before,
        turns=made.turns,
        redactions=find_redactions(made.turns, made.before),
        redacted_by=options.redacted_by,
        edited=bool(options.corrections or options.rules.keep or options.rules.also),
    )
    return ConversationDraft(conversation, alignment, found.findings, found.kept, _places(found, made, read))


def _places(found: Redacted, made: Assembled, read: ReadFile) -> dict[int, str]:
    by_script = speakers(read.utterances) == [NO_SPEAKER]
    places = {}
    for one in found.findings:
        place = None if by_script else made.places.get(one.pieces[0][0])
        turn = place.turn_id if place else None
        side = place.side if place else ""
        places[one.number] = f"{turn}, {side}" if turn else "before the first question" if place else "conversation"
    return places


def _safe_name(name: str, rules: RedactionRules) -> str:
    """The file's name, unless it names a person."""
    stem, dot, suffix = name.rpartition(".")
    plain = re.sub(r"[_.-]+", " ", stem if dot else name)
    if redact([Utterance(NO_SPEAKER, plain)], RedactionRules(names=rules.names)).findings:
        return f"(redacted).{suffix}" if dot else "(redacted)"
    return name
