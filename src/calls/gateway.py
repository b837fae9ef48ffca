"""The one gateway: every model call of a run goes through here, and nothing else talks to a provider.

A call has an identity. If the journal has its attempts, the recorded outcome is returned. If not, the call is made,
appended, made durable, and then returned. Resume, replay and re-judging are this lookup and nothing more. In a replay
no adapter exists, and a call that is not recorded is an integrity error.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from typing import NamedTuple, Protocol

from ..adapters.base import (
    RETRYABLE,
    Adapter,
    CallFailure,
    Message,
    ModelReply,
    ModelRequest,
)
from ..adapters.registry import PROVIDERS
from ..errors import IntegrityError
from ..records.model_name import split_name
from ..records.run import FORMAT, RunLimits
from ..schemas import (
    CallOutcome,
    CallParameters,
    CallPolicy,
    CallRecord,
    Stage,
    Usage,
)
from ..store.failpoints import Failpoints
from ..store.strict_json import derive_seed
from .batches import Batcher, NoteJournal
from .breaker import Breaker, ProbeResult, Tries
from .budget import RunBudget
from .first_call import FirstCalls
from .limits import backoff_s
from .prices import FREE_PROVIDERS
from .stop import Stop, Stopping

__all__ = ["Batcher", "CallId", "CallResources", "Gateway", "LiveGateway", "ReplayGateway", "Stop", "Stopping"]

PROBE_TRIAL = "probe"
"""Stands for the trial in the names of probes, which belong to none."""
PROBE = "Reply with the word OK."
PROBES = 3
"""Times a model is asked before the first trial until it counts as not answering."""
DENIED_STATUSES = frozenset({401, 402, 403, 404})


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
        for number in count(1):  # a call that met many outages has many attempts
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

    async def reserve(self, request: ModelRequest) -> float | None:
        """Reserve the most the attempt may cost, once calls in flight leave enough; None: it could pass the limit."""
        ...

    def settle(self, reserved: float, record: CallRecord) -> None: ...

    def open(self) -> None:
        """Answer all who wait: the run is stopping."""
        ...


class CallSlot(Protocol):
    """One call's place at a provider."""

    def answered(
        self, outcome: CallOutcome, *, status: int | None = None, retry_after_s: float | None = None, used: int | None
    ) -> None: ...


class CallLimiter(Protocol):
    def slot(self, tokens: float) -> AbstractAsyncContextManager[CallSlot]: ...


class CallLimits(Protocol):
    """How many calls a provider gets: of this process alone, or shared with others."""

    def limiter(self, provider: str) -> CallLimiter: ...

    def open(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class CallResources:
    """What a gateway needs to make calls. None of it can change a result."""

    adapter_for: Callable[[str], Adapter]
    """By provider."""
    limits: CallLimits
    stop: Stop
    budget: CallBudget | None = None
    max_outage_s: float = RunLimits().max_outage_s
    on_notice: Callable[[str], None] = lambda notice: None
    """Told why the run waits, in a sentence."""
    batch: bool | None = None
    """Whether judges' calls go into batches; None: nobody said, so no."""
    batch_wait_s: float | None = None
    """Seconds to wait for batches with nothing else to do; None: until they end."""

    def batcher(self, journal: NoteJournal) -> Batcher | None:
        """Where judges' calls of a run with this journal are parked."""
        if not self.batch:
            return None
        return Batcher(
            journal,
            self.adapter_for,
            self.stop,
            budget=self.budget if isinstance(self.budget, RunBudget) else None,
            longest_wait_s=self.batch_wait_s,
            max_outage_s=self.max_outage_s,
            on_wait=self.on_notice,
            failpoints=Failpoints.from_environment(),
        )


class LiveGateway:
    """Returns recorded calls, and makes and records all others."""

    def __init__(
        self,
        journal: Appendable,
        policy: CallPolicy,
        resources: CallResources,
        on_call: Callable[[CallRecord], None] | None = None,
        reused: ReusedCalls | None = None,
        *,
        batcher: Batcher | None = None,
    ) -> None:
        """`batcher`: where judges' calls are parked, if they go into batches."""
        self._journal = journal
        self._policy = policy
        self._resources = resources
        self._on_call = on_call or (lambda record: None)
        self._reused = reused
        self._batcher = batcher
        self._first_calls = FirstCalls()
        self._breakers: dict[str, Breaker] = {}
        self._probes = 0
        self._to_probe: tuple[ModelRequest, ...] = ()
        self._probing: asyncio.Task[None] | None = None
        resources.stop.listen(resources.limits.open)
        if resources.budget:
            resources.stop.listen(resources.budget.open)

    async def call(self, call: CallId, request: ModelRequest) -> CallRecord:
        with self._batcher.busy() if self._batcher else nullcontext():
            return await self._call(call, request)

    async def _call(self, call: CallId, request: ModelRequest) -> CallRecord:
        tries = Tries()
        for number in count(1):
            name = call.attempt(number)
            record = recorded_attempt(self._journal, name, request)
            taken = self._reused.lookup(call, number, request) if record is None and self._reused else None
            if taken:
                record = taken.model_copy(update={"format": FORMAT})
                await self._journal.append(record)
            if record is None:
                await self._probe_first()
            if record is None and self._batcher and self._batcher.takes(call.stage, request.model):
                record = await self._batched(self._batcher, name, request, number)
            elif record is None:
                breaker = self._breaker(request)
                await breaker.ready()
                async with self._first_calls.turn(request):
                    record, wait = await self._attempt(name, request, len(tries.failures) + 1, breaker, tries)
                if not record.final:
                    await self._pause(wait)
            if record.final:
                return record
        raise AssertionError("unreachable")

    async def _batched(self, batcher: Batcher, name: str, request: ModelRequest, number: int) -> CallRecord:
        """One attempt as a line of a batch, recorded like any other. One that had no turn is never the last."""
        answer = await batcher.answer(name, request)
        outcome = outcome_of(answer.result)
        had_turn = not isinstance(answer.result, CallFailure) or answer.result.status is not None
        retry = outcome in RETRYABLE and not (had_turn and number >= self._policy.max_attempts)
        made = Made(answer.result, answer.started)
        record = call_record(
            name,
            request,
            made,
            final=not retry and outcome != "denied",
            latency_ms=_since_ms(answer.started),
            batch=answer.batch,
        )
        if self._resources.budget:
            self._resources.budget.settle(answer.reserved, record)
        await self._journal.append(record)
        await batcher.journaled(name)
        self._on_call(record)
        if outcome == "denied":
            self._resources.stop.ask(_denied(record))
            self._resources.stop.check()
        return record

    def probe_first(self, requests: Iterable[ModelRequest]) -> None:
        """Probe these models before the first call that is not recorded, and not at all if there is none."""
        self._to_probe = tuple(requests)

    async def _probe_first(self) -> None:
        if self._to_probe and self._probing is None:
            self._probing = asyncio.create_task(self.probe(self._to_probe))
        if self._probing is not None and not (self._probing.done() and self._probing.exception() is None):
            await asyncio.shield(self._probing)

    async def probe(self, requests: Iterable[ModelRequest]) -> None:
        """Ask each model something short, at the same time. Raises `Stopping` if one of them does not answer."""
        found = await asyncio.gather(*(self._first_probe(request) for request in requests))
        unanswered = [one for one in found if not one.answered]
        if unanswered:
            self._resources.stop.ask(f"{unanswered[0].message}.")
        self._resources.stop.check()

    async def _first_probe(self, request: ModelRequest) -> ProbeResult:
        for number in range(1, PROBES + 1):
            found = await self._probe(request)
            if found.answered or not found.retry or number == PROBES:
                break
            await self._pause(backoff_s(number, derive_seed(request.seed, number)))
        if found.answered:
            return found
        return replace(found, message=f"{request.model} did not answer a short test call: {found.message}")

    async def _probe(self, request: ModelRequest) -> ProbeResult:
        """One short call that is recorded like any other, and on which no result depends."""
        while True:
            self._probes += 1
            name = CallId(PROBE_TRIAL, "probe").attempt(self._probes)
            if self._journal.lookup(name) is None:
                break
        record, _ = await self._attempt(name, request, 1)
        return ProbeResult(
            answered=record.outcome not in RETRYABLE and record.outcome not in ("permanent", "denied"),
            message=record.error or record.outcome,
            retry=record.outcome in RETRYABLE,
        )

    def _breaker(self, request: ModelRequest) -> Breaker:
        model = request.model
        if model not in self._breakers:
            asked = probe_request(request)

            async def probe() -> ProbeResult:
                found = await self._probe(asked)
                return found if found.retry else replace(found, answered=True)  # an error of this one request

            self._breakers[model] = Breaker(
                model,
                max_outage_s=self._resources.max_outage_s,
                probe=probe,
                pause=self._pause_or_stop,
                give_up=self._resources.stop.ask,
                on_pause=self._resources.on_notice,
                clock=time.monotonic,
            )
        return self._breakers[model]

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._resources.stop.event.wait()
        except TimeoutError:
            pass

    async def _pause_or_stop(self, seconds: float) -> None:
        await self._pause(seconds)
        self._resources.stop.check()

    async def _attempt(
        self, name: str, request: ModelRequest, number: int, breaker: Breaker | None = None, tries: Tries | None = None
    ) -> Attempted:
        """One attempt, once the limiter admits it, recorded. Stops the run if the provider denies it.

        Without a breaker it is a probe.
        """
        stop = self._resources.stop
        stop.check()
        provider = split_name(request.model).provider
        async with self._resources.limits.limiter(provider).slot(request.characters / 4 + request.max_tokens) as slot:
            stop.check()
            reserved = await self._reserve(request)
            clock = time.monotonic()
            made = await self._make(provider, request)
            latency_ms = round((time.monotonic() - clock) * 1_000, 3)
            outcome = outcome_of(made.source)
            retry_after_s = made.source.retry_after_s if isinstance(made.source, CallFailure) else None
            asks_long = outcome in RETRYABLE and (retry_after_s or 0) > self._policy.deadline_s
            final = outcome not in RETRYABLE and outcome != "denied"
            if breaker and tries is not None and outcome in RETRYABLE:
                final = breaker.failed(tries, self._policy, rate_limited=outcome == "rate_limited") and not asks_long
            elif breaker and outcome != "denied":
                breaker.answered()
            record = call_record(name, request, made, final=final, latency_ms=latency_ms)
            slot.answered(outcome, status=record.status, retry_after_s=retry_after_s, used=_tokens(record.usage))
            if self._resources.budget:
                self._resources.budget.settle(reserved, record)
        await self._journal.append(record)
        self._on_call(record)
        if asks_long:
            stop.ask(_asked_to_wait(provider, retry_after_s or 0))
        if outcome == "denied":
            stop.ask(_denied(record))
            stop.check()
        return Attempted(record, backoff_s(number, derive_seed(request.seed, name), retry_after_s))

    async def _reserve(self, request: ModelRequest) -> float:
        """Reserve the call's money, or stop the run."""
        budget = self._resources.budget
        if not budget:
            return 0.0
        reserved = await budget.reserve(request)
        if reserved is None:
            self._resources.stop.ask("The next call could pass `max_cost`.")
            self._resources.stop.check()
        return reserved or 0.0

    async def _make(self, provider: str, request: ModelRequest) -> Made:
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        try:
            adapter = self._resources.adapter_for(provider)
            return Made(await adapter.complete(request, timeout_s=self._policy.timeout_s), started)
        except CallFailure as failure:
            return Made(failure, started)
        except BaseException:
            self._resources.stop.ask()  # a fault of ours: nothing may keep waiting for this call's money or place
            raise


class Made(NamedTuple):
    """What came of one attempt."""

    source: ModelReply | CallFailure
    started: str


class Attempted(NamedTuple):
    record: CallRecord
    wait: float
    """Seconds to wait before another attempt."""


def probe_request(like: ModelRequest) -> ModelRequest:
    """A short request to the same model, with the same parameters."""
    return ModelRequest(
        model=like.model,
        api_id=like.api_id,
        messages=(Message("user", PROBE),),
        temperature=like.temperature,
        max_tokens=like.max_tokens,
        seed=like.seed,
    )


def probe_requests(
    api_ids: Mapping[str, str], parameters_of: Callable[[str], CallParameters], seed: int
) -> list[ModelRequest]:
    """A short request to each model that is not on this machine, with the parameters of its real calls."""
    found = []
    for model, api_id in api_ids.items():
        if split_name(model).provider in FREE_PROVIDERS:
            continue
        takes = parameters_of(model)
        like = ModelRequest(
            model=model,
            api_id=api_id,
            messages=(),
            temperature=takes.temperature,
            max_tokens=takes.max_tokens,
            seed=seed,
        )
        found.append(probe_request(like))
    return found


def outcome_of(source: ModelReply | CallFailure) -> CallOutcome:
    """The outcome of an attempt. A plugin may not know `denied`, but the status tells."""
    if isinstance(source, CallFailure) and source.outcome == "permanent" and source.status in DENIED_STATUSES:
        return "denied"
    return source.outcome


def _denied(record: CallRecord) -> str:
    provider = split_name(record.model).provider
    known = PROVIDERS.get(provider)
    key = f" The key is in {known.key_variable}." if known and known.key_variable else ""
    where = f" at {record.address}" if record.address else ""
    said = record.error or f"{provider}: HTTP {record.status}"
    return f"{record.model} cannot be used{where}: {said}.{key} No answer was recorded for this call."


def _since_ms(started: str) -> float:
    return round(max(0.0, (datetime.now(UTC) - datetime.fromisoformat(started)).total_seconds()) * 1_000, 3)


def _tokens(usage: Usage) -> int | None:
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    return usage.input_tokens + usage.output_tokens


def call_record(
    call: str, request: ModelRequest, made: Made, *, final: bool, latency_ms: float, batch: str | None = None
) -> CallRecord:
    """What the journal keeps of one attempt."""
    source = made.source
    reply = source if isinstance(source, ModelReply) else None
    failure = source if isinstance(source, CallFailure) else None
    return CallRecord(
        call=call,
        request_sha256=request.sha256(),
        prompt_sha256=request.prompt_sha256,
        model=request.model,
        outcome=outcome_of(source),
        final=final,
        status=failure.status if failure else None,
        usage=reply.usage if reply else Usage(),
        input_characters=request.characters,
        max_tokens=request.max_tokens,
        served_model=reply.served_model if reply else None,
        fingerprint=reply.fingerprint if reply else None,
        request_id=source.request_id,
        stop_reason=reply.stop_reason if reply else None,
        not_applied=source.not_applied,
        started=made.started,
        latency_ms=latency_ms,
        error=failure.message if failure else None,
        text=reply.text if reply else None,
        sent=source.sent,
        received=source.received,
        address=source.address,
        api_version=source.api_version,
        batch=batch,
        format=FORMAT,
    )


def _asked_to_wait(provider: str, seconds: float) -> str:
    wait = f"{seconds:.0f} seconds (Retry-After), longer than the retry deadline"
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
