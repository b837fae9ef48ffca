"""A worker process: `python -m src.engines.worker FD`, started by `engines.run` and of no use by itself.

It talks to its parent over a socket, in lines of JSON. If the parent is gone, it finishes its calls in flight, so that
none is paid for in vain, and ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import socket
import sys
from itertools import count
from typing import Any

from ..calls.stop import Stop
from .host import Job
from .shard_worker import ShardWorker


class ParentConnection:
    """Sends requests to the host in the parent process."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stop: Stop) -> None:
        self._reader = reader
        self._writer = writer
        self._stop = stop
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._gone = False

    async def ask(self, name: str, *arguments: Any) -> Any:
        if self._gone:
            return None
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._send(number, name, arguments)
        return await answer

    def tell(self, name: str, *arguments: Any) -> None:
        if not self._gone:
            self._send(0, name, arguments)

    def _send(self, number: int, name: str, arguments: tuple[Any, ...]) -> None:
        self._writer.write(json.dumps([number, name, arguments]).encode() + b"\n")

    async def listen(self) -> None:
        """Take answers until the parent is gone."""
        with contextlib.suppress(ConnectionError):  # a parent that is killed before it has read everything
            while (line := await self._reader.readline()).endswith(b"\n"):
                self._take(line)
        self._gone = True
        self._stop.ask("The process that started this worker has ended.")
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_result(None)

    def _take(self, line: bytes) -> None:
        number, value, stop = json.loads(line)
        if stop is not None and not self._stop.event.is_set():
            self._stop.ask(stop)
        answer = self._waiting.pop(number, None)
        if answer and not answer.done():
            answer.set_result(value)


async def work(connection: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=connection)
    job = Job.model_validate_json(await reader.readline())
    stop = Stop()
    parent = ParentConnection(reader, writer, stop)
    listening = asyncio.create_task(parent.listen())
    try:
        await ShardWorker(job, parent, stop).work()
    finally:
        listening.cancel()
        writer.close()


def main(descriptor: int) -> None:
    gc.freeze()  # as the command line does: collecting what stays costs a sixth of the CPU of a call
    gc.set_threshold(50_000, 20, 50)
    asyncio.run(work(socket.socket(fileno=descriptor)))


if __name__ == "__main__":
    main(int(sys.argv[1]))
