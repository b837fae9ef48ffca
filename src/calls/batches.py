"""Calls that are sent together, in batches, at a lower price: parked, submitted, waited for, and handed back.

A call parks here instead of being made. When nothing else of the run can go on, all parked calls are submitted, in one
batch per model. The journal gets the intent before a batch is sent and the provider's id after that, so a process that
is killed at any moment finds its batches again: a call in an open batch waits for it, and no call is sent twice.
What comes back is handed to the gateway, which records it like the reply to any other call.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from ..adapters.base import CallFailure, ModelRequest
from ..errors import IntegrityError
from ..records.model_name import split_name
from ..schemas import Stage
from .open_batches import NoteJournal, OpenBatches
from .poll_batches import BatchPoller, BatchTiming
from .resources import CallResources
from .send_batches import BatchAnswer, BatchSender, ParkedCall
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
