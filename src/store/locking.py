"""Locks on run folders, which Linux and macOS have and Windows does not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ..errors import ConfigError

UNSUPPORTED = (
    "Running evaluations is supported on Linux and macOS. On Windows, use WSL (Windows Subsystem for Linux). "
    "Commands that only read runs work here."
)


def check_supported() -> None:
    """Raise `ConfigError` on a system where no run can be written."""
    try:
        import fcntl  # noqa: F401
    except ImportError:
        raise ConfigError(UNSUPPORTED) from None


@contextmanager
def locked(file: IO[bytes]) -> Iterator[None]:
    """Hold a file while it is written to, where the system can."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    fcntl.flock(file.fileno(), fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(file.fileno(), fcntl.LOCK_UN)


def lock_folder(folder: Path) -> int:
    """Lock a folder for this process; closing the descriptor releases it. BlockingIOError: another process has it."""
    check_supported()
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise
    return descriptor
