"""What the batch APIs of all providers share: lines of our adapters' own request bodies, and lines read as replies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

import msgspec

from ..store.strict_json import encode
from .base import BatchReply, CallFailure, ModelReply, ModelRequest
from .capabilities import Call, UnfitSchema
from .http import Fetched, HttpAdapter, ShapeError, read_object

TIMEOUT_S = 600.0
"""For each request about a batch: an upload may have 200 MB."""
CLOCK_SKEW = timedelta(minutes=10)
"""How much a provider's clock may differ from ours."""
WITHOUT_RESPONSE = "the batch came back without a response to this line"
RPC_STATUS = {3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 10: 409, 11: 400, 13: 500, 14: 503, 16: 401}
"""Codes of gRPC to those of HTTP; any other one counts as a fault of the server."""

A = TypeVar("A", bound=HttpAdapter)


class HttpBatches(ABC, Generic[A]):
    """The batch API of an HTTP adapter. Its lines are built and read by that adapter."""

    def __init__(self, adapter: A) -> None:
        self._adapter = adapter
        self._client = adapter.sdk()
        self._last: Fetched | None = None

    @abstractmethod
    def _document(self, call: Call) -> dict[str, Any]:
        """The body that the adapter sends for this call."""

    async def _fetch(self, send: Callable[[], Awaitable[Any]]) -> bytes:
        self._last = await self._adapter.fetch(send, TIMEOUT_S)
        return self._last.body

    async def _get(self, path: str, query: dict[str, Any] | None = None) -> bytes:
        return await self._fetch(lambda: self._adapter.get(path, query or {}, TIMEOUT_S))

    def body(self, request: ModelRequest) -> bytes:
        try:
            return encode(self._document(self._adapter.fitted(request)))
        except UnfitSchema as error:
            raise CallFailure("permanent", f"{self._adapter.provider}: {error}") from None

    def read(self, request: ModelRequest, reply: BatchReply) -> ModelReply | CallFailure:
        call = self._adapter.fitted(request)
        asked = call.takes.api_version  # of the batch; the results may have been asked for with another one
        at = self._last._replace(api_version=asked) if self._last and asked else self._last
        return self._adapter.read_line(reply, encode(self._document(call)), call.not_applied, at)


S = TypeVar("S", bound=msgspec.Struct)


def parsed(body: bytes) -> dict[str, Any]:
    """A JSON object about a batch. What cannot be read now is asked for again later."""
    try:
        return read_object(body)
    except ShapeError as error:
        raise CallFailure("malformed", f"a response about a batch cannot be read: {error}") from None


def decoded(body: bytes, kind: type[S]) -> S:
    """The same as a struct, whose raw fields keep the bytes of a model's response."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise CallFailure("malformed", f"a response about a batch cannot be read: {error}") from None


def decoded_lines(body: bytes, kind: type[S]) -> list[S]:
    """The lines of a results file. One that cannot be read is an error: to skip it would be to pay for it again."""
    return [decoded(line, kind) for line in body.splitlines() if line.strip()]


def given(raw: msgspec.Raw) -> bytes | None:
    """The bytes of a raw field; None if it is missing or null."""
    found = bytes(raw)
    return None if found in (b"", b"null") else found


def iso(seconds: object) -> str | None:
    """A Unix time as an ISO timestamp in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if isinstance(seconds, int) else None


def http_status(code: object) -> int:
    """The HTTP status of an error that has a code of HTTP or gRPC."""
    number = int(code) if isinstance(code, int) or (isinstance(code, str) and code.isdecimal()) else 13
    return number if number >= 400 else RPC_STATUS.get(number, 500)
