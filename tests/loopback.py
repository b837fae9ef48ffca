"""A loopback server that speaks the providers' wire formats and can misbehave in every way a provider can.

It listens on 127.0.0.1, on a port of the system's choice, in a thread of its own; it knows by the path whose format is
wanted. Every request is counted and kept (the last `keep` of them), and answered as the script says:

    with Loopback([Scripted(fault="reset"), Scripted(text="Part B")]) as server:
        adapter = OpenAIAdapter(api_key="k", base_url=server.url("openai"))
        ...
        assert server.count == 2

A script is a list of `Scripted`, used up in order and followed by `default`, or a function from the request to one.
Nothing outlives the `with` block: connections are cut, waits end, the thread is joined.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

Wire = Literal["openai", "anthropic", "google"]
Reply = Literal["text", "thinking_first", "refusal", "content_filter", "prompt_block", "empty", "truncated"]
Fault = Literal[
    "timeout",
    "reset",
    "truncated_body",
    "malformed_json",
    "html",
    "null",
    "empty_object",
    "empty_body",
    "slow_drip",
]
MAX_BODY = 16_000_000
LONGEST_WAIT_S = 120.0
"""When a wait is given up so that a broken test ends; no test takes that long."""


@dataclass(frozen=True)
class Received:
    """A request as it came."""

    wire: Wire
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: Any

    @property
    def key(self) -> str:
        """The API key, from whichever header the format carries it in."""
        bearer = self.headers.get("authorization", "").removeprefix("Bearer ")
        return bearer or self.headers.get("x-goog-api-key", "") or self.headers.get("x-api-key", "")

    @property
    def model(self) -> str:
        if self.wire == "google":
            return self.path.rpartition("/")[2].partition(":")[0]
        return str(self.body.get("model")) if isinstance(self.body, dict) else ""


@dataclass(frozen=True, kw_only=True)
class Scripted:
    """One answer: a reply of some kind, an error status, or a fault below HTTP or JSON."""

    reply: Reply = "text"
    text: str = "Part B covers it."
    thinking: str = "The user asks about Part B."
    stop: str | None = None
    """The stop reason, where it is not the format's own for this reply."""
    served: str | None = None
    """The model that answers, where it is not the one asked."""
    status: int = 200
    error_code: str | None = None
    error_details: tuple[dict[str, Any], ...] = ()
    fault: Fault | None = None
    raw: bytes | None = None
    """A body to send as it is."""
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    echo_key: bool = False
    """Repeat the caller's key in the text or the error message."""


Script = Callable[[Received], Scripted] | Iterable[Scripted]


class Loopback:
    """The server. Make it with a script, enter it, take its `url`."""

    def __init__(self, script: Script = (), *, default: Scripted | None = None, keep: int = 1_000) -> None:
        self._answer = script if callable(script) else None
        self._queue = deque(() if callable(script) else script)
        self._default = default or Scripted()
        self.requests: deque[Received] = deque(maxlen=keep)
        self.count = 0
        """Requests in all."""
        self.connections = 0
        self._port = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="loopback", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(LONGEST_WAIT_S):
            raise RuntimeError("the loopback server did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(LONGEST_WAIT_S)
        if self._thread.is_alive():
            raise RuntimeError("the loopback server did not stop")

    def url(self, wire: Wire) -> str:
        """The base URL in the form that this provider's SDK wants."""
        return f"http://127.0.0.1:{self._port}" + ("/v1" if wire == "openai" else "")

    def script(self, *items: Scripted) -> None:
        """Forget what was seen and what was to come, and answer with these next."""
        self._queue = deque(items)
        self.requests.clear()
        self.count = 0

    @property
    def last(self) -> Received:
        return self.requests[-1]

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
        self.connections += 1
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.CancelledError, ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client went away or the server stops: either way this connection is over
        finally:
            writer.transport.abort()
            self._tasks.discard(task)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request; whether the connection can take another."""
        received = await _read_request(reader)
        self.requests.append(received)
        self.count += 1
        if self._answer is not None:
            scripted = self._answer(received)
        else:
            scripted = self._queue.popleft() if self._queue else self._default
        if scripted.delay_s:
            await asyncio.sleep(min(scripted.delay_s, LONGEST_WAIT_S))
        return await _respond(reader, writer, received, scripted)


async def _read_request(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    path = head[0].split(" ")[1]
    headers = {}
    for line in head[1:-2]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    length = int(headers.get("content-length", "0"))
    if length > MAX_BODY:
        raise ConnectionError("request too large")
    body = await reader.readexactly(length)
    wire: Wire = "google" if ":generateContent" in path else "anthropic" if path.endswith("/messages") else "openai"
    return Received(wire, path, headers, json.loads(body) if body else None)


async def _respond(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, received: Received, scripted: Scripted
) -> bool:
    fault = scripted.fault
    if fault == "timeout":
        await asyncio.wait_for(reader.read(1), LONGEST_WAIT_S)  # until the client gives up
        return False
    if fault == "reset":
        handle: socket.socket = writer.get_extra_info("socket")
        handle.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False
    if received.wire == "anthropic" and scripted.reply in ("content_filter", "prompt_block"):
        scripted = replace(scripted, status=400)  # Anthropic's filter answers with an error, not with a message
    body, content_type = _body(received, scripted)
    length = len(body) + (500 if fault == "truncated_body" else 0)
    names = {"content-type": content_type, "content-length": str(length), "x-request-id": "req-loopback"}
    names |= {"request-id": "req-loopback"} | scripted.headers
    lines = [f"HTTP/1.1 {scripted.status} Loopback", *(f"{name}: {value}" for name, value in names.items()), "", ""]
    head = "\r\n".join(lines).encode("latin-1")
    if fault == "slow_drip":
        writer.write(head)
        for byte in body:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.05)
        return False
    writer.write(head + body)
    await writer.drain()
    if fault == "truncated_body":
        writer.close()
        await writer.wait_closed()
        return False
    return True


def _body(received: Received, scripted: Scripted) -> tuple[bytes, str]:
    garbage: dict[Fault, bytes] = {
        "malformed_json": b'{"choices": [{"message": {"content": "Part',
        "null": b"null",
        "empty_object": b"{}",
        "empty_body": b"",
    }
    if scripted.fault == "html":
        return b"<html><body><h1>Bad gateway</h1></body></html>", "text/html"
    if scripted.fault in garbage:
        return garbage[scripted.fault], "application/json"
    if scripted.raw is not None:
        return scripted.raw, "application/json"
    echo = f" (key {received.key})" if scripted.echo_key else ""
    if scripted.status != 200:
        payload = _error(received.wire, scripted.status, f"scripted error{echo}", scripted)
    else:
        payload = _SPEAKERS[received.wire](received, scripted, scripted.text + echo)
    return json.dumps(payload).encode(), "application/json"


def _error(wire: Wire, status: int, message: str, scripted: Scripted) -> dict[str, Any]:
    if wire == "anthropic":
        filtered = scripted.reply in ("content_filter", "prompt_block")
        message = "Output blocked by content filtering policy" if filtered else message
        return {"type": "error", "error": {"type": scripted.error_code or "scripted", "message": message}}
    error: dict[str, Any] = {"message": message, "code": scripted.error_code or status}
    if wire == "google":
        return {"error": error | {"code": status, "status": "SCRIPTED", "details": list(scripted.error_details)}}
    return {"error": error | {"type": "scripted", "param": None}}


def _speak_openai(received: Received, scripted: Scripted, text: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if scripted.reply == "thinking_first":
        message = {"role": "assistant", "reasoning_content": scripted.thinking, "content": text}
    elif scripted.reply == "refusal":
        message |= {"content": None, "refusal": text}
    elif scripted.reply in ("content_filter", "prompt_block", "empty"):
        message |= {"content": None if scripted.reply != "empty" else " \n"}
    stops = {"content_filter": "content_filter", "prompt_block": "content_filter", "truncated": "length"}
    choice = {"index": 0, "message": message, "finish_reason": scripted.stop or stops.get(scripted.reply, "stop")}
    usage = {
        "prompt_tokens": 11,
        "completion_tokens": 7,
        "total_tokens": 18,
        "prompt_tokens_details": {"cached_tokens": 5},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    return {
        "id": "chatcmpl-loopback",
        "object": "chat.completion",
        "created": 0,
        "model": scripted.served or received.model,
        "system_fingerprint": "fp_loopback",
        "choices": [choice],
        "usage": usage,
    }


def _speak_anthropic(received: Received, scripted: Scripted, text: str) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}]
    if scripted.reply == "thinking_first":
        blocks.insert(0, {"type": "thinking", "thinking": scripted.thinking, "signature": "c2ln"})
    elif scripted.reply == "empty":
        blocks = []
    stops = {"refusal": "refusal", "truncated": "max_tokens"}
    return {
        "id": "msg_loopback",
        "type": "message",
        "role": "assistant",
        "model": scripted.served or received.model,
        "content": blocks,
        "stop_reason": scripted.stop or stops.get(scripted.reply, "end_turn"),
        "stop_sequence": None,
        "usage": {
            "input_tokens": 4,
            "cache_creation_input_tokens": 2,
            "cache_read_input_tokens": 5,
            "output_tokens": 7,
            "output_tokens_details": {"thinking_tokens": 3},
        },
    }


def _speak_google(received: Received, scripted: Scripted, text: str) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": text}]
    if scripted.reply == "thinking_first":
        parts.insert(0, {"text": scripted.thinking, "thought": True})
    stops = {"content_filter": "SAFETY", "truncated": "MAX_TOKENS"}
    candidate: dict[str, Any] = {"index": 0, "finishReason": scripted.stop or stops.get(scripted.reply, "STOP")}
    if scripted.reply not in ("content_filter", "empty"):
        candidate["content"] = {"role": "model", "parts": parts}
    answer: dict[str, Any] = {"candidates": [candidate]}
    if scripted.reply == "prompt_block":
        answer = {"promptFeedback": {"blockReason": scripted.stop or "PROHIBITED_CONTENT"}}
    return answer | {
        "modelVersion": scripted.served or received.model,
        "responseId": "resp-loopback",
        "usageMetadata": {
            "promptTokenCount": 11,
            "candidatesTokenCount": 4,
            "thoughtsTokenCount": 3,
            "cachedContentTokenCount": 5,
            "totalTokenCount": 18,
        },
    }


_SPEAKERS: dict[Wire, Callable[[Received, Scripted, str], dict[str, Any]]] = {
    "openai": _speak_openai,
    "anthropic": _speak_anthropic,
    "google": _speak_google,
}
