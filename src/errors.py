"""Every error this project raises on purpose, and the exit code each becomes.

    HarnessError                 one sentence: where, what, what to do; never shown with a traceback
    ├── InputError        2      a file, flag or value the user gave cannot be used
    ├── ConfigError       3      a key, SDK or choice of judges is missing or not allowed
    ├── IncompleteRun     4      the run stopped before its end; `resume` continues it
    ├── IntegrityError    5      stored bytes are not what was written, or cannot be recomputed
    ├── StorageError      6      the disk refused: full, read-only, failed sync, or the run is in use
    └── ExportError       9      a format of an export could not be written; what it names as complete was

Exit code 0 is success, 4 also a complete run in which nothing was scored, 7 and 8 are answers of `drift` and `series`,
and 130 is a second Ctrl-C. Failures of a model call are not exceptions of this tree: they are outcomes, recorded in the
journal (see `adapters.base.CallFailure`), and never end a run by themselves.

The code that finds a problem knows which field of a study it is about, but not whether a file, a flag or a keyword set
that field. It names the field, and writes fields in its advice as `repeats`. An `Origin` adds the place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from pathlib import Path


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong."""

    text: str
    field: str | None = None
    """The field of a study that it is about, such as `repeats` or `targets[0].temperature`."""


@dataclass(frozen=True)
class Origin:
    """Where the fields of a study were set, so that an error can name the place to change."""

    file: str = ""
    """The study file or pre-registration, where there is one."""
    changed: Collection[str] = ()
    """Fields that flags or keywords set, not the file."""
    flags: Mapping[str, str] = dataclass_field(default_factory=dict)
    """Field to flag, if the user typed a command."""

    def describe(self, problems: Sequence[Problem]) -> str:
        """All problems in one sentence, each with its place; the file is named once."""
        parts: list[str] = []
        file = self.file
        for problem in problems:
            name = problem.field
            if name is None:
                parts.append(self._in_flags(problem.text))
            elif self.file and _root(name) not in self.changed:
                parts.append(f"{f'{file}: ' if file else ''}field {name}: {problem.text}")
                file = ""
            elif flag := self._flag(name):
                parts.append(f"{flag}: {self._in_flags(problem.text)}")
            else:
                parts.append(f"{'field' if parts else 'Field'} {name}: {problem.text}")
        return parts[0] if len(parts) == 1 else "; ".join(part.rstrip(".") for part in parts) + "."

    def _flag(self, name: str) -> str | None:
        """The flag of a field, or of the field that contains it."""
        while name and name not in self.flags:
            name = name[: max(name.rfind("."), name.rfind("["), 0)]
        return self.flags.get(name)

    def _in_flags(self, text: str) -> str:
        for name, flag in self.flags.items():
            text = text.replace(f"`{name}`", flag)
        return text


def _root(name: str) -> str:
    return name.partition(".")[0].partition("[")[0]


class HarnessError(Exception):
    """A failure the user can act on; its message is one clear sentence."""

    exit_code = 1

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.problems: Sequence[Problem] = (Problem(message, field),)
        self.origin = Origin()

    def __str__(self) -> str:
        return self.origin.describe(self.problems)


@contextmanager
def about(field: str) -> Iterator[None]:
    """Errors raised in this block are about this field of a study, unless they name one themselves."""
    try:
        yield
    except HarnessError as error:
        error.problems = tuple(one if one.field else replace(one, field=field) for one in error.problems)
        raise


@contextmanager
def from_origin(origin: Origin) -> Iterator[None]:
    """Errors raised in this block say where their field was set."""
    try:
        yield
    except HarnessError as error:
        error.origin = origin
        raise


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


class ExportError(HarnessError):
    """A format of an export could not be written. The message names those that are complete."""

    exit_code = 9

    def __init__(self, message: str, *, written: Sequence[Path] = ()) -> None:
        super().__init__(message)
        self.written = written
        """The files of the formats that are complete."""
