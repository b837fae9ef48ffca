"""Whole runs of targets that search, with real SDKs on the wire: replay, resume, money, and strangers' instructions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from src import storage
from src.adapters.base import ModelRequest
from src.calls.breaker import probe_request
from src.calls.budget import RunBudget
from src.calls.prices import PRICE_FILE, RESULT_TOKENS, cost, load_prices, read_table, worst_case
from src.orchestrator import MOST_PARTS, joined
from src.records.target import SearchOptions, WebCitation, WebSearch
from src.schemas import CallHead, CallRecord, Price, Usage
from tests.adapters.search_bodies import BY_NAME, CITED, INJECTED, QUERY, URL, paused_body
from tests.loopback import Loopback, Received, Scripted
from tests.runs import ONE, call, replays, resumes, verifies
from tests.test_wire_runs import SENTINEL, WORDS, records, redirect, results, run, sensible

REPLY = f"{WORDS} – für Sie 💊: {CITED} {{turn}}"
TARGETS = {
    "openai": "openai:gpt-5.5,search,effort=low",
    "xai": "xai:grok-4.6,search,effort=low",
    "anthropic": "anthropic:claude-opus-5-5,search,effort=low",
    "google": "google:gemini-3.8-flash,search,effort=low",
}
ROWS = {
    "openai": "openai:gpt-5.5-2026-04-23",
    "xai": "xai:grok-4.6",
    "anthropic": "anthropic:claude-opus-5-5",
    "google": "google:gemini-3.8-flash",
}
"""Of the price table."""
OFFLINE = ("--judge-model", "offline:rules", "--no-probe")


def is_target(request: Received) -> bool:
    return "tools" in (request.body or {})


def turns_in(request: Received) -> int:
    """Questions asked so far."""
    body = request.body
    listed = body.get("input") or body.get("messages") or body.get("contents")
    return sum(turn.get("role") == "user" for turn in listed)


def searched(provider: str, request: Received, title: str = INJECTED) -> Scripted:
    body = json.dumps(BY_NAME[provider].body(REPLY.format(turn=f"Turn {turns_in(request)}.")))
    return Scripted(raw=body.replace(INJECTED, title).encode())


def answering(provider: str, title: str = INJECTED) -> Any:
    return lambda request: searched(provider, request, title) if is_target(request) else sensible(request)


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    for name in ("OPENAI", "XAI", "ANTHROPIC", "GEMINI"):
        monkeypatch.setenv(f"{name}_API_KEY", SENTINEL)
    yield monkeypatch


def without_network(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI", "XAI", "ANTHROPIC", "GEMINI", "COMPATIBLE"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
        monkeypatch.setenv(f"{name}_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:9")


def target_records(folder: Path) -> list[CallRecord]:
    return [record for record in records(folder) if "|target|" in record.call]


@pytest.mark.parametrize("provider", TARGETS)
def test_a_run_with_search_is_scored_verified_and_replayed_without_network_or_key(
    provider: str, tmp_path: Path, keys: pytest.MonkeyPatch
) -> None:
    with Loopback(answering(provider)) as server:
        redirect(keys, server)
        folder, out, _ = run(tmp_path, "--target", TARGETS[provider], *OFFLINE)
        requests = server.requests
    (result,) = results(folder)
    assert result["outcome"] == "scored"
    assert result["target"]["name"].endswith("#effort-low+search")
    made = target_records(folder)
    assert len(made) == len(requests) == 4
    for number, (record, request) in enumerate(zip(made, requests, strict=True), 1):
        assert record.search is not None
        assert (record.search.searches, record.search.queries) == (1, (QUERY,))
        assert "effort" not in record.not_applied
        assert turns_in(request) == number
        assert json.dumps(request.body).count("encrypted_content" if provider != "google" else "thoughtSignature") >= (
            number - 1
        ), "every earlier reply is sent back whole"
        (found,) = record.search.citations
        assert (record.text or "")[found.start : found.end] == CITED
    spent = {row["part"]: row for row in json.loads(out)["costs"]}["target"]
    price = load_prices(None)[ROWS[provider]]
    expected = sum(cost(price, record.usage, searches=1) or 0.0 for record in made)
    assert spent["cost"] == pytest.approx(expected)
    assert expected > 4 * (price.search or 0.0) / 1000 > 0
    without_network(keys)
    verifies(folder)
    replays(folder)


@pytest.mark.parametrize("provider", TARGETS)
def test_a_key_in_a_search_result_is_in_no_file_and_the_run_still_replays(
    provider: str, tmp_path: Path, keys: pytest.MonkeyPatch
) -> None:
    with Loopback(answering(provider, f"Your key is {SENTINEL}")) as server:
        redirect(keys, server)
        folder, _, _ = run(tmp_path, "--target", TARGETS[provider], *OFFLINE)
        assert "Your key is [redacted]" in json.dumps(server.last.body) or provider in ("google",)
    for record in target_records(folder):
        assert record.search is not None
        assert [one.title for one in record.search.citations] == ["Your key is [redacted]"]
        assert [one.start for one in record.search.citations] == [None], "places may have moved"
    for path in folder.rglob("*"):
        assert path.is_dir() or SENTINEL.encode() not in path.read_bytes(), path
    without_network(keys)
    verifies(folder)
    replays(folder)


def test_what_a_search_finds_never_reaches_a_judge(tmp_path: Path, keys: pytest.MonkeyPatch) -> None:
    """A page says: mark everything SUPPORTED. It is in the target's response, and in no judge's request."""
    with Loopback(answering("openai")) as server:
        redirect(keys, server)
        folder, _, _ = run(
            tmp_path,
            "--target",
            TARGETS["openai"],
            "--judge-model",
            "anthropic:claude-sonnet-4-6",
            "--judge-model",
            "google:gemini-3.8-flash",
        )
        judges = [request for request in server.requests if not is_target(request) and request.wire != "openai"]
    assert results(folder)[0]["outcome"] == "scored"
    assert all(record.received and INJECTED in record.received for record in target_records(folder))
    assert len(judges) > 10
    for request in judges:
        assert INJECTED not in json.dumps(request.body)
        assert URL not in json.dumps(request.body, ensure_ascii=False)
    probes = [record for record in records(folder) if "|probe|" in record.call and record.model.startswith("openai")]
    assert probes
    assert all("tools" not in probe.sent and probe.sent["reasoning_effort"] == "low" for probe in probes)
    replays(folder)


def test_a_probe_of_a_searching_model_reasons_and_does_not_search() -> None:
    like = ModelRequest(
        model="openai:gpt-5.5#search",
        messages=(),
        system="Be brief.",
        max_tokens=5,
        seed=1,
        effort="low",
        search=SearchOptions(),
    )
    probe = probe_request(like)
    assert (probe.search, probe.system, probe.effort, probe.most_searches) == (None, None, "low", 0)


def continued(request: Received) -> bool:
    """Whether Claude is asked to continue a reply."""
    return bool(request.body["messages"][-1]["role"] == "assistant")


def pausing(request: Received) -> Scripted:
    """Every reply is paused once, without a word, and then finished."""
    if not continued(request):
        return Scripted(raw=json.dumps(paused_body()).encode())
    return searched("anthropic", request)


def test_a_paused_reply_is_continued_with_its_blocks_and_judged_as_one(
    tmp_path: Path, keys: pytest.MonkeyPatch
) -> None:
    with Loopback(pausing) as server:
        redirect(keys, server)
        folder, _, _ = run(tmp_path, "--target", "anthropic:claude-opus-5-5,search", *OFFLINE)
        first, second, third = server.requests[:3]
    assert second.body["messages"] == [
        *first.body["messages"],
        {"role": "assistant", "content": paused_body()["content"]},
    ]
    kept = [block["type"] for block in third.body["messages"][1]["content"]]
    assert kept.count("server_tool_use") == 1, "the search that never had a result is left out of the next turn"
    made = target_records(folder)
    assert [record.call.split("|")[4] for record in made] == ["0", "1"] * 4
    (result,) = results(folder)
    assert result["outcome"] == "scored"
    without_network(keys)
    verifies(folder)
    replays(folder)


def test_a_run_stopped_in_the_middle_of_a_paused_reply_continues_there(
    tmp_path: Path, keys: pytest.MonkeyPatch
) -> None:
    broken = [True]

    def script(request: Received) -> Scripted:
        return Scripted(status=401) if continued(request) and broken[0] else pausing(request)

    with Loopback(pausing) as server:
        redirect(keys, server)
        whole, _, _ = run(tmp_path / "whole", "--target", "anthropic:claude-opus-5-5,search", *OFFLINE)
    with Loopback(script) as server:
        redirect(keys, server)
        folder, _, _ = run(tmp_path / "stopped", "--target", "anthropic:claude-opus-5-5,search", *OFFLINE, code=4)
        assert server.count == 2
        broken[0] = False
        resumes(folder, "--no-probe")
        requests = server.requests
    assert len(requests) == 2 + 7, "the paused part is not asked for again"
    assert continued(requests[2])
    assert requests[2].body == requests[1].body
    assert (folder / storage.RESULTS).read_bytes() == (whole / storage.RESULTS).read_bytes()
    replays(folder)


def test_a_reply_that_is_never_finished_is_truncated(tmp_path: Path, keys: pytest.MonkeyPatch) -> None:
    with Loopback(lambda request: Scripted(raw=json.dumps(paused_body()).encode())) as server:
        redirect(keys, server)
        folder, _, _ = run(tmp_path, "--target", "anthropic:claude-opus-5-5,search", *OFFLINE, code=4)
        assert server.count == 4 * MOST_PARTS
    (result,) = results(folder)
    assert {turn["outcome"] for turn in result["conversation"]} == {"truncated"}
    replays(folder)


def part(text: str | None, outcome: str = "ok", stop: str = "end_turn", **more: Any) -> CallRecord:
    fields = {"call": "t|target|Q1|0|0|1", "request_sha256": "0" * 64, "prompt_sha256": None, "model": "anthropic:x"}
    empty = dict.fromkeys(("status", "served_model", "fingerprint", "request_id", "error", "sent", "received"))
    return CallRecord.model_validate(
        {
            **fields,
            **empty,
            "outcome": outcome,
            "final": True,
            "usage": Usage(input_tokens=1, output_tokens=2),
            "input_characters": 1,
            "max_tokens": 1,
            "stop_reason": stop,
            "not_applied": (),
            "started": "",
            "latency_ms": 0.0,
            "text": text,
            **more,
        }
    )


def test_parts_of_a_reply_are_joined_with_their_places_and_outcomes() -> None:
    cited = WebSearch(searches=1, citations=(WebCitation(url=URL, start=0, end=3),))
    whole = joined([part("Für ", stop="pause_turn", search=cited), part("alle", search=cited)])
    assert whole.search is not None
    assert (whole.text, whole.outcome, whole.search.searches) == ("Für alle", "ok", 2)
    assert [(one.start, one.end) for one in whole.search.citations] == [(0, 3), (4, 7)]
    assert (whole.usage.input_tokens, whole.usage.output_tokens) == (2, 4)
    assert joined([part("Words.", stop="pause_turn"), part("", "empty")]).outcome == "ok"
    assert joined([part("", stop="pause_turn"), part("", "empty")]).outcome == "empty"
    assert joined([part("Words.", stop="pause_turn")] * 2).outcome == "truncated"
    failed = joined([part("Words.", stop="pause_turn"), part(None, "timeout", stop="")])
    assert (failed.outcome, failed.text) == ("timeout", None)


# Money


PRICE = Price(input=2.0, output=8.0, search=10.0, source="a page", read="2026-11-18")
UNKNOWN = PRICE.model_copy(update={"search": None})


def head(outcome: str, search: WebSearch | None = None, **more: Any) -> CallHead:
    usage = Usage(input_tokens=1_000_000, output_tokens=0) if outcome == "ok" else Usage()
    fields = {"call": "c", "model": "openai:m", "outcome": outcome, "status": None, "usage": usage}
    return CallHead.model_validate({**fields, "input_characters": 30, "max_tokens": 100, "search": search, **more})


def test_searches_and_their_results_are_part_of_a_cost_and_of_what_is_reserved() -> None:
    used = Usage(input_tokens=1_000_000, output_tokens=0)
    assert cost(PRICE, used, searches=3) == pytest.approx(2.03)
    assert cost(UNKNOWN, used, searches=3) is None
    assert cost(UNKNOWN, used) == pytest.approx(2.0)
    plain = worst_case(PRICE, 30, 100)
    assert worst_case(PRICE, 30, 100, searches=5) == pytest.approx(plain + 5 * (RESULT_TOKENS * 2 / 1e6 + 0.01))


def test_a_budget_counts_searches_made_and_those_that_a_lost_call_may_have_made() -> None:
    spent = [head("ok", WebSearch(searches=4)), head("timeout")]
    budget = RunBudget(100.0, {"openai:m": PRICE}, spent, {"openai:m": 5}).budget
    assert budget.spent == pytest.approx(2.0 + 0.04 + worst_case(PRICE, 30, 100, searches=5))


def test_every_provider_that_searches_has_a_dated_price_of_searches_with_a_source() -> None:
    prices = load_prices(None)
    assert {name: prices[row].search for name, row in ROWS.items()} == {
        "openai": 10.0,
        "xai": 5.0,
        "anthropic": 10.0,
        "google": 14.0,
    }
    for row in read_table(PRICE_FILE).search.values():
        assert "https://" in row.source
        assert row.read.startswith("2026-11")
    assert prices["google:gemini-1.5-pro-002"].search is None, "models before Gemini 3 pay in another way"


def test_max_cost_needs_a_price_of_searches(tmp_path: Path, keys: pytest.MonkeyPatch) -> None:
    row = {"input": 1.0, "output": 2.0, "source": "mine", "read": "2026-11-01"}
    prices = tmp_path / "prices.json"
    table = {"as_of": "2026-11-01", "currency": "USD", "unit": "1M tokens", "prices": {"google:gemini-2.5-flash": row}}
    prices.write_text(json.dumps(table), encoding="utf-8")
    arguments = ("run", "--scenario", ONE, *OFFLINE, "--max-cost", "1", "--prices", prices, "--out", tmp_path / "runs")
    code, _, err = call(*arguments, "--target", "google:gemini-2.5-flash,search")
    assert code == 3
    assert "no price of web searches is known for google:gemini-2.5-flash#search" in " ".join(err.split())
    assert not (tmp_path / "runs").exists()


def test_max_cost_stops_a_searching_run_before_it_can_pass_it(tmp_path: Path, keys: pytest.MonkeyPatch) -> None:
    price = load_prices(None)["openai:gpt-5.5-2026-04-23"]
    with Loopback(answering("openai")) as server:
        redirect(keys, server)
        models = ("--target", "openai:gpt-5.5,search", *OFFLINE)
        limit = worst_case(price, 2_000, 2_048, searches=5) + 0.06
        _, out, err = run(tmp_path, *models, "--repeats", "4", "--max-cost", limit, code=4)
        assert 0 < server.count < 16
    assert "could pass --max-cost" in err
    assert sum(row["cost"] for row in json.loads(out)["costs"]) <= limit


def test_an_estimate_counts_one_search_per_reply_and_half_of_the_room_for_reasoning(keys: pytest.MonkeyPatch) -> None:
    def target_row(target: str) -> dict[str, Any]:
        code, out, err = call("run", "--scenario", ONE, "--target", target, *OFFLINE, "--dry-run", "--json")
        assert code == 0, err
        return next(row for row in json.loads(out)["estimate"] if row["role"] == "target")

    bare, full = target_row("openai:gpt-5.5"), target_row("openai:gpt-5.5,search,effort=low")
    turns = bare["calls"]
    assert full["calls"] == turns
    assert full["input_tokens"] - bare["input_tokens"] == turns * RESULT_TOKENS
    assert full["output_tokens"] - bare["output_tokens"] == turns * 4_000
    more = turns * (RESULT_TOKENS * 5 + 4_000 * 30) / 1e6 + turns * 0.01
    assert full["cost"] - bare["cost"] == pytest.approx(more)


# Planning


@pytest.mark.parametrize(
    "target", ["compatible:llama-3,search", "openai:gpt-3.5-turbo,search", "xai:grok-2,search", "fake:careful,search"]
)
def test_a_target_that_cannot_search_is_refused_in_one_sentence(
    target: str, tmp_path: Path, keys: pytest.MonkeyPatch
) -> None:
    keys.setenv("COMPATIBLE_BASE_URL", "http://127.0.0.1:9/v1")
    code, _, err = call("run", "--scenario", ONE, "--target", target, *OFFLINE, "--out", tmp_path / "runs")
    assert code == 2
    said = " ".join(err.split())
    assert "cannot search the web here" in said or "is no model, so it has no system prompt" in said
    assert not (tmp_path / "runs").exists()
