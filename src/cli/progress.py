"""While a run is in progress: a bar on stderr for a person, JSON lines for a program, and Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from typing import Any

from ..calls.stop import Stop
from ..runner.progress import RunProgress
from ..text.escape import plain

EVERY_S = 10.0


class ShowProgress:
    """Shows a run's progress on stderr: a live bar in a terminal; elsewhere a JSON line at the start, every ten
    seconds and at the end.

    Example:
        >>> import medicare_eval as me
        >>> run = me.run(
        ...     scenarios=["scenarios/v1/scenario_001.json"], targets=["fake:careful"], progress=me.ShowProgress()
        ... )
    """

    def __init__(self) -> None:
        self._began = self._said = 0.0
        self._started = False
        self._notice = ""
        self._bar: Any = None
        self._task: Any = None

    def __call__(self, progress: RunProgress) -> None:
        if not self._started:
            self._start(progress)
        elif progress.notice and progress.notice != self._notice:
            self._tell(progress)
        elif progress.finished and self._bar:
            self._bar.stop()
        elif progress.finished:
            self._say("end", progress)
        elif self._bar:
            rate = f"{progress.calls / self._elapsed():.0f}"
            self._bar.update(self._task, completed=progress.trials_done, calls=progress.calls, rate=rate)
        elif time.monotonic() - self._said > EVERY_S:
            self._say("progress", progress)

        self._notice = progress.notice

    def _tell(self, progress: RunProgress) -> None:
        """A sentence above the bar, or a line of its own."""
        if self._bar:
            self._bar.console.print(plain(progress.notice), markup=False, highlight=False)
        else:
            self._say("waiting", progress)

    def _elapsed(self) -> float:
        return max(0.001, time.monotonic() - self._began)

    def _start(self, progress: RunProgress) -> None:
        self._started, self._began = True, time.monotonic()
        if not sys.stderr.isatty():
            self._say("start", progress)
            return
        from rich import progress as bars
        from rich.console import Console

        console = Console(stderr=True)
        console.print(
            str(progress.run), markup=False, highlight=False, soft_wrap=True
        )  # too long to share the bar's line
        self._bar = bars.Progress(
            bars.TextColumn("trials"),
            bars.BarColumn(),
            bars.MofNCompleteColumn(),
            bars.TextColumn("{task.fields[calls]} calls, {task.fields[rate]}/s"),
            bars.TimeRemainingColumn(),
            console=console,
        )
        done = progress.trials_done
        self._task = self._bar.add_task("", total=progress.trials, completed=done, calls=0, rate="0")
        self._bar.start()

    def _say(self, event: str, progress: RunProgress) -> None:
        self._said = time.monotonic()
        elapsed = self._elapsed()
        made = progress.trials_done - progress.trials_before
        left = elapsed / made * (progress.trials - progress.trials_done) if made else None
        line = {
            "event": event,
            "run": str(progress.run),
            "trials_done": progress.trials_done,
            "trials": progress.trials,
            "calls": progress.calls,
            "calls_not_ok": progress.calls_not_ok,
            "calls_per_s": round(progress.calls / elapsed, 1),
            "elapsed_s": round(elapsed, 1),
            "left_s": None if left is None else round(left, 1),
            **({"notice": progress.notice} if progress.notice else {}),
        }
        print(json.dumps(line), file=sys.stderr, flush=True)


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
