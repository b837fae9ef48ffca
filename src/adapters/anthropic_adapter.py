"""Anthropic's Claude, over the Messages API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from ..records.target import SearchOptions, WebCitation, WebSearch
from ..schemas import Usage
from .addresses import endpoint
from .base import (
    BatchLimits,
    BatchReply,
    BatchRequest,
    BatchState,
    FoundBatch,
    KnownBatch,
    LostBatch,
    ModelRequest,
    ReplyOutcome,
)
from .batches import CLOCK_SKEW, TIMEOUT_S, WITHOUT_RESPONSE, HttpBatches, decoded_lines, given, parsed
from .capabilities import Call, rule_for, text_parts
from .http import HttpAdapter, ParsedReply, ShapeError, client_options, count_of, inner_object, opened, text_of, total
from .secrets import Secret, checked_key
from .web_search import LONGEST_URL, PAUSED, ReplySpan, SearchTool, citation, objects, texts

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
        await self.post("/v1/messages", message_body(call), timeout_s, call)

    async def _ask_nothing(self, timeout_s: float) -> None:
        await self.post("/v1/messages", {}, timeout_s)

    async def _list(self, timeout_s: float) -> None:
        await self.get("/v1/models", {"limit": 1000}, timeout_s)

    def headers(self, call: Call | None) -> Mapping[str, Any]:
        return {"anthropic-version": call.takes.api_version} if call and call.takes.api_version else {}

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


def _client(secret: Secret, base_url: str) -> AsyncAnthropic:
    import anthropic

    http_client = anthropic.DefaultAsyncHttpxClient(timeout=None, **client_options(base_url))
    return anthropic.AsyncAnthropic(api_key=secret.reveal(), base_url=base_url, max_retries=0, http_client=http_client)


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


# Claude's web search: the tool in a request, and what a reply says of searches and sources.

FIRST_VERSION = "web_search_20250305"


def search_tool(tool: SearchTool, search: SearchOptions) -> dict[str, Any]:
    made: dict[str, Any] = {"type": tool.version, "name": "web_search", "max_uses": search.max_searches}
    if tool.version != FIRST_VERSION:
        # Not through code that filters results: what a model read is then in the response, whichever model it is.
        made["allowed_callers"] = ["direct"]
    if search.allowed_domains:
        made["allowed_domains"] = list(search.allowed_domains)
    if search.blocked_domains:
        made["blocked_domains"] = list(search.blocked_domains)
    if search.country:
        made["user_location"] = {"type": "approximate", "country": search.country}
    return made


def read_search(payload: dict[str, Any], blocks: list[dict[str, Any]]) -> WebSearch:
    """What was searched for a reply; a citation backs the text block that it comes with."""
    asked = [block for block in blocks if block.get("type") == "server_tool_use" and block.get("name") == "web_search"]
    results = [block.get("content") for block in blocks if block.get("type") == "web_search_tool_result"]
    used = inner_object(inner_object(payload, "usage"), "server_tool_use")
    billed = count_of(used, "web_search_requests")
    return WebSearch(
        searches=len(asked) if billed is None else billed,
        queries=texts(inner_object(block, "input").get("query") for block in asked),
        found=texts((one.get("url") for result in results for one in objects(result)), longest=LONGEST_URL),
        citations=tuple(_citations(blocks)),
        errors=tuple(_error(result) for result in results if isinstance(result, dict)),
    )


def _citations(blocks: list[dict[str, Any]]) -> list[WebCitation]:
    found: list[WebCitation] = []
    at = 0
    for block in blocks:
        if block.get("type") != "text":
            continue
        place = ReplySpan(at, at + len(text_of(block, "text") or ""))
        at = place.end
        for one in objects(block.get("citations")):
            if one.get("type") == "web_search_result_location":
                made = citation(one.get("url"), title=one.get("title"), cited_text=one.get("cited_text"), span=place)
                found += [made] if made else []
    return found


def _error(result: dict[str, Any]) -> str:
    return text_of(result, "error_code") or "unknown error"


# Anthropic's Message Batches API. It has no room for a name, so a lost batch is known again by its lines.

PATH = "/v1/messages/batches"
PAGE = 1_000
STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The HTTP status that an error has in a call of its own; any other one is a fault of the server."""


class _Result(msgspec.Struct):
    type: str
    message: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


class _Line(msgspec.Struct):
    custom_id: str
    result: _Result


class AnthropicBatches(HttpBatches[AnthropicAdapter]):
    limits = BatchLimits(100_000, 240_000_000)  # of 256 MB

    def _document(self, call: Call) -> dict[str, Any]:
        return message_body(call)

    async def send(self, intent: str, requests: Sequence[BatchRequest]) -> KnownBatch:
        calls = [self._adapter.fitted(one.request) for one in requests]
        lines = [
            {"custom_id": one.custom_id, "params": message_body(call)}
            for one, call in zip(requests, calls, strict=True)
        ]
        body = await self._fetch(
            lambda: self._client.messages.batches.create(
                requests=lines, extra_headers=self._adapter.headers(calls[0]), timeout=TIMEOUT_S
            )
        )
        return _known(parsed(body))

    async def find(self, lost: LostBatch) -> FoundBatch:
        """Batches of that time with as many lines. The results of those that ended tell; one that has not may be it."""
        undecided = False
        after: dict[str, str] = {}
        while True:
            page = parsed(await self._get(PATH, {"limit": PAGE, **after}))
            batches = [one for one in page.get("data") or [] if isinstance(one, dict)]
            recent = [one for one in batches if _created(one) >= lost.since - CLOCK_SKEW]
            for one in recent:
                counts = inner_object(one, "request_counts")
                if one.get("id") in lost.others or sum(count_of(counts, name) or 0 for name in _COUNTS) != lost.lines:
                    continue
                if one.get("processing_status") != "ended":
                    undecided = True
                elif any(line.custom_id.startswith(lost.intent) for line in await self.results(str(one.get("id")), ())):
                    return FoundBatch(_known(one))
            if not page.get("has_more") or len(recent) < len(batches):
                return FoundBatch(None, undecided)
            after = {"after_id": str(batches[-1].get("id"))}

    async def state(self, batch: str, lines: int) -> BatchState:
        found = parsed(await self._get(f"{PATH}/{batch}"))
        name = str(found.get("processing_status"))
        return BatchState(name, name == "ended")

    async def results(self, batch: str, custom_ids: Sequence[str]) -> list[BatchReply]:
        return [_reply(line) for line in decoded_lines(await self._get(f"{PATH}/{batch}/results"), _Line)]


_COUNTS = ("processing", "succeeded", "errored", "canceled", "expired")


def _known(batch: dict[str, Any]) -> KnownBatch:
    return KnownBatch(str(batch.get("id")), text_of(batch, "expires_at"))


def _created(batch: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(str(batch.get("created_at")))


def _reply(line: _Line) -> BatchReply:
    if message := given(line.result.message):
        return BatchReply(custom_id=line.custom_id, status=200, content=message)
    if error := given(line.result.error):
        kind = str(inner_object(parsed(error), "error").get("type"))
        return BatchReply(custom_id=line.custom_id, status=STATUS.get(kind, 500), content=error)
    return BatchReply(custom_id=line.custom_id, problem=f"the line is {line.result.type}: {WITHOUT_RESPONSE}")
