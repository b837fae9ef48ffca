"""A loopback server that speaks the providers' wire formats and can misbehave in every way a provider can.

It listens on 127.0.0.1, on a port of the system's choice, in a thread of its own; it knows by the path whose format is
wanted. Every request is counted and kept (the last `keep` of them), and answered as the script says:

    with Loopback([Scripted(fault="reset"), Scripted(text="Part B")]) as server:
        adapter = OpenAIAdapter(api_key="k", base_url=server.url("openai"))
        ...
        assert server.count == 2

A script is a list of `Scripted`, used up in order and followed by `default`, or a function from the request to one.
The server itself is the one of `src.testing`; here is what the providers' formats make of it.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from src.testing import server

Wire = Literal["openai", "anthropic", "google"]
Reply = Literal["text", "thinking_first", "refusal", "content_filter", "prompt_block", "empty", "truncated"]
Fault = Literal[
    "timeout", "reset", "truncated_body", "malformed_json", "html", "null", "empty_object", "empty_body", "slow_drip"
]
BELOW_HTTP: dict[Fault, server.Fault] = {
    "timeout": "silence",
    "reset": "reset",
    "truncated_body": "cut",
    "slow_drip": "drip",
}
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


class Loopback(server.Server):
    """The server. Make it with a script, enter it, take its `url`."""

    def __init__(self, script: Script = (), *, default: Scripted | None = None, keep: int = 1_000) -> None:
        super().__init__(self._respond, keep=keep, longest_wait_s=LONGEST_WAIT_S)
        self._rule = script if callable(script) else None
        self._queue = deque(() if callable(script) else script)
        self._default = default or Scripted()

    def url(self, wire: Wire) -> str:
        """The base URL in the form that this provider's SDK wants."""
        return self.address + ("/v1" if wire == "openai" else "")

    def script(self, *items: Scripted) -> None:
        """Forget what was seen and what was to come, and answer with these next."""
        self._queue = deque(items)
        self.forget()

    @property
    def requests(self) -> list[Received]:
        return [understood(request) for request in self.received]

    @property
    def last(self) -> Received:
        return understood(self.received[-1])

    async def _respond(self, request: server.Received) -> server.Response:
        received = understood(request)
        if self._rule is not None:
            scripted = self._rule(received)
        else:
            scripted = self._queue.popleft() if self._queue else self._default
        if scripted.delay_s:
            await asyncio.sleep(min(scripted.delay_s, LONGEST_WAIT_S))
        if received.wire == "anthropic" and scripted.reply in ("content_filter", "prompt_block"):
            scripted = replace(scripted, status=400)  # Anthropic's filter answers with an error, not with a message
        body, content_type = _body(received, scripted)
        return server.Response(
            status=scripted.status,
            body=body,
            content_type=content_type,
            headers={"x-request-id": "req-loopback", "request-id": "req-loopback"} | scripted.headers,
            fault=BELOW_HTTP.get(scripted.fault) if scripted.fault else None,
        )


def understood(request: server.Received) -> Received:
    path = request.path
    wire: Wire = "google" if ":generateContent" in path else "anthropic" if path.endswith("/messages") else "openai"
    return Received(wire, path, request.headers, json.loads(request.body) if request.body else None)


def text_in(content: str | list[dict[str, Any]] | None) -> str:
    """The text of a message or system prompt, which may be cut into blocks where a cached prefix ends."""
    return content if isinstance(content, str) else "".join(block["text"] for block in content or ())


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
