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
