"""A frozen plan: written once, read back whole, silent about itself, and outspoken about every change."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from src.errors import InputError, IntegrityError
from src.planning.plan import make_plan
from src.planning.preregistration import deviations, freeze, frozen_sha256, read_frozen, registration
from src.planning.study_file import make_study
from src.planning.trials import trials
from src.records.preregistration import Preregistration
from src.records.study import RegistrationText
from src.records.target import TargetSettings
from src.runner.new_run import write_preregistration
from src.schemas import CallParameters, CitationChecks, RunPlan, UsedWording
from src.storage import file_sha256

from .cases import each_case
from .helpers import HASH, fact_json, plan, scenario, scenario_json
from .runs import ONE, SCENARIOS

OTHER = "1" * 64
WORDS = RegistrationText(primary_outcome="accuracy", tests=("A against B, paired by scenario",), notes="A note.")


def frozen_of(made: RunPlan) -> Preregistration:
    return freeze(made, WORDS)


def planned(scenario_path: str, **fields: Any) -> RunPlan:
    return make_plan(make_study({"scenarios": [scenario_path], "targets": ["fake:careful"], **fields}))


def changed(made: RunPlan, **fields: Any) -> RunPlan:
    return made.model_copy(update=fields)


def with_scenario(**fields: Any) -> RunPlan:
    return plan(scenarios=[scenario(**fields)])


def with_planned(made: RunPlan, **fields: Any) -> RunPlan:
    return changed(made, scenarios=tuple(one.model_copy(update=fields) for one in made.scenarios))


def key(**changes: Any) -> dict[str, Any]:
    return scenario_json()["answer_key"] | changes  # type: ignore[no-any-return]


def test_an_unchanged_plan_has_no_deviations() -> None:
    assert deviations(frozen_of(plan()), plan()) == []


def test_a_plan_of_the_bank_frozen_and_made_again_is_the_same(tmp_path: Path) -> None:
    made = planned(str(SCENARIOS), allow_expired=True)
    frozen = frozen_of(made)
    write_preregistration(tmp_path / "plan.json", frozen)
    assert read_frozen(tmp_path / "plan.json") == frozen
    assert deviations(frozen, planned(str(SCENARIOS), allow_expired=True)) == []
    assert frozen.trials == len(trials(made))
    assert len(frozen.scenarios) == len(made.scenarios)


def test_where_files_lie_is_no_deviation(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen = frozen_of(planned(ONE))
    monkeypatch.chdir(SCENARIOS)
    assert deviations(frozen, planned("scenario_001.json")) == []


OWN = {"fake:careful": CallParameters(temperature=0.7, max_tokens=100)}
CASES: list[tuple[Callable[[RunPlan], RunPlan], list[str]]] = [
    (
        lambda p: plan(targets=("fake:careful", "fake:wrong")),
        ["number of trials: 2, not 1", "targets: fake:wrong was added"],
    ),
    (lambda p: changed(p, targets=("fake:wrong",), api_ids={**p.api_ids, "fake:wrong": "w"}),
     ["targets: fake:careful was removed", "targets: fake:wrong was added"]),
    (lambda p: changed(p, verifiers=("offline:rules",) * 3), ["verifiers: offline:rules is listed 3 times, not 2"]),
    (lambda p: changed(p, seed=7), ["seed: 7, not 42"]),
    (lambda p: changed(p, repeats=3), ["repeats: 3, not 1", "number of trials: 3, not 1"]),
    (lambda p: changed(p, judge_repeats=2), ["judge repeats: 2, not 0"]),
    (lambda p: changed(p, judge_sample=0.5), ["share of trials judged again: 0.5, not 0.25"]),
    (lambda p: changed(p, plan_year=2025), ["plan year: 2025, not 2026"]),
    (lambda p: changed(p, extractor="offline:other"), ["extractor: offline:other, not offline:rules"]),
    (lambda p: changed(p, adjudicator="xai:grok"), ["adjudicator: xai:grok, not offline:rules"]),
    (lambda p: changed(p, adjudicator=None), ["adjudicator: none, not offline:rules"]),
    (lambda p: changed(p, isolation="claim"), ["isolation: claim, not reply"]),
    (lambda p: changed(p, audit_sample=0.1), ["plan: a detail changed that a pre-registration does not list separately"]),
    (lambda p: changed(p, questioner="xai:grok"), ["questioner: xai:grok, not none"]),
    (lambda p: changed(p, api_ids={**p.api_ids, "fake:careful": "careful-2"}),
     ["fake:careful: called as careful-2, not as careful"]),
    (lambda p: changed(p, target_parameters=p.target_parameters.model_copy(update={"temperature": None})),
     ["target: temperature None, not 0.0"]),
    (lambda p: changed(p, judge_parameters=p.judge_parameters.model_copy(update={"max_tokens": 5})),
     ["judges: max_tokens 5, not 100"]),
    (lambda p: changed(p, model_parameters=OWN), ["fake:careful: parameters of its own were added"]),
    (lambda p: changed(p, policy=p.policy.model_copy(update={"max_attempts": 9})), ["calls: max_attempts 9, not 5"]),
    (lambda p: changed(p, references={"facts/2026.json": HASH}), ["file facts/2026.json was added"]),
    (lambda p: changed(p, wording=UsedWording(title="The study's", sha256=OTHER, turns={})),
     ["wording: the file with sha256 1111111111111111, not our own"]),
    (lambda p: changed(p, rubrics={"v1": p.rubrics["v1"].model_copy(update={"sha256": OTHER})}),
     ["rubric v1: its content changed"]),
    (lambda p: changed(p, expired=("s1: ended in 2025",)), ["expired keys: s1: ended in 2025 was added"]),
    (lambda p: changed(p, prompts={**p.prompts, "verifier": p.prompts["verifier"].model_copy(update={"text": "x"})}),
     ["prompt verifier: its text changed"]),
    (lambda p: changed(p, prompts={**p.prompts, "scorer": p.prompts["scorer"].model_copy(update={"sha256": OTHER})}),
     ["prompt scorer: its file changed, but not the text that is sent"]),
    (lambda p: with_planned(p, sha256=OTHER), ["scenario s1: its file changed, but neither its questions nor its key"]),
    (lambda p: with_scenario(answer_key=key(canonical_facts=[fact_json("F1", "Otherwise."), key()["canonical_facts"][1]])),
     ["scenario s1: its key changed (fact F1)"]),
    (lambda p: with_scenario(answer_key=key(required_points=["F1"])), ["scenario s1: its key changed (its points)"]),
    (lambda p: with_scenario(answer_key=key(disallowed_claims=[])),
     ["scenario s1: its key changed (its disallowed claims)"]),
    (lambda p: with_scenario(scripted_turns=[{"turn_id": "Q1", "user_message": "And Part D?"}]),
     ["scenario s1: its questions changed (turn Q1)"]),
    (lambda p: with_scenario(persona={"name": "Bo Inventado"}),
     ["scenario s1: something other than its key and its words changed (persona, knobs, order or rubric)"]),
    (lambda p: p.model_copy(update={"target_settings": {p.targets[0]: TargetSettings(reasoning_effort="low")}}),
     [f"{plan().targets[0]}: its reasoning effort changed"]),
    (lambda p: p.model_copy(update={"citation_checks": CitationChecks(sha256=HASH)}),
     ["the pages against which citations are checked changed"]),
    (lambda p: plan(scenarios=[scenario(), scenario(scenario_id="cobra")]),
     ["scenarios: cobra was added", "number of trials: 2, not 1"]),
]  # fmt: skip


@each_case(("change", "sentences"), CASES)
def test_every_change_is_one_plain_sentence(change: Callable[[RunPlan], RunPlan], sentences: list[str]) -> None:
    assert deviations(frozen_of(plan()), change(plan())) == sentences


def test_a_point_of_a_turn_belongs_to_the_key() -> None:
    turn = {"turn_id": "Q1", "user_message": "What is Part B?", "required_points": ["F1"]}
    assert deviations(frozen_of(plan()), with_scenario(scripted_turns=[turn])) == [
        "scenario s1: its key changed (its points)"
    ]


def test_only_another_order_is_said_so() -> None:
    before = plan(targets=("fake:careful", "fake:wrong"), scenarios=[scenario(), scenario(scenario_id="cobra")])
    after = plan(targets=("fake:wrong", "fake:careful"), scenarios=[scenario(scenario_id="cobra"), scenario()])
    assert deviations(frozen_of(before), after) == ["scenarios: their order changed", "targets: their order changed"]


def test_every_field_of_a_plan_counts() -> None:
    """A field that is added to plans later must not slip by: whatever changes in a plan's JSON is found."""
    made = plan()
    whole = made.model_dump(mode="json")
    one_by_one = {
        "scenarios", "targets", "verifiers", "rubrics", "prompts", "api_ids", "wording", "model_parameters", "isolation",
        "background", "target_settings", "citation_checks", "judges_by_target",
    }  # fmt: skip
    for name in RunPlan.model_fields.keys() - one_by_one:  # those have cases of their own
        other = json.loads(json.dumps(whole))
        value = other.get(name, getattr(made, name))
        if isinstance(value, dict) and value:
            first = next(iter(value))
            value[first] = (value[first] or 0) + 1 if isinstance(value[first], int | float) else 1
        elif isinstance(value, dict):
            other[name] = {"x": HASH}
        elif isinstance(value, list):
            other[name] = ["x"]
        elif isinstance(value, float):
            other[name] = 0.75
        elif isinstance(value, bool):
            other[name] = not value
        elif isinstance(value, int):
            other[name] = value + 1
        else:
            other[name] = "xai:other"
        again = RunPlan.model_validate_json(json.dumps(other))
        assert deviations(frozen_of(made), again), name


def test_other_judges_of_one_target_are_a_deviation() -> None:
    made = plan(targets=("fake:careful", "fake:wrong"))
    judges = made.judges_of("fake:careful")
    other = judges.model_copy(update={"verifiers": ("xai:a", "google:b"), "adjudicator": None})
    after = made.model_copy(update={"judges_by_target": {"fake:careful": judges, "fake:wrong": other}})
    said = deviations(frozen_of(made), after)
    assert (
        "fake:wrong: judged by xai:a and google:b (read by offline:rules, ties: open), not by the judges of all targets"
        in said
    )
    assert deviations(frozen_of(after), after) == []


def test_a_changed_background_fact_is_a_deviation() -> None:
    made = planned(ONE)
    assert made.background
    fewer = changed(made, background=made.background[1:])
    said = ["plan: a detail changed that a pre-registration does not list separately"]
    assert deviations(frozen_of(made), fewer) == said
    reworded = made.background[0].model_copy(update={"statement": "Otherwise."})
    assert deviations(frozen_of(made), changed(made, background=(reworded, *made.background[1:]))) == said


def test_what_has_no_sentence_of_its_own_is_still_a_deviation() -> None:
    wording = UsedWording(title="The study's", sha256=OTHER, turns={})
    made = changed(plan(), wording=wording)
    other = changed(plan(), wording=wording.model_copy(update={"title": "Another"}))
    assert deviations(frozen_of(made), other) == [
        "plan: a detail changed that a pre-registration does not list separately"
    ]


plans = st.builds(
    lambda targets, judges, repeats, seed, year, names, warmth: changed(
        plan(
            targets=targets, verifiers=judges, repeats=repeats, scenarios=[scenario(scenario_id=name) for name in names]
        ),
        seed=seed,
        plan_year=year,
        target_parameters=plan().target_parameters.model_copy(update={"temperature": warmth}),
    ),
    st.lists(st.sampled_from(["fake:careful", "fake:wrong", "openai:a", "xai:b"]), min_size=1, unique=True),
    st.lists(st.sampled_from(["offline:rules", "anthropic:j", "google:k"]), min_size=2, max_size=4),
    st.integers(1, 5),
    st.integers(0, 2**63 - 1),
    st.sampled_from([2025, 2026]),
    st.lists(st.sampled_from(["s1", "cobra", "medigap"]), min_size=1, unique=True),
    st.one_of(st.none(), st.floats(0, 2)),
)


@given(plans, plans)
def test_deviations_are_none_exactly_for_the_same_plan(one: RunPlan, other: RunPlan) -> None:
    frozen = frozen_of(one)
    assert deviations(frozen, one) == []
    found = deviations(frozen, other)
    assert (found == []) == (one == other)
    assert len(set(found)) == len(found)
    assert all(sentence.isprintable() and ": " in sentence for sentence in found)
    assert (deviations(frozen_of(other), one) == []) == (found == [])
    for target in set(other.targets) - set(one.targets):
        assert f"targets: {target} was added" in found


@given(
    st.text(max_size=300).filter(str.strip),
    st.lists(st.text(min_size=1, max_size=50).filter(str.strip), max_size=3),
    st.text(max_size=300),
)
def test_any_words_survive_the_file(outcome: str, tests: list[str], notes: str) -> None:
    words = RegistrationText(primary_outcome=outcome, tests=tuple(tests), notes=notes)
    frozen = freeze(plan(), words, created="2026-01-01T00:00:00+00:00")
    again = Preregistration.model_validate_json(frozen.model_dump_json())
    assert again == frozen
    assert frozen_sha256(again) == frozen_sha256(frozen)


def test_it_is_written_once_and_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "new" / "plan.json"
    frozen = frozen_of(plan())
    assert write_preregistration(path, frozen) == file_sha256(path) == frozen_sha256(frozen)
    before = path.read_bytes()
    with pytest.raises(InputError, match="already exists and will not be overwritten"):
        write_preregistration(path, frozen_of(changed(plan(), seed=1)))
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == ["plan.json"]
    with pytest.raises(InputError, match="cannot be written"):
        write_preregistration(path / "below" / "plan.json", frozen)


def test_it_gives_no_question_and_no_fact_away(tmp_path: Path) -> None:
    write_preregistration(tmp_path / "plan.json", frozen_of(plan()))
    text = (tmp_path / "plan.json").read_text(encoding="utf-8")
    assert "What is Part B?" not in text
    assert "Plans have networks." not in text


def test_a_file_that_was_edited_or_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    with pytest.raises(InputError, match=r"does not exist\. Make a pre-registration with `medicare-eval freeze`"):
        read_frozen(path)
    write_preregistration(path, frozen_of(plan()))
    path.write_bytes(path.read_bytes().replace(b'"seed":42', b'"seed": 43'))
    with pytest.raises(IntegrityError):
        read_frozen(path)
    for text in ("{}", "[]", "seed = 7", '{"primary_outcome": "accuracy"}'):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=r"is not a pre-registration\. Make one with `medicare-eval freeze`\."):
            read_frozen(path)


@each_case(
    ("given_", "field"),
    [
        ({"primary_outcome": ""}, "primary_outcome"),
        ({"primary_outcome": " "}, "primary_outcome"),
        ({"primary_outcome": "x" * 1_001}, "primary_outcome"),
        ({"tests": ["a", ""]}, "tests[1]"),
        ({"notes": "x" * 20_001}, "notes"),
        ({"outcome": "accuracy"}, "outcome"),
    ],
)
def test_words_that_cannot_be_kept_are_refused(given_: dict[str, Any], field: str) -> None:
    words: dict[str, Any] = {"primary_outcome": "accuracy", "tests": [], "notes": ""}
    with pytest.raises(InputError, match=re.escape(f"Field registration.{field}: ")):
        planned(ONE, registration=words | given_)


def test_a_run_must_match_unless_deviations_are_allowed(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    digest = write_preregistration(path, frozen_of(plan()))
    kept = registration(path, plan(), allow_deviations=False)
    assert (kept.deviations, kept.sha256, kept.primary_outcome) == ((), digest, "accuracy")
    other = changed(plan(), seed=7)
    with pytest.raises(InputError, match=r"seed: 7, not 42\. Run the registered study, or add `allow_deviations`"):
        registration(path, other, allow_deviations=False)
    allowed = registration(path, other, allow_deviations=True)
    assert allowed.deviations == ("seed: 7, not 42",)


def test_many_deviations_are_counted_not_all_shouted(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    write_preregistration(path, frozen_of(plan()))
    many = plan(scenarios=[scenario(scenario_id=f"s{n}") for n in range(1, 41)])
    with pytest.raises(InputError, match=r"; and 20 more\. Run"):
        registration(path, many, allow_deviations=False)
