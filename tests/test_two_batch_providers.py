"""Two providers with batches: what one of them does says nothing of the other."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from src.adapters.base import BatchState, CallFailure, KnownBatch, Message, ModelRequest
from src.calls import batches, open_batches
from src.calls.batches import BatchPoller, BatchTiming
from src.calls.limits import Limits
from src.calls.open_batches import BatchSender, OpenBatch, OpenBatches, ParkedCall
from src.calls.resources import CallResources
from src.calls.stop import Stop, Stopping
from src.records.run import BatchIntent, BatchLine

DOWN, UP = "openai:gpt-5.5-2026-04-23", "anthropic:claude-sonnet-4-6"


class FakeJournal:
    def __init__(self) -> None:
        self.notes: list[Any] = []
        self.unanswered: set[str] = set()

    async def append(self, record: Any) -> None:
        self.notes.append(record)


class FakeBatches:
    """The batch API of one provider, which answers or refuses everything."""

    limits: Any = type("Limits", (), {"requests": 100, "size": 10**6})

    def __init__(self, failure: CallFailure | None) -> None:
        self.failure = failure
        self.sent = 0

    async def state(self, batch: str, lines: int) -> BatchState:
        if self.failure:
            raise self.failure
        return BatchState("in_progress", ended=False)

    async def send(self, intent: str, requests: Any) -> KnownBatch:
        self.sent += 1
        if self.failure:
            raise self.failure
        return KnownBatch("b1")


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    for module in (batches, open_batches):
        monkeypatch.setattr(module, "time", found)
    return found


def opened(
    monkeypatch: pytest.MonkeyPatch, failure: CallFailure
) -> tuple[OpenBatches, CallResources, dict[str, FakeBatches]]:
    apis = {"openai": FakeBatches(failure), "anthropic": FakeBatches(None)}
    monkeypatch.setattr(open_batches, "make_batches", lambda provider, adapter: apis[provider])
    adapter: Any = object()
    resources = CallResources(adapter_for=lambda provider: adapter, limits=Limits(4), stop=Stop(), max_outage_s=100)
    return OpenBatches(FakeJournal(), resources), resources, apis


def test_an_answer_of_one_provider_does_not_end_the_outage_of_another(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    async def polled() -> str:
        open_, resources, _ = opened(monkeypatch, CallFailure("transient", "openai: HTTP 503", status=503))
        for number, model in enumerate((DOWN, UP)):
            line = BatchLine(custom_id=f"{number}", call=f"call {number}", request_sha256="0" * 64)
            intent = BatchIntent(intent=f"i{number}", model=model, lines=(line,), started="2026-11-17T00:00:00+00:00")
            open_.batches.append(OpenBatch(intent, {f"call {number}": "0"}, known=KnownBatch("b")))
        poller = BatchPoller(open_, resources, BatchTiming(first_poll=1, last_poll=10))
        for _ in range(12):
            clock.now += 11
            await poller.poll()
        return resources.stop.reason

    with pytest.raises(Stopping, match="openai does not answer questions about its batches"):
        asyncio.run(polled())


def test_a_provider_that_has_enough_does_not_keep_the_batches_of_another_back(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    async def sent() -> tuple[int, int]:
        enough = CallFailure("rate_limited", "openai: HTTP 429", status=429)
        open_, resources, apis = opened(monkeypatch, enough)
        sender = BatchSender(open_, resources.stop, retry_s=60)

        def parked(model: str, name: str) -> ParkedCall:
            request = ModelRequest(model=model, messages=(Message("user", "Hello"),), max_tokens=5, seed=1)
            api: Any = apis[model.partition(":")[0]]
            return ParkedCall(name, request, api, 10, asyncio.get_running_loop().create_future())

        await sender.send([parked(DOWN, "a")])
        await sender.send([parked(DOWN, "a"), parked(UP, "b")])
        assert apis["openai"].sent == 1  # it said that this is too much, and is left alone for a while
        clock.now += 61
        await sender.send([parked(DOWN, "a")])
        return apis["openai"].sent, apis["anthropic"].sent

    assert asyncio.run(sent()) == (2, 1)
