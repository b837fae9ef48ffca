"""The contract of every HTTP adapter: what it sends for a request, and what it reads from each kind of answer."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from src.adapters.anthropic_adapter import AnthropicAdapter
from src.adapters.base import Adapter, Message, ModelReply, ModelRequest
from src.adapters.capabilities import capabilities, strict_schema
from src.adapters.google_adapter import GoogleAdapter
from src.adapters.grok_adapter import GrokAdapter
from src.adapters.openai_adapter import CompatibleAdapter, OpenAIAdapter
from src.schemas import ExtractorReply, Usage, VerifierOutput
from src.store.strict_json import encode
from tests.cases import each_case
from tests.loopback import LONGEST_WAIT_S, Loopback, Received, Reply, Scripted, Wire

KEY = "sentinel-key-0123456789"
ENVIRONMENT = ("OPENAI_", "ANTHROPIC_", "GOOGLE_", "GEMINI_", "XAI_")


@dataclass(frozen=True)
class AdapterCase:
    """One adapter, and what its tests need to know about it."""

    name: str
    wire: Wire
    model: str
    """A model that accepts a temperature."""

    def open(self, server: Loopback, key: str = KEY) -> Adapter:
        return OPENERS[self.name](api_key=key, base_url=server.url(self.wire))


OPENERS: dict[str, Callable[..., Adapter]] = {
    "openai": OpenAIAdapter,
    "xai": GrokAdapter,
    "compatible": CompatibleAdapter,
    "anthropic": AnthropicAdapter,
    "google": GoogleAdapter,
}
CASES = (
    AdapterCase("openai", "openai", "gpt-4.1-2025-04-14"),
    AdapterCase("xai", "openai", "grok-2-1212"),
    AdapterCase("compatible", "openai", "qwen3:8b"),
    AdapterCase("anthropic", "anthropic", "claude-sonnet-4-6"),
    AdapterCase("google", "google", "gemini-1.5-pro-002"),
)
BY_NAME = {case.name: case for case in CASES}
every_adapter = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(ENVIRONMENT) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


def asked(case: AdapterCase, **changes: Any) -> ModelRequest:
    request = ModelRequest(
        model=f"{case.name}:{case.model}",
        messages=(Message("user", "Is Part B free?"),),
        temperature=0.0,
        max_tokens=300,
        seed=42,
    )
    return replace(request, **changes)


def call(server: Loopback, case: AdapterCase, request: ModelRequest, scripted: Scripted | None = None) -> ModelReply:
    """Make one call against a scripted answer; the request it made is `server.last`."""
    server.script(scripted or Scripted())
    return asyncio.run(once(case.open(server), request))


async def once(adapter: Adapter, request: ModelRequest, timeout_s: float = LONGEST_WAIT_S) -> ModelReply:
    """One call, after which the adapter is closed."""
    try:
        return await adapter.complete(request, timeout_s=timeout_s)
    finally:
        await adapter.aclose()


# Requests


@dataclass(frozen=True)
class OnTheWire:
    """A request body, independent of its wire format."""

    model: str
    turns: list[tuple[str, str]]
    system: str | None
    temperature: float | None
    seed: int | None
    length: tuple[str, int]
    schema: Any


def decoded(received: Received) -> OnTheWire:
    body = received.body
    if received.wire == "google":
        config = body["generationConfig"]
        system = body.get("systemInstruction")
        return OnTheWire(
            model=received.model,
            turns=[(turn["role"], turn["parts"][0]["text"]) for turn in body["contents"]],
            system=system["parts"][0]["text"] if system else None,
            temperature=config.get("temperature"),
            seed=config.get("seed"),
            length=("maxOutputTokens", config["maxOutputTokens"]),
            schema=config.get("responseJsonSchema"),
        )
    turns = [(turn["role"], turn["content"]) for turn in body["messages"]]
    system = body.get("system")
    schema = body.get("output_config", {}).get("format", {}).get("schema")
    if received.wire == "openai":
        system = turns.pop(0)[1] if turns[0][0] == "system" else None
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    (length,) = [(name, body[name]) for name in ("max_tokens", "max_completion_tokens") if name in body]
    return OnTheWire(body["model"], turns, system, body.get("temperature"), body.get("seed"), length, schema)


@every_adapter
def test_request_is_mapped(server: Loopback, case: AdapterCase) -> None:
    reply = call(server, case, asked(case, system="Answer briefly.", temperature=0.25))
    wire = decoded(server.last)
    assert wire.model == case.model
    assert wire.turns == [("user", "Is Part B free?")]
    assert wire.system == "Answer briefly."
    assert wire.temperature == 0.25
    assert wire.seed == (None if case.name == "anthropic" else 42)
    names = {"openai": "max_completion_tokens", "google": "maxOutputTokens"}
    assert wire.length == (names.get(case.name, "max_tokens"), 300)
    assert wire.schema is None
    assert server.last.key == KEY
    assert reply.sent == server.last.body
    assert reply.not_applied == (("seed",) if case.name == "anthropic" else ())


@every_adapter
def test_parameters_that_are_not_set_are_not_sent(server: Loopback, case: AdapterCase) -> None:
    reply = call(server, case, asked(case, temperature=None))
    wire = decoded(server.last)
    assert wire.temperature is None and wire.system is None and wire.schema is None
    assert "temperature" not in json.dumps(reply.sent)
    assert "hint" not in json.dumps(reply.sent)
    assert "temperature" not in reply.not_applied


@every_adapter
def test_the_turns_of_a_conversation_are_sent_in_order(server: Loopback, case: AdapterCase) -> None:
    turns = (Message("user", "one"), Message("assistant", "two — “zwei”"), Message("user", "three"))
    call(server, case, asked(case, messages=turns))
    other = "model" if case.wire == "google" else "assistant"
    assert decoded(server.last).turns == [("user", "one"), (other, "two — “zwei”"), ("user", "three")]


@every_adapter
@each_case("contract", [ExtractorReply, VerifierOutput])
def test_schema_is_sent_by_the_providers_own_mechanism(
    server: Loopback, case: AdapterCase, contract: type[ExtractorReply | VerifierOutput]
) -> None:
    schema = contract.model_json_schema()
    before = json.dumps(schema)
    reply = call(server, case, asked(case, response_schema=schema), Scripted(text='{"claims": []}'))
    assert decoded(server.last).schema == strict_schema(schema)
    assert json.dumps(schema) == before, "the caller's schema is not changed"
    assert reply.text == '{"claims": []}'
    body = server.last.body
    if case.wire == "openai":
        assert body["response_format"]["type"] == "json_schema"
        assert body["response_format"]["json_schema"]["strict"] is True
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", body["response_format"]["json_schema"]["name"])
    elif case.wire == "anthropic":
        assert body["output_config"]["format"]["type"] == "json_schema"
    else:
        assert body["generationConfig"]["responseMimeType"] == "application/json"


# The six models of the specification, and one reasoning model of each provider: which of temperature and seed is applied.
MODELS = [
    ("openai", "gpt-4.1-2025-04-14", 0.0, 42, ()),
    ("openai", "gpt-4.1-mini-2025-04-14", 0.0, 42, ()),
    ("anthropic", "claude-3-5-sonnet-20241022", 0.0, None, ("seed", "response_schema")),
    ("anthropic", "claude-3-opus-20240229", 0.0, None, ("seed", "response_schema")),
    ("google", "gemini-1.5-pro-002", 0.0, 42, ()),
    ("xai", "grok-2-1212", 0.0, 42, ()),
    ("openai", "gpt-5.5-2026-04-23", None, 42, ("temperature",)),
    ("openai", "o3-2025-04-16", None, 42, ("temperature",)),
    ("openai", "gpt-6.1", None, 42, ("temperature",)),
    ("openai", "gpt-5-chat-latest", 0.0, 42, ()),
    ("openai", "gpt-4-turbo-2024-04-09", 0.0, 42, ("response_schema",)),
    ("anthropic", "claude-sonnet-4-20250514", 0.0, None, ("seed", "response_schema")),
    ("anthropic", "claude-haiku-4-5-20251001", 0.0, None, ("seed",)),
    ("anthropic", "claude-opus-4-7", None, None, ("temperature", "seed")),
    ("anthropic", "claude-opus-5-5", None, None, ("temperature", "seed")),
    ("google", "gemini-3.1-pro-preview", 0.0, 42, ()),
    ("xai", "grok-4.6", 0.0, 42, ()),
    ("compatible", "deepseek-r1:7b", 0.0, 42, ()),
]


@each_case(("name", "model", "temperature", "seed", "left_off"), MODELS)
def test_model_gets_only_the_parameters_that_it_accepts(
    server: Loopback, name: str, model: str, temperature: float | None, seed: int | None, left_off: tuple[str, ...]
) -> None:
    case = replace(BY_NAME[name], model=model)
    schema = VerifierOutput.model_json_schema()
    reply = call(server, case, asked(case, response_schema=schema))
    wire = decoded(server.last)
    assert (wire.model, wire.temperature, wire.seed) == (model, temperature, seed)
    assert (wire.schema is None) == ("response_schema" in left_off)
    assert reply.not_applied == left_off
    assert (reply.outcome, reply.served_model) == ("ok", model)
    if name == "anthropic":
        takes_sampling = "temperature" not in left_off
        assert (server.last.headers["anthropic-version"] == "2023-06-01") == takes_sampling


def test_reasoning_model_accepts_temperature_one(server: Loopback) -> None:
    case = replace(BY_NAME["openai"], model="gpt-5.5-2026-04-23")
    reply = call(server, case, asked(case, temperature=1.0))
    assert decoded(server.last).temperature == 1.0
    assert reply.not_applied == ()


def test_unknown_provider_counts_as_compatible() -> None:
    assert capabilities("plugin", "anything") == capabilities("compatible", "anything")


# Replies


@every_adapter
def test_reply_has_text_usage_ids_and_verbatim_bodies(server: Loopback, case: AdapterCase) -> None:
    reply = call(server, case, asked(case), Scripted(text="No. The premium is $185.", served="other-model-9"))
    assert (reply.outcome, reply.text) == ("ok", "No. The premium is $185.")
    assert reply.served_model == "other-model-9"
    assert reply.request_id == "req-loopback"
    assert reply.fingerprint == ("fp_loopback" if case.wire == "openai" else None)
    written = 2 if case.wire == "anthropic" else None
    assert reply.usage == Usage(
        input_tokens=11, output_tokens=7, cached_tokens=5, reasoning_tokens=3, cache_write_tokens=written
    )
    assert reply.stop_reason == {"openai": "stop", "anthropic": "end_turn", "google": "STOP"}[case.wire]
    assert json.loads(reply.received) and "No. The premium is $185." in reply.received


REPLIES: list[tuple[Reply, str, dict[Wire, tuple[str, str]]]] = [
    ("thinking_first", "ok", {"openai": ("stop", "T"), "anthropic": ("end_turn", "T"), "google": ("STOP", "T")}),
    ("empty", "empty", {"openai": ("stop", " \n"), "anthropic": ("end_turn", ""), "google": ("STOP", "")}),
    (
        "truncated",
        "truncated",
        {"openai": ("length", "T"), "anthropic": ("max_tokens", "T"), "google": ("MAX_TOKENS", "T")},
    ),
    ("refusal", "refused", {"openai": ("stop", "T"), "anthropic": ("refusal", "T")}),
    (
        "content_filter",
        "blocked",
        {"openai": ("content_filter", ""), "anthropic": ("content_filter", ""), "google": ("SAFETY", "")},
    ),
    (
        "prompt_block",
        "blocked",
        {"openai": ("content_filter", ""), "anthropic": ("content_filter", ""), "google": ("PROHIBITED_CONTENT", "")},
    ),
]


# Google has no refusal outcome: a model that declines does so in plain text.
REPLY_CASES = [
    pytest.param(case, kind, outcome, *stops[case.wire], id=f"{case.name}-{kind}")
    for case in CASES
    for kind, outcome, stops in REPLIES
    if case.wire in stops
]


@each_case(("case", "kind", "outcome", "stop", "text"), REPLY_CASES)
def test_every_kind_of_reply(
    server: Loopback, case: AdapterCase, kind: Reply, outcome: str, stop: str, text: str
) -> None:
    reply = call(server, case, asked(case), Scripted(reply=kind, text="T"))
    assert (reply.outcome, reply.stop_reason, reply.text) == (outcome, stop, text)
    assert reply.sent == server.last.body
    assert reply.request_id == "req-loopback"


@each_case("stop", ["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"])
def test_google_filters_keep_the_partial_text(server: Loopback, stop: str) -> None:
    case = BY_NAME["google"]
    reply = call(server, case, asked(case), Scripted(text="half an ans", stop=stop))
    assert (reply.outcome, reply.stop_reason, reply.text) == ("blocked", stop, "half an ans")


@every_adapter
@each_case(("text", "outcome"), [("An answer.", "ok"), ("", "empty")])
def test_with_an_unknown_stop_reason_the_text_decides(
    server: Loopback, case: AdapterCase, text: str, outcome: str
) -> None:
    reply = call(server, case, asked(case), Scripted(text=text, stop="novel_reason"))
    assert (reply.outcome, reply.stop_reason, reply.text) == (outcome, "novel_reason", text)


def test_anthropic_refusal_without_text_gives_its_explanation(server: Loopback) -> None:
    case = BY_NAME["anthropic"]
    details = {"type": "refusal", "category": None, "explanation": "Not this."}
    raw = encode({"content": [], "model": "m", "stop_reason": "refusal", "stop_details": details})
    assert call(server, case, asked(case), Scripted(raw=raw)).text == "Not this."


def test_anthropic_joins_all_text_blocks(server: Loopback) -> None:
    case = BY_NAME["anthropic"]
    blocks = [{"type": "text", "text": "a"}, {"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "b"}]
    raw = encode({"content": blocks, "model": "m", "stop_reason": "end_turn"})
    reply = call(server, case, asked(case), Scripted(raw=raw))
    assert (reply.text, reply.usage) == ("ab", Usage())


def test_xai_reasoning_tokens_count_as_output(server: Loopback) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 45}
    usage_details = {"completion_tokens_details": {"reasoning_tokens": 30}}
    choice = {"message": {"content": "x"}, "finish_reason": "stop"}
    raw = encode({"choices": [choice], "model": "grok-4.6", "usage": usage | usage_details})
    case = BY_NAME["xai"]
    reply = call(server, case, asked(case), Scripted(raw=raw))
    assert reply.usage == Usage(input_tokens=10, output_tokens=35, reasoning_tokens=30)


def test_compatible_server_may_answer_in_parts(server: Loopback) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    raw = encode({"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]})
    case = BY_NAME["compatible"]
    assert call(server, case, asked(case), Scripted(raw=raw)).text == "ab"


@every_adapter
def test_lone_surrogates_in_a_reply_are_replaced(server: Loopback, case: AdapterCase) -> None:
    reply = call(server, case, asked(case), Scripted(text="cut \ud83d", served="m\ud800"))
    assert (reply.text, reply.served_model) == ("cut \N{REPLACEMENT CHARACTER}", "m\N{REPLACEMENT CHARACTER}")
    assert "\\ud83d" in reply.received, "the bytes are kept unchanged"
    encode([reply.text, reply.received, reply.sent])


@every_adapter
def test_invalid_usage_counts_as_unknown(server: Loopback, case: AdapterCase) -> None:
    body = {
        "choices": [{"message": {"content": "x"}, "finish_reason": None}],
        "content": [{"type": "text", "text": "x"}],
        "candidates": [{"content": {"parts": [{"text": "x"}]}}],
        "usage": {"prompt_tokens": "7", "input_tokens": -1, "completion_tokens": True, "output_tokens": 1.5},
        "usageMetadata": ["?"],
        "model": 5,
    }
    reply = call(server, case, asked(case), Scripted(raw=encode(body)))
    assert (reply.outcome, reply.usage, reply.served_model) == ("ok", Usage(), None)


def test_calls_of_one_adapter_do_not_mix(server: Loopback) -> None:
    """Many calls share a client; each must get its own request and response."""

    async def many(case: AdapterCase) -> list[ModelReply]:
        with Loopback(lambda got: Scripted(text=decoded(got).turns[0][1], delay_s=0.01)) as echo:
            adapter = case.open(echo)
            questions = [asked(case, messages=(Message("user", f"q{number}"),)) for number in range(40)]
            try:
                return await asyncio.gather(
                    *(adapter.complete(question, timeout_s=LONGEST_WAIT_S) for question in questions)
                )
            finally:
                await adapter.aclose()

    for case in CASES:
        replies = asyncio.run(many(case))
        assert [reply.text for reply in replies] == [f"q{number}" for number in range(40)]
        assert all(f'"q{number}"' in json.dumps(reply.sent) for number, reply in enumerate(replies))
