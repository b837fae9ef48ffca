"""What validate finds in a scenario file, what the bank holds, and how a new scenario is begun."""

from __future__ import annotations

import copy
import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from src.authoring.lint import PLACEHOLDER
from src.planning.fill_slots import Library
from src.planning.scenario_files import ScenarioFile, read_scenarios
from src.schemas import CanonicalFact
from tests.helpers import ROOT
from tests.runs import call

BANK = ROOT / "scenarios"
TOPICS = BANK / "v1" / "topics"
COBRA = TOPICS / "cobra.json"
FIGURE = re.compile(r"\{\{\s*figure\.([^{}\s]+)\s*\}\}")
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
    """A small scenario with nothing wrong, and no canned replies."""
    return {
        "scenario_id": "mine",
        "title": "A small scenario",
        "effective_date": "2026-01-01",
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
    return *call("validate", path), path


def findings(folder: Path, made: Document, *changes: Change) -> list[str]:
    """What validate says of a file that is not well: every line names the file and a field, and it exits with 2."""
    code, out, err, path = checked(folder, made, *changes)
    assert (code, out) == (2, "")
    lines = err.splitlines()
    start = f"medicare-eval: {path}: field "
    assert all(line.startswith(start) and line.endswith(".") for line in lines), err
    return [line.removeprefix(start) for line in lines]


def passes(folder: Path, made: Document, *changes: Change) -> str:
    code, out, err, _ = checked(folder, made, *changes)
    assert (code, err) == (0, "")
    return out


# The bank


def test_the_whole_bank_passes() -> None:
    code, out, err = call("validate", BANK)
    assert (code, err) == (0, "")
    files = sorted(BANK.rglob("*.json"))
    assert out.count(": ok: ") == len(files) >= 25
    assert all(f"{path}: ok: " in out for path in files)
    assert out.endswith(f"{len(files)} scenarios valid. Listed: facts not read in the source itself.\n")


def test_what_the_planted_faults_start_from_passes(tmp_path: Path) -> None:
    assert "planted.json: ok: mine, 1 turns, 2 facts, 1 required points\n" in passes(tmp_path, good())
    assert "planted.json: ok: cobra, 5 turns, 14 facts, 9 required points\n" in passes(tmp_path, cobra())


# One planted fault each

F1, F2 = "answer_key.canonical_facts[0]", "answer_key.canonical_facts[1]"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(turn(required_points=["F1", "F9"]), "(whole file): turn Q1 required_points names 'F9', which is not a fact of this key (F1, F2)", id="unknown fact"),
        pytest.param(turn(partial_points=["F9"]), "(whole file): turn Q1 partial_points names 'F9', which is not a fact", id="unknown partial fact"),
        pytest.param(turn(background=["F2", "F9"]), "(whole file): turn Q1 background names 'F9', which is not a fact", id="unknown background fact"),
        pytest.param(second_fact(statement="The fee is {{figure.none}} a month."), "answer_key fact F2: facts/2026.json has no figure 'none'", id="unknown figure"),
        pytest.param(turn(background=[]), f"{F2}: F2 is used by no turn", id="unused fact"),
        pytest.param(turn(required_points=[], background=["F1", "F2"]), "answer_key.required_points: F1 is required, but no turn asks for it", id="point no turn asks for"),
        pytest.param(lambda made: made["answer_key"].update(required_points=["F1", {"any_of": ["F1", "F2"]}]), "answer_key.required_points: F1|F2 is required, but no turn asks for it", id="choice no turn asks for"),
        pytest.param(without("valid_from"), f"{F2}: F2 is undated; add valid_from", id="undated"),
        pytest.param(without("confirmed_by"), f"{F2}: F2 does not say how it was confirmed", id="unconfirmed"),
        pytest.param(second_fact(valid_until="2026-11-15"), f"{F2}: F2 expired on 2026-11-15", id="expired"),
        pytest.param(second_fact(valid_from="2026-11-17"), f"{F2}: F2 is valid only from 2026-11-17, which is still to come", id="not yet valid"),
        pytest.param(second_fact(statement="The Part B premium in 2026 is $202.90 a month."), f"{F2}: F2 states a dollar figure of one year", id="figure of one year"),
        pytest.param(asks("My friend says the Part B deductible is $500 a year. Right?"), "turn Q1 of variant plain: says $500, which F1 contradicts", id="contradicted question"),
        pytest.param(variant(turns={"Q1": "The Part B deductible is $500 a year, right?"}), "turn Q1 of variant other: says $500, which F1 contradicts", id="contradicted variant"),
        pytest.param(asks("My number is 123-45-6789. What now?"), "turn Q1: '123-45-6789' looks like a Social Security number", id="ssn"),
        pytest.param(asks("My number is 123 45 6789. What now?"), "turn Q1: '123 45 6789' looks like a Social Security number", id="ssn with spaces"),
        pytest.param(asks("My card says 1EG4-TE5-MK73. What now?"), "turn Q1: '1EG4-TE5-MK73' looks like a Medicare number", id="mbi"),
        pytest.param(asks("My card says 1EG4TE5MK73. What now?"), "turn Q1: '1EG4TE5MK73' looks like a Medicare number", id="mbi without dashes"),
        pytest.param(asks("Call me at (614) 234-5678?"), "turn Q1: '(614) 234-5678' looks like a telephone number", id="phone"),
        pytest.param(asks("Call me at 614.234.5678?"), "turn Q1: '614.234.5678' looks like a telephone number", id="phone with dots"),
        pytest.param(asks("Call +1 614-234-5678?"), "looks like a telephone number", id="phone with country"),
        pytest.param(persona(attributes={"number": "123-45-6789"}), "persona: '123-45-6789' looks like a Social Security number", id="ssn of the persona"),
        pytest.param(persona(description="Her card: 1EG4-TE5-MK73."), "persona: '1EG4-TE5-MK73' looks like a Medicare number", id="mbi of the persona"),
        pytest.param(variant(turns={"Q1": "Call me at 614-234-5678?"}), "variant other turn Q1: '614-234-5678' looks like a telephone number", id="phone of a variant"),
        pytest.param(variant(persona={"number": "123-45-6789"}), "variant other persona: '123-45-6789' looks like a Social Security number", id="ssn of a variant"),
        pytest.param(asks("Is the Part B deductible $283?"), "turn Q1 of variant plain: gives away $283 of F1", id="hint"),
        pytest.param(asks("Is the Part B deductible {{figure.part_b_deductible}}?"), "turn Q1 of variant plain: gives away $283 of F1", id="hint by a slot"),
        pytest.param(variant(turns={"Q1": "Is the Part B deductible $283?"}), "turn Q1 of variant other: gives away $283 of F1", id="hint of a variant"),
        pytest.param(asks("What is Part B? Be sure to say how much."), "turn Q1 of variant plain: 'Be sure to' tells the target how to answer", id="scaffolding"),
        pytest.param(asks("What is Part B? Please list all the costs."), "turn Q1 of variant plain: 'list all' tells the target how to answer", id="scaffolding list"),
        pytest.param(asks("Explain Part B step by step."), "turn Q1 of variant plain: 'step by step' tells the target how to answer", id="scaffolding steps"),
        pytest.param(variant(turns={"Q1": "What is Part B? Don’t forget the networks."}), "turn Q1 of variant other: 'Don’t forget' tells the target", id="scaffolding of a variant"),
        pytest.param(field("title", "REPLACE: a title"), "title: still holds REPLACE", id="placeholder"),
        pytest.param(second_fact(source="REPLACE"), f"{F2}.source: still holds REPLACE", id="placeholder in a fact"),
        pytest.param(variant(turns={"Q1": "REPLACE: a question"}), "variants[1].turns.Q1: still holds REPLACE", id="placeholder in a variant"),
        pytest.param(second_fact(statement="It depends."), f"{F2}: F2: not even a reply of its own words can support or contradict it", id="uncheckable fact"),
        pytest.param(field("rubric_version", "v9"), "rubric_version: 'v9' is not known; use v1", id="unknown rubric"),
    ],
)  # fmt: skip
def test_a_planted_fault_is_named_with_file_and_field(change: Change, said: str, tmp_path: Path) -> None:
    (found,) = findings(tmp_path, good(), change)
    assert found.startswith(said) or ("looks like" in said and said in found)


@pytest.mark.parametrize(
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
def test_what_is_no_fault_passes(changes: list[Change], tmp_path: Path) -> None:
    passes(tmp_path, good(), *changes)


def test_a_hint_counts_only_for_what_the_turn_requires(tmp_path: Path) -> None:
    costs = second_fact(statement="A month of insulin costs at most $35.")
    passes(tmp_path, good(), costs, asks("I pay $35 for insulin. How much is the Part B deductible?"))
    required = turn(required_points=["F1", "F2"], background=[])
    asked = asks("I pay $35 for insulin. How much is the Part B deductible?")
    assert findings(tmp_path, good(), costs, required, asked)[0].startswith(
        "turn Q1 of variant plain: gives away $35 of F2"
    )


def test_a_fact_no_fake_speaks_of_is_named(tmp_path: Path) -> None:
    def silent(made: Document) -> None:
        made["answer_key"]["canonical_facts"].append(fact("F15", "Hospice pays for respite stays of up to 5 days."))
        made["scripted_turns"][0]["background"].append("F15")

    (found,) = findings(tmp_path, cobra(), silent)
    assert found.startswith("answer_key.canonical_facts[14]: F15: no fake reply can support or contradict it")
    passes(tmp_path, cobra(), silent, field("scenario_id", "cobra_without_fakes"))


def test_a_declared_misstatement_of_the_bank_is_needed(tmp_path: Path) -> None:
    """The misinformed shopper of a bank scenario misstates on purpose; undeclared, it is a fault."""
    made = json.loads((TOPICS / "part_d_costs.json").read_text(encoding="utf-8"))
    assert any(one.get("misstates") for one in made["variants"])
    for one in made["variants"]:
        one.pop("misstates", None)
    (found,) = findings(tmp_path, made)
    assert found.startswith("turn Q1 of variant misinformed: says $8000, which F1 contradicts; mend it, or list it in")


def test_every_fault_of_every_file_is_said_at_once(tmp_path: Path) -> None:
    names = []
    for name, change in (("a", field("rubric_version", "v9")), ("b", asks("Call 614-234-5678 step by step?"))):
        made = good()
        change(made)
        (tmp_path / f"{name}.json").write_text(json.dumps(made), encoding="utf-8")
        names.append(tmp_path / f"{name}.json")
    (tmp_path / "c.json").write_text("{", encoding="utf-8")
    code, out, err = call("validate", tmp_path)
    assert (code, out) == (2, "")
    first, second, third, broken = err.splitlines()
    assert first.startswith(f"medicare-eval: {names[0]}: field rubric_version")
    assert second.startswith(f"medicare-eval: {names[1]}: field turn Q1: '614-234-5678'")
    assert third.startswith(f"medicare-eval: {names[1]}: field turn Q1 of variant plain: 'step by step'")
    assert broken.startswith(f"medicare-eval: {tmp_path / 'c.json'}: not valid JSON")


def test_a_figure_must_be_there_in_every_year_of_the_scenario_unless_its_fact_is_limited(tmp_path: Path) -> None:
    def early(made: Document) -> None:
        made["effective_date"] = "2025-01-01"
        for one in made["answer_key"]["canonical_facts"]:
            one["valid_from"] = "2025-01-01"

    only_now = second_fact(statement="The poverty guideline for one person is {{figure.poverty_guideline_one}} a year.")
    (found,) = findings(tmp_path, good(), early, only_now)
    assert found.startswith("answer_key fact F2: facts/2025.json has no figure 'poverty_guideline_one'")
    passes(tmp_path, good(), only_now)
    passes(tmp_path, good(), early, only_now, second_fact(only={"plan_years": [2026]}))


def test_figures_and_plans_of_ones_own_are_checked_too(tmp_path: Path) -> None:
    facts = json.loads((ROOT / "facts" / "2026.json").read_text(encoding="utf-8"))
    figures = {"part_b_premium": facts["figures"]["part_b_premium"]}
    mine = tmp_path / "2027.json"
    new = {**facts, "plan_year": 2027, "valid_from": "2027-01-01", "valid_until": "2027-12-31", "figures": figures}
    mine.write_text(json.dumps(new), encoding="utf-8")
    code, _, err = call("validate", COBRA, "--facts", mine)
    assert code == 2
    assert f"{COBRA}: field answer_key fact F10: " in err
    assert "(plan year 2027)" in err
    study = BANK / "v1" / "study" / "medicare_only.json"
    plans = json.loads((ROOT / "plans" / "invented.json").read_text(encoding="utf-8"))
    del plans["plans"]["stonebridge_ppo"]
    other = tmp_path / "plans.json"
    other.write_text(json.dumps(plans), encoding="utf-8")
    code, _, err = call("validate", study, "--plan-file", other)
    assert code == 2
    assert f"{study}: field variant ppo plan: 'stonebridge_ppo' is not in the plan file" in err


def test_the_field_of_an_expired_fact_is_where_it_stands_in_the_file(tmp_path: Path) -> None:
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
    assert found.startswith(f"{F2}: F2 does not say how it was confirmed")


def test_a_shopper_that_does_not_fit_is_named_by_one_field(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, good(), variant(persona={"age": "sixty"}))
    assert "once its slots are filled, field" not in found


def test_validate_lists_secondary_and_derived_facts(tmp_path: Path) -> None:
    out = passes(tmp_path, cobra())
    for how in ("secondary", "derived"):
        ids = [one["fact_id"] for one in cobra()["answer_key"]["canonical_facts"] if one["confirmed_by"] == how]
        assert ids
        assert f"\n    {how:<9} {' '.join(ids)}\n" in out
    out = passes(tmp_path, good(), second_fact(confirmed_by="derived"))
    assert "\n    secondary F1\n    derived   F2\n" in out
    sure = lambda made: made["answer_key"]["canonical_facts"][0].update(statement="Part B has a deductible.")  # noqa: E731
    out = passes(tmp_path, good(), sure)
    assert len(out.splitlines()) == 2


# scenarios list, facts, sources


def files() -> tuple[ScenarioFile, ...]:
    return read_scenarios([str(BANK)])


def as_json(*arguments: object) -> list[Document]:
    code, out, err = call(*arguments, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert isinstance(found, list)
    return found


def resolved(year: int) -> Iterator[tuple[str, CanonicalFact]]:
    for file in files():
        for one in file.planned(year, Library()):
            for each in one.scenario.answer_key.canonical_facts:
                yield one.scenario.scenario_id, each


def test_every_scenario_of_the_bank_is_listed_once_with_its_plan_years() -> None:
    rows = {row["scenario_id"]: row for row in as_json("scenarios", "list")}
    assert len(rows) == len(as_json("scenarios", "list")) == len(list(BANK.rglob("*.json")))
    for file in files():
        row, one = rows[file.scenario.scenario_id], file.scenario
        current = {f.fact_id: f for p in file.planned(2026, Library()) for f in p.scenario.answer_key.canonical_facts}
        assert row["plan_years"] == [2025, 2026]
        assert row["title"] == one.title
        assert row["themes"] == list(one.themes)
        assert row["variants"] == [each.variant_id for each in one.variants]
        assert row["turns"] == len(one.scripted_turns)
        assert row["facts"] == len(current) == row["primary"] + row["secondary"] + row["derived"]
        assert row["status"] == "current"
        assert Path(row["path"]) == file.path
    code, out, _ = call("scenarios", "list")
    assert code == 0
    assert out.count("2025-2026") == len(rows)
    counted = Counter(how for row in rows.values() for how in ("primary", "secondary", "derived") for _ in range(row[how]))  # fmt: skip
    caption = " ".join(out.split())
    assert f"{len(rows)} scenarios. P/S/D: facts read in the primary source ({counted['primary']})" in caption
    assert f"cites it ({counted['secondary']}), derived by arithmetic ({counted['derived']})." in caption


def test_some_scenarios_are_listed_where_some_are_named(tmp_path: Path) -> None:
    assert [row["scenario_id"] for row in as_json("scenarios", "list", COBRA)] == ["cobra"]
    code, out, _ = call("scenarios", "list", COBRA)
    assert code == 0
    assert "cobra" in out
    assert "irmaa" not in out
    code, out, err = call("scenarios", "list", tmp_path / "none")
    assert (code, out) == (2, "")
    assert "no scenario file is there" in err


def test_a_scenario_whose_year_is_over_is_listed_as_expired(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDICARE_EVAL_TODAY", "2027-01-01")
    (row,) = as_json("scenarios", "list", COBRA)
    assert (row["status"], row["plan_years"]) == ("expired", [2025, 2026])
    code, _, err = call("validate", COBRA)
    assert code == 2
    assert "F10 expired on 2026-12-31; confirm it again, or add the new plan year's figures." in err


def test_a_year_a_scenario_cannot_be_made_for_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(good()), encoding="utf-8")
    (row,) = as_json("scenarios", "list", path)
    assert row["plan_years"] == [2026]


@pytest.mark.parametrize("year", [2025, 2026])
def test_every_fact_of_a_year_is_shown_as_its_figures_make_it(year: int) -> None:
    rows = as_json("scenarios", "facts", "--plan-year", str(year))
    shown = {(row["scenario_id"], row["fact_id"], row["statement"]) for row in rows}
    assert shown == {(name, each.fact_id, each.statement) for name, each in resolved(year)}
    assert len(shown) == len(rows)
    assert {row["plan_year"] for row in rows} == {None, year}
    assert all(row["valid_from"] and row["confirmed_by"] for row in rows)


def test_facts_of_all_years_are_shown_with_dates_and_how_they_were_confirmed() -> None:
    rows = as_json("scenarios", "facts", COBRA)
    assert [row["statement"] for row in rows if row["fact_id"] == "F10"] == [
        "A person who signed up for Part B 24 months late pays $222.00 a month for Part B in 2025.",
        "A person who signed up for Part B 24 months late pays $243.50 a month for Part B in 2026.",
    ]
    assert len(rows) == 15
    code, out, _ = call("scenarios", "facts", COBRA)
    assert code == 0
    for row in rows:
        window = f"from {row['valid_from']}" + (f" to {row['valid_until']}" if row["valid_until"] else "")
        said = f"    {row['confirmed_by']}, {window}; {row['source']}, {row['locator'] or 'no locator'}\n"
        assert f"cobra {row['fact_id']}: {row['statement']}\n{said}" in f"{out}\n"
    assert out.count("\ncobra F") == 14


def test_facts_of_a_year_without_figures_are_refused() -> None:
    for what in ("facts", "sources"):
        code, out, err = call("scenarios", what, COBRA, "--plan-year", "2024")
        assert (code, out) == (2, "")
        assert "--plan-year 2024: there are no figures for that year, only for 2025, 2026" in err


def addresses() -> dict[str, set[tuple[str, str]]]:
    """Address to the facts that rest on it, read from the files themselves and by no code of ours."""
    years = {}
    for year in (2025, 2026):
        years[year] = json.loads((ROOT / "facts" / f"{year}.json").read_text(encoding="utf-8"))["figures"]
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for path in sorted(BANK.rglob("*.json")):
        made = json.loads(path.read_text(encoding="utf-8"))
        for each in made["answer_key"]["canonical_facts"]:
            name = (made["scenario_id"], each["fact_id"])
            slots = FIGURE.findall(each["statement"] + each["rationale"])
            for year in each.get("only", {}).get("plan_years") or years:
                own = each.get("address") or (years[year][slots[0]]["address"] if slots else "")
                found[own].add(name)
    return found


def test_every_address_of_the_bank_is_listed_with_the_facts_that_rest_on_it() -> None:
    rows = as_json("scenarios", "sources")
    shown = {
        row["address"] or "": {(name, each.partition("(")[0]) for name, ids in row["facts"].items() for each in ids}
        for row in rows
    }
    assert len(shown) == len(rows)
    assert all(len(ids) == len(set(ids)) for row in rows for ids in row["facts"].values())
    assert shown == addresses()


def test_sources_are_shown_as_text_too() -> None:
    code, out, _ = call("scenarios", "sources")
    assert code == 0
    lines = out.splitlines()
    rows = as_json("scenarios", "sources")
    for row in rows:
        count = sum(map(len, row["facts"].values()))
        assert f"{row['address'] or '(no address on record)'}  [{count}]" in lines
        for title in row["titles"]:
            assert f"    {title}" in lines
        for name, ids in row["facts"].items():
            assert f"      {name}: {' '.join(ids)}" in lines
    assert lines[-1] == f"{sum(bool(row['address']) for row in rows)} addresses."


def test_sources_of_one_year_name_that_year_only() -> None:
    shown = {each for row in as_json("scenarios", "sources", COBRA) for each in row["facts"]["cobra"]}
    assert {"F10(2025)", "F10(2026)"} <= shown
    shown = {
        each for row in as_json("scenarios", "sources", COBRA, "--plan-year", "2025") for each in row["facts"]["cobra"]
    }
    assert "F10(2025)" in shown
    assert "F10(2026)" not in shown
    assert len(shown) == 14


# new-scenario


def replaced(value: Any) -> Any:
    """A skeleton with the author's own text in every place that asks for it."""
    texts = {
        "user_message": "How much is Part B?",
        "Q1": "I’m worried. How much is Part B going to be?",
        "statement": "Medicare Advantage plans have provider networks.",
        "address": "https://example.org/a-page",
    }

    def own(name: str, text: str) -> str:
        return texts.get(name, "Own words") if PLACEHOLDER in text else text

    if isinstance(value, dict):
        return {name: own(name, one) if isinstance(one, str) else replaced(one) for name, one in value.items()}
    if isinstance(value, list):
        return [own("", one) if isinstance(one, str) else replaced(one) for one in value]
    return value


def test_a_new_scenario_fails_only_for_its_placeholders_and_passes_without_them(tmp_path: Path) -> None:
    path = tmp_path / "inner" / "mine.json"
    code, out, err = call("new-scenario", "my_own-1", "--out", path)
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == str(path)
    text = path.read_text(encoding="utf-8")
    assert text.count('"//') > 8
    made = json.loads(text)
    assert made["scenario_id"] == "my_own-1"
    code, out, err = call("validate", path)
    assert (code, out) == (2, "")
    start = f"medicare-eval: {path}: field "
    lines = err.splitlines()
    assert all(line.startswith(start) and line.endswith(f"still holds {PLACEHOLDER}; write your own text there.") for line in lines)  # fmt: skip
    commented = sum(PLACEHOLDER in line for line in text.splitlines() if line.lstrip().startswith('"//'))
    assert commented == 0
    assert len(lines) == text.count(PLACEHOLDER)
    path.write_text(json.dumps(replaced(made)), encoding="utf-8")
    code, out, err = call("validate", path)
    assert (code, err) == (0, "")
    assert f"{path}: ok: my_own-1, 1 turns, 2 facts, 1 required points\n" in out


def test_a_new_scenario_is_written_here_under_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = call("new-scenario", "mine")
    assert code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["mine.json"]
    assert "medicare-eval validate mine.json" in out


def test_a_new_scenario_never_overwrites(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_bytes(b"mine")
    code, out, err = call("new-scenario", "mine", "--out", path)
    assert (code, out) == (2, "")
    assert err == f"medicare-eval: {path}: exists already and is not overwritten; choose another --out.\n"
    assert path.read_bytes() == b"mine"
    assert call("new-scenario", "mine", "--out", tmp_path)[0] == 2


@pytest.mark.parametrize("name", ["", "../up", "a/b", "two words", "-x", "é", "x" * 65, "a.json"])
def test_a_bad_id_is_refused_and_nothing_is_written(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = call("new-scenario", name)
    assert (code, out) == (2, "")
    assert err.startswith("medicare-eval new-scenario: ")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    code, out, err = call("new-scenario", "mine", "--out", tmp_path / "file" / "mine.json")
    assert (code, out) == (6, "")
    assert str(tmp_path / "file" / "mine.json") in err
    assert "Traceback" not in err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_one_may_not_write_to_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    code, _, err = call("new-scenario", "mine", "--out", closed / "mine.json")
    assert code == 6
    assert str(closed / "mine.json") in err
    assert list(closed.iterdir()) == []


def test_what_is_said_of_an_unwritable_place_speaks_of_no_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    _, _, err = call("new-scenario", "mine", "--out", tmp_path / "file" / "mine.json")
    assert "resume" not in err


# What the bank holds


def test_there_are_twenty_topics_of_two_to_five_turns_in_two_styles() -> None:
    topics = read_scenarios([str(TOPICS)])
    assert len(topics) >= 20
    for file in topics:
        assert 2 <= len(file.scenario.scripted_turns) <= 5, file.path
        styles = {one.style for one in file.scenario.variants}
        assert len(styles) >= 2, file.path
        assert None not in styles, file.path
        assert "plain" in styles, file.path
        for one in file.scenario.variants:
            if one.style != "plain":
                assert set(one.turns) == {each.turn_id for each in file.scenario.scripted_turns}, file.path


@pytest.mark.parametrize(("name", "count"), [("medicare_only", 16), ("dual_eligible", 8)])
def test_the_study_has_its_questions(name: str, count: int) -> None:
    (file,) = read_scenarios([str(BANK / "v1" / "study" / f"{name}.json")])
    numbered = [re.fullmatch(r"Q(\d+)[a-z]?", one.turn_id) for one in file.scenario.scripted_turns]
    questions = [int(match.group(1)) for match in numbered if match]
    assert list(dict.fromkeys(questions)) == list(range(1, count + 1))
    assert questions == sorted(questions)
    others = [one.turn_id for one in file.scenario.scripted_turns if not re.fullmatch(r"Q\d+[a-z]?", one.turn_id)]
    assert others == ["OPEN"]


def test_the_parts_of_a_question_stand_in_one_group() -> None:
    for file in read_scenarios([str(BANK / "v1" / "study")]):
        groups = defaultdict(set)
        for one in file.scenario.scripted_turns:
            groups[one.turn_id.rstrip("ab")].add(one.question_group)
        assert all(len(found) == 1 for found in groups.values())


def each_fact() -> Iterator[tuple[str, CanonicalFact]]:
    for file in files():
        for one in file.scenario.answer_key.canonical_facts:
            yield file.scenario.scenario_id, one


def test_every_fact_of_the_bank_says_how_it_was_confirmed() -> None:
    assert [(name, one.fact_id) for name, one in each_fact() if one.confirmed_by is None] == []
    for year in (2025, 2026):
        assert [(name, one.fact_id) for name, one in resolved(year) if one.confirmed_by is None] == []


def test_every_derived_fact_of_the_bank_shows_its_arithmetic() -> None:
    for year in (2025, 2026):
        for name, one in resolved(year):
            assert one.confirmed_by != "derived" or one.rationale, (name, one.fact_id)


def test_every_figure_a_key_names_is_there_in_both_years_or_its_fact_is_limited() -> None:
    years = {}
    for year in (2025, 2026):
        years[year] = set(json.loads((ROOT / "facts" / f"{year}.json").read_text(encoding="utf-8"))["figures"])
    for name, one in each_fact():
        for figure in FIGURE.findall(one.statement + one.rationale):
            for year in one.only.plan_years or years:
                assert figure in years[year], (name, one.fact_id, figure, year)
    for file in files():
        texts = [one.user_message for one in file.scenario.scripted_turns]
        texts += [text for one in file.scenario.variants for text in one.turns.values()]
        for figure in FIGURE.findall(" ".join([*texts, *file.scenario.answer_key.disallowed_claims])):
            assert all(figure in known for known in years.values()), (file.path, figure)


def test_no_persona_stands_in_two_scenarios() -> None:
    names: dict[str, set[str]] = defaultdict(set)
    for file in files():
        one = file.scenario
        for name in {one.persona.name, *(str(each.persona.get("name", one.persona.name)) for each in one.variants)}:
            assert name, file.path
            names[str(name)].add(one.scenario_id)
    assert {name: found for name, found in names.items() if len(found) > 1} == {}


def test_every_declared_misstatement_stands_in_the_words_asked() -> None:
    declared = 0
    for file in files():
        for planned in file.planned(2026, Library()):
            for one in planned.scenario.scripted_turns:
                for wrong in one.misstates:
                    assert wrong.casefold() in one.user_message.casefold(), (planned.name, one.turn_id)
                    declared += 1
    assert declared > 5


def said_of_one_statement(part: Callable[[CanonicalFact], object]) -> dict[str, set[tuple[object, str]]]:
    """Statements of which different keys say different things."""
    found: dict[str, set[tuple[object, str]]] = defaultdict(set)
    for name, one in each_fact():
        found[one.statement].add((part(one), f"{name} {one.fact_id}"))
    return {text: said for text, said in found.items() if len({what for what, _ in said}) > 1}


def test_a_statement_never_has_two_different_sources() -> None:
    assert said_of_one_statement(lambda one: one.source) == {}


def test_a_statement_never_has_two_different_addresses() -> None:
    assert said_of_one_statement(lambda one: one.address) == {}


def test_a_statement_is_confirmed_in_one_way() -> None:
    assert said_of_one_statement(lambda one: one.confirmed_by) == {}
