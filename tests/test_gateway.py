"""The gateway: retries, deadlines, recorded calls, changed requests, replay, stopping, and the waits between attempts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, TypeVar
from unittest.mock import patch

import pytest

from src.adapters.base import Adapter, CallFailure, FailureOutcome, Message, ModelReply, ModelRequest, ReplyOutcome
from src.calls import gateway as gateway_module
from src.calls.breaker import PROBE
from src.calls.gateway import CallId, LiveGateway, ReplayGateway
from src.calls.limits import FIRST_CEILING_S, Limiter, Limits
from src.calls.resources import CallResources
from src.calls.stop import Stop, Stopping
from src.errors import IntegrityError
from src.schemas import CallPolicy, CallRecord, Usage
from tests.cases import each_case
from tests.helpers import call_record
from tests.virtual_time import VirtualTime

T = TypeVar("T")
CALL = CallId("s1.fake-careful.r1", "target", "Q1")
REQUEST = ModelRequest(model="fake:careful", messages=(Message("user", "Hello?"),), max_tokens=10, seed=1)


async def settle() -> None:
    """Until no task can go on without an answer or a timer."""
    for _ in range(20):
        await asyncio.sleep(0)


@dataclass
class Memory:
    """A journal in memory."""

    records: dict[str, CallRecord] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)

    def lookup(self, call: str) -> CallRecord | None:
        return self.records.get(call)

    async def append(self, record: CallRecord) -> None:
        assert record.call not in self.records, "a call is recorded once"
        self.events.append(f"append {record.call}")
        self.records[record.call] = record


def reply(text: str = "An answer.", outcome: ReplyOutcome = "ok") -> ModelReply:
    return ModelReply(
        outcome=outcome,
        text=text,
        sent={"asked": 1},
        received='{"raw": 1}',
        stop_reason="stop",
        served_model="fake-careful",
        fingerprint="fp",
        request_id="r-1",
        usage=Usage(input_tokens=3),
        not_applied=("seed",),
    )


@dataclass
class Scripted:
    """An adapter that answers from a list; a callable in it is called first."""

    script: list[ModelReply | CallFailure | Callable[[], ModelReply | CallFailure]]
    made: int = 0
    timeouts: list[float] = field(default_factory=list)

    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        self.made += 1
        self.timeouts.append(timeout_s)
        assert self.script, "called more often than the test planned"
        step = self.script.pop(0)
        came = step() if callable(step) else step
        if isinstance(came, CallFailure):
            raise came
        return came

    async def aclose(self) -> None:
        raise AssertionError("the gateway opens and closes no adapter")


def opened(
    adapter: Scripted, memory: Memory | None = None, *, stop: Stop | None = None, **policy: float
) -> tuple[LiveGateway, Memory]:
    kept = memory or Memory()

    def adapter_for(provider: str) -> Adapter:
        assert provider == "fake"
        return adapter

    def note(record: CallRecord) -> None:
        kept.events.append(f"tell {record.call}")

    made = CallPolicy.model_validate({"max_attempts": 3, **policy})
    resources = CallResources(adapter_for=adapter_for, limits=Limits(4), stop=stop or Stop())
    return LiveGateway(kept, made, resources, note), kept


def run(work: Coroutine[Any, Any, T], clock: VirtualTime | None = None) -> T:
    """The gateway, its limiters and the event loop all go by one virtual clock, so that no test waits."""
    now = clock or VirtualTime()

    def limiter(limits: Limits, provider: str) -> Limiter:
        return limits._limiters.setdefault(provider, Limiter(limits._most, clock=now))

    monotonic = patch.object(gateway_module, "time", SimpleNamespace(monotonic=now))
    with now, monotonic, patch.object(Limits, "limiter", limiter):
        return now.run(work)


def call(
    adapter: Scripted, memory: Memory | None = None, clock: VirtualTime | None = None, **policy: float
) -> tuple[CallRecord, Memory]:
    async def go() -> tuple[CallRecord, Memory]:
        made, kept = opened(adapter, memory, stop=None, **policy)
        return await made.call(CALL, REQUEST), kept

    return run(go(), clock)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """No waiting between attempts; the Retry-After of each is kept."""
    seen: list[float | None] = []

    def at_once(attempt: int, seed: int, retry_after_s: float | None = None) -> float:
        seen.append(retry_after_s)
        return 0.0

    monkeypatch.setattr(gateway_module, "backoff_s", at_once)
    return seen


def test_a_call_is_made_recorded_and_then_returned() -> None:
    adapter = Scripted([reply()])
    record, memory = call(adapter, timeout_s=7.5)
    name = "s1.fake-careful.r1|target|Q1|0|0|1"
    assert memory.records == {name: record}
    assert memory.events == [f"append {name}", f"tell {name}"]
    assert adapter.timeouts == [7.5]
    assert record.request_sha256 == REQUEST.sha256()
    assert (record.call, record.model, record.outcome, record.final) == (name, "fake:careful", "ok", True)
    assert (record.text, record.sent, record.received) == ("An answer.", {"asked": 1}, '{"raw": 1}')
    assert (record.stop_reason, record.served_model, record.fingerprint) == ("stop", "fake-careful", "fp")
    assert (record.request_id, record.usage, record.not_applied) == ("r-1", Usage(input_tokens=3), ("seed",))
    assert (record.error, record.status) == (None, None)
    assert record.latency_ms >= 0


@each_case("outcome", ["refused", "blocked", "truncated", "empty"])
def test_a_refusal_or_an_empty_or_cut_off_answer_is_final(outcome: ReplyOutcome) -> None:
    record, memory = call(Scripted([reply("", outcome)]))
    assert (record.outcome, record.final, record.text, len(memory.records)) == (outcome, True, "", 1)


@pytest.mark.parametrize("outcome", ["transient", "timeout", "rate_limited", "malformed"])
def test_a_passing_failure_is_tried_again(outcome: FailureOutcome, waits: list[float | None]) -> None:
    failure = CallFailure(
        outcome, "busy", status=503, retry_after_s=0.02, sent={"a": 1}, received="<html>", request_id="r-0"
    )
    record, memory = call(Scripted([failure, reply("At last.")]))
    first, second = memory.records.values()
    assert record == second
    assert (first.outcome, first.final, first.text) == (outcome, False, None)
    assert (first.error, first.status, first.sent, first.received) == ("busy", 503, {"a": 1}, "<html>")
    assert first.request_id == "r-0"
    assert (second.call[-2:], second.outcome, second.final, second.text) == ("|2", "ok", True, "At last.")
    assert waits == [0.02, None]


def test_a_lasting_failure_is_final_at_once() -> None:
    adapter = Scripted([CallFailure("permanent", "too long", status=400)])
    record, _ = call(adapter)
    assert (record.outcome, record.final, record.text, adapter.made) == ("permanent", True, None, 1)


@pytest.mark.usefixtures("waits")
@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_a_call_that_always_fails_is_given_up_once_the_model_has_answered_something_else(attempts: int) -> None:
    failing = CallFailure("timeout", "slow")
    adapter = Scripted([*[failing] * attempts, reply("OK"), failing])  # the reply is to the probe
    record, memory = call(adapter, max_attempts=attempts)
    assert not adapter.script
    own = [one for name, one in memory.records.items() if not name.startswith("probe")]
    assert [one.final for one in own] == [False] * attempts + [True]
    assert record.call.endswith(f"|{attempts + 1}")
    assert record.outcome == "timeout"


def test_being_told_to_slow_down_uses_up_time_and_no_attempt() -> None:
    busy = CallFailure("rate_limited", "later", retry_after_s=1.0)
    adapter = Scripted([busy, busy, busy, busy, reply("At last.")])
    record, _ = call(adapter, max_attempts=2)
    assert (record.text, adapter.made) == ("At last.", 5)


def test_a_call_that_is_always_told_to_slow_down_is_given_up_after_its_deadline() -> None:
    busy = CallFailure("rate_limited", "too large", retry_after_s=30.0)

    class Selective(Scripted):
        async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
            if request.messages[0].content == PROBE:
                return reply("OK")
            raise busy

    record, memory = call(Selective([]), max_attempts=2, deadline_s=59.0)
    assert (record.final, record.outcome) == (True, "rate_limited")
    assert 3 <= sum(not name.startswith("probe") for name in memory.records) <= 6


def test_a_retry_after_longer_than_the_deadline_stops_the_run_and_resume_tries_again() -> None:
    memory = Memory()
    with pytest.raises(Stopping, match="3600 seconds"):
        call(Scripted([CallFailure("rate_limited", "later", retry_after_s=3_600.0)]), memory, deadline_s=60.0)
    (record,) = memory.records.values()
    assert (record.outcome, record.final) == ("rate_limited", False), "a resume tries it again"


@pytest.mark.usefixtures("waits")
def test_an_unexpected_error_in_an_adapter_is_raised_and_not_recorded() -> None:
    def broken() -> ModelReply:
        raise ZeroDivisionError

    memory = Memory()
    with pytest.raises(ZeroDivisionError):
        call(Scripted([broken]), memory)
    assert not memory.records


def recorded(*outcomes: str, final_at: int | None = None) -> Memory:
    memory = Memory()
    for number, outcome in enumerate(outcomes, 1):
        name = CALL.attempt(number)
        text = "Recorded." if outcome == "ok" else None
        memory.records[name] = call_record(
            name,
            request=REQUEST,
            outcome=outcome,  # type: ignore[arg-type] # outcomes are spelt out by the tests
            text=text,
            final=number == (final_at or len(outcomes)),
        )
    return memory


def test_a_recorded_call_is_not_made_again() -> None:
    memory = recorded("timeout", "ok")
    adapter = Scripted([])
    record, _ = call(adapter, memory)
    assert (record.text, adapter.made, memory.events) == ("Recorded.", 0, [])


@pytest.mark.usefixtures("waits")
def test_recorded_attempts_are_not_made_again_and_new_ones_have_their_own_count() -> None:
    memory = recorded("timeout", "timeout", final_at=9)  # perhaps in an outage that stopped the run
    adapter = Scripted([CallFailure("timeout", "slow"), reply("Now.")])
    record, _ = call(adapter, memory, max_attempts=2)
    assert adapter.made == 2
    assert (record.call, record.final, record.text) == (CALL.attempt(4), True, "Now.")


def test_a_recorded_final_failure_is_not_tried_again() -> None:
    record, _ = call(Scripted([]), recorded("transient", final_at=1))
    assert (record.outcome, record.final) == ("transient", True)


CHANGED = [
    replace(REQUEST, messages=(Message("user", "Hello!"),)),
    replace(REQUEST, system="Be brief."),
    replace(REQUEST, temperature=0.5),
    replace(REQUEST, max_tokens=11),
    replace(REQUEST, seed=2),
    replace(REQUEST, model="fake:wrong"),
    replace(REQUEST, api_id="careful-2026"),
]


@each_case("request_", CHANGED)
def test_a_recorded_call_that_asked_something_else_is_refused(request_: ModelRequest) -> None:
    memory = recorded("ok")
    for made in (ReplayGateway(memory), opened(Scripted([]), memory)[0]):
        with pytest.raises(
            IntegrityError, match=r"call s1\.fake-careful\.r1\|target\|Q1\|0\|0\|1 has a different request"
        ):
            run(made.call(CALL, request_))


def test_schema_and_hint_are_not_part_of_what_makes_a_request_the_same() -> None:
    same = replace(REQUEST, response_schema={"title": "X"}, hint="s1/Q1")
    assert run(ReplayGateway(recorded("ok")).call(CALL, same)).text == "Recorded."


def test_replay_answers_from_the_journal_alone() -> None:
    assert run(ReplayGateway(recorded("timeout", "ok")).call(CALL, REQUEST)).text == "Recorded."
    for memory in (Memory(), recorded("timeout", final_at=9)):
        with pytest.raises(IntegrityError, match="no finished call"):
            run(ReplayGateway(memory).call(CALL, REQUEST))


def test_other_calls_of_the_journal_are_not_this_call() -> None:
    memory = recorded("ok")
    others = [
        CallId("s1.fake-careful.r2", "target", "Q1"),
        CallId(CALL.trial, "extractor", "Q1"),
        CallId(CALL.trial, "target", "Q2"),
        CallId(CALL.trial, "target", "Q1", judge=1),
        CallId(CALL.trial, "target", "Q1", ask=1),
    ]
    assert len({one.attempt(1) for one in [CALL, *others]}) == 6
    for other in others:
        with pytest.raises(IntegrityError):
            run(ReplayGateway(memory).call(other, REQUEST))


def test_after_a_stop_no_call_is_made_but_recorded_calls_are_still_returned() -> None:
    async def go() -> None:
        stop = Stop()
        stop.ask("Because the test says so.")
        stop.ask("A second reason does not replace the first.")
        adapter = Scripted([])
        made, _ = opened(adapter, stop=stop)
        with pytest.raises(Stopping, match="Because the test says so"):
            await made.call(CALL, REQUEST)
        assert adapter.made == 0
        made, _ = opened(adapter, recorded("ok"), stop=stop)
        assert (await made.call(CALL, REQUEST)).text == "Recorded."

    run(go())


def test_a_call_in_flight_is_finished_and_kept() -> None:
    async def go() -> None:
        stop = Stop()

        def stop_meanwhile() -> ModelReply:
            stop.ask()
            return reply("Finished.")

        made, memory = opened(Scripted([stop_meanwhile]), stop=stop)
        assert (await made.call(CALL, REQUEST)).text == "Finished."
        assert len(memory.records) == 1

    run(go())


def test_stopping_ends_a_wait_and_resume_makes_the_next_attempt() -> None:
    clock = VirtualTime()

    async def go() -> None:
        stop = Stop()
        adapter = Scripted([CallFailure("rate_limited", "later", retry_after_s=500.0), reply("On resume.")])
        made, memory = opened(adapter, stop=stop)
        waiting = asyncio.create_task(made.call(CALL, REQUEST))
        while not memory.records:
            await asyncio.sleep(0)
        await settle()
        assert not waiting.done()
        stop.ask()
        with pytest.raises(Stopping):
            await waiting
        assert clock() == 0, "the 500 seconds were not waited for"
        assert [one.final for one in memory.records.values()] == [False]
        resumed, _ = opened(adapter, memory)
        assert (await resumed.call(CALL, REQUEST)).call == CALL.attempt(2)

    run(go(), clock)


def test_stopping_wakes_calls_that_wait_for_their_turn() -> None:
    async def go() -> None:
        stop = Stop()
        in_flight, finish = asyncio.Event(), asyncio.Event()

        class Slow:
            made = 0

            async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
                self.made += 1
                in_flight.set()
                await finish.wait()
                return reply("Finished.")

            async def aclose(self) -> None: ...

        adapter, memory = Slow(), Memory()
        resources = CallResources(adapter_for=lambda provider: adapter, limits=Limits(1), stop=stop)
        made = LiveGateway(memory, CallPolicy(), resources)
        first = asyncio.create_task(made.call(CALL, REQUEST))
        await in_flight.wait()
        second = asyncio.create_task(made.call(replace(CALL, turn="Q2"), REQUEST))
        await settle()
        assert adapter.made == 1, "one place, one call"
        stop.ask()
        with pytest.raises(Stopping):
            await second
        finish.set()
        assert (await first).text == "Finished."
        assert (adapter.made, list(memory.records)) == (1, [CALL.attempt(1)])

    run(go())


class CallBudget:
    """So much money; every attempt sets one piece of it aside and spends it."""

    def __init__(self, money: int, price: int = 1) -> None:
        self.money, self.price, self.held = money, price, 0
        self.settled: list[tuple[float, str]] = []
        self.changed = asyncio.Event()

    async def reserve(self, request: ModelRequest) -> float | None:
        while self.held + 1 > self.money:
            if not self.held:
                return None
            self.changed.clear()
            await self.changed.wait()
        self.held += 1
        return 1.0

    def release(self, reserved: float) -> None:
        self.held -= 1

    def settle(self, reserved: float, record: CallRecord) -> None:
        self.held -= 1
        self.money -= self.price
        self.settled.append((reserved, record.outcome))
        self.changed.set()

    def open(self) -> None:
        self.changed.set()


@pytest.mark.usefixtures("waits")
def test_every_attempt_reserves_money_and_a_call_past_the_limit_is_not_made() -> None:
    async def go() -> None:
        adapter, memory, budget, stop = (
            Scripted([CallFailure("timeout", "slow"), reply()]),
            Memory(),
            CallBudget(2),
            Stop(),
        )
        resources = CallResources(adapter_for=lambda provider: adapter, limits=Limits(1), stop=stop, budget=budget)
        made = LiveGateway(memory, CallPolicy(), resources)
        assert (await made.call(CALL, REQUEST)).outcome == "ok"
        assert budget.settled == [(1.0, "timeout"), (1.0, "ok")]
        with pytest.raises(Stopping, match="max_cost"):
            await made.call(replace(CALL, turn="Q2"), REQUEST)
        assert (adapter.made, len(memory.records), stop.event.is_set()) == (2, 2, True)

    run(go())


@each_case(("price", "second"), [(0, "ok"), (1, "stopped")])
def test_a_call_waits_while_calls_in_flight_have_the_money_reserved(price: int, second: str) -> None:
    async def go() -> None:
        finish = asyncio.Event()

        class Slow:
            made = 0

            async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
                self.made += 1
                await finish.wait()
                return reply()

            async def aclose(self) -> None: ...

        adapter, budget, stop = Slow(), CallBudget(1, price), Stop()
        resources = CallResources(adapter_for=lambda provider: adapter, limits=Limits(4), stop=stop, budget=budget)
        made = LiveGateway(Memory(), CallPolicy(), resources)
        calls = [asyncio.create_task(made.call(replace(CALL, turn=turn), REQUEST)) for turn in ("Q1", "Q2")]
        await settle()
        assert (adapter.made, stop.event.is_set()) == (1, False), "the money of the first may yet come back"
        finish.set()
        first, other = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(first, CallRecord)
        assert first.outcome == "ok"
        assert ("stopped" if isinstance(other, Stopping) else getattr(other, "outcome", other)) == second

    run(go())


def test_the_next_attempt_waits_for_the_retry_after_and_a_drawn_time_on_top() -> None:
    adapter, clock = Scripted([CallFailure("rate_limited", "later", retry_after_s=40.0), reply()]), VirtualTime()
    record, _ = call(adapter, clock=clock, deadline_s=60.0)
    assert (record.outcome, adapter.made) == ("ok", 2)
    assert 40.0 < clock() <= 40.0 + FIRST_CEILING_S + 0.01
