"""Do independent work in several processes, where that is safe; make many objects without a search for cycles."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any, Generic, TypeVar

from ...errors import StorageError


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
