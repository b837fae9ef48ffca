"""The order of trials: concurrent, fair between targets, and handed on in plan order."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from src import storage
from src.calls.stop import Stopping
from src.runner.schedule import InOrder, TargetQueues, TrialSlots, run_in_plan_order
from src.schemas import PlannedTurn
from tests.cases import each_case
from tests.virtual_time import VirtualTime


@dataclass(frozen=True)
class Errand:
    """All that scheduling needs of a trial."""

    number: int
    target: str


class Slow:
    """Trials of the target `stuck` wait for the gate; all others end at once."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.ended: list[Errand] = []

    async def run_trial(self, errand: Errand) -> PlannedTurn:
        if errand.target == "stuck":
            await self.gate.wait()
        await asyncio.sleep(0)
        self.ended.append(errand)
        return PlannedTurn(turn_id=f"t{errand.number}", user_message="x")


def encoded(count: int) -> list[bytes]:
    return [storage.encode_record(PlannedTurn(turn_id=f"t{n}", user_message="x")) for n in range(count)]


async def schedule(
    run_trial: Callable[[Errand], Awaitable[PlannedTurn]],
    errands: list[Errand],
    concurrency: int,
    sink: Callable[[bytes], None] = lambda data: None,
    on_trial: Callable[[], None] = lambda: None,
) -> None:
    todo: Any = errands
    trial: Any = run_trial
    await run_in_plan_order(trial, todo, TrialSlots(concurrency), sink, on_trial)


def test_a_stuck_target_does_not_hold_up_the_others_and_results_stay_in_plan_order() -> None:
    errands = [Errand(n, "stuck" if n % 2 == 0 else "quick") for n in range(100)]

    async def go() -> list[bytes]:
        slow, seen, ticks = Slow(), list[bytes](), list[int]()
        work = asyncio.create_task(schedule(slow.run_trial, errands, 6, seen.append, lambda: ticks.append(1)))
        await asyncio.sleep(600)
        assert len([errand for errand in slow.ended if errand.target == "quick"]) == 50
        assert seen == []
        slow.gate.set()
        await work
        assert len(ticks) == 100
        return seen

    with VirtualTime() as clock:
        assert clock.run(go()) == encoded(100)


def test_targets_take_turns_and_no_place_stays_idle() -> None:
    todo: Any = [Errand(n, "ab"[n >= 8]) for n in range(10)]
    queues = TargetQueues(todo)
    assert [queues.take() for _ in range(4)] == [("a", 0), ("b", 8), ("a", 1), ("b", 9)]
    assert [queues.take() for _ in range(2)] == [("a", 2), ("a", 3)]
    queues.close()
    assert queues.take() is None


def test_a_fault_in_one_trial_ends_the_run_after_the_other_trials_in_flight() -> None:
    begun: list[int] = []
    ended: list[int] = []

    async def faulty(errand: Errand) -> PlannedTurn:
        begun.append(errand.number)
        await asyncio.sleep(1 if errand.number == 3 else 2)
        if errand.number == 3:
            raise RuntimeError("planted")
        ended.append(errand.number)
        return PlannedTurn(turn_id=f"t{errand.number}", user_message="x")

    with VirtualTime() as clock, pytest.raises(RuntimeError, match="planted"):
        clock.run(schedule(faulty, [Errand(n, "quick") for n in range(50)], 4))
    assert begun == [0, 1, 2, 3], "no new trial is begun after the fault"
    assert ended == [0, 1, 2], "trials in flight are finished"


def test_the_fault_is_raised_and_not_the_stop_that_it_caused() -> None:
    async def stopped(errand: Errand) -> PlannedTurn:
        if errand.number == 0:
            await asyncio.sleep(5)
            raise RuntimeError("the fault")
        raise Stopping("because of it")

    with VirtualTime() as clock, pytest.raises(RuntimeError, match="the fault"):
        clock.run(schedule(stopped, [Errand(n, "quick") for n in range(4)], 4))


@each_case("seed", range(20))
def test_pieces_in_any_order_come_out_by_number(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("src.runner.schedule.IN_MEMORY", 64)
    pieces = [f"piece {n} {'x' * (n % 7)}".encode() for n in range(60)]
    order = list(range(60))
    random.Random(seed).shuffle(order)
    seen: list[bytes] = []
    with InOrder(seen.append) as ordered:
        for number in order:
            ordered.put(number, pieces[number])
    assert seen == pieces
