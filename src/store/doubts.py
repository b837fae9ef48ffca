"""`doubts.jsonl` in the folder of runs: verdicts that readers doubt, one line each, only ever appended to."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from ..errors import StorageError
from ..records.run import Doubt
from . import locking
from .run_files import encode_record

DOUBTS = "doubts.jsonl"


def add_doubt(runs: Path, doubt: Doubt) -> None:
    """Append a mark to the file in this folder of runs.

    Raises:
        StorageError: the file cannot be written.
    """
    path = runs / DOUBTS
    line = encode_record(doubt) + b"\n"
    try:
        with path.open("a+b", buffering=0) as file, locking.locked(file):
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            if file.read(1) not in (b"\n", b""):
                line = b"\n" + line
            _append(file, line, size)
    except OSError as error:
        raise StorageError(f"{path} cannot be written ({error.strerror}). The mark was not saved.") from None


def _append(file: IO[bytes], line: bytes, size: int) -> None:
    """The whole line, or nothing of it."""
    if file.write(line) != len(line):
        file.truncate(size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(file.fileno())


def read_doubts(runs: Path, run_id: str) -> list[Doubt]:
    """The marks of one run, in the order in which they were made. A line that is no mark is passed over.

    Raises:
        StorageError: the file cannot be read.
    """
    path = runs / DOUBTS
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StorageError(f"{path} cannot be read ({error.strerror}).") from None
    found = []
    for line in lines:
        try:
            one = Doubt.model_validate_json(line)
        except ValidationError:
            continue
        if one.run_id == run_id:
            found.append(one)
    return found
