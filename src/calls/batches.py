"""Calls that are sent together, in batches, at a lower price: parked, submitted, waited for, and handed back.

A call parks here instead of being made. When nothing else of the run can go on, all parked calls are submitted, in one
batch per model. The journal gets the intent before a batch is sent and the provider's id after that, so a process that
is killed at any moment finds its batches again: a call in an open batch waits for it, and no call is sent twice.
What comes back is handed to the gateway, which records it like the reply to any other call.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from ..adapters.base import (
    Adapter,
    Batches,
    BatchReply,
    BatchRequest,
    CallFailure,
    KnownBatch,
    ModelReply,
    ModelRequest,
)
from ..adapters.registry import PROVIDERS, make_batches
from ..errors import IntegrityError
from ..records.model_name import split_name
from ..records.run import BatchCreated, BatchEnded, BatchIntent, BatchLine
from ..schemas import JournalNote, Stage
from ..store.failpoints import Failpoints
from .open_batches import OpenBatch, open_batches, still_open
from .stop import Stop, Stopping

NEVER_BATCHED: frozenset[Stage] = frozenset({"target", "questioner", "probe"})
"""A conversation would take as many batches as it has turns."""
TIMING_VARIABLE = "MEDICARE_EVAL_BATCH_TIMING"
"""For tests: the four numbers of `BatchTiming`, with commas between them."""
LINE_OVERHEAD = 200
"""Bytes of a line around its body, generously."""


@dataclass(frozen=True)
class BatchTiming:
    """Seconds."""

    quiet: float = 0.5
    """Parked calls are submitted when nothing has happened for so long."""
    first_poll: float = 5.0
    last_poll: float = 60.0
    """Polls begin at the first interval and grow to this one."""
    settle: float = 60.0
    """A batch that the provider does not list so long after we lost its answer was not accepted."""

    @classmethod
    def from_environment(cls) -> BatchTiming:
        given = os.environ.get(TIMING_VARIABLE)
        return cls(*map(float, given.split(","))) if given else cls()


class NoteJournal(Protocol):
    notes: list[JournalNote]
    unanswered: set[str]

    async def append(self, record: JournalNote) -> None: ...


class BatchBudget(Protocol):
    @property
    def has_reserved(self) -> bool: ...

    def reserve_in_batch(self, request: ModelRequest) -> float | None: ...

    def drop(self, reserved: float) -> None: ...


@dataclass(frozen=True)
class BatchAnswer:
    """What came back for a parked call."""

    result: ModelReply | CallFailure
    batch: str | None
    """None: the call could not be put into a batch."""
    started: str
    reserved: float = 0.0


@dataclass(eq=False)
class _Parked:
    name: str
    request: ModelRequest
    size: int
    future: asyncio.Future[BatchAnswer]


class Batcher:
    """For one run and one event loop."""

    def __init__(
        self,
        journal: NoteJournal,
        adapter_for: Callable[[str], Adapter],
        stop: Stop,
        *,
        budget: BatchBudget | None = None,
        longest_wait_s: float | None = None,
        max_outage_s: float = float("inf"),
        on_wait: Callable[[str], None] = lambda said: None,
        timing: BatchTiming | None = None,
        failpoints: Failpoints | None = None,
    ) -> None:
        """`longest_wait_s`: stop the run after so many seconds in which it only waited. None: wait until all end.
        `max_outage_s`: stop it if no question about a batch was answered for so long."""
        self._journal = journal
        self._adapter_for = adapter_for
        self._stop = stop
        self._budget = budget
        self._longest_wait_s = longest_wait_s
        self._max_outage_s = max_outage_s
        self._failing_since: float | None = None
        self._on_wait = on_wait
        self._timing = timing or BatchTiming.from_environment()
        self._failpoints = failpoints or Failpoints(None)
        self._open = open_batches(journal.notes, journal.unanswered)
        self._lines = {call: one for one in self._open for call in one.left}
        self._parked: dict[str, _Parked] = {}
        self._apis: dict[str, Batches | None] = {}
        self._told: set[str] = set()
        self._busy = 0
        self._changes = 0
        self._waited_s = 0.0
        self._poll_every = self._timing.first_poll
        self._poll_at = 0.0
        self._not_before = 0.0
        self._task: asyncio.Task[None] | None = None

    def takes(self, stage: Stage, model: str) -> bool:
        """Whether calls of this stage to this model go into batches."""
        if stage in NEVER_BATCHED:
            return False
        if self._api(model) is None and (provider := split_name(model).provider) not in self._told:
            self._told.add(provider)
            self._on_wait(f"{provider} has no batch API here, so its calls are made one by one.")
        return self._api(model) is not None

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Around a call in the gateway: nothing is sent in a batch while one is being made."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    async def answer(self, name: str, request: ModelRequest) -> BatchAnswer:
        """Park a call, by its name with its attempt, until its batch is back."""
        self._stop.check()
        api, now = self._api(request.model), _now()
        assert api is not None
        try:
            size = len(api.body(request)) + LINE_OVERHEAD
        except CallFailure as failure:
            return BatchAnswer(failure, None, now)
        sent = self._lines.get(name)
        if sent is not None:
            if sent.hashes[name] != request.sha256():
                raise IntegrityError(
                    f"The batch {sent.intent.intent} has another request for {name} than this plan makes."
                )
            sent.reserved.setdefault(name, self._reserve(request) or 0.0)
        parked = _Parked(name, request, size, asyncio.get_running_loop().create_future())
        self._parked[name] = parked
        self._count(-1)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        try:
            return await parked.future
        finally:
            self._count(1)

    async def journaled(self, name: str) -> None:
        """The answer to this call is in the journal."""
        one = self._lines.pop(name, None)
        if one is None:
            return
        del one.left[name]
        self._failpoints.hit("batch.after_line")
        if not one.left:
            self._failpoints.hit("batch.before_ended")
            await self._end(one, one.state)

    def still_open(self) -> str:
        """One sentence about what is still at providers; empty if nothing is."""
        return still_open(self._open)

    async def aclose(self) -> None:
        if self._task:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def _api(self, model: str) -> Batches | None:
        provider = split_name(model).provider
        if provider not in self._apis:
            self._apis[provider] = make_batches(provider, self._adapter_for(provider))
        return self._apis[provider]

    def _count(self, change: int) -> None:
        self._busy += change
        self._changes += 1

    async def _work(self) -> None:
        """Submit and poll while a call is parked."""
        try:
            for read in [one for one in self._open if one.known and not one.left]:  # killed before that was noted
                await self._end(read, read.state)
            while self._parked:
                self._stop.check()
                before, at = self._changes, time.monotonic()
                await self._pause(self._timing.quiet)
                self._stop.check()
                idle = self._busy == 0 and self._changes == before
                if idle:
                    await self._submit()
                if self._open and time.monotonic() >= self._poll_at:
                    await self._poll()
                if not self._hand_back() and idle and self._busy == 0:
                    self._has_waited(time.monotonic() - at)
        except BaseException as error:
            if not isinstance(error, Stopping):
                self._stop.ask()  # a fault of ours, or a full disk: nothing else may go on
            self._reject(error)
            if not isinstance(error, Exception):
                raise

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stop.event.wait()

    def _reject(self, error: BaseException) -> None:
        failure = error if isinstance(error, Exception) else Stopping(self._stop.reason)
        for parked in self._parked.values():
            if not parked.future.done():
                parked.future.set_exception(failure)
        self._parked.clear()

    def _has_waited(self, seconds: float) -> None:
        """Nothing else of the run can go on: say so, and stop if that takes longer than the user will wait."""
        self._on_wait(self.still_open())
        self._waited_s += seconds
        seen = all(one.polled for one in self._open)
        if self._open and seen and self._longest_wait_s is not None and self._waited_s >= self._longest_wait_s:
            self._stop.ask("The run has waited for batches as long as `batch_wait` allows.")

    # Submitting

    async def _submit(self) -> None:
        unsent = [one for name, one in self._parked.items() if name not in self._lines]
        if not unsent or time.monotonic() < self._not_before:
            return
        by_model: dict[str, list[_Parked]] = {}
        for one in unsent:
            by_model.setdefault(one.request.model, []).append(one)
        sent = 0
        for model, group in by_model.items():
            api = self._api(model)
            assert api is not None
            for chunk in _chunks(group, api.limits.requests, api.limits.size):
                sent += await self._send(api, model, chunk)
                self._stop.check()
        if not sent and not self._open and self._budget and not self._budget.has_reserved:
            self._stop.ask("The next call could pass `max_cost`.")

    async def _send(self, api: Batches, model: str, chunk: list[_Parked]) -> int:
        """Send one batch of the calls whose money can be set aside; how many those are."""
        reserved = {one.name: self._reserve(one.request) for one in chunk}
        chunk = [one for one in chunk if reserved[one.name] is not None]
        if not chunk:
            return 0
        intent = f"me-{secrets.token_hex(8)}"
        requests = [BatchRequest(f"{intent}-{number}", one.request) for number, one in enumerate(chunk)]
        lines = tuple(
            BatchLine(custom_id=line.custom_id, call=one.name, request_sha256=one.request.sha256())
            for line, one in zip(requests, chunk, strict=True)
        )
        note = BatchIntent(intent=intent, model=model, lines=lines, started=_now())
        self._failpoints.hit("batch.before_intent")
        await self._journal.append(note)
        self._failpoints.hit("batch.after_intent")
        batch = OpenBatch(note, {line.call: line.custom_id for line in lines}, polled=True)
        batch.reserved = {name: amount for name, amount in reserved.items() if amount is not None}
        self._open.append(batch)
        self._lines |= dict.fromkeys(batch.left, batch)
        try:
            known = await api.send(intent, requests)
        except CallFailure as failure:
            await self._not_sent(batch, failure)
            return len(chunk)
        self._failpoints.hit("batch.after_post")
        await self._attach(batch, known)
        return len(chunk)

    def _reserve(self, request: ModelRequest) -> float | None:
        return self._budget.reserve_in_batch(request) if self._budget else 0.0

    async def _attach(self, batch: OpenBatch, known: KnownBatch) -> None:
        await self._journal.append(BatchCreated(intent=batch.intent.intent, batch=known.batch, ends=known.ends))
        self._failpoints.hit("batch.after_created")
        batch.known = known
        self._poll_soon()

    async def _not_sent(self, batch: OpenBatch, failure: CallFailure) -> None:
        """A refusal is certain. After anything else the provider may have the batch, and is asked for it."""
        refused = failure.status is not None and failure.outcome in ("permanent", "denied", "rate_limited")
        batch.unknown_since = time.monotonic()
        self._poll_soon()
        if not refused:
            return
        await self._drop(batch, f"refused: {failure.message}")
        if failure.outcome == "rate_limited":
            self._not_before = time.monotonic() + (failure.retry_after_s or self._timing.last_poll)
        else:
            self._refused(batch, failure)

    async def _drop(self, batch: OpenBatch, why: str) -> None:
        """A batch that the provider does not have: its calls are free for another one."""
        for name in batch.left:
            del self._lines[name]
        for amount in batch.reserved.values():
            if self._budget:
                self._budget.drop(amount)
        await self._end(batch, why)

    async def _end(self, batch: OpenBatch, state: str) -> None:
        self._open.remove(batch)
        known = batch.known.batch if batch.known else None
        await self._journal.append(BatchEnded(intent=batch.intent.intent, batch=known, state=state))

    def _refused(self, batch: OpenBatch, failure: CallFailure) -> None:
        row = PROVIDERS.get(batch.provider)
        key = f" The key is in {row.key_variable}." if failure.outcome == "denied" and row and row.key_variable else ""
        self._stop.ask(
            f"{batch.provider} refused a request about a batch ({failure.message}).{key} Correct that, or resume with "
            "`batch` set to none: judges are then called one by one, at the full price."
        )

    # Waiting

    def _poll_soon(self) -> None:
        self._poll_every = self._timing.first_poll
        self._poll_at = time.monotonic() + self._poll_every

    async def _poll(self) -> None:
        self._failpoints.hit("batch.polling")
        for batch in [one for one in self._open if one.replies is None]:
            api = self._api(batch.intent.model)
            if api is None:
                raise IntegrityError(f"{batch.provider} had a batch of this run, and has no batch API here.")
            try:
                await (self._look_for(batch, api) if batch.known is None else self._ask_for(batch, batch.known, api))
                self._failing_since = None
            except CallFailure as failure:
                self._not_told(batch, failure)
            batch.polled = True
            self._stop.check()
        self._poll_every = min(self._timing.last_poll, 1.5 * self._poll_every)
        self._poll_at = time.monotonic() + self._poll_every

    def _not_told(self, batch: OpenBatch, failure: CallFailure) -> None:
        """A question about a batch was not answered. The batch goes on meanwhile, so only a long outage matters."""
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        if failure.outcome in ("permanent", "denied"):
            self._refused(batch, failure)
        elif now - self._failing_since > self._max_outage_s:
            self._stop.ask(
                f"{batch.provider} does not answer questions about its batches. It last said: {failure.message}."
            )
        else:
            self._on_wait(f"{batch.provider} did not say how its batch is ({failure.message}); asking again.")

    async def _look_for(self, batch: OpenBatch, api: Batches) -> None:
        """Did the provider get a batch whose answer we did not see?"""
        found = await api.find(batch.lost({one.known.batch for one in self._open if one.known}))
        if found.known is not None:
            await self._attach(batch, found.known)
        elif not found.undecided and time.monotonic() - batch.unknown_since >= self._timing.settle:
            await self._drop(batch, "never accepted")

    async def _ask_for(self, batch: OpenBatch, known: KnownBatch, api: Batches) -> None:
        state = await api.state(known.batch, len(batch.intent.lines))
        batch.state = state.name
        if not state.ended:
            return
        if state.failed is not None:
            await self._drop(batch, f"{state.name}: {state.failed}")
            self._stop.ask(f"{batch.provider} could not process the batch {known.batch}: {state.failed}")
            return
        replies = await api.results(known.batch, [line.custom_id for line in batch.intent.lines])
        batch.replies = {one.custom_id: one for one in replies}
        if not batch.left:
            await self._end(batch, batch.state)

    def _hand_back(self) -> int:
        """Answer the parked calls whose batches have ended; how many those are."""
        ready = [name for name, one in self._lines.items() if one.replies is not None and name in self._parked]
        for name in ready:
            batch, parked = self._lines[name], self._parked.pop(name)
            assert batch.replies is not None
            assert batch.known is not None
            api = self._api(parked.request.model)
            assert api is not None
            custom_id = batch.left[name]
            missing = BatchReply(custom_id=custom_id, problem=f"the batch is {batch.state}, without this line")
            result = api.read(parked.request, batch.replies.get(custom_id, missing))
            reserved = batch.reserved.pop(name, 0.0)
            if not parked.future.done():
                parked.future.set_result(BatchAnswer(result, batch.known.batch, batch.intent.started, reserved))
        return len(ready)


def with_open_batches(stopped: Exception, batcher: Batcher | None) -> str:
    """Why a run stopped, and what of it is still at providers."""
    return " ".join(filter(None, [str(stopped), batcher.still_open() if batcher else ""]))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _chunks(parked: Iterable[_Parked], most: int, size: int) -> Iterator[list[_Parked]]:
    chunk: list[_Parked] = []
    total = 0
    for one in parked:
        if chunk and (len(chunk) == most or total + one.size > size):
            yield chunk
            chunk, total = [], 0
        chunk.append(one)
        total += one.size
    if chunk:
        yield chunk
