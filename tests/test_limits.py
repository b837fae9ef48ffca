"""The rate limiter of a provider: it slows down and speeds up with the answers, and keeps to the user's ceilings."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from src.calls.limits import FIRST_CEILING_S, LAST_CEILING_S, Ceilings, Limiter, Limits, backoff_s
from tests.cases import each_case
from tests.virtual_time import VirtualTime


def run(work: Coroutine[Any, Any, None]) -> None:
    with VirtualTime() as clock:
        clock.run(work)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def answer(
    limiter: Limiter, outcome: str = "ok", retry_after_s: float | None = None, status: int | None = None
) -> None:
    async with limiter.slot(1) as slot:
        slot.answered(outcome, status=status, retry_after_s=retry_after_s, used=1)  # type: ignore[arg-type]


def test_no_more_than_the_limit_are_let_in_and_in_the_order_they_came() -> None:
    async def go() -> None:
        limiter = Limiter(3)
        gates = [asyncio.Event() for _ in range(8)]
        entered: list[int] = []

        async def caller(number: int) -> None:
            async with limiter.slot(1) as slot:
                entered.append(number)
                await gates[number].wait()
                slot.answered("ok", used=1)

        callers = [asyncio.create_task(caller(number)) for number in range(8)]
        await settle()
        assert entered == [0, 1, 2]
        gates[1].set()
        await settle()
        assert entered == [0, 1, 2, 3]
        for gate in gates:
            gate.set()
        await asyncio.gather(*callers)
        assert entered == list(range(8))
        assert limiter.in_flight == 0

    run(go())


@each_case(("outcome", "status"), [("rate_limited", 429), ("transient", 529), ("transient", 503)])
def test_an_overloaded_provider_gets_half_as_many_calls_once_per_round(outcome: str, status: int) -> None:
    clock = VirtualTime()

    async def go() -> None:
        limiter = Limiter(64, clock=clock)
        slots = [limiter.slot(1) for _ in range(40)]
        held = [await slot.__aenter__() for slot in slots]
        clock.now += 1
        for slot in held:
            slot.answered(outcome, status=status, used=None)  # type: ignore[arg-type]
        assert limiter.limit == 20  # half of the 40 in flight, and not forty times
        for context in slots:
            await context.__aexit__(None, None, None)
        clock.now += 1
        await answer(limiter, outcome, status=status)
        assert limiter.limit == 1

    with clock:
        clock.run(go())


def test_answers_raise_the_limit_by_about_one_per_round_up_to_the_most() -> None:
    async def go() -> None:
        limiter = Limiter(8)
        limiter.limit = 4.0
        for _ in range(4):
            await answer(limiter)
        assert 4.8 < limiter.limit < 5.0
        for _ in range(100):
            await answer(limiter, "truncated")
        assert limiter.limit == 8

    run(go())


def test_other_failures_do_not_change_the_limit() -> None:
    async def go() -> None:
        limiter = Limiter(8)
        limiter.limit = 4.0
        for outcome in ("timeout", "permanent", "malformed", "transient"):
            await answer(limiter, outcome, status=500)
        assert limiter.limit == 4.0

    run(go())


def test_no_call_is_let_in_before_the_retry_after_is_over() -> None:
    clock = VirtualTime()

    async def go() -> None:
        limiter = Limiter(8, clock=clock)
        await answer(limiter, "rate_limited", retry_after_s=90.0, status=429)
        assert clock() == 0
        await answer(limiter)

    with clock:
        clock.run(go())
    assert 90.0 <= clock() < 90.1


def test_requests_per_minute_are_kept_to() -> None:
    clock = VirtualTime()

    async def go() -> None:
        limiter = Limiter(100, Ceilings(requests=60), clock)
        for _ in range(60):
            await answer(limiter)
        assert clock() == 0, "a minute's worth is let in at once"
        for number in range(1, 6):
            await answer(limiter)
            assert number <= clock() < number + 0.1, "then one per second"

    with clock:
        clock.run(go())


def test_tokens_per_minute_count_what_was_really_used() -> None:
    clock = VirtualTime()

    async def go() -> None:
        limiter = Limiter(100, Ceilings(tokens=6_000), clock)
        async with limiter.slot(6_000) as slot:
            assert limiter._wait_s(1_000) == pytest.approx(10.0)
            slot.answered("ok", used=500)
        assert limiter._wait_s(1_000) == 0
        assert limiter._wait_s(1_000_000) == pytest.approx(5.0)  # more than a minute's worth waits for a full minute

    with clock:
        clock.run(go())


def test_one_throttled_provider_does_not_slow_another() -> None:
    async def go() -> None:
        limits = Limits(4)
        await answer(limits.limiter("slow"), "rate_limited", retry_after_s=600, status=429)
        stuck = asyncio.create_task(answer(limits.limiter("slow")))
        for _ in range(50):
            await answer(limits.limiter("quick"))
        assert not stuck.done()
        limits.open()
        await stuck

    run(go())


def test_a_caller_that_gives_up_frees_its_place() -> None:
    async def go() -> None:
        limiter = Limiter(1)
        context = limiter.slot(1)
        await context.__aenter__()
        waiting = [asyncio.create_task(answer(limiter)) for _ in range(3)]
        await settle()
        waiting[0].cancel()
        await settle()
        await context.__aexit__(None, None, None)
        await asyncio.gather(*waiting[1:])
        assert limiter.in_flight == 0

    run(go())


@given(st.integers(1, 50), st.integers(0, 2**31 - 1), st.none() | st.floats(0, 1_000))
def test_backoff_is_drawn_below_a_doubling_ceiling_and_never_sooner_than_asked(
    attempt: int, seed: int, asked: float | None
) -> None:
    wait = backoff_s(attempt, seed, asked)
    assert (asked or 0) <= wait <= (asked or 0) + min(LAST_CEILING_S, FIRST_CEILING_S * 2 ** (attempt - 1))
    assert wait == backoff_s(attempt, seed, asked)


def test_backoffs_spread_over_the_whole_range() -> None:
    waits = [backoff_s(20, seed) for seed in range(500)]
    assert min(waits) < LAST_CEILING_S * 0.1
    assert max(waits) > LAST_CEILING_S * 0.9
    assert max(backoff_s(1, seed) for seed in range(500)) <= FIRST_CEILING_S
