"""Do independent pieces of work, in several processes where that is safe and worth it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from multiprocessing.sharedctypes import Synchronized

from ...errors import StorageError

Piece = Callable[[], None]
WORTH_IT = 1_000
"""Trials from which on processes are started."""
MOST = 8


def process_count(trials: int) -> int:
    """One process, or as many as there are processors.

    Only Linux forks safely, and only while no other thread runs. A process that is started in another way imports the
    user's program again, which may not expect it.
    """
    if trials < WORTH_IT or not sys.platform.startswith("linux") or threading.active_count() > 1:
        return 1
    return max(1, min(MOST, len(os.sched_getaffinity(0))))


def in_processes(pieces: Sequence[Piece], *, trials: int) -> None:
    """Do every piece of work once, in any order. The first error ends all of it and is raised here."""
    count = min(process_count(trials), len(pieces))
    if count <= 1:
        for piece in pieces:
            piece()
        return
    context = multiprocessing.get_context("fork")
    following = context.Value("q", 0)
    started: list[tuple[ForkProcess, Connection]] = []
    try:
        for _ in range(count - 1):
            here, there = context.Pipe(duplex=False)
            process = context.Process(target=_child, args=(pieces, following, there), daemon=True)
            process.start()
            there.close()
            started.append((process, here))
        _share(pieces, following)
        for process, here in started:
            _finish(process, here)
    finally:
        for process, here in started:
            process.terminate()
            process.join()
            here.close()


def _share(pieces: Sequence[Piece], following: Synchronized[int]) -> None:
    """Take the next piece until none is left."""
    while True:
        with following.get_lock():
            place = following.value
            following.value += 1
        if place >= len(pieces):
            return
        pieces[place]()


def _child(pieces: Sequence[Piece], following: Synchronized[int], there: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the parent tells the user; a child ends without a word
    try:
        _share(pieces, following)
    except Exception as error:
        there.send(error)
    else:
        there.send(None)


def _finish(process: ForkProcess, here: Connection) -> None:
    """Wait for a child; what it raised is raised here."""
    try:
        error = here.recv()
    except EOFError:
        process.join()
        raise StorageError(
            f"A process that writes evidence pages ended early (exit code {process.exitcode})."
        ) from None
    process.join()
    if error is not None:
        raise error
