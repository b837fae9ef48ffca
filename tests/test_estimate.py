"""The estimate of a plan: calls, tokens, what of them can be cached, and cost."""

from __future__ import annotations

from math import ceil
from typing import Any

import pytest

import src as me
from src.adapters.models import resolve
from src.calls.estimate import EstimateRow, estimate
from src.calls.prices import load_prices
from src.planning.trials import planned_calls
from src.schemas import CallParameters, RunPlan
from tests.cases import each_case
from tests.runs import ONE


@pytest.fixture(scope="module")
def plan() -> RunPlan:
    made = me.plan(scenarios=[ONE], targets=["fake:careful"], repeats=3)
    return made.model_copy(
        update={
            "targets": ("openai:gpt-4.1", "xai:unpriced"),
            "verifiers": ("anthropic:claude-sonnet-4-6", "google:gemini-3.8-flash", "anthropic:claude-sonnet-4-6"),
            "extractor": "anthropic:claude-sonnet-4-6",
            "scorer": "anthropic:claude-sonnet-4-6",
            "adjudicator": "google:gemini-3.8-flash",
            "isolation": "reply",
            "audit_sample": 0.0,
        }
    )


def rows_of(plan: RunPlan) -> dict[tuple[str, str, str | None], EstimateRow]:
    rows = estimate(plan, load_prices(None), api_id_of=resolve)
    found: dict[tuple[str, str, str | None], EstimateRow] = {(row.role, row.model, row.target): row for row in rows}
    assert len(found) == len(rows)
    return found


def turns_of(plan: RunPlan) -> int:
    return len(plan.scenarios[0].scenario.scripted_turns)


def key_of(plan: RunPlan) -> int:
    """Tokens of the key: its words, and 15 more for each entry."""
    key = plan.scenarios[0].scenario.answer_key
    stated = [fact.statement for fact in key.canonical_facts] + list(key.disallowed_claims)
    return sum(ceil(len(text) / 4) + 15 for text in stated)


def test_the_estimate_has_as_many_calls_as_the_plan_and_those_of_marked_replies(plan: RunPlan) -> None:
    calls: dict[str, int] = {}
    for (role, _, _), row in rows_of(plan).items():
        calls[role] = calls.get(role, 0) + row.calls
    expected = planned_calls(plan)
    per_target = turns_of(plan) * 3
    assert calls["target"] == expected["target"]
    assert calls["extractor"] == calls["scorer"] == 2 * ceil(1.05 * per_target)
    assert expected["extractor"] == expected["scorer"] == 2 * per_target
    one_way = 1 + 0.05 * 16  # a marked reply is verified a second time, claim by claim
    assert calls["verifier"] == 2 * (ceil(round(2 * one_way * per_target, 6)) + ceil(round(one_way * per_target, 6)))
    assert calls["adjudicator"] == 2 * ceil(round((1 + 0.05 * 1.6) * per_target, 6))  # 1.6 tied claims a reply
    assert "questioner" not in calls


def test_the_targets_context_grows_with_its_turns(plan: RunPlan) -> None:
    row = rows_of(plan)["target", "openai:gpt-4.1", "openai:gpt-4.1"]
    questions = [ceil(len(turn.user_message) / 4) for turn in plan.scenarios[0].scenario.scripted_turns]
    sent = sum(sum(questions[: n + 1]) + 400 * n for n in range(len(questions)))
    assert (row.input_tokens, row.output_tokens) == (3 * sent, 3 * 400 * len(questions))
    assert row.cost == pytest.approx((row.input_tokens * 2 + row.output_tokens * 8) / 1e6)


def test_judges_are_counted_by_target_and_model(plan: RunPlan) -> None:
    rows, turns = rows_of(plan), turns_of(plan)
    claude = rows["verifier", "anthropic:claude-sonnet-4-6", "xai:unpriced"]
    gemini = rows["verifier", "google:gemini-3.8-flash", "xai:unpriced"]
    assert claude.input_tokens == pytest.approx(2 * gemini.input_tokens, abs=1)
    assert gemini.output_tokens == round(1.05 * 3 * turns * 40 * 16)
    asked = sum(ceil(len(turn.user_message) / 4) for turn in plan.scenarios[0].scenario.scripted_turns)
    start = ceil(len(plan.prompts["verifier"].text) / 4) + key_of(plan)
    calls = 1 + 0.05 * 16
    assert gemini.input_tokens == ceil(round(3 * (calls * (turns * start + asked) + turns * 1.05 * 580), 6))
    extractor = rows["extractor", "anthropic:claude-sonnet-4-6", "openai:gpt-4.1"]
    assert extractor.output_tokens == ceil(round(1.05 * 3 * turns * 580, 6))
    prompt = ceil(len(plan.prompts["extractor"].text) / 4)
    assert extractor.input_tokens == ceil(round(1.05 * 3 * (turns * (prompt + 400) + asked), 6))
    adjudicator = rows["adjudicator", "google:gemini-3.8-flash", "openai:gpt-4.1"]
    assert adjudicator.output_tokens == pytest.approx(gemini.output_tokens / 10, abs=1)
    scorer = rows["scorer", "anthropic:claude-sonnet-4-6", "openai:gpt-4.1"]
    assert scorer.output_tokens == ceil(round(1.05 * 3 * turns * 100, 6))


def verifier_calls(plan: RunPlan, **changes: Any) -> float:
    """Calls of one verifier per reply."""
    rows = rows_of(plan.model_copy(update=changes))
    return rows["verifier", "google:gemini-3.8-flash", "openai:gpt-4.1"].calls / (3 * turns_of(plan))


def test_isolation_decides_how_many_calls_a_verifier_gets(plan: RunPlan) -> None:
    assert verifier_calls(plan, isolation="reply") == pytest.approx(1 + 0.05 * 16, abs=0.1)
    assert verifier_calls(plan, isolation="claim") == pytest.approx(1.05 * 16, abs=0.1)
    assert verifier_calls(plan, isolation="flagged") == pytest.approx(0.95 * 2 + 0.1 * 16, abs=0.1)
    audited = verifier_calls(plan, isolation="flagged", audit_sample=0.1)
    assert audited == pytest.approx(0.95 * 2 + (0.095 + 0.1) * 16, abs=0.1)
    again = verifier_calls(plan, isolation="claim", judge_repeats=2, judge_sample=0.5)
    assert again == pytest.approx(2 * 1.05 * 16, abs=0.1)


def test_without_an_adjudicator_none_is_counted(plan: RunPlan) -> None:
    rows = rows_of(plan.model_copy(update={"adjudicator": None}))
    assert {role for role, _, _ in rows} == {"target", "extractor", "verifier", "scorer"}


def test_the_start_of_verifier_calls_is_cached_by_the_provider_once_per_scenario(plan: RunPlan) -> None:
    """The first call of all targets writes it; the others read it."""
    judge = "openai:gpt-4.1-mini"
    both = plan.model_copy(update={"verifiers": (judge, judge), "isolation": "claim"})
    rows = rows_of(both)
    start = ceil(len(plan.prompts["verifier"].text) / 4) + key_of(plan)
    assert start >= 1_024, "long enough for OpenAI's cache"
    first, second = (rows["verifier", judge, target] for target in plan.targets)
    calls = 2 * 3 * turns_of(plan) * 1.05 * 16
    assert second.cached_tokens == ceil(round(calls * start, 6))
    assert first.cached_tokens == ceil(round((calls - 1) * start, 6))
    assert first.input_tokens == second.input_tokens
    plain = second.input_tokens - second.cached_tokens
    assert second.cost == pytest.approx((plain * 0.4 + second.cached_tokens * 0.1 + second.output_tokens * 1.6) / 1e6)
    assert all(row.cached_tokens == 0 for (role, _, _), row in rows.items() if role == "target")


@each_case(("model", "cached"), [("claude-opus-5", True), ("claude-opus-4-6", False)])
def test_a_start_that_is_too_short_for_the_models_cache_is_not_assumed_to_be_cached(
    plan: RunPlan, model: str, cached: bool
) -> None:
    judge = f"anthropic:{model}"
    start = ceil(len(plan.prompts["verifier"].text) / 4) + key_of(plan)
    assert 512 <= start < 4_096
    row = rows_of(plan.model_copy(update={"verifiers": (judge, judge)}))["verifier", judge, plan.targets[0]]
    assert (row.cached_tokens > 0) == cached
    full = (row.input_tokens * 5 + row.output_tokens * 25) / 1e6
    assert row.cost is not None and (row.cost < full if cached else row.cost == pytest.approx(full))


def test_what_the_first_call_writes_to_the_cache_has_its_price(plan: RunPlan) -> None:
    judge = "anthropic:claude-opus-5"
    one = plan.model_copy(update={"verifiers": (judge, judge), "repeats": 1, "targets": plan.targets[:1]})
    row = rows_of(one)["verifier", judge, plan.targets[0]]
    start = ceil(len(plan.prompts["verifier"].text) / 4) + key_of(plan)
    plain = row.input_tokens - row.cached_tokens - start
    spent = plain * 5 + row.cached_tokens * 0.5 + start * 6.25 + row.output_tokens * 25
    assert row.cost == pytest.approx(spent / 1e6)


def test_an_unknown_price_gives_an_unknown_cost_and_fake_models_cost_nothing(plan: RunPlan) -> None:
    rows = rows_of(plan)
    assert rows["target", "xai:unpriced", "xai:unpriced"].cost is None
    assert all(row.cost is not None for (_, model, _), row in rows.items() if model != "xai:unpriced")
    free = me.plan(scenarios=[ONE], targets=["fake:careful"])
    assert {row.cost for row in rows_of(free).values()} == {0.0}


def test_a_low_token_limit_lowers_the_estimated_reply_and_ties(plan: RunPlan) -> None:
    short = plan.model_copy(update={"target_parameters": CallParameters(temperature=0.0, max_tokens=50)})
    rows = rows_of(short)
    turns = len(plan.scenarios[0].scenario.scripted_turns)
    assert rows["target", "openai:gpt-4.1", "openai:gpt-4.1"].output_tokens == 3 * turns * 50
    assert rows["adjudicator", "google:gemini-3.8-flash", "openai:gpt-4.1"].calls == ceil(
        round(3 * turns * 1.05 * 0.2, 6)
    )


def test_the_questioner_is_counted_once_for_all_targets(plan: RunPlan) -> None:
    planned = plan.scenarios[0]
    knobs = planned.scenario.variation_knobs.model_copy(update={"paraphrase": True})
    scenario = planned.scenario.model_copy(update={"variation_knobs": knobs})
    reworded = plan.model_copy(
        update={"questioner": "xai:grok-4.6", "scenarios": (planned.model_copy(update={"scenario": scenario}),)}
    )
    row = rows_of(reworded)["questioner", "xai:grok-4.6", None]
    assert row.calls == planned_calls(reworded)["questioner"] == 3
    turns = sum(ceil(len(turn.user_message) / 4) for turn in scenario.scripted_turns)
    assert row.input_tokens == 3 * (ceil(len(plan.prompts["questioner"].text) / 4) + turns)
    assert row.output_tokens == ceil(round(3 * 1.2 * turns, 6))
