"""`judge_max_tokens`: the longest answer of judges, in a run and in a re-judging."""

from __future__ import annotations

from typing import Any

import src as me
from src.planning.plan import replan
from src.planning.study_file import make_judge_options
from src.schemas import CallParameters, RunPlan
from tests.cases import each_case
from tests.runs import ONE

JUDGE = "offline:rules"


def plan(**study: Any) -> RunPlan:
    return me.plan(scenarios=[ONE], targets=["fake:careful"], **study)


def again(before: RunPlan, *, keep_claims: bool, **judging: Any) -> RunPlan:
    return replan(before, make_judge_options(judging), keep_claims=keep_claims)


def longest(made: RunPlan) -> int:
    return made.parameters_of(JUDGE).max_tokens


def test_judges_may_answer_as_long_as_the_study_says() -> None:
    assert longest(plan()) == 16_000
    made = plan(judge_max_tokens=900)
    assert longest(made) == 900
    assert made.judge_parameters == CallParameters(temperature=0.0, max_tokens=900)
    assert made.parameters_of("fake:careful").max_tokens == 2_048, "targets have a limit of their own"


def test_a_judges_own_limit_wins() -> None:
    assert longest(plan(judge_max_tokens=900, judges=[{"model": JUDGE, "max_tokens": 500}])) == 500
    assert longest(plan(judge_max_tokens=900, judges=[{"model": JUDGE, "max_tokens": 16_000}])) == 16_000


def test_a_re_judging_has_its_own_limit() -> None:
    before = plan(judge_max_tokens=900)
    assert longest(again(before, keep_claims=False)) == 16_000
    assert longest(again(before, keep_claims=False, judge_max_tokens=700)) == 700
    assert longest(again(plan(judges=[{"model": JUDGE, "max_tokens": 500}]), keep_claims=False)) == 500


@each_case("own", [{}, {"judges": [{"model": JUDGE, "max_tokens": 600}]}])
def test_an_extractor_whose_calls_are_reused_keeps_its_limit(own: dict[str, Any]) -> None:
    """A request with another limit is another request, which the earlier run does not have."""
    before = plan(judge_max_tokens=900)
    assert before.extractor == JUDGE
    after = again(before, keep_claims=True, judge_max_tokens=700, **own)
    assert after.parameters_of(after.extractor) == before.parameters_of(before.extractor)
    assert after.judge_parameters.max_tokens == 700
