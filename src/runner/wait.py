"""Waiting for asynchronous work from ordinary code, also where an event loop is running, as in a notebook."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from threading import Event, Thread
from typing import Any, TypeVar

from ..calls.stop import Stop

T = TypeVar("T")


def wait(work: Callable[[Stop], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end, in a thread with an event loop of its own.

    Ctrl-C asks the work to stop after the calls in flight, and waits for its end. A second Ctrl-C does not wait.
    """
    results: list[T] = []
    errors: list[BaseException] = []
    stops: list[Callable[[], object]] = []
    interrupted, finished = Event(), Event()

    async def main() -> T:
        stop, loop = Stop(), asyncio.get_running_loop()
        stops.append(lambda: loop.call_soon_threadsafe(stop.ask))
        if interrupted.is_set():  # before there was anything to stop
            stop.ask()
        return await work(stop)

    def target() -> None:
        try:
            results.append(asyncio.run(main()))
        except BaseException as error:
            errors.append(error)
        finally:
            finished.set()

    Thread(target=target, name="medicare-eval", daemon=True).start()
    while not finished.is_set():
        try:
            finished.wait()  # not Thread.join: on Python 3.11 a thread whose join was interrupted counts as ended
        except KeyboardInterrupt:
            if interrupted.is_set():
                raise
            interrupted.set()
            for stop in stops:
                with contextlib.suppress(RuntimeError):  # the work has just ended, and its loop is closed
                    stop()
    if errors:
        raise errors[0]
    return results[0]
