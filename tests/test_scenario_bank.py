"""What every scenario of the bank has: turns, styles, sources, dates and figures that fit together."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator

import pytest

from src.planning.library import Library
from src.planning.scenario_files import ScenarioFile, read_scenarios
from src.schemas import CanonicalFact
from tests.helpers import ROOT

BANK = ROOT / "scenarios"
TOPICS = BANK / "v1" / "topics"
FIGURE = re.compile(r"\{\{\s*figure\.([^{}\s]+)\s*\}\}")


def files() -> tuple[ScenarioFile, ...]:
    return read_scenarios([str(BANK)])


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


@pytest.mark.parametrize(("name", "count"), [("medicare_only", 16), ("dual_eligible", 8)])
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
