"""A run in several processes of this machine.

The parent hosts what they share and starts fresh interpreters, connected by a socket each. A worker that dies is
noticed by the end of its connection; another one continues its shards from their journals.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Sequence
from pathlib import Path

from ..calls.stop import Stop
from .host import Host, State, make_host
from .job import Job

MAX_RESTARTS = 3
"""Of one worker. More than that is not bad luck."""
WAITING = frozenset({"enter", "reserve"})
"""Requests whose answer may take long, so that others must not wait for it."""
PACKAGE = __package__ or ""


class LocalEngine:
    """Worker processes on this machine."""

    always_shared = False

    def __init__(self, processes: int) -> None:
        self.processes = processes

    async def run(self, job: Job, unfinished: Sequence[int], stop: Stop, on_state: Callable[[State], None]) -> State:
        host = make_host(job, unfinished)
        host.on_change = lambda: on_state(host.state)
        stop.listen(lambda: host.stop(stop.reason))
        if stop.event.is_set():
            host.stop(stop.reason)
        workers = min(self.processes, len(unfinished))
        await asyncio.gather(*(_keep_working(host, job, lane) for lane in range(workers)))
        return host.state


async def _keep_working(host: Host, job: Job, lane: int) -> None:
    """Start a worker, and another one in its place if it dies."""
    for start in range(MAX_RESTARTS + 1):
        session = f"{lane}.{start}"
        code = await _one_worker(host, job, session)
        lost = await host.forget(session)
        if not code and not lost:
            return
        if host.stop_reason is not None:
            return
    host.stop(f"A worker process ended {MAX_RESTARTS + 1} times before its work was done (exit code {code}).")


async def _one_worker(host: Host, job: Job, session: str) -> int:
    """A worker process from its start to its end; its exit code."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = await _start(theirs)
    reader, writer = await asyncio.open_connection(sock=ours)
    try:
        writer.write(job.model_dump_json().encode() + b"\n")
        await _serve(host, session, reader, writer)
        return await process.wait()
    finally:
        writer.close()


async def _start(connection: socket.socket) -> Process:
    """A fresh interpreter. A session of its own: Ctrl-C is for the parent, which tells its workers to stop."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        f"{PACKAGE}.worker",
        str(connection.fileno()),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        pass_fds=(connection.fileno(),),
        start_new_session=True,
        env=_environment(),
    )


def _environment() -> dict[str, str]:
    """This process's own. In a checkout the package is not installed under its name, so its folder is added."""
    environment = dict(os.environ)
    if PACKAGE.startswith("src."):
        root = str(Path(__file__).resolve().parents[2])
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [root, environment.get("PYTHONPATH")]))
    return environment


async def _serve(host: Host, session: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer a worker's requests until it ends."""
    waiting: set[asyncio.Task[None]] = set()

    async def answer(number: int, name: str, arguments: list[object]) -> None:
        answered = await host.ask(session, name, arguments)
        if number:
            writer.write(json.dumps([number, answered.value, answered.stop]).encode() + b"\n")

    try:
        with contextlib.suppress(ConnectionError):
            while (line := await reader.readline()).endswith(b"\n"):
                number, name, arguments = json.loads(line)
                if name in WAITING:
                    task = asyncio.create_task(answer(number, name, arguments))
                    waiting.add(task)
                    task.add_done_callback(waiting.discard)
                else:
                    await answer(number, name, arguments)
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
