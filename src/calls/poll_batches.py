"""Waits for batches that were sent: asks providers how they are, and collects the lines of those that have ended."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from ..adapters.base import Batches, BatchReply, CallFailure, KnownBatch
from ..errors import IntegrityError
from .open_batches import OpenBatch, OpenBatches
from .resources import CallResources
from .send_batches import BatchAnswer, ParkedCall

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
