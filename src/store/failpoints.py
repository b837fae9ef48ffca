"""Named places in storage where a test can kill the process or make the disk fail.

`MEDICARE_EVAL_FAILPOINT=journal.after_write:3` kills the process (SIGKILL) the third time that place is reached;
`journal.fsync:1:ENOSPC` raises that error there instead. Outside tests the variable is not set, and nothing happens.
"""

from __future__ import annotations

import errno
import os
import signal
from collections import Counter

VARIABLE = "MEDICARE_EVAL_FAILPOINT"
NAMES = (
    "run.after_mkdir",
    "manifest.before_link",
    "manifest.after_link",
    "journal.before_write",
    "journal.torn_write",
    "journal.after_write",
    "journal.fsync",
    "journal.after_fsync",
    "journal.before_recovery",
    "results.before_write",
    "results.torn_write",
    "results.after_write",
    "results.fsync",
    "batch.before_intent",
    "batch.after_intent",
    "batch.after_post",
    "batch.after_created",
    "batch.polling",
    "batch.after_line",
    "batch.before_ended",
    "seal.before_link",
    "seal.after_link",
)
SHARD_NAMES = (
    "shards.before_rename",
    "shards.after_rename",
    "merge.after_journal",
    "merge.before_rename",
    "merge.after_rename",
    "merge.after_journal_move",
    "merge.after_results_move",
    "merge.after_seal_move",
)
"""Places in runs of several processes and in merges."""


SERIES_NAMES = (
    "series.before_link",
    "series.after_link",
    "series_point.before_link",
    "series_point.after_link",
    "series.before_line",
    "series.torn_line",
    "series.after_line",
)
"""Places in a series. Its runs and checks have those of every run."""


class Failpoints:
    """Counts how often each place was reached. Every run folder has its own, so no state is shared."""

    def __init__(self, setting: str | None) -> None:
        name, count, error, *_ = [*(setting or "").split(":"), "", ""]
        self._name = name
        self._at = int(count or 1)
        self._error = error
        self._hits: Counter[str] = Counter()

    @classmethod
    def from_environment(cls) -> Failpoints:
        return cls(os.environ.get(VARIABLE))

    def armed(self, name: str) -> bool:
        """Whether the next `hit(name)` kills or fails, for places that must first write half of something."""
        return name == self._name and self._hits[name] + 1 == self._at

    def hit(self, name: str) -> None:
        if name != self._name:
            return
        self._hits[name] += 1
        if self._hits[name] != self._at:
            return
        if self._error:
            code = getattr(errno, self._error)
            raise OSError(code, os.strerror(code))
        os.kill(os.getpid(), signal.SIGKILL)
