"""OpenAI, over Chat Completions, which alone takes a seed, and over Responses for targets that search."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from ..errors import ConfigError
from ..records.target import SearchOptions, WebCitation, WebSearch
from ..schemas import Usage
from ..store.strict_json import encode
from .addresses import endpoint
from .base import (
    BatchLimits,
    BatchReply,
    BatchRequest,
    BatchState,
    FailureOutcome,
    FoundBatch,
    KnownBatch,
    LostBatch,
    ModelRequest,
    ReplyOutcome,
)
from .batches import CLOCK_SKEW, TIMEOUT_S, WITHOUT_RESPONSE, HttpBatches, decoded_lines, iso, parsed
from .capabilities import Call, cache_key, rule_for, text_parts
from .http import (
    HttpAdapter,
    ParsedReply,
    ReportedFailure,
    ShapeError,
    client_options,
    count_of,
    first_object,
    inner_object,
    opened,
    text_of,
)
from .secrets import Secret, checked_key, custom_headers
from .web_search import LONGEST_URL, citation, objects, span_in, texts

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class OpenAIAdapter(HttpAdapter):
    """`openai:` models, and the base class of every adapter with the same wire format."""

    provider: ClassVar[str] = "openai"
    extra: ClassVar[str] = "openai"
    """The extra that installs its SDK."""

    def __init__(self, *, api_key: str, base_url: str | None = None) -> None:
        super().__init__(checked_key(api_key, self.provider))
        self._open(base_url)

    def _open(self, base_url: str | None) -> None:
        url = endpoint(self.provider, base_url).base_url
        self._client = opened(self.extra, lambda: _client(self._secret, url))
        self._chat_url = f"{url.rstrip('/')}/chat/completions"
        self._responses_url = f"{url.rstrip('/')}/responses"

    async def _send(self, call: Call, timeout_s: float) -> None:
        if call.search is None:
            await self.post(self._chat_url, chat_body(self.provider, call), timeout_s, call)
        else:
            await self.post(self._responses_url, responses_body(self.provider, call), timeout_s, call)

    async def _ask_nothing(self, timeout_s: float) -> None:
        await self.post(self._chat_url, {}, timeout_s)

    async def _list(self, timeout_s: float) -> None:
        await self.get("/models", {}, timeout_s)

    def _read(self, payload: dict[str, Any]) -> ParsedReply:
        if "choices" not in payload and "output" in payload:
            return read_response(payload)
        choice = first_object(payload, "choices")
        message = choice.get("message")
        if not isinstance(message, dict):
            raise ShapeError("'choices[0].message' is not an object")
        text = _content(message)
        refusal = text_of(message, "refusal")
        stop = text_of(choice, "finish_reason")
        outcome: ReplyOutcome = "ok" if text.strip() else "empty"
        if stop == "content_filter":
            outcome = "blocked"
        elif refusal is not None:
            outcome, text = "refused", refusal
        elif stop == "length":
            outcome = "truncated"
        return ParsedReply(
            outcome=outcome,
            text=text,
            stop_reason=stop,
            served_model=text_of(payload, "model"),
            fingerprint=text_of(payload, "system_fingerprint"),
            request_id=text_of(payload, "id"),
            usage=usage_of(inner_object(payload, "usage"), "prompt_tokens", "completion_tokens"),
        )


class ThirdPartyChat(OpenAIAdapter):
    """Another company's server, called with OpenAI's SDK."""

    keyless = False

    def headers(self, call: Call | None) -> Mapping[str, Any]:
        """Leave out what the SDK read from the environment about the user's account at OpenAI."""
        from openai import Omit

        account = (
            "OpenAI-Organization",
            "OpenAI-Project",
            *custom_headers(os.environ.get("OPENAI_CUSTOM_HEADERS", "")),
        )
        omitted = dict.fromkeys(account, Omit())
        # Last, because OPENAI_CUSTOM_HEADERS may name this header too.
        return {**omitted, "Authorization": Omit() if self.keyless else f"Bearer {self._secret.reveal()}"}


def _client(secret: Secret, base_url: str) -> AsyncOpenAI:
    import openai

    http_client = openai.DefaultAsyncHttpxClient(timeout=None, **client_options(base_url))
    return openai.AsyncOpenAI(api_key=secret.reveal(), base_url=base_url, max_retries=0, http_client=http_client)


def chat_body(provider: str, call: Call) -> dict[str, Any]:
    request, rule = call.request, rule_for(provider, call.request, call.model)
    marked = rule is not None and rule.how == "breakpoints"
    messages = _messages(request, marked=marked)
    body: dict[str, Any] = {"model": call.model, "messages": messages, call.takes.length_parameter: request.max_tokens}
    if rule is not None and rule.how in ("key", "breakpoints"):
        body["prompt_cache_key"] = cache_key(request)
    if marked:
        body["prompt_cache_options"] = {"mode": "explicit"}
    if call.effort is not None:
        body["reasoning_effort"] = call.effort
    if call.temperature is not None:
        body["temperature"] = call.temperature
    if call.seed is not None:
        body["seed"] = call.seed
    if call.schema is not None:
        named = {"name": "reply", "strict": True, "schema": call.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    return body


def _messages(request: ModelRequest, *, marked: bool) -> list[dict[str, Any]]:
    """The messages, the system prompt first. `marked`: with a mark where a cached prefix ends."""
    messages: list[dict[str, Any]] = [{"role": one.role, "content": one.content} for one in request.messages]
    if marked:
        parts = text_parts(request.messages[0])
        messages[0]["content"] = [_part(part.text, ends_prefix=part.stable) for part in parts]
    if request.system is not None:
        system = [_part(request.system, ends_prefix=True)] if marked else request.system
        messages.insert(0, {"role": "system", "content": system})
    return messages


def _part(text: str, *, ends_prefix: bool) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "text", "text": text}
    return {**part, "prompt_cache_breakpoint": {"mode": "explicit"}} if ends_prefix else part


def _content(message: dict[str, Any]) -> str:
    """The text of a message: a string, nothing or, from some servers, a list of parts."""
    content = message.get("content")
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        return "".join(text_of(part, "text") or "" for part in content if part.get("type") == "text")
    raise ShapeError("'choices[0].message.content' is not text")


# The Responses API of OpenAI and xAI, in which alone their models search the web.

_SOURCES = "web_search_call.action.sources"
_REASONING = "reasoning.encrypted_content"
_BLOCKED_CODES = frozenset({"bio_policy", "misalignment_policy_violation", "invalid_prompt", "content_filter"})
"""Codes of a response that failed because of what was asked."""
_FAILURES: dict[str, FailureOutcome] = {"rate_limit_exceeded": "rate_limited", "data_residency_mismatch": "permanent"}
"""Codes of a response that failed; any other one is worth another attempt."""


def responses_body(provider: str, call: Call) -> dict[str, Any]:
    """A request with search. Nothing is stored at the provider: earlier replies are sent back as they came."""
    request, search = call.request, call.search
    assert search is not None
    body: dict[str, Any] = {
        "model": call.model,
        "input": _input(request),
        "max_output_tokens": request.max_tokens,
        "tools": [_tool(search)],
        "store": False,
        "include": [_REASONING] if provider == "xai" else [_SOURCES, _REASONING],
    }
    if request.system is not None and provider == "xai":
        body["input"].insert(0, {"role": "system", "content": request.system})
    elif request.system is not None:
        body["instructions"] = request.system
    if provider == "openai":
        body["max_tool_calls"] = search.max_searches
    if call.temperature is not None:
        body["temperature"] = call.temperature
    if call.effort is not None:
        body["reasoning"] = {"effort": call.effort}
    return body


def _input(request: ModelRequest) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for message in request.messages:
        items += message.blocks or ({"role": message.role, "content": message.content},)
    return items


def _tool(search: SearchOptions) -> dict[str, Any]:
    tool: dict[str, Any] = {"type": "web_search"}
    filters = {"allowed_domains": list(search.allowed_domains), "excluded_domains": list(search.blocked_domains)}
    if used := {name: domains for name, domains in filters.items() if domains}:
        tool["filters"] = used
    if search.country:
        tool["user_location"] = {"type": "approximate", "country": search.country}
    if search.context_size:
        tool["search_context_size"] = search.context_size
    return tool


def read_response(payload: dict[str, Any]) -> ParsedReply:
    """Read a response, or raise `ShapeError` or `ReportedFailure`."""
    if not isinstance(payload.get("output"), list):
        raise ShapeError("'output' is not a list of items")
    status = text_of(payload, "status")
    reason = text_of(inner_object(payload, "incomplete_details"), "reason")
    blocked = _failed(payload, status)
    said = _Said(payload)
    outcome: ReplyOutcome = "ok" if said.text.strip() else "empty"
    if blocked or reason == "content_filter":
        outcome = "blocked"
    elif said.refusal:
        outcome = "refused"
    elif status == "incomplete":
        outcome = "truncated"
    return ParsedReply(
        outcome=outcome,
        text=said.refusal if outcome == "refused" else said.text,
        stop_reason=blocked or reason or status,
        served_model=text_of(payload, "model"),
        request_id=text_of(payload, "id"),
        usage=usage_of(inner_object(payload, "usage"), "input_tokens", "output_tokens"),
        search=said.search(),
    )


def _failed(payload: dict[str, Any], status: str | None) -> str | None:
    """The code of a response that a filter stopped, or None. Raises if the provider failed, or has not finished."""
    error = inner_object(payload, "error")
    if status == "failed" or error:
        code, message = text_of(error, "code") or "failed", text_of(error, "message") or "no reason given"
        if code in _BLOCKED_CODES:
            return code
        raise ReportedFailure(_FAILURES.get(code, "transient"), f"the response failed: {code}: {message}")
    if status in ("queued", "in_progress", "cancelled"):
        raise ShapeError(f"the response is {status}")
    return None


class _Said:
    """The words of a response, and what was searched for them."""

    def __init__(self, payload: dict[str, Any]) -> None:
        self.text = ""
        self.refusal = ""
        self._citations: list[WebCitation] = []
        self._calls: list[dict[str, Any]] = []
        self._payload = payload
        for item in objects(payload["output"]):
            if item.get("type") == "message":
                for part in objects(item.get("content")):
                    self._add(part)
            elif item.get("type") == "web_search_call":
                self._calls.append(item)

    def _add(self, part: dict[str, Any]) -> None:
        if part.get("type") == "refusal":
            self.refusal += text_of(part, "refusal") or ""
            return
        if part.get("type") != "output_text":
            return
        text, at = text_of(part, "text") or "", len(self.text)
        self.text += text
        for note in objects(part.get("annotations")):
            if note.get("type") == "url_citation":
                span = span_in(note.get("start_index"), note.get("end_index"), len(text), at=at)
                one = citation(note.get("url"), title=note.get("title"), span=span)
                self._citations += [one] if one else []

    def search(self) -> WebSearch:
        actions = [inner_object(call, "action") for call in self._calls]
        searches = [action for action in actions if action.get("type") in (None, "search")]
        queries = [query for action in searches for query in _queries(action)]
        sources = [one.get("url") for action in actions for one in (action, *objects(action.get("sources")))]
        listed = self._payload.get("citations")  # xAI's list of all pages
        failed = [call for call in self._calls if call.get("status") == "failed"]
        return WebSearch(
            searches=_billed(self._payload, len(searches)),
            queries=texts(queries),
            found=texts([*sources, *(listed if isinstance(listed, list) else ())], longest=LONGEST_URL),
            citations=tuple(self._citations),
            errors=tuple(f"web_search_call {text_of(call, 'id') or ''} failed".replace("  ", " ") for call in failed),
        )


def _queries(action: dict[str, Any]) -> list[Any]:
    several = action.get("queries")
    return several if isinstance(several, list) and several else [action.get("query")]


def _billed(payload: dict[str, Any], seen: int) -> int:
    """Searches as they are billed: xAI counts them itself, without those that failed. OpenAI bills those we see."""
    counted = count_of(
        inner_object(inner_object(payload, "usage"), "server_side_tool_usage_details"), "web_search_calls"
    )
    return seen if counted is None else counted


def usage_of(usage: dict[str, Any], asked: str, answered: str) -> Usage:
    """The usage of a reply of either API, which name their two counts differently."""
    prompt, output = count_of(usage, asked), count_of(usage, answered)
    reasoning = count_of(inner_object(usage, f"{answered}_details"), "reasoning_tokens")
    whole = count_of(usage, "total_tokens")
    # OpenAI's output count includes reasoning and xAI's does not; the total shows which. Ours always includes it.
    if None not in (prompt, output, reasoning, whole) and whole == (prompt or 0) + (output or 0) + (reasoning or 0):
        output = (output or 0) + (reasoning or 0)
    of_prompt = inner_object(usage, f"{asked}_details")
    return Usage(
        input_tokens=prompt,
        output_tokens=output,
        cached_tokens=count_of(of_prompt, "cached_tokens"),
        reasoning_tokens=reasoning,
        cache_write_tokens=count_of(of_prompt, "cache_write_tokens"),
    )


# OpenAI's Batch API: a file of requests, a batch of that file, and two files of results.

ENDPOINT = "/v1/chat/completions"
ENDED = frozenset({"completed", "expired", "cancelled", "failed"})
PAGE = 100


class _Response(msgspec.Struct):
    status_code: int
    body: msgspec.Raw
    request_id: str | None = None


class _Error(msgspec.Struct):
    code: str | None = None
    message: str | None = None


class _Line(msgspec.Struct):
    custom_id: str
    response: _Response | None = None
    error: _Error | None = None


class OpenAIBatches(HttpBatches[OpenAIAdapter]):
    limits = BatchLimits(50_000, 190_000_000)  # of 200 MB

    def _document(self, call: Call) -> dict[str, Any]:
        return chat_body(self._adapter.provider, call)

    async def send(self, intent: str, requests: Sequence[BatchRequest]) -> KnownBatch:
        file = await self._upload(intent, requests)
        body = await self._fetch(
            lambda: self._client.batches.create(
                input_file_id=file,
                endpoint=ENDPOINT,
                completion_window="24h",
                metadata={"intent": intent},
                extra_headers=self._adapter.headers(None),
                timeout=TIMEOUT_S,
            )
        )
        return _known(parsed(body))

    async def _upload(self, intent: str, requests: Sequence[BatchRequest]) -> str:
        lines = b"".join(self._line(one) for one in requests)
        body = await self._fetch(
            lambda: self._client.files.create(
                file=(f"{intent}.jsonl", lines),
                purpose="batch",
                extra_headers=self._adapter.headers(None),
                timeout=TIMEOUT_S,
            )
        )
        return str(parsed(body).get("id"))

    def _line(self, one: BatchRequest) -> bytes:
        head = encode({"custom_id": one.custom_id, "method": "POST", "url": ENDPOINT})
        return head[:-1] + b',"body":' + self.body(one.request) + b"}\n"

    async def find(self, lost: LostBatch) -> FoundBatch:
        after: dict[str, str] = {}
        while True:
            page = parsed(await self._get("/batches", {"limit": PAGE, **after}))
            batches = [one for one in page.get("data") or [] if isinstance(one, dict)]
            for one in batches:
                if inner_object(one, "metadata").get("intent") == lost.intent:
                    return FoundBatch(_known(one))
            oldest = batches[-1].get("created_at") if batches else None
            if not page.get("has_more") or not oldest or oldest < (lost.since - CLOCK_SKEW).timestamp():
                return FoundBatch(None)
            after = {"after": str(batches[-1].get("id"))}

    async def state(self, batch: str, lines: int) -> BatchState:
        found = parsed(await self._get(f"/batches/{batch}"))
        name = str(found.get("status"))
        failed = _reasons(found) if name == "failed" else None
        return BatchState(name, name in ENDED, failed)

    async def results(self, batch: str, custom_ids: Sequence[str]) -> list[BatchReply]:
        found = parsed(await self._get(f"/batches/{batch}"))
        files = [found.get(name) for name in ("output_file_id", "error_file_id")]
        bodies = [await self._get(f"/files/{file}/content") for file in files if file]
        return [_reply(line) for body in bodies for line in decoded_lines(body, _Line)]


def _known(batch: dict[str, Any]) -> KnownBatch:
    return KnownBatch(str(batch.get("id")), iso(batch.get("expires_at")))


def _reasons(batch: dict[str, Any]) -> str:
    problems = inner_object(batch, "errors").get("data")
    said = [str(one.get("message")) for one in problems or [] if isinstance(one, dict)]
    return "; ".join(dict.fromkeys(said))[:500] or "no reason given"


def _reply(line: _Line) -> BatchReply:
    if line.response is not None:
        answered = line.response
        return BatchReply(
            custom_id=line.custom_id,
            status=answered.status_code,
            content=bytes(answered.body),
            request_id=answered.request_id,
        )
    error = line.error or _Error()
    said = ": ".join(filter(None, [error.code, error.message]))
    return BatchReply(custom_id=line.custom_id, problem=said or WITHOUT_RESPONSE)


_NO_KEY = "unused"


class CompatibleAdapter(ThirdPartyChat):
    """Models of a server given by its base URL, with or without a key."""

    provider: ClassVar[str] = "compatible"

    def __init__(self, *, base_url: str, api_key: str | None = None) -> None:
        if not base_url:
            raise ConfigError("An OpenAI-compatible endpoint needs its base URL, for example http://127.0.0.1:8000/v1.")
        HttpAdapter.__init__(self, checked_key(api_key, "the compatible endpoint") if api_key else Secret(_NO_KEY))
        self.keyless = not api_key
        self._open(base_url)
