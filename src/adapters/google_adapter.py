"""Google's Gemini, over the Gemini Developer API."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from ..records.target import WebCitation, WebSearch
from ..schemas import Usage
from .addresses import Endpoint, endpoint
from .base import (
    BatchLimits,
    BatchReply,
    BatchRequest,
    BatchState,
    FoundBatch,
    KnownBatch,
    LostBatch,
    Message,
    ReplyOutcome,
)
from .batches import CLOCK_SKEW, WITHOUT_RESPONSE, HttpBatches, decoded, given, http_status
from .capabilities import Call
from .classify import ErrorBody, retry_after
from .http import (
    HttpAdapter,
    HttpExchange,
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
from .web_search import LONGEST_URL, ReplySpan, SearchTool, citation, objects, texts

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
        candidate = {} if feedback else first_object(payload, "candidates")
        stop = feedback or text_of(candidate, "finishReason")
        text = _text(candidate)
        outcome: ReplyOutcome = "ok" if text.strip() else "empty"
        if feedback or stop in _FILTERED:
            outcome = "blocked"
        elif stop in _CUT_SHORT:
            outcome = "truncated"
        return ParsedReply(
            outcome=outcome,
            text=text,
            stop_reason=stop,
            served_model=text_of(payload, "modelVersion"),
            request_id=text_of(payload, "responseId"),
            usage=_usage(inner_object(payload, "usageMetadata")),
            search=read_search(candidate),
        )

    def _billed(self, tool: SearchTool, found: WebSearch) -> int:
        """Models before Gemini 3 pay for a request that searched, later ones for each query."""
        return min(1, found.searches) if tool.bills == "requests" else found.searches

    def _api_version(self, exchange: HttpExchange) -> str | None:
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


# Gemini's Google Search: what a reply says of searches and sources. Addresses are redirects, kept as they are.

_TOOL_FAILED = frozenset(
    {"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE"}
)
"""Finish reasons of a reply that ended in a search."""


def read_search(candidate: dict[str, Any]) -> WebSearch:
    """What was searched for a reply."""
    grounding = inner_object(candidate, "groundingMetadata")
    queries = grounding.get("webSearchQueries")
    asked = [query for query in (queries if isinstance(queries, list) else ()) if isinstance(query, str) and query]
    pages = [inner_object(chunk, "web") for chunk in objects(grounding.get("groundingChunks"))]
    stop = text_of(candidate, "finishReason")
    return WebSearch(
        searches=len(asked),
        queries=texts(asked),
        found=texts((page.get("uri") for page in pages), longest=LONGEST_URL),
        citations=tuple(_citations(candidate, grounding, pages)),
        errors=(stop,) if stop in _TOOL_FAILED else (),
    )


def _citations(candidate: dict[str, Any], grounding: dict[str, Any], pages: list[dict[str, Any]]) -> list[WebCitation]:
    parts = _Parts(objects(inner_object(candidate, "content").get("parts")))
    found: list[WebCitation] = []
    for support in objects(grounding.get("groundingSupports")):
        span = parts.span(inner_object(support, "segment"))
        numbers = support.get("groundingChunkIndices")
        for number in numbers if isinstance(numbers, list) else ():
            if type(number) is int and 0 <= number < len(pages):
                one = citation(pages[number].get("uri"), title=pages[number].get("title"), span=span)
                found += [one] if one else []
    return found


class _Parts:
    """The parts of a reply, to find places that are counted in bytes of one of them."""

    def __init__(self, parts: list[dict[str, Any]]) -> None:
        self._starts: list[int | None] = []
        self._texts: list[str] = []
        at = 0
        for part in parts:
            text = text_of(part, "text") or ""
            shown = part.get("thought") is not True
            self._starts.append(at if shown else None)
            self._texts.append(text)
            at += len(text) if shown else 0

    def span(self, segment: dict[str, Any]) -> ReplySpan | None:
        """A place in characters of the whole reply; None if it is not where its words are."""
        number, start, end = (segment.get(name, 0) for name in ("partIndex", "startIndex", "endIndex"))
        if not all(type(value) is int and value >= 0 for value in (number, start, end)) or end <= start:
            return None
        words = text_of(segment, "text")
        others = [place for place in range(len(self._texts)) if place != number] if words else []
        for place in (number, *others):
            found = self._in_part(place, start, end, words)
            if found:
                return found
        return None

    def _in_part(self, number: int, start: int, end: int, words: str | None) -> ReplySpan | None:
        at = self._starts[number] if number < len(self._starts) else None
        if at is None:
            return None
        data = self._texts[number].encode()
        try:
            before, inside = data[:start].decode(), data[start:end].decode()
        except UnicodeDecodeError:  # in the middle of a character
            return None
        if end > len(data) or (words is not None and inside != words):
            return None
        return ReplySpan(at + len(before), at + len(before) + len(inside))


# Gemini's Batch API, with the requests in the batch itself rather than in a file.

LONGEST = timedelta(hours=48)
"""A batch that has not ended by then expires."""
ENDED = frozenset({"SUCCEEDED", "PARTIALLY_SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED"})
PAGE = 100


class _Line(msgspec.Struct):
    response: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()
    metadata: dict[str, str] = {}


class _Lines(msgspec.Struct, rename="camel"):
    inlined_responses: list[_Line] = []


class _Output(msgspec.Struct, rename="camel"):
    inlined_responses: _Lines | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    state: str = ""
    display_name: str = ""
    create_time: str | None = None
    output: _Output | None = None


class _Status(msgspec.Struct):
    code: int | None = None
    message: str = ""


class _Job(msgspec.Struct):
    name: str
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    error: _Status | None = None
    response: _Output | None = None

    @property
    def state(self) -> str:
        return self.metadata.state.removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")

    @property
    def ends(self) -> str | None:
        created = _moment(self.metadata.create_time)
        return (created + LONGEST).isoformat(timespec="seconds") if created else None

    def lines(self) -> list[_Line]:
        outputs = [one.inlined_responses for one in (self.metadata.output, self.response) if one]
        return next((one.inlined_responses for one in outputs if one), [])


class GoogleBatches(HttpBatches[GoogleAdapter]):
    limits = BatchLimits(50_000, 18_000_000)  # of 20 MB

    def _document(self, call: Call) -> dict[str, Any]:
        """As the SDK writes the contents and settings that are given to it (a test compares them)."""
        system = call.request.system
        document: dict[str, Any] = {
            "contents": [one.model_dump(mode="json", exclude_none=True) for one in contents_of(call)]
        }
        if system is not None:
            document["systemInstruction"] = {"parts": [{"text": system}], "role": "user"}
        settings = {
            "temperature": call.temperature,
            "maxOutputTokens": call.request.max_tokens,
            "seed": call.seed,
            "responseMimeType": None if call.schema is None else "application/json",
            "responseJsonSchema": call.schema,
        }
        document["generationConfig"] = {name: value for name, value in settings.items() if value is not None}
        return document

    async def send(self, intent: str, requests: Sequence[BatchRequest]) -> KnownBatch:
        calls = [self._adapter.fitted(one.request) for one in requests]
        lines = [
            {"contents": contents_of(call), "config": config_of(call), "metadata": {"key": one.custom_id}}
            for one, call in zip(requests, calls, strict=True)
        ]
        job = await self._job(
            lambda: self._client.aio.batches.create(model=calls[0].model, src=lines, config={"display_name": intent})
        )
        return KnownBatch(job.name, job.ends)

    async def find(self, lost: LostBatch) -> FoundBatch:
        found: list[KnownBatch] = []

        async def look() -> None:
            async for job in await self._client.aio.batches.list(config={"page_size": PAGE}):
                if job.display_name == lost.intent:
                    found.append(KnownBatch(job.name))
                if found or (job.create_time and job.create_time < lost.since - CLOCK_SKEW):
                    return

        await self._fetch(look)
        return FoundBatch(found[0] if found else None)

    async def state(self, batch: str, lines: int) -> BatchState:
        job = await self._found(batch)
        failed = job.error.message if job.error and job.state == "FAILED" and not job.lines() else None
        return BatchState(job.state, job.state in ENDED, failed)

    async def results(self, batch: str, custom_ids: Sequence[str]) -> list[BatchReply]:
        """Lines come in the order of the requests, which is used where their keys are missing."""
        lines = (await self._found(batch)).lines()
        in_order = custom_ids if len(custom_ids) == len(lines) else ["" for _ in lines]
        return [_reply(line, line.metadata.get("key") or own) for line, own in zip(lines, in_order, strict=True)]

    async def _found(self, batch: str) -> _Job:
        return await self._job(lambda: self._client.aio.batches.get(name=batch))

    async def _job(self, send: Any) -> _Job:
        return decoded(await self._fetch(send), _Job)


def _moment(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text or "")
    except ValueError:
        return None


def _reply(line: _Line, custom_id: str) -> BatchReply:
    if response := given(line.response):
        return BatchReply(custom_id=custom_id, status=200, content=response)
    if error := given(line.error):
        status = http_status(decoded(error, _Status).code)
        return BatchReply(custom_id=custom_id, status=status, content=b'{"error":' + error + b"}")
    return BatchReply(custom_id=custom_id, problem=WITHOUT_RESPONSE)
