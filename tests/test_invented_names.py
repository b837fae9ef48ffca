"""The people, places, plans and doctors of the bank are invented, and their names do not say so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

import zipcodes

from src.planning.library import Library
from src.planning.scenario_files import read_scenarios
from src.schemas import Persona
from tests.cases import each_case
from tests.helpers import ROOT

ANNOUNCES_A_TEST = re.compile(
    r"exampl|sample|\bmock|pretend|invent|fictit|fictional|imagin|placeholder|dummy|fake|demo\b|"
    r"\btest|noname|nobody|nowhere|anytown|testville|\bdoe\b|acme|lorem|foo\b|\bbar\b",
    re.IGNORECASE,
)
REAL_BUSINESSES = (
    "Aetna", "Alignment", "AARP", "Anthem", "Blue Cross", "Blue Shield", "BlueCross", "BlueShield", "Bright Health",
    "CareFirst", "CarePlus", "Centene", "Cigna", "Clover", "CVS", "Devoted", "Elevance", "Emblem", "Essence", "Express Scripts",
    "Florida Blue", "Geisinger", "HAP", "HCSC", "HealthFirst", "HealthPartners", "HealthSpring", "Highmark", "Horizon",
    "Humana", "Independence", "Kaiser", "Medica", "MetroPlus", "Moda", "Molina", "Mutual of Omaha", "Optum", "Oscar",
    "Physicians Health", "Premera", "Presbyterian", "Priority Health", "Providence", "Regence", "SCAN", "Security Health",
    "SelectHealth", "SilverScript", "Sonder", "State Farm", "Summacare", "Sutter", "Tufts", "UCare", "UnitedHealth",
    "UPMC", "Viva", "Walgreens", "WellCare", "Wellpoint", "Zing",
    "Ambetter", "AmeriHealth", "AvMed", "Capital Health", "Dean", "Fallon", "Freedom", "Gateway", "Harvard Pilgrim",
    "Johns Hopkins", "Medical Mutual", "Network Health", "Paramount", "PacificSource", "Quartz", "Sentara", "Simply",
    "AbbVie", "Amgen", "AstraZeneca", "Bayer", "Bristol", "Gilead", "GSK", "Johnson", "Lilly", "Merck", "Moderna",
    "Novartis", "Novo", "Pfizer", "Roche", "Sanofi", "Takeda", "Teva", "Viatris",
)  # fmt: skip
"""Insurers, plan brands, pharmacies and drug makers that a reader could take an invented name for."""


@cache
def real_places() -> tuple[dict[str, Any], ...]:
    """Every ZIP code of the country with its towns, county and state."""
    return tuple(zipcodes.list_all())  # type: ignore[no-untyped-call]


@cache
def real_codes() -> frozenset[str]:
    return frozenset(place["zip_code"] for place in real_places())


def personas() -> Iterator[tuple[str, Persona]]:
    """Every person who asks, once for each variant, as a target meets them."""
    library = Library()
    for file in read_scenarios([str(ROOT / "scenarios")]):
        for planned in file.planned(2026, library):
            yield planned.name, planned.scenario.persona


@cache
def real_towns() -> frozenset[str]:
    """Every name under which the post office knows a town anywhere in the country."""
    lists = ("acceptable_cities", "unacceptable_cities")
    return frozenset(
        town.casefold() for place in real_places() for town in chain([place["city"]], *(place[name] for name in lists))
    )


def a_real_business(name: str) -> str | None:
    """The business whose name is in this one, as words."""
    return next((one for one in REAL_BUSINESSES if re.search(rf"\b{re.escape(one)}", name, re.IGNORECASE)), None)


def invented() -> dict[str, str]:
    """Every invented name of a plan, doctor or place, by where it is."""
    plans = Library().invented_plans("invented")
    found = {f"plans.{key}": one.name for key, one in plans.plans.items()}
    found |= {f"doctors.{key}": one.name for key, one in plans.doctors.items()}
    for key, one in plans.places.items():
        found |= {f"places.{key}.city": one.city, f"places.{key}.county": one.county}
    return found


def test_the_list_of_real_places_knows_real_places() -> None:
    assert {"columbus", "albuquerque", "beverly hills", "holtsville"} <= real_towns()
    assert {"10001", "90210"} <= real_codes()
    assert len(real_towns()) > 18_000


def test_no_town_is_real() -> None:
    towns = {(name, str(one.city)) for name, one in personas() if one.city}
    assert len(towns) > 40
    assert [(name, town) for name, town in sorted(towns) if town.casefold() in real_towns()] == []


def test_every_zip_code_looks_like_one_and_belongs_to_nobody() -> None:
    codes = {(name, str(one.zip_code)) for name, one in personas() if one.zip_code}
    assert len(codes) > 40
    assert [code for code in sorted(codes) if not re.fullmatch(r"\d{5}", code[1])] == []
    assert [code for code in sorted(codes) if len(set(code[1])) == 1] == []
    assert [code for code in sorted(codes) if code[1] in real_codes()] == []


@dataclass(frozen=True)
class Home:
    code: str
    zip_code: object
    county: object


def in_known_states() -> Iterator[tuple[str, Home]]:
    """Where the people live whose state has facts of its own, so that its code is known."""
    library = Library()
    for name, one in personas():
        if code := library.state_code(one.state):
            yield name, Home(code, one.zip_code, one.county)


def test_no_county_is_one_of_its_state() -> None:
    real = {(place["state"], place["county"].casefold()) for place in real_places()}
    assert ("OH", "franklin county") in real
    found = [(name, one) for name, one in in_known_states() if one.county]
    assert len(found) > 30
    assert [name for name, one in found if (one.code, str(one.county).casefold()) in real] == []


def state_prefixes() -> dict[str, set[str]]:
    """The first three digits of real ZIP codes, by the code of the state."""
    found: dict[str, set[str]] = {}
    for place in real_places():
        found.setdefault(place["state"], set()).add(place["zip_code"][:3])
    return found


def test_a_zip_code_begins_as_those_of_its_state_do() -> None:
    """Otherwise a careful reader sees at once that the person cannot exist."""
    prefixes, checked = state_prefixes(), 0
    for name, one in in_known_states():
        if one.zip_code:
            assert str(one.zip_code)[:3] in prefixes[one.code], (name, one.zip_code, one.code)
            checked += 1
    assert checked > 40


def test_no_name_of_a_person_or_place_announces_a_test() -> None:
    for name, one in personas():
        for text in (one.name, one.city, one.county, one.state):
            assert not ANNOUNCES_A_TEST.search(str(text)), (name, text)


def test_no_invented_plan_doctor_or_place_announces_a_test() -> None:
    names = invented()
    assert len(names) >= 6
    assert {where: name for where, name in names.items() if ANNOUNCES_A_TEST.search(name)} == {}


def test_no_question_announces_a_test() -> None:
    for file in read_scenarios([str(ROOT / "scenarios")]):
        scenario = file.scenario
        texts = [one.user_message for one in scenario.scripted_turns]
        texts += [text for one in scenario.variants for text in one.turns.values()]
        for text in texts:
            assert not re.search(r"\b(fictional|fictitious|invented|placeholder|Example\w*ton|Pretend\w+)\b", text), (
                text
            )


@each_case("where", sorted(invented()))
def test_no_invented_name_contains_that_of_a_real_business(where: str) -> None:
    name = invented()[where]
    assert a_real_business(name) is None, (name, a_real_business(name))


def test_no_invented_town_is_real() -> None:
    plans = Library().invented_plans("invented")
    assert [one.city for one in plans.places.values() if one.city.casefold() in real_towns()] == []
    assert [one.zip_code for one in plans.places.values() if one.zip_code in real_codes()] == []


@each_case(
    "name",
    [
        "Fairmeadow Example HMO",
        "Dr. Hollis Pretendwell",
        "Ann Sample",
        "Mockville",
        "Testburg",
        "Jane Doe",
        "Inventado",
    ],
)
def test_a_name_that_announces_a_test_is_found(name: str) -> None:
    assert ANNOUNCES_A_TEST.search(name)


@each_case("name", ["Humana Gold Plus HMO", "Kaiser Choice", "Novo Care", "blue cross of Lakemont"])
def test_the_name_of_a_real_business_is_found(name: str) -> None:
    assert a_real_business(name)


def test_every_persona_has_a_first_and_a_last_name_of_its_own() -> None:
    for name, one in personas():
        assert len(str(one.name).split()) >= 2, (name, one.name)
