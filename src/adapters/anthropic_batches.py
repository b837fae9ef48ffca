"""Anthropic's Message Batches API. It has no room for a name, so a lost batch is known again by its lines."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from .anthropic_adapter import AnthropicAdapter, message_body, version_header
from .base import BatchLimits, BatchReply, BatchRequest, BatchState, FoundBatch, KnownBatch, LostBatch
from .batches import CLOCK_SKEW, TIMEOUT_S, WITHOUT_RESPONSE, HttpBatches, decoded_lines, given, parsed
from .capabilities import Call
from .http import count_of, inner_object, text_of

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
                requests=lines, extra_headers=version_header(calls[0].takes.api_version), timeout=TIMEOUT_S
            ),
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
        return BatchState(name, name == "ended", None, text_of(found, "expires_at"))

    async def results(self, batch: str, custom_ids: Sequence[str]) -> list[BatchReply]:
        return [_reply(line) for line in decoded_lines(await self._get(f"{PATH}/{batch}/results"), _Line)]

    async def _get(self, path: str, query: dict[str, Any] | None = None) -> bytes:
        return await self._fetch(lambda: self._adapter.get(path, query or {}, TIMEOUT_S))


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
