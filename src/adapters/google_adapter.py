"""Google's Gemini, over the Gemini Developer API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from ..records.target import WebSearch
from ..schemas import Usage
from .addresses import Endpoint, endpoint
from .base import Message, ReplyOutcome
from .capabilities import Call
from .classify import ErrorBody, retry_after
from .google_search import read_search
from .http import (
    Exchange,
    HttpAdapter,
    ParsedReply,
    ShapeError,
    client_options,
    count_of,
    first_object,
    inner_object,
    opened,
    text_of,
    total,
)
from .secrets import Secret, checked_key
from .web_search import SearchTool

if TYPE_CHECKING:
    from google import genai
    from google.genai import types
    from httpx2 import AsyncClient

_FILTERED = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"})
_CUT_SHORT = frozenset({"MAX_TOKENS", "CONTINUATION"})
_ANY_MODEL = "gemini-3.8-flash"
"""A model that Google has: without one, there is no address to send a chat request to."""
_VERSION_IN_PATH = re.compile(r"/(v\d[a-z0-9]*)/(?:models|batches)/[^/]*$")
_RETRY_DELAY = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s")


class GoogleAdapter(HttpAdapter):
    """`google:` models."""

    provider: ClassVar[str] = "google"
    request_id_headers: ClassVar[tuple[str, ...]] = ("x-request-id", "x-goog-request-id")

    def __init__(self, *, api_key: str, base_url: str | None = None, api_version: str | None = None) -> None:
        """`api_version` overrides the default: the SDK's at Google's own address, `v1beta` at any other."""
        super().__init__(checked_key(api_key, self.provider))
        place = endpoint(self.provider, base_url, api_version=api_version)
        self._models = f"{place.base_url}/{place.api_version}/models"
        self._http = opened(self.provider, lambda: _http_client(place.base_url))
        self._client = opened(self.provider, lambda: _client(self._secret, place, self._http))

    async def _send(self, call: Call, timeout_s: float) -> None:
        await self._client.aio.models.generate_content(
            model=call.model, contents=contents_of(call), config=config_of(call)
        )

    async def _list(self, timeout_s: float) -> None:
        await self._http.get(f"{self._models}?pageSize=1000", headers=self._key_header())

    async def _ask_nothing(self, timeout_s: float) -> None:
        await self._http.post(f"{self._models}/{_ANY_MODEL}:generateContent", json={}, headers=self._key_header())

    def _key_header(self) -> dict[str, str]:
        return {"x-goog-api-key": self._secret.reveal()}

    def _read(self, payload: dict[str, Any]) -> ParsedReply:
        feedback = text_of(inner_object(payload, "promptFeedback"), "blockReason")
        if feedback is not None:
            return self._parsed(payload, "blocked", "", feedback)
        candidate = first_object(payload, "candidates")
        stop = text_of(candidate, "finishReason")
        text = _text(candidate)
        outcome: ReplyOutcome = "ok" if text.strip() else "empty"
        if stop in _FILTERED:
            outcome = "blocked"
        elif stop in _CUT_SHORT:
            outcome = "truncated"
        return self._parsed(payload, outcome, text, stop, read_search(candidate))

    def _billed(self, tool: SearchTool, found: WebSearch) -> int:
        """Models before Gemini 3 pay for a request that searched, later ones for each query."""
        return min(1, found.searches) if tool.bills == "requests" else found.searches

    def _parsed(
        self,
        payload: dict[str, Any],
        outcome: ReplyOutcome,
        text: str,
        stop: str | None,
        search: WebSearch | None = None,
    ) -> ParsedReply:
        return ParsedReply(
            outcome=outcome,
            text=text,
            stop_reason=stop,
            served_model=text_of(payload, "modelVersion"),
            request_id=text_of(payload, "responseId"),
            usage=_usage(inner_object(payload, "usageMetadata")),
            search=search,
        )

    def _api_version(self, exchange: Exchange) -> str | None:
        found = _VERSION_IN_PATH.search(exchange.address or "")
        return found[1] if found else None

    def _retry_after(self, headers: Mapping[str, str], error: ErrorBody) -> float | None:
        """Google puts the wait time in the body: `{"@type": ".../google.rpc.RetryInfo", "retryDelay": "37s"}`."""
        for detail in error.details:
            if found := _RETRY_DELAY.fullmatch(str(detail.get("retryDelay"))):
                return float(found[1])
        return retry_after(headers)

    async def aclose(self) -> None:
        await self._http.aclose()
        self._client.close()


def _http_client(base_url: str) -> AsyncClient:
    """Our own client: it has the hooks, and it keeps the SDK from using aiohttp, with which it would retry."""
    import httpx2

    limits = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)
    return httpx2.AsyncClient(timeout=None, limits=limits, **client_options(base_url))


def _client(secret: Secret, place: Endpoint, http: AsyncClient) -> genai.Client:
    import httpx2
    from google import genai

    options = genai.types.HttpOptions(
        base_url=place.base_url,
        api_version=place.api_version,
        httpx_async_client=http,
        httpx_client=httpx2.Client(trust_env=False),  # not used; one of its own would read the proxy variables
    )
    # `vertexai` is explicit: an environment variable could switch to another service with other credentials.
    return genai.Client(vertexai=False, api_key=secret.reveal(), http_options=options)


def contents_of(call: Call) -> list[types.Content]:
    from google.genai import types

    return [
        types.Content(role="model" if message.role == "assistant" else "user", parts=[types.Part(text=message.content)])
        for message in call.request.messages
    ]


def config_of(call: Call) -> types.GenerateContentConfig:
    from google.genai import types

    return types.GenerateContentConfig(
        http_options=_verbatim(call),
        tools=[types.Tool(google_search=types.GoogleSearch())] if call.search else None,
        thinking_config=_thinking(call),
        max_output_tokens=call.request.max_tokens,
        system_instruction=call.request.system,
        temperature=call.temperature,
        seed=call.seed,
        response_mime_type=None if call.schema is None else "application/json",
        response_json_schema=call.schema,
        should_return_http_response=True,  # the SDK does not read the body, and so follows no continuation
    )


def _verbatim(call: Call) -> types.HttpOptions | None:
    """Earlier replies of a searching model exactly as they came: the SDK would write signatures in another alphabet."""
    from google.genai import types

    messages = call.request.messages
    if not any(message.blocks for message in messages):
        return None
    return types.HttpOptions(extra_body={"contents": [_content(message) for message in messages]})


def _content(message: Message) -> dict[str, Any]:
    role = "model" if message.role == "assistant" else "user"
    return {"role": role, "parts": list(message.blocks) or [{"text": message.content}]}


def _thinking(call: Call) -> types.ThinkingConfig | None:
    from google.genai import types

    if call.effort is None:
        return None
    if call.takes.budgets:
        return types.ThinkingConfig(thinking_budget=call.takes.budgets[call.effort])
    return types.ThinkingConfig(thinking_level=types.ThinkingLevel(call.effort.upper()))


def _text(candidate: dict[str, Any]) -> str:
    """The text parts, without thoughts; a filtered candidate has no content at all."""
    parts = inner_object(candidate, "content").get("parts", [])
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise ShapeError("'candidates[0].content.parts' is not a list of parts")
    return "".join(text_of(part, "text") or "" for part in parts if part.get("thought") is not True)


def _usage(usage: dict[str, Any]) -> Usage:
    thoughts = count_of(usage, "thoughtsTokenCount")
    return Usage(
        input_tokens=count_of(usage, "promptTokenCount"),
        # Google counts thoughts separately; our count, like that of the other providers, includes them.
        output_tokens=total(count_of(usage, "candidatesTokenCount"), thoughts),
        cached_tokens=count_of(usage, "cachedContentTokenCount"),
        reasoning_tokens=thoughts,
    )
