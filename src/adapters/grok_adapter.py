"""xAI's Grok, called with OpenAI's SDK: plain HTTP with readable bodies, unlike xAI's own gRPC SDK."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

import msgspec

from .base import BatchLimits, BatchReply, BatchRequest, BatchState, FoundBatch, KnownBatch, LostBatch
from .batches import TIMEOUT_S, WITHOUT_RESPONSE, decoded, http_status, parsed
from .capabilities import Call, cache_key, rule_for
from .http import count_of, inner_object, text_of
from .openai_adapter import OpenAIBatches, ThirdPartyChat


class GrokAdapter(ThirdPartyChat):
    """`xai:` models; `grok:` is another name for them."""

    provider: ClassVar[str] = "xai"
    extra: ClassVar[str] = "grok"

    def headers(self, call: Call | None) -> Mapping[str, Any]:
        """Also a conversation id for judges: calls with the same one reach the server that has their prefix cached."""
        shared = super().headers(call)
        if call is None or rule_for(self.provider, call.request, call.model) is None:
            return shared
        return {**shared, "x-grok-conv-id": cache_key(call.request)}


# xAI's Batch API: OpenAI's file of requests, but a batch with a name, with counts and no status, and pages of results.
#
# Shapes: https://docs.x.ai/developers/advanced-api-usage/batch-api, read in November 2026.

PAGE = 1_000


class _Error(msgspec.Struct):
    code: int | str | None = None
    message: str = ""


class _Result(msgspec.Struct):
    response: dict[str, msgspec.Raw] | None = None
    """One entry: the response, named after its endpoint."""
    error: _Error | None = None


class _Line(msgspec.Struct):
    batch_request_id: str
    batch_result: _Result = msgspec.field(default_factory=_Result)


class _Page(msgspec.Struct):
    results: list[_Line] = []
    pagination_token: str | None = None


class GrokBatches(OpenAIBatches):
    limits = BatchLimits(50_000, 190_000_000)

    async def send(self, intent: str, requests: Sequence[BatchRequest]) -> KnownBatch:
        named = {"name": intent, "input_file_id": await self._upload(intent, requests)}
        body = await self._fetch(lambda: self._adapter.post("/batches", named, TIMEOUT_S))
        return _known(parsed(body))

    async def find(self, lost: LostBatch) -> FoundBatch:
        page: dict[str, Any] = {}
        while True:
            query = {"limit": PAGE} | ({"pagination_token": page["pagination_token"]} if page else {})
            page = parsed(await self._get("/batches", query))
            for one in page.get("batches") or []:
                if isinstance(one, dict) and one.get("name") == lost.intent:
                    return FoundBatch(_known(one))
            if not page.get("pagination_token"):
                return FoundBatch(None)

    async def state(self, batch: str, lines: int) -> BatchState:
        """It has ended when no line is pending; before its file is read it has no lines at all."""
        found = parsed(await self._get(f"/batches/{batch}"))
        counts, ends = inner_object(found, "state"), text_of(found, "expire_time")
        if found.get("cancel_time"):
            return BatchState("canceled", True, text_of(found, "cancel_by_xai_message"))
        read = count_of(counts, "num_requests") or 0
        done = read >= lines and not count_of(counts, "num_pending")
        return BatchState("completed" if done else "in_progress", done or _is_past(ends))

    async def results(self, batch: str, custom_ids: Sequence[str]) -> list[BatchReply]:
        found: list[BatchReply] = []
        token: str | None = None
        while True:
            query = {"limit": PAGE} | ({"pagination_token": token} if token else {})
            page = decoded(await self._get(f"/batches/{batch}/results", query), _Page)
            found += map(_reply, page.results)
            token = page.pagination_token
            if not token:
                return found


def _known(batch: dict[str, Any]) -> KnownBatch:
    return KnownBatch(str(batch.get("batch_id")), text_of(batch, "expire_time"))


def _is_past(when: str | None) -> bool:
    try:
        moment = datetime.fromisoformat(when or "")
    except ValueError:
        return False
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) < datetime.now(UTC)


def _reply(line: _Line) -> BatchReply:
    responses, error = line.batch_result.response, line.batch_result.error
    if responses:
        return BatchReply(custom_id=line.batch_request_id, status=200, content=bytes(next(iter(responses.values()))))
    if error is not None and error.code is not None:
        content = msgspec.json.encode({"error": {"code": error.code, "message": error.message}})
        return BatchReply(custom_id=line.batch_request_id, status=http_status(error.code), content=content)
    return BatchReply(custom_id=line.batch_request_id, problem=(error.message if error else "") or WITHOUT_RESPONSE)
