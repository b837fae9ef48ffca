"""The order of trials: side by side, fair between targets, handed on in plan order."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass

import pytest

from src import storage
from src.calls.gateway import Stopping
from src.orchestrator import TargetQueues, in_plan_order
from src.runner.in_order import InOrder
from src.schemas import PlannedTurn


@dataclass(frozen=True)
class Errand:
    """All that scheduling needs of a trial."""

    number: int
    target: str


class Slow:
    """Trials of the target `stuck` wait for the gate; all others end at once."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.started: list[Errand] = []
        self.ended: list[Errand] = []

    async def run_trial(self, errand: Errand) -> PlannedTurn:
        self.started.append(errand)
        if errand.target == "stuck":
            await self.gate.wait()
        await asyncio.sleep(0)
        self.ended.append(errand)
        return PlannedTurn(turn_id=f"t{errand.number}", user_message="x")


def encoded(count: int) -> list[bytes]:
    return [storage.encode_record(PlannedTurn(turn_id=f"t{n}", user_message="x")) for n in range(count)]


def test_a_stuck_target_does_not_hold_up_the_others_and_the_order_is_kept() -> None:
    errands = [Errand(n, "stuck" if n % 2 == 0 else "quick") for n in range(100)]

    async def go() -> list[bytes]:
        slow, seen, ticks = Slow(), list[bytes](), list[int]()
        work = asyncio.create_task(in_plan_order(slow, errands, 6, seen.append, lambda: ticks.append(1)))  # type: ignore[arg-type]
        for _ in range(2_000):
            await asyncio.sleep(0)
        assert len([errand for errand in slow.ended if errand.target == "quick"]) == 50
        assert seen == []
        slow.gate.set()
        await work
        assert len(ticks) == 100
        return seen

    assert asyncio.run(go()) == encoded(100)


def test_lanes_share_places_fairly_and_leave_none_idle() -> None:
    queues = TargetQueues([Errand(n, "ab"[n >= 8]) for n in range(10)])  # type: ignore[misc]
    assert [queues.take() for _ in range(4)] == [("a", 0), ("b", 8), ("a", 1), ("b", 9)]
    assert [queues.take() for _ in range(2)] == [("a", 2), ("a", 3)]
    queues.close()
    assert queues.take() is None


def test_a_fault_in_one_trial_ends_the_run_after_the_others_calls() -> None:
    class Faulty(Slow):
        async def run_trial(self, errand: Errand) -> PlannedTurn:
            if errand.number == 3:
                raise RuntimeError("planted")
            return await super().run_trial(errand)

    async def go() -> None:
        await in_plan_order(Faulty(), [Errand(n, "quick") for n in range(50)], 4, lambda data: None, lambda: None)  # type: ignore[arg-type,misc]

    with pytest.raises(RuntimeError, match="planted"):
        asyncio.run(go())


def test_a_fault_is_told_even_where_it_made_others_stop_first() -> None:
    class Stopped(Slow):
        async def run_trial(self, errand: Errand) -> PlannedTurn:
            if errand.number == 0:
                await asyncio.sleep(0.05)
                raise RuntimeError("the fault")
            raise Stopping("because of it")

    async def go() -> None:
        await in_plan_order(Stopped(), [Errand(n, "quick") for n in range(4)], 4, lambda data: None, lambda: None)  # type: ignore[arg-type,misc]

    with pytest.raises(RuntimeError, match="the fault"):
        asyncio.run(go())


@pytest.mark.parametrize("seed", range(20))
def test_pieces_in_any_order_come_out_by_number(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("src.reorder.IN_MEMORY", 64)
    pieces = [f"piece {n} {'x' * (n % 7)}".encode() for n in range(60)]
    order = list(range(60))
    random.Random(seed).shuffle(order)
    seen: list[bytes] = []
    with InOrder(seen.append) as ordered:
        for number in order:
            ordered.put(number, pieces[number])
    assert seen == pieces
