"""Asking a run to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from ..errors import IncompleteRun


class Stopping(IncompleteRun):
    """The run was asked to stop: calls in flight finish and are kept; no new call starts."""


class Stop:
    """Asks a run to stop: calls in flight finish, and calls that wait for their turn are not made."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.reason = "The run was stopped before its end."
        self._listeners: list[Callable[[], None]] = []

    def ask(self, reason: str | None = None) -> None:
        if reason and not self.event.is_set():
            self.reason = reason
        self.event.set()
        for listener in self._listeners:
            listener()

    def listen(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def check(self) -> None:
        if self.event.is_set():
            raise Stopping(self.reason)


async def pause(stop: Stop, seconds: float) -> None:
    """Wait for so long, or until the run is asked to stop."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.event.wait()
