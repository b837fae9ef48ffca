"""The clock that the tests of waits rely on."""

from __future__ import annotations

import asyncio

import pytest

from tests.virtual_time import VirtualTime


def test_a_sleep_takes_virtual_seconds_and_timers_fire_in_order() -> None:
    async def sleep(seconds: float, seen: list[float]) -> None:
        await asyncio.sleep(seconds)
        seen.append(seconds)

    async def go() -> list[float]:
        seen: list[float] = []
        await asyncio.gather(*(sleep(seconds, seen) for seconds in (5_000.0, 0.5, 70.0)))
        return seen

    with VirtualTime() as clock:
        assert clock.run(go()) == [0.5, 70.0, 5_000.0]
        assert clock() == pytest.approx(5_000.0)


def test_work_that_can_never_end_fails_instead_of_hanging() -> None:
    async def go() -> None:
        await asyncio.Event().wait()

    with VirtualTime() as clock, pytest.raises(AssertionError, match="every task waits"):
        clock.run(go())
