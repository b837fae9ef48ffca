"""Putting results back into plan order without keeping them in memory.

A trial that ends before its turn waits in a temporary file; only its position is kept in memory. So one slow target
can fall far behind the others without slowing them, and memory does not grow with the number of trials.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import IO

IN_MEMORY = 8 * 1024 * 1024


class InOrder:
    """Takes numbered pieces in any order and passes them on by number, from 0."""

    def __init__(self, sink: Callable[[bytes], None]) -> None:
        self._sink = sink
        self._next = 0
        self._places: dict[int, tuple[int, int]] = {}
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - closed by __exit__
        self._end = 0

    def put(self, number: int, data: bytes) -> None:
        if number != self._next:
            self._file.seek(self._end)
            self._file.write(data)
            self._places[number] = (self._end, len(data))
            self._end += len(data)
            return
        self._hand_on(data)
        while self._next in self._places:
            offset, length = self._places.pop(self._next)
            self._file.seek(offset)
            self._hand_on(self._file.read(length))
        if not self._places and self._end:
            self._file.seek(0)
            self._file.truncate()
            self._end = 0

    def _hand_on(self, data: bytes) -> None:
        self._sink(data)
        self._next += 1

    def __enter__(self) -> InOrder:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
