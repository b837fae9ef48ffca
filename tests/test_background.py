"""Background facts: how they are written, which of them a plan year gets, and what a plan keeps of them."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from src.errors import InputError
from src.planning.fill_facts import Background, background_for, check_ids
from src.planning.library import Library
from src.planning.scenario_files import read_scenario
from src.schemas import BackgroundFact, RunPlan
from src.store.strict_json import sha256
from tests.cases import each_case
from tests.helpers import ROOT, fact_json, plan, scenario_json

TODAY = date(2026, 11, 16)
FIGURE = re.compile(r"\{\{\s*figure\.([^{}\s]+)\s*\}\}")
YEARS = sorted(int(path.stem) for path in (ROOT / "facts").glob("[0-9]*.json"))


def background_json(fact_id: str = "B-one", **changes: Any) -> dict[str, Any]:
    made = {
        "fact_id": fact_id,
        "statement": "Plans have networks.",
        "severity_if_wrong": "medium",
        "source": "A book",
        "address": "https://example.org/book",
        "locator": "page 1",
        "valid_from": "2020-01-01",
        "confirmed_by": "primary",
        "themes": ["networks"],
        **changes,
    }
    return {name: value for name, value in made.items() if value is not None}


def write(folder: Path, name: str, /, *facts: dict[str, Any], **changes: Any) -> Path:
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"compiled": "2026-11-16", "facts": list(facts), **changes}), encoding="utf-8")
    return path


def found(folder: Path, year: int = 2026, facts_file: Path | None = None, today: date = TODAY) -> Background:
    return background_for(year, Library(facts_file, library_folder=folder, today=today))


def ids(background: Background) -> list[str]:
    return [fact.fact_id for fact in background.facts]


def refused(folder: Path) -> str:
    with pytest.raises(InputError) as error:
        found(folder)
    return str(error.value)


def test_figures_and_the_year_are_filled_and_the_figure_gives_its_source(tmp_path: Path) -> None:
    said = "In {{plan_year}} Part B is {{figure.part_b_premium}} a month."
    write(tmp_path, "premiums", background_json(statement=said, address=None, locator=None))
    for year, amount in ((2025, "$185.00"), (2026, "$202.90")):
        (fact,) = found(tmp_path, year).facts
        assert fact.statement == f"In {year} Part B is {amount} a month."
        figure = Library().year(year).figures["part_b_premium"]
        assert (fact.address, fact.locator) == (figure.address, figure.locator)
        assert (fact.valid_from, fact.valid_until) == (date(year, 1, 1), date(year, 12, 31))
        assert fact.confirmed_by == figure.confirmed_by == "primary"
        assert (fact.themes, fact.source, fact.severity_if_wrong) == (("networks",), "A book", "medium")


def test_a_fact_is_no_surer_than_its_figure(tmp_path: Path) -> None:
    poverty = "The poverty guideline for one is {{figure.poverty_guideline_one}} a year."
    write(tmp_path, "a", background_json(statement=poverty, address=None, locator=None, confirmed_by="primary"))
    (fact,) = found(tmp_path).facts
    assert fact.confirmed_by == Library().year(2026).figures["poverty_guideline_one"].confirmed_by == "secondary"


def test_facts_of_all_files_are_sorted_by_id_and_each_file_s_hash_is_kept(tmp_path: Path) -> None:
    one = write(tmp_path, "a", background_json("B-z"), background_json("B-m"))
    two = write(tmp_path, "b", background_json("B-a"))
    library = Library(library_folder=tmp_path)
    assert ids(background_for(2026, library)) == ["B-a", "B-m", "B-z"]
    assert library.used == {f"facts/library/{path.name}": sha256(path.read_bytes()) for path in (one, two)}


def test_neither_the_order_of_facts_nor_that_of_files_matters(tmp_path: Path) -> None:
    facts = [background_json(f"B-{name}", statement=f"Rule {name} holds.") for name in "abcd"]
    for folder, files in (
        ("x", {"one": facts[:2], "two": facts[2:]}),
        ("y", {"two": facts[1::-1], "one": facts[:1:-1]}),
    ):
        (tmp_path / folder).mkdir()
        for name, held in files.items():
            write(tmp_path / folder, name, *held)
    assert found(tmp_path / "x").facts == found(tmp_path / "y").facts


@each_case(
    ("changes", "reason"),
    [
        ({"valid_until": "2025-12-31"}, "it is valid only until 2025-12-31"),
        ({"valid_until": "2026-06-30"}, "it is valid only until 2026-06-30"),
        ({"valid_from": "2026-11-17"}, "it is valid only from 2026-11-17"),
        ({"valid_until": "2026-11-15"}, "it is valid only until 2026-11-15"),
        ({"plan_years": [2025, 2027]}, "it is for plan year 2025, 2027"),
    ],
)
def test_what_does_not_hold_on_the_day_is_left_out_with_its_reason(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    always = background_json("B-always", valid_until="2026-12-31", valid_from="2026-01-01", plan_years=[2026])
    write(tmp_path, "a", background_json("B-not", **changes), always)
    background = found(tmp_path)
    assert ids(background) == ["B-always"]
    assert background.left_out == {"B-not": reason}


@each_case(
    ("today", "year", "used"),
    [
        ("2026-06-30", 2026, "B-first-half"),
        ("2026-07-01", 2026, "B-second-half"),
        ("2026-11-16", 2026, "B-second-half"),
        ("2027-03-01", 2026, "B-second-half"),  # a past year is read as of its last day
        ("2025-11-01", 2026, "B-first-half"),  # and a coming one as of its first
    ],
)
def test_a_fact_that_changes_within_a_year_is_used_as_of_the_day(
    tmp_path: Path, today: str, year: int, used: str
) -> None:
    until = background_json("B-first-half", statement="It is so.", valid_until="2026-06-30")
    write(tmp_path, "a", until, background_json("B-second-half", statement="It is not.", valid_from="2026-07-01"))
    background = found(tmp_path, year, today=date.fromisoformat(today))
    assert ids(background) == [used]
    assert len(background.left_out) == 1


def test_facts_that_wait_for_one_figure_say_so_once(tmp_path: Path) -> None:
    waits = [background_json(f"B-{name}", statement=f"{name} is {{{{figure.part_b_premium}}}}.") for name in "ab"]
    write(tmp_path, "a", *waits)
    background = found(tmp_path, 2027)
    (fact,) = background.facts
    assert (fact.fact_id, fact.not_published) == ("B-a", "2026-11")
    assert fact.statement.startswith("As of 2026-11-16, this amount for 2027 is not published yet: ")
    assert fact.statement.endswith(" The amount for 2026 is $202.90.")
    assert background.left_out == {"B-b": "it waits for the same figure as B-a"}
    late = found(tmp_path, 2027, today=date(2026, 12, 1))
    assert (late.facts, set(late.left_out)) == ((), {"B-a", "B-b"})
    assert set(late.left_out.values()) == {"it needs a figure that is not known for 2027"}


def test_a_fact_is_left_out_if_its_figures_do_not_hold_on_the_day(tmp_path: Path) -> None:
    shipped = json.loads((ROOT / "facts" / "2026.json").read_text(encoding="utf-8"))
    figures = tmp_path / "figures.json"
    figures.write_text(json.dumps({**shipped, "valid_until": "2026-09-30"}), encoding="utf-8")
    (tmp_path / "facts").mkdir()
    write(tmp_path / "facts", "a", background_json(statement="It is {{figure.part_b_premium}}."))
    assert found(tmp_path / "facts", facts_file=figures).left_out == {"B-one": "it is valid only until 2026-09-30"}


def test_a_year_without_figures_keeps_the_facts_that_need_none(tmp_path: Path) -> None:
    needs = background_json("B-needs", statement="It is {{figure.part_b_premium}}.")
    write(tmp_path, "a", needs, background_json("B-free"))
    background = found(tmp_path, 2099)
    assert (ids(background), list(background.left_out)) == (["B-free"], ["B-needs"])


def test_a_fact_with_a_figure_that_only_another_year_has_is_left_out(tmp_path: Path) -> None:
    known = Library().year(2026).figures.keys()
    (name, *_) = sorted(known - Library().year(2025).figures.keys())
    write(tmp_path, "a", background_json("B-not", statement=f"It is {{{{figure.{name}}}}}."), background_json("B-free"))
    assert ids(found(tmp_path, 2026)) == ["B-free", "B-not"]
    background = found(tmp_path, 2025)
    assert ids(background) == ["B-free"]
    assert background.left_out == {"B-not": "it needs a figure that is not known for 2025"}


@each_case("where", ["statement", "rationale"])
def test_a_misspelled_figure_is_an_error_and_not_left_out(tmp_path: Path, where: str) -> None:
    write(tmp_path, "a", background_json("B-not", **{where: "It is {{figure.part_b_premum}}."}), background_json())
    assert refused(tmp_path) == (
        "background fact B-not: facts/2026.json has no figure 'part_b_premum'. Add it or check the name."
    )


def test_a_figure_that_is_no_amount_is_left_out_while_it_is_not_published(tmp_path: Path) -> None:
    """That "this amount" is not published, and was SLMB last year, would make no sense."""
    program = background_json("B-program", statement="The program is {{figure.msp_for_1600}}.")
    write(tmp_path, "a", program, background_json("B-limit", statement="Up to {{figure.msp_for_1600_limit}}."))
    background = found(tmp_path, 2027)
    assert ids(background) == ["B-limit"]
    assert background.facts[0].statement.endswith(" The amount for 2026 is $1,616.")
    assert background.left_out == {"B-program": "it needs a figure that is not known for 2027"}
    assert ids(found(tmp_path, 2026)) == ["B-limit", "B-program"]


def test_an_id_that_two_files_use_is_refused(tmp_path: Path) -> None:
    one, two = write(tmp_path, "a", background_json()), write(tmp_path, "b", background_json())
    assert refused(tmp_path) == f"{two}: field fact_id: 'B-one' is also used by {one}. Change one."


def test_an_id_that_one_file_uses_twice_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "a", background_json(), background_json())
    assert refused(tmp_path) == f"{path}: fact_id 'B-one' appears more than once."


@each_case(
    ("changes", "said"),
    [
        (
            {"fact_id": "F1"},
            "field facts[0].fact_id: 'F1' is not the id of a background fact; use B- and then up to 62",
        ),
        ({"fact_id": "B-"}, "field facts[0].fact_id: 'B-' is not the id"),
        ({"fact_id": "B-Part"}, "field facts[0].fact_id: 'B-Part' is not the id"),
        ({"fact_id": "B-one\n"}, "field facts[0].fact_id: 'B-one\\n' is not the id"),
        ({"fact_id": "B-" + "a" * 63}, "is not the id"),
        (
            {"statement": "In {{place.city}}."},
            "field facts[0].statement: unknown slot {{place.city}}; use {{plan_year}}",
        ),
        ({"statement": "It is {{figure.x}."}, "field facts[0].statement: unbalanced {{ or }}"),
        ({"address": None}, "field facts[0]: address and locator are required, except in a statement that uses"),
        ({"locator": None}, "field facts[0]: address and locator are required"),
        ({"address": "page 3"}, "field facts[0].address: "),
        ({"confirmed_by": None}, "field facts[0].confirmed_by: required but missing"),
        ({"confirmed_by": "U"}, "field facts[0].confirmed_by: 'U' is not allowed"),
        ({"themes": []}, "field facts[0].themes: must not be empty"),
        ({"valid_until": "2019-12-31"}, "field facts[0]: valid_until is before valid_from"),
        ({"tells": ["$5"], "tell": 1}, "field facts[0].tell: unknown field"),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence_with_file_and_field(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    path = write(tmp_path, "a", background_json(**changes))
    message = refused(tmp_path)
    assert message.startswith(f"{path}: ") and said in message
    assert "\n" not in message


def test_a_file_without_facts_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "a")
    assert "field facts: must not be empty" in refused(tmp_path)


def test_a_scenario_may_not_use_the_id_of_a_background_fact(tmp_path: Path) -> None:
    (tmp_path / "facts").mkdir()
    write(tmp_path / "facts", "a", background_json())
    made = scenario_json()
    made["answer_key"] = {"canonical_facts": [fact_json("B-one")], "required_points": [], "disallowed_claims": []}
    path = tmp_path / "s.json"
    path.write_text(json.dumps(made), encoding="utf-8")
    planned = read_scenario(path).planned(2026, Library())
    with pytest.raises(InputError, match=r"s\.json: .*'B-one' is the id of a background fact\. Choose another id"):
        check_ids(planned, found(tmp_path / "facts"))
    check_ids(planned, Background((), {}))


def test_a_plan_without_background_facts_has_the_bytes_it_always_had() -> None:
    made = plan()
    assert "background" not in made.model_dump()
    fact = BackgroundFact.model_validate_json(json.dumps(background_json()))
    assert "background" in made.model_copy(update={"background": (fact,)}).model_dump()
    carries = made.model_copy(update={"background": (fact,)})
    assert RunPlan.model_validate_json(carries.model_dump_json()) == carries


@each_case("year", YEARS)
def test_every_shipped_fact_can_be_filled_for_every_year_it_is_for(year: int) -> None:
    """A misspelled figure must not slip by as one that is not known yet."""
    library = Library()
    background = background_for(year, library, {state for fact in library.facts.values() for state in fact.states})
    lacking = {name for name, reason in background.left_out.items() if "needs a figure" in reason}
    figures = library.year(year).figures
    unsaid = {"msp_for_1600"} if figures["msp_for_1600"].value is None else set()  # no amount, so nothing is said of it
    known = figures.keys() - unsaid
    assert not {name for name in lacking if known.issuperset(FIGURE.findall(library.facts[name].statement))}
    assert len(background.facts) > 1_000
    assert not any("{{" in fact.statement + fact.rationale for fact in background.facts)
    assert all(fact.address and fact.locator for fact in background.facts)


def test_every_figure_that_a_shipped_fact_names_is_known_in_some_year() -> None:
    library = Library()
    named = {name for fact in library.facts.values() for name in FIGURE.findall(fact.statement + fact.rationale)}
    assert len(named) > 60
    assert [name for name in sorted(named) if not library.names_figure(name)] == []
