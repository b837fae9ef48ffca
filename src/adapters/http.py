"""What all HTTP adapters share: recording the HTTP exchange, classifying it, and redacting the key.

The SDK sends the request; two event hooks of the HTTP client under it record what was sent and received. So an adapter
sees the same data whether its SDK returned, raised or timed out: the request body, the status, the headers and the
bytes received. SDK exceptions carry the key in their request's headers, so none is kept, chained or quoted.
"""

from __future__ import annotations

import asyncio
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, TypeVar

import msgspec

from ..errors import ConfigError
from ..records.target import WebCitation, WebSearch
from ..schemas import Usage
from ..store.strict_json import clean_text, loads_foreign
from .addresses import proxy_for
from .base import BatchReply, CallFailure, FailureOutcome, ModelReply, ModelRequest, ReplyOutcome, verbatim
from .capabilities import Call, StrictSchemas, UnfitSchema, fitted
from .classify import (
    LARGEST_COUNT,
    WITHOUT_LIST,
    ErrorBody,
    Listing,
    classify_exception,
    describe_exception,
    error_body,
    read_listing,
    retry_after,
)
from .registry import missing_sdk
from .secrets import Secret
from .web_search import SearchTool

Client = TypeVar("Client")

LONGEST_MESSAGE = 300
_MASKED = re.compile(r"\S*\*{2,}\S*")
"""A key that the provider masked: its ends and its length are still to be seen."""


class ShapeError(Exception):
    """A response that does not fit its wire format; the message says where."""


class ReportedFailure(Exception):  # noqa: N818 - a classified outcome of a call, not an error of the program
    """A failure that a provider reports in a response with a successful status."""

    def __init__(self, outcome: FailureOutcome, message: str) -> None:
        super().__init__(message)
        self.outcome: FailureOutcome = outcome


@dataclass(eq=False)
class HttpExchange:
    """One attempt over HTTP, filled in as it happens."""

    not_applied: tuple[str, ...] = ()
    search: SearchTool | None = None
    """How the model could search in this attempt; None: not at all."""
    sent: bytes | None = None
    keeps_sent: bool = True
    """False for what is not a model's call: it may have no body, or a stream of parts."""
    address: str | None = None
    """Scheme, host, port and path of the request; neither query nor user info."""
    api_version: str | None = None
    """From the header of the request that names it."""
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    response: Any = None
    chunks: list[bytes] = field(default_factory=list)
    """The part of the body received so far."""
    failure: tuple[FailureOutcome, str] | None = None
    """Set if the SDK raised or timed out."""

    def body(self) -> bytes | None:
        """The complete response body, or None."""
        try:
            content: bytes = self.response.content
        except (AttributeError, RuntimeError):  # no response, or not read completely
            return None
        return content

    def partial(self) -> bytes | None:
        """The body as far as it was received; None if there is no response or its partial bytes are compressed."""
        whole = self.body()
        if whole is not None or self.response is None or "content-encoding" in self.headers:
            return whole
        return b"".join(self.chunks)


_EXCHANGE: ContextVar[HttpExchange | None] = ContextVar("exchange", default=None)
"""The exchange of the current task's call, for the hooks of a client that many calls share."""


async def _note_request(request: Any) -> None:
    exchange = _EXCHANGE.get()
    if exchange is not None:
        url = request.url
        exchange.sent = request.content if exchange.keeps_sent else None
        exchange.address = f"{url.scheme}://{url.netloc.decode()}{url.raw_path.partition(b'?')[0].decode()}"
        exchange.api_version = request.headers.get("anthropic-version")


async def _note_response(response: Any) -> None:
    exchange = _EXCHANGE.get()
    if exchange is not None:
        exchange.status = response.status_code
        exchange.headers = response.headers
        exchange.response = response
        from .connections import Tee

        response.stream = Tee(response.stream, exchange.chunks)


def client_options(base_url: str) -> dict[str, Any]:
    """Arguments for the HTTP client under an SDK: the hooks, no redirects (a second request), and a fast transport.

    The transport, not the client, is told of the proxy: a client that reads the environment would replace it.
    """
    proxy = proxy_for(base_url)
    from .connections import Connections

    hooks: dict[str, Any] = {"request": [_note_request], "response": [_note_response]}
    return {"event_hooks": hooks, "follow_redirects": False, "transport": Connections(proxy)}


def opened(extra: str, make: Callable[[], Client]) -> Client:
    """Call `make`, which uses the SDK of `extra`. A `ConfigError` quotes no SDK message: it could contain settings."""
    try:
        return make()
    except ConfigError:
        raise
    except ImportError:
        problem = f"{missing_sdk(extra)}."
    except Exception as error:
        problem = f"The SDK for {extra} cannot use its settings ({type(error).__name__}). Check the base URL."
    raise ConfigError(problem)


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object in a body, or `ShapeError`."""
    if not body.strip():
        raise ShapeError("the body is empty")
    try:
        value = loads_foreign(body)
    except ValueError:
        raise ShapeError("the body is not JSON") from None
    if not isinstance(value, dict):
        raise ShapeError(f"the body is not a JSON object but a {type(value).__name__}")
    return value


def first_object(payload: dict[str, Any], name: str) -> dict[str, Any]:
    """The first entry of the list `name`, which must be an object."""
    entries = payload.get(name)
    if not isinstance(entries, list) or not entries or not isinstance(entries[0], dict):
        raise ShapeError(f"{name!r} is not a list that starts with an object")
    return entries[0]


def inner_object(payload: dict[str, Any], name: str) -> dict[str, Any]:
    """The object `name`, or an empty one, for optional parts."""
    value = payload.get(name)
    return value if isinstance(value, dict) else {}


def text_of(payload: dict[str, Any], name: str) -> str | None:
    """The nonempty string `name`, cleaned for storage, or None."""
    value = payload.get(name)
    return clean_text(value) if isinstance(value, str) and value else None


def count_of(payload: dict[str, Any], name: str) -> int | None:
    value = payload.get(name)
    return value if type(value) is int and 0 <= value < LARGEST_COUNT else None


def total(*counts: int | None) -> int | None:
    """The sum of the known counts; None if none is known."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


@dataclass(frozen=True, kw_only=True)
class ParsedReply:
    """What an adapter read from a response in its wire format."""

    outcome: ReplyOutcome
    text: str = ""
    stop_reason: str | None = None
    served_model: str | None = None
    fingerprint: str | None = None
    request_id: str | None = None
    usage: Usage = field(default_factory=Usage)
    search: WebSearch | None = None


class Fetched(NamedTuple):
    body: bytes
    address: str | None
    api_version: str | None


class HttpAdapter(ABC):
    """One attempt over HTTP. A provider's adapter implements sending, reading and special errors."""

    provider: ClassVar[str]
    """Its rows in the capability table."""
    request_id_headers: ClassVar[tuple[str, ...]] = ("x-request-id",)
    _client: Any

    def __init__(self, secret: Secret) -> None:
        self._secret = secret
        self._schemas = StrictSchemas()

    @abstractmethod
    async def _send(self, call: Call, timeout_s: float) -> None:
        """Make the SDK send one request. The hooks see the result."""

    @abstractmethod
    async def _list(self, timeout_s: float) -> None:
        """Make the SDK ask for the list of models."""

    @abstractmethod
    async def _ask_nothing(self, timeout_s: float) -> None:
        """Send an empty object to the address that answers chat requests."""

    @abstractmethod
    def _read(self, payload: dict[str, Any]) -> ParsedReply:
        """Read a successful response, or raise `ShapeError`."""

    def headers(self, call: Call | None) -> Mapping[str, Any]:
        """Headers that replace the SDK's own, or add to them. Without a call: of requests that are no model's call."""
        return {}

    async def get(self, path: str, query: dict[str, Any], timeout_s: float) -> None:
        """For what is not a model's call. Here and in `post` the client is one of OpenAI's or Anthropic's SDK."""
        from .connections import Response

        options = {"headers": self.headers(None), "params": query, "timeout": timeout_s}
        await self._client.get(path, cast_to=Response, options=options)

    async def post(self, path: str, body: dict[str, Any], timeout_s: float, call: Call | None = None) -> None:
        """Send the body as it is. `chat.completions.create` takes twice as long and parses the response;
        `messages.create` no longer takes a temperature, and warns about old models, which raises if warnings do."""
        from .connections import Response

        options = {"headers": self.headers(call), "timeout": timeout_s}
        await self._client.post(path, cast_to=Response, body=body, options=options)

    async def aclose(self) -> None:
        await self._client.close()

    def _retry_after(self, headers: Mapping[str, str], error: ErrorBody) -> float | None:
        return retry_after(headers)

    def _api_version(self, exchange: HttpExchange) -> str | None:
        """The version of the provider's API that the request asked for; None where there are none."""
        return exchange.api_version

    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        """Make one attempt; `timeout_s` limits the whole attempt, even while bytes keep coming."""
        result = await self._attempt(request, timeout_s)
        if isinstance(result, CallFailure):
            raise result  # here no SDK exception is being handled that could become its context
        return result

    async def list_models(self, *, timeout_s: float) -> Listing:
        """Ask for the list of models, to see whether address and key are right; raises nothing.

        If there is no list, an empty chat request follows: a server at the right address refuses it as incomplete.
        """
        listing = await self._listing(lambda _: self._list(timeout_s), timeout_s)
        if listing.status not in WITHOUT_LIST:
            return listing
        return replace(listing, chat=await self._listing(lambda _: self._ask_nothing(timeout_s), timeout_s))

    async def _listing(self, send: Callable[[HttpExchange], Awaitable[None]], timeout_s: float) -> Listing:
        exchange = await self._exchanged(send, timeout_s)
        body = exchange.body()
        if exchange.status is None or body is None:
            outcome, problem = exchange.failure or ("malformed", "no response")
            return Listing(outcome=outcome, problem=problem)
        return read_listing(exchange.status, exchange.headers, body)

    async def _attempt(self, request: ModelRequest, timeout_s: float) -> ModelReply | CallFailure:
        async def send(exchange: HttpExchange) -> None:
            call = fitted(self.provider, request, self._schemas)
            exchange.not_applied = call.not_applied
            exchange.search = call.takes.search if call.search else None
            await self._send(call, timeout_s)

        return self._result(await self._exchanged(send, timeout_s))

    def sdk(self) -> Any:
        """The SDK's client, for what is not a model's call."""
        return self._client

    async def fetch(self, send: Callable[[], Awaitable[Any]], timeout_s: float) -> Fetched:
        """A successful response to what is not a model's call, such as a batch. Raises `CallFailure`."""

        async def sending(exchange: HttpExchange) -> None:
            exchange.keeps_sent = False
            await send()

        exchange = await self._exchanged(sending, timeout_s)
        body, status = exchange.body(), exchange.status
        if body is not None and status is not None and 200 <= status < 300:
            kept = self._kept(exchange)
            return Fetched(self._secret.redact_bytes(body), kept["address"], kept["api_version"])
        result = self._result(exchange)
        raise result if isinstance(result, CallFailure) else self._failure(exchange, "permanent", "blocked by a filter")

    def fitted(self, request: ModelRequest) -> Call:
        """The request adapted to its model; raises `UnfitSchema`."""
        return fitted(self.provider, request, self._schemas)

    def read_line(
        self, line: BatchReply, sent: bytes, not_applied: tuple[str, ...], at: Fetched | None
    ) -> ModelReply | CallFailure:
        """Read the response in a line of a batch exactly as a response of its own. `at`: where it came from."""
        headers = {self.request_id_headers[0]: line.request_id} if line.request_id else {}
        exchange = HttpExchange(not_applied, sent=sent, status=line.status, headers=headers, response=line)
        if at is not None:
            exchange.address, exchange.api_version = at.address, at.api_version
        if line.problem is not None:
            exchange.failure = ("transient", line.problem)
        return self._result(exchange)

    async def _exchanged(self, send: Callable[[HttpExchange], Awaitable[None]], timeout_s: float) -> HttpExchange:
        """What `send` sent and received, or why it did not."""
        exchange, outer = HttpExchange(), sys.exception()
        token = _EXCHANGE.set(exchange)
        try:
            async with asyncio.timeout(timeout_s):
                await send(exchange)
        except UnfitSchema as error:
            exchange.failure = ("permanent", str(error))
        except TimeoutError:
            exchange.failure = ("timeout", f"no complete answer within {timeout_s:g} s")
        except Exception as error:
            exchange.failure = (classify_exception(error, outer), describe_exception(error, outer))
        finally:
            _EXCHANGE.reset(token)
        return exchange

    def _result(self, exchange: HttpExchange) -> ModelReply | CallFailure:
        body, status = exchange.body(), exchange.status
        if body is None or status is None:
            return self._failure(exchange, *(exchange.failure or ("malformed", "the SDK returned without a response")))
        shown = self._secret.redact_bytes(body)
        if not 200 <= status < 300:
            return self._error_result(exchange, status, shown)
        try:
            return self._reply(exchange, self._read(read_object(shown)), redacted=shown != body)
        except ShapeError as error:
            return self._failure(exchange, "malformed", f"HTTP {status}, but {error}")
        except ReportedFailure as error:
            said = _MASKED.sub("[redacted]", str(error))[:LONGEST_MESSAGE]
            return self._failure(exchange, error.outcome, clean_text(f"HTTP {status}, but {said}"))

    def _error_result(self, exchange: HttpExchange, status: int, body: bytes) -> ModelReply | CallFailure:
        try:
            payload = read_object(body)
        except ShapeError:
            payload = {}
        error = error_body(status, payload)
        if error.filtered is not None:
            return self._reply(exchange, ParsedReply(outcome="blocked", stop_reason=error.filtered))
        said = _MASKED.sub("[redacted]", error.message)[:LONGEST_MESSAGE]
        failure = self._failure(
            exchange, error.outcome, clean_text(f"HTTP {status}: {said}" if said else f"HTTP {status}")
        )
        failure.retry_after_s = self._retry_after(exchange.headers, error)
        return failure

    def _reply(self, exchange: HttpExchange, parsed: ParsedReply, *, redacted: bool = False) -> ModelReply:
        """`redacted`: something was, so that places in the text are no longer those that the provider counted."""
        text = self._secret.redact(clean_text(parsed.text))
        moved = redacted or len(text) != len(parsed.text)
        return ModelReply(
            outcome=parsed.outcome,
            text=text,
            stop_reason=self._shown(parsed.stop_reason),
            served_model=self._shown(parsed.served_model),
            fingerprint=self._shown(parsed.fingerprint),
            request_id=self._request_id(exchange) or self._shown(parsed.request_id),
            usage=parsed.usage,
            search=self._searched(exchange.search, parsed.search or WebSearch(), moved=moved),
            **self._kept(exchange),
        )

    def _billed(self, tool: SearchTool, found: WebSearch) -> int:
        """Searches that are paid for."""
        return found.searches

    def _searched(self, tool: SearchTool | None, found: WebSearch, *, moved: bool) -> WebSearch | None:
        """What was searched, without secrets; also without places in the text, if they are no longer right."""
        if tool is None:
            return None
        redact = self._secret.redact
        return WebSearch(
            searches=self._billed(tool, found),
            queries=tuple(map(redact, found.queries)),
            found=tuple(map(redact, found.found)),
            citations=tuple(
                WebCitation(
                    url=redact(one.url),
                    title=self._shown(one.title),
                    cited_text=self._shown(one.cited_text),
                    start=None if moved else one.start,
                    end=None if moved else one.end,
                )
                for one in found.citations
            ),
            errors=tuple(map(redact, found.errors)),
        )

    def _failure(self, exchange: HttpExchange, outcome: FailureOutcome, message: str) -> CallFailure:
        return CallFailure(
            outcome,
            self._secret.redact(f"{self.provider}: {message}"),
            status=exchange.status,
            request_id=self._request_id(exchange),
            **self._kept(exchange),
        )

    def _kept(self, exchange: HttpExchange) -> dict[str, Any]:
        """What both replies and failures keep of an exchange."""
        sent, received = exchange.sent, exchange.partial()
        return {
            "sent": None if sent is None else msgspec.json.decode(self._secret.redact_bytes(sent)),
            "received": None if received is None else verbatim(self._secret.redact_bytes(received)),
            "not_applied": exchange.not_applied,
            "address": None if exchange.address is None else self._secret.redact(exchange.address),
            "api_version": self._shown(self._api_version(exchange)),
        }

    def _request_id(self, exchange: HttpExchange) -> str | None:
        found = (exchange.headers.get(name) for name in self.request_id_headers)
        return self._shown(next((value for value in found if value), None))

    def _shown(self, text: str | None) -> str | None:
        return None if text is None else self._secret.redact(clean_text(text))
