"""The one door: every model call of a run goes through here, and nothing else talks to a provider.

A call has an identity. If the journal holds its attempts, they are what happened, and the recorded outcome is
returned; if not, the call is made, appended, made durable, and then returned. Resume, replay and re-judging are this
look-up and nothing more. With no adapters the door is closed: a call that is not recorded is an integrity error.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from .adapters.base import RETRYABLE, Adapter, CallFailure, ModelReply, ModelRequest
from .canonical import derive_seed
from .errors import IncompleteRun, IntegrityError
from .limits import backoff_s
from .schemas import CallPolicy, CallRecord, Stage, Usage


class Stopping(IncompleteRun):
    """The run was asked to stop: calls under way are finished and kept, new ones are not begun."""


@dataclass(frozen=True)
class CallId:
    """Which call of the run this is; the attempt number is added by the door."""

    trial: str
    stage: Stage
    turn: str = "-"
    judge: int = 0
    ask: int = 0

    def attempt(self, number: int) -> str:
        return f"{self.trial}|{self.stage}|{self.turn}|{self.judge}|{self.ask}|{number}"


class Recorded(Protocol):
    def lookup(self, call: str) -> CallRecord | None: ...


class Appendable(Recorded, Protocol):
    async def append(self, record: CallRecord) -> None: ...


class ClosedDoor:
    """Answers from the journal alone."""

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded

    async def call(self, call: CallId, request: ModelRequest) -> CallRecord:
        for number in range(1, 1_000):
            record = recorded_attempt(self._recorded, call.attempt(number), request)
            if record is None:
                break
            if record.final:
                return record
        raise IntegrityError(
            f"The journal holds no finished call {call.attempt(1)}; this run cannot be replayed to its end."
        )


class OpenDoor:
    """Answers from the journal where it can, and calls the provider where it must."""

    def __init__(
        self,
        journal: Appendable,
        adapter_for: Callable[[str], Adapter],
        policy: CallPolicy,
        *,
        stopping: asyncio.Event | None = None,
        on_call: Callable[[CallRecord], None] = lambda record: None,
    ) -> None:
        self._journal = journal
        self._adapter_for = adapter_for
        self._policy = policy
        self._stopping = stopping or asyncio.Event()
        self._on_call = on_call

    async def call(self, call: CallId, request: ModelRequest) -> CallRecord:
        began = time.monotonic()
        for number in range(1, self._policy.max_attempts + 1):
            record = recorded_attempt(self._journal, call.attempt(number), request)
            if record is None:
                if self._stopping.is_set():
                    raise Stopping("The run was stopped before its end.")
                record, retry_after_s = await self._attempt(call.attempt(number), request, number)
                wait = backoff_s(number, derive_seed(request.seed, call.attempt(number)), retry_after_s)
                if not record.final and time.monotonic() - began + wait > self._policy.deadline_s:
                    record = record.model_copy(update={"final": True})
                await self._journal.append(record)
                self._on_call(record)
                if not record.final:
                    await self._pause(wait)
            if record.final:
                return record
        raise AssertionError("unreachable: the last attempt is final")

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            pass

    async def _attempt(self, call: str, request: ModelRequest, number: int) -> tuple[CallRecord, float | None]:
        started, clock = datetime.now(UTC), time.monotonic()
        reply: ModelReply | None = None
        failure: CallFailure | None = None
        try:
            reply = await self._adapter_for(request.model).complete(request, timeout_s=self._policy.timeout_s)
        except CallFailure as caught:
            failure = caught
        outcome = reply.outcome if reply else failure.outcome  # type: ignore[union-attr] # one of the two is set
        source = reply or failure
        record = CallRecord(
            call=call,
            request_sha256=request.sha256(),
            model=request.model,
            outcome=outcome,
            final=outcome not in RETRYABLE or number == self._policy.max_attempts,
            text=reply.text if reply else None,
            stop_reason=reply.stop_reason if reply else None,
            served_model=reply.served_model if reply else None,
            fingerprint=reply.fingerprint if reply else None,
            request_id=source.request_id if source else None,
            usage=reply.usage if reply else Usage(),
            not_applied=source.not_applied if source else (),
            error=failure.message if failure else None,
            status=failure.status if failure else None,
            sent=source.sent if source else None,
            received=source.received if source else None,
            started=started.isoformat(timespec="milliseconds"),
            latency_ms=round((time.monotonic() - clock) * 1_000, 3),
        )
        return record, failure.retry_after_s if failure else None


def recorded_attempt(recorded: Recorded, call: str, request: ModelRequest) -> CallRecord | None:
    """What the journal says of this attempt; a recorded call that asked something else is not this call."""
    record = recorded.lookup(call)
    if record is not None and record.request_sha256 != request.sha256():
        raise IntegrityError(
            f"The journal's call {call} asked something else than this plan does: it was recorded by another version "
            "of the harness, or the manifest was changed. Start a new run, or use the version the manifest names."
        )
    return record


Door = OpenDoor | ClosedDoor
