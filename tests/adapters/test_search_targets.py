"""Targets that search and reason, on the real SDKs: what is sent, what is sent back, and what is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest

from src.adapters.base import CallFailure, Message, ModelReply, ModelRequest
from src.adapters.web_search import blocks_of, complete
from src.calls.gateway import call_record
from src.records.target import Effort, SearchOptions, WebSearch
from src.schemas import CallRecord
from tests.adapters.search_bodies import (
    BY_NAME,
    CASES,
    CITED,
    INJECTED,
    QUERY,
    SIGNATURE,
    TEXT,
    URL,
    SearchCase,
    anthropic_blocks,
    anthropic_body,
    google_body,
    openai_body,
    paused_body,
)
from tests.adapters.test_contract import CASES as BARE_CASES
from tests.adapters.test_contract import KEY, AdapterCase, asked, call, clean_environment
from tests.cases import each_case
from tests.loopback import Loopback, Scripted

__all__ = ["clean_environment"]  # a fixture that every test here uses
every_provider = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


def searching(case: SearchCase, **changes: Any) -> ModelRequest:
    return asked(case.adapter, **{"search": SearchOptions(), **changes})


def answered(server: Loopback, case: SearchCase, body: dict[str, Any] | None = None, **changes: Any) -> ModelReply:
    scripted = Scripted(raw=json.dumps(case.body() if body is None else body).encode())
    return call(server, case.adapter, searching(case, **changes), scripted)


def recorded(request: ModelRequest, reply: ModelReply) -> CallRecord:
    """As the journal has it after a restart."""
    record = call_record("t|target|Q1|0|0|1", request, reply, started="2026-11-18", final=True, latency_ms=1.0)
    return CallRecord.model_validate_json(record.model_dump_json())


# What is read


@every_provider
def test_searches_queries_and_pages_of_a_reply_are_read(server: Loopback, case: SearchCase) -> None:
    reply = answered(server, case)
    assert (reply.outcome, reply.text, reply.served_model) == ("ok", TEXT, "served-1")
    assert reply.search is not None
    assert (reply.search.searches, reply.search.queries, reply.search.found) == (1, (QUERY,), (URL,))
    assert reply.search.errors == ()
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (9_000, 70)
    assert reply.not_applied == case.not_applied


@every_provider
def test_a_citation_is_at_its_place_in_text_that_is_not_ascii(server: Loopback, case: SearchCase) -> None:
    search = answered(server, case).search
    assert search is not None
    (found,) = search.citations
    assert (found.url, found.title) == (URL, INJECTED)
    assert TEXT[found.start : found.end] == CITED
    assert found.cited_text == ("The premium is $202.90." if case.name == "anthropic" else None)


@every_provider
def test_a_reply_without_a_search_is_recorded_as_one_of_a_target_that_may_search(
    server: Loopback, case: SearchCase
) -> None:
    bare = {
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "Yes."}]}],
        "status": "completed",
        "content": [{"type": "text", "text": "Yes."}],
        "candidates": [{"content": {"parts": [{"text": "Yes."}]}, "finishReason": "STOP"}],
    }
    reply = answered(server, case, bare)
    assert (reply.outcome, reply.text, reply.search) == ("ok", "Yes.", WebSearch())


@every_provider
def test_places_are_dropped_and_no_key_is_kept_if_a_response_repeats_it(server: Loopback, case: SearchCase) -> None:
    body = case.body(f"{KEY} {TEXT}")
    reply = answered(server, case, json.loads(json.dumps(body).replace(INJECTED, f"title {KEY}")))
    assert reply.search is not None
    (found,) = reply.search.citations
    assert (found.start, found.end, found.title) == (None, None, "title [redacted]")
    assert KEY not in str(reply)


@every_provider
def test_a_key_that_is_written_in_escapes_is_not_kept_either(server: Loopback, case: SearchCase) -> None:
    hidden = "".join(f"\\u{ord(char):04x}" for char in KEY)
    raw = json.dumps(case.body()).replace(INJECTED, hidden).replace(QUERY, hidden)
    reply = call(server, case.adapter, searching(case), Scripted(raw=raw.encode()))
    assert reply.search is not None
    assert KEY not in str(reply.search)
    assert reply.search.queries == ("[redacted]",)
    assert [one.title for one in reply.search.citations] == ["[redacted]"]


@every_provider
def test_text_before_a_lone_surrogate_keeps_its_citations(server: Loopback, case: SearchCase) -> None:
    reply = answered(server, case, case.body(f"{TEXT}\ud83d"))
    assert reply.search is not None
    (found,) = reply.search.citations
    if case.name != "anthropic":  # there the cut character is in a block of its own, and cannot be in these words
        assert reply.text[found.start : found.end] == CITED
    assert blocks_of(recorded(searching(case), reply)) == [], "half a character cannot be sent"


@each_case("bad", [-1, 10_000, "3", None, 1.5])
def test_a_place_outside_the_text_is_dropped_and_the_citation_kept(server: Loopback, bad: Any) -> None:
    body = openai_body()
    body["output"][3]["content"][0]["annotations"][0]["end_index"] = bad
    search = answered(server, BY_NAME["openai"], body).search
    assert search is not None
    assert [(one.url, one.start, one.end) for one in search.citations] == [(URL, None, None)]


def test_places_count_over_all_parts_of_a_response(server: Loopback) -> None:
    body = openai_body()
    first = {"type": "output_text", "text": "Erst – ", "annotations": []}
    body["output"][3]["content"].insert(0, first)
    reply = answered(server, BY_NAME["openai"], body)
    assert reply.search is not None
    (found,) = reply.search.citations
    assert reply.text == "Erst – " + TEXT
    assert reply.text[found.start : found.end] == CITED


@each_case("part", [0, None, 7])
def test_google_places_are_found_by_their_words_if_the_part_is_not_named(server: Loopback, part: int | None) -> None:
    body = google_body()
    segment = body["candidates"][0]["groundingMetadata"]["groundingSupports"][0]["segment"]
    del segment["partIndex"]
    if part is not None:
        segment["partIndex"] = part
    search = answered(server, BY_NAME["google"], body).search
    assert search is not None
    (found,) = search.citations
    assert TEXT[found.start : found.end] == CITED


def test_google_places_in_the_middle_of_a_character_or_with_other_words_are_dropped(server: Loopback) -> None:
    for change in ({"startIndex": 2, "text": None}, {"text": "other words"}, {"endIndex": "x"}, {"endIndex": 99_999}):
        body = google_body()
        segment = body["candidates"][0]["groundingMetadata"]["groundingSupports"][0]["segment"]
        segment.update(change)
        search = answered(server, BY_NAME["google"], body).search
        assert search is not None
        assert [(one.url, one.start) for one in search.citations] == [(URL, None)], change


def test_gemini_2_pays_for_a_request_and_gemini_3_for_each_query(server: Loopback) -> None:
    body = google_body()
    body["candidates"][0]["groundingMetadata"]["webSearchQueries"] = ["a", "b", "b"]
    for model, searches in (("gemini-2.5-flash", 1), ("gemini-3.8-flash", 3)):
        case = SearchCase(AdapterCase("google", "google", model), google_body, list, ())
        search = answered(server, case, body).search
        assert search is not None and search.searches == searches
        assert search.queries == ("a", "b")


# Errors


def test_a_failed_search_in_a_good_response_is_listed_as_an_error(server: Loopback) -> None:
    failed = openai_body()
    failed["output"][1]["status"] = "failed"
    claude = anthropic_body()
    claude["content"][2]["content"] = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    gemini = google_body()
    gemini["candidates"][0]["finishReason"] = "TOO_MANY_TOOL_CALLS"
    expected = {
        "openai": "web_search_call ws_1 failed",
        "anthropic": "max_uses_exceeded",
        "google": "TOO_MANY_TOOL_CALLS",
    }
    for name, body in (("openai", failed), ("anthropic", claude), ("google", gemini)):
        reply = answered(server, BY_NAME[name], body)
        assert (reply.outcome, reply.text) == ("ok", TEXT)
        assert reply.search is not None and reply.search.errors == (expected[name],)


@every_provider
@each_case(("status", "outcome"), [(500, "transient"), (429, "rate_limited"), (400, "permanent"), (401, "denied")])
def test_an_http_error_is_classified_as_without_search(
    server: Loopback, case: SearchCase, status: int, outcome: str
) -> None:
    with pytest.raises(CallFailure) as caught:
        call(server, case.adapter, searching(case), Scripted(status=status))
    assert (caught.value.outcome, caught.value.status) == (outcome, status)
    assert caught.value.not_applied == case.not_applied
    path = {"openai": "/v1/responses", "xai": "/v1/responses"}.get(case.name)
    assert path is None or server.last.path == path


@each_case(
    ("change", "outcome", "stop"),
    [
        (
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            "truncated",
            "max_output_tokens",
        ),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "blocked", "content_filter"),
        ({"status": "failed", "error": {"code": "bio_policy", "message": "no"}}, "blocked", "bio_policy"),
        ({"output": []}, "empty", "completed"),
    ],
)
def test_a_response_that_ends_otherwise_has_its_outcome(
    server: Loopback, change: dict[str, Any], outcome: str, stop: str
) -> None:
    reply = answered(server, BY_NAME["openai"], openai_body(**change))
    assert (reply.outcome, reply.stop_reason) == (outcome, stop)


@each_case(
    ("change", "outcome"),
    [
        ({"status": "failed", "error": {"code": "server_error", "message": "later"}}, "transient"),
        ({"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "later"}}, "rate_limited"),
        ({"status": "in_progress"}, "malformed"),
        ({"output": "none"}, "malformed"),
    ],
)
def test_a_response_that_failed_or_is_not_done_is_no_reply(
    server: Loopback, change: dict[str, Any], outcome: str
) -> None:
    with pytest.raises(CallFailure) as caught:
        answered(server, BY_NAME["openai"], openai_body(**change))
    assert caught.value.outcome == outcome
    assert KEY not in caught.value.message


def test_a_refusal_is_one_on_every_wire(server: Loopback) -> None:
    openai = openai_body(output=[{"type": "message", "content": [{"type": "refusal", "refusal": "I cannot."}]}])
    claude = anthropic_body(content=[{"type": "text", "text": "I cannot."}], stop_reason="refusal")
    for name, body in (("openai", openai), ("xai", openai), ("anthropic", claude)):
        reply = answered(server, BY_NAME[name], body)
        assert (reply.outcome, reply.text) == ("refused", "I cannot.")


def test_a_pause_without_a_word_is_not_empty(server: Loopback) -> None:
    reply = answered(server, BY_NAME["anthropic"], paused_body())
    assert (reply.outcome, reply.text, reply.stop_reason) == ("ok", "", "pause_turn")
    assert reply.search is not None and reply.search.queries == ("first try",)


# What is sent


@every_provider
def test_a_later_turn_has_the_earlier_reply_exactly_as_it_came(server: Loopback, case: SearchCase) -> None:
    first = searching(case)
    blocks = complete(blocks_of(recorded(first, answered(server, case))))
    assert list(blocks) == case.sent_back()
    question = Message("user", "And Part D?")
    turns = (*first.messages, Message("assistant", TEXT, blocks=blocks), question)
    reply = answered(server, case, messages=turns)
    body = server.last.body
    assert reply.sent == body
    if case.name in ("openai", "xai"):
        before, after = {"role": "user", "content": "Is Part B free?"}, {"role": "user", "content": "And Part D?"}
        assert body["input"] == [before, *case.sent_back(), after]
    elif case.name == "anthropic":
        assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user"]
        assert body["messages"][1]["content"] == case.sent_back()
    else:
        assert [turn["role"] for turn in body["contents"]] == ["user", "model", "user"]
        assert body["contents"][1]["parts"] == case.sent_back()
        assert SIGNATURE in json.dumps(body)


def test_what_a_later_turn_may_not_have_is_left_out() -> None:
    cut = [*anthropic_blocks(), {"type": "text", "text": ""}, {"type": "server_tool_use", "id": "srv_9", "name": "x"}]
    assert list(complete(cut)) == anthropic_blocks()


FULL = SearchOptions(
    max_searches=3,
    allowed_domains=("medicare.gov", "ssa.gov"),
    blocked_domains=("example.com",),
    country="US",
    context_size="low",
)
LOCATION = {"type": "approximate", "country": "US"}
TOOLS = {
    "openai": {
        "type": "web_search",
        "filters": {"allowed_domains": ["medicare.gov", "ssa.gov"]},
        "user_location": LOCATION,
        "search_context_size": "low",
    },
    "xai": {"type": "web_search", "filters": {"allowed_domains": ["medicare.gov", "ssa.gov"]}},
    "anthropic": {
        "type": "web_search_20260318",
        "name": "web_search",
        "max_uses": 3,
        "allowed_callers": ["direct"],
        "allowed_domains": ["medicare.gov", "ssa.gov"],
        "user_location": LOCATION,
    },
    "google": {"googleSearch": {}},
}
NOT_TAKEN = {
    "openai": {"blocked_domains"},
    "xai": {"max_searches", "blocked_domains", "country", "context_size"},
    "anthropic": {"blocked_domains", "context_size"},
    "google": {"max_searches", "allowed_domains", "blocked_domains", "country", "context_size"},
}


@every_provider
def test_options_that_a_provider_takes_are_sent_and_the_others_listed(server: Loopback, case: SearchCase) -> None:
    reply = answered(server, case, search=FULL)
    assert server.last.body["tools"] == [TOOLS[case.name]]
    assert server.last.body.get("max_tool_calls") == (3 if case.name == "openai" else None)
    listed = {name.removeprefix("search.") for name in reply.not_applied if name.startswith("search.")}
    assert listed == NOT_TAKEN[case.name]


def test_blocked_sites_are_sent_where_no_others_are_allowed(server: Loopback) -> None:
    blocked = SearchOptions(blocked_domains=("example.com",))
    answered(server, BY_NAME["anthropic"], search=blocked)
    assert server.last.body["tools"][0]["blocked_domains"] == ["example.com"]
    answered(server, BY_NAME["xai"], search=blocked)
    assert server.last.body["tools"][0]["filters"] == {"excluded_domains": ["example.com"]}
    many = SearchOptions(allowed_domains=tuple(f"s{number}.gov" for number in range(6)))
    reply = answered(server, BY_NAME["xai"], search=many)
    assert "search.allowed_domains" in reply.not_applied
    assert server.last.body["tools"] == [{"type": "web_search"}]


def test_nothing_is_stored_at_a_provider_and_what_is_needed_later_is_asked_for(server: Loopback) -> None:
    answered(server, BY_NAME["openai"], system="Be brief.")
    body = server.last.body
    assert (body["store"], body["instructions"], body["max_output_tokens"]) == (False, "Be brief.", 300)
    assert body["include"] == ["web_search_call.action.sources", "reasoning.encrypted_content"]
    assert not {"seed", "temperature", "messages", "max_completion_tokens"} & set(body)
    answered(server, BY_NAME["xai"], system="Be brief.")
    body = server.last.body
    assert body["input"][0] == {"role": "system", "content": "Be brief."}
    assert (body["store"], body["include"], body["temperature"]) == (False, ["reasoning.encrypted_content"], 0.0)


def test_models_before_claude_4_6_get_the_first_version_of_the_tool(server: Loopback) -> None:
    case = SearchCase(AdapterCase("anthropic", "anthropic", "claude-haiku-4-5"), anthropic_body, list, ())
    answered(server, case)
    tool = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}
    assert server.last.body["tools"] == [tool]
    assert server.last.body["temperature"] == 0.0


@each_case("case", BARE_CASES, ids=lambda case: case.name)
def test_a_model_without_a_search_of_its_own_is_asked_without_one(server: Loopback, case: AdapterCase) -> None:
    models = {"openai": "gpt-4.1-nano", "anthropic": "claude-3-opus-20240229"}
    old = AdapterCase(case.name, case.wire, models.get(case.name, case.model))
    reply = call(server, old, asked(old, search=FULL))
    assert "tools" not in server.last.body
    assert (reply.search, reply.not_applied[-1]) == (None, "search")
    assert not any(name.startswith("search.") for name in reply.not_applied)


EFFORTS: list[tuple[str, str, Effort, dict[str, Any] | None]] = [
    ("openai", "gpt-5.5-2026-04-23", "low", {"reasoning_effort": "low"}),
    ("openai", "gpt-5.5-2026-04-23", "minimal", None),
    ("openai", "gpt-5", "minimal", {"reasoning_effort": "minimal"}),
    ("openai", "gpt-5", "none", None),
    ("openai", "gpt-4.1-2025-04-14", "low", None),
    ("openai", "o3", "xhigh", None),
    ("xai", "grok-4.3", "none", {"reasoning_effort": "none"}),
    ("xai", "grok-4.5", "xhigh", None),
    ("xai", "grok-4.20-non-reasoning", "low", None),
    ("compatible", "qwen3:8b", "high", {"reasoning_effort": "high"}),
    ("anthropic", "claude-opus-5-5", "xhigh", {"output_config": {"effort": "xhigh"}}),
    ("anthropic", "claude-opus-5-5", "none", None),
    ("anthropic", "claude-sonnet-4-6", "high", {"output_config": {"effort": "high"}, "thinking": {"type": "adaptive"}}),
    ("anthropic", "claude-sonnet-4-6", "xhigh", None),
    ("anthropic", "claude-sonnet-4-5", "low", None),
    ("google", "gemini-3.8-flash", "medium", {"thinkingConfig": {"thinking_level": "MEDIUM"}}),
    ("google", "gemini-3.8-flash", "minimal", None),
    ("google", "gemini-2.5-flash", "none", {"thinkingConfig": {"thinking_budget": 0}}),
    ("google", "gemini-2.5-flash", "high", {"thinkingConfig": {"thinking_budget": 24_576}}),
    ("google", "gemini-2.5-pro", "none", None),
    ("google", "gemini-1.5-pro-002", "low", None),
]
WIRES = {"anthropic": "anthropic", "google": "google"}
EFFORT_KEYS = ("reasoning_effort", "reasoning", "output_config", "thinking", "thinkingConfig")


@each_case(("name", "model", "effort", "expected"), EFFORTS)
def test_an_effort_is_sent_as_the_family_takes_it_or_not_at_all(
    server: Loopback, name: str, model: str, effort: Effort, expected: dict[str, Any] | None
) -> None:
    case = AdapterCase(name, WIRES.get(name, "openai"), model)  # type: ignore[arg-type]
    reply = call(server, case, asked(case, effort=effort))
    body = server.last.body
    fields = {**body, **body.get("generationConfig", {})}
    assert {key: fields[key] for key in EFFORT_KEYS if key in fields} == (expected or {})
    assert ("effort" in reply.not_applied) == (expected is None)


@every_provider
def test_an_effort_goes_with_a_search(server: Loopback, case: SearchCase) -> None:
    reply = answered(server, case, effort="low")
    body = server.last.body
    found = {
        "openai": lambda: body["reasoning"] == {"effort": "low"},
        "xai": lambda: body["reasoning"] == {"effort": "low"},
        "anthropic": lambda: body["output_config"] == {"effort": "low"},
        "google": lambda: body["generationConfig"]["thinkingConfig"] == {"thinking_level": "LOW"},
    }
    assert found[case.name]()
    assert "effort" not in reply.not_applied


def test_gpt_5_does_not_search_at_minimal_effort_so_the_effort_is_not_sent(server: Loopback) -> None:
    case = SearchCase(AdapterCase("openai", "openai", "gpt-5"), openai_body, list, ())
    reply = answered(server, case, effort="minimal")
    assert "reasoning" not in server.last.body
    assert "effort" in reply.not_applied


@each_case(
    ("name", "model", "effort", "temperature", "sent"),
    [
        ("openai", "gpt-5.4-mini-2026-03-17", "none", 0.5, True),
        ("openai", "gpt-5.4-mini-2026-03-17", "low", 0.5, False),
        ("openai", "gpt-5.5-2026-04-23", "none", 0.5, False),
        ("anthropic", "claude-sonnet-4-6", None, 0.5, True),
        ("anthropic", "claude-sonnet-4-6", "low", 0.5, False),
        ("anthropic", "claude-sonnet-4-6", "low", 1.0, True),
        ("anthropic", "claude-sonnet-4-6", "xhigh", 0.5, True),
        ("google", "gemini-3.8-flash", "low", 0.5, True),
    ],
)
def test_a_temperature_is_sent_where_the_effort_leaves_room_for_it(
    server: Loopback, name: str, model: str, effort: Effort | None, temperature: float, sent: bool
) -> None:
    case = AdapterCase(name, WIRES.get(name, "openai"), model)  # type: ignore[arg-type]
    reply = call(server, case, asked(case, effort=effort, temperature=temperature))
    body = server.last.body
    assert body.get("temperature", body.get("generationConfig", {}).get("temperature")) == (
        temperature if sent else None
    )
    assert ("temperature" in reply.not_applied) is not sent


# Bare targets are as they were


GOLDEN_HASH = "89e07b79d6cb5496455198ad19dcd0e93612f284635845e7f6301fdb2280b7da"
GOLDEN_BODIES = {
    "openai": "ea75c1b40f99e39db1553ec6c6a00bb88aaa36cefc4ef9e2408eb67e72f68763",
    "xai": "489badaf1eff682f85fbad1feb9586ab3b6b7b6e94cafaa77d2bf36379a60240",
    "compatible": "9b8d4c4ef33ecc028f206b74f2e4eff8d7b789dfb9b77c4adb30a2bff5f50c3d",
    "anthropic": "da0988d18622d293deaf35083b473a7a1e1dadbb16993db56c17a06319e21bcf",
    "google": "557a708f17cb8d0c81654288af0a44e48a3f0b30e1441956118c4fd9c0264647",
}
"""Of 0.6, before targets had settings."""


@each_case("case", BARE_CASES, ids=lambda case: case.name)
def test_a_bare_target_is_asked_with_the_bytes_of_earlier_releases(server: Loopback, case: AdapterCase) -> None:
    turns = (Message("user", "Ist Part B frei? – 💊"), Message("assistant", "Nein."), Message("user", "Sure?"))
    call(server, case, asked(case, messages=turns))
    assert sha256(server.received[-1].body).hexdigest() == GOLDEN_BODIES[case.name]


def test_the_hash_of_a_bare_request_is_that_of_earlier_releases() -> None:
    turns = (Message("user", "Ist Part B frei? – 💊"), Message("assistant", "Nein."), Message("user", "Sure?"))
    request = ModelRequest(model="openai:gpt-4.1", messages=turns, temperature=0.0, max_tokens=300, seed=42)
    assert request.sha256() == GOLDEN_HASH
    assert recorded(request, ModelReply(outcome="ok", text="x", sent={}, received="x")).search is None
