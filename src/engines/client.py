"""A worker's end of what all workers share. `SharedLimits` and `SharedBudget` take the place of the run's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

from ..adapters.base import ModelRequest
from ..schemas import CallHead, CallOutcome, CallRecord


class Remote(Protocol):
    """The connection to the host."""

    async def ask(self, name: str, *arguments: Any) -> Any:
        """Send a request and wait for its answer. None if the host is gone."""
        ...

    def tell(self, name: str, *arguments: Any) -> None:
        """Send a request without waiting for an answer."""
        ...


class SharedSlot:
    """One call's place in a limiter of the host."""

    def __init__(self) -> None:
        self.report: list[Any] | None = None

    def answered(
        self, outcome: CallOutcome, *, status: int | None = None, retry_after_s: float | None = None, used: int | None
    ) -> None:
        """Kept until the place is given back, so that both need one message."""
        self.report = [outcome, status, retry_after_s, used]


class SharedLimiter:
    """Admits calls to one provider, as the host decides."""

    def __init__(self, remote: Remote, provider: str) -> None:
        self._remote = remote
        self._provider = provider

    @asynccontextmanager
    async def slot(self, tokens: float) -> AsyncIterator[SharedSlot]:
        place = await self._remote.ask("enter", self._provider, tokens)
        slot = SharedSlot()
        try:
            yield slot
        finally:
            self._remote.tell("leave", place, slot.report)


class SharedLimits:
    """The limiters of the run, by provider."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    def limiter(self, provider: str) -> SharedLimiter:
        return SharedLimiter(self._remote, provider)

    def open(self) -> None:
        """Nothing to do: the host admits all who wait when the run stops."""


class SharedBudget:
    """The money of the run."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    async def reserve(self, request: ModelRequest) -> float | None:
        sizes = [request.characters, request.max_tokens, request.most_searches]
        amount = await self._remote.ask("reserve", request.model, sizes)
        return None if amount is None else float(amount)

    def settle(self, reserved: float, record: CallRecord) -> None:
        head = CallHead.model_validate({name: getattr(record, name) for name in CallHead.model_fields})
        self._remote.tell("settle", reserved, head.model_dump_json())

    def open(self) -> None:
        """Nothing to do: the host answers all who wait when the run stops."""
