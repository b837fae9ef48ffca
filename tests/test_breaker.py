"""Outages and denied calls: never a result, never lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from src.adapters.base import CallFailure, Message, ModelReply, ModelRequest
from src.calls.breaker import PROBE, Breaker, ProbeResult, Tries
from src.calls.gateway import CallId, LiveGateway
from src.calls.limits import Limits
from src.calls.resources import CallResources
from src.calls.stop import Stop, Stopping
from src.schemas import CallPolicy, CallRecord
from tests.cases import each_case
from tests.test_gateway import REQUEST, Memory, reply, run
from tests.virtual_time import VirtualTime

POLICY = CallPolicy(max_attempts=2)
Answers = Callable[[ModelRequest, float], ModelReply | CallFailure]


@dataclass
class Server:
    """A model that answers by the time of day and what it is asked; each call takes 0.1 s."""

    answers: Answers
    clock: VirtualTime
    asked: list[float] = field(default_factory=list)
    probes: int = 0

    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        self.asked.append(self.clock())
        self.probes += request.messages[0].content == PROBE
        await asyncio.sleep(0.1)
        came = self.answers(request, self.clock())
        if isinstance(came, CallFailure):
            raise came
        return came

    async def aclose(self) -> None: ...


@dataclass
class Ran:
    records: list[CallRecord]
    memory: Memory
    server: Server
    notices: list[str]

    @property
    def attempts(self) -> list[CallRecord]:
        return [one for name, one in self.memory.records.items() if not name.startswith("probe")]


def ran(answers: Answers, calls: int = 20, *, at_once: int = 4, max_outage_s: float = 1_800.0) -> Ran:
    clock, memory, notices = VirtualTime(), Memory(), list[str]()
    server = Server(answers, clock)

    async def go() -> list[CallRecord]:
        resources = CallResources(
            adapter_for=lambda provider: server,
            limits=Limits(at_once),
            stop=Stop(),
            max_outage_s=max_outage_s,
            on_notice=notices.append,
        )
        gateway = LiveGateway(memory, POLICY, resources)
        gate = asyncio.Semaphore(at_once)

        async def one(number: int) -> CallRecord:
            request = replace(REQUEST, messages=(Message("user", f"question {number}"),))
            async with gate:
                return await gateway.call(CallId(f"t{number}", "target", "Q1"), request)

        ends = await asyncio.gather(*map(one, range(calls)), return_exceptions=True)
        problems = [end for end in ends if isinstance(end, BaseException)]
        if problems:
            raise problems[0]
        return [end for end in ends if isinstance(end, CallRecord)]

    try:
        records = run(go(), clock)
    except Stopping as stopped:
        raise Stopped(str(stopped), Ran([], memory, server, notices)) from None
    return Ran(records, memory, server, notices)


class Stopped(Exception):
    def __init__(self, message: str, found: Ran) -> None:
        super().__init__(message)
        self.found = found


def down(first: float, last: float, failure: CallFailure) -> Answers:
    return lambda request, now: failure if first <= now < last else reply("Yes.")


FAULTS = [
    CallFailure("transient", "HTTP 503", status=503),
    CallFailure("transient", "ConnectError (Connection refused)"),
    CallFailure("timeout", "no complete answer within 120 s"),
    CallFailure("malformed", "HTTP 200, but the body is not JSON"),
    CallFailure("rate_limited", "HTTP 429", status=429),
]


@each_case("failure", FAULTS, ids=lambda failure: failure.message)
@each_case("at_once", [1, 4, 20])
@each_case("lasts", [3.0, 60.0, 1_200.0])
def test_an_outage_is_waited_out_and_every_call_is_answered(failure: CallFailure, at_once: int, lasts: float) -> None:
    found = ran(down(0.25, 0.25 + lasts, failure), at_once=at_once)
    assert [one.outcome for one in found.records] == ["ok"] * 20
    assert all(one.final == (one.outcome == "ok") for one in found.attempts)
    assert len(found.attempts) < 20 + 10 * at_once, "a model that is down is not called on and on"
    assert found.server.probes < 80


def test_a_model_that_stays_down_stops_the_run_and_nothing_is_final() -> None:
    with pytest.raises(
        Stopped, match=r"fake:careful has answered nothing for 60 seconds, longer than `max_outage`"
    ) as e:
        ran(down(0.25, 1e9, FAULTS[0]), max_outage_s=60.0)
    found = e.value.found
    assert "It last said: HTTP 503" in str(e.value)
    assert {one.outcome for one in found.attempts if one.final} == {"ok"}
    assert found.server.asked[-1] == pytest.approx(60, abs=5)
    assert any("does not answer (HTTP 503); trying again in 4 s" in notice for notice in found.notices)


@each_case("at_once", [1, 4])
def test_a_question_that_always_fails_is_given_up_and_the_others_are_answered(at_once: int) -> None:
    def answers(request: ModelRequest, now: float) -> ModelReply | CallFailure:
        return FAULTS[0] if request.messages[0].content == "question 3" else reply("Yes.")

    found = ran(answers, at_once=at_once)
    assert [one.outcome for one in found.records] == ["ok"] * 3 + ["transient"] + ["ok"] * 16
    assert sum(one.call.startswith("t3|") for one in found.attempts) <= POLICY.max_attempts + 1


@each_case("status", [401, 402, 403, 404])
@each_case("outcome", ["denied", "permanent"])
def test_a_denied_call_stops_the_run_at_once(status: int, outcome: str) -> None:
    refused = CallFailure(outcome, f"HTTP {status}: no", status=status, address="http://127.0.0.1/v1/chat")  # type: ignore[arg-type]
    with pytest.raises(
        Stopped, match=rf"fake:careful cannot be used at http://127.0.0.1/v1/chat: HTTP {status}: no"
    ) as e:
        ran(down(0.25, 1e9, refused))
    found = e.value.found
    denied = [one for one in found.attempts if one.outcome == "denied"]
    assert 1 <= len(denied) <= 4, "only calls that were in flight"
    assert not any(one.final for one in denied)


def test_a_denied_call_is_made_again_when_the_run_is_resumed() -> None:
    memory = Memory()
    clock = VirtualTime()
    refused = CallFailure("denied", "HTTP 401: no", status=401)

    async def go(answers: Answers) -> CallRecord:
        server = Server(answers, clock)
        resources = CallResources(adapter_for=lambda provider: server, limits=Limits(4), stop=Stop())
        return await LiveGateway(memory, POLICY, resources).call(CallId("t", "target", "Q1"), REQUEST)

    with pytest.raises(Stopping):
        run(go(lambda request, now: refused))
    assert run(go(lambda request, now: reply("Yes."))).text == "Yes."
    assert [one.final for one in memory.records.values()] == [False, True]


def probed(*answers: Answers) -> None:
    clock = VirtualTime()
    requests = [replace(REQUEST, model=f"fake:{number}") for number in range(len(answers))]

    def answer(request: ModelRequest, now: float) -> ModelReply | CallFailure:
        return answers[int(request.model.partition(":")[2])](request, now)

    async def go() -> None:
        server = Server(answer, clock)
        resources = CallResources(adapter_for=lambda provider: server, limits=Limits(4), stop=Stop())
        await LiveGateway(Memory(), POLICY, resources).probes.probe(requests)

    run(go(), clock)


def up(request: ModelRequest, now: float) -> ModelReply | CallFailure:
    return reply("OK")


def test_models_that_answer_pass_the_probe() -> None:
    probed(up, lambda request, now: reply("", "refused"), lambda request, now: FAULTS[0] if now < 0.5 else reply("OK"))


@each_case(
    "failure",
    [*FAULTS, CallFailure("permanent", "HTTP 400: unknown parameter", status=400)],
    ids=lambda one: one.message,
)
def test_a_model_that_does_not_answer_a_probe_stops_the_run_before_its_first_trial(failure: CallFailure) -> None:
    with pytest.raises(Stopping) as e:
        probed(up, lambda request, now: failure)
    assert f"fake:1 did not answer a short test call: {failure.message}." in str(e.value)


def test_a_denied_probe_says_so() -> None:
    with pytest.raises(Stopping, match=r"fake:0 cannot be used: HTTP 401: bad key\."):
        probed(lambda request, now: CallFailure("denied", "HTTP 401: bad key", status=401), up)


def test_an_answer_to_what_was_asked_before_an_outage_does_not_show_that_the_model_is_up() -> None:
    """A slow answer arrives between the failures of another call, whose attempts are then used up."""

    clock = {"now": 0.0}
    tries, policy = Tries(), CallPolicy(max_attempts=2)
    asked: list[float] = []

    async def probe() -> ProbeResult:
        asked.append(clock["now"])
        return ProbeResult(answered=True)

    async def go() -> tuple[bool, bool]:
        async def pause(seconds: float) -> None: ...

        breaker = Breaker(
            "fake:careful", max_outage_s=60, probe=probe, ask=probe, pause=pause, give_up=print, on_pause=print,
            clock=lambda: clock["now"],
        )  # fmt: skip
        clock["now"] = 1.0
        breaker.failed(tries, policy, rate_limited=False)
        clock["now"] = 2.0
        breaker.answered(began=0.5)  # sent before the first failure
        clock["now"] = 3.0
        first = breaker.failed(tries, policy, rate_limited=False)
        await breaker.ready()
        assert asked == [3.0]  # so the model is probed before anything is final
        clock["now"] = 4.0
        breaker.answered(began=3.5)
        clock["now"] = 5.0
        return first, breaker.failed(tries, policy, rate_limited=False)

    assert asyncio.run(go()) == (False, True)
