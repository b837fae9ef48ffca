"""Recorded conversations: what counselors said on the phone, or what a chat app replied, turn by turn.

Text in these records is redacted. The original words of a redaction are nowhere.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from .base import Ident, Line, Record, Sha256, Unit, no_repeats
from .ids import scenario_name

ConversationKind = Literal["phone", "chat"]
SourceFormat = Literal["text", "csv", "whisper", "aws", "vtt", "srt", "docx", "chat", "collected"]
"""`collected`: no file; replies were pasted one by one with `collect`."""
RecordedOutcome = Literal["answered", "not_asked", "no_reply"]
"""`not_asked`: the scripted question was never put. `no_reply`: it was, and the other side said nothing."""
Side = Literal["question", "reply", "other", "before"]
RedactionKind = Literal[
    "MEDICARE NUMBER", "LICENSE", "ID", "SSN", "PHONE", "EMAIL", "ADDRESS", "ZIP", "DATE OF BIRTH", "CARD", "NAME",
    "NUMBER", "REDACTED",
]  # fmt: skip
"""`NUMBER`: a long number of unknown meaning. `REDACTED`: added by hand."""
Said = Annotated[str, StringConstraints(max_length=400_000)]
CONSENT = (
    "Whoever imported this conversation is responsible for the consent of the people in it and for the right to use it."
)


class SourceFile(Record):
    name: Line
    """Without its folder."""
    sha256: Sha256
    format: SourceFormat


class UnsureWords(Record):
    """Words of a reply that the speech recognizer was not sure of."""

    start: int = Field(ge=0)
    end: int = Field(gt=0)
    confidence: Unit


class AddedFigure(Record):
    """A figure in square brackets that code put behind an amount spoken in words. Cutting the span undoes it."""

    start: int = Field(ge=0)
    end: int = Field(gt=0)
    figure: Line


class Aside(Record):
    """Words that are neither a scripted question nor part of a reply."""

    speaker: Literal["caller", "other"]
    text: Said


class RecordedTurn(Record):
    turn_id: Ident
    outcome: RecordedOutcome
    question: Said | None = None
    """As it was asked."""
    reply: Said | None = None
    confidence: Unit | None = None
    """Mean confidence of the speech recognizer over the words of the reply; None if the source has none."""
    words_with_low_confidence: tuple[UnsureWords, ...] = ()
    added_figures: tuple[AddedFigure, ...] = ()
    answered_early: Ident | None = None
    """For a turn that was not asked: the turn whose reply answers it. The words stay there."""
    other: tuple[Aside, ...] = ()
    """What else the caller said between this question and the next one."""

    @model_validator(mode="after")
    def _fits_its_outcome(self) -> Self:
        if (self.outcome == "answered") != bool(self.reply):
            raise ValueError(f"turn {self.turn_id}: only a turn that was answered has a reply")
        if (self.outcome == "not_asked") != (self.question is None):
            raise ValueError(f"turn {self.turn_id}: only a turn that was not asked lacks a question")
        if self.answered_early and self.outcome != "not_asked":
            raise ValueError(f"turn {self.turn_id}: answered_early is for a turn that was not asked")
        return self


class Redaction(Record):
    kind: RedactionKind
    turn_id: Ident | None
    """None: before the first scripted question."""
    side: Side
    part: int = Field(0, ge=0)
    """Which text, where the side has several."""
    start: int = Field(ge=0)
    end: int = Field(gt=0)
    placeholder: Line


class Conversation(Record):
    """One conversation about one scenario, with one entry per scripted turn, in the order of the script."""

    format: Literal[1] = 1
    conversation_id: Ident
    scenario_id: Ident
    variant: Ident | None = None
    kind: ConversationKind
    collected: date | None = None
    """The day on which it took place, if known."""
    system: Line
    """What was spoken to, such as "SHIP counselors"; never a person's name."""
    source: SourceFile
    before: tuple[Aside, ...] = ()
    """What was said before the first scripted question."""
    turns: tuple[RecordedTurn, ...] = Field(min_length=1, max_length=100)
    redactions: tuple[Redaction, ...] = ()
    redacted_by: Line = "rules"
    """A pseudonym, or `rules` if no one looked at the redactions."""
    consent: Line = CONSENT
    edited: bool = False
    """Whether a person changed what code found: the alignment or the redactions."""

    @property
    def scenario_name(self) -> str:
        return scenario_name(self.scenario_id, self.variant)

    @property
    def file_name(self) -> str:
        return f"{self.scenario_name}.{self.conversation_id}.json"

    @model_validator(mode="after")
    def _has_each_turn_once(self) -> Self:
        no_repeats("turn_id", [turn.turn_id for turn in self.turns])
        return self


class Collection(Record):
    """What all conversations of a folder have in common."""

    format: Literal[1] = 1
    name: Line
    kind: ConversationKind
    system: Line
    created: date


class UnfinishedConversation(Record):
    """A conversation that is being collected: the turns so far, redacted. It is replaced after every reply."""

    format: Literal[1] = 1
    conversation_id: Ident
    scenario_id: Ident
    variant: Ident | None = None
    kind: ConversationKind
    system: Line
    started: date
    script_sha256: Sha256
    """Of the questions, so that a changed script is noticed."""
    turns: tuple[RecordedTurn, ...] = ()
    edited: bool = False
