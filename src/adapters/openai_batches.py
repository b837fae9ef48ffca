"""OpenAI's Batch API: a file of requests, a batch of that file, and two files of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ..store.strict_json import encode
from .base import BatchLimits, BatchReply, BatchRequest, BatchState, FoundBatch, KnownBatch, LostBatch
from .batches import CLOCK_SKEW, TIMEOUT_S, WITHOUT_RESPONSE, HttpBatches, decoded_lines, iso, parsed
from .capabilities import Call
from .http import inner_object
from .openai_adapter import OpenAIAdapter, chat_body

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
                extra_headers=self._adapter.account_headers(),
                timeout=TIMEOUT_S,
            ),
        )
        return _known(parsed(body))

    async def _upload(self, intent: str, requests: Sequence[BatchRequest]) -> str:
        lines = b"".join(self._line(one) for one in requests)
        body = await self._fetch(
            lambda: self._client.files.create(
                file=(f"{intent}.jsonl", lines),
                purpose="batch",
                extra_headers=self._adapter.account_headers(),
                timeout=TIMEOUT_S,
            ),
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
        return BatchState(name, name in ENDED, failed, iso(found.get("expires_at")))

    async def results(self, batch: str, custom_ids: Sequence[str]) -> list[BatchReply]:
        found = parsed(await self._get(f"/batches/{batch}"))
        files = [found.get(name) for name in ("output_file_id", "error_file_id")]
        bodies = [await self._get(f"/files/{file}/content") for file in files if file]
        return [_reply(line) for body in bodies for line in decoded_lines(body, _Line)]

    async def _get(self, path: str, query: dict[str, Any] | None = None) -> bytes:
        return await self._fetch(lambda: self._adapter.get(path, query or {}, TIMEOUT_S))


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
