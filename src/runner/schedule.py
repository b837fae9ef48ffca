"""Which trial runs next, and results handed on in plan order whatever order they finish in."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import IO

from .. import storage
from ..calls.stop import Stopping
from ..planning.trials import Trial
from ..schemas import TrialResult

STAGGER_S = 0.001
"""Between the starts of two workers: calls that start together come back together, and then queue for this process."""


class TrialSlots:
    """How many trials run at a time. Schedules that are given the same `free` share that number."""

    def __init__(
        self, number: int, free: asyncio.Semaphore | None = None, on_last_start: Callable[[], None] = lambda: None
    ) -> None:
        """`on_last_start` is called when no trial of this schedule waits any more."""
        self.number = number
        self.free = free or asyncio.Semaphore(number)
        self.on_last_start = on_last_start


class TargetQueues:
    """Picks the next trial from the target with the fewest trials in flight, so a slow target delays only itself."""

    def __init__(self, todo: Sequence[Trial]) -> None:
        self._waiting: dict[str, deque[int]] = {}
        for number, trial in enumerate(todo):
            self._waiting.setdefault(trial.target, deque()).append(number)
        self._in_flight: Counter[str] = Counter()

    def take(self) -> tuple[str, int] | None:
        """The target and the number of the trial."""
        waiting = [target for target, numbers in self._waiting.items() if numbers]
        if not waiting:
            return None
        target = min(waiting, key=self._in_flight.__getitem__)
        self._in_flight[target] += 1
        return target, self._waiting[target].popleft()

    def waiting(self) -> bool:
        """Whether a trial has not been started."""
        return any(self._waiting.values())

    def done(self, target: str) -> None:
        self._in_flight[target] -= 1

    def close(self) -> None:
        self._waiting.clear()


async def run_in_plan_order(
    run_trial: Callable[[Trial], Awaitable[TrialResult]],
    todo: Sequence[Trial],
    slots: TrialSlots,
    sink: Callable[[bytes], None],
    on_trial: Callable[[], None],
) -> None:
    """Run trials concurrently and pass their results, as bytes, to `sink` in plan order."""
    queues = TargetQueues(todo)
    with InOrder(sink) as ordered:

        async def worker() -> None:
            while queues.waiting():
                async with slots.free:
                    taken = queues.take()
                    if not queues.waiting():
                        slots.on_last_start()
                    if taken:
                        await carry_out(*taken)

        async def carry_out(target: str, number: int) -> None:
            result = await run_trial(todo[number])
            try:
                ordered.put(number, storage.encode_record(result))
            except OSError as error:  # the temporary file of results that wait for their turn
                raise storage.storage_error(
                    Path(tempfile.gettempdir()), error, resume="medicare-eval resume RUN"
                ) from None
            on_trial()
            queues.done(target)

        workers: list[asyncio.Task[None]] = []
        try:
            for _ in range(min(slots.number, len(todo))):
                workers.append(asyncio.create_task(worker()))
                await asyncio.sleep(STAGGER_S)
            for finished in asyncio.as_completed(workers):
                await finished
        except BaseException:
            # A stop, a failed disk or a fault ends every worker, but only once its calls in flight are in the journal.
            queues.close()
            ends = await asyncio.gather(*workers, return_exceptions=True)
            faults = [end for end in ends if isinstance(end, BaseException) and not isinstance(end, Stopping)]
            if faults:  # a fault makes the others stop: report the fault, not the stop
                raise faults[0] from None
            raise


# Putting results back into plan order without keeping them in memory.
#
# A trial that ends before its turn waits in a temporary file; only its position is kept in memory. So one slow target
# can fall far behind the others without slowing them, and memory does not grow with the number of trials.

IN_MEMORY = 8 * 1024 * 1024


class InOrder:
    """Takes numbered pieces in any order and passes them on by number, from 0."""

    def __init__(self, sink: Callable[[bytes], None]) -> None:
        self._sink = sink
        self._next = 0
        self._places: dict[int, tuple[int, int]] = {}
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - closed by __exit__
        self._end = 0

    def put(self, number: int, data: bytes) -> None:
        if number != self._next:
            self._file.seek(self._end)
            self._file.write(data)
            self._places[number] = (self._end, len(data))
            self._end += len(data)
            return
        self._hand_on(data)
        while self._next in self._places:
            offset, length = self._places.pop(self._next)
            self._file.seek(offset)
            self._hand_on(self._file.read(length))
        if not self._places and self._end:
            self._file.seek(0)
            self._file.truncate()
            self._end = 0

    def _hand_on(self, data: bytes) -> None:
        self._sink(data)
        self._next += 1

    def __enter__(self) -> InOrder:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
