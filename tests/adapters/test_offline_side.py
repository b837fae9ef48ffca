"""The adapters that need no network: fake targets and the rule-based judge follow the same contract as the others."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from src.adapters.base import CallFailure, Message, ModelReply, ModelRequest
from src.adapters.local_adapters import NAMES, FakeAdapter, OfflineAdapter
from src.agents.ask import parse
from src.errors import InputError
from src.schemas import ExtractorInput, ExtractorReply, PlannedTurn, QuestionerOutput, Scenario
from src.text.fence import wrap
from tests.cases import each_case
from tests.runs import ROOT, SCENARIOS

REPLY = "Part B has a monthly premium. You can call 1-800-MEDICARE."


def asked(model: str, *, hint: str = "", content: str = "What is Part B?", schema: type | None = None) -> ModelRequest:
    return ModelRequest(
        model=model,
        messages=(Message("user", content),),
        max_tokens=100,
        seed=1,
        hint=hint,
        response_schema=schema.model_json_schema() if schema else None,  # type: ignore[attr-defined]
    )


def complete(adapter: FakeAdapter | OfflineAdapter, request: ModelRequest) -> ModelReply:
    async def go() -> ModelReply:
        try:
            return await adapter.complete(request, timeout_s=1)
        finally:
            await adapter.aclose()

    return asyncio.run(go())


@each_case("path", sorted(SCENARIOS.glob("*.json")), ids=lambda path: path.stem)
@each_case("name", NAMES)
def test_every_fake_answers_every_turn_of_every_scenario(name: str, path: Path) -> None:
    scenario = Scenario.model_validate_json(path.read_bytes())
    for turn in scenario.scripted_turns:
        reply = complete(FakeAdapter(), asked(f"fake:{name}", hint=f"{scenario.scenario_id}/{turn.turn_id}"))
        assert reply.outcome == "ok"
        assert reply.text
        assert reply.served_model == name
        assert reply.usage.output_tokens
        assert json.loads(reply.received) == {"text": reply.text}
        assert reply.sent["messages"][0]["content"] == "What is Part B?"


@each_case("hint", ["", "scenario_001/Q99", "nowhere/Q1", "../../etc/passwd/Q1"])
def test_a_turn_without_a_canned_reply_is_a_permanent_failure(hint: str) -> None:
    with pytest.raises(CallFailure) as failure:
        complete(FakeAdapter(), asked("fake:careful", hint=hint))
    assert failure.value.outcome == "permanent"


def test_a_blank_canned_reply_is_empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"replies": {"careful": {"Q1": "  "}}}', encoding="utf-8")
    monkeypatch.setattr("src.adapters.local_adapters.data_folder", lambda kind: tmp_path)
    assert complete(FakeAdapter(), asked("fake:careful", hint="s/Q1")).outcome == "empty"


def test_the_rule_based_judge_reads_the_same_request_as_a_model() -> None:
    wrapped = wrap(ExtractorInput(plan_year=2026, question="?", reply=REPLY), 1)
    reply = complete(OfflineAdapter(), asked("offline:rules", content=wrapped.text, schema=ExtractorReply))
    extracted = parse(reply.text, ExtractorReply, wrapped.canary)
    assert extracted.claims[0].quotes == ("Part B has a monthly premium.",)
    assert reply.served_model == "rules"


def test_rewording_keeps_the_turns() -> None:
    turns = QuestionerOutput(turns=(PlannedTurn(turn_id="Q1", user_message="What’s Part B?"),))
    wrapped = wrap(turns, 1)
    request = asked("offline:rephrase", content=wrapped.text, schema=QuestionerOutput)
    reworded = parse(complete(OfflineAdapter(), request).text, QuestionerOutput, wrapped.canary)
    assert [turn.turn_id for turn in reworded.turns] == ["Q1"]


UNFENCED = ExtractorInput(plan_year=2026, question="?", reply=REPLY).model_dump_json()


@each_case(
    ("content", "schema"),
    [
        ("{}", ExtractorReply),
        ("words", ExtractorReply),
        ("{}", None),
        (UNFENCED, ExtractorReply),
        ("[]", ExtractorReply),
    ],
)
def test_anything_but_an_agents_input_is_a_permanent_failure(content: str, schema: type | None) -> None:
    with pytest.raises(CallFailure, match="answers only the inputs of this program's agents") as failure:
        complete(OfflineAdapter(), asked("offline:rules", content=content, schema=schema))
    assert failure.value.outcome == "permanent"


def test_an_unknown_fake_or_judge_is_refused_with_the_known_names() -> None:
    with pytest.raises(InputError, match=r"fake:other does not exist\. Use one of fake:careful, fake:wrong"):
        FakeAdapter().check("other")
    with pytest.raises(InputError, match=r"offline:other does not exist\. Use offline:rules"):
        OfflineAdapter().check("other")


def test_canned_replies_say_that_no_model_wrote_them() -> None:
    for path in (ROOT / "fakes").glob("*.json"):
        assert "Not the words of any model" in json.loads(path.read_text(encoding="utf-8"))["note"]
