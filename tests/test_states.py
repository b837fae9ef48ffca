"""Facts that hold in one state: what ships, who gets which, and who does not."""

from __future__ import annotations

import asyncio
import json
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from src.agents.adjudicator import settle
from src.agents.ask import AskedTurn, state_of
from src.agents.verifier import Shown, key_in_view, verify
from src.errors import InputError
from src.planning.fill_facts import background_for
from src.planning.library import Library
from src.planning.scenario_files import read_scenario
from src.runner.judge_turn import FactFinder
from src.schemas import ClaimInView, Label, PlannedScenario, RunPlan, TiedClaim
from src.storage import read_manifest
from tests.cases import each_case
from tests.helpers import ROOT, client, key_of, scenario, scenario_json, shown, verdict, verdicts_json
from tests.runs import shared_run
from tests.test_background import background_json, write

STATES = ROOT / "facts" / "states"
TOPICS = ROOT / "scenarios" / "v1" / "topics"
MEDIGAP = TOPICS / "medigap_rights.json"
RIGHTS_OF_THEIR_OWN = ("NY", "CT", "MA", "ME", "WA", "OR", "CA", "MO", "ID", "NV", "LA", "MD")
NO_RIGHTS_OF_THEIR_OWN = ("GA", "KS")
BY_STATE = ("medigap_rights", "leaving_advantage", "savings_programs", "drug_assistance")


@cache
def shipped() -> Library:
    return Library()


def variants(path: Path, year: int = 2026) -> dict[str | None, PlannedScenario]:
    return {one.variant: one for one in read_scenario(path).planned(year, shipped())}


def said(one: PlannedScenario) -> dict[str, str]:
    return {fact.library or fact.fact_id: fact.statement for fact in one.scenario.answer_key.canonical_facts}


# What ships


@each_case("path", sorted(STATES.glob("*.json")), ids=lambda path: path.stem)
def test_a_state_file_is_about_its_state(path: Path) -> None:
    made = json.loads(path.read_text(encoding="utf-8"))
    assert made["state"] == path.stem
    for fact in made["facts"]:
        assert fact["fact_id"].startswith(f"B-{path.stem.lower()}-")
        named = made["name"] in fact["statement"] or fact["statement"].startswith(f"{made['name']}’s")
        assert named, (fact["fact_id"], fact["statement"])


@each_case("state", RIGHTS_OF_THEIR_OWN)
def test_a_state_with_rights_of_its_own_says_which(state: str) -> None:
    right = shipped().facts[f"B-{state.lower()}-medigap-right"]
    assert right.states == (state,)
    assert "gives no birthday" not in right.statement


@each_case("state", NO_RIGHTS_OF_THEIR_OWN)
def test_a_state_without_rights_of_its_own_says_so(state: str) -> None:
    library = shipped()
    assert "gives no birthday, anniversary, annual" in library.facts[f"B-{state.lower()}-medigap-right"].statement
    assert "has no Medigap birthday rule" in library.facts[f"B-{state.lower()}-medigap-no-birthday-rule"].statement


def test_no_library_fact_has_the_prefix_of_a_state() -> None:
    """`B-{{state}}-x` would take it for a fact of that state."""
    prefixes = {f"B-{path.stem.lower()}-" for path in STATES.glob("*.json")}
    assert [name for name, fact in shipped().facts.items() if not fact.states and name[:5] in prefixes] == []


@each_case("name", BY_STATE)
def test_questions_that_depend_on_the_state_are_asked_in_several(name: str) -> None:
    codes = {one.state_code for one in variants(TOPICS / f"{name}.json").values()}
    assert len(codes - {None}) >= 4
    keys = {json.dumps(sorted(said(one).items())) for one in variants(TOPICS / f"{name}.json").values()}
    assert len(keys) >= len(codes - {None})


def test_the_bank_asks_in_ten_states_with_rights_of_their_own_and_in_two_without() -> None:
    asked = {one.state_code for name in BY_STATE for one in variants(TOPICS / f"{name}.json").values()}
    assert len(asked.intersection(RIGHTS_OF_THEIR_OWN)) >= 10
    assert asked.issuperset(NO_RIGHTS_OF_THEIR_OWN)


# The same question, asked in two states


def test_a_californian_and_a_georgian_get_different_keys() -> None:
    asked = variants(MEDIGAP)
    california, georgia = asked["ca"], asked["plain"]
    assert (california.state_code, georgia.state_code) == ("CA", "GA")
    questions = [[turn.user_message for turn in one.scenario.scripted_turns] for one in (california, georgia)]
    assert questions[0] == questions[1]
    ours, theirs = said(california), said(georgia)
    assert "may change to another Medigap policy each year after the birthday" in ours["B-ca-medigap-right"]
    assert theirs["B-ga-medigap-no-birthday-rule"] == "Georgia has no Medigap birthday rule."
    assert not [name for name in ours if name.startswith("B-ga-")]
    assert not [name for name in theirs if name.startswith("B-ca-")]
    shared = {name: text for name, text in ours.items() if not name.startswith("B-ca-")}
    assert shared.items() <= theirs.items()


@each_case("name", BY_STATE)
def test_no_key_holds_a_fact_of_another_state(name: str) -> None:
    for one in variants(TOPICS / f"{name}.json").values():
        for fact in one.scenario.answer_key.canonical_facts:
            states = shipped().facts[fact.library].states if fact.library else ()
            assert not states or states == (one.state_code,), (one.name, fact.library)


def test_points_on_facts_of_a_state_are_those_of_the_persona_s_own() -> None:
    for one in variants(MEDIGAP).values():
        known = one.scenario.answer_key.fact_ids()
        for turn in one.scenario.scripted_turns:
            assert turn.required_points or turn.background, (one.name, turn.turn_id)
            assert set(turn.background) <= known


# References


def refers(folder: Path, reference: str, state: str | None = "California") -> PlannedScenario:
    made = scenario_json()
    made["persona"]["state"] = state
    made["answer_key"]["library_facts"] = {"F3": reference}
    path = folder / "s.json"
    path.write_text(json.dumps(made), encoding="utf-8")
    (one,) = read_scenario(path).planned(2026, shipped())
    return one


@each_case(
    ("state", "code", "held"),
    [
        ("California", "CA", "B-ca-medigap-right"),
        ("CA", "CA", "B-ca-medigap-right"),
        ("ca", "CA", "B-ca-medigap-right"),
        (" california ", "CA", "B-ca-medigap-right"),
        ("NEW YORK", "NY", "B-ny-medigap-right"),
        ("Georgia", "GA", "B-ga-medigap-right"),
        ("Hawaii", None, None),
        (None, None, None),
    ],
)
def test_a_reference_with_the_state_is_to_the_persona_s_own(
    tmp_path: Path, state: str | None, code: str | None, held: str | None
) -> None:
    one = refers(tmp_path, "B-{{state}}-medigap-right", state)
    assert one.state_code == code
    found = [fact.library for fact in one.scenario.answer_key.canonical_facts if fact.fact_id == "F3"]
    assert found == ([held] if held else [])


@each_case(
    ("reference", "why"),
    [
        ("B-{{state}}-none", r"answer_key\.library_facts\.F3: no state has a fact 'B-\{\{state\}\}-none'"),
        ("B-none", r"answer_key\.library_facts\.F3: the library has no fact 'B-none'"),
        ("B-{{place}}-none", r"field answer_key\.library_facts\.F3: .*'B-\{\{place\}\}-none'"),
        ("B-medigap-{{state}}", r"field answer_key\.library_facts\.F3: .*'B-medigap-\{\{state\}\}'"),
        ("B-{{state}}-{{state}}", r"field answer_key\.library_facts\.F3: .*'B-\{\{state\}\}-\{\{state\}\}'"),
    ],
)
def test_a_reference_to_nothing_is_refused(tmp_path: Path, reference: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        refers(tmp_path, reference)


def test_a_topic_that_only_the_library_has_is_no_topic_of_a_state(tmp_path: Path) -> None:
    """`B-{{state}}-b-premium` must not find `B-part-b-premium`, nor any id with two letters more."""
    (name, *_) = (one for one, fact in shipped().facts.items() if not fact.states and one[4:5] == "-")
    with pytest.raises(InputError, match="no state has a fact"):
        refers(tmp_path, f"B-{{{{state}}}}-{name[5:]}")


@each_case("state", ["Georgia", "Hawaii", None])
def test_a_fact_of_another_state_is_refused_with_the_slot_to_write(tmp_path: Path, state: str | None) -> None:
    assert refers(tmp_path, "B-ca-medigap-right", "California").state_code == "CA"
    with pytest.raises(InputError) as error:
        refers(tmp_path, "B-ca-medigap-right", state)
    assert str(error.value).endswith(
        "answer_key.library_facts.F3: 'B-ca-medigap-right' holds only in CA, where this person does not live. "
        "Write B-{{state}}-... for a fact of the person's own state."
    )


# Background facts of a state


def state_file(folder: Path, *facts: dict[str, Any], state: str = "NY", name: str = "New York") -> Library:
    library, states = folder / "library", folder / "states"
    library.mkdir(exist_ok=True)
    states.mkdir(exist_ok=True)
    write(library, "a", background_json("B-everywhere", statement="Medigap policies are sold everywhere."))
    write(states, state, *facts, state=state, name=name)
    return Library(library_folder=library, today=date(2026, 11, 16))


def test_facts_of_a_state_are_background_only_where_somebody_lives_there(tmp_path: Path) -> None:
    library = state_file(tmp_path, background_json("B-ny-one", statement="New York sells Medigap all year."))
    assert [fact.fact_id for fact in background_for(2026, library).facts] == ["B-everywhere"]
    assert [fact.fact_id for fact in background_for(2026, library, {"Ohio"}).facts] == ["B-everywhere"]
    found = background_for(2026, library, {"New York"}).facts
    assert [(fact.fact_id, fact.states) for fact in found] == [("B-everywhere", ()), ("B-ny-one", ("NY",))]


@each_case(
    ("changes", "said_of_it"),
    [
        ({"fact_id": "B-nj-one"}, "fact_id 'B-nj-one' must start with B-ny-"),
        ({"fact_id": "B-one"}, "fact_id 'B-one' must start with B-ny-"),
    ],
)
def test_the_id_of_a_state_fact_names_the_state(tmp_path: Path, changes: dict[str, Any], said_of_it: str) -> None:
    library = state_file(tmp_path, background_json(**changes))
    with pytest.raises(InputError, match=said_of_it):
        background_for(2026, library, {"New York"})


def test_judges_are_offered_the_facts_of_the_person_s_own_state_only() -> None:
    finder = FactFinder(background_for(2026, shipped(), {"California", "New York"}).facts)
    key = key_in_view(variants(TOPICS / "cobra.json")["plain"].scenario.answer_key)
    text = "You can change your Medigap policy each year after your birthday without a health check."
    claim = ClaimInView(claim_id="Q1.C1", text=text, quotes=(text,))
    offered = {state: {fact.fact_id for fact in finder.find([claim], key, state)} for state in ("CA", "NY", "GA", None)}
    assert "B-ca-medigap-right" in offered["CA"]
    for state, found in offered.items():
        others = {name for name in found if name[:5] in ("B-ca-", "B-ny-") and name[2:4] != str(state).lower()}
        assert others == set(), state


@each_case(("state", "sent"), [("California", "California"), (None, None), (["CA"], None)])
def test_verifiers_and_the_adjudicator_are_told_where_the_person_lives(state: Any, sent: str | None) -> None:
    made = scenario_json()
    made["persona"]["state"] = state
    one = scenario(persona=made["persona"])
    asked = AskedTurn("What is Part B?", 2026, lives_in=state_of(one.persona))
    judge, seen = client(verdicts_json(verdict()))
    asyncio.run(verify(judge, (shown(),), Shown(asked, key_of(one))))
    assert seen.payload().get("lives_in") == sent
    labels: tuple[Label, ...] = ("SUPPORTED", "NOT_IN_KEY")
    tie = TiedClaim(claim_id="Q1.C1", text="Plans have networks.", quotes=("Plans have networks.",), options=labels)
    judge, seen = client(json.dumps({"decisions": []}), max_asks=1)
    asyncio.run(settle(judge, (tie,), Shown(asked, key_of(one))))
    assert seen.payload().get("lives_in") == sent


# Through the command line


@pytest.fixture(scope="module")
def planned() -> RunPlan:
    chosen = ("--variant", "ca", "--variant", "plain")
    run = shared_run("--scenario", MEDIGAP, "--target", "fake:careful", *chosen)
    return read_manifest(run).plan


def test_a_run_keeps_where_each_person_lives_and_the_facts_of_both_states(planned: RunPlan) -> None:
    assert {one.variant: one.state_code for one in planned.scenarios} == {"plain": "GA", "ca": "CA"}
    assert {fact.states for fact in planned.background} == {(), ("CA",), ("GA",)}
    used = {name for name in planned.references if name.startswith("facts/states/")}
    assert used == {"facts/states/CA.json", "facts/states/GA.json"}
