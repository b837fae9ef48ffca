"""Calls that are sent together, in batches, at a lower price: parked, submitted, waited for, and handed back.

A call parks here instead of being made. When nothing else of the run can go on, all parked calls are submitted, in one
batch per model. The journal gets the intent before a batch is sent and the provider's id after that, so a process that
is killed at any moment finds its batches again: a call in an open batch waits for it, and no call is sent twice.
What comes back is handed to the gateway, which records it like the reply to any other call.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from ..adapters.base import Batches, BatchReply, CallFailure, KnownBatch, ModelRequest
from ..errors import IntegrityError
from ..records.model_name import split_name
from ..schemas import Stage
from .open_batches import BatchAnswer, BatchSender, NoteJournal, OpenBatch, OpenBatches, ParkedCall
from .resources import CallResources
from .stop import Stopping, pause

NEVER_BATCHED: frozenset[Stage] = frozenset({"target", "questioner", "probe"})
"""A conversation would take as many batches as it has turns."""
LINE_OVERHEAD = 200
"""Bytes of a line around its body, generously."""


class Batcher:
    """Where calls are parked. For one run and one event loop."""

    def __init__(self, journal: NoteJournal, resources: CallResources) -> None:
        timing = BatchTiming.from_environment()
        self._open = OpenBatches(journal, resources)
        self._sender = BatchSender(self._open, resources.stop, retry_s=timing.last_poll)
        self._poller = BatchPoller(self._open, resources, timing)
        self._stop = resources.stop
        self._on_notice = resources.on_notice
        self._longest_wait_s = resources.batch_wait_s
        self._quiet_s = timing.quiet
        self._parked: dict[str, ParkedCall] = {}
        self._told: set[str] = set()
        self._busy = 0
        self._changes = 0
        self._waited_s = 0.0
        self._task: asyncio.Task[None] | None = None

    def takes(self, stage: Stage, model: str) -> bool:
        """Whether calls of this stage to this model go into batches."""
        if stage in NEVER_BATCHED:
            return False
        if self._open.api(model) is None and (provider := split_name(model).provider) not in self._told:
            self._told.add(provider)
            self._on_notice(f"{provider} has no batch API here, so its calls are made one by one.")
        return self._open.api(model) is not None

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
        api = self._open.api(request.model)
        assert api is not None
        try:
            size = len(api.body(request)) + LINE_OVERHEAD
        except CallFailure as failure:
            return BatchAnswer(failure, None, datetime.now(UTC).isoformat(timespec="milliseconds"))
        sent = self._open.by_call.get(name)
        if sent is not None:
            if sent.hashes[name] != request.sha256():
                raise IntegrityError(
                    f"The batch {sent.intent.intent} has another request for {name} than this plan makes."
                )
            sent.reserved.setdefault(name, self._open.reserve(request) or 0.0)
        parked = ParkedCall(name, request, api, size, asyncio.get_running_loop().create_future())
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
        await self._open.journaled(name)

    def still_open(self) -> str:
        """One sentence about what is still at providers; empty if nothing is."""
        return self._open.still_open()

    async def aclose(self) -> None:
        if self._task:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def _count(self, change: int) -> None:
        self._busy += change
        self._changes += 1

    async def _work(self) -> None:
        """Submit and poll while a call is parked."""
        try:
            for read in [one for one in self._open.batches if one.known and not one.left]:  # killed before it was noted
                await self._open.end(read, read.state)
            while self._parked:
                self._stop.check()
                before, at = self._changes, time.monotonic()
                await pause(self._stop, self._quiet_s)
                self._stop.check()
                idle = self._busy == 0 and self._changes == before
                if idle and await self._sender.send(self._parked.values()):
                    self._poller.soon()
                await self._poller.poll()
                if not self._poller.hand_back(self._parked) and idle and self._busy == 0:
                    self._has_waited(time.monotonic() - at)
        except BaseException as error:
            if not isinstance(error, Stopping):
                self._stop.ask()  # a fault of ours, or a full disk: nothing else may go on
            self._reject(error)
            if not isinstance(error, Exception):
                raise

    def _reject(self, error: BaseException) -> None:
        failure = error if isinstance(error, Exception) else Stopping(self._stop.reason)
        for parked in self._parked.values():
            if not parked.future.done():
                parked.future.set_exception(failure)
        self._parked.clear()

    def _has_waited(self, seconds: float) -> None:
        """Nothing else of the run can go on: say so, and stop if that takes longer than the user will wait."""
        self._on_notice(self.still_open())
        self._waited_s += seconds
        seen = all(one.polled for one in self._open.batches)
        longest = self._longest_wait_s
        if self._open.batches and seen and longest is not None and self._waited_s >= longest:
            self._stop.ask("The run has waited for batches as long as `batch_wait` allows.")


def make_batcher(journal: NoteJournal, resources: CallResources) -> Batcher | None:
    """Where judges' calls of a run with this journal are parked; None if they do not go into batches."""
    return Batcher(journal, resources) if resources.batch else None


def with_open_batches(stopped: Exception, batcher: Batcher | None) -> str:
    """Why a run stopped, and what of it is still at providers."""
    return " ".join(filter(None, [str(stopped), batcher.still_open() if batcher else ""]))


# Waits for batches that were sent: asks providers how they are, and collects the lines of those that have ended.

TIMING_VARIABLE = "MEDICARE_EVAL_BATCH_TIMING"
"""For tests: the four numbers of `BatchTiming`, with commas between them."""


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


class BatchPoller:
    """Polls the open batches of one run."""

    def __init__(self, open_batches: OpenBatches, resources: CallResources, timing: BatchTiming) -> None:
        self._open = open_batches
        self._resources = resources
        self._timing = timing
        self._every = timing.first_poll
        self._next = 0.0
        self._failing_since: dict[str, float] = {}
        """By provider, those whose last question was not answered."""

    def soon(self) -> None:
        """Begin with short intervals again: a batch was sent, or found."""
        self._every = self._timing.first_poll
        self._next = time.monotonic() + self._every

    async def poll(self) -> None:
        """Ask about every batch whose lines are not here, if it is time to."""
        if not self._open.batches or time.monotonic() < self._next:
            return
        self._open.failpoints.hit("batch.polling")
        for batch in [one for one in self._open.batches if one.replies is None]:
            api = self._open.api(batch.intent.model)
            if api is None:
                raise IntegrityError(f"{batch.provider} had a batch of this run, and has no batch API here.")
            try:
                await (self._look_for(batch, api) if batch.known is None else self._ask_for(batch, batch.known, api))
                self._failing_since.pop(batch.provider, None)
            except CallFailure as failure:
                self._not_told(batch, failure)
            batch.polled = True
            self._resources.stop.check()
        self._every = min(self._timing.last_poll, 1.5 * self._every)
        self._next = time.monotonic() + self._every

    def _not_told(self, batch: OpenBatch, failure: CallFailure) -> None:
        """A question about a batch was not answered. The batch goes on meanwhile, so only a long outage matters."""
        now = time.monotonic()
        since = self._failing_since.setdefault(batch.provider, now)
        if failure.outcome in ("permanent", "denied"):
            self._open.refused(batch, failure)
        elif now - since > self._resources.max_outage_s:
            self._resources.stop.ask(
                f"{batch.provider} does not answer questions about its batches. It last said: {failure.message}."
            )
        else:
            said = f"{batch.provider} did not say how its batch is ({failure.message}); asking again."
            self._resources.on_notice(said)

    async def _look_for(self, batch: OpenBatch, api: Batches) -> None:
        """Did the provider get a batch whose answer we did not see?"""
        found = await api.find(batch.lost({one.known.batch for one in self._open.batches if one.known}))
        if found.known is not None:
            await self._open.created(batch, found.known)
            self.soon()
        elif not found.undecided and time.monotonic() - batch.unknown_since >= self._timing.settle:
            await self._open.drop(batch, "never accepted")

    async def _ask_for(self, batch: OpenBatch, known: KnownBatch, api: Batches) -> None:
        state = await api.state(known.batch, len(batch.intent.lines))
        batch.state = state.name
        if not state.ended:
            return
        if state.failed is not None:
            await self._open.drop(batch, f"{state.name}: {state.failed}")
            self._resources.stop.ask(f"{batch.provider} could not process the batch {known.batch}: {state.failed}")
            return
        replies = await api.results(known.batch, [line.custom_id for line in batch.intent.lines])
        batch.replies = {one.custom_id: one for one in replies}
        if not batch.left:
            await self._open.end(batch, batch.state)

    def hand_back(self, parked: dict[str, ParkedCall]) -> int:
        """Answer the parked calls whose batches have ended, and remove them; how many those are."""
        ready = [name for name, one in self._open.by_call.items() if one.replies is not None and name in parked]
        for name in ready:
            batch, call = self._open.by_call[name], parked.pop(name)
            assert batch.replies is not None
            assert batch.known is not None
            custom_id = batch.left[name]
            missing = BatchReply(custom_id=custom_id, problem=f"the batch is {batch.state}, without this line")
            result = call.api.read(call.request, batch.replies.get(custom_id, missing))
            reserved = batch.reserved.pop(name, 0.0)
            if not call.future.done():
                call.future.set_result(BatchAnswer(result, batch.known.batch, batch.intent.started, reserved))
        return len(ready)
