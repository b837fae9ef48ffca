"""Gemini's Batch API, with the requests in the batch itself rather than in a file."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from .base import BatchLimits, BatchReply, BatchRequest, BatchState, FoundBatch, KnownBatch, LostBatch
from .batches import CLOCK_SKEW, WITHOUT_RESPONSE, HttpBatches, decoded, given, http_status
from .capabilities import Call
from .google_adapter import GoogleAdapter, config_of, contents_of

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
        job = await self._get(batch)
        failed = job.error.message if job.error and job.state == "FAILED" and not job.lines() else None
        return BatchState(job.state, job.state in ENDED, failed, job.ends)

    async def results(self, batch: str, custom_ids: Sequence[str]) -> list[BatchReply]:
        """Lines come in the order of the requests, which is used where their keys are missing."""
        lines = (await self._get(batch)).lines()
        in_order = custom_ids if len(custom_ids) == len(lines) else ["" for _ in lines]
        return [_reply(line, line.metadata.get("key") or own) for line, own in zip(lines, in_order, strict=True)]

    async def _get(self, batch: str) -> _Job:
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
