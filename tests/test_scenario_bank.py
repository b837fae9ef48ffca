"""What every scenario of the bank has: turns, styles, sources, dates and figures that fit together."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from src.planning.library import Library
from src.planning.scenario_files import ScenarioFile, read_scenarios
from src.schemas import SLOT, CanonicalFact, PlannedScenario
from tests.cases import each_case
from tests.helpers import ROOT
from tests.reading_level import grade, syllables

BANK = ROOT / "scenarios"
TOPICS = BANK / "v1" / "topics"
FIGURE = re.compile(r"\{\{\s*figure\.([^{}\s]+)\s*\}\}")


YEARS = (2025, 2026, 2027)


def files() -> tuple[ScenarioFile, ...]:
    return read_scenarios([str(BANK)])


@cache
def plans(year: int) -> tuple[PlannedScenario, ...]:
    """Every scenario that covers a plan year, in every variant, made ready."""
    library = Library()
    return tuple(one for file in files() if year in file.years(library) for one in file.planned(year, library))


def resolved(year: int) -> Iterator[tuple[str, CanonicalFact]]:
    for file in files():
        for one in file.planned(year, Library()):
            for each in one.scenario.answer_key.canonical_facts:
                yield one.scenario.scenario_id, each


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


@each_case(("name", "count"), [("medicare_only", 16), ("dual_eligible", 8)])
def test_the_study_has_its_questions(name: str, count: int) -> None:
    (file,) = read_scenarios([str(BANK / "v1" / "study" / f"{name}.json")])
    numbered = [re.fullmatch(r"Q(\d+)[a-z]?", one.turn_id) for one in file.scenario.scripted_turns]
    questions = [int(match.group(1)) for match in numbered if match]
    assert list(dict.fromkeys(questions)) == list(range(1, count + 1))
    assert questions == sorted(questions)
    others = [one.turn_id for one in file.scenario.scripted_turns if not re.fullmatch(r"Q\d+[a-z]?", one.turn_id)]
    assert others == ["OPEN"]


def test_the_parts_of_a_question_are_in_one_group() -> None:
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
    for year in YEARS:
        assert [(name, one.fact_id) for name, one in resolved(year) if one.confirmed_by is None] == []


def test_every_derived_fact_of_the_bank_shows_its_arithmetic() -> None:
    for year in YEARS:
        for name, one in resolved(year):
            assert one.confirmed_by != "derived" or one.rationale, (name, one.fact_id)


def test_every_figure_a_key_writes_out_is_there_in_every_year_or_its_fact_is_limited() -> None:
    library = Library()
    for name, one in each_fact():
        for figure in FIGURE.findall(one.statement + one.rationale):
            for year in one.only.plan_years or YEARS:
                assert figure in library.year(year).figures, (name, one.fact_id, figure, year)


def test_a_question_or_disallowed_claim_names_only_figures_that_are_known() -> None:
    """A question cannot be asked with an amount that nobody knows."""
    library = Library()
    for file in files():
        texts = [one.user_message for one in file.scenario.scripted_turns]
        texts += [text for one in file.scenario.variants for text in one.turns.values()]
        for figure in FIGURE.findall(" ".join([*texts, *file.scenario.answer_key.disallowed_claims])):
            for year in file.years(library):
                found = library.year(year).figures.get(figure)
                assert found and found.value, (file.path, figure, year)


@each_case("year", YEARS)
def test_every_scenario_refers_to_facts_that_exist_in_every_year_that_it_covers(year: int) -> None:
    """A fact may be left out for the year or the state, but no key may be left without facts or points."""
    library, referred = Library(), 0
    for file in files():
        if year not in file.years(library):
            continue
        named = file.scenario.answer_key.library_facts
        for name in named.values():
            start, _, end = name.partition("{{state}}")
            known = [one for one in library.facts if one.startswith(start) and one.endswith(end)] if end else [name]
            assert known and all(one in library.facts for one in known), (file.path, name)
            referred += 1
        for one in file.planned(year, library):
            held = {fact.fact_id: fact.library for fact in one.scenario.answer_key.canonical_facts}
            assert len(held) >= 5, one.name
            for fact_id, origin in held.items():
                assert (origin is None) == (fact_id not in named), (one.name, fact_id)
            asked = [turn for turn in one.scenario.scripted_turns if turn.required_points]
            assert asked or "lookup" in one.name, one.name
    assert referred > 500


@each_case("year", YEARS)
def test_no_key_has_an_open_slot(year: int) -> None:
    for one in plans(year):
        assert "{{figure" not in one.scenario.model_dump_json(), one.name
        assert "{{state}}" not in one.scenario.model_dump_json(), one.name


def test_no_persona_is_in_two_scenarios() -> None:
    names: dict[str, set[str]] = defaultdict(set)
    for file in files():
        one = file.scenario
        for name in {one.persona.name, *(str(each.persona.get("name", one.persona.name)) for each in one.variants)}:
            assert name, file.path
            names[str(name)].add(one.scenario_id)
    assert {name: found for name, found in names.items() if len(found) > 1} == {}


def test_every_declared_misstatement_is_in_the_question() -> None:
    declared = 0
    for file in files():
        for planned in file.planned(2026, Library()):
            for one in planned.scenario.scripted_turns:
                for wrong in one.misstates:
                    assert wrong.casefold() in one.user_message.casefold(), (planned.name, one.turn_id)
                    declared += 1
    assert declared > 5


def said_of_one_statement(part: Callable[[CanonicalFact], object]) -> dict[str, set[tuple[object, str]]]:
    """Statements for which different keys record different values."""
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


# Questions


def asked(one: PlannedScenario) -> list[str]:
    """The questions of a scenario as a target meets them."""
    knobs = {name: values[0] for name, values in one.scenario.variation_knobs.choices.items()}
    texts = [turn.user_message for turn in one.scenario.scripted_turns]
    return [SLOT.sub(lambda match: one.scenario.slot_value(match.group(1), knobs), text) for text in texts]


def is_spanish(one: PlannedScenario) -> bool:
    return one.scenario.persona.language == "Spanish"


def test_a_turn_asks_at_most_two_questions() -> None:
    assert [(one.name, text) for one in plans(2026) for text in asked(one) if text.count("?") > 2] == []


def test_a_few_scenarios_are_also_asked_in_spanish() -> None:
    spanish = {one.scenario.scenario_id: one for one in plans(2026) if is_spanish(one)}
    assert len(spanish) >= 4
    for one in spanish.values():
        english = {text for other in plans(2026) if not is_spanish(other) for text in asked(other)}
        assert not english.intersection(asked(one)), one.name
        assert all(re.search(r"[áéíóúñ¿¡]", text) for text in asked(one)), one.name


def test_a_spanish_variant_has_the_same_key_as_the_english_one() -> None:
    by_name = {one.name: one.scenario for one in plans(2026)}
    for one in filter(is_spanish, plans(2026)):
        plain = by_name[f"{one.scenario.scenario_id}@plain"]
        assert one.scenario.answer_key == plain.answer_key, one.name
        assert [turn.required_points for turn in one.scenario.scripted_turns] == [
            turn.required_points for turn in plain.scripted_turns
        ]


def test_the_reading_level_is_the_published_formula() -> None:
    assert [syllables(word) for word in ("Medicare", "premium", "QMB", "paid", "covered", "$185", "make")] == [
        3, 3, 3, 1, 2, 4, 1,
    ]  # fmt: skip
    assert grade("The cat sat on the mat.") == pytest.approx(0.39 * 6 + 11.8 * 1 - 15.59)
    twice = "I pay the premium. Does Medicare cover dental care?"  # 9 words, 2 sentences, 1+1+1+3+1+3+2+2+1 syllables
    assert grade(twice) == pytest.approx(0.39 * 9 / 2 + 11.8 * 15 / 9 - 15.59)


@each_case("path", sorted((BANK / "v1").rglob("*.json")), ids=lambda path: path.stem)
def test_questions_read_like_a_shoppers_between_grade_5_and_grade_8(path: Path) -> None:
    """On average over its turns, and in every voice that a scenario has in English."""
    english = [one for one in plans(2026) if one.path == path.as_posix() and not is_spanish(one)]
    averages = {one.name: sum(map(grade, asked(one))) / len(asked(one)) for one in english}
    assert averages
    assert {name: average for name, average in averages.items() if not 5 <= average <= 8} == {}


# Themes

FIRST_EDITION = frozenset(
    {"advantage_open_enrollment", "cobra", "dental_and_vision", "dsnp_kinds", "dual_enrollment_periods", "employer_large",
     "employer_small", "enrollment_periods", "extra_help", "home_health", "hsa_and_medicare", "insulin_and_vaccines",
     "irmaa", "late_penalties", "leaving_advantage", "long_term_care", "lookup_doctor", "lookup_my_case",
     "lookup_plan_costs", "medigap_rights", "out_of_network_emergency", "part_b_rebate", "part_d_costs",
     "prior_authorization", "qmb_billing", "savings_programs", "scams_and_marketing", "skilled_nursing", "travel_abroad"}
)  # fmt: skip


def test_the_second_edition_has_at_least_twelve_more_themes() -> None:
    topics = {path.stem for path in TOPICS.glob("*.json")}
    assert topics >= FIRST_EDITION
    assert len(topics - FIRST_EDITION) >= 12


def test_people_live_in_many_states() -> None:
    assert len({one.scenario.persona.state for one in plans(2026)}) >= 20
