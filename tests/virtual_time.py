"""Time for asyncio tests that passes only when every task waits: no test sleeps, and none depends on a busy machine.

with VirtualTime() as clock:
    clock.run(work())
    assert clock() == 0.2
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, Self, TypeVar

T = TypeVar("T")


class VirtualTime:
    """A clock that starts at 0 and an event loop that follows it. Calling the clock gives seconds."""

    def __init__(self) -> None:
        self.now = 0.0
        self._runner = asyncio.Runner(loop_factory=lambda: _Loop(self))

    def __call__(self) -> float:
        return self.now

    def __enter__(self) -> Self:
        self._runner.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._runner.__exit__(*raised)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to the end. Work in which every task waits for another one fails at once instead of hanging."""
        return self._runner.run(work)


class _Selector(selectors.SelectSelector):
    """Where the loop would sleep until its next timer, the clock jumps there."""

    def __init__(self, clock: VirtualTime) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise AssertionError("every task waits for another one, and no timer is set")
        if not ready and timeout:
            self._clock.now += timeout
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, clock: VirtualTime) -> None:
        super().__init__(_Selector(clock))
        self._clock = clock

    def time(self) -> float:
        return self._clock.now
