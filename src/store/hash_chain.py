"""Hash-chained lines: how the journal and the results are written, read back and recovered.

A line is `{"chain":"<64 hex>",<payload>}`. The chain value is a hash of the previous line's chain value and the bytes
of the payload. Changing, removing, swapping or repeating a line breaks the chain at the first line affected, which can
be found without a JSON parser. If the process is killed, the last line can be torn. Recovery depends on the file:

- The order of the journal cannot be reproduced, so a torn line stays where it is, gets a newline, and is named (line
  number, length, hash) in a recovery record after it.
- Results are a pure function of manifest and journal, so a torn result is the beginning of what will be written again,
  and is completed by appending the rest.

No file is ever truncated.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from ..errors import IntegrityError
from .strict_json import sha256

GENESIS = "0" * 64
_HEAD = b'{"chain":"'
_BODY = len(_HEAD) + 64 + 2
_NOTE = b'{"note":'
_RECOVERED = b'{"recovered":'
BUFFER = 1 << 20
"""Bytes read at once where a whole file is read: lines are long."""
TAIL = 65_536
"""Bytes read first in search of a file's last line."""


@dataclass(frozen=True)
class ChainedLine:
    number: int
    offset: int
    length: int
    chain: str
    payload: bytes


@dataclass(frozen=True)
class Torn:
    number: int
    length: int
    sha256: str
    ended: bool
    """Whether a newline already follows it."""


def chain_value(previous: str, payload: bytes) -> str:
    made = hashlib.sha256(previous.encode("ascii"))
    made.update(payload)
    return made.hexdigest()


class NextLine(NamedTuple):
    chain: str
    line: bytes
    """The whole line, newline included."""


def chained(previous: str, payload: bytes) -> NextLine:
    """The line that continues the chain with this payload."""
    value = chain_value(previous, payload)
    return NextLine(value, b"".join((_HEAD, value.encode("ascii"), b'",', payload[1:], b"\n")))


def split_line(line: bytes) -> tuple[str, bytes] | None:
    """The chain value and the payload of a line without its newline; None if it has not the form of one."""
    if not line.startswith(_HEAD) or line[_BODY - 2 : _BODY] != b'",' or not line.endswith(b"}"):
        return None
    return line[len(_HEAD) : _BODY - 2].decode("ascii", "replace"), payload_of(line)


class ChainReader:
    """Streams a chained file; afterward `head`, `count` and `torn` say what was found.

    Lines that do not continue the chain are tolerated only if they are incomplete JSON, as a torn write leaves it, and
    are at the very end or named by the recovery record after them. Anything else raises `IntegrityError` with the
    number of the first bad line.
    """

    def __init__(self, path: Path, genesis: str, *, buffer: int = BUFFER) -> None:
        self.path = path
        self.head = genesis
        self._buffer = buffer
        self.count = 0
        """Lines that continue the chain."""
        self.torn: list[Torn] = []
        """Bad lines at the end that no recovery record names yet."""
        self.size = 0
        self.ends_clean = True
        self._number = 0

    def __iter__(self) -> Iterator[ChainedLine]:
        return self.lines()

    def lines(self) -> Generator[ChainedLine]:
        """The lines one at a time. Close it if it is not read to its end."""
        offset = 0
        if not self.path.is_file():
            raise IntegrityError(f"{self.path}, line 1: the file does not exist.")
        with self.path.open("rb", buffering=self._buffer) as file:
            for number, raw in enumerate(file, 1):
                self._number = number
                self.ends_clean = raw.endswith(b"\n")
                line = raw[:-1] if self.ends_clean else raw
                found = split_line(line)
                if found is None or found[0] != chain_value(self.head, found[1]):
                    self.torn.append(Torn(number, len(line), sha256(line), self.ends_clean))
                    if _is_whole(line):
                        raise self.broken()
                else:
                    self._accept_torn(found[1])
                    self.head = found[0]
                    self.count += 1
                    yield ChainedLine(number, offset, len(line), *found)
                offset += len(raw)
        self.size = offset

    def _accept_torn(self, payload: bytes) -> None:
        """A good line after bad ones must be a recovery record that names exactly those lines."""
        if payload.startswith(_RECOVERED):
            if recovery_payload(self.torn) != payload:
                raise self.broken("The recovery record does not match the broken lines before it")
        elif self.torn:
            raise self.broken()
        self.torn = []

    def broken(
        self, why: str = "This line was edited, moved or inserted, or an earlier line was deleted"
    ) -> IntegrityError:
        number = self.torn[0].number if self.torn else self._number
        return IntegrityError(f"{self.path}, line {number}: hash chain broken. {why}.")


def last_value(path: Path, genesis: str) -> str | None:
    """The chain value in a file's last line, without reading the rest; None if the file does not end with a line.

    It depends on every line before it, so a file that lost or gained lines at its end has another one.
    """
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        length, tail = 0, b""
        while length < size and tail.rfind(b"\n", 0, -1) < 0:
            length = min(size, max(TAIL, 2 * length))
            file.seek(size - length)
            tail = file.read(length)
    if not size:
        return genesis
    found = split_line(tail[tail.rfind(b"\n", 0, -1) + 1 : -1]) if tail.endswith(b"\n") else None
    return found[0] if found else None


def _is_whole(line: bytes) -> bool:
    """Whether a line is complete JSON. A torn line never is: the beginning of a JSON object is not valid JSON."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def payload_of(line: bytes) -> bytes:
    """The payload of a line that continues the chain."""
    return b"{" + memoryview(line)[_BODY:]


def recovery_payload(torn: list[Torn]) -> bytes:
    """The exact bytes of a recovery record: readers compare bytes and need no JSON parser."""
    rows = ",".join(f'{{"line":{t.number},"length":{t.length},"sha256":"{t.sha256}"}}' for t in torn)
    return _RECOVERED + b"[" + rows.encode("ascii") + b"]}"


def is_recovery(payload: bytes) -> bool:
    return payload.startswith(_RECOVERED)


def is_note(payload: bytes) -> bool:
    """Whether a line of the journal says something about the run rather than about one call."""
    return payload.startswith(_NOTE)


def is_call(payload: bytes) -> bool:
    return not payload.startswith((_RECOVERED, _NOTE))


class ChainWriter:
    """A new file of chained lines, whose payloads are already known. Leaving the block makes it durable."""

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
