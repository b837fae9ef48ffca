"""Ctrl-C while a run is in progress."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys

from ..calls.stop import Stop


def stop_on_signal(stop: Stop) -> None:
    """The first Ctrl-C lets calls in flight finish; the second ends the process at once."""
    asked = False

    def heard() -> None:
        nonlocal asked
        if asked:
            os._exit(130)
        asked = True
        stop.ask()
        print(
            "Stopping after in-flight calls finish. Press Ctrl-C again to quit immediately.",
            file=sys.stderr,
            flush=True,
        )

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C is a KeyboardInterrupt there
            loop.add_signal_handler(number, heard)
