"""What helps a provider to cache the start of a judge's prompt, on the wire, and what comes back about it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import anthropic.types
import openai.types
import pytest
from google.genai import types as google_types
from hypothesis import given
from hypothesis import strategies as st

from src.adapters.base import Message, ModelRequest
from src.adapters.capabilities import (
    KEPT_SCHEMAS,
    MOST_ITEMS,
    RULES,
    StrictSchemas,
    cache_key,
    cache_rule,
    strict_schema,
    text_parts,
)
from src.schemas import ExtractorReply, Usage, VerifierOutput
from src.store.strict_json import encode
from tests.adapters.test_contract import BY_NAME, AdapterCase, asked, call, clean_environment, every_adapter
from tests.cases import each_case
from tests.loopback import Loopback, Scripted

__all__ = ["clean_environment"]  # a fixture that is used by being here

KEY = '{"shared":{"answer_key":["Part B costs $202.90."]},'
CLAIM = '"canary":"c0ffee","input":{"claims":["It is free."]}}'
SCHEMA = VerifierOutput.model_json_schema()
NEW_GPT = replace(BY_NAME["openai"], model="gpt-5.6-terra")


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


def judging(case: AdapterCase, **changes: Any) -> ModelRequest:
    """A verifier's call: the key first, then what is this call's own."""
    question = Message("user", KEY + CLAIM, len(KEY))
    plain: dict[str, Any] = {"system": "You verify claims.", "messages": (question,), "response_schema": SCHEMA}
    return asked(case, **{**plain, **changes})


# Marks


def test_anthropic_gets_a_mark_after_the_system_prompt_and_after_the_key(server: Loopback) -> None:
    case = BY_NAME["anthropic"]
    reply = call(server, case, judging(case))
    mark = {"type": "ephemeral"}
    body = server.last.body
    assert body["system"] == [{"type": "text", "text": "You verify claims.", "cache_control": mark}]
    blocks = [{"type": "text", "text": KEY, "cache_control": mark}, {"type": "text", "text": CLAIM}]
    assert body["messages"] == [{"role": "user", "content": blocks}]
    assert reply.sent == body


def test_anthropic_is_asked_again_with_the_same_marks(server: Loopback) -> None:
    case = BY_NAME["anthropic"]
    first = judging(case)
    call(server, case, first)
    before = server.last.body
    again = (*first.messages, Message("assistant", "{}"), Message("user", "Answer again."))
    call(server, case, replace(first, messages=again))
    after = server.last.body
    assert (after["system"], after["messages"][0]) == (before["system"], before["messages"][0])
    assert after["messages"][1:] == [
        {"role": "assistant", "content": "{}"},
        {"role": "user", "content": "Answer again."},
    ]
    assert json.dumps(after).count("cache_control") == 2, "Anthropic accepts four"


def test_a_judge_whose_schema_was_refused_keeps_the_marks(server: Loopback) -> None:
    case = BY_NAME["anthropic"]
    call(server, case, judging(case, response_schema=None))
    assert json.dumps(server.last.body).count("cache_control") == 2


@every_adapter
def test_a_target_is_called_as_people_call_it(server: Loopback, case: AdapterCase) -> None:
    call(server, case, asked(case, system="Answer briefly."))
    assert "cache" not in json.dumps(server.last.body)
    assert "x-grok-conv-id" not in server.last.headers
    call(server, NEW_GPT, asked(NEW_GPT, system="Answer briefly."))
    assert "cache" not in json.dumps(server.last.body)


def test_openai_gets_a_key_that_is_equal_for_calls_with_an_equal_start(server: Loopback) -> None:
    case = BY_NAME["openai"]
    keys = []
    for request in (
        judging(case),
        judging(case, messages=(Message("user", KEY + "another claim", len(KEY)),), seed=7),
        judging(case, messages=(Message("user", "another key" + CLAIM, len("another key")),)),
        judging(case, system="You extract claims."),
    ):
        call(server, case, request)
        body = server.last.body
        assert body["messages"][1]["content"] == request.messages[0].content, "older models get plain text"
        assert "prompt_cache_options" not in body, "older models refuse it"
        keys.append(body["prompt_cache_key"])
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3
    assert all(len(key) <= 64 for key in keys)


@each_case("model", ["gpt-5.6-terra", "gpt-5.12", "gpt-6.1", "gpt-10", "ft:gpt-6:org::id"])
def test_openai_from_gpt_5_6_gets_marks_and_writes_nothing_else(server: Loopback, model: str) -> None:
    case = replace(NEW_GPT, model=model)
    call(server, case, judging(case))
    body, mark = server.last.body, {"mode": "explicit"}
    assert body["messages"] == [
        {
            "role": "system",
            "content": [{"type": "text", "text": "You verify claims.", "prompt_cache_breakpoint": mark}],
        },
        {
            "role": "user",
            "content": [
                {"type": "text", "text": KEY, "prompt_cache_breakpoint": mark},
                {"type": "text", "text": CLAIM},
            ],
        },
    ]
    assert body["prompt_cache_options"] == {"mode": "explicit"}
    assert body["prompt_cache_key"] == cache_key(judging(case))


def test_xai_gets_a_conversation_id_that_is_equal_for_calls_with_an_equal_start(server: Loopback) -> None:
    case = BY_NAME["xai"]
    call(server, case, judging(case))
    first = server.last.headers["x-grok-conv-id"]
    call(server, case, judging(case, messages=(Message("user", KEY + "another claim", len(KEY)),)))
    assert server.last.headers["x-grok-conv-id"] == first == cache_key(judging(case))
    assert "cache" not in json.dumps(server.last.body)


@each_case("name", ["compatible", "google"])
def test_other_servers_get_nothing_that_they_might_refuse(server: Loopback, name: str) -> None:
    case = BY_NAME[name]
    call(server, case, judging(case))
    plain = dict(server.last.body)
    call(server, case, judging(case, messages=(Message("user", KEY + CLAIM),)))
    assert server.last.body == plain
    assert "x-grok-conv-id" not in server.last.headers


def test_the_request_hash_does_not_depend_on_what_is_stable() -> None:
    case = BY_NAME["openai"]
    assert judging(case).sha256() == judging(case, messages=(Message("user", KEY + CLAIM),)).sha256()


@given(st.text(), st.integers(0, 100))
def test_the_parts_of_a_message_make_the_message(content: str, stable: int) -> None:
    parts = text_parts(Message("user", content, stable))
    assert "".join(part.text for part in parts) == content
    assert [part.stable for part in parts] in ([True], [False], [True, False])
    assert len(parts) == 1 or all(part.text.strip() for part in parts), "providers refuse blank parts"
    assert not parts[0].stable or content[:stable].strip()


# Which models cache what


@each_case(
    ("provider", "model", "how", "shortest"),
    [
        ("openai", "gpt-4.1-2025-04-14", "key", 1_024),
        ("openai", "gpt-5.5-2026-04-23", "key", 1_024),
        ("openai", "gpt-5.6", "breakpoints", 1_024),
        ("openai", "o3-2025-04-16", "key", 1_024),
        ("anthropic", "claude-opus-5", "cache_control", 512),
        ("anthropic", "claude-opus-5-5", "cache_control", 1_024),
        ("anthropic", "claude-sonnet-4-6", "cache_control", 2_048),
        ("anthropic", "claude-opus-4-6", "cache_control", 4_096),
        ("anthropic", "claude-haiku-4-5-20251001", "cache_control", 4_096),
        ("anthropic", "claude-3-5-sonnet-20241022", "cache_control", 1_024),
        ("google", "gemini-3.8-flash", "prefix", 4_096),
        ("google", "gemini-2.5-pro", "prefix", 2_048),
        ("xai", "grok-4.6", "conversation_id", 128),
    ],
)
def test_the_rule_of_a_model(provider: str, model: str, how: str, shortest: int) -> None:
    rule = cache_rule(provider, model)
    assert rule is not None and (rule.how, rule.shortest) == (how, shortest)


@each_case(
    ("provider", "model"),
    [("openai", "gpt-4-turbo"), ("google", "gemini-1.5-pro-002"), ("compatible", "qwen3:8b"), ("offline", "rules")],
)
def test_models_that_cache_nothing(provider: str, model: str) -> None:
    assert cache_rule(provider, model) is None


def test_every_provider_with_rules_has_one_for_any_model() -> None:
    assert {rule.provider for rule in RULES} == {rule.provider for rule in RULES if rule.pattern == ""}


# Usage


def test_the_fields_that_are_read_are_the_sdks_own() -> None:
    of_prompt = openai.types.completion_usage.PromptTokensDetails.model_fields
    assert {"cached_tokens", "cache_write_tokens"} <= set(of_prompt)
    assert {"cache_read_input_tokens", "cache_creation_input_tokens"} <= set(anthropic.types.Usage.model_fields)
    google = google_types.GenerateContentResponseUsageMetadata.model_fields
    assert google["cached_content_token_count"].alias == "cachedContentTokenCount"


@each_case("name", ["openai", "xai", "compatible"])
def test_cached_tokens_of_chat_completions(server: Loopback, name: str) -> None:
    details = {"cached_tokens": 1_920, "cache_write_tokens": 70}
    usage = {"prompt_tokens": 2_006, "completion_tokens": 9, "total_tokens": 2_015, "prompt_tokens_details": details}
    raw = encode({"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "usage": usage})
    case = BY_NAME[name]
    reply = call(server, case, asked(case), Scripted(raw=raw))
    assert reply.usage == Usage(input_tokens=2_006, output_tokens=9, cached_tokens=1_920, cache_write_tokens=70)


def test_anthropics_input_tokens_are_what_was_neither_read_nor_written(server: Loopback) -> None:
    usage = {
        "input_tokens": 40,
        "cache_creation_input_tokens": 300,
        "cache_read_input_tokens": 1_700,
        "output_tokens": 9,
        "cache_creation": {"ephemeral_5m_input_tokens": 300, "ephemeral_1h_input_tokens": 0},
    }
    assert anthropic.types.Usage.model_validate(usage).cache_read_input_tokens == 1_700
    raw = encode({"content": [{"type": "text", "text": "x"}], "stop_reason": "end_turn", "usage": usage})
    case = BY_NAME["anthropic"]
    reply = call(server, case, asked(case), Scripted(raw=raw))
    assert reply.usage == Usage(input_tokens=2_040, output_tokens=9, cached_tokens=1_700, cache_write_tokens=300)


def test_usage_without_cache_writes_keeps_the_bytes_of_earlier_releases() -> None:
    assert set(Usage().model_dump()) == {"input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"}
    assert Usage(cache_write_tokens=0).model_dump()["cache_write_tokens"] == 0


# The lengths of lists


def sized(longest: int, shortest: int = 0) -> dict[str, Any]:
    schema = ExtractorReply.model_json_schema()
    schema["properties"]["claims"] |= {"maxItems": longest, "minItems": shortest}
    return schema


@every_adapter
def test_only_servers_of_ones_own_are_sent_the_lengths_of_lists(server: Loopback, case: AdapterCase) -> None:
    """Elsewhere they are refused, or a schema of another size keeps the prompt from being read from the cache."""
    call(server, case, judging(case, response_schema=sized(12, 12)))
    first = json.dumps(server.last.body)
    call(server, case, judging(case, response_schema=sized(13, 13)))
    second = json.dumps(server.last.body)
    if case.name == "compatible":
        assert '"minItems": 12, "maxItems": 12' in first and '"maxItems": 13' in second
    else:
        assert first == second and "Items" not in first


def test_lists_inside_lists_and_very_long_ones_are_sent_without_lengths() -> None:
    schema = strict_schema(sized(MOST_ITEMS), list_lengths=True)
    assert schema["properties"]["claims"]["maxItems"] == MOST_ITEMS
    assert json.dumps(schema).count("Items") == 2, "those of quotes would multiply in a grammar"
    assert "Items" not in json.dumps(strict_schema(sized(MOST_ITEMS + 1), list_lengths=True))


def test_no_more_than_a_set_number_of_schemas_is_kept() -> None:
    schemas = StrictSchemas()
    made = [sized(size % 100) for size in range(3 * KEPT_SCHEMAS)]
    for schema in made:
        first = schemas.of(schema, list_lengths=True)
        assert schemas.of(schema, list_lengths=True) is first
        assert first["properties"]["claims"]["maxItems"] == schema["properties"]["claims"]["maxItems"]
    assert len(schemas._made) == KEPT_SCHEMAS
