"""Plans: which judges are chosen, which roles are kept apart, and what is refused before anything is spent."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from src.adapters import registry
from src.adapters.registry import PROVIDERS, canonical_name
from src.errors import ConfigError, InputError
from src.planning.judges import OFFLINE_JUDGE
from src.planning.plan import AUDIT_SAMPLE, MAX_TRIALS, make_plan
from src.planning.prompts import fill, load_prompts, reply_schema
from src.planning.rubrics import load_rubric
from src.planning.study_file import make_study
from src.planning.trials import in_noise_sample, planned_calls, trials
from src.records.model_name import family, family_of_id
from src.schemas import PlannedRubric, RunPlan
from src.store.strict_json import sha256
from tests.cases import each_case
from tests.helpers import ROOT, fact_json, plan, scenario, scenario_json

KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "google": "GEMINI_API_KEY", "xai": "XAI_API_KEY"}
JUDGES = {name: f"{name}:{PROVIDERS[name].default_judge}" for name in KEYS}
SHIPPED = str(ROOT / "scenarios" / "v1" / "scenario_001.json")
Planner = Callable[..., RunPlan]
RubricsOf = Callable[..., dict[str, PlannedRubric]]


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Planner:
    """Makes a plan with sentinel keys of the providers named, and of no other."""

    def make(
        targets: list[Any],
        *,
        keys: str = "",
        scenarios: list[str] | None = None,
        today: date | None = None,
        **fields: Any,
    ) -> RunPlan:
        for name, variable in KEYS.items():
            if name in keys.split():
                monkeypatch.setenv(variable, f"sentinel-{name}")
            else:
                monkeypatch.delenv(variable, raising=False)
        for variable in ("COMPATIBLE_API_KEY", "COMPATIBLE_BASE_URL"):
            monkeypatch.delenv(variable, raising=False)
        document = {"scenarios": scenarios or [SHIPPED], "targets": targets, "allow_retired": True, **fields}
        return make_plan(make_study(document), today=today)

    return make


def written(folder: Path, name: str = "s.json", **changes: Any) -> str:
    path = folder / name
    path.write_text(json.dumps(scenario_json(**changes)), encoding="utf-8")
    return str(path)


def test_fake_targets_are_judged_by_rules_even_where_keys_are_set(planned: Planner) -> None:
    made = planned(["fake:careful", "fake:wrong"], keys="anthropic openai google xai")
    assert made.judge_models() == (OFFLINE_JUDGE,)
    assert made.verifiers == (OFFLINE_JUDGE, OFFLINE_JUDGE)
    assert made.adjudicator is None


@pytest.mark.parametrize(
    ("target", "keys", "verifiers", "adjudicator"),
    [
        ("openai:gpt-4.1", "openai anthropic google xai", ("anthropic", "google"), "xai"),
        ("anthropic:claude-3-opus", "xai google openai anthropic", ("openai", "google"), "xai"),
        ("google:gemini-1.5-pro", "openai anthropic google xai", ("anthropic", "openai"), "xai"),
        ("xai:grok-2", "openai anthropic google xai", ("anthropic", "openai"), "google"),
        ("openai:gpt-4.1", "openai google xai", ("google", "xai"), None),
        ("openai:gpt-4.1", "openai xai", ("xai", "xai"), None),
    ],
)
def test_default_judges_are_of_other_providers_with_keys_in_the_documented_order(
    planned: Planner, target: str, keys: str, verifiers: tuple[str, str], adjudicator: str | None
) -> None:
    made = planned([target], keys=keys)
    assert made.verifiers == tuple(JUDGES[name] for name in verifiers)
    assert made.extractor == made.scorer == JUDGES[verifiers[0]]
    assert made.adjudicator == (JUDGES[adjudicator] if adjudicator else None)
    assert made.adjudicator in (*made.judge_models(), None)


def test_the_registrys_order_is_the_documented_one() -> None:
    assert [name for name, provider in PROVIDERS.items() if provider.default_judge] == list(KEYS)


def test_default_judges_are_of_no_targets_family_when_there_are_several(planned: Planner) -> None:
    made = planned(["anthropic:claude-3-opus", "openai:gpt-4.1"], keys="anthropic openai google xai")
    assert made.verifiers == (JUDGES["google"], JUDGES["xai"])


def test_without_a_key_of_another_provider_the_error_says_which_to_set(planned: Planner) -> None:
    with pytest.raises(ConfigError) as caught:
        planned(["openai:gpt-4.1"], keys="openai")
    said = str(caught.value)
    assert "ANTHROPIC_API_KEY, GEMINI_API_KEY, XAI_API_KEY" in said
    assert "OPENAI_API_KEY" not in said
    assert said.startswith("Field judges: no judge is available for openai:gpt-4.1. ")
    assert said.endswith("or name judges with `judges`. To try it without a key, use offline:rules.")


def test_an_empty_key_is_no_key(planned: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    made = planned(["openai:gpt-4.1"], keys="openai anthropic google")
    assert made.verifiers == (JUDGES["anthropic"], JUDGES["google"])
    monkeypatch.setenv("ANTHROPIC_API_KEY", "")
    study = make_study({"scenarios": [SHIPPED], "targets": ["openai:gpt-4.1"], "allow_retired": True})
    assert make_plan(study).verifiers == (JUDGES["google"], JUDGES["google"])


def test_rules_may_judge_a_real_target(planned: Planner) -> None:
    made = planned(["openai:gpt-4.1"], keys="openai anthropic", judges=["offline:rules"])
    assert made.judge_models() == (OFFLINE_JUDGE,)
    assert made.adjudicator is None, "a model that was not asked for is never called beside the rules"


@pytest.mark.parametrize(
    ("judges", "verifiers", "expected"),
    [
        (["anthropic:claude-a", "google:gemini-b", "xai:grok-c"], 2, "xai:grok-c"),
        (["anthropic:claude-a", "anthropic:claude-b", "xai:grok-c"], 2, "xai:grok-c"),
        (["anthropic:claude-a"], 2, "google"),  # the first provider with a key that neither judges nor is judged
        (["anthropic:claude-a", "google:gemini-b"], 2, "xai"),
        (["anthropic:claude-a", "google:gemini-b", "xai:grok-c"], 3, None),
        (["offline:rules", "anthropic:claude-a"], 2, None),
    ],
)
def test_ties_go_to_a_third_family_or_stay_open(
    planned: Planner, judges: list[str], verifiers: int, expected: str | None
) -> None:
    made = planned(["openai:gpt-4.1"], keys="openai anthropic google xai", judges=judges, verifiers=verifiers)
    assert made.adjudicator == (JUDGES.get(expected, expected) if expected else None)
    if made.adjudicator:
        assert family(made.adjudicator) not in {family(name) for name in (*made.verifiers, *made.targets)}
        assert made.adjudicator in made.api_ids


@pytest.mark.parametrize("adjudicator", ["anthropic:claude-b", "compatible:anthropic/claude-c", "offline:rules"])
def test_an_adjudicator_of_a_verifiers_family_is_refused(planned: Planner, adjudicator: str) -> None:
    judges = ["offline:rules"] if adjudicator == "offline:rules" else ["google:gemini-b", "anthropic:claude-a"]
    with pytest.raises(ConfigError) as caught:
        planned(["openai:gpt-4.1"], keys="openai anthropic google", judges=judges, adjudicator=adjudicator)
    said = str(caught.value)
    assert said.startswith(f"Field adjudicator: {adjudicator} cannot settle ties of {' and '.join(judges)} because ")
    assert said.endswith("Name a model of a third family, or leave it out: ties then stay open for a person.")


@pytest.mark.parametrize(("isolation", "sample"), [(None, AUDIT_SAMPLE), ("flagged", 0.1), ("claim", 0), ("reply", 0)])
def test_an_audit_sample_is_drawn_only_where_replies_are_flagged(
    planned: Planner, isolation: str | None, sample: float
) -> None:
    made = planned(["fake:careful"], **({"isolation": isolation} if isolation else {}))
    assert (made.isolation, made.audit_sample) == (isolation or "flagged", sample)
    assert RunPlan.model_validate_json(made.model_dump_json()) == made
    with pytest.raises(InputError, match="Field isolation: 'turn' is not allowed; use 'claim', 'flagged' or 'reply'"):
        planned(["fake:careful"], isolation="turn")


def test_a_plan_holds_the_background_facts_of_its_year_and_their_files(planned: Planner) -> None:
    made = planned(["fake:careful"])
    ids = [fact.fact_id for fact in made.background]
    assert ids
    assert ids == sorted(ids)
    files = sorted((ROOT / "facts" / "background").glob("*.json"))
    for path in files:
        assert made.references[f"facts/library/{path.name}"] == sha256(path.read_bytes())
    assert not any("{{" in fact.statement for fact in made.background)


def test_a_fact_with_the_id_of_a_background_fact_is_refused(planned: Planner, tmp_path: Path) -> None:
    taken = planned(["fake:careful"]).background[0].fact_id
    key = {"canonical_facts": [fact_json(taken)], "required_points": [], "disallowed_claims": []}
    scenarios = [written(tmp_path, answer_key=key)]
    with pytest.raises(
        InputError, match=rf"s\.json: field answer_key\.canonical_facts: '{taken}' is the id of a backg"
    ):
        planned(["openai:gpt-4.1"], keys="openai anthropic", scenarios=scenarios)


def test_judges_cycle_through_the_models_given(planned: Planner) -> None:
    given = ["anthropic:claude-a", "google:gemini-b", "xai:grok-c"]
    made = planned(["openai:gpt-4.1"], keys="openai anthropic google xai", judges=given, verifiers=5)
    assert made.verifiers == (*given, *given[:2])
    assert (made.extractor, made.scorer, made.adjudicator) == (given[0], given[0], None)
    again = planned(["openai:gpt-4.1"], keys="openai anthropic google xai", judges=[given[0], given[0]], verifiers=2)
    assert again.verifiers == (given[0], given[0])


@pytest.mark.parametrize("verifiers", [1, 0, -3])
def test_fewer_than_two_verifiers_are_refused(planned: Planner, verifiers: int) -> None:
    with pytest.raises(InputError, match=rf"Field verifiers: must be at least 2 \(got {verifiers}\)\."):
        planned(["fake:careful"], verifiers=verifiers)


@pytest.mark.parametrize(
    ("target", "judge"),
    [
        ("openai:gpt-4.1", "openai:gpt-4.1"),
        ("openai:gpt-4.1", "openai:o3"),
        ("openai:gpt-4.1", "compatible:openai/gpt-oss-120b"),
        ("grok:grok-2", "xai:grok-4"),
        ("anthropic:claude-3-opus", "compatible:anthropic/claude-sonnet"),
        ("compatible:llama3.2", "compatible:meta-llama/Llama-4"),
    ],
)
def test_a_judge_of_the_targets_family_is_refused(planned: Planner, target: str, judge: str) -> None:
    everything = "anthropic openai google xai"
    with pytest.raises(ConfigError, match="cannot judge"):
        planned([target], keys=everything, judges=[judge])
    with pytest.raises(ConfigError, match="cannot judge"):
        planned([target], keys=everything, judges=["google:gemini-b", judge])
    with pytest.raises(ConfigError, match="cannot judge"):
        planned([target], keys=everything, judges=["google:gemini-b"], adjudicator=judge)


def test_one_of_several_targets_is_enough_for_a_refusal(planned: Planner) -> None:
    with pytest.raises(
        ConfigError, match=r"google:gemini-b cannot judge google:gemini-a because both are from the google"
    ):
        planned(["openai:gpt-4.1", "google:gemini-a"], keys="openai google anthropic", judges=["google:gemini-b"])


def test_the_questioner_is_kept_apart_too(planned: Planner, tmp_path: Path) -> None:
    scenarios = [written(tmp_path, variation_knobs={"paraphrase": True})]
    options: dict[str, Any] = {"scenarios": scenarios, "keys": "openai anthropic google", "paraphrase": True}
    with pytest.raises(ConfigError, match=r"openai:gpt-5 cannot reword questions for openai:gpt-4\.1"):
        planned(["openai:gpt-4.1"], questioner="openai:gpt-5", **options)
    with pytest.raises(ConfigError, match=r"is a judge\. The questioner must be another model"):
        planned(["openai:gpt-4.1"], questioner=JUDGES["anthropic"], **options)
    made = planned(["openai:gpt-4.1"], questioner="offline:rephrase", **options)
    assert made.questioner == "offline:rephrase"


def test_paraphrase_needs_the_scenario_the_flag_and_a_model(planned: Planner, tmp_path: Path) -> None:
    allowed = [written(tmp_path, variation_knobs={"paraphrase": True})]
    exact = [written(tmp_path, "exact.json")]
    options: dict[str, Any] = {"keys": "openai anthropic", "targets": ["openai:gpt-4.1"]}
    assert planned(scenarios=allowed, **options).questioner is None
    with pytest.raises(InputError, match="Field paraphrase: none of the scenarios allows it"):
        planned(scenarios=exact, paraphrase=True, questioner="offline:rephrase", **options)
    with pytest.raises(
        InputError, match=r"Field paraphrase: a model is needed to reword the questions\. Set `questioner`"
    ):
        planned(scenarios=allowed, paraphrase=True, **options)
    with pytest.raises(InputError, match="Field questioner: offline:rephrase rewords questions only with `paraphrase`"):
        planned(scenarios=allowed, questioner="offline:rephrase", **options)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "nobody:model",
            "there is no provider 'nobody'. Use one of fake, offline, human, anthropic, openai, google, xai",
        ),
        ("OpenAI:gpt-4.1", "there is no provider 'OpenAI'"),
        (":model", "there is no provider ''"),
        ("gpt-4.1", "expected provider:model"),
        ("openai:", "expected provider:model"),
        ("", "model"),
        ("openai:gpt 4", "expected provider:model"),
        ("openai:gpt\x1b[31m", "expected provider:model"),
        ("openai:\u202egpt", "expected provider:model"),
        ("openai:" + "x" * 300, "at most 200 characters|expected provider:model"),
    ],
)
def test_unknown_models_are_refused(planned: Planner, name: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        planned([name])
    with pytest.raises(InputError, match=said):
        planned(["fake:careful"], judges=["offline:rules", name])


def test_other_names_of_a_provider_become_its_own() -> None:
    assert canonical_name("grok:grok-2") == "xai:grok-2"
    assert canonical_name("compatible:qwen3:8b") == "compatible:qwen3:8b"


def test_a_missing_key_names_its_variable(planned: Planner) -> None:
    with pytest.raises(ConfigError, match=r"openai:gpt-4\.1: no key; set the environment variable OPENAI_API_KEY"):
        planned(["openai:gpt-4.1"], keys="anthropic")
    with pytest.raises(ConfigError, match="xai:grok-4: no key; set the environment variable XAI_API_KEY"):
        planned(["openai:gpt-4.1"], keys="openai", judges=["xai:grok-4"])
    with pytest.raises(ConfigError, match="google:gemini-x: no key"):
        planned(["fake:careful"], adjudicator="google:gemini-x")


def test_a_missing_sdk_names_the_install_line(planned: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_importable", lambda name: False)
    with pytest.raises(
        ConfigError,
        match=r"openai:gpt-4.1: The SDK for openai is not installed; run: python -m pip install 'openai>=3.40,<4'\.",
    ):
        planned(["openai:gpt-4.1"], keys="openai anthropic")


def test_a_server_of_ones_own_needs_its_address(planned: Planner) -> None:
    with pytest.raises(ConfigError, match="no address; set COMPATIBLE_BASE_URL"):
        planned(["compatible:qwen3"], judges=["offline:rules"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"targets": ["fake:nobody"]}, "does not exist. Use one of fake:careful"),
        ({"targets": ["fake:careful"], "judges": ["offline:other"]}, "does not exist. Use offline:rules"),
    ],
)
def test_fakes_and_rules_that_do_not_exist(planned: Planner, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        planned(**options)


def test_what_rewords_questions_judges_nothing(planned: Planner) -> None:
    with pytest.raises(ConfigError, match="Field judges: offline:rephrase rewords questions and judges nothing"):
        planned(["fake:careful"], judges=["offline:rephrase"])


def test_a_retired_model_is_refused_unless_allowed(planned: Planner) -> None:
    options: dict[str, Any] = {"keys": "anthropic openai", "today": date(2026, 11, 1)}
    with pytest.raises(
        ConfigError, match=r"anthropic:claude-3-opus has been retired since 2026-01-05.*`allow_retired`"
    ):
        planned(["anthropic:claude-3-opus"], allow_retired=False, **options)
    made = planned(["anthropic:claude-3-opus"], allow_retired=True, **options)
    assert made.api_ids["anthropic:claude-3-opus"] == "claude-3-opus-20240229"


def test_rules_are_no_target(planned: Planner) -> None:
    with pytest.raises(ConfigError, match="is a judge, not a target"):
        planned(["offline:rules"], keys="anthropic")


def test_a_fake_has_replies_to_its_own_scenarios_only(planned: Planner, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="fake:careful has no canned replies for scenario 's1'"):
        planned(["fake:careful"], scenarios=[written(tmp_path)])


def test_the_same_target_twice_or_two_alike_are_refused(planned: Planner) -> None:
    with pytest.raises(
        InputError, match=r"Field targets: fake:careful was given twice\. To run more trials of it, use `repeats`\."
    ):
        planned(["fake:careful", "fake:careful"])
    with pytest.raises(InputError, match="Field targets: xai:grok-2 was given twice"):
        planned(["grok:grok-2", "xai:grok-2"], keys="xai anthropic")
    with pytest.raises(InputError, match="same short name"):
        planned(["openai:gpt-4.1", "openai:gpt-4-1"], keys="openai anthropic")


def test_two_scenarios_of_one_id_are_refused(planned: Planner, tmp_path: Path) -> None:
    files = [written(tmp_path, "a.json"), written(tmp_path, "b.json")]
    with pytest.raises(InputError, match=r"b\.json: field scenario_id: 's1' is also used by .*a\.json"):
        planned(["openai:gpt-4.1"], keys="openai anthropic", scenarios=files)
    once = planned(["openai:gpt-4.1"], keys="openai anthropic", scenarios=[files[0], files[0]])
    assert len(once.scenarios) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "invalid JSON"),
        ('{"a": 1, "a": 2}', "the key 'a' appears twice"),
        ("[]", r"must be an object \(got \[\]\)"),
        (json.dumps({**scenario_json(), "extra": 1}), "field extra: unknown field"),
        (json.dumps({**scenario_json(), "title": 4}), r"field title: must be text \(got 4\)"),
        (json.dumps(scenario_json(scenario_id="../up")), r"field scenario_id: '../up' is not an id"),
        (json.dumps(scenario_json(persona={"fictional": False})), r"field persona: fictional must be true"),
        (json.dumps({k: v for k, v in scenario_json().items() if k != "title"}), "field title: required but missing"),
        (json.dumps(scenario_json(scripted_turns=[])), "field scripted_turns"),
    ],
)
def test_a_bad_scenario_is_named_with_its_file_and_field(
    planned: Planner, tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said) as caught:
        planned(["openai:gpt-4.1"], keys="openai anthropic", scenarios=[str(path)])
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_scenarios_that_are_not_there_not_text_or_too_large(planned: Planner, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no scenario file found"):
        planned(["fake:careful"], scenarios=[str(tmp_path / "none.json")])
    with pytest.raises(InputError, match="no scenario file found"):
        planned(["fake:careful"], scenarios=[str(tmp_path)])
    (tmp_path / "x.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(InputError, match=r"is not UTF-8 text \(byte 7\)"):
        planned(["fake:careful"], scenarios=[str(tmp_path)])
    (tmp_path / "x.json").write_bytes(b" " * 2_000_001)
    with pytest.raises(InputError, match="is larger than 2,000,000 bytes"):
        planned(["fake:careful"], scenarios=[str(tmp_path)])


def test_scenarios_are_found_in_folders_and_by_globs_each_once_in_order(planned: Planner, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    for name in ("b", "a", "inner/c"):
        written(tmp_path, f"{name}.json", scenario_id=name.replace("/", "-"))
    options: dict[str, Any] = {"keys": "openai anthropic", "targets": ["openai:gpt-4.1"]}

    def found(*arguments: str) -> list[str]:
        return [one.scenario.scenario_id for one in planned(scenarios=list(arguments), **options).scenarios]

    assert found(str(tmp_path)) == ["a", "b", "inner-c"]
    assert found(str(tmp_path / "*.json")) == ["a", "b"]
    assert found(str(tmp_path / "**" / "*.json")) == ["a", "b", "inner-c"]
    assert found(str(tmp_path / "inner"), str(tmp_path)) == ["inner-c", "a", "b"]


def test_a_plan_keeps_the_bytes_of_its_scenarios_by_hash(planned: Planner) -> None:
    made = planned(["fake:careful"])
    assert made.scenarios[0].sha256 == sha256(Path(SHIPPED).read_bytes())
    assert RunPlan.model_validate_json(made.model_dump_json()) == made


def test_plan_order_is_scenario_then_repetition_then_target() -> None:
    made = plan(
        scenarios=[scenario(scenario_id="a"), scenario(scenario_id="b")],
        targets=["fake:careful", "openai:gpt-4.1"],
        repeats=2,
    )
    assert [trial.trial_id for trial in trials(made)] == [
        "a.fake-careful.r1",
        "a.openai-gpt-4-1.r1",
        "a.fake-careful.r2",
        "a.openai-gpt-4-1.r2",
        "b.fake-careful.r1",
        "b.openai-gpt-4-1.r1",
        "b.fake-careful.r2",
        "b.openai-gpt-4-1.r2",
    ]
    seeds = {trial.seed(42, "target", "Q1") for trial in trials(made)}
    assert len(seeds) == 8
    assert len({trial.questions_id for trial in trials(made)}) == 4


def test_calls_are_counted_by_role() -> None:
    two_turns = [{"turn_id": "Q1", "user_message": "One?"}, {"turn_id": "Q2", "user_message": "Two?"}]
    made = plan(
        scenarios=[
            scenario(scenario_id="a", scripted_turns=two_turns, variation_knobs={"paraphrase": True}),
            scenario(scenario_id="b"),
        ],
        targets=["openai:gpt-4.1", "xai:grok-2"],
        verifiers=["offline:rules"] * 3,
        repeats=5,
        questioner="offline:rephrase",
    )
    turns = (2 + 1) * 2 * 5
    assert planned_calls(made) == {
        "questioner": 5,
        "target": turns,
        "extractor": turns,
        "verifier": turns * 3,
        "scorer": turns,
        "adjudicator": 0,
    }
    assert planned_calls(plan())["questioner"] == 0


def test_a_plan_of_absurd_size_is_refused(planned: Planner) -> None:
    targets = [f"openai:gpt-{n}" for n in range(MAX_TRIALS // 10_000 + 1)]
    with pytest.raises(
        InputError, match=r"Field repeats: the plan has 1,010,000 trials; 1,000,000 is the limit of one run"
    ):
        planned(targets, keys="openai anthropic", repeats=10_000)


@each_case(
    ("name", "expected"),
    [
        ("openai:gpt-4.1", "openai"),
        ("openai:chatgpt-4o-latest", "openai"),
        ("openai:o3-mini", "openai"),
        ("openai:something-new", "openai"),
        ("openai:ft:gpt-4.1-mini:acme::abc", "openai"),
        ("anthropic:claude-3.5-sonnet", "anthropic"),
        ("google:gemini-1.5-pro", "google"),
        ("google:gemma-3", "google"),
        ("xai:grok-2", "xai"),
        ("compatible:Claude-Sonnet", "anthropic"),
        ("compatible:x-ai/grok-4", "xai"),
        ("compatible:openai/o4-mini", "openai"),
        ("compatible:qwen3:8b", "qwen"),
        ("compatible:mistralai/Mixtral-8x7B", "mistral"),
        ("compatible:microsoft/phi-4", "microsoft"),
        ("compatible:Unheard-Of", "unheard-of"),
        ("compatible:TheBloke/Mistral-7B-GPTQ", "mistral"),
        ("compatible:palmyra-x5", "palmyra-x5"),
        ("fake:careful", "fake"),
        ("offline:rules", "offline"),
        ("fake:claude", "fake"),
    ],
)
def test_families(name: str, expected: str) -> None:
    assert family(name) == expected


@each_case(
    ("model_id", "expected"),
    [
        ("gpt-4.1-2025-04-14", "openai"),
        ("claude-sonnet-4-6", "anthropic"),
        ("qwen3:8b", "qwen"),
        ("llama3.2:latest", "meta"),
        ("unheard:latest", "unheard:latest"),
    ],
)
def test_families_of_ids_as_providers_report_them(model_id: str, expected: str) -> None:
    assert family_of_id(model_id) == expected


def test_a_canned_target_is_no_judge(planned: Planner) -> None:
    with pytest.raises(ConfigError, match="is a canned target, not a judge"):
        planned(["openai:gpt-4.1"], keys="openai", judges=["fake:careful"])


@pytest.fixture
def rubrics_of(planned: Planner) -> RubricsOf:
    return lambda *paths: planned(["openai:gpt-4.1"], keys="openai anthropic google", scenarios=list(paths)).rubrics


@pytest.mark.parametrize("version", ["2026-draft", "", "../v1", "v1.json", "Rubric, second draft", "V1", "x" * 1_000])
def test_a_version_that_no_rubric_has_is_scored_by_the_specifications(
    version: str, rubrics_of: RubricsOf, tmp_path: Path
) -> None:
    specification = load_rubric("v0.1")
    assert rubrics_of(written(tmp_path, rubric_version=version)) == {version: specification}
    assert not specification.rubric.study_codes
    assert load_rubric("v1").rubric.study_codes


def own_rubric(folder: Path, name: str, **changes: Any) -> str:
    """Writes a rubric beside the scenarios of a folder; returns its hash."""
    made = json.loads((ROOT / "rubrics" / "v1.json").read_text(encoding="utf-8"))
    text = json.dumps({**made, "rubric_version": name, **changes})
    (folder / "rubrics").mkdir(exist_ok=True)
    (folder / "rubrics" / f"{name}.json").write_text(text, encoding="utf-8")
    return sha256(text)


def test_a_rubric_beside_the_scenario_is_used_and_is_no_scenario(rubrics_of: RubricsOf, tmp_path: Path) -> None:
    mine = own_rubric(tmp_path, "2026-draft", note="Mine")
    other = own_rubric(tmp_path, "v1", note="Mine too")
    written(tmp_path, "a.json", scenario_id="a", rubric_version="2026-draft")
    written(tmp_path, "b.json", scenario_id="b", rubric_version="v1")
    for given in (str(tmp_path), str(tmp_path / "**" / "*.json")):
        assert {name: one.sha256 for name, one in rubrics_of(given).items()} == {"2026-draft": mine, "v1": other}


def test_two_rubrics_of_one_name_in_one_run_are_refused(rubrics_of: RubricsOf, tmp_path: Path) -> None:
    path = written(tmp_path, rubric_version="v1")
    own_rubric(tmp_path, "v1", note="Mine")
    with pytest.raises(InputError, match=r"s\.json: field rubric_version: 'v1' is another rubric here than"):
        rubrics_of(SHIPPED, path)


def test_a_rubric_whose_name_is_not_its_files_is_refused(rubrics_of: RubricsOf, tmp_path: Path) -> None:
    own_rubric(tmp_path, "mine", rubric_version="yours")
    with pytest.raises(InputError, match=r"mine\.json: field rubric_version: 'yours' does not match the file name"):
        rubrics_of(written(tmp_path, rubric_version="mine"))


def test_every_role_has_a_prompt_filled_with_its_schema() -> None:
    prompts = load_prompts()
    assert set(prompts) == {"questioner", "extractor", "verifier", "scorer", "adjudicator"}
    for role, prompt in prompts.items():
        template = (ROOT / "prompts" / f"{role}_system.txt").read_bytes()
        assert prompt.sha256 == sha256(template)
        assert "{{" not in prompt.text
        assert json.dumps(reply_schema(role), separators=(",", ":"), ensure_ascii=False) in prompt.text


@each_case("template", ["No slot.", "{{output_schema}} {{other}}", "{{outputschema}}", "{{}}"])
def test_a_prompt_with_other_slots_is_refused(template: str) -> None:
    assert fill("A {{ output_schema }} b", "x.txt", {"a": "\\1"}) == 'A {"a":"\\\\1"} b'
    with pytest.raises(
        ConfigError, match=r"prompts/x\.txt has the slots \[.*\]\. It must have \{\{output_schema\}\} and no other"
    ):
        fill(template, "x.txt", {})


def test_a_model_may_have_parameters_of_its_own(planned: Planner) -> None:
    own = {"model": "grok:grok-2", "temperature": 0.7, "max_tokens": 100}
    made = planned(
        ["openai:gpt-4.1", own],
        keys="openai xai anthropic google",
        judges=[{"model": "anthropic:claude-a", "max_tokens": 8_000}, "google:gemini-b"],
        max_tokens=512,
    )
    assert made.parameters_of("openai:gpt-4.1").model_dump() == {"temperature": 0.0, "max_tokens": 512}
    assert made.parameters_of("xai:grok-2").model_dump() == {"temperature": 0.7, "max_tokens": 100}
    assert made.parameters_of("anthropic:claude-a").model_dump() == {"temperature": 0.0, "max_tokens": 8_000}
    assert made.parameters_of("google:gemini-b") == made.judge_parameters
    assert list(made.model_parameters) == ["xai:grok-2", "anthropic:claude-a"]


def test_parameters_equal_to_the_shared_ones_leave_the_plan_as_it_is(planned: Planner) -> None:
    restated = {"model": "fake:careful", "temperature": 0.0, "max_tokens": 2_048}
    assert planned([restated]) == planned(["fake:careful"])


def test_a_model_has_one_set_of_parameters(planned: Planner) -> None:
    twice = [{"model": "offline:rules"}, {"model": "offline:rules", "max_tokens": 5}]
    with pytest.raises(InputError, match="offline:rules is listed twice with different parameters"):
        planned(["fake:careful"], judges=twice)


@each_case(("repeats", "fraction", "low", "high"), [(0, 1.0, 0, 0), (2, 1.0, 400, 400), (2, 0.25, 70, 130)])
def test_the_noise_sample_is_drawn_by_the_seed(repeats: int, fraction: float, low: int, high: int) -> None:
    made = plan(repeats=400).model_copy(update={"judge_repeats": repeats, "judge_sample": fraction})
    drawn = [trial.trial_id for trial in trials(made) if in_noise_sample(made, trial)]
    assert low <= len(drawn) <= high
    assert drawn == [trial.trial_id for trial in trials(made) if in_noise_sample(made, trial)]
    other = made.model_copy(update={"seed": made.seed + 1})
    assert (drawn != [trial.trial_id for trial in trials(other) if in_noise_sample(other, trial)]) == (0 < low < high)
