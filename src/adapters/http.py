"""What all HTTP adapters share: recording the HTTP exchange, classifying it, and redacting the key.

The SDK sends the request; two event hooks of the HTTP client under it record what was sent and received. So an adapter
sees the same data whether its SDK returned, raised or timed out: the request body, the status, the headers and the
bytes received. SDK exceptions carry the key in their request's headers, so none is kept, chained or quoted.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar, TypeVar
from urllib.request import getproxies

from ..errors import ConfigError
from ..schemas import Usage
from ..store.strict_json import clean_text
from .base import (
    CallFailure,
    FailureOutcome,
    ModelReply,
    ModelRequest,
    ReplyOutcome,
    verbatim,
)
from .capabilities import (
    Call,
    StrictSchemas,
    UnfitSchema,
    fitted,
)
from .secrets import Secret

Client = TypeVar("Client")
LARGEST_COUNT = 2**53


class ShapeError(Exception):
    """A response that does not fit its wire format; the message says where."""


@dataclass(eq=False)
class Exchange:
    """One attempt over HTTP, filled in as it happens."""

    not_applied: tuple[str, ...] = ()
    sent: bytes | None = None
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


_EXCHANGE: ContextVar[Exchange | None] = ContextVar("exchange", default=None)
"""The exchange of the current task's call, for the hooks of a client that many calls share."""


async def _note_request(request: Any) -> None:
    exchange = _EXCHANGE.get()
    if exchange is not None:
        exchange.sent = request.content


async def _note_response(response: Any) -> None:
    exchange = _EXCHANGE.get()
    if exchange is not None:
        exchange.status = response.status_code
        exchange.headers = response.headers
        exchange.response = response
        from .connections import Tee

        response.stream = Tee(response.stream, exchange.chunks)


def client_options() -> dict[str, Any]:
    """Arguments for the HTTP client under an SDK: the hooks, no redirects (a second request), and a fast transport.

    If the environment names a proxy, the client keeps its own transport, because ours does not support proxies.
    """
    from .connections import ConnectionStack

    hooks: dict[str, Any] = {"request": [_note_request], "response": [_note_response]}
    options: dict[str, Any] = {"event_hooks": hooks, "follow_redirects": False}
    return options if getproxies() else {**options, "transport": ConnectionStack()}


def checked_url(base_url: str | None, owner: str) -> str | None:
    if base_url is not None and not base_url.startswith(("http://", "https://")):
        raise ConfigError(f"The base URL for {owner} must start with http:// or https://.")
    if base_url is not None and "@" in base_url.split("/")[2]:
        raise ConfigError(f"The base URL for {owner} contains a password, which would replace the key. Remove it.")
    return base_url


def opened(extra: str, make: Callable[[], Client]) -> Client:
    """Call `make`, which uses the SDK of `extra`. A `ConfigError` quotes no SDK message: it could contain settings."""
    try:
        return make()
    except ImportError:
        problem = f"The SDK for {extra} is not installed. Run `pip install 'medicare-eval[{extra}]'`."
    except Exception as error:
        problem = f"The SDK for {extra} cannot use its settings ({type(error).__name__}). Check the base URL."
    raise ConfigError(problem)


def classify_status(status: int) -> FailureOutcome:
    """The outcome of an HTTP status other than success, which decides whether to retry."""
    if status == 429:
        return "rate_limited"
    return "transient" if status in (408, 409, 425) or status >= 500 else "permanent"


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds to wait, from `retry-after-ms`, or from `Retry-After` in seconds or as an HTTP date."""
    millis, value = _number(headers.get("retry-after-ms")), headers.get("retry-after")
    seconds = _number(value) if millis is None else millis / 1000
    if seconds is not None or value is None:
        return seconds
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - (now or datetime.now(UTC))).total_seconds())


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return max(0.0, number) if abs(number) < LARGEST_COUNT else None


def classify_exception(error: BaseException, outer: BaseException | None = None) -> FailureOutcome:
    """The outcome of an exception without a complete response, by the names of its classes.

    The classes are the HTTP library's, which is not imported here; `outer` is what the caller was handling before.
    """
    names = {cls.__name__ for link in _chain(error, outer) for cls in type(link).__mro__}
    if names & {"TimeoutException", "TimeoutError", "APITimeoutError"}:
        return "timeout"
    if names & {"LocalProtocolError", "UnsupportedProtocol"}:
        return "permanent"  # one of our headers or URLs cannot be sent
    return "transient" if names & {"TransportError", "DecodingError", "OSError"} else "permanent"


def _chain(error: BaseException | None, outer: BaseException | None) -> Iterator[BaseException]:
    while error is not None and error is not outer:
        yield error
        error = error.__cause__ or error.__context__


def describe_exception(error: BaseException, outer: BaseException | None) -> str:
    """Class names and the operating system's reason, but not the message, which may quote a header."""
    links = list(_chain(error, outer))
    names = " < ".join(dict.fromkeys(type(link).__name__ for link in links))
    reasons = [os.strerror(link.errno) for link in links if isinstance(link, OSError) and link.errno and link.errno > 0]
    return f"{names} ({reasons[-1]})" if reasons else names


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object in a body, or `ShapeError`."""
    if not body.strip():
        raise ShapeError("the body is empty")
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
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


class HttpAdapter(ABC):
    """One attempt over HTTP. A provider's adapter implements sending, reading and special errors."""

    provider: ClassVar[str]
    """Its rows in the capability table."""
    request_id_headers: ClassVar[tuple[str, ...]] = ("x-request-id",)

    def __init__(self, secret: Secret) -> None:
        self._secret = secret
        self._schemas = StrictSchemas()

    @abstractmethod
    async def _send(self, call: Call, timeout_s: float) -> None:
        """Make the SDK send one request. The hooks see the result."""

    @abstractmethod
    def _read(self, payload: dict[str, Any]) -> ParsedReply:
        """Read a successful response, or raise `ShapeError`."""

    @abstractmethod
    async def aclose(self) -> None: ...

    def _blocked(self, status: int, error: dict[str, Any]) -> str | None:
        """The provider's reason, if an error status means that a filter blocked the call; else None."""
        return None

    def _outcome(self, status: int, error: dict[str, Any]) -> FailureOutcome:
        return classify_status(status)

    def _retry_after(self, headers: Mapping[str, str], error: dict[str, Any]) -> float | None:
        return retry_after(headers)

    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        """Make one attempt; `timeout_s` limits the whole attempt, even while bytes keep coming."""
        result = await self._attempt(request, timeout_s)
        if isinstance(result, CallFailure):
            raise result  # here no SDK exception is being handled that could become its context
        return result

    async def _attempt(self, request: ModelRequest, timeout_s: float) -> ModelReply | CallFailure:
        exchange, outer = Exchange(), sys.exception()
        token = _EXCHANGE.set(exchange)
        try:
            call = fitted(self.provider, request, self._schemas)
            exchange.not_applied = call.not_applied
            async with asyncio.timeout(timeout_s):
                await self._send(call, timeout_s)
        except UnfitSchema as error:
            exchange.failure = ("permanent", str(error))
        except TimeoutError:
            exchange.failure = ("timeout", f"no complete answer within {timeout_s:g} s")
        except Exception as error:
            exchange.failure = (classify_exception(error, outer), describe_exception(error, outer))
        finally:
            _EXCHANGE.reset(token)
        return self._result(exchange)

    def _result(self, exchange: Exchange) -> ModelReply | CallFailure:
        body, status = exchange.body(), exchange.status
        if body is None or status is None:
            return self._failure(exchange, *(exchange.failure or ("malformed", "the SDK returned without a response")))
        body = self._secret.redact_bytes(body)
        if not 200 <= status < 300:
            return self._error_result(exchange, status, body)
        try:
            return self._reply(exchange, self._read(read_object(body)))
        except ShapeError as error:
            return self._failure(exchange, "malformed", f"HTTP {status}, but {error}")

    def _error_result(self, exchange: Exchange, status: int, body: bytes) -> ModelReply | CallFailure:
        try:
            payload = read_object(body)
        except ShapeError:
            payload = {}
        error = inner_object(payload, "error")
        reason = self._blocked(status, error)
        if reason is not None:
            return self._reply(exchange, ParsedReply(outcome="blocked", stop_reason=reason))
        said = text_of(error, "message") or text_of(payload, "error") or text_of(payload, "message")
        message = f"HTTP {status}: {said[:500]}" if said else f"HTTP {status}"
        failure = self._failure(exchange, self._outcome(status, error), message)
        failure.retry_after_s = self._retry_after(exchange.headers, error)
        return failure

    def _reply(self, exchange: Exchange, parsed: ParsedReply) -> ModelReply:
        return ModelReply(
            outcome=parsed.outcome,
            text=self._secret.redact(clean_text(parsed.text)),
            stop_reason=self._shown(parsed.stop_reason),
            served_model=self._shown(parsed.served_model),
            fingerprint=self._shown(parsed.fingerprint),
            request_id=self._request_id(exchange) or self._shown(parsed.request_id),
            usage=parsed.usage,
            **self._kept(exchange),
        )

    def _failure(self, exchange: Exchange, outcome: FailureOutcome, message: str) -> CallFailure:
        return CallFailure(
            outcome,
            self._secret.redact(f"{self.provider}: {message}"),
            status=exchange.status,
            request_id=self._request_id(exchange),
            **self._kept(exchange),
        )

    def _kept(self, exchange: Exchange) -> dict[str, Any]:
        """What both replies and failures keep of an exchange."""
        sent, received = exchange.sent, exchange.partial()
        return {
            "sent": None if sent is None else json.loads(self._secret.redact_bytes(sent)),
            "received": None if received is None else verbatim(self._secret.redact_bytes(received)),
            "not_applied": exchange.not_applied,
        }

    def _request_id(self, exchange: Exchange) -> str | None:
        found = (exchange.headers.get(name) for name in self.request_id_headers)
        return self._shown(next((value for value in found if value), None))

    def _shown(self, text: str | None) -> str | None:
        return None if text is None else self._secret.redact(clean_text(text))
