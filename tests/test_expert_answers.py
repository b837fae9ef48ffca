"""The table of expert answers on its page is that of the records, and every answer can still be asked."""

from __future__ import annotations

import json
from typing import Any

from src.planning.library import Library
from src.planning.scenario_files import read_scenarios
from tests.helpers import ROOT

FOLDER = ROOT / "tests" / "expert_answers"
PAGE = ROOT / "docs" / "expert_answers.md"
SHORT = {
    "accurate_complete": "complete",
    "accurate_incomplete": "incomplete",
    "not_substantive": "nothing",
    "incorrect": "incorrect",
}


def answers() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FOLDER / "answers.json").read_text(encoding="utf-8"))
    return found


def codes() -> dict[str, dict[str, Any]]:
    listed = json.loads((FOLDER / "codes.json").read_text(encoding="utf-8"))["codes"]
    return {one["answer_id"]: one for one in listed}


def table() -> list[str]:
    rows = []
    for answer in answers():
        coded = codes()[answer["answer_id"]]
        rules, model = coded["rules"], coded["language_model"]
        cells = [answer["answer_id"], answer["review_row"], SHORT[answer["expected"]]]
        cells += [rules["before"], rules["after"], model["before"], model["after"]]
        rows.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return rows


def as_expected(judge: str, when: str) -> int:
    return sum(codes()[one["answer_id"]][judge][when] == SHORT[one["expected"]] for one in answers())


def test_the_page_has_the_table_of_the_records() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "\n".join(table()) in page
    asked_before = sum(one["language_model"]["before"] != "-" for one in codes().values())
    assert (
        f"{as_expected('language_model', 'before')} of {asked_before} before, "
        f"{as_expected('language_model', 'after')} of {len(answers())} after"
    ) in page


def test_every_answer_answers_a_question_of_the_bank() -> None:
    library = Library()
    asked = {
        (planned.scenario.scenario_id, planned.variant, turn.turn_id)
        for file in read_scenarios([str(ROOT / "scenarios")])
        for planned in file.planned(2026, library)
        for turn in planned.scenario.scripted_turns
    }
    plain = {(scenario, turn) for scenario, _, turn in asked}
    for answer in answers():
        variant, scenario, turn = answer.get("variant"), answer["scenario_id"], answer["turn_id"]
        known = (scenario, variant, turn) in asked if variant else (scenario, turn) in plain
        assert known, answer["answer_id"]
