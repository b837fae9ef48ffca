"""`validate --strict` and `lint`: the faults that they report in a scenario file, and which are only warnings."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from src.inputs.authoring.lint import Linted, lint, lint_files
from src.planning.house_rules import BrokenRule
from src.planning.library import Library
from src.planning.scenario_files import read_scenario
from tests.cases import each_case
from tests.helpers import ROOT
from tests.runs import call

BANK = ROOT / "scenarios"
TOPICS = BANK / "v1" / "topics"
COBRA = TOPICS / "cobra.json"
Document = dict[str, Any]
Change = Callable[[Document], object]


def fact(fact_id: str, statement: str, **changes: Any) -> Document:
    return {
        "fact_id": fact_id,
        "statement": statement,
        "rationale": "",
        "source": "A book",
        "severity_if_wrong": "low",
        "valid_from": "2026-01-01",
        "confirmed_by": "primary",
        **changes,
    }


def good() -> Document:
    """A small scenario that breaks no rule."""
    return {
        "scenario_id": "mine",
        "title": "A small scenario",
        "effective_date": "2026-01-01",
        "themes": ["Part B deductible"],
        "persona": {"name": "Ada Inventado", "city": "Lakemont", "attributes": {}},
        "scripted_turns": [
            {
                "turn_id": "Q1",
                "user_message": "How much is the Part B deductible, and do plans have networks?",
                "required_points": ["F1"],
                "background": ["F2"],
            }
        ],
        "variants": [{"variant_id": "plain"}, {"variant_id": "other", "turns": {"Q1": "What’s the deductible?"}}],
        "variation_knobs": {},
        "answer_key": {
            "canonical_facts": [
                fact("F1", "The Part B deductible is {{figure.part_b_deductible}} a year."),
                fact("F2", "Medicare Advantage plans have provider networks."),
            ],
            "required_points": ["F1"],
            "disallowed_claims": ["Claiming to have looked something up"],
        },
        "rubric_version": "v1",
    }


def cobra() -> Document:
    return dict(json.loads(COBRA.read_text(encoding="utf-8")))


def turn(**changes: Any) -> Change:
    return lambda made: made["scripted_turns"][0].update(changes)


def asks(text: str) -> Change:
    return turn(user_message=text)


def second_fact(**changes: Any) -> Change:
    return lambda made: made["answer_key"]["canonical_facts"][1].update(changes)


def without(name: str) -> Change:
    return lambda made: made["answer_key"]["canonical_facts"][1].pop(name)


def variant(**changes: Any) -> Change:
    return lambda made: made["variants"][1].update(changes)


def persona(**changes: Any) -> Change:
    return lambda made: made["persona"].update(changes)


def field(name: str, value: Any) -> Change:
    return lambda made: made.update({name: value})


def checked(folder: Path, made: Document, *changes: Change) -> tuple[int, str, str, Path]:
    made = copy.deepcopy(made)
    for change in changes:
        change(made)
    path = folder / "planted.json"
    path.write_text(json.dumps(made), encoding="utf-8")
    return *call("validate", "--strict", path), path


def findings(folder: Path, made: Document, *changes: Change) -> list[str]:
    """What validate reports for a faulty file: exit code 2, and one line per fault with the file and the field."""
    code, out, err, path = checked(folder, made, *changes)
    assert (code, out) == (2, "")
    lines = err.splitlines()
    start = f"medicare-eval: {path}: "
    assert all(line.startswith(start) and line.endswith(".") for line in lines), err
    return [line.removeprefix(start).removeprefix("field ") for line in lines]


def passes(folder: Path, made: Document, *changes: Change) -> str:
    code, out, err, _ = checked(folder, made, *changes)
    assert (code, err) == (0, "")
    return out


# The bank


def test_the_whole_bank_passes() -> None:
    code, out, err = call("validate", "--strict", BANK)
    assert (code, err) == (0, "")
    files = sorted(BANK.rglob("*.json"))
    assert out.count(": ok: ") == len(files) >= 25
    assert all(f"{path}: ok: " in out for path in files)
    assert out.endswith(f"{len(files)} scenarios valid. The facts listed were not confirmed in the primary source.\n")


def test_what_the_planted_faults_start_from_passes(tmp_path: Path) -> None:
    assert "planted.json: ok: mine, 1 turn, 2 facts, 1 required point\n" in passes(tmp_path, good())
    assert "planted.json: ok: cobra, 5 turns, 26 facts, 9 required points\n" in passes(tmp_path, cobra())


# One planted fault each

F1, F2 = "answer_key.canonical_facts[0]", "answer_key.canonical_facts[1]"


@each_case(
    ("change", "said"),
    [
        pytest.param(turn(required_points=["F1", "F9"]), "turn Q1 required_points names 'F9', which is not a fact of this key (F1, F2)", id="unknown fact"),
        pytest.param(turn(partial_points=["F9"]), "turn Q1 partial_points names 'F9', which is not a fact", id="unknown partial fact"),
        pytest.param(turn(background=["F2", "F9"]), "turn Q1 background names 'F9', which is not a fact", id="unknown background fact"),
        pytest.param(second_fact(statement="Plans have networks; plans have rules."), f"{F2}: F2 has a semicolon; write one fact for each assertion, with one figure at most", id="compound"),
        pytest.param(second_fact(statement="Plan A costs $5 a month, or $7 with drugs."), f"{F2}: F2 states several amounts; write one fact for each assertion", id="two amounts"),
        pytest.param(turn(background=[]), f"{F2}: no turn uses F2; list it in a turn's required_points", id="unused fact"),
        pytest.param(turn(required_points=[], background=["F1", "F2"]), "answer_key.required_points: F1 is required, but no turn asks for it", id="point no turn asks for"),
        pytest.param(lambda made: made["answer_key"].update(required_points=["F1", {"any_of": ["F1", "F2"]}]), "answer_key.required_points: F1|F2 is required, but no turn asks for it", id="choice no turn asks for"),
        pytest.param(without("valid_from"), f"{F2}: F2 has no valid_from; add the first day", id="undated"),
        pytest.param(without("confirmed_by"), f"{F2}: F2 has no confirmed_by; use primary, secondary or derived", id="unconfirmed"),
        pytest.param(second_fact(valid_until="2026-11-15"), f"{F2}: F2 expired on 2026-11-15", id="expired"),
        pytest.param(second_fact(valid_from="2026-11-17"), f"{F2}: F2 is not valid until 2026-11-17", id="not yet valid"),
        pytest.param(second_fact(statement="The Part B premium in 2026 is $202.90 a month."), f"{F2}: F2 states a dollar amount for one year; move it to facts/<year>.json and write {{{{figure.NAME}}}} here", id="figure of one year"),
        pytest.param(asks("My friend says the Part B deductible is $500 a year. Right?"), "turn Q1 of variant plain: the question says $500, which no fact of the key states; list it in misstates if it is wrong on purpose", id="amount of no fact"),
        pytest.param(variant(turns={"Q1": "The Part B deductible is $500 a year, right?"}), "turn Q1 of variant other: the question says $500, which no fact of the key states; list it in misstates if it is wrong on purpose", id="amount of no fact in a variant"),
        pytest.param(asks("My number is 123-45-6789. What now?"), "turn Q1: '123-45-6789' looks like a Social Security number", id="ssn"),
        pytest.param(asks("My number is 123 45 6789. What now?"), "turn Q1: '123 45 6789' looks like a Social Security number", id="ssn with spaces"),
        pytest.param(asks("My card says 1EG4-TE5-MK73. What now?"), "turn Q1: '1EG4-TE5-MK73' looks like a Medicare number", id="mbi"),
        pytest.param(asks("My card says 1EG4TE5MK73. What now?"), "turn Q1: '1EG4TE5MK73' looks like a Medicare number", id="mbi without dashes"),
        pytest.param(asks("Call me at (614) 234-5678?"), "turn Q1: '(614) 234-5678' looks like a phone number", id="phone"),
        pytest.param(asks("Call me at 614.234.5678?"), "turn Q1: '614.234.5678' looks like a phone number", id="phone with dots"),
        pytest.param(asks("Call +1 614-234-5678?"), "looks like a phone number", id="phone with country"),
        pytest.param(persona(attributes={"number": "123-45-6789"}), "persona: '123-45-6789' looks like a Social Security number", id="ssn of the persona"),
        pytest.param(persona(description="Her card: 1EG4-TE5-MK73."), "persona: '1EG4-TE5-MK73' looks like a Medicare number", id="mbi of the persona"),
        pytest.param(variant(turns={"Q1": "Call me at 614-234-5678?"}), "variant other turn Q1: '614-234-5678' looks like a phone number", id="phone of a variant"),
        pytest.param(variant(persona={"number": "123-45-6789"}), "variant other persona: '123-45-6789' looks like a Social Security number", id="ssn of a variant"),
        pytest.param(asks("Is the Part B deductible $283?"), "turn Q1 of variant plain: the question gives away $283 from F1, which the answer should supply", id="hint"),
        pytest.param(asks("Is the Part B deductible {{figure.part_b_deductible}}?"), "turn Q1 of variant plain: the question gives away $283 from F1, which the answer should supply", id="hint by a slot"),
        pytest.param(variant(turns={"Q1": "Is the Part B deductible $283?"}), "turn Q1 of variant other: the question gives away $283 from F1, which the answer should supply", id="hint of a variant"),
        pytest.param(asks("What is Part B? Be sure to say how much."), "turn Q1 of variant plain: 'Be sure to' tells the target how to answer", id="scaffolding"),
        pytest.param(asks("What is Part B? Please list all the costs."), "turn Q1 of variant plain: 'list all' tells the target how to answer", id="scaffolding list"),
        pytest.param(asks("Explain Part B step by step."), "turn Q1 of variant plain: 'step by step' tells the target how to answer", id="scaffolding steps"),
        pytest.param(variant(turns={"Q1": "What is Part B? Don’t forget the networks."}), "turn Q1 of variant other: 'Don’t forget' tells the target", id="scaffolding of a variant"),
        pytest.param(field("title", "REPLACE: a title"), "title: the placeholder REPLACE is still there; write your own text", id="placeholder"),
        pytest.param(second_fact(source="REPLACE"), f"{F2}.source: the placeholder REPLACE is still there; write your own text", id="placeholder in a fact"),
        pytest.param(variant(turns={"Q1": "REPLACE: a question"}), "variants[1].turns.Q1: the placeholder REPLACE is still there; write your own text", id="placeholder in a variant"),
        pytest.param(turn(question_group="lookup-deductible"), "turn Q1 required_points: group lookup-deductible is for questions that must be looked up; leave required_points and partial_points empty", id="points of a lookup"),
        pytest.param(field("rubric_version", "v9"), "rubric_version: there is no rubric 'v9' (v0.1, v1), so v0.1 is used; name one of these, or write your own", id="unknown rubric"),
        pytest.param(field("themes", []), "themes: there are none; add one or two", id="no themes"),
        pytest.param(persona(household={"pets": 2}), "persona: household is a field of your own; check the spelling, or move it into attributes", id="own persona field"),
        pytest.param(persona(household={"pets": 2}, citty="Lakemont"), "persona: household, citty are fields of your own; check the spelling, or move them into attributes", id="own persona fields"),
        pytest.param(persona(age="sixty"), "persona.age: must be a whole number (got 'sixty')", id="unusual age"),
        pytest.param(persona(attributes={"x": {"y": 1}}), "persona.attributes.x: ", id="nested attribute"),
        pytest.param(field("variation_knobs", {"reading_level": 6}), "variation_knobs.reading_level: it is kept but changes nothing; to use it in turns, give it a plain name and a list of texts", id="unknown knob"),
        pytest.param(field("variation_knobs", {"tone": ["calm", "worried"]}), "variation_knobs.tone: it is kept but changes nothing: no turn uses {{knob.tone}}", id="unused plain choice"),
        pytest.param(field("variation_knobs", {"choices": {"tone": ["calm"]}}), "variation_knobs.tone: it is kept but changes nothing: no turn uses {{knob.tone}}", id="unused choice"),
        pytest.param(field("variation_knobs", {"shuffle": True}), "variation_knobs.shuffle: it is kept but changes nothing: shuffle must be a list of groups of turn ids", id="shuffle of another kind"),
        pytest.param(field("variation_knobs", {"paraphrase": "never"}), "variation_knobs.paraphrase: it is kept but changes nothing: paraphrase must be true or false", id="paraphrase of another kind"),
        pytest.param(turn(required_points=[], background=[]), "scripted_turns: no turn says which facts it asks for; add required_points to the turns", id="points of no turn"),
    ],
)  # fmt: skip
def test_a_planted_fault_is_reported_with_its_file_and_field(change: Change, said: str, tmp_path: Path) -> None:
    (found,) = findings(tmp_path, good(), change)
    assert found.startswith(said) or ("looks like" in said and said in found)


def test_a_figure_that_no_year_has_is_reported_for_every_year_of_the_scenario(tmp_path: Path) -> None:
    unknown = second_fact(statement="The fee is {{figure.none}} a month.")
    assert findings(tmp_path, good(), unknown) == [
        f"answer_key fact F2: facts/{year}.json has no figure 'none'. Add it or check the name (plan year {year})."
        for year in (2026, 2027)
    ]
    code, out, err = call("validate", tmp_path / "planted.json")
    assert (code, out) == (2, "")
    assert "warning" not in err


def refers_to(name: str) -> Change:
    return lambda made: made["answer_key"].update(library_facts={"F3": name})


def test_a_key_may_refer_to_the_library(tmp_path: Path) -> None:
    used = turn(background=["F2", "F3"])
    assert ": ok: mine, 1 turn, 3 facts" in passes(tmp_path, good(), refers_to("B-part-b-penalty-rate"), used)
    for name, said in (
        ("B-none", "the library has no fact 'B-none'. Check the name in facts/library"),
        ("B-{{state}}-none", "no state has a fact 'B-{{state}}-none'. Check the name in facts/states"),
    ):
        for line in findings(tmp_path, good(), refers_to(name), used):
            assert line.startswith(f"answer_key.library_facts.F3: {said}")


def test_a_library_fact_that_no_turn_uses_is_a_fault_of_the_key(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, good(), refers_to("B-part-b-penalty-rate"))
    assert found.startswith("answer_key.library_facts.F3: no turn uses F3; list it in a turn's required_points")


def test_a_problem_that_every_plan_year_has_carries_no_year(tmp_path: Path) -> None:
    used = turn(background=["F2", "F3"])
    assert findings(tmp_path, good(), refers_to("B-none"), used) == [
        "answer_key.library_facts.F3: the library has no fact 'B-none'. Check the name in facts/library."
    ]
    figure_of_next_year = second_fact(statement="It is {{figure.part_d_cap}}.", valid_from="2027-01-01")
    found = findings(tmp_path, good(), figure_of_next_year)
    assert "answer_key fact F2 is valid from 2027-01-01, after plan year 2026 (plan year 2026)." in found


def test_a_fact_of_another_state_is_an_error(tmp_path: Path) -> None:
    ohio, used = persona(state="Ohio"), turn(background=["F2", "F3"])
    passes(tmp_path, good(), persona(state="California"), refers_to("B-ca-medigap-right"), used)
    (found,) = findings(tmp_path, good(), ohio, refers_to("B-ca-medigap-right"), used)
    assert found.startswith("answer_key.library_facts.F3: 'B-ca-medigap-right' holds only in CA, where this person")
    assert "B-{{state}}-..." in found
    assert call("validate", tmp_path / "planted.json").code == 2


@each_case("state", ["Ohio", "OH", " ohio ", "new york", "Puerto Rico", "DC", "Hawaii"])
def test_a_state_may_be_written_in_any_case_or_as_its_code(state: str, tmp_path: Path) -> None:
    passes(tmp_path, good(), persona(state=state))


def test_a_state_that_is_none_is_a_warning_with_its_variant(tmp_path: Path) -> None:
    said = "is no state of the United States; write its name, for example Ohio."
    assert findings(tmp_path, good(), variant(persona={"state": "Ohoi"})) == [
        f"variant other persona.state: 'Ohoi' {said}"
    ]
    code, _, err = call("validate", tmp_path / "planted.json")
    assert (code, err.count("warning: ")) == (0, 1)
    assert findings(tmp_path, good(), persona(state="Ontario"), field("variants", [])) == [
        f"persona.state: 'Ontario' {said}"
    ]


@each_case("state", ["Hawaii", None])
def test_facts_of_a_state_without_a_file_are_a_warning(state: str | None, tmp_path: Path) -> None:
    asked = (refers_to("B-{{state}}-medigap-right"), turn(background=["F2", "F3"]), field("variants", []))
    passes(tmp_path, good(), persona(state="georgia"), *asked)
    assert findings(tmp_path, good(), persona(state=state), *asked) == [
        "persona.state: the key names facts of the person's state, and facts/states has none of this state; "
        "they are left out."
    ]
    assert call("validate", tmp_path / "planted.json").code == 0


def test_a_library_fact_that_a_key_names_twice_is_a_warning(tmp_path: Path) -> None:
    def twice(made: Document) -> None:
        made["answer_key"]["library_facts"] = {"F3": "B-part-b-penalty-rate", "F4": "B-part-b-penalty-rate"}

    assert findings(tmp_path, good(), twice, turn(background=["F2", "F3", "F4"])) == [
        "answer_key.library_facts.F4: B-part-b-penalty-rate is also F3; keep one of them."
    ]
    assert call("validate", tmp_path / "planted.json").code == 0


def test_a_study_point_that_cannot_be_made_is_an_error_of_the_key(tmp_path: Path) -> None:
    """It would stop a run, so validate says so first; every plan year has it, so none is named."""
    (found,) = findings(tmp_path, good(), turn(question_group="g3"))
    assert found.startswith("scenario mine: question group g3: the study's point ")
    assert "cannot be made, because the key has none of its facts" in found
    assert "plan year" not in found
    assert call("validate", tmp_path / "planted.json").code == 2


def test_a_number_inside_a_persona_field_is_found(tmp_path: Path) -> None:
    own, number = findings(tmp_path, good(), persona(contact={"phones": ["614-234-5678"]}))
    assert own.startswith("persona: contact is a field of your own")
    assert number.startswith("persona: '614-234-5678' looks like a phone number")


@each_case(
    "changes",
    [
        pytest.param([second_fact(valid_until="2026-11-16")], id="last day"),
        pytest.param([second_fact(valid_from="2026-11-16")], id="first day"),
        pytest.param([second_fact(statement="A month of insulin costs at most $35.")], id="figure of every year"),
        pytest.param([second_fact(statement="The premium in 2026 is $202.90 a month.", valid_until="2026-12-31")], id="figure that ends"),
        pytest.param([second_fact(statement="The premium in 2026 is $202.90 a month.", only={"plan_years": [2026]})], id="figure of a limited fact"),
        pytest.param([asks("My friend says the Part B deductible is $500 a year. Right?"), turn(misstates=["$500"])], id="declared in the turn"),
        pytest.param([variant(turns={"Q1": "The Part B deductible is $500 a year, right?"}, misstates={"Q1": ["$500"]})], id="declared in the variant"),
        pytest.param([asks("Is 1-800-633-4227 the right number?")], id="1-800-MEDICARE"),
        pytest.param([asks("Is (800) 772-1213 the right number, or 1-877-486-2048, or 800.325.0778?")], id="public numbers"),
        pytest.param([asks("My number is 614-555-0123, and (614) 555-0199 at work. Will you call?")], id="invented numbers"),
        pytest.param([asks("Is 000-12-3456 a number, or 666-12-3456, or 912-34-5678, or 123-00-4567?")], id="never issued"),
        pytest.param([asks("I have {{persona.attributes.has}} on me. Is the Part B deductible that much?"), persona(attributes={"has": "$283"})], id="figure of the persona"),
        pytest.param([asks("I’m 67 and have 2 plans. What is the Part B deductible?")], id="bare numbers"),
        pytest.param([turn(required_points=[{"any_of": ["F1", "F2"]}], background=[]), lambda made: made["answer_key"].update(required_points=[{"any_of": ["F1", "F2"]}])], id="choice that is asked"),
    ],
)  # fmt: skip
def test_a_scenario_without_a_fault_passes(changes: list[Change], tmp_path: Path) -> None:
    passes(tmp_path, good(), *changes)


def test_a_hint_counts_only_for_what_the_turn_requires(tmp_path: Path) -> None:
    costs = second_fact(statement="A month of insulin costs at most $35.")
    passes(tmp_path, good(), costs, asks("I pay $35 for insulin. How much is the Part B deductible?"))
    required = turn(required_points=["F1", "F2"], background=[])
    asked = asks("I pay $35 for insulin. How much is the Part B deductible?")
    assert findings(tmp_path, good(), costs, required, asked)[0].startswith(
        "turn Q1 of variant plain: the question gives away $35 from F2"
    )


def test_a_declared_misstatement_of_the_bank_is_needed(tmp_path: Path) -> None:
    """The misinformed variant misstates an amount on purpose; undeclared, that is a fault."""
    made = json.loads((TOPICS / "part_d_costs.json").read_text(encoding="utf-8"))
    assert any(one.get("misstates") for one in made["variants"])
    for one in made["variants"]:
        one.pop("misstates", None)
    (found,) = findings(tmp_path, made)
    assert found.startswith("turn Q1 of variant misinformed: the question says $8000, which no fact of the key states")


def test_every_fault_of_every_file_is_reported_at_once(tmp_path: Path) -> None:
    names = []
    for name, change in (("a", field("rubric_version", "v9")), ("b", asks("Call 614-234-5678 step by step?"))):
        made = good()
        change(made)
        (tmp_path / f"{name}.json").write_text(json.dumps(made), encoding="utf-8")
        names.append(tmp_path / f"{name}.json")
    (tmp_path / "c.json").write_text("{", encoding="utf-8")
    code, out, err = call("validate", "--strict", tmp_path)
    assert (code, out) == (2, "")
    broken, first, second, third = err.splitlines()
    assert first.startswith(f"medicare-eval: {names[0]}: field rubric_version")
    assert second.startswith(f"medicare-eval: {names[1]}: field turn Q1: '614-234-5678'")
    assert third.startswith(f"medicare-eval: {names[1]}: field turn Q1 of variant plain: 'step by step'")
    assert broken.startswith(f"medicare-eval: {tmp_path / 'c.json'}: invalid JSON")


def test_a_year_that_lacks_a_figure_does_without_the_fact(tmp_path: Path) -> None:
    def early(made: Document) -> None:
        made["effective_date"] = "2025-01-01"
        for one in made["answer_key"]["canonical_facts"]:
            one["valid_from"] = "2025-01-01"

    lacks = second_fact(statement="The Medigap Plan K limit is {{figure.medigap_k_oop_limit}} a year.")
    passes(tmp_path, good(), early, lacks, turn(required_points=["F1", "F2"], background=[]))
    file = read_scenario(tmp_path / "planted.json")
    for year, left_out in ((2025, ["F2"]), (2026, []), (2027, ["F1", "F2"])):
        for one in file.planned(year, Library()):
            assert [lost.point for lost in one.unpublished if lost.turn_id] == left_out


def test_facts_and_plans_given_by_the_user_are_checked_too(tmp_path: Path) -> None:
    facts = json.loads((ROOT / "facts" / "2026.json").read_text(encoding="utf-8"))
    figures = {"part_b_premium": {**facts["figures"]["part_b_premium"], "status": "not_published"}}
    mine = tmp_path / "2027.json"
    new = {**facts, "plan_year": 2027, "valid_from": "2027-01-01", "valid_until": "2027-12-31", "figures": figures}
    mine.write_text(json.dumps(new), encoding="utf-8")
    code, _, err = call("validate", COBRA, "--facts", mine)
    assert code == 2
    assert f"--facts: {mine}: field figures.part_b_premium: a figure that is not_published has the value null" in err
    study = BANK / "v1" / "study" / "medicare_only.json"
    plans = json.loads((ROOT / "plans" / "invented.json").read_text(encoding="utf-8"))
    del plans["plans"]["stonebridge_ppo"]
    other = tmp_path / "plans.json"
    other.write_text(json.dumps(plans), encoding="utf-8")
    code, _, err = call("validate", study, "--invented-plans", other)
    assert code == 2
    assert f"{study}: variant ppo plan: 'stonebridge_ppo' is not in the file of invented plans" in err


def test_an_expired_fact_is_reported_by_its_position_in_the_file(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, good(), another_year_first, second_expired)
    assert found.startswith("answer_key.canonical_facts[2]: F2 expired")


def another_year_first(made: Document) -> None:
    early = fact("F0", "Medigap policies are standardized in most states.", only={"plan_years": [2025]})
    made["answer_key"]["canonical_facts"].insert(0, early)
    made["scripted_turns"][0]["background"].append("F0")


def second_expired(made: Document) -> None:
    made["answer_key"]["canonical_facts"][2]["valid_until"] = "2026-11-15"


def test_a_fact_of_a_plan_must_say_how_it_was_confirmed(tmp_path: Path) -> None:
    def of_a_plan(made: Document) -> None:
        made["plan_file"] = "invented"
        for one in made["variants"]:
            one["plan"] = "fairmeadow_hmo"

    statement = second_fact(statement="The monthly premium of {{plan.name}} is {{plan.monthly_premium}}.")
    passes(tmp_path, good(), of_a_plan, statement)
    (found,) = findings(tmp_path, good(), of_a_plan, statement, without("confirmed_by"))
    assert found.startswith(f"{F2}: F2 has no confirmed_by; use primary, secondary or derived")


def test_a_variant_with_a_bad_persona_is_reported_once(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, good(), variant(persona={"age": "sixty"}))
    assert found == "variant other persona.age: must be a whole number (got 'sixty')."


def test_validate_lists_secondary_and_derived_facts(tmp_path: Path) -> None:
    out = passes(tmp_path, cobra())
    (key, *_) = (one.scenario.answer_key for one in read_scenario(COBRA).planned(2026, Library()))
    ids = [one.fact_id for one in key.canonical_facts if one.confirmed_by == "derived"]
    assert "F10" in ids
    assert f"\n    derived   {' '.join(ids)}\n" in out
    first = lambda made: made["answer_key"]["canonical_facts"][0].update(confirmed_by="secondary")  # noqa: E731
    out = passes(tmp_path, good(), first, second_fact(confirmed_by="derived"))
    assert "\n    secondary F1\n    derived   F2\n" in out
    sure = lambda made: made["answer_key"]["canonical_facts"][0].update(statement="Part B has a deductible.")  # noqa: E731
    out = passes(tmp_path, good(), sure)
    assert len(out.splitlines()) == 2


# Without --strict


@each_case(
    "change",
    [
        without("valid_from"),
        second_fact(statement="The Part B premium in 2026 is $202.90 a month."),
        asks("Call me at 614-234-5678 and explain Part B step by step."),
        field("rubric_version", "2026-draft"),
        field("themes", []),
        persona(citty="Lakemont", age="sixty"),
        field("variation_knobs", {"reading_level": 6}),
        turn(background=[]),
        second_fact(statement="Plans have networks; plans have rules."),
    ],
)
def test_a_broken_house_rule_is_a_warning(change: Change, tmp_path: Path) -> None:
    broken = findings(tmp_path, good(), change)
    path = tmp_path / "planted.json"
    code, out, err = call("validate", path)
    assert code == 0
    start = f"medicare-eval: warning: {path}: "
    assert [line.removeprefix(start).removeprefix("field ") for line in err.splitlines()] == broken
    warnings = "1 warning" if len(broken) == 1 else f"{len(broken)} warnings"
    assert f"1 scenario valid, {warnings}." in out


@each_case(
    "change", [field("title", "REPLACE: a title"), second_fact(valid_until="2026-11-15"), persona(fictional=False)]
)
def test_what_stops_a_run_is_an_error_without_strict_too(change: Change, tmp_path: Path) -> None:
    broken = findings(tmp_path, good(), change)
    code, out, err = call("validate", tmp_path / "planted.json")
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == len(broken) == 1
    assert "warning" not in err


def test_errors_and_warnings_of_several_files_are_listed_together(tmp_path: Path) -> None:
    for name, change in (("a", field("title", "REPLACE")), ("b", field("themes", []))):
        made = good()
        change(made)
        (tmp_path / f"{name}.json").write_text(json.dumps(made), encoding="utf-8")
    code, out, err = call("validate", tmp_path)
    assert (code, out) == (2, "")
    warning, error = err.splitlines()
    assert warning.startswith(f"medicare-eval: warning: {tmp_path / 'b.json'}: field themes: ")
    assert error.startswith(f"medicare-eval: {tmp_path / 'a.json'}: field title: ")


def test_the_word_replace_is_no_placeholder_inside_a_sentence(tmp_path: Path) -> None:
    passes(tmp_path, good(), field("title", "How to REPLACE a lost card"))


# Called from Python


def test_lint_returns_problems_and_prints_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.json"
    made = good()
    path.write_text(json.dumps(made), encoding="utf-8")
    assert lint(read_scenario(path), Library(), date(2026, 11, 16)) == []
    made["title"] = "REPLACE"
    path.write_text(json.dumps(made), encoding="utf-8")
    problem = BrokenRule("title", "the placeholder REPLACE is still there; write your own text", error=True)
    assert lint(read_scenario(path), Library(), date(2026, 11, 16)) == [problem]
    found = lint_files([str(path)], Library(), date(2026, 11, 16))
    assert found == Linted(errors=[f"{path}: field title: {problem.what}."])
    assert capsys.readouterr() == ("", "")


def test_lint_uses_the_day_it_is_given(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    made = good()
    made["answer_key"]["canonical_facts"][0]["statement"] = "The most for drugs is {{figure.part_d_cap}} a year."
    path.write_text(json.dumps(made), encoding="utf-8")
    assert lint(read_scenario(path), Library(), date(2027, 1, 1)) == []
    (problem,) = lint(read_scenario(path), Library(), date(2028, 1, 1))
    expired = "F1 expired on 2027-12-31; confirm it again, or add the new plan year's figures"
    assert problem == BrokenRule("answer_key.canonical_facts[0]", expired, error=True)
