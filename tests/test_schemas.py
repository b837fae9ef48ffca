"""The records: the spec's own examples, strictness, answer keys, turns, and the exported JSON Schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from src.errors import InputError
from src.planning.study_file import make_study
from src.records.study import ModelSettings, Study, TargetOptions
from src.schemas import (
    AnswerKey,
    AnyOf,
    Claim,
    Condition,
    CostIfWrong,
    ExtractorOutput,
    Persona,
    QuestionerInput,
    QuestionerOutput,
    Record,
    ResultLine,
    Scenario,
    ScorerOutput,
    VariationKnobs,
    VerifierOutput,
    agent_contracts,
    json_schemas,
    point_facts,
    point_name,
    write_json_schemas,
)
from tests.cases import each_case
from tests.helpers import ROOT, fact_json, scenario, scenario_json

# Copied from the specification, v0.1.
SPEC_KEY = """
    {
      "canonical_facts": [
        {
          "fact_id": "F1",
          "statement": "Medicare Advantage plans have provider networks.",
          "rationale": "MA plans may restrict which clinicians are in-network.",
          "source": "CMS Medicare & You 2024",
          "severity_if_wrong": "medium"
        }
      ],
      "required_points": ["F1", "F2"],
      "disallowed_claims": [
        "Claiming specific clinician network participation without lookup"
      ]
    }
"""
SPEC_QUESTIONER = """
    {
      "turns": [
        {
          "turn_id": "Q1",
          "user_message": "I’m trying to decide between Original Medicare and Medicare Advantage. What’s the difference?"
        }
      ]
    }
"""
SPEC_EXTRACTOR = """
    {
      "claims": [
        {
          "claim_id": "C1",
          "text": "Medicare Advantage plans use provider networks.",
          "type": "factual",
          "confidence": "high",
          "verifiable": true,
          "quote_spans": [{"start": 12, "end": 64}]
        }
      ]
    }
"""
SPEC_VERIFIER = """
    {
      "verdicts": [
        {
          "claim_id": "C1",
          "label": "SUPPORTED",
          "evidence": ["F1"],
          "severity": "none",
          "notes": ""
        }
      ]
    }
"""
SPEC_SCORER = """
    {
      "scores": {
        "accuracy": 0.8,
        "completeness": 0.5,
        "safety_risk": 0.1,
        "calibration": 0.7
      },
      "missing_required_points": ["F2"],
      "error_categories": ["omission"]
    }
"""
SPEC_SCENARIO_FIELDS = (
    "scenario_id title effective_date persona scripted_turns variation_knobs answer_key rubric_version"
)
SPEC_RESULT_FIELDS = "trial_id scenario_id target conversation claims verdicts final_scores flags"


def key_json(**changes: Any) -> dict[str, Any]:
    return {"canonical_facts": [fact_json("F1"), fact_json("F2")], "required_points": ["F1"], **changes}


def refused(record: type[Record], document: Any) -> str:
    """The message with which a document is turned away."""
    with pytest.raises(ValidationError) as caught:
        record.model_validate_json(json.dumps(document))
    return str(caught.value)


def contains(whole: Any, part: Any) -> bool:
    """Whether every value of `part` is in `whole`, unchanged."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(name in whole and contains(whole[name], part[name]) for name in part)
    if isinstance(part, list):
        return isinstance(whole, list) and len(whole) == len(part) and all(map(contains, whole, part))
    return bool(whole == part and type(whole) is type(part))


@each_case(
    ("record", "example"),
    [
        (QuestionerOutput, SPEC_QUESTIONER),
        (ExtractorOutput, SPEC_EXTRACTOR),
        (VerifierOutput, SPEC_VERIFIER),
        (ScorerOutput, SPEC_SCORER),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_examples_of_the_spec_are_accepted_and_come_back_unchanged(record: type[Record], example: str) -> None:
    assert contains(record.model_validate_json(example).model_dump(mode="json"), json.loads(example))


def test_the_answer_key_of_the_spec_is_accepted_unchanged() -> None:
    key = AnswerKey.model_validate_json(SPEC_KEY)
    assert contains(key.model_dump(mode="json"), json.loads(SPEC_KEY))


def test_answer_key_of_the_spec_in_a_scenario_that_has_its_second_fact() -> None:
    key = json.loads(SPEC_KEY)
    key["canonical_facts"].append(fact_json("F2", "A second fact, which the example names and does not show."))
    one = scenario(answer_key=key)
    assert contains(one.answer_key.model_dump(mode="json"), key)
    assert [(claim.claim_id, claim.statement) for claim in one.answer_key.disallowed()] == [
        ("D1", "Claiming specific clinician network participation without lookup")
    ]


def test_a_scenario_may_not_require_a_fact_it_does_not_hold() -> None:
    assert "names 'F2', which is not a fact of this key (F1)" in refused(
        Scenario, scenario_json(answer_key=json.loads(SPEC_KEY))
    )


def test_scenario_and_result_have_the_fields_of_the_spec() -> None:
    asked_for = SPEC_SCENARIO_FIELDS.split()
    assert [name for name in Scenario.model_fields if name in asked_for] == asked_for
    assert set(SPEC_RESULT_FIELDS.split()) <= set(ResultLine.model_fields)
    assert set(Scenario.model_json_schema()["required"]) == set(SPEC_SCENARIO_FIELDS.split())


def test_empty_persona_and_knobs_are_enough_as_the_spec_has_bare_dicts() -> None:
    one = scenario(persona={}, variation_knobs={})
    assert one.persona == Persona.model_validate({})
    assert one.variation_knobs == VariationKnobs()


def test_questioner_input_of_the_spec() -> None:
    asked = QuestionerInput.model_validate_json(json.dumps({"scenario": scenario_json(), "seed": 42}))
    assert (asked.seed, asked.scenario.scenario_id) == (42, "s1")


FREE = (("persona",), ("variation_knobs",))
"""What the specification leaves free."""


def paths(document: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to every object of a document."""
    found = [here] if isinstance(document, dict) else []
    inner = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    return found + [path for name, value in inner for path in paths(value, (*here, name))]


@each_case(
    ("record", "example"),
    [
        (Scenario, json.dumps(scenario_json(variation_knobs={"paraphrase": False}))),
        (QuestionerOutput, SPEC_QUESTIONER),
        (ExtractorOutput, SPEC_EXTRACTOR),
        (VerifierOutput, SPEC_VERIFIER),
        (ScorerOutput, SPEC_SCORER),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_unknown_fields_are_rejected_at_every_level(record: type[Record], example: str) -> None:
    places = paths(json.loads(example))
    assert len(places) >= 2
    for path in places:
        document = json.loads(example)
        place = document
        for step in path:
            place = place[step]
        place["unknown_field"] = 1
        if record is Scenario and path[:1] in FREE:
            assert Scenario.model_validate_json(json.dumps(document)), path
        else:
            assert "unknown_field" in refused(record, document), path


def test_records_are_frozen() -> None:
    one = scenario()
    with pytest.raises(ValidationError, match="frozen"):
        one.title = "Another"
    with pytest.raises(ValidationError, match="frozen"):
        one.answer_key.canonical_facts[0].statement = "Another"
    assert isinstance(one.scripted_turns, tuple), "a list inside a frozen record could still be changed"


def every_record(record: type[Record] = Record) -> list[type[Record]]:
    return [record] + [inner for sub in record.__subclasses__() for inner in every_record(sub)]


WRITTEN_BY_USERS = {"ModelSettings", "TargetOptions", "ExecutionOptions", "JudgeOptions", "RegistrationText", "Study"}
"""Python code may pass lists for tuples and names for models; files are read with `strict=True` (the next test)."""


def test_every_record_is_frozen_strict_and_closed() -> None:
    records = every_record()
    assert len(records) > 40
    assert {record.__name__ for record in records} >= WRITTEN_BY_USERS
    for record in records:
        config, name = record.model_config, record.__name__
        # The first reads the beginning of a longer record; the specification leaves personas free.
        extra = {"CallHead": "ignore", "Persona": "allow"}.get(name, "forbid")
        strict = name not in WRITTEN_BY_USERS
        assert (config.get("frozen"), config.get("strict"), config.get("extra")) == (True, strict, extra), record


@each_case(
    ("name", "value"),
    [
        ("repeats", "3"),
        ("repeats", 3.0),
        ("repeats", True),
        ("paraphrase", 1),
        ("title", 4),
        ("temperature", "0"),
        ("plan_year", "2026"),
        ("targets", [{"model": "fake:careful", "max_tokens": "100"}]),
        ("targets", [{"model": "fake:careful", "temperature": True}]),
        ("registration", {"primary_outcome": 1}),
        ("requests_per_minute", {"openai": "500"}),
    ],
)
def test_nothing_in_a_study_is_coerced_either(name: str, value: Any) -> None:
    study = {"scenarios": ["a.json"], "targets": ["fake:careful"]}
    assert make_study(study).targets == (TargetOptions(model="fake:careful"),)
    with pytest.raises(InputError, match=f"^Field {name}"):
        make_study({**study, name: value})


def test_a_study_in_python_takes_lists_and_plain_names() -> None:
    study = Study(scenarios=["a.json"], targets=["fake:careful"])  # type: ignore[arg-type]
    assert study.scenarios == ("a.json",)
    assert study.targets == (TargetOptions(model="fake:careful"),)
    with pytest.raises(ValidationError, match="frozen"):
        study.seed = 7


def test_the_schema_of_a_study_allows_plain_names_of_models() -> None:
    models = json.loads(json_schemas()["Study.schema.json"])["$defs"]
    for kind in (ModelSettings, TargetOptions):
        model = models[kind.__name__]
        assert model["anyOf"][0]["type"] == "string"
        assert set(model["anyOf"][1]["properties"]) == set(kind.model_fields)


@each_case(
    ("field", "value"),
    [
        ("title", 4),
        ("effective_date", 20260101),
        ("effective_date", "01/01/2026"),
        ("persona", {"fictional": False}),
        ("persona", {"fictional": 1}),
        ("persona", ["age"]),
        ("variation_knobs", ["tone"]),
        ("rubric_version", 1),
        ("scripted_turns", {"turn_id": "Q1", "user_message": "?"}),
    ],
)
def test_nothing_is_coerced(field: str, value: Any) -> None:
    assert field in refused(Scenario, scenario_json(**{field: value}))


def test_numbers_and_flags_of_outputs_are_not_coerced() -> None:
    scores = json.loads(SPEC_SCORER)
    for wrong in ("0.8", True, 1.0001, -0.1):
        scores["scores"]["accuracy"] = wrong
        assert "accuracy" in refused(ScorerOutput, scores)
    claims = json.loads(SPEC_EXTRACTOR)
    for not_a_flag in ("true", 1, None):
        claims["claims"][0]["verifiable"] = not_a_flag
        assert "verifiable" in refused(ExtractorOutput, claims)


@each_case(
    ("name", "value"), [("label", "supported"), ("label", "MAYBE"), ("severity", "critical"), ("evidence", "F1")]
)
def test_closed_lists_are_closed(name: str, value: str) -> None:
    verdicts = json.loads(SPEC_VERIFIER)
    verdicts["verdicts"][0][name] = value
    assert name in refused(VerifierOutput, verdicts)


def test_a_claim_needs_a_place_in_the_reply() -> None:
    claims = json.loads(SPEC_EXTRACTOR)
    claims["claims"][0]["quote_spans"] = []
    assert "quote_spans" in refused(ExtractorOutput, claims)
    claims["claims"][0]["quote_spans"] = [{"start": -1, "end": 4}]
    assert "start" in refused(ExtractorOutput, claims)


def test_a_span_is_exact_unless_it_says_otherwise() -> None:
    claim = Claim.model_validate_json(json.dumps(json.loads(SPEC_EXTRACTOR)["claims"][0]))
    assert (claim.quote_spans[0].match, claim.turn_id) == ("exact", None)


@each_case("wrong", ["", "a b", "../up", "a/b", "a.b", "-a", "x" * 65, "é", "a\n", "con:"])
def test_ids_cannot_climb_or_confuse(wrong: str) -> None:
    assert "scenario_id" in refused(Scenario, scenario_json(scenario_id=wrong))
    assert "turn_id" in refused(Scenario, scenario_json(scripted_turns=[{"turn_id": wrong, "user_message": "?"}]))


def test_disallowed_claims_are_numbered_by_position() -> None:
    key = scenario().answer_key
    assert [(claim.claim_id, claim.statement) for claim in key.disallowed()] == [
        ("D1", "Naming a doctor as in-network"),
        ("D2", "Promising a price"),
    ]
    assert key.fact_ids() == {"F1", "F2"}
    assert key.evidence_ids() == {"F1", "F2", "D1", "D2"}


@each_case("fact_id", ["D1", "D12", "D", "1F", "F 1", ""])
def test_no_fact_may_take_an_id_of_a_disallowed_claim(fact_id: str) -> None:
    assert "fact_id" in refused(AnswerKey, key_json(canonical_facts=[fact_json(fact_id)], required_points=[]))


@each_case("fact_id", ["Dx", "Drug-1", "d1", "F1"])
def test_other_ids_with_a_d_are_free(fact_id: str) -> None:
    key = AnswerKey.model_validate_json(json.dumps(key_json(canonical_facts=[fact_json(fact_id)], required_points=[])))
    assert key.fact_ids() == {fact_id}


def test_required_points_are_facts_or_any_of_groups() -> None:
    key = AnswerKey.model_validate_json(json.dumps(key_json(required_points=["F1", {"any_of": ["F1", "F2"]}])))
    assert [point_name(point) for point in key.required_points] == ["F1", "F1|F2"]
    assert [point_facts(point) for point in key.required_points] == [("F1",), ("F1", "F2")]
    assert isinstance(key.required_points[1], AnyOf)


@each_case(
    ("points", "said"),
    [
        (["F9"], "names 'F9', which is not a fact of this key (F1, F2)"),
        ([{"any_of": ["F1", "F9"]}], "names 'F9'"),
        (["F1", "F1"], "'F1' appears more than once"),
        ([{"any_of": ["F1", "F2"]}, {"any_of": ["F1", "F2"]}], "'F1|F2' appears more than once"),
        ([{"any_of": ["F1"]}], "any_of"),
        (["D1"], "required_points"),
    ],
)
def test_required_points_that_cannot_be_met_are_refused(points: list[Any], said: str) -> None:
    assert said in refused(Scenario, scenario_json(answer_key=key_json(required_points=points)))


def test_duplicate_ids_are_refused() -> None:
    assert "fact_id 'F1' appears more than once" in refused(
        AnswerKey, key_json(canonical_facts=[fact_json("F1"), fact_json("F1")])
    )
    turns = [{"turn_id": "Q1", "user_message": "One?"}, {"turn_id": "Q1", "user_message": "Two?"}]
    assert "turn_id 'Q1' appears more than once" in refused(Scenario, scenario_json(scripted_turns=turns))


def test_no_turns_and_no_facts_are_refused() -> None:
    assert "scripted_turns" in refused(Scenario, scenario_json(scripted_turns=[]))
    assert "canonical_facts" in refused(AnswerKey, key_json(canonical_facts=[], required_points=[]))


def test_a_key_may_refer_to_library_facts_and_name_them_as_its_own() -> None:
    refers = {"F2": "B-part-b-premium", "F3": "B-{{state}}-medigap-right"}
    made = key_json(canonical_facts=[], library_facts=refers, required_points=["F2", {"any_of": ["F2", "F3"]}])
    key = AnswerKey.model_validate_json(json.dumps(made))
    assert key.fact_ids() == {"F2", "F3"}
    assert json.loads(key.model_dump_json()) == {**made, "disallowed_claims": []}
    assert "library_facts" not in AnswerKey.model_validate_json(json.dumps(key_json())).model_dump()


@each_case(
    ("refers", "said"),
    [
        ({"F1": "B-part-b-premium"}, "answer_key fact_id 'F1' appears more than once"),
        ({"F3": "part-b-premium"}, "library_facts"),
        ({"F3": "B-Part-B"}, "library_facts"),
        ({"F3": "B-" + "a" * 90}, "library_facts"),
        ({"D1": "B-part-b-premium"}, "library_facts"),
    ],
)
def test_a_reference_that_cannot_be_meant_is_refused(refers: dict[str, str], said: str) -> None:
    assert said in refused(AnswerKey, key_json(library_facts=refers))


@each_case(
    ("cost", "said"),
    [
        ({"cost_class": "priced"}, "an unpriced cost has no formula; any other cost has one"),
        ({"cost_class": "unpriced", "formula": "1"}, "an unpriced cost has no formula"),
        ({"cost_class": "priced", "formula": "1", "horizon": []}, "horizon must hold different years"),
        ({"cost_class": "priced", "formula": "1", "horizon": [10, 1]}, "from the shortest to the longest"),
        ({"cost_class": "dear", "formula": "1"}, "cost_class"),
    ],
)
def test_a_cost_that_makes_no_sense_is_refused(cost: dict[str, Any], said: str) -> None:
    assert said in refused(CostIfWrong, cost)


def test_a_turns_own_required_points_join_the_scenarios_each_once() -> None:
    turns: list[dict[str, Any]] = [
        {"turn_id": "Q1", "user_message": "One?", "required_points": ["F2", {"any_of": ["F1", "F2"]}]},
        {"turn_id": "Q2", "user_message": "Two?", "required_points": ["F1"], "question_group": "g1"},
    ]
    key = scenario_json()["answer_key"] | {"required_points": ["F1"]}
    one = scenario(scripted_turns=turns, answer_key=key)
    assert [point_name(point) for point in one.all_required_points()] == ["F1", "F2", "F1|F2"]
    turns[0]["required_points"] = ["F7"]
    assert "turn Q1 required_points names 'F7'" in refused(Scenario, scenario_json(scripted_turns=turns))


def test_a_condition_says_something_and_not_of_the_first_turn() -> None:
    assert "at least one phrase" in refused(Condition, {})
    conditional = {"turn_id": "Q2", "user_message": "And?", "condition": {"unless_last_reply_mentions": ["premium"]}}
    first = {"turn_id": "Q1", "user_message": "Well?"}
    kept = scenario(scripted_turns=[first, conditional]).scripted_turns[1].condition
    assert kept is not None
    assert (kept.unless_last_reply_mentions, kept.if_last_reply_mentions) == (("premium",), ())
    assert "no earlier reply" in refused(Scenario, scenario_json(scripted_turns=[conditional, first]))


@each_case(
    ("message", "said"),
    [
        ("I live in {{persona.town}}.", "unknown slot {{persona.town}}. Use {{persona.FIELD}}"),
        ("I am {{persona.age}}.", "unknown slot {{persona.age}}"),
        ("{{persona.attributes.doctor}}?", "unknown slot {{persona.attributes.doctor}}"),
        ("{{persona.attributes}}?", "unknown slot {{persona.attributes}}"),
        ("{{persona.fictional}}?", "unknown slot {{persona.fictional}}"),
        ("{{persona.model_fields}}?", "unknown slot {{persona.model_fields}}"),
        ("{{knob.tone}}?", "unknown slot {{knob.tone}}"),
        ("{{}}?", "unknown slot {{}}"),
        ("{{persona.city?", "unbalanced {{ or }}"),
        ("persona.city}}?", "unbalanced {{ or }}"),
    ],
)
def test_slots_must_name_something_in_the_scenario(message: str, said: str) -> None:
    turns = [{"turn_id": "Q1", "user_message": message}]
    assert said in refused(Scenario, scenario_json(scripted_turns=turns))


def test_slot_values_come_from_persona_attributes_and_knobs() -> None:
    one = scenario(
        persona={
            "city": "Lakemont",
            "age": 65,
            "monthly_income": 3400,
            "attributes": {"doctor": "Dr. Invented", "n": 2},
        },
        variation_knobs={"choices": {"tone": ["calm", "worried"]}},
        scripted_turns=[{"turn_id": "Q1", "user_message": "{{ persona.city }} {{knob.tone}} {{persona.attributes.n}}"}],
    )
    slots = ["persona.city", "persona.age", "persona.monthly_income", "persona.attributes.doctor", "knob.tone"]
    assert [one.slot_value(slot, {"tone": "calm"}) for slot in slots] == [
        "Lakemont",
        "65",
        "3400",
        "Dr. Invented",
        "calm",
    ]
    with pytest.raises(KeyError):
        one.slot_value("persona.county", {})


@each_case(
    ("knobs", "said"),
    [
        ({"choices": {"tone": []}}, "knob 'tone' needs one or more different values"),
        ({"choices": {"tone": ["a", "a"]}}, "knob 'tone' needs one or more different values"),
        ({"shuffle": [["Q1", "Q9"]]}, "names turn 'Q9'; the turns are Q1, Q2, Q3"),
        ({"shuffle": [["Q1", "Q1"]]}, "'Q1' appears more than once"),
        ({"shuffle": [["Q1", "Q2"], ["Q2"]]}, "'Q2' appears more than once"),
        ({"shuffle": [["Q1", "Q3"]]}, "whose condition depends on i"),
    ],
)
def test_knobs_that_make_no_sense_are_refused(knobs: dict[str, Any], said: str) -> None:
    turns = [
        {"turn_id": "Q1", "user_message": "One?"},
        {"turn_id": "Q2", "user_message": "Two?"},
        {"turn_id": "Q3", "user_message": "Three?", "condition": {"if_last_reply_mentions": ["two"]}},
    ]
    assert said in refused(Scenario, scenario_json(scripted_turns=turns, variation_knobs=knobs))


def test_every_agents_input_and_output_is_exported() -> None:
    names = {f"{record.__name__}.schema.json" for record in agent_contracts()}
    assert len(names) == 13
    assert names <= set(json_schemas())


def test_exported_schemas_are_current() -> None:
    stored = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "schemas").iterdir()}
    assert stored == json_schemas(), "run: make schemas"


def test_exported_schemas_are_closed_and_written_as_they_are_checked(tmp_path: Path) -> None:
    write_json_schemas(tmp_path / "deep" / "schemas")
    assert {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "deep" / "schemas").iterdir()} == (
        json_schemas()
    )
    for name, text in json_schemas().items():
        assert json.loads(text)["additionalProperties"] is False, name


@each_case("path", sorted((ROOT / "scenarios").rglob("*.json")), ids=lambda path: path.stem)
def test_shipped_scenarios_are_valid_and_their_personas_invented(path: Path) -> None:
    one = Scenario.model_validate_json(path.read_text(encoding="utf-8"))
    assert one.persona.fictional is True
    assert one.all_required_points()
