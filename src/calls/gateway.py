"""The one gateway: every model call of a run goes through here, and nothing else talks to a provider.

A call has an identity. If the journal has its attempts, the recorded outcome is returned. If not, the call is made,
appended, made durable, and then returned. Resume, replay and re-judging are this lookup and nothing more. In a replay
no adapter exists, and a call that is not recorded is an integrity error.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import NamedTuple, Protocol

from ..adapters.base import RETRYABLE, CallFailure, ModelReply, ModelRequest
from ..adapters.capabilities import cache_key, rule_for
from ..adapters.classify import classify_status
from ..adapters.registry import PROVIDERS
from ..errors import IntegrityError
from ..records.model_name import is_person, split_name
from ..records.run import FORMAT
from ..schemas import CallOutcome, CallPolicy, CallRecord, Stage, Usage
from ..store.run_files import RecordedCalls
from ..store.strict_json import derive_seed
from .batches import Batcher
from .breaker import PROBE_TRIAL, Breaker, Probes, Tries, probe_request
from .budget import PASSES_MAX_COST
from .limits import backoff_s
from .people import person_asked
from .prices import FREE_PROVIDERS, RESULT_TOKENS
from .resources import CallResources
from .stop import Stopping, pause


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


@dataclass(frozen=True)
class ReusedCalls:
    """Calls of an earlier run, of the given stages, that are copied instead of being made again."""

    recorded: RecordedCalls
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
        self._probe_numbers = count(1)
        self.probes = Probes(self._probe, resources.stop)
        resources.stop.listen(resources.limits.open)
        if resources.budget:
            resources.stop.listen(resources.budget.open)

    async def call(self, call: CallId, request: ModelRequest) -> CallRecord:
        if is_person(request.model):
            return await self._asked_person(call, request)
        with self._resources.people.busy(), self._batcher.busy() if self._batcher else nullcontext():
            return await self._call(call, request)

    async def _asked_person(self, call: CallId, request: ModelRequest) -> CallRecord:
        """A call to a person: it has one attempt, which takes as long as it takes."""
        name = call.attempt(1)
        record = recorded_attempt(self._journal, name, request)
        if record is not None:
            return record
        await self.probes.done()
        person = person_asked(request.model, call.trial, call.judge)
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        said = await self._resources.people.answer(name, person, request, self._resources.stop)
        reply = ModelReply(outcome="ok", text=said, sent=request.as_json(), received=said, served_model=person)
        record = call_record(name, request, reply, started=started, final=True, latency_ms=_since_ms(started))
        try:
            await self._keep(record)
        except BaseException as error:
            self._resources.people.kept(name, on_disk=False)
            self._resources.people.give_up(error)
            raise
        self._resources.people.kept(name, on_disk=True)
        return record

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
                await self.probes.done()
            if record is None and self._batcher and self._batcher.takes(call.stage, request.model):
                record = await self._batched(self._batcher, name, request, number)
            elif record is None:
                breaker = self._breaker(request)
                await breaker.ready()
                async with self._first_calls.turn(request):
                    record, wait = await self._attempt(name, request, len(tries.failures) + 1, breaker, tries)
                if not record.final:
                    await pause(self._resources.stop, wait)
            if record.final:
                return record
        raise AssertionError("unreachable")

    async def _batched(self, batcher: Batcher, name: str, request: ModelRequest, number: int) -> CallRecord:
        """One attempt as a line of a batch, recorded like any other. One that had no turn is never the last."""
        answer = await batcher.answer(name, request)
        outcome = outcome_of(answer.result)
        had_turn = not isinstance(answer.result, CallFailure) or answer.result.status is not None
        retry = outcome in RETRYABLE and not (had_turn and number >= self._policy.max_attempts)
        record = call_record(
            name,
            request,
            answer.result,
            started=answer.started,
            final=not retry and outcome != "denied",
            latency_ms=_since_ms(answer.started),
            batch=answer.batch,
        )
        if self._resources.budget:
            self._resources.budget.settle(answer.reserved, record)
        record = await self._checked_refusal(record, self._breaker(request))
        await self._keep(record, batcher)
        return record

    async def _probe(self, request: ModelRequest) -> CallRecord:
        """One attempt at a probe, under a name that the journal does not have."""
        names = map(CallId(PROBE_TRIAL, "probe").attempt, self._probe_numbers)
        name = next(name for name in names if self._journal.lookup(name) is None)
        return (await self._attempt(name, request, 1)).record

    def _breaker(self, request: ModelRequest) -> Breaker:
        model = request.model
        if model not in self._breakers:
            self._breakers[model] = Breaker(
                model,
                max_outage_s=self._resources.max_outage_s,
                probe=partial(self.probes.is_up, probe_request(request)),
                ask=partial(self.probes.once, probe_request(request)),
                pause=self._pause_or_stop,
                give_up=self._resources.stop.ask,
                on_pause=self._resources.on_notice,
                clock=time.monotonic,
            )
        return self._breakers[model]

    async def _pause_or_stop(self, seconds: float) -> None:
        await pause(self._resources.stop, seconds)
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
        tokens = request.characters / 4 + request.max_tokens + request.most_searches * RESULT_TOKENS
        async with self._resources.limits.limiter(provider).slot(tokens) as slot:
            stop.check()
            reserved = await self._reserve(request)
            started, clock = datetime.now(UTC).isoformat(timespec="milliseconds"), time.monotonic()
            source = await self._make(provider, request)
            latency_ms = round((time.monotonic() - clock) * 1_000, 3)
            outcome = outcome_of(source)
            retry_after_s = source.retry_after_s if isinstance(source, CallFailure) else None
            asks_long = outcome in RETRYABLE and (retry_after_s or 0) > self._policy.deadline_s
            final = outcome not in RETRYABLE and outcome != "denied"
            if breaker and tries is not None and outcome in RETRYABLE:
                final = breaker.failed(tries, self._policy, rate_limited=outcome == "rate_limited") and not asks_long
            elif breaker and outcome not in ("denied", "permanent"):
                breaker.answered(clock)
            record = call_record(name, request, source, started=started, final=final, latency_ms=latency_ms)
            slot.answered(outcome, status=record.status, retry_after_s=retry_after_s, used=_tokens(record.usage))
            if self._resources.budget:
                self._resources.budget.settle(reserved, record)
        if breaker:
            record = await self._checked_refusal(record, breaker)
        await self._keep(record)
        if asks_long:
            wait = f"{retry_after_s or 0:.0f} seconds (Retry-After), longer than the retry deadline"
            stop.ask(f"{provider} asked us to wait {wait}. Resume the run later.")
        return Attempted(record, backoff_s(number, derive_seed(request.seed, name), retry_after_s))

    async def _checked_refusal(self, record: CallRecord, breaker: Breaker) -> CallRecord:
        """A refusal ends a call if the model answers another request. If it does not, the run stops, or waits."""
        if record.outcome != "permanent" or split_name(record.model).provider in FREE_PROVIDERS:
            return record
        try:
            found = await breaker.refuses_only_this()
        except Stopping:
            return record.model_copy(update={"final": False})
        if not found.answered and not found.retry:
            self._resources.stop.ask(
                f"{record.model} refuses every request, even a short test call: {_sentence(found.message)}"
            )
        return record.model_copy(update={"final": found.answered})

    async def _keep(self, record: CallRecord, batcher: Batcher | None = None) -> None:
        """Put an attempt into the journal; `batcher`: where it was parked. Stops the run if the provider denied it."""
        await self._journal.append(record)
        if batcher:
            await batcher.journaled(record.call)
        self._on_call(record)
        if record.outcome == "denied":
            self._resources.stop.ask(_denied(record))
            self._resources.stop.check()

    async def _reserve(self, request: ModelRequest) -> float:
        """Reserve the call's money, or stop the run."""
        budget = self._resources.budget
        if not budget:
            return 0.0
        reserved = await budget.reserve(request)
        if reserved is None:
            self._resources.stop.ask(PASSES_MAX_COST)
            self._resources.stop.check()
        return reserved or 0.0

    async def _make(self, provider: str, request: ModelRequest) -> ModelReply | CallFailure:
        try:
            adapter = self._resources.adapter_for(provider)
            return await adapter.complete(request, timeout_s=self._policy.timeout_s)
        except CallFailure as failure:
            return failure
        except BaseException:
            self._resources.stop.ask()  # a fault of ours: nothing may keep waiting for this call's money or place
            raise


class Attempted(NamedTuple):
    record: CallRecord
    wait: float
    """Seconds to wait before another attempt."""


def outcome_of(source: ModelReply | CallFailure) -> CallOutcome:
    """The outcome of an attempt. A plugin may not know `denied`, but the status tells."""
    if isinstance(source, CallFailure) and source.outcome == "permanent" and source.status is not None:
        return "denied" if classify_status(source.status) == "denied" else "permanent"
    return source.outcome


def _denied(record: CallRecord) -> str:
    provider = split_name(record.model).provider
    known = PROVIDERS.get(provider)
    key = f" The key is in {known.key_variable}." if known and known.key_variable else ""
    where = f" at {record.address}" if record.address else ""
    said = record.error or f"{provider}: HTTP {record.status}"
    return f"{record.model} cannot be used{where}: {_sentence(said)}{key} No answer was recorded for this call."


def _sentence(said: str) -> str:
    """What a provider said, with one period at its end."""
    return f"{said.rstrip('.')}."


def _since_ms(started: str) -> float:
    return round(max(0.0, (datetime.now(UTC) - datetime.fromisoformat(started)).total_seconds()) * 1_000, 3)


def _tokens(usage: Usage) -> int | None:
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    return usage.input_tokens + usage.output_tokens


def call_record(
    call: str,
    request: ModelRequest,
    source: ModelReply | CallFailure,
    *,
    started: str,
    final: bool,
    latency_ms: float,
    batch: str | None = None,
) -> CallRecord:
    """What the journal keeps of one attempt."""
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
        started=started,
        latency_ms=latency_ms,
        error=failure.message if failure else None,
        text=reply.text if reply else None,
        sent=source.sent,
        received=source.received,
        address=source.address,
        api_version=source.api_version,
        batch=batch,
        search=reply.search if reply else None,
        format=FORMAT,
    )


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


# Lets the first of several calls that start alike go ahead, so that the others can read its start from a cache.
#
# A provider can read from its cache only what an earlier call has already written. Calls that are made at the same time
# would each pay for the whole start, and some providers charge more for writing than for reading.


class FirstCalls:
    """For one event loop: which starts have been sent to which model."""

    def __init__(self) -> None:
        self._sent: dict[str, asyncio.Event] = {}

    @asynccontextmanager
    async def turn(self, request: ModelRequest) -> AsyncIterator[None]:
        """Around a call. All but the first with a stable start wait for the first to end, however it ends."""
        provider = split_name(request.model).provider
        if not request.messages[0].stable or rule_for(provider, request, request.sent_as) is None:
            yield
            return
        key = f"{request.model} {cache_key(request)}"
        sent = self._sent.get(key)
        if sent is not None:
            await sent.wait()
            yield
            return
        self._sent[key] = asyncio.Event()
        try:
            yield
        finally:
            self._sent[key].set()
