"""What the calls of a run share: adapters, rate limits, the budget, and the wish to stop."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from ..adapters.base import Adapter, ModelRequest
from ..records.run import RunLimits
from ..schemas import CallOutcome, CallRecord
from .people import People
from .stop import Stop


class CallBudget(Protocol):
    """Money: asked before every attempt, settled after it."""

    async def reserve(self, request: ModelRequest) -> float | None:
        """Reserve the most the attempt may cost, once calls in flight leave enough; None: it could pass the limit."""
        ...

    def settle(self, reserved: float, record: CallRecord) -> None: ...

    def open(self) -> None:
        """Answer all who wait: the run is stopping."""
        ...


class CallSlot(Protocol):
    """One call's place at a provider."""

    def answered(
        self, outcome: CallOutcome, *, status: int | None = None, retry_after_s: float | None = None, used: int | None
    ) -> None: ...


class CallLimiter(Protocol):
    def slot(self, tokens: float) -> AbstractAsyncContextManager[CallSlot]: ...


class CallLimits(Protocol):
    """How many calls a provider gets: of this process alone, or shared with others."""

    def limiter(self, provider: str) -> CallLimiter: ...

    def open(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class CallResources:
    """What a gateway needs to make calls. None of it can change a result."""

    adapter_for: Callable[[str], Adapter]
    """By provider."""
    limits: CallLimits
    stop: Stop
    budget: CallBudget | None = None
    max_outage_s: float = RunLimits().max_outage_s
    on_notice: Callable[[str], None] = lambda notice: None
    """Told why the run waits, in a sentence."""
    people: People = field(default_factory=People)
    """Where calls to people wait."""
    batch: bool | None = None
    """Whether judges' calls go into batches; None: nobody said, so no."""
    batch_wait_s: float | None = None
    """Seconds to wait for batches with nothing else to do; None: until they end."""
