"""Sends parked calls in batches: the intent into the journal, the batch to the provider, its id into the journal."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ..adapters.base import Batches, BatchRequest, CallFailure, ModelReply, ModelRequest
from ..records.model_name import split_name
from ..records.run import BatchIntent, BatchLine
from .budget import PASSES_MAX_COST
from .open_batches import OpenBatch, OpenBatches
from .stop import Stop


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
        if by_model and not waits and not sent and not self._open.batches and budget and not budget.has_reserved:
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
