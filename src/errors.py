"""Every error this project raises on purpose, and the exit code each becomes.

    HarnessError                 one sentence: where, what, what to do; never shown with a traceback
    ├── InputError        2      a file, flag or value the user gave cannot be used
    ├── ConfigError       3      a key, SDK or choice of judges is missing or not allowed
    ├── IncompleteRun     4      the run stopped before its end; `resume` continues it
    ├── IntegrityError    5      stored bytes are not what was written, or cannot be recomputed
    └── StorageError      6      the disk refused: full, read-only, failed sync, or the run is in use

Exit code 0 is success and 130 a second Ctrl-C. Failures of a model call are not exceptions of this tree: they are
outcomes, recorded in the journal (see `adapters.base.CallFailure`), and never end a run by themselves.
"""

from __future__ import annotations

from pathlib import Path


class HarnessError(Exception):
    """A failure the user can act on; its message is one clear sentence."""

    exit_code = 1


class InputError(HarnessError):
    """A file, flag, field or value cannot be used."""

    exit_code = 2


class ConfigError(HarnessError):
    """A key or SDK is missing, or a model is not allowed in its role."""

    exit_code = 3


class IncompleteRun(HarnessError):  # noqa: N818 - it names a state of the run, not a fault
    """The run stopped before its end; `resume` continues it."""

    exit_code = 4

    def __init__(self, message: str, *, run: Path | None = None) -> None:
        super().__init__(message)
        self.run = run
        """The folder of the run that stopped, where there is one to resume."""


class IntegrityError(HarnessError):
    """Stored bytes are not what was written, or results cannot be recomputed from them."""

    exit_code = 5


class StorageError(HarnessError):
    """The disk refused, a file exists already, or the run is in use. What was saved is intact."""

    exit_code = 6
