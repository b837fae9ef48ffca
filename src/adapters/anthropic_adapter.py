"""Anthropic's Claude, over the Messages API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ..schemas import Usage
from .addresses import endpoint
from .anthropic_search import read_search, search_tool
from .base import ModelRequest, ReplyOutcome
from .caching import rule_for, text_parts
from .capabilities import Call
from .http import (
    HttpAdapter,
    ParsedReply,
    ShapeError,
    client_options,
    count_of,
    inner_object,
    opened,
    text_of,
    total,
)
from .secrets import Secret, checked_key
from .sent_back import PAUSED

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

_CUT_SHORT = frozenset({"max_tokens", "model_context_window_exceeded"})


class AnthropicAdapter(HttpAdapter):
    """`anthropic:` models."""

    provider: ClassVar[str] = "anthropic"
    request_id_headers: ClassVar[tuple[str, ...]] = ("request-id", "x-request-id")

    def __init__(self, *, api_key: str, base_url: str | None = None) -> None:
        super().__init__(checked_key(api_key, self.provider))
        url = endpoint(self.provider, base_url).base_url
        self._client = opened(self.provider, lambda: _client(self._secret, url))

    async def _send(self, call: Call, timeout_s: float) -> None:
        await self._post(message_body(call), call.takes.api_version, timeout_s)

    async def _ask_nothing(self, timeout_s: float) -> None:
        await self._post({}, None, timeout_s)

    async def _post(self, body: dict[str, Any], version: str | None, timeout_s: float) -> None:
        from httpx2 import Response

        # Not `messages.create`: it no longer takes a temperature, and it warns about old models through `warnings`,
        # which raises an exception if warnings are errors.
        await self._client.post(
            "/v1/messages",
            cast_to=Response,
            body=body,
            options={"timeout": timeout_s, "headers": version_header(version)},
        )

    async def _list(self, timeout_s: float) -> None:
        from httpx2 import Response

        await self._client.get("/v1/models?limit=1000", cast_to=Response, options={"timeout": timeout_s})

    async def get(self, path: str, query: dict[str, Any], timeout_s: float) -> None:
        """For what is not a model's call."""
        from httpx2 import Response

        await self._client.get(path, cast_to=Response, options={"params": query, "timeout": timeout_s})

    def _read(self, payload: dict[str, Any]) -> ParsedReply:
        blocks = payload.get("content")
        if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
            raise ShapeError("'content' is not a list of blocks")
        # Thinking may come first, and tools or citations may split the text, so join all text blocks in order.
        text = "".join(text_of(block, "text") or "" for block in blocks if block.get("type") == "text")
        stop = text_of(payload, "stop_reason")
        outcome: ReplyOutcome = "ok" if text.strip() else "empty"
        if stop == "refusal":
            outcome = "refused"
            text = text or text_of(inner_object(payload, "stop_details"), "explanation") or ""
        elif stop in _CUT_SHORT:
            outcome = "truncated"
        elif stop == PAUSED:
            outcome = "ok"  # even without a word yet: the model is asked to continue
        return ParsedReply(
            outcome=outcome,
            text=text,
            stop_reason=stop,
            served_model=text_of(payload, "model"),
            request_id=text_of(payload, "id"),
            usage=_usage(inner_object(payload, "usage")),
            search=read_search(payload, blocks),
        )

    async def aclose(self) -> None:
        await self._client.close()


def _client(secret: Secret, base_url: str) -> AsyncAnthropic:
    import anthropic

    http_client = anthropic.DefaultAsyncHttpxClient(timeout=None, **client_options(base_url))
    return anthropic.AsyncAnthropic(api_key=secret.reveal(), base_url=base_url, max_retries=0, http_client=http_client)


def version_header(version: str | None) -> dict[str, str]:
    return {"anthropic-version": version} if version else {}


def message_body(call: Call) -> dict[str, Any]:
    request = call.request
    body: dict[str, Any] = {
        "model": call.model,
        "max_tokens": request.max_tokens,
        **_prompt(request, marked=rule_for(AnthropicAdapter.provider, request, call.model) is not None),
    }
    if call.temperature is not None:
        body["temperature"] = call.temperature
    if output := _output_config(call):
        body["output_config"] = output
    if call.effort is not None and call.takes.adaptive:
        body["thinking"] = {"type": "adaptive"}
    if call.search is not None and call.takes.search is not None:
        body["tools"] = [search_tool(call.takes.search, call.search)]
    return body


def _output_config(call: Call) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if call.schema is not None:
        config["format"] = {"type": "json_schema", "schema": call.schema}
    if call.effort is not None:
        config["effort"] = call.effort
    return config


def _prompt(request: ModelRequest, *, marked: bool) -> dict[str, Any]:
    """System prompt and messages. `marked`: with a mark (two at most; four are allowed) where a cached prefix ends."""
    messages: list[dict[str, Any]] = [
        {"role": one.role, "content": list(one.blocks) or one.content} for one in request.messages
    ]
    prompt: dict[str, Any] = {"messages": messages}
    if request.system is not None:
        prompt["system"] = [_block(request.system, ends_prefix=True)] if marked else request.system
    if marked:
        parts = text_parts(request.messages[0])
        messages[0]["content"] = [_block(part.text, ends_prefix=part.stable) for part in parts]
    return prompt


def _block(text: str, *, ends_prefix: bool) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": text}
    return {**block, "cache_control": {"type": "ephemeral"}} if ends_prefix else block


def _usage(usage: dict[str, Any]) -> Usage:
    cached, written = count_of(usage, "cache_read_input_tokens"), count_of(usage, "cache_creation_input_tokens")
    return Usage(
        # Anthropic counts what it reads from the cache and writes to it separately; our count includes both.
        input_tokens=total(count_of(usage, "input_tokens"), cached, written),
        output_tokens=count_of(usage, "output_tokens"),
        cached_tokens=cached,
        cache_write_tokens=written,
        reasoning_tokens=count_of(inner_object(usage, "output_tokens_details"), "thinking_tokens"),
    )
