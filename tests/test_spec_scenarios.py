"""Scenarios as a reader of the specification writes them: free persona and knobs, any rubric version, undated facts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from src import storage
from src.planning.library import Library
from src.planning.rubrics import load_rubric
from src.planning.scenario_files import read_scenario
from src.schemas import Scenario, TrialResult
from tests.cases import each_case
from tests.helpers import ROOT, scenario, scenario_json
from tests.loopback import Loopback, Received, Scripted
from tests.runs import call, newest, replays, verifies

FOLDER = ROOT / "tests" / "spec_scenarios"
FILES = sorted(FOLDER.glob("*.json"))
TARGET = "compatible:loopback"
Run = Callable[..., Path]


def document(name: str) -> dict[str, Any]:
    return dict(json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))


def key_of(question: str) -> str:
    """Every fact of the scenario that a question is from."""
    for path in FILES:
        made = json.loads(path.read_text(encoding="utf-8"))
        if any(turn["user_message"][-20:] == question[-20:] for turn in made["scripted_turns"]):
            return " ".join(fact["statement"] for fact in made["answer_key"]["canonical_facts"])
    return "I can’t help with that."


def knows_the_key(request: Received) -> Scripted:
    return Scripted(text=key_of(request.body["messages"][-1]["content"]))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    with Loopback(knows_the_key) as loopback:
        monkeypatch.setenv("COMPATIBLE_BASE_URL", loopback.url("openai"))
        monkeypatch.setenv("COMPATIBLE_API_KEY", "no-secret")
        yield loopback


@pytest.fixture
def run(server: Loopback, tmp_path: Path) -> Run:
    def make(name: str, *arguments: object) -> Path:
        given = ("--scenario", FOLDER / f"{name}.json", "--target", TARGET, "--judge-model", "offline:rules")
        code, _, err = call("run", *given, *arguments, "--out", tmp_path / "runs", "--quiet")
        assert code == 0, err
        return newest(tmp_path / "runs")

    return make


def planned(run: Path) -> Scenario:
    return storage.read_manifest(run).plan.scenarios[0].scenario


def results(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / storage.RESULTS).read_text(encoding="utf-8").splitlines()]


def questions(run: Path) -> list[str]:
    return [turn["user_message"] for turn in results(run)[0]["conversation"]]


def test_there_are_several() -> None:
    assert [path.stem for path in FILES] == ["bare", "networks", "premium", "two_programs"]


@pytest.mark.parametrize("name", [path.stem for path in FILES])
def test_it_runs_and_is_verified_replayed_and_reported(name: str, run: Run) -> None:
    made = run(name)
    verifies(made)
    replays(made)
    (result,) = results(made)
    assert result["outcome"] == "scored"
    assert result["rubric_version"] == document(name)["rubric_version"]
    assert result["fingerprints"]["rubric"] == load_rubric("v0.1").sha256
    assert set(result["final_scores"]) == {"accuracy", "completeness", "safety_risk", "calibration"}
    assert (result["final_scores"]["accuracy"], result["final_scores"]["completeness"]) == (1.0, 1.0)
    assert result["study_codes"] == []
    code, _, err = call("report", made, "--checklist", "chart")
    assert code == 0, err
    assert document(name)["scenario_id"] in (made / "report" / "per_scenario.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [path.stem for path in FILES])
def test_all_of_the_persona_and_the_knobs_is_kept(name: str, run: Run) -> None:
    made, given = planned(run(name)), document(name)
    persona = made.persona.model_dump(mode="json")
    assert {field: persona[field] for field in given["persona"]} == given["persona"]
    knobs = made.variation_knobs
    kept = {**knobs.not_understood, **{field: list(values) for field, values in knobs.choices.items()}}
    assert {field: [value] if isinstance(value, str) and field != "paraphrase" else value
            for field, value in given["variation_knobs"].items()} == kept  # fmt: skip


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_strict_refuses_it_in_one_sentence(path: Path, server: Loopback, tmp_path: Path) -> None:
    given = ("--scenario", path, "--target", TARGET, "--judge-model", "offline:rules", "--out", tmp_path / "runs")
    for more in ((), ("--dry-run",)):
        code, out, err = call("run", "--strict", *given, *more)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"medicare-eval: {path}: field ")
        assert err.endswith(" more; `medicare-eval validate --strict` lists them). Fix it, or leave out --strict.\n")
    assert server.count == 0
    assert not (tmp_path / "runs").exists()


def test_strict_in_a_study_file_is_the_same(server: Loopback, tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    lines = f'scenarios = ["{FOLDER.as_posix()}"]\ntargets = ["{TARGET}"]\njudges = ["offline:rules"]\n'
    study.write_text(f"strict = true\n{lines}", encoding="utf-8")
    code, _, err = call("run", study, "--dry-run")
    assert code == 2
    assert err.endswith("Fix it, or leave out --strict.\n")
    study.write_text(lines, encoding="utf-8")
    assert call("run", study, "--dry-run").code == 0


def test_a_run_counts_the_warnings_and_names_the_command_that_lists_them(server: Loopback, tmp_path: Path) -> None:
    given = ("--scenario", FOLDER, "--target", TARGET, "--judge-model", "offline:rules", "--dry-run")
    code, _, err = call("run", *given)
    assert (code, err.count("\n")) == (0, 1)
    listed = call("validate", FOLDER)
    assert listed.code == 0
    count = len(listed.err.splitlines())
    assert count > 20
    assert (
        err == f"medicare-eval: {count} warnings about the scenarios. To list them: medicare-eval validate {FOLDER}\n"
    )
    assert listed.out.endswith(f"4 scenarios valid, {count} warnings.\n")
    assert call("run", *given, "--quiet").err == ""


def test_the_bank_runs_with_strict_and_without_a_warning() -> None:
    code, _, err = call("run", "--scenario", ROOT / "scenarios", "--target", "fake:careful", "--dry-run", "--strict")
    assert (code, err) == (0, "")
    assert call("run", "--scenario", ROOT / "scenarios", "--target", "fake:careful", "--dry-run").err == ""


# Slots


def test_nested_fields_of_a_persona_are_slots(run: Run) -> None:
    assert questions(run("networks"))[1] == (
        "I have type 2 diabetes, high blood pressure. Could I keep Dr. Alma Exampleton, whom I have seen since 2011?"
    )


@pytest.mark.slow
def test_a_list_of_texts_is_a_choice_that_the_seed_draws(run: Run) -> None:
    openings = document("two_programs")["variation_knobs"]["opening"]
    asked = [questions(run("two_programs", "--seed", seed)) for seed in range(12)]
    rest = " My wife and I get $1480.5 a month. Can I have Medicare and Medicaid together?"
    assert {first for first, _ in asked} == {opening + rest for opening in openings}
    assert {second for _, second in asked} == {"Who pays first, in plain words?"}
    assert questions(run("two_programs", "--seed", 3)) == asked[3]


def shown(persona: dict[str, Any], slot: str) -> str:
    turns = [{"turn_id": "Q1", "user_message": f"{{{{persona.{slot}}}}}?"}]
    one = scenario(persona=persona, scripted_turns=turns)
    return one.slot_value(f"persona.{slot}", {})


@each_case(
    ("value", "text"),
    [
        ("blue", "blue"),
        (3, "3"),
        (2.0, "2"),
        (2.5, "2.5"),
        (True, "yes"),
        (False, "no"),
        (["a", 1, [True]], "a, 1, yes"),
    ],
)
def test_what_a_slot_shows(value: Any, text: str) -> None:
    assert shown({"own": value}, "own") == text
    assert shown({"own": {"inner": {"field": value}}}, "own.inner.field") == text
    assert shown({"attributes": {"own": value}}, "attributes.own") == text


@each_case("value", [None, "", {}, [], {"a": 1}, [{"a": 1}], [None]])
def test_what_has_no_text_is_no_slot(value: Any) -> None:
    with pytest.raises(ValueError, match=r"unknown slot \{\{persona\.own\}\}"):
        shown({"own": value}, "own")


def test_a_variant_changes_a_field_of_the_authors_own_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    variants = [{"variant_id": "a"}, {"variant_id": "b", "persona": {"pet": "a cat", "age": 70, "new": 1}}]
    path.write_text(json.dumps(scenario_json(persona={"pet": "a dog"}, variants=variants)), encoding="utf-8")
    first, second = (one.scenario.persona for one in read_scenario(path).planned(2026, Library()))
    assert (first.model_extra, first.age, first.attributes) == ({"pet": "a dog"}, None, {})
    assert (second.model_extra, second.age, second.attributes) == ({"pet": "a cat"}, 70, {"new": 1})


# Knobs


@each_case(
    ("given", "choices", "kept"),
    [
        ({"tone": ["calm", "worried"]}, {"tone": ("calm", "worried")}, {}),
        ({"tone": "calm"}, {"tone": ("calm",)}, {}),
        ({"tone": ["calm", "calm"]}, {}, {"tone": ["calm", "calm"]}),
        ({"tone": []}, {}, {"tone": []}),
        ({"tone": ["calm", 1]}, {}, {"tone": ["calm", 1]}),
        ({"tone of voice": ["calm"]}, {}, {"tone of voice": ["calm"]}),
        ({"level": {"from": 1, "to": None}}, {}, {"level": {"from": 1, "to": None}}),
        ({"choices": {"tone": ["calm"]}, "tone": ["cross"]}, {"tone": ("calm",)}, {"tone": ["cross"]}),
        ({"tone": ["cross"], "choices": {"tone": ["calm"]}}, {"tone": ("calm",)}, {"tone": ["cross"]}),
        ({"choices": "free"}, {}, {"choices": "free"}),
        ({"not_understood": {"a": 1}}, {}, {"a": 1}),
        ({"not_understood": ["a"]}, {}, {"not_understood": ["a"]}),
    ],
)
def test_knobs_are_choices_or_are_kept(given: Any, choices: Any, kept: Any) -> None:
    knobs = scenario(variation_knobs=given).variation_knobs
    assert (knobs.choices, knobs.not_understood) == (choices, kept)
    assert (knobs.shuffle, knobs.paraphrase) == ((), False)
    again = type(knobs).model_validate_json(knobs.model_dump_json())
    assert again == knobs


def test_a_scenario_without_unknown_knobs_is_written_as_before() -> None:
    one = scenario(variation_knobs={"choices": {"tone": ["calm"]}}, persona={"monthly_income": 3400})
    assert json.loads(one.variation_knobs.model_dump_json()) == {
        "choices": {"tone": ["calm"]},
        "shuffle": [],
        "paraphrase": False,
    }
    fields = "fictional description name age city state zip_code county language monthly_income household_size coverage"
    assert list(one.persona.model_dump()) == [*fields.split(), "attributes"]
    assert one.persona.model_dump_json().count('"monthly_income":3400.0') == 1


def test_a_result_of_a_spec_scenario_is_a_trial_result(run: Run) -> None:
    (line,) = (run("bare") / storage.RESULTS).read_bytes().splitlines()
    record = json.loads(line)
    del record["chain"]
    assert TrialResult.model_validate_json(json.dumps(record)).scenario_id == "bare"
