"""How far a run is: counted here, shown by the caller's callback."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

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
        self._run = run
        self._trials = self._done = self._before = self._calls = self._not_ok = 0
        self._notice = ""

    def on_start(self, trials: int, done: int) -> None:
        self._trials, self._done, self._before = trials, done, done
        self._report()

    def on_call(self, record: CallRecord) -> None:
        self._calls += 1
        self._not_ok += record.outcome != "ok"
        if record.outcome == "ok":
            self._notice = ""
        self._report()

    def on_notice(self, notice: str) -> None:
        self._notice = notice
        self._report()

    def on_totals(self, calls: int, not_ok: int, trials_done: int, notice: str) -> None:
        """What several processes have done together, with what this one did before."""
        self._calls, self._not_ok, self._done, self._notice = calls, not_ok, trials_done, notice
        self._report()

    def on_trial(self) -> None:
        self._done += 1
        self._report()

    def on_end(self) -> None:
        self._report(finished=True)

    def _report(self, *, finished: bool = False) -> None:
        if self._on_progress:
            self._on_progress(
                RunProgress(
                    self._run,
                    self._trials,
                    self._done,
                    self._before,
                    self._calls,
                    self._not_ok,
                    notice=self._notice,
                    finished=finished,
                )
            )
