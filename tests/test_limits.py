"""The gate before a provider: narrows and widens with its answers, keeps to ceilings, lets nobody wait for another."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from src.calls.limits import (
    LAST_CEILING_S,
    Ceilings,
    Limiter,
    Limits,
    backoff_s,
)


class Clock:
    """Time that passes only when told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 10))


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


@pytest.mark.parametrize(("outcome", "status"), [("rate_limited", 429), ("transient", 529), ("transient", 503)])
def test_too_much_halves_what_is_let_through_once_a_round(outcome: str, status: int) -> None:
    async def go() -> None:
        clock = Clock()
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

    run(go())


def test_answers_widen_it_by_about_one_a_round_up_to_the_most() -> None:
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


def test_other_failures_neither_widen_nor_narrow() -> None:
    async def go() -> None:
        limiter = Limiter(8)
        limiter.limit = 4.0
        for outcome in ("timeout", "permanent", "malformed", "transient"):
            await answer(limiter, outcome, status=500)
        assert limiter.limit == 4.0

    run(go())


def test_a_retry_after_closes_the_gate_for_that_long() -> None:
    async def go() -> None:
        limiter = Limiter(8)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await answer(limiter, "rate_limited", retry_after_s=0.2, status=429)
        await answer(limiter)
        assert loop.time() - began >= 0.2

    run(go())


def test_requests_a_minute_are_kept_to() -> None:
    clock = Clock()
    limiter = Limiter(100, Ceilings(requests=60), clock)
    for _ in range(60):
        assert limiter._wait_s(1) == 0
        limiter._take(1)
    limiter.in_flight = 0
    assert limiter._wait_s(1) == pytest.approx(1.0)
    clock.now += 1.0
    assert limiter._wait_s(1) == 0


def test_tokens_a_minute_count_what_was_really_used() -> None:
    async def go() -> None:
        clock = Clock()
        limiter = Limiter(100, Ceilings(tokens=6_000), clock)
        async with limiter.slot(6_000) as slot:
            assert limiter._wait_s(1_000) == pytest.approx(10.0)
            slot.answered("ok", used=500)
        assert limiter._wait_s(1_000) == 0
        assert limiter._wait_s(1_000_000) == pytest.approx(5.0)  # more than a minute's worth waits for a full minute

    run(go())


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
    assert (asked or 0) <= wait <= (asked or 0) + min(LAST_CEILING_S, 0.5 * 2 ** (attempt - 1))
    assert wait == backoff_s(attempt, seed, asked)
