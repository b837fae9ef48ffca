"""Do independent work in several processes, where that is safe; make many objects without a search for cycles.

A large file of hash-chained lines is read in parts, each in a process of its own, and what was found is joined. Every
line is checked against the one before it, also where two parts meet: a part begins with the chain value of the line
before it, which the part before checks.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any, Generic, TypeVar

from ..errors import IntegrityError, StorageError
from ..store import hash_chain


@contextmanager
def collector_paused() -> Iterator[None]:
    """Also a decorator. A run of many trials is read and counted in two thirds of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


T = TypeVar("T")
Piece = Callable[[], None]
MOST = 8


def process_count() -> int:
    """As many processes as there are processors; one where a process cannot be forked safely.

    Only Linux forks safely, and only while no other thread runs, of Python's or of a library's. A worker of a pool may
    have no children. A process that is started in another way imports the user's program again, which it may not
    expect.
    """
    if not sys.platform.startswith("linux") or multiprocessing.current_process().daemon or _threads() > 1:
        return 1
    return max(1, min(MOST, len(os.sched_getaffinity(0))))


def _threads() -> int:
    try:
        return len(list(Path("/proc/self/task").iterdir()))
    except OSError:
        return 2  # not known, so none is started


def in_processes(pieces: Sequence[Piece], count: int) -> None:
    """Do every piece of work once, in any order. After an error no other piece is begun, and it is raised here."""
    if min(count, len(pieces)) <= 1:
        for piece in pieces:
            piece()
        return
    following = multiprocessing.get_context("fork").Value("q", 0)

    parent = os.getpid()

    def share() -> None:
        # A child whose parent was killed belongs to another one, and must not go on writing.
        while (place := _next(following)) < len(pieces) and parent in (os.getpid(), os.getppid()):
            try:
                pieces[place]()
            except BaseException:
                following.value = len(pieces)
                raise

    with _children([share] * (min(count, len(pieces)) - 1)) as children:
        share()
        for child in children:
            child.result()


def results_of(pieces: Sequence[Callable[[], T]]) -> list[T]:
    """What each piece of work returns, each in a process of its own; the first is done in this one."""
    with _children(pieces[1:]) as children:
        first = [piece() for piece in pieces[:1]]
        return [*first, *(child.result() for child in children)]


def _next(following: Synchronized[int]) -> int:
    with following.get_lock():
        place = following.value
        following.value += 1
    return place


@dataclass(frozen=True)
class _Child(Generic[T]):
    process: ForkProcess
    connection: Connection

    def result(self) -> T:
        """Wait for the process; what it returned, or what it raised."""
        try:
            returned, error = self.connection.recv()
        except EOFError:
            self.process.join()
            why = f"ended early (exit code {self.process.exitcode})"
            raise StorageError(f"A process that reads or writes trials {why}. Free memory and try again.") from None
        self.process.join()
        if error is not None:
            raise error
        made: T = returned
        return made


@contextmanager
def _children(pieces: Sequence[Callable[[], T]]) -> Iterator[list[_Child[T]]]:
    """Start a process for each piece; all are ended when the block is left."""
    context = multiprocessing.get_context("fork")
    started: list[_Child[T]] = []
    try:
        for piece in pieces:
            here, there = context.Pipe(duplex=False)
            process = context.Process(target=_do, args=(piece, there), daemon=True)
            process.start()
            there.close()
            started.append(_Child(process, here))
        yield started
    finally:
        for child in started:
            child.process.terminate()
            child.process.join()
            child.connection.close()


def _do(piece: Callable[[], Any], there: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the parent tells the user; a child ends without a word
    try:
        made = piece()
    except Exception as error:
        there.send((None, error))
    else:
        there.send((made, None))


WORTH_IT = 50_000_000
"""Bytes from which on a file is read in parts."""
_CHAIN = slice(len('{"chain":"'), len('{"chain":"') + 64)


_Part = tuple[int, int, str]
"""Its start and end, and the chain value of the line before it."""
Found = dict[str, Any]


def read_in_parts(path: Path, read: Callable[[Iterator[hash_chain.ChainedLine]], Found]) -> list[tuple[Found, str]]:
    """What `read` finds in each part of a file, and the chain value of its last line, in their order.

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
    return [(start, end, before) for (start, before), end in zip(starts, ends, strict=True)]


def _read_part(path: Path, part: _Part, read: Callable[[Iterator[hash_chain.ChainedLine]], Found]) -> tuple[Found, str]:
    heads = [part[2]]
    return read(_lines(path, part, heads)), heads[0]


def _lines(path: Path, part: _Part, heads: list[str]) -> Iterator[hash_chain.ChainedLine]:
    """The lines of a part; the last chain value is left in `heads`."""
    offset, last, head = part
    with path.open("rb", buffering=hash_chain.BUFFER) as file:
        file.seek(offset)
        for raw in file:
            if offset >= last:
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
