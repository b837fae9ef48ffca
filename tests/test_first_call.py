"""Calls that start alike: the first goes ahead, so that a provider has its start in the cache for the others."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from src.adapters.base import Message, ModelRequest
from src.calls.gateway import FirstCalls
from tests.cases import each_case

JUDGE = "anthropic:claude-opus-5"
KEY = "the answer key, "


def request(own: str, *, model: str = JUDGE, key: str = KEY, stable: bool = True) -> ModelRequest:
    message = Message("user", key + own, len(key) if stable else 0)
    return ModelRequest(model=model, messages=(message,), system="s", max_tokens=10, seed=1, response_schema={})


def order(requests: list[ModelRequest], *, fails: bool = False) -> list[str]:
    """What happens if all calls are made at once and each takes a few rounds of the event loop."""
    happened: list[str] = []

    async def call(calls: FirstCalls, number: int, one: ModelRequest) -> None:
        async with calls.turn(one):
            happened.append(f"start {number}")
            for _ in range(5):
                await asyncio.sleep(0)
            happened.append(f"end {number}")
            if fails and number == 0:
                raise RuntimeError("the first call fails")

    async def all_at_once() -> None:
        calls = FirstCalls()
        await asyncio.gather(*(call(calls, n, one) for n, one in enumerate(requests)), return_exceptions=fails)

    asyncio.run(all_at_once())
    assert len(happened) == 2 * len(requests)
    return happened


AT_ONCE = ["start 0", "start 1", "start 2", "end 0", "end 1", "end 2"]
FIRST_ALONE = ["start 0", "end 0", "start 1", "start 2", "end 1", "end 2"]


@each_case("fails", [False, True])
def test_the_others_wait_for_the_first_however_it_ends_and_then_go_together(fails: bool) -> None:
    assert order([request("a"), request("b"), request("c")], fails=fails) == FIRST_ALONE


def test_other_keys_and_other_models_do_not_wait() -> None:
    other_model = request("b", model="anthropic:claude-sonnet-5-5")
    assert order([request("a"), other_model, request("c", key="another key, ")]) == AT_ONCE


@each_case("model", ["compatible:qwen3:8b", "offline:rules", "fake:careful", "openai:gpt-4-turbo"])
def test_models_that_cache_nothing_are_not_held_up(model: str) -> None:
    assert order([request(own, model=model) for own in "abc"]) == AT_ONCE


def test_calls_without_a_stable_start_are_not_held_up() -> None:
    assert order([request(own, stable=False) for own in "abc"]) == AT_ONCE
    target = replace(request("a", stable=False), response_schema=None)
    assert order([target, target, target]) == AT_ONCE
