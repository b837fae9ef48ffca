"""The batches of a run that have not ended, as its journal tells, and as they are while the run goes on."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Protocol

from ..adapters.base import Batches, BatchReply, CallFailure, KnownBatch, LostBatch, ModelRequest
from ..adapters.registry import PROVIDERS, make_batches
from ..errors import IntegrityError
from ..records.model_name import split_name
from ..records.run import BatchCreated, BatchEnded, BatchIntent
from ..schemas import JournalNote
from ..store.failpoints import Failpoints
from ..text.count import counted
from .budget import RunBudget
from .resources import CallResources


class NoteJournal(Protocol):
    notes: list[JournalNote]
    unanswered: set[str]

    async def append(self, record: JournalNote) -> None: ...


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


class OpenBatches:
    """All open batches of a run. What happens to them is noted in its journal. For one event loop."""

    def __init__(self, journal: NoteJournal, resources: CallResources) -> None:
        self._journal = journal
        self._adapter_for = resources.adapter_for
        self._stop = resources.stop
        self.budget = resources.budget if isinstance(resources.budget, RunBudget) else None
        self.failpoints = Failpoints.from_environment()
        self.batches = _from_journal(journal.notes, journal.unanswered)
        self.by_call = {call: one for one in self.batches for call in one.left}
        self._apis: dict[str, Batches | None] = {}

    def api(self, model: str) -> Batches | None:
        provider = split_name(model).provider
        if provider not in self._apis:
            self._apis[provider] = make_batches(provider, self._adapter_for(provider))
        return self._apis[provider]

    def reserve(self, request: ModelRequest) -> float | None:
        """Set money aside for a call; None: it could pass the limit."""
        return self.budget.reserve_in_batch(request) if self.budget else 0.0

    async def intend(self, batch: OpenBatch) -> None:
        """A batch is about to be sent."""
        self.failpoints.hit("batch.before_intent")
        await self._journal.append(batch.intent)
        self.failpoints.hit("batch.after_intent")
        self.batches.append(batch)
        self.by_call |= dict.fromkeys(batch.left, batch)

    async def created(self, batch: OpenBatch, known: KnownBatch) -> None:
        """The provider has it."""
        await self._journal.append(BatchCreated(intent=batch.intent.intent, batch=known.batch, ends=known.ends))
        self.failpoints.hit("batch.after_created")
        batch.known = known

    async def journaled(self, name: str) -> None:
        """The answer to this call is in the journal."""
        batch = self.by_call.pop(name, None)
        if batch is None:
            return
        del batch.left[name]
        self.failpoints.hit("batch.after_line")
        if not batch.left:
            self.failpoints.hit("batch.before_ended")
            await self.end(batch, batch.state)

    async def drop(self, batch: OpenBatch, why: str) -> None:
        """The provider does not have it: its calls are free for another one."""
        for name in batch.left:
            del self.by_call[name]
        for amount in batch.reserved.values():
            if self.budget:
                self.budget.drop(amount)
        await self.end(batch, why)

    async def end(self, batch: OpenBatch, state: str) -> None:
        self.batches.remove(batch)
        known = batch.known.batch if batch.known else None
        await self._journal.append(BatchEnded(intent=batch.intent.intent, batch=known, state=state))

    def refused(self, batch: OpenBatch, failure: CallFailure) -> None:
        """The provider will not take a request about a batch, however often it is made: stop the run."""
        row = PROVIDERS.get(batch.provider)
        key = f" The key is in {row.key_variable}." if failure.outcome == "denied" and row and row.key_variable else ""
        self._stop.ask(
            f"{batch.provider} refused a request about a batch ({failure.message}).{key} Correct that, or resume with "
            "`batch` set to none: judges are then called one by one, at the full price."
        )

    def still_open(self) -> str:
        """One sentence about what is still at providers; empty if nothing is."""
        waiting = [one for one in self.batches if one.left]
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


def _from_journal(notes: Iterable[JournalNote], unanswered: Collection[str]) -> list[OpenBatch]:
    """`unanswered`: calls of batches that the journal has no record of."""
    found: dict[str, OpenBatch] = {}
    for note in notes:
        if isinstance(note, BatchIntent):
            left = {line.call: line.custom_id for line in note.lines if line.call in unanswered}
            found[note.intent] = OpenBatch(note, left)
        elif isinstance(note, (BatchCreated, BatchEnded)) and note.intent not in found:
            raise IntegrityError(f"The journal speaks of a batch {note.intent} that it says nothing else about.")
        elif isinstance(note, BatchCreated):
            found[note.intent].known = KnownBatch(note.batch, note.ends)
        elif isinstance(note, BatchEnded):
            del found[note.intent]
    return list(found.values())


def _minute(moment: str) -> str:
    try:
        return datetime.fromisoformat(moment).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    except ValueError:
        return moment
