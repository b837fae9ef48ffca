"""The library of facts that ships: what every fact of it has, and how many there are."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import date
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from src.planning.fill_facts import FREE_NAMES
from src.planning.library import Library
from src.planning.scenario_files import read_scenarios
from src.records.scenario import SLOT
from src.text.formula import names_in
from tests.cases import each_case
from tests.helpers import ROOT

FACTS = ROOT / "facts"
TODAY = date(2026, 11, 16)


@cache
def raw() -> dict[str, tuple[dict[str, Any], str]]:
    """Every fact as its file has it, with the name of the file, read without the code under test."""
    found: dict[str, tuple[dict[str, Any], str]] = {}
    for path in [*sorted(FACTS.glob("library/*.json")), *sorted(FACTS.glob("states/*.json"))]:
        for fact in json.loads(path.read_text(encoding="utf-8"))["facts"]:
            assert fact["fact_id"] not in found, (path, fact["fact_id"])
            found[fact["fact_id"]] = (fact, path.name)
    return found


def facts() -> Iterator[dict[str, Any]]:
    return (fact for fact, _ in raw().values())


def uses_figure(fact: dict[str, Any]) -> bool:
    return "figure." in fact["statement"]


def broken(test: Any) -> list[str]:
    return [fact["fact_id"] for fact in facts() if not test(fact)]


def test_the_library_holds_far_more_than_four_hundred_facts_and_reads_them_all() -> None:
    library = Library()
    assert library.facts.keys() == raw().keys()
    everywhere = [fact for fact in library.facts.values() if not fact.states]
    assert len(everywhere) >= 400
    assert len({theme for fact in everywhere for theme in fact.themes}) >= 40


def test_counts_by_status_add_up_and_none_is_unconfirmed() -> None:
    counts = Counter(fact["confirmed_by"] for fact in facts())
    assert set(counts) == {"primary", "secondary", "derived"}
    assert counts["primary"] > counts["secondary"] + counts["derived"]
    assert counts.total() == len(raw())


def test_every_id_is_short_plain_and_used_once_in_all_files() -> None:
    assert broken(lambda fact: re.fullmatch(r"B-[a-z0-9]+(-[a-z0-9]+)*", fact["fact_id"])) == []
    assert broken(lambda fact: len(fact["fact_id"]) <= 64) == []


def test_every_fact_has_a_source_that_can_be_looked_up() -> None:
    assert broken(lambda fact: fact["source"].strip() == fact["source"] != "") == []
    assert broken(lambda fact: (fact.get("address") and fact.get("locator")) or uses_figure(fact)) == []
    assert broken(lambda fact: fact.get("locator", "x").strip()) == []


def well_formed(address: str) -> bool:
    parts = urlsplit(address)
    host = parts.hostname or ""
    return (
        parts.scheme in ("https", "http")
        and re.fullmatch(r"([a-z0-9-]+\.)+[a-z]{2,}", host) is not None
        and not host.endswith(("example.com", "example.org", "localhost"))
        and not re.search(r"[\s<>\"{}|\\^`…]", address)
        and not address.endswith((".", ",", ")"))
        and parts.username is None
        and parts.port is None
    )


@each_case(
    "address",
    [
        "medicare.gov/x",
        "https://",
        "https://medicare",
        "https://a.gov/x y",
        "https://a.gov/x.",
        "https://example.org/x",
    ],
)
def test_a_broken_address_is_found(address: str) -> None:
    assert not well_formed(address)


def test_every_address_of_facts_and_figures_is_well_formed() -> None:
    assert broken(lambda fact: "address" not in fact or well_formed(fact["address"])) == []
    library = Library()
    for year in library.years:
        for name, figure in library.year(year).figures.items():
            assert well_formed(figure.address) and figure.locator.strip(), (year, name)


def test_every_fact_has_dates_that_are_possible() -> None:
    assert broken(lambda fact: date(1965, 1, 1) <= date.fromisoformat(fact["valid_from"]) <= date(2028, 1, 1)) == []
    ended = {name: fact for name, fact in Library().facts.items() if fact.valid_until}
    assert all(fact.valid_from <= fact.valid_until for fact in ended.values() if fact.valid_until)


def test_every_fact_has_a_severity_a_status_and_themes() -> None:
    assert broken(lambda fact: fact["severity_if_wrong"] in ("low", "medium", "high")) == []
    assert broken(lambda fact: fact["confirmed_by"] in ("primary", "secondary", "derived")) == []
    assert broken(lambda fact: fact["themes"] and all(theme.strip() for theme in fact["themes"])) == []


def test_every_derived_fact_shows_how() -> None:
    assert broken(lambda fact: fact["confirmed_by"] != "derived" or fact.get("rationale", "").strip()) == []


def test_every_statement_is_one_sentence_that_stands_alone() -> None:
    assert broken(lambda fact: re.search(r"[.][”\"’)]*$", fact["statement"])) == []
    assert broken(lambda fact: re.match(r"[A-Z0-9]|\{\{", fact["statement"])) == []
    assert (
        broken(lambda fact: not re.match(r"(It(?! is illegal to)|They|That|This|He|She|Its|Their) ", fact["statement"]))
        == []
    )


def test_no_statement_is_in_the_library_twice() -> None:
    """One statement, one id, one severity: two facts that say the same could disagree."""
    count = Counter((fact["statement"], tuple(fact.get("plan_years", ())), fact["valid_from"]) for fact in facts())
    assert [said for said, times in count.items() if times > 1] == []


def test_a_fact_has_one_severity_in_every_key_that_uses_it() -> None:
    library = Library()
    seen: dict[str, set[str]] = {}
    for file in read_scenarios([str(ROOT / "scenarios")]):
        for planned in file.planned(2026, library):
            for fact in planned.scenario.answer_key.canonical_facts:
                if fact.library:
                    assert fact.severity_if_wrong == library.facts[fact.library].severity_if_wrong
                    seen.setdefault(fact.library, set()).add(planned.scenario.scenario_id)
    assert sum(len(names) > 1 for names in seen.values()) > 50


def test_what_holds_for_everyone_is_written_out_in_no_scenario() -> None:
    """A fact of one's own is about an invented plan, doctor or place, or is written once in the library."""
    for file in read_scenarios([str(ROOT / "scenarios")]):
        for fact in file.scenario.answer_key.canonical_facts:
            slots = {slot.partition(".")[0] for slot in SLOT.findall(fact.statement)}
            assert slots & {"plan", "doctor", "place"} or fact.only.plan_kinds, (file.name, fact.fact_id)


def test_a_figure_of_the_year_is_never_written_into_a_statement() -> None:
    """Otherwise next year's file would not change it."""
    figures = {
        figure.value
        for year in (2025, 2026, 2027)
        for name, figure in Library().year(year).figures.items()
        if figure.value and re.fullmatch(r"\$\d[\d,]*\.\d\d", figure.value) and "negotiated" not in name
    }
    assert len(figures) > 50
    stated = {
        fact["fact_id"]
        for fact in facts()
        if not fact.get("plan_years") and set(re.findall(r"\$\d[\d,]*\.\d\d", fact["statement"])) & figures
    }
    assert stated == set()


def test_every_formula_of_a_cost_uses_names_that_a_run_can_fill() -> None:
    library, priced = Library(), 0
    attributes = {
        name
        for file in read_scenarios([str(ROOT / "scenarios")])
        for name in (file.scenario.persona.attributes if isinstance(file.scenario.persona.attributes, dict) else {})
    }
    for name, fact in library.facts.items():
        if fact.cost_if_wrong and fact.cost_if_wrong.formula:
            unknown = names_in(fact.cost_if_wrong.formula) - FREE_NAMES - attributes
            assert all(library.names_figure(one) for one in unknown), (name, unknown)
            priced += 1
    assert priced > 0


def test_the_files_were_compiled_before_today() -> None:
    for path in [*FACTS.glob("library/*.json"), *FACTS.glob("states/*.json")]:
        compiled = json.loads(path.read_text(encoding="utf-8"))["compiled"]
        assert date(2026, 1, 1) <= date.fromisoformat(compiled) <= TODAY, path
