"""The fields of a journal line that are counted, as structs that msgspec decodes fast."""

from __future__ import annotations

import msgspec


class UsageFields(msgspec.Struct):
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None
    cache_write_tokens: int | None = None


class SearchFields(msgspec.Struct):
    searches: int


class CallFields(msgspec.Struct):
    """Some fields of a `CallRecord`."""

    call: str
    model: str
    outcome: str
    final: bool
    status: int | None
    usage: UsageFields
    stop_reason: str | None
    started: str
    error: str | None
    batch: str | None = None
    search: SearchFields | None = None

    @property
    def stage(self) -> str:
        return self.call.split("|")[1]


decode_call = msgspec.json.Decoder(CallFields).decode
