"""The one gateway: every model call of a run goes through here, and nothing else talks to a provider.

A call has an identity. If the journal has its attempts, the recorded outcome is returned. If not, the call is made,
appended, made durable, and then returned. Resume, replay and re-judging are this lookup and nothing more. In a replay
no adapter exists, and a call that is not recorded is an integrity error.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from ..adapters.base import (
    RETRYABLE,
    Adapter,
    CallFailure,
    ModelReply,
    ModelRequest,
)
from ..errors import IncompleteRun, IntegrityError
from ..records.model_name import split_name
from ..records.run import FORMAT
from ..schemas import (
    CallPolicy,
    CallRecord,
    Stage,
    Usage,
)
from ..store.strict_json import derive_seed
from .first_call import FirstCalls
from .limits import Limits, backoff_s


class Stopping(IncompleteRun):
    """The run was asked to stop: calls in flight finish and are kept; no new call starts."""


@dataclass(frozen=True)
class CallId:
    """Which call of the run this is; the attempt number is added by the gateway."""

    trial: str
    stage: Stage
    turn: str = "-"
    judge: int = 0
    ask: int = 0
    part: str = ""
    """Which part of a judge's work on a turn, if it takes more than one call: `c3` is the third claim alone."""

    def attempt(self, number: int) -> str:
        judge = f"{self.judge}.{self.part}" if self.part else self.judge
        return f"{self.trial}|{self.stage}|{self.turn}|{judge}|{self.ask}|{number}"


class Recorded(Protocol):
    def lookup(self, call: str) -> CallRecord | None: ...


class Appendable(Recorded, Protocol):
    async def append(self, record: CallRecord) -> None: ...


class Closable(Recorded, Protocol):
    def close(self) -> None: ...


@dataclass(frozen=True)
class ReusedCalls:
    """Calls of an earlier run, of the given stages, that are copied instead of being made again."""

    recorded: Closable
    stages: frozenset[Stage]

    def lookup(self, call: CallId, number: int, request: ModelRequest) -> CallRecord | None:
        if call.stage not in self.stages:
            return None
        record = recorded_attempt(self.recorded, call.attempt(number), request)
        if record is None:
            raise IntegrityError(f"The earlier run has no call {call.attempt(number)}, so it cannot be judged again.")
        return record

    def close(self) -> None:
        self.recorded.close()


class ReplayGateway:
    """Returns recorded calls and never makes one."""

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
            f"The journal has no finished call {call.attempt(1)}, so this run cannot be replayed to its end."
        )


class CallBudget(Protocol):
    """Money: asked before every attempt, settled after it."""

    @property
    def has_reserved(self) -> bool:
        """Whether anything is reserved for calls in flight."""
        ...

    def reserve(self, request: ModelRequest) -> float | None:
        """Reserve the most the attempt may cost; None if that would pass the limit."""
        ...

    def settle(self, reserved: float, record: CallRecord) -> None: ...


class Stop:
    """Asks a run to stop: calls in flight finish, and calls that wait for their turn are not made."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.reason = "The run was stopped before its end."
        self._listeners: list[Callable[[], None]] = []

    def ask(self, reason: str | None = None) -> None:
        if reason and not self.event.is_set():
            self.reason = reason
        self.event.set()
        for listener in self._listeners:
            listener()

    def listen(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def check(self) -> None:
        if self.event.is_set():
            raise Stopping(self.reason)


@dataclass(frozen=True, kw_only=True)
class CallResources:
    """What a gateway needs to make calls. None of it can change a result."""

    adapter_for: Callable[[str], Adapter]
    """By provider."""
    limits: Limits
    stop: Stop
    budget: CallBudget | None = None


class LiveGateway:
    """Returns recorded calls, and makes and records all others."""

    def __init__(
        self,
        journal: Appendable,
        policy: CallPolicy,
        resources: CallResources,
        on_call: Callable[[CallRecord], None] | None = None,
        reused: ReusedCalls | None = None,
    ) -> None:
        self._journal = journal
        self._policy = policy
        self._resources = resources
        self._on_call = on_call or (lambda record: None)
        self._reused = reused
        self._settled = asyncio.Event()
        self._first_calls = FirstCalls()
        resources.stop.listen(resources.limits.open)
        resources.stop.listen(self._settled.set)

    async def call(self, call: CallId, request: ModelRequest) -> CallRecord:
        began: float | None = None
        for number in range(1, self._policy.max_attempts + 1):
            name = call.attempt(number)
            record = recorded_attempt(self._journal, name, request)
            taken = self._reused.lookup(call, number, request) if record is None and self._reused else None
            if taken:
                record = taken.model_copy(update={"format": FORMAT})
                await self._journal.append(record)
            if record is None:
                async with self._first_calls.turn(request):
                    record, wait, started = await self._attempt(name, request, number, began)
                began = began or started
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
                await self._resources.stop.event.wait()
        except TimeoutError:
            pass

    async def _attempt(
        self, name: str, request: ModelRequest, number: int, began: float | None
    ) -> tuple[CallRecord, float, float]:
        """One attempt, once the limiter admits it: its record, how long to wait after it, and when it started."""
        self._resources.stop.check()
        provider = split_name(request.model).provider
        async with self._resources.limits.limiter(provider).slot(request.characters / 4 + request.max_tokens) as slot:
            self._resources.stop.check()
            reserved = await self._reserve(request)
            clock = time.monotonic()
            reply, failure, started = await self._make(provider, request)
            asks_long = failure is not None and (failure.retry_after_s or 0) > self._policy.deadline_s
            too_long = asks_long and failure is not None and failure.outcome in RETRYABLE
            if failure is not None and too_long:
                self._resources.stop.ask(_asked_to_wait(provider, failure))
            now = time.monotonic()
            retry_after_s = failure.retry_after_s if failure else None
            wait = backoff_s(number, derive_seed(request.seed, name), retry_after_s)
            out_of_time = now - (began or clock) + wait > self._policy.deadline_s and not too_long
            record = _record(
                name,
                request,
                reply,
                failure,
                last=number == self._policy.max_attempts or out_of_time,
                started=started,
                latency_ms=round((now - clock) * 1_000, 3),
            )
            slot.answered(record.outcome, status=record.status, retry_after_s=retry_after_s, used=_tokens(record.usage))
            if self._resources.budget:
                self._resources.budget.settle(reserved, record)
                self._settled.set()
        return record, wait, clock

    async def _reserve(self, request: ModelRequest) -> float:
        """Reserve the call's money. If calls in flight have reserved too much, wait until one of them is settled."""
        budget = self._resources.budget
        if not budget:
            return 0.0
        while (reserved := budget.reserve(request)) is None:
            if not budget.has_reserved:
                self._resources.stop.ask("The next call could pass `max_cost`.")
            self._resources.stop.check()
            self._settled.clear()
            await self._settled.wait()
        return reserved

    async def _make(self, provider: str, request: ModelRequest) -> tuple[ModelReply | None, CallFailure | None, str]:
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        try:
            adapter = self._resources.adapter_for(provider)
            return await adapter.complete(request, timeout_s=self._policy.timeout_s), None, started
        except CallFailure as failure:
            return None, failure, started
        except BaseException:
            self._resources.stop.ask()  # a fault of ours: nothing may keep waiting for this call's money or place
            raise


def _tokens(usage: Usage) -> int | None:
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    return usage.input_tokens + usage.output_tokens


def _record(
    call: str,
    request: ModelRequest,
    reply: ModelReply | None,
    failure: CallFailure | None,
    *,
    last: bool,
    started: str,
    latency_ms: float,
) -> CallRecord:
    source = reply or failure
    assert source is not None
    return CallRecord(
        call=call,
        request_sha256=request.sha256(),
        prompt_sha256=request.prompt_sha256,
        model=request.model,
        outcome=source.outcome,
        final=source.outcome != "denied" and (last or source.outcome not in RETRYABLE),
        status=failure.status if failure else None,
        usage=reply.usage if reply else Usage(),
        input_characters=request.characters,
        max_tokens=request.max_tokens,
        served_model=reply.served_model if reply else None,
        fingerprint=reply.fingerprint if reply else None,
        request_id=source.request_id,
        stop_reason=reply.stop_reason if reply else None,
        not_applied=source.not_applied,
        started=started,
        latency_ms=latency_ms,
        error=failure.message if failure else None,
        text=reply.text if reply else None,
        sent=source.sent,
        received=source.received,
        address=source.address,
        api_version=source.api_version,
        format=FORMAT,
    )


def _asked_to_wait(provider: str, failure: CallFailure) -> str:
    wait = f"{failure.retry_after_s:.0f} seconds (Retry-After), longer than the retry deadline"
    return f"{provider} asked us to wait {wait}. Resume the run later."


def recorded_attempt(recorded: Recorded, call: str, request: ModelRequest) -> CallRecord | None:
    """The recorded attempt, if there is one. A recorded call with another request is an integrity error."""
    record = recorded.lookup(call)
    if record is not None and record.request_sha256 != request.sha256():
        raise IntegrityError(
            f"The journal's call {call} has a different request than this plan makes: another release recorded it, "
            "or the manifest was changed. Start a new run, or use the version in the manifest."
        )
    return record


Gateway = LiveGateway | ReplayGateway
