"""The batches of a run that have not ended, as its journal tells, and as they are while the run goes on."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Protocol

from ..adapters.base import (
    Batches,
    BatchReply,
    BatchRequest,
    CallFailure,
    KnownBatch,
    LostBatch,
    ModelReply,
    ModelRequest,
)
from ..adapters.registry import PROVIDERS, make_batches
from ..errors import IntegrityError
from ..records.model_name import split_name
from ..records.run import BatchCreated, BatchEnded, BatchIntent, BatchLine
from ..schemas import JournalNote
from ..store.failpoints import Failpoints
from ..text.count import counted
from .budget import PASSES_MAX_COST, RunBudget
from .resources import CallResources
from .stop import Stop


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


# Sends parked calls in batches: the intent into the journal, the batch to the provider, its id into the journal.


@dataclass(frozen=True)
class BatchAnswer:
    """What came back for a parked call."""

    result: ModelReply | CallFailure
    batch: str | None
    """None: the call could not be put into a batch."""
    started: str
    reserved: float = 0.0


@dataclass(frozen=True, eq=False)
class ParkedCall:
    """A call that waits for its batch."""

    name: str
    request: ModelRequest
    api: Batches
    size: int
    """Bytes of its line."""
    future: asyncio.Future[BatchAnswer]


class BatchSender:
    """Sends the batches of one run."""

    def __init__(self, open_batches: OpenBatches, stop: Stop, *, retry_s: float) -> None:
        """`retry_s`: seconds to wait after a provider said that this is too much, if it does not say how long."""
        self._open = open_batches
        self._stop = stop
        self._retry_s = retry_s
        self._not_before: dict[str, float] = {}
        """By provider, those that said that this is too much."""

    async def send(self, parked: Iterable[ParkedCall]) -> int:
        """Send the parked calls that are in no batch yet, in one batch per model; how many were sent."""
        by_model: dict[str, list[ParkedCall]] = {}
        now, waits = time.monotonic(), False
        for one in parked:
            if one.name in self._open.by_call:
                continue
            if now < self._not_before.get(split_name(one.request.model).provider, 0.0):
                waits = True
            else:
                by_model.setdefault(one.request.model, []).append(one)
        sent = 0
        for group in by_model.values():
            for chunk in _chunks(group):
                sent += await self._send(chunk)
                self._stop.check()
        budget = self._open.budget
        nothing_open = not self._open.batches and not (budget and budget.budget.reserved)
        if by_model and not waits and not sent and budget and nothing_open:
            self._stop.ask(PASSES_MAX_COST)
        return sent

    async def _send(self, chunk: Sequence[ParkedCall]) -> int:
        """Send one batch of the calls whose money can be set aside; how many those are."""
        amounts = {one.name: self._open.reserve(one.request) for one in chunk}
        reserved = {name: amount for name, amount in amounts.items() if amount is not None}
        chunk = [one for one in chunk if one.name in reserved]
        if not chunk:
            return 0
        intent = f"me-{secrets.token_hex(8)}"
        requests = [BatchRequest(f"{intent}-{number}", one.request) for number, one in enumerate(chunk)]
        lines = tuple(
            BatchLine(custom_id=line.custom_id, call=one.name, request_sha256=one.request.sha256())
            for line, one in zip(requests, chunk, strict=True)
        )
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        note = BatchIntent(intent=intent, model=chunk[0].request.model, lines=lines, started=started)
        batch = OpenBatch(note, {line.call: line.custom_id for line in lines}, reserved=reserved, polled=True)
        await self._open.intend(batch)
        try:
            known = await chunk[0].api.send(intent, requests)
        except CallFailure as failure:
            await self._not_sent(batch, failure)
        else:
            self._open.failpoints.hit("batch.after_post")
            await self._open.created(batch, known)
        return len(chunk)

    async def _not_sent(self, batch: OpenBatch, failure: CallFailure) -> None:
        """A refusal is certain. After anything else the provider may have the batch, and is asked for it."""
        batch.unknown_since = time.monotonic()
        if failure.status is None or failure.outcome not in ("permanent", "denied", "rate_limited"):
            return
        await self._open.drop(batch, f"refused: {failure.message}")
        if failure.outcome == "rate_limited":
            self._not_before[batch.provider] = time.monotonic() + (failure.retry_after_s or self._retry_s)
        else:
            self._open.refused(batch, failure)


def _chunks(parked: Sequence[ParkedCall]) -> Iterator[list[ParkedCall]]:
    """Calls to one model, divided so that each batch is within its provider's limits."""
    limits = parked[0].api.limits
    chunk: list[ParkedCall] = []
    total = 0
    for one in parked:
        if chunk and (len(chunk) == limits.requests or total + one.size > limits.size):
            yield chunk
            chunk, total = [], 0
        chunk.append(one)
        total += one.size
    if chunk:
        yield chunk
