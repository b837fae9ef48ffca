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
import json
import socket
import struct
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Self

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


# How a provider's wire format says things: what the author of an adapter describes, so that the kit can speak it.


@dataclass(frozen=True, kw_only=True)
class Said:
    """One answer that the kit wants the server to give."""

    text: str
    model: str
    """The id of the model that answers. It is not the one asked for, so an adapter cannot just repeat that."""
    input_tokens: int = 11
    output_tokens: int = 7


class Dialect(ABC):
    """The response bodies of one wire format.

    Each method returns a JSON value, or a `Response` where status or headers are special too. `truncated`, `refused`
    and `blocked` return None if the format has no way to say that; the kit then skips the case.
    """

    reports_model = True
    """Whether an answer names the model that gave it."""
    reports_usage = True
    """Whether an answer gives its token counts."""

    @abstractmethod
    def ok(self, said: Said) -> Any:
        """A complete answer."""

    def truncated(self, said: Said) -> Any:
        """An answer cut off at the token limit."""
        return None

    def refused(self, said: Said) -> Any:
        """The model declines, in a field or with a stop reason of its own."""
        return None

    def blocked(self, said: Said) -> Any:
        """A filter of the provider stopped the answer."""
        return None

    def error(self, status: int, message: str) -> Any:
        """The body of an error status."""
        return {"error": {"code": status, "message": message}}

    def response(self, said: Any, *, status: int = 200) -> Response:
        """What one of the methods above returned, ready to send. Override it for formats other than JSON."""
        return said if isinstance(said, Response) else Response(status=status, body=json.dumps(said).encode())


class ChatCompletions(Dialect):
    """OpenAI's Chat Completions, which many servers speak."""

    def ok(self, said: Said) -> Any:
        return self._answer(said, {"content": said.text, "refusal": None}, "stop")

    def truncated(self, said: Said) -> Any:
        return self._answer(said, {"content": said.text, "refusal": None}, "length")

    def refused(self, said: Said) -> Any:
        return self._answer(said, {"content": None, "refusal": said.text}, "stop")

    def blocked(self, said: Said) -> Any:
        return self._answer(said, {"content": None, "refusal": None}, "content_filter")

    def _answer(self, said: Said, message: dict[str, Any], stop: str) -> dict[str, Any]:
        total = said.input_tokens + said.output_tokens
        return {
            "id": "chatcmpl-check",
            "object": "chat.completion",
            "created": 0,
            "model": said.model,
            "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": stop}],
            "usage": {
                "prompt_tokens": said.input_tokens,
                "completion_tokens": said.output_tokens,
                "total_tokens": total,
            },
        }
