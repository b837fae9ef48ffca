"""From a scenario file to what is asked: figures of the plan year, variants, plans, dates, other words."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from src import storage
from src.planning import clock
from src.planning.fill_slots import out_of_date
from src.planning.library import Library
from src.planning.plan import make_plan
from src.planning.scenario_files import read_scenario, read_scenarios
from src.planning.study_file import make_study
from src.planning.trials import trials
from src.schemas import CanonicalFact, PlannedScenario, RunPlan, Scenario, point_name
from src.store.strict_json import sha256
from tests.cases import each_case
from tests.helpers import ROOT, fact_json, scenario, scenario_json
from tests.runs import ONE, call, make_run, shared_run

COBRA = ROOT / "scenarios" / "v1" / "topics" / "cobra.json"
STUDY = ROOT / "scenarios" / "v1" / "study"
MEDICARE_ONLY = STUDY / "medicare_only.json"
DUAL = STUDY / "dual_eligible.json"
BANK = str(ROOT / "scenarios")
OPEN_SLOT = re.compile(r"\{\{\s*(figure|plan|doctor|place|plan_year)\b")


def document(*facts: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A small scenario that the fakes have replies to: it takes the id of the first that ships."""
    made = scenario_json(scenario_id="scenario_001", **changes)
    if facts:
        made["answer_key"] = {"canonical_facts": list(facts), "required_points": [], "disallowed_claims": []}
    return made


def written(folder: Path, made: Any, name: str = "s.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(made), encoding="utf-8")
    return path


def ready(folder: Path, made: Any, year: int = 2026, library: Library | None = None) -> list[Scenario]:
    """Every variant of a document made ready."""
    file = read_scenario(written(folder, made))
    return [one.scenario for one in file.planned(year, library or Library())]


def only_fact(folder: Path, made: dict[str, Any], year: int = 2026, library: Library | None = None) -> CanonicalFact:
    (one,) = ready(folder, document(made), year, library)
    (fact,) = one.answer_key.canonical_facts
    return fact


def figure(value: str, confirmed_by: str = "primary", **changes: Any) -> dict[str, Any]:
    return {
        "value": value,
        "what": "A figure of a test",
        "source": "A book",
        "address": f"https://example.org/{confirmed_by}",
        "locator": f"row {value}",
        "confirmed_by": confirmed_by,
        **changes,
    }


def facts_file(folder: Path, year: int, figures: dict[str, dict[str, Any]] | None = None) -> Path:
    """Figures of one plan year: those given, or those that ship for 2026 with another date."""
    shipped = json.loads((ROOT / "facts" / "2026.json").read_text(encoding="utf-8"))
    made = {
        "plan_year": year,
        "valid_from": f"{year}-01-01",
        "valid_until": f"{year}-12-31",
        "compiled": "2026-11-16",
        "figures": figures or shipped["figures"],
    }
    return written(folder, made, "mine.json")


def background_files(*states: str) -> dict[str, str]:
    """What every plan may use, the library and the facts of its personas' states: file to its hash."""
    paths = sorted((ROOT / "facts" / "library").glob("*.json"))
    assert len(paths) > 20
    paths += [ROOT / "facts" / "states" / f"{state}.json" for state in states]
    return {path.relative_to(ROOT).as_posix(): sha256(path.read_bytes()) for path in paths}


def planned(*scenarios: Path | str, today: date | None = None, **fields: Any) -> RunPlan:
    return make_plan(make_study({"scenarios": scenarios, "targets": ["fake:careful"], **fields}), today=today)


def statement(one: PlannedScenario | Scenario, fact_id: str) -> str:
    made = one.scenario if isinstance(one, PlannedScenario) else one
    return next(fact.statement for fact in made.answer_key.canonical_facts if fact.fact_id == fact_id)


def refused(folder: Path, *arguments: object) -> str:
    """What is said of a run that may not be: one sentence, exit code 2, nothing written."""
    code, out, err = call("run", "--target", "fake:careful", *arguments, "--out", folder / "runs")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert not (folder / "runs").exists()
    return err


# Figures


@each_case(("year", "value"), [(2025, "$222.00"), (2026, "$243.50")])
def test_the_same_file_has_other_figures_in_another_year(year: int, value: str) -> None:
    library = Library()
    for one in read_scenario(COBRA).planned(year, library):
        assert statement(one, "F10") == (
            "A person on the standard premium who owes the penalty for signing up for Part B 24 months late "
            f"pays {value} a month for Part B in {year}."
        )
    assert library.used.keys() - background_files().keys() == {f"facts/{year}.json"}


@each_case("year", [2025, 2026])
def test_every_figure_of_the_bank_is_the_one_in_its_years_file(year: int) -> None:
    figures = json.loads((ROOT / "facts" / f"{year}.json").read_text(encoding="utf-8"))["figures"]
    seen, library = 0, Library()
    for file in read_scenarios([BANK]):
        own = {fact.fact_id: fact.statement for fact in file.scenario.answer_key.canonical_facts}
        for one in file.planned(year, library):
            for fact in one.scenario.answer_key.canonical_facts:
                raw = library.facts[fact.library].statement if fact.library else own[fact.fact_id]
                for name in re.findall(r"\{\{figure\.(\w+)\}\}", raw):
                    assert figures[name]["value"] in fact.statement
                    assert fact.plan_year == year
                    seen += 1
    assert seen > 50


def test_slots_are_filled_in_facts_rationales_turns_and_disallowed_claims(tmp_path: Path) -> None:
    slots = "{{figure.part_b_premium}} in {{ plan_year }}"
    made = document(
        {**fact_json("F1", f"It is {slots}."), "rationale": f"Because {slots}."},
        scripted_turns=[{"turn_id": "Q1", "user_message": f"In {{{{persona.city}}}}, is it {slots}?"}],
    )
    made["answer_key"]["disallowed_claims"] = [f"Claiming {slots}"]
    (one,) = ready(tmp_path, made)
    filled = "$202.90 in 2026"
    assert statement(one, "F1") == f"It is {filled}."
    assert one.answer_key.canonical_facts[0].rationale == f"Because {filled}."
    assert one.answer_key.disallowed_claims == (f"Claiming {filled}",)
    assert one.scripted_turns[0].user_message == f"In {{{{persona.city}}}}, is it {filled}?"


def test_what_comes_out_of_the_bank_has_no_open_slot_and_no_variants() -> None:
    made = planned(BANK)
    assert not OPEN_SLOT.search(made.model_dump_json())
    for one in made.scenarios:
        assert one.scenario.variants == ()
        assert all(not fact.only.plan_years and not fact.only.plan_kinds for fact in one.scenario.answer_key.canonical_facts)  # fmt: skip


# What is missing


def lacking(statement_: str = "All is well.", variant: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    variants = [{"variant_id": "one", **variant}] if variant is not None else []
    return document(fact_json("F1", statement_), variants=variants, **changes)


@each_case(
    ("made", "says"),
    [
        (lacking("It is {{figure.none}}."), "answer_key fact F1: facts/2026.json has no figure 'none'. Add it or check the name."),
        (lacking("It is {{figure.}}."), "answer_key fact F1: facts/2026.json has no figure ''"),
        (lacking(scripted_turns=[{"turn_id": "Q1", "user_message": "Is it {{figure.none}}?"}]), "turn Q1 user_message: facts/2026.json has no figure 'none'"),
        (lacking("In {{persona.city}}."), "answer_key fact F1 statement: unknown slot {{persona.city}}"),
        (lacking("In {{year}}."), "answer_key fact F1 statement: unknown slot {{year}}. Use plan_year, figure.NAME"),
        (lacking(variant={"plan": "none"}, plan_file="invented"), "variant one plan: 'none' is not in the file of invented plans, which has fairmeadow_hmo, stonebridge_ppo"),
        (lacking(variant={"doctor": "none"}, plan_file="invented"), "variant one doctor: 'none' is not in the file of invented plans, which has exampleton"),
        (lacking(variant={"place": "none"}, plan_file="invented"), "variant one place: 'none' is not in the file of invented plans, which has maple_hollow"),
        (lacking(variant={"plan": "stonebridge_ppo"}, plan_file="none"), "plan_file 'none': "),
        (lacking(variant={"plan": "stonebridge_ppo"}), "variant one names a plan, doctor or place; plan_file must say where"),
        (lacking("In {{place.city}}.", {"plan": "stonebridge_ppo"}, plan_file="invented"), "answer_key fact F1 statement: unknown slot {{place.city}}"),
        (lacking("It is {{plan.colour}}.", {"plan": "stonebridge_ppo"}, plan_file="invented"), "unknown slot {{plan.colour}}"),
        (lacking(variant={"turns": {"Q9": "What?"}}), "variant one names turn 'Q9'; the turns are Q1"),
        (lacking(variant={"misstates": {"Q9": ["$1"]}}), "variant one names turn 'Q9'; the turns are Q1"),
        (lacking(variant={"style": "angry"}), "field variants[0].style: 'angry' is not allowed"),
        (document({**fact_json(), "only": {"plan_years": [2025]}}), "answer_key.canonical_facts: no fact belongs to plan year 2026"),
        (document({**fact_json("F1", "It is {{figure.part_b_premium}}."), "valid_from": "2027-01-01"}), "answer_key fact F1 is valid from 2027-01-01, after plan year 2026"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named_with_file_and_field(made: dict[str, Any], says: str, tmp_path: Path) -> None:
    path = written(tmp_path, made)
    err = refused(tmp_path, "--scenario", path)
    assert err.startswith(f"medicare-eval: {path}: ")
    assert says in err


def test_a_year_without_figures_is_refused_and_the_years_there_are_are_named(tmp_path: Path) -> None:
    for extra in ([], ["--allow-expired"]):
        err = refused(tmp_path, "--scenario", COBRA, "--plan-year", "2024", *extra)
        assert err == (
            "medicare-eval: --plan-year: figures are available only for 2025, 2026 and 2027, not for 2024. "
            "Add a file for that year with --facts, or choose another --plan-year.\n"
        )


def test_a_key_without_figures_needs_no_figures(tmp_path: Path) -> None:
    (one,) = ready(tmp_path, document(fact_json()), year=2031)
    assert one.answer_key.canonical_facts[0].plan_year is None


@each_case(
    ("change", "says"),
    [
        ({"plan_year": "2027"}, "field plan_year: must be a whole number (got '2027')."),
        ({"valid_until": "2026-01-01"}, "valid_until is before valid_from"),
        ({"figures": {"a": {"value": "$1"}}}, "field figures.a.what: required but missing"),
        ({"extra": 1}, "field extra: unknown field (remove it or check its spelling)."),
    ],
)
def test_a_bad_facts_file_is_named_with_its_field(change: dict[str, Any], says: str, tmp_path: Path) -> None:
    good = json.loads(facts_file(tmp_path, 2027).read_text(encoding="utf-8"))
    path = written(tmp_path, {**good, **change}, "bad.json")
    err = refused(tmp_path, "--scenario", COBRA, "--facts", path)
    assert err.startswith(f"medicare-eval: --facts: {path}: ")
    assert says in err


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    none = tmp_path / "none.json"
    for flag in ("--facts", "--wording", "--invented-plans"):
        assert refused(tmp_path, "--scenario", COBRA, flag, none) == (
            f"medicare-eval: {flag}: {none} cannot be read (No such file or directory). Check the path.\n"
        )


def test_a_file_of_invented_plans_is_checked_even_if_no_scenario_needs_it(tmp_path: Path) -> None:
    path = written(tmp_path, {"plans": {}}, "plans.json")
    err = refused(tmp_path, "--scenario", COBRA, "--invented-plans", path)
    assert err.startswith(f"medicare-eval: --invented-plans: {path}: field ")
    assert "field valid_from: required but missing" in err
    code, out, err = call("validate", COBRA, "--invented-plans", path)
    assert (code, out) == (2, "")
    assert err.startswith(f"medicare-eval: --invented-plans: {path}: field ")


def test_a_file_of_invented_plans_names_only_its_own_doctors(tmp_path: Path) -> None:
    plans = json.loads((ROOT / "plans" / "invented.json").read_text(encoding="utf-8"))
    plans["plans"]["fairmeadow_hmo"]["network"] = ["nobody"]
    path = written(tmp_path, plans, "plans.json")
    err = refused(tmp_path, "--scenario", MEDICARE_ONLY, "--invented-plans", path)
    assert f"{path}: " in err
    assert "plans.fairmeadow_hmo.network names 'nobody'" in err


def test_a_figure_that_no_year_has_names_the_file_of_ones_own(tmp_path: Path) -> None:
    facts = facts_file(tmp_path, 2026, {"part_b_premium": figure("$210.00")})
    path = written(tmp_path, lacking("It is {{figure.none}}."))
    err = refused(tmp_path, "--scenario", path, "--facts", facts)
    assert f"answer_key fact F1: {facts} has no figure 'none'. Add it or check the name." in err


def test_a_plan_slot_without_a_plan_file_is_named_with_its_fact(tmp_path: Path) -> None:
    err = refused(tmp_path, "--scenario", written(tmp_path, lacking("It is {{plan.name}}.")))
    assert "answer_key fact F1" in err


# Variants


def two_turns(**changes: Any) -> dict[str, Any]:
    turns = [
        {"turn_id": "Q1", "user_message": "What is Part B?", "misstates": ["$1"]},
        {"turn_id": "Q2", "user_message": "And Part D?"},
    ]
    return document(scripted_turns=turns, **changes)


def test_a_variant_has_its_own_words_style_shopper_and_misstatements(tmp_path: Path) -> None:
    made = two_turns(
        style="plain",
        variants=[
            {"variant_id": "as_it_is"},
            {
                "variant_id": "other",
                "style": "misinformed",
                "persona": {"age": 71, "city": "Elsewhere", "pet": "a cat"},
                "turns": {"Q2": "Part D is $2, right?"},
                "misstates": {"Q1": ["$3"], "Q2": ["$2"]},
            },
        ],
    )
    plain, other = ready(tmp_path, made)
    assert (plain.style, other.style) == ("plain", "misinformed")
    assert [turn.user_message for turn in plain.scripted_turns] == ["What is Part B?", "And Part D?"]
    assert [turn.user_message for turn in other.scripted_turns] == ["What is Part B?", "Part D is $2, right?"]
    assert [turn.misstates for turn in plain.scripted_turns] == [("$1",), ()]
    assert [turn.misstates for turn in other.scripted_turns] == [("$1", "$3"), ("$2",)]
    assert (plain.persona.city, plain.persona.age, plain.persona.attributes) == ("Lakemont", None, {})
    assert (other.persona.city, other.persona.age, other.persona.attributes) == ("Elsewhere", 71, {"pet": "a cat"})
    assert other.persona.name == plain.persona.name == "Ada Inventado"
    assert plain.answer_key == other.answer_key


def test_a_variant_names_plan_doctor_and_place() -> None:
    hmo, ppo = (one.scenario for one in read_scenario(MEDICARE_ONLY).planned(2026, Library()))
    asked = [" ".join(turn.user_message for turn in one.scripted_turns) for one in (hmo, ppo)]
    assert "Dr. Alma Verhoeven" in asked[0]
    assert "Dr. Hollis Pendergast" in asked[1]
    assert "Fairmeadow Advantage HMO" in asked[0]
    assert "Stonemere Choice PPO" in asked[1]
    assert (hmo.persona.city, hmo.persona.state, hmo.persona.zip_code) == ("Maple Hollow", "Ohio", "43193")
    assert (ppo.persona.city, ppo.persona.county) == ("Tamarack Point", "Larch County")


def test_every_slot_of_plan_doctor_and_place_has_its_words(tmp_path: Path) -> None:
    says = "{{plan.name}} {{plan.kind}} {{plan.monthly_premium}} {{plan.primary_care_copay}} {{plan.specialist_copay}} {{plan.out_of_pocket_limit}} {{plan.includes_drugs}} {{doctor.name}} {{plan.has_doctor}} {{plan.brand_drug}} {{plan.brand_covered}} {{plan.generic_drug}} {{plan.generic_covered}} {{place.city}} {{place.state}} {{place.zip_code}} {{place.county}} {{place.dual_plans_sold}}"  # fmt: skip
    variants = [
        {"variant_id": "a", "plan": "fairmeadow_hmo", "doctor": "exampleton", "place": "maple_hollow"},
        {"variant_id": "b", "plan": "stonebridge_ppo", "doctor": "exampleton", "place": "tamarack_point"},
    ]
    made = document(fact_json("F1", says), variants=variants, plan_file="invented")
    first, second = ready(tmp_path, made)
    assert statement(first, "F1") == "Fairmeadow Advantage HMO HMO $0 $5 $35 $4,900 includes Dr. Alma Verhoeven is Lipitor does not cover atorvastatin covers Maple Hollow Ohio 43193 Harwell County are sold"  # fmt: skip
    assert statement(second, "F1") == "Stonemere Choice PPO PPO $42 $15 $45 $6,700 includes Dr. Alma Verhoeven is not Lipitor covers atorvastatin covers Tamarack Point Montana 59126 Larch County are not sold"  # fmt: skip


def test_all_variants_are_asked_unless_some_are_named() -> None:
    assert [one.name for one in planned(COBRA, ONE).scenarios] == ["cobra@plain", "cobra@misinformed", "scenario_001"]
    chosen = planned(COBRA, MEDICARE_ONLY, ONE, variants=["misinformed"])
    assert [one.name for one in chosen.scenarios] == ["cobra@misinformed", "scenario_001"]
    both = planned(COBRA, MEDICARE_ONLY, variants=["ppo", "plain"])
    assert [one.name for one in both.scenarios] == ["cobra@plain", "medicare_only@ppo"]


def test_a_variant_that_no_scenario_has_is_refused(tmp_path: Path) -> None:
    err = refused(tmp_path, "--scenario", COBRA, "--variant", "plain", "--variant", "hmo")
    assert "--variant: hmo: none of the scenarios has this variant. Available: plain, misinformed." in err
    assert "--variant: plain: none of the scenarios has this variant. They have no variants." in refused(
        tmp_path, "--scenario", ONE, "--variant", "plain"
    )


def test_the_variant_of_a_trial_is_in_its_results_and_manifest() -> None:
    run = shared_run("--scenario", COBRA, "--target", "fake:partial", "--variant", "misinformed")
    assert [one.variant for one in storage.read_manifest(run).plan.scenarios] == ["misinformed"]
    (line,) = (run / storage.RESULTS).read_text(encoding="utf-8").splitlines()
    result = json.loads(line)
    result = result.get("result", result)
    assert (result["trial_id"], result["variant"]) == ("cobra@misinformed.fake-partial.r1", "misinformed")
    assert "brother-in-law" in result["conversation"][0]["user_message"]


def test_question_seeds_are_the_same_for_all_variants_and_targets_of_a_repetition() -> None:
    made = trials(planned(MEDICARE_ONLY, targets=["fake:careful", "fake:wrong"], repeats=2))
    assert len(made) == 8
    for repetition in (1, 2):
        assert len({one.question_seed(42) for one in made if one.repetition == repetition}) == 1
    assert len({one.question_seed(42) for one in made}) == 2
    assert len({one.seed(42, "target", "Q1") for one in made}) == 8
    assert len({one.questions_id for one in made}) == 4


# Facts of one year or one kind of plan


def limited(fact_id: str, **only: Any) -> dict[str, Any]:
    return {**fact_json(fact_id), "only": only}


def points_of(one: Scenario) -> list[str]:
    return [point_name(point) for point in one.answer_key.required_points]


def key_with_limits(turn: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    facts = [
        fact_json("F1"),
        limited("F2", plan_years=[2025]),
        limited("F3", plan_years=[2025, 2026]),
        limited("F4", plan_years=[2025]),
    ]
    points = ["F1", "F2", {"any_of": ["F1", "F2", "F3"]}, {"any_of": ["F2", "F3"]}, {"any_of": ["F2", "F4"]}]
    turns = [
        {
            "turn_id": "Q1",
            "user_message": "What?",
            "required_points": points,
            "partial_points": ["F2", "F3"],
            "background": ["F4", "F1"],
        }
    ]
    made = document(*facts, scripted_turns=turns, **changes)
    made["answer_key"]["required_points"] = points
    return made


def test_facts_of_another_year_go_with_their_points_and_choices_shrink(tmp_path: Path) -> None:
    (before,) = ready(tmp_path, key_with_limits(), 2025)
    assert [fact.fact_id for fact in before.answer_key.canonical_facts] == ["F1", "F2", "F3", "F4"]
    assert points_of(before) == ["F1", "F2", "F1|F2|F3", "F2|F3", "F2|F4"]
    (now,) = ready(tmp_path, key_with_limits(), 2026)
    assert [fact.fact_id for fact in now.answer_key.canonical_facts] == ["F1", "F3"]
    assert points_of(now) == ["F1", "F1|F3", "F3"]
    (turn,) = now.scripted_turns
    assert [point_name(point) for point in turn.required_points] == ["F1", "F1|F3", "F3"]
    assert (turn.partial_points, turn.background) == (("F3",), ("F1",))


def test_facts_of_another_kind_of_plan_go_too(tmp_path: Path) -> None:
    variants = [
        {"variant_id": "hmo", "plan": "fairmeadow_hmo"},
        {"variant_id": "ppo", "plan": "stonebridge_ppo"},
        {"variant_id": "none"},
    ]
    facts = [fact_json("F1"), limited("F2", plan_kinds=["HMO"]), limited("F3", plan_kinds=["PPO"]), limited("F4", plan_kinds=["HMO", "PPO"])]  # fmt: skip
    made = document(*facts, variants=variants, plan_file="invented")
    made["answer_key"]["required_points"] = ["F1", {"any_of": ["F2", "F3"]}, "F4"]
    hmo, ppo, none = ready(tmp_path, made)
    assert points_of(hmo) == ["F1", "F2", "F4"]
    assert points_of(ppo) == ["F1", "F3", "F4"]
    assert points_of(none) == ["F1"]


def test_a_fact_for_one_year_and_one_kind_needs_both(tmp_path: Path) -> None:
    variants = [{"variant_id": "hmo", "plan": "fairmeadow_hmo"}]
    facts = [fact_json("F1"), limited("F2", plan_kinds=["HMO"], plan_years=[2025])]
    made = document(*facts, variants=variants, plan_file="invented")
    assert len(ready(tmp_path, made, 2025)[0].answer_key.canonical_facts) == 2
    assert len(ready(tmp_path, made, 2026)[0].answer_key.canonical_facts) == 1


def test_a_point_that_shrinks_into_another_is_kept_once(tmp_path: Path) -> None:
    made = key_with_limits()
    made["answer_key"]["required_points"] = ["F3", {"any_of": ["F2", "F3"]}, "F1"]
    (one,) = ready(tmp_path, made, 2026)
    assert points_of(one) == ["F3", "F1"]


# Provenance


@each_case(
    ("own", "figures", "confirmed"),
    [
        (None, ["primary"], "primary"),
        (None, ["secondary"], "secondary"),
        ("primary", ["secondary"], "secondary"),
        ("secondary", ["primary"], "secondary"),
        ("derived", ["secondary"], "derived"),
        ("primary", ["primary", "derived"], "derived"),
        ("primary", ["derived", "secondary"], "derived"),
        ("primary", ["primary"], "primary"),
    ],
)
def test_a_fact_is_no_surer_than_what_it_rests_on(
    own: str | None, figures: list[str], confirmed: str, tmp_path: Path
) -> None:
    path = facts_file(tmp_path, 2026, {f"a{n}": figure(f"${n}", how) for n, how in enumerate(figures)})
    slots = " ".join(f"{{{{figure.a{n}}}}}" for n in range(len(figures)))
    made = {**fact_json("F1", f"It is {slots}."), "confirmed_by": own}
    assert only_fact(tmp_path, made, library=Library(path)).confirmed_by == confirmed


def test_a_fact_takes_address_locator_dates_and_year_from_its_figure(tmp_path: Path) -> None:
    figures = {"a": figure("$7", "secondary", rationale="Three and four."), "b": figure("$8", "primary")}
    path = facts_file(tmp_path, 2026, figures)
    fact = only_fact(tmp_path, fact_json("F1", "It is {{figure.a}} or {{figure.b}}."), library=Library(path))
    assert (fact.address, fact.locator) == ("https://example.org/secondary", "row $7")
    assert (fact.valid_from, fact.valid_until) == (date(2026, 1, 1), date(2026, 12, 31))
    assert (fact.plan_year, fact.confirmed_by, fact.rationale) == (2026, "secondary", "Three and four.")
    assert fact.source == "Medicare & You 2026"


def test_what_a_fact_says_of_itself_overrides_what_its_figure_says(tmp_path: Path) -> None:
    path = facts_file(tmp_path, 2026, {"a": figure("$7", rationale="Three and four.")})
    own = {
        **fact_json("F1", "It is {{figure.a}}."),
        "rationale": "Sum: Three and four.",
        "address": "https://example.org/own",
        "locator": "page 1",
        "valid_from": "2026-02-01",
        "valid_until": "2026-11-30",
    }
    fact = only_fact(tmp_path, own, library=Library(path))
    assert (fact.address, fact.locator, fact.rationale) == ("https://example.org/own", "page 1", "Sum: Three and four.")
    assert (fact.valid_from, fact.valid_until) == (date(2026, 2, 1), date(2026, 11, 30))
    wide = only_fact(tmp_path, {**own, "valid_from": "2019-01-01", "valid_until": "2040-01-01"}, library=Library(path))
    assert (wide.valid_from, wide.valid_until) == (date(2026, 1, 1), date(2026, 12, 31))


def test_a_fact_without_a_figure_keeps_its_own_dates_or_its_scenarios(tmp_path: Path) -> None:
    fact = only_fact(tmp_path, fact_json())
    assert (fact.valid_from, fact.valid_until, fact.plan_year) == (date(2026, 1, 1), None, None)
    assert (fact.address, fact.confirmed_by) == (None, None)
    assert only_fact(tmp_path, {**fact_json(), "valid_from": "2019-01-01"}).valid_from == date(2019, 1, 1)
    assert only_fact(tmp_path, fact_json("F1", "So it is in {{plan_year}}.")).plan_year == 2026


def test_a_fact_of_a_plan_is_valid_as_long_as_the_plan_file(tmp_path: Path) -> None:
    variants = [{"variant_id": "a", "plan": "fairmeadow_hmo"}]
    made = document(fact_json("F1", "It is {{plan.name}}."), variants=variants, plan_file="invented")
    (one,) = ready(tmp_path, made)
    fact = one.answer_key.canonical_facts[0]
    assert (fact.valid_from, fact.valid_until) == (date(2026, 1, 1), date(2030, 12, 31))


def test_a_fact_of_a_plan_and_a_figure_is_valid_as_long_as_both(tmp_path: Path) -> None:
    variants = [{"variant_id": "a", "plan": "fairmeadow_hmo"}]
    text = "{{plan.name}} costs {{figure.part_b_premium}}."
    made = document(fact_json("F1", text), variants=variants, plan_file="invented")
    plans = json.loads((ROOT / "plans" / "invented.json").read_text(encoding="utf-8"))
    path = written(tmp_path, {**plans, "valid_until": "2026-06-30"}, "plans.json")
    (one,) = ready(tmp_path, made, library=Library(invented_plans_file=path))
    assert one.answer_key.canonical_facts[0].valid_until == date(2026, 6, 30)


# Dates


@each_case(
    ("today", "year", "why"),
    [
        ("2026-03-01", 2026, None),
        ("2026-10-31", 2026, None),
        ("2026-02-28", 2026, "its key is valid from 2026-03-01 to 2026-10-31, and today is 2026-02-28"),
        ("2025-12-31", 2026, "its key is valid from 2026-03-01 to 2026-10-31, and today is 2025-12-31"),
        ("2026-11-01", 2026, "its key is valid from 2026-03-01 to 2026-10-31, and today is 2026-11-01"),
        ("2025-05-01", 2025, "its key is valid from 2026-03-01 to 2026-10-31, and the plan year is 2025"),
        ("2026-12-31", 2027, "its key is valid from 2026-03-01 to 2026-10-31, and the plan year is 2027"),
        ("2026-05-01", 2025, "its plan year 2025 ended on 2025-12-31, and today is 2026-05-01"),
        ("2026-05-01", 2027, "the key of 2027 may be used from 2026-10-15, and today is 2026-05-01"),
    ],
)
def test_a_key_is_valid_where_all_its_facts_are(today: str, year: int, why: str | None) -> None:
    facts = [
        {**fact_json("F1"), "valid_from": "2019-01-01", "valid_until": "2026-10-31"},
        {**fact_json("F2"), "valid_from": "2026-03-01", "valid_until": "2030-12-31"},
        fact_json("F3"),
    ]
    made = scenario(answer_key={"canonical_facts": facts, "required_points": []})
    assert out_of_date(made, year, date.fromisoformat(today)) == why


def test_a_key_without_an_end_says_so() -> None:
    assert out_of_date(scenario(), 2040, date(2040, 1, 1)) is None
    found = out_of_date(scenario(effective_date="2026-02-01"), 2026, date(2026, 1, 31))
    assert found == "its key is valid from 2026-02-01 on, and today is 2026-01-31"


@each_case("begins", ["2019-01-01", "2026-01-01"])
def test_a_plan_year_opens_on_october_15_and_ends_on_december_31_for_every_key(begins: str) -> None:
    """Also for a key without figures, whose facts hold before and after."""
    made = scenario(effective_date=begins)
    for day in (date(2025, 10, 15), date(2025, 12, 31), date(2026, 1, 1), date(2026, 12, 31)):
        assert out_of_date(made, 2026, day) is None
    early, late = date(2025, 10, 14), date(2027, 1, 1)
    assert out_of_date(made, 2026, early) == "the key of 2026 may be used from 2025-10-15, and today is 2025-10-14"
    assert out_of_date(made, 2026, late) == "its plan year 2026 ended on 2026-12-31, and today is 2027-01-01"


def test_the_default_plan_year_is_the_days(monkeypatch: pytest.MonkeyPatch) -> None:
    assert planned(COBRA).plan_year == 2026
    monkeypatch.setenv("MEDICARE_EVAL_TODAY", "2025-03-01")
    made = planned(COBRA)
    assert made.plan_year == 2025
    assert "$222.00" in statement(made.scenarios[0], "F10")
    assert made.expired == ()


def test_a_day_outside_a_keys_dates_is_refused_unless_allowed(tmp_path: Path) -> None:
    why = "its plan year 2025 ended on 2025-12-31, and today is 2026-11-16"
    given = ("--scenario", COBRA, "--plan-year", "2025")
    assert refused(tmp_path, *given) == (
        f"medicare-eval: --plan-year: cobra: {why}; choose another --plan-year, or add --allow-expired.\n"
    )
    run = make_run(tmp_path / "runs", *given, "--allow-expired", "--target", "fake:partial")
    manifest = storage.read_manifest(run)
    assert manifest.plan.expired == (f"cobra: {why}",)
    assert manifest.plan.plan_year == 2025
    verified, replayed = json.loads(call("verify", run, "--json")[1]), json.loads(call("replay", run, "--json")[1])
    assert (verified["trials"], verified["sealed"]) == (manifest.plan.trial_count, True)
    assert (replayed["trials"], replayed["head"]) == (manifest.plan.trial_count, verified["head"])


def test_several_keys_out_of_date_are_counted(tmp_path: Path) -> None:
    assert "(1 more like it)" in refused(tmp_path, "--scenario", COBRA, "--scenario", ONE, "--plan-year", "2025")
    made = planned(COBRA, ONE, plan_year=2025, allow_expired=True)
    assert [line.partition(":")[0] for line in made.expired] == ["cobra", "scenario_001"]


def test_a_plan_year_outside_a_keys_dates_is_refused_unless_allowed(tmp_path: Path) -> None:
    path = written(tmp_path, document({**fact_json(), "valid_until": "2026-12-31"}))
    why = "its key is valid from 2026-01-01 to 2026-12-31, and the plan year is 2027"
    assert f"scenario_001: {why}; choose another" in refused(tmp_path, "--scenario", path, "--plan-year", "2027")
    made = planned(path, plan_year=2027, allow_expired=True)
    assert made.expired == (f"scenario_001: {why}",)
    assert planned(path, allow_expired=True).expired == ()


def test_a_new_year_without_figures_falls_back_only_where_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDICARE_EVAL_TODAY", "2028-01-01")
    assert refused(tmp_path, "--scenario", ONE) == (
        "medicare-eval: --plan-year: there are no figures for 2028 yet, the year of today's date. Add a file for it "
        "with --facts, or use the key of 2027 with --allow-expired.\n"
    )
    made = planned(ONE, allow_expired=True)
    assert made.plan_year == 2027
    assert made.expired == ("scenario_001: its plan year 2027 ended on 2027-12-31, and today is 2028-01-01",)
    assert not made.coming


def test_the_clock_is_the_variables_day_or_today(monkeypatch: pytest.MonkeyPatch) -> None:
    assert clock.today() == date(2026, 11, 16)
    monkeypatch.setenv("MEDICARE_EVAL_TODAY", "2025-02-03")
    assert clock.today() == date(2025, 2, 3)
    assert planned(ONE, allow_expired=True).plan_year == 2025
    for unset in ("", None):
        if unset is None:
            monkeypatch.delenv("MEDICARE_EVAL_TODAY")
        else:
            monkeypatch.setenv("MEDICARE_EVAL_TODAY", unset)
        assert date.today() <= clock.today() <= date.today()


# Files of one's own


def test_a_facts_file_adds_a_plan_year(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = json.loads((ROOT / "facts" / "2026.json").read_text(encoding="utf-8"))["figures"]
    penalty = {**shipped["part_b_with_24_month_penalty"], "value": "$251.30", "rationale": "Made up."}
    path = facts_file(tmp_path, 2028, {"part_b_with_24_month_penalty": penalty})
    given = ("--scenario", COBRA, "--target", "fake:partial", "--facts", path)
    assert "the key of 2028 may be used from 2027-10-15, and today is 2026-11-16; choose another" in refused(
        tmp_path, *given, "--plan-year", "2028"
    )
    monkeypatch.setenv("MEDICARE_EVAL_TODAY", "2028-02-01")
    manifest = storage.read_manifest(make_run(tmp_path / "runs", *given))
    assert manifest.plan.plan_year == 2028
    assert manifest.plan.expired == ()
    assert "$251.30 a month for Part B in 2028" in statement(manifest.plan.scenarios[0], "F10")
    assert manifest.plan.references == {"facts/mine.json": sha256(path.read_bytes()), **background_files()}


def test_figures_of_a_bundled_year_join_ours_and_win(tmp_path: Path) -> None:
    own = {"part_b_with_24_month_penalty": figure("$9.99"), "mine": figure("$7")}
    path = facts_file(tmp_path, 2026, own)
    library = Library(path)
    assert sorted(library.years) == [2025, 2026, 2027]
    ours = Library().year(2026).figures
    figures = library.year(2026).figures
    assert figures.keys() == ours.keys() | {"mine"}
    assert {name for name, one in ours.items() if figures[name] != one} == {"part_b_with_24_month_penalty"}
    made, plain = planned(COBRA, facts=path), planned(COBRA)
    assert "$9.99" in statement(made.scenarios[0], "F10")
    assert made.points_left_out == plain.points_left_out == 0
    assert {fact.fact_id for fact in made.background} == {fact.fact_id for fact in plain.background}
    assert made.references == {
        "facts/mine.json": sha256(path.read_bytes()),
        "facts/2026.json (bundled)": sha256((ROOT / "facts" / "2026.json").read_bytes()),
        **background_files(),
    }
    old = planned(COBRA, facts=path, plan_year=2025, allow_expired=True)
    assert "$222.00" in statement(old.scenarios[0], "F10")
    assert old.references.keys() - background_files().keys() == {"facts/2025.json"}


def test_both_files_of_a_year_are_held_even_if_they_have_one_name(tmp_path: Path) -> None:
    path = facts_file(tmp_path, 2026, {"part_b_premium": figure("$9.99")}).rename(tmp_path / "2026.json")
    used = planned(COBRA, facts=path).references
    assert used["facts/2026.json"] == sha256(path.read_bytes())
    assert used["facts/2026.json (bundled)"] == sha256((ROOT / "facts" / "2026.json").read_bytes())


def test_a_figure_that_only_the_bundled_file_of_the_year_has_is_known(tmp_path: Path) -> None:
    """Its file is replaced in the list of years, and its names must not be taken for misspelled ones."""
    named = [set(Library().year(year).figures) for year in (2025, 2026, 2027)]
    (name, *_) = sorted(named[2] - named[0] - named[1])
    library = Library(facts_file(tmp_path, 2027, {"part_b_premium": figure("$9.99")}))
    assert library.names_figure(name)
    assert not library.names_figure("none")
    for year, facts in ((2026, 1), (2027, 2)):
        (one,) = ready(tmp_path, document(fact_json("F1"), fact_json("F2", f"It is {{{{figure.{name}}}}}.")), year, library)  # fmt: skip
        assert len(one.answer_key.canonical_facts) == facts


def test_a_file_of_invented_plans_replaces_ours(tmp_path: Path) -> None:
    plans = json.loads((ROOT / "plans" / "invented.json").read_text(encoding="utf-8"))
    plans["plans"]["fairmeadow_hmo"]["name"] = "Nowhere Example HMO"
    plans["places"]["maple_hollow"]["city"] = "Nowhere Springs"
    path = written(tmp_path, plans, "mine.json")
    hmo = planned(MEDICARE_ONLY, invented_plans=path, variants=["hmo"])
    text = hmo.scenarios[0].scenario.model_dump_json()
    assert "Nowhere Example HMO" in text
    assert "Fairmeadow" not in text
    assert hmo.scenarios[0].scenario.persona.city == "Nowhere Springs"
    assert hmo.references["plans/mine.json"] == sha256(path.read_bytes())
    assert "plans/invented.json" not in hmo.references


def test_a_manifest_holds_the_hashes_of_its_references_and_no_open_slot() -> None:
    run = shared_run("--scenario", MEDICARE_ONLY, "--target", "fake:partial", "--variant", "ppo")
    plan = storage.read_manifest(run).plan
    assert plan.references == {
        **{name: sha256((ROOT / name).read_bytes()) for name in ("facts/2026.json", "plans/invented.json")},
        **background_files(),
    }
    assert plan.scenarios[0].sha256 == sha256(MEDICARE_ONLY.read_bytes())
    assert not OPEN_SLOT.search((run / storage.MANIFEST).read_text(encoding="utf-8"))
    assert plan.plan_year == 2026
    assert plan.wording is None


def test_only_references_that_were_used_are_held(tmp_path: Path) -> None:
    figures = sha256((ROOT / "facts" / "2026.json").read_bytes())
    assert planned(COBRA).references == {"facts/2026.json": figures, **background_files()}
    invented = planned(MEDICARE_ONLY).references.keys() - planned(COBRA).references.keys()
    assert invented == {"plans/invented.json", "facts/states/OH.json"}  # one of its two people lives in Ohio


def test_comments_are_skipped_anywhere_in_a_users_file(tmp_path: Path) -> None:
    def commented(value: Any) -> Any:
        if isinstance(value, dict):
            return {"//": "a comment", "// more": [{"x": 1}], **{name: commented(one) for name, one in value.items()}}
        return [commented(one) for one in value] if isinstance(value, list) else value

    def with_comments(path: Path) -> Path:
        return written(tmp_path, commented(json.loads(path.read_text(encoding="utf-8"))), path.name)

    wording = written(tmp_path, commented({"title": "T", "scenarios": {"medicare_only": {"Q1": "Hello?"}}}), "w.json")
    plain = written(tmp_path, {"title": "T", "scenarios": {"medicare_only": {"Q1": "Hello?"}}}, "p.json")
    facts, plans = with_comments(ROOT / "facts" / "2026.json"), with_comments(ROOT / "plans" / "invented.json")
    path = with_comments(MEDICARE_ONLY)
    noted = planned(path, facts=facts, invented_plans=plans, wording=wording)
    bare = planned(MEDICARE_ONLY, wording=plain)
    assert [one.scenario for one in noted.scenarios] == [one.scenario for one in bare.scenarios]
    assert noted.scenarios[0].sha256 == sha256(path.read_bytes()) != bare.scenarios[0].sha256
    assert noted.references["facts/2026.json"] == sha256(facts.read_bytes())
    assert noted.references.keys() - bare.references.keys() == {"facts/2026.json (bundled)"}


def test_a_misspelt_comment_is_no_comment(tmp_path: Path) -> None:
    path = written(tmp_path, {**document(), "/ note": "one slash"})
    assert "field / note: unknown field" in refused(tmp_path, "--scenario", path)


# Other words


def overlay(folder: Path, scenarios: dict[str, dict[str, str]]) -> Path:
    return written(folder, {"title": "The study's own words", "scenarios": scenarios}, "wording.json")


def messages(one: PlannedScenario) -> dict[str, str]:
    return {turn.turn_id: turn.user_message for turn in one.scenario.scripted_turns}


def test_an_overlay_replaces_turn_by_turn_in_every_variant(tmp_path: Path) -> None:
    words = {"Q2": "How long have I in {{plan_year}}, in {{persona.city}}?", "Q4": "Is it {{figure.part_b_premium}}?"}
    path = overlay(tmp_path, {"cobra": words})
    for ours, theirs in zip(planned(COBRA).scenarios, planned(COBRA, wording=path).scenarios, strict=True):
        assert messages(theirs) == {
            **messages(ours),
            "Q2": "How long have I in 2026, in {{persona.city}}?",
            "Q4": "Is it $202.90?",
        }
        assert theirs.scenario.answer_key == ours.scenario.answer_key
        assert theirs.sha256 == ours.sha256


def test_a_manifest_says_whose_words_were_asked_and_where(tmp_path: Path) -> None:
    path = overlay(tmp_path, {"cobra": {"Q3": "And then?", "Q1": "May I wait?"}, "medicare_only": {"Q1": "Hello?"}})
    run = make_run(tmp_path / "runs", "--scenario", COBRA, "--target", "fake:partial", "--wording", path)
    used = storage.read_manifest(run).plan.wording
    assert used is not None
    assert (used.title, used.sha256) == ("The study's own words", sha256(path.read_bytes()))
    assert used.turns == {"cobra": ("Q3", "Q1")}
    assert "May I wait?" in (run / storage.RESULTS).read_text(encoding="utf-8")


def test_one_overlay_serves_both_scenarios_of_the_study(tmp_path: Path) -> None:
    path = overlay(tmp_path, {"medicare_only": {"Q1": "One?"}, "dual_eligible": {"Q1": "Other?"}})
    made = planned(MEDICARE_ONLY, DUAL, wording=path)
    assert [messages(one)["Q1"] for one in made.scenarios] == ["One?", "One?", "Other?", "Other?"]


@each_case(
    ("scenarios", "says"),
    [
        ({"cobra": {"Q9": "What?"}}, "field scenarios.cobra.Q9: that scenario has no such turn. Its turns are Q1, Q2, Q3, Q4, Q5."),
        ({"cobre": {"Q1": "What?"}}, "names none of the scenarios given (cobra)."),
        ({}, "field scenarios: must not be empty."),
        ({"cobra": {"Q1": ""}}, "field scenarios.cobra.Q1: must not be empty."),
        ({"cobra": {"Q1": 4}}, "field scenarios.cobra.Q1: must be text (got 4)."),
    ],
)  # fmt: skip
def test_an_overlay_of_unknown_turns_or_scenarios_is_refused(
    scenarios: dict[str, dict[str, Any]], says: str, tmp_path: Path
) -> None:
    path = overlay(tmp_path, scenarios)
    err = refused(tmp_path, "--scenario", COBRA, "--wording", path)
    assert re.match(rf"medicare-eval: --wording: {re.escape(str(path))}(: | names )", err)
    assert says in err


@each_case("words", ["In {{persona.shoe}}?", "Is it {{figure.none}}?", "Is {{ it?"])
def test_a_slot_that_names_nothing_in_an_overlay_names_the_overlay(words: str, tmp_path: Path) -> None:
    path = overlay(tmp_path, {"cobra": {"Q1": words}})
    assert str(path) in refused(tmp_path, "--scenario", COBRA, "--wording", path)


# The specification's own form


def five_fields(facts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    names = ("fact_id", "statement", "rationale", "source", "severity_if_wrong")
    return [{name: fact[name] for name in names} for fact in facts]


def test_a_scenario_as_the_specification_writes_it_still_runs(tmp_path: Path) -> None:
    made = json.loads(Path(ONE).read_text(encoding="utf-8"))
    (filled,) = read_scenario(Path(ONE)).planned(2026, Library())
    facts = [one.model_dump(mode="json") for one in filled.scenario.answer_key.canonical_facts if not one.plan_year]
    kept = {fact["fact_id"] for fact in facts}
    assert len(kept) > 5
    turns = [{"turn_id": turn["turn_id"], "user_message": turn["user_message"].replace("{{plan_year}}", "2026")} for turn in made["scripted_turns"]]  # fmt: skip
    key = {
        "canonical_facts": five_fields(facts),
        "required_points": [
            point for point in made["answer_key"]["required_points"] if isinstance(point, str) and point in kept
        ],
        "disallowed_claims": made["answer_key"]["disallowed_claims"],
    }
    names = ("scenario_id", "title", "effective_date", "persona", "variation_knobs", "rubric_version")
    old = {**{name: made[name] for name in names}, "scripted_turns": turns, "answer_key": key}
    path = written(tmp_path, old)
    run = make_run(tmp_path / "runs", "--scenario", path, "--target", "fake:careful")
    plan = storage.read_manifest(run).plan
    assert "plans/invented.json" not in plan.references
    for fact in plan.scenarios[0].scenario.answer_key.canonical_facts:
        assert (fact.valid_from, fact.valid_until) == (date(2025, 1, 1), None)
        assert (fact.address, fact.confirmed_by, fact.plan_year) == (None, None, None)
    verified = json.loads(call("verify", run, "--json")[1])
    assert (verified["trials"], verified["planned"], verified["sealed"]) == (1, 1, True)
