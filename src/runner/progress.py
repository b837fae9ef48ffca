"""How far a run is: counted here, shown by the caller's callback."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..schemas import CallRecord


@dataclass(frozen=True)
class RunProgress:
    """A run at one moment."""

    run: Path
    """The run folder."""
    trials: int
    """Planned."""
    trials_done: int
    trials_before: int
    """Of those done, how many were done before this process started."""
    calls: int
    """Attempts at calls made by this process."""
    calls_not_ok: int
    finished: bool = False
    """True once, in the last report, whether the run is complete or was stopped."""
    notice: str = ""
    """Why the run waits, if it does, in a sentence."""


OnProgress = Callable[[RunProgress], None]


class ProgressCounter:
    """Counts what happens and passes a `RunProgress` on after every call and trial."""

    def __init__(self, on_progress: OnProgress | None, run: Path) -> None:
        if on_progress is not None and not callable(on_progress):
            raise InputError(f"progress: expected a function that takes a RunProgress, not {on_progress!r}.")
        self._on_progress = on_progress
        self._now = RunProgress(run, 0, 0, 0, 0, 0)

    def on_start(self, trials: int, done: int) -> None:
        self._report(trials=trials, trials_done=done, trials_before=done)

    def on_call(self, record: CallRecord) -> None:
        now, ok = self._now, record.outcome == "ok"
        self._report(calls=now.calls + 1, calls_not_ok=now.calls_not_ok + (not ok), notice="" if ok else now.notice)

    def on_notice(self, notice: str) -> None:
        self._report(notice=notice)

    def on_totals(self, calls: int, not_ok: int, trials_done: int, notice: str) -> None:
        """What several processes have done together, with what this one did before."""
        self._report(calls=calls, calls_not_ok=not_ok, trials_done=trials_done, notice=notice)

    def on_trial(self) -> None:
        self._report(trials_done=self._now.trials_done + 1)

    def on_end(self) -> None:
        self._report(finished=True)

    def _report(self, **changed: Any) -> None:
        self._now = replace(self._now, **changed)
        if self._on_progress:
            self._on_progress(self._now)
