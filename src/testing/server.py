"""A loopback HTTP server, of the standard library alone, that can also fail in the ways a provider's server fails.

It listens on 127.0.0.1, on a port that the system chooses, in a thread of its own:

    async def answer(received: Received) -> Response:
        return Response(body=b'{"answer": "yes"}')

    with Server(answer) as server:
        ...  # send requests to server.address

Nothing outlives the `with` block: connections are cut, waits end, and the thread is joined.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, Self

Fault = Literal["silence", "reset", "cut", "drip"]
"""No response at all; a reset connection; a body that ends early; a body that comes byte by byte, very slowly."""
MAX_BODY = 16_000_000
START_S = 30.0
MISSING_BYTES = 500
"""How much longer than it is a body that ends early is said to be."""
DRIP_S = 0.05


@dataclass(frozen=True)
class Received:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Response:
    """What the server sends back."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    fault: Fault | None = None


class Server:
    """Answers every request with what `answer` returns for it, and keeps the last `keep` requests."""

    def __init__(
        self, answer: Callable[[Received], Awaitable[Response]], *, keep: int = 1_000, longest_wait_s: float = 30.0
    ) -> None:
        self._answer = answer
        self._longest_wait_s = longest_wait_s
        self.received: deque[Received] = deque(maxlen=keep)
        self.count = 0
        """Requests in all."""
        self._port = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="loopback", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(START_S):
            raise RuntimeError("the loopback server did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(START_S)
        if self._thread.is_alive():
            raise RuntimeError("the loopback server did not stop")

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def forget(self) -> None:
        """Forget the requests so far."""
        self.received.clear()
        self.count = 0

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, backlog=2_048)
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await server.wait_closed()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (TimeoutError, asyncio.CancelledError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client is gone, a wait was too long or the server stops: this connection is over
        finally:
            writer.transport.abort()
            self._tasks.discard(task)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request; whether the connection can take another."""
        received = await _read(reader)
        self.received.append(received)
        self.count += 1
        response = await self._answer(received)
        if response.fault == "silence":
            await asyncio.wait_for(reader.read(1), self._longest_wait_s)  # until the client gives up
            return False
        if response.fault == "reset":
            handle: socket.socket = writer.get_extra_info("socket")
            handle.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        await _write(writer, response)
        return response.fault is None


async def _read(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {}
    for line in head[1:-2]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    length = int(headers.get("content-length", "0"))
    if length > MAX_BODY:
        raise ConnectionError("request too large")
    return Received(head[0].split(" ")[1], headers, await reader.readexactly(length))


async def _write(writer: asyncio.StreamWriter, response: Response) -> None:
    length = len(response.body) + (MISSING_BYTES if response.fault == "cut" else 0)
    names = {"content-type": response.content_type, "content-length": str(length), **response.headers}
    lines = [f"HTTP/1.1 {response.status} Loopback", *(f"{name}: {value}" for name, value in names.items()), "", ""]
    head = "\r\n".join(lines).encode("latin-1")
    if response.fault == "drip":
        writer.write(head)
        for byte in response.body:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(DRIP_S)
        return
    writer.write(head + response.body)
    await writer.drain()
    if response.fault == "cut":
        writer.close()
        await writer.wait_closed()
