"""Read a large file of hash-chained lines in parts, each in a process of its own, and join what was found.

Every line is checked against the one before it, also where two parts meet: a part begins with the chain value of the
line before it, which the part before checks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ...errors import IntegrityError
from ...store import hash_chain
from .processes import process_count, results_of

WORTH_IT = 50_000_000
"""Bytes from which on a file is read in parts."""
_CHAIN = slice(len('{"chain":"'), len('{"chain":"') + 64)


@dataclass(frozen=True)
class _Part:
    start: int
    end: int
    before: str
    """The chain value of the line before it."""


@dataclass(frozen=True)
class ReadPart:
    """What was found in one part."""

    found: dict[str, Any]
    head: str
    """The chain value of its last line."""


def read_in_parts(path: Path, read: Callable[[Iterator[hash_chain.ChainedLine]], dict[str, Any]]) -> list[ReadPart]:
    """What `read` finds in each part of a file, in their order.

    Empty if the file is small, no processes can be started, or any line is not as it should be. The file is then to be
    read from its beginning, which also tells where and what is wrong.
    """
    count = process_count() if path.stat().st_size >= WORTH_IT else 1
    if count <= 1:
        return []
    try:
        return results_of([partial(_read_part, path, part, read) for part in _parts(path, count)])
    except IntegrityError:
        return []


def _parts(path: Path, count: int) -> list[_Part]:
    size = path.stat().st_size
    starts = [(0, hash_chain.GENESIS)]
    with path.open("rb") as file:
        for number in range(1, count):
            file.seek(size * number // count)
            file.readline()
            before = file.readline()
            if starts[-1][0] < file.tell() < size:
                starts.append((file.tell(), before[_CHAIN].decode("ascii", "replace")))
    ends = [*(start for start, _ in starts[1:]), size]
    return [_Part(start, end, before) for (start, before), end in zip(starts, ends, strict=True)]


def _read_part(path: Path, part: _Part, read: Callable[[Iterator[hash_chain.ChainedLine]], dict[str, Any]]) -> ReadPart:
    heads = [part.before]
    return ReadPart(read(_lines(path, part, heads)), heads[0])


def _lines(path: Path, part: _Part, heads: list[str]) -> Iterator[hash_chain.ChainedLine]:
    """The lines of a part; the last chain value is left in `heads`."""
    offset, head = part.start, part.before
    with path.open("rb", buffering=hash_chain.BUFFER) as file:
        file.seek(offset)
        for raw in file:
            if offset >= part.end:
                break
            found = hash_chain.split_line(raw[:-1]) if raw.endswith(b"\n") else None
            if found is None or found[0] != hash_chain.chain_value(head, found[1]):
                raise IntegrityError(f"{path}: a line does not continue the chain.")
            head = found[0]
            yield hash_chain.ChainedLine(0, offset, len(raw) - 1, *found)
            offset += len(raw)
    heads[0] = head


def joined(first: Any, second: Any) -> Any:
    """Two findings of the same kind as one, the first changed in place: counts are added, lists and sets are joined."""
    if isinstance(first, Counter):
        first.update(second)
    elif isinstance(first, dict):
        for key, value in second.items():
            first[key] = joined(first[key], value) if key in first else value
    elif isinstance(first, list):
        first += second
    elif isinstance(first, set):
        first |= second
    elif is_dataclass(first) and not isinstance(first, type):
        for one in fields(first):
            setattr(first, one.name, joined(getattr(first, one.name), getattr(second, one.name)))
    elif isinstance(first, bool):
        return first or second
    elif isinstance(first, int):
        return first + second
    return first
