"""One file to one conversation: read, redact, align, assemble. Nothing is written here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from ..records.transcript import Conversation, ConversationKind
from .align import Alignment, Correction, align, corrected
from .assemble import Assembled, assemble, find_redactions
from .read_file import ReadFile
from .redact import Finding, Redacted, RedactionRules, redact
from .utterances import NO_SPEAKER, Script, Utterance, joined, speakers


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    system: str = ""
    caller: str | None = None
    corrections: Mapping[str, Correction] = field(default_factory=dict)
    rules: RedactionRules = field(default_factory=RedactionRules)
    redacted_by: str = "rules"
    collected: date | None = None


@dataclass(frozen=True)
class Draft:
    """A conversation that is ready to be saved, and what a person confirms before."""

    conversation: Conversation
    alignment: Alignment
    findings: tuple[Finding, ...]
    kept: tuple[Finding, ...]
    """Findings that a person says are not personal."""
    places: dict[int, str]
    """Number of a finding to where it is: `Q2, reply`."""


def kind_of(read: ReadFile) -> ConversationKind:
    """Phone, unless it is a chat pasted from an app."""
    return "chat" if read.source.format == "chat" else "phone"


def draft(read: ReadFile, script: Script, options: ImportOptions, kind: ConversationKind) -> Draft:
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
    return Draft(conversation, alignment, found.findings, found.kept, _places(found, made, read))


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
