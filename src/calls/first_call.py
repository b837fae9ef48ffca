"""Lets the first of several calls that start alike go ahead, so that the others can read its start from a cache.

A provider can read from its cache only what an earlier call has already written. Calls that are made at the same time
would each pay for the whole start, and some providers charge more for writing than for reading.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ..adapters.base import ModelRequest
from ..adapters.caching import cache_key, rule_for
from ..records.model_name import split_name


class FirstCalls:
    """For one event loop: which starts have been sent to which model."""

    def __init__(self) -> None:
        self._sent: dict[str, asyncio.Event] = {}

    @asynccontextmanager
    async def turn(self, request: ModelRequest) -> AsyncIterator[None]:
        """Around a call. All but the first with a stable start wait for the first to end, however it ends."""
        provider = split_name(request.model).provider
        if not request.messages[0].stable or rule_for(provider, request, request.sent_as) is None:
            yield
            return
        key = f"{request.model} {cache_key(request)}"
        sent = self._sent.get(key)
        if sent is not None:
            await sent.wait()
            yield
            return
        self._sent[key] = asyncio.Event()
        try:
            yield
        finally:
            self._sent[key].set()
