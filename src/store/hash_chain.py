"""Hash-chained lines: how the journal and the results are written, read back and recovered.

A line is `{"chain":"<64 hex>",<payload>}`, where the chain value hashes the line before's chain value and the payload's
bytes. Flipping, removing, swapping or repeating anything breaks the chain at the first line concerned, and finding it
needs no JSON parser. A kill can leave the last line torn; what then happens differs:

- the journal's order is not repeatable, so a torn line is left where it is, ended by a newline, and named (place,
  length, hash) in a recovery record appended behind it;
- results are a pure function of manifest and journal, so a torn result is a prefix of what will be written again, and
  is completed by appending the rest.

Nothing is ever truncated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import IntegrityError
from .strict_json import sha256

GENESIS = "0" * 64
_HEAD = b'{"chain":"'
_BODY = len(_HEAD) + 64 + 2
_RECOVERED = b'{"recovered":'


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
    """Whether a newline already stands behind it."""


def chain_value(previous: str, payload: bytes) -> str:
    return sha256(previous.encode("ascii") + payload)


def chained(previous: str, payload: bytes) -> tuple[str, bytes]:
    """The next chain value and the whole line, newline included."""
    value = chain_value(previous, payload)
    return value, b"".join((_HEAD, value.encode("ascii"), b'",', payload[1:], b"\n"))


def _payload(line: bytes) -> tuple[str, bytes] | None:
    if not line.startswith(_HEAD) or line[_BODY - 2 : _BODY] != b'",' or not line.endswith(b"}"):
        return None
    return line[len(_HEAD) : _BODY - 2].decode("ascii", "replace"), b"{" + line[_BODY:]


class ChainReader:
    """Streams a chained file; afterwards `head`, `count` and `torn` say what was found.

    Lines that do not continue the chain are tolerated only if they are incomplete JSON, as a torn write leaves it, and
    stand at the very end or are named by the recovery record behind them. Anything else raises `IntegrityError`
    naming the first bad line.
    """

    def __init__(self, path: Path, genesis: str) -> None:
        self.path = path
        self.head = genesis
        self.count = 0
        """Lines that continue the chain."""
        self.torn: list[Torn] = []
        """Bad lines at the end, not yet named by a recovery record."""
        self.size = 0
        self.ends_clean = True
        self._number = 0

    def __iter__(self) -> Iterator[ChainedLine]:
        offset = 0
        if not self.path.is_file():
            raise IntegrityError(f"{self.path}: line 1 is missing: the file is not there.")
        with self.path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                self._number = number
                self.ends_clean = raw.endswith(b"\n")
                line = raw[:-1] if self.ends_clean else raw
                found = _payload(line)
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
        """A good line behind bad ones must be a recovery record that names exactly them."""
        if payload.startswith(_RECOVERED):
            if recovery_payload(self.torn) != payload:
                raise self.broken("the recovery record does not name the broken lines before it")
        elif self.torn:
            raise self.broken()
        self.torn = []

    def broken(self, why: str = "it was changed, moved, added, or a line before it was removed") -> IntegrityError:
        number = self.torn[0].number if self.torn else self._number
        return IntegrityError(f"{self.path}: line {number} is not what was written: {why}.")


def _is_whole(line: bytes) -> bool:
    """Whether a line is complete JSON. A torn one never is: no true beginning of a JSON object is one itself."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def payload_of(line: bytes) -> bytes:
    """A good line's payload."""
    return b"{" + line[_BODY:]


def recovery_payload(torn: list[Torn]) -> bytes:
    """The bytes of a recovery record; written by hand so that reading one needs no parser."""
    rows = ",".join(f'{{"line":{t.number},"length":{t.length},"sha256":"{t.sha256}"}}' for t in torn)
    return _RECOVERED + b"[" + rows.encode("ascii") + b"]}"


def is_recovery(payload: bytes) -> bool:
    return payload.startswith(_RECOVERED)
