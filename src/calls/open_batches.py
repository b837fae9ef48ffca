"""The batches of a run that have not ended, as its journal tells, and as they are while the run goes on."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

from ..adapters.base import BatchReply, KnownBatch, LostBatch
from ..records.model_name import split_name
from ..records.run import BatchCreated, BatchEnded, BatchIntent
from ..schemas import JournalNote
from ..text.count import counted


@dataclass(eq=False)
class OpenBatch:
    """A batch that was sent, or may have been."""

    intent: BatchIntent
    left: dict[str, str]
    """Calls that are not in the journal yet, by name, with their ids in the batch."""
    known: KnownBatch | None = None
    """None: we do not know whether the provider has it."""
    state: str = "sent"
    """As the provider calls it."""
    replies: dict[str, BatchReply] | None = None
    """By id in the batch, once it has ended."""
    reserved: dict[str, float] = field(default_factory=dict)
    """Money set aside, by call."""
    unknown_since: float = field(default_factory=time.monotonic)
    polled: bool = False

    @cached_property
    def hashes(self) -> dict[str, str]:
        """Of the requests, by call."""
        return {line.call: line.request_sha256 for line in self.intent.lines}

    @property
    def provider(self) -> str:
        return split_name(self.intent.model).provider

    def lost(self, others: Collection[str]) -> LostBatch:
        return LostBatch(
            intent=self.intent.intent,
            lines=len(self.intent.lines),
            since=datetime.fromisoformat(self.intent.started),
            others=others,
        )


def open_batches(notes: Iterable[JournalNote], unanswered: Collection[str]) -> list[OpenBatch]:
    """The batches that have not ended. `unanswered`: calls of batches that the journal has no record of."""
    found: dict[str, OpenBatch] = {}
    for note in notes:
        if isinstance(note, BatchIntent):
            left = {line.call: line.custom_id for line in note.lines if line.call in unanswered}
            found[note.intent] = OpenBatch(note, left)
        elif isinstance(note, BatchCreated):
            found[note.intent].known = KnownBatch(note.batch, note.ends)
        elif isinstance(note, BatchEnded):
            del found[note.intent]
    return list(found.values())


def still_open(batches: Iterable[OpenBatch]) -> str:
    """One sentence about what is still at providers; empty if nothing is."""
    waiting = [one for one in batches if one.left]
    if not waiting:
        return ""
    lines = counted(sum(len(one.left) for one in waiting), "call")
    where = " and ".join(sorted({one.provider for one in waiting}))
    first = min(one.intent.started for one in waiting)
    ends = [one.known.ends for one in waiting if one.known and one.known.ends]
    many = len(waiting) > 1
    last = f", and {'end' if many else 'ends'} by {_minute(max(ends))} at the latest" if ends else ""
    what = f"{counted(len(waiting), 'batch', 'batches')} with {lines}"
    return f"{what} {'are' if many else 'is'} at {where}, submitted at {_minute(first)}{last}."


def _minute(moment: str) -> str:
    try:
        return datetime.fromisoformat(moment).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    except ValueError:
        return moment
