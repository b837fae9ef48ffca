"""Writes a whole chained file at once, from payloads that are already known."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from types import TracebackType

from .hash_chain import BUFFER, chained


class ChainWriter:
    """A new file of chained lines. Leaving the block makes it durable."""

    def __init__(self, path: Path, genesis: str) -> None:
        self.head = genesis
        self.count = 0
        """Lines written."""
        self._hash = hashlib.sha256()
        self._file = path.open("xb", buffering=BUFFER)

    @property
    def sha256(self) -> str:
        """Of all bytes written so far."""
        return self._hash.hexdigest()

    def add(self, payload: bytes) -> None:
        self.head, line = chained(self.head, payload)
        self._hash.update(line)
        self._file.write(line)
        self.count += 1

    def __enter__(self) -> ChainWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        with self._file:
            if error is None:
                self._file.flush()
                os.fsync(self._file.fileno())
