"""Progress on stderr: a bar for a person, JSON lines for a program, nothing on stdout."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from ..schemas import CallRecord

EVERY_S = 10.0


class Progress:
    """Counts trials and calls. In a terminal a live bar; elsewhere a JSON line at the start, every ten seconds, and at
    the end."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._live = sys.stderr.isatty() and not quiet
        self._quiet = quiet
        self._calls = self._failed = self._done = self._total = self._before = 0
        self._began = self._said = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def start(self, total: int, done: int) -> None:
        self._total, self._done, self._before = total, done, done
        self._began = time.monotonic()
        if self._live:
            from rich import progress
            from rich.console import Console

            self._bar = progress.Progress(
                progress.TextColumn("trials"),
                progress.BarColumn(),
                progress.MofNCompleteColumn(),
                progress.TextColumn("{task.fields[calls]} calls, {task.fields[rate]}/s"),
                progress.TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._task = self._bar.add_task("", total=total, completed=done, calls=0, rate="0")
            self._bar.start()
        else:
            self._say("start")

    def on_call(self, record: CallRecord) -> None:
        self._calls += 1
        self._failed += record.outcome != "ok"
        self._tick()

    def on_trial(self) -> None:
        self._done += 1
        self._tick()

    def _rate(self) -> float:
        return self._calls / max(0.001, time.monotonic() - self._began)

    def _tick(self) -> None:
        if self._bar:
            self._bar.update(self._task, completed=self._done, calls=self._calls, rate=f"{self._rate():.0f}")
        elif time.monotonic() - self._said > EVERY_S:
            self._say("progress")

    def _say(self, event: str) -> None:
        if self._quiet:
            return
        self._said = time.monotonic()
        elapsed = self._said - self._began
        made = self._done - self._before
        left = elapsed / made * (self._total - self._done) if made else None
        line = {
            "event": event,
            "trials_done": self._done,
            "trials": self._total,
            "calls": self._calls,
            "calls_not_ok": self._failed,
            "calls_per_s": round(self._rate(), 1),
            "elapsed_s": round(elapsed, 1),
            "left_s": None if left is None else round(left, 1),
        }
        print(json.dumps(line), file=sys.stderr, flush=True)

    def stop(self) -> None:
        if self._bar:
            self._bar.stop()
        else:
            self._say("end")
