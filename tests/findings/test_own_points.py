"""Which groups a report compares with counselors, and the table of our own points."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from src.findings.judge_agreement import judging
from src.findings.read_run import gather
from src.reports.csv import write_codes
from src.reports.document import Bullets, Section, Table, shown
from src.reports.sections import contents
from src.reports.series import runs_of
from src.reports.study_section import CAPTIONS
from src.schemas import Backing, MadePoint, OwnPoints, QuestionCode, RunPlan, StudyCode
from tests.cases import each_case
from tests.findings.report_run import A, code, coded, small_manifest, study_scenario, write_run
from tests.helpers import plan, result

GROUPS = ("g1", "g10", "g14")
BACKING = Backing(claim_id="Q1.C1", quotes=("Plans",), evidence=("F1",))


def twice(group: str, given: StudyCode, own: StudyCode, made: int, missed: int) -> QuestionCode:
    """A code by the study's points, and one by ours of which so many were made and missed."""
    points = tuple(MadePoint(point=f"F{n}", claims=(BACKING,)) for n in range(made))
    second = OwnPoints(code=own, points_met=points, points_missed=tuple(f"F{n + 50}" for n in range(missed)))
    return code(group, given).model_copy(update={"own": second})


def run_plan(repeats: int, rules: dict[str, dict[str, Any]] | None = None) -> RunPlan:
    """A plan that asks for three groups of the study, some of them under a rule of the test's own."""
    turns = [{"turn_id": f"Q{n}", "user_message": "Hm?", "question_group": g} for n, g in enumerate(GROUPS, 1)]
    made = plan(scenarios=[study_scenario(scripted_turns=turns)], targets=[A], repeats=repeats)
    rubric = made.rubrics["v1"].rubric
    changed = {name: rubric.groups[name].model_copy(update=fields) for name, fields in (rules or {}).items()}
    groups = rubric.model_copy(update={"groups": {**rubric.groups, **changed}})
    return made.model_copy(update={"rubrics": {"v1": made.rubrics["v1"].model_copy(update={"rubric": groups})}})


def write(folder: Path, trials: Sequence[Sequence[QuestionCode]], of: RunPlan) -> None:
    results = [
        coded(result(scenario_id="medicare_only", target=A, repetition=n), *codes) for n, codes in enumerate(trials, 1)
    ]
    write_run(folder, results, small_manifest(of))


def study_parts(folder: Path) -> dict[str, Section]:
    """The parts of the section on the study, by their titles."""
    found = gather(folder)
    made = contents([found], [judging(found)])
    title = "Question groups beside human counselors"
    whole = next(one for one in made.sections if "".join(map(shown, one.title)) == title)
    return {"".join(map(shown, part.title)): part for part in whole.sections}


def rows(table: Table) -> list[dict[str, str]]:
    seen = table.in_report()
    return [{c.heading: shown(cell) for c, cell in zip(seen.columns, row, strict=True)} for row in seen.rows]


COMPARABLE, OTHER_RULES, LOOKED_UP = CAPTIONS.values()


def groups_by_table(part: Section) -> dict[str, list[str]]:
    """The groups in the tables on complete answers; those on wrong answers have the same."""
    tables = {block.caption: block for block in part.blocks if isinstance(block, Table)}
    listed = {
        caption: [row["group"].split()[0] for row in rows(table) if not row["group"].startswith("all")]
        for caption, table in tables.items()
    }
    ends = ": accurate and complete.", ": wrong."
    complete, wrong = (
        {caption.removesuffix(end): groups for caption, groups in listed.items() if caption.endswith(end)}
        for end in ends
    )
    assert complete == wrong
    return complete


def notes(part: Section) -> list[str]:
    return ["".join(map(shown, item)) for block in part.blocks if isinstance(block, Bullets) for item in block.items]


ONE_OF_EACH = [[code(group, "accurate_complete") for group in GROUPS]]


@each_case(("stated", "compared"), [(True, True), (False, False), (None, False)])
def test_a_group_stands_beside_counselors_only_if_its_rule_is_the_studys(
    tmp_path: Path, stated: bool | None, compared: bool
) -> None:
    write(tmp_path / "run", ONE_OF_EACH, run_plan(1, {"g10": {"study_faithful": stated}}))
    tables = groups_by_table(study_parts(tmp_path / "run")[A])
    if compared:
        assert tables == {COMPARABLE: ["1", "10"], LOOKED_UP: ["14"]}
    else:
        assert tables == {COMPARABLE: ["1"], OTHER_RULES: ["10"], LOOKED_UP: ["14"]}


def test_a_rule_that_does_not_say_so_is_taken_as_the_first_edition_had_it(tmp_path: Path) -> None:
    unstated: dict[str, dict[str, Any]] = {name: {"study_faithful": None, "differs": None} for name in GROUPS}
    write(tmp_path / "run", ONE_OF_EACH, run_plan(1, unstated))
    part = study_parts(tmp_path / "run")[A]
    assert groups_by_table(part) == {COMPARABLE: ["1"], OTHER_RULES: ["10"], LOOKED_UP: ["14"]}
    assert notes(part) == []


def test_what_still_differs_from_the_study_is_said_below_the_tables(tmp_path: Path) -> None:
    rules: dict[str, dict[str, Any]] = {
        "g1": {"differs": "This | is <b>so</b>."},
        "g10": {"differs": None},
        "g14": {"differs": None},
    }
    write(tmp_path / "run", ONE_OF_EACH, run_plan(1, rules))
    assert notes(study_parts(tmp_path / "run")[A]) == ["Group 1: This | is <b>so</b>."]


def test_our_own_points_have_a_table_of_their_own(tmp_path: Path) -> None:
    trials = [
        [twice("g10", "accurate_complete", "accurate_incomplete", 3, 11), code("g1", "accurate_complete")],
        [twice("g10", "accurate_complete", "accurate_complete", 14, 0)],
        [twice("g10", "incorrect", "incorrect", 0, 14)],
    ]
    write(tmp_path / "run", trials, run_plan(3))
    parts = study_parts(tmp_path / "run")
    (table,) = (block for block in parts["Our own points"].blocks if isinstance(block, Table))
    (row,) = rows(table)
    assert row["group"].startswith("10 ")
    assert (row["n"], row["accurate, complete"], row["accurate, incomplete"], row["incorrect"]) == ("3", "1", "1", "1")
    assert row["points made"] == "40% of 42"
    of_study = next(one for one in rows(study_table(parts[A])) if one["group"].startswith("10 "))
    assert of_study["accurate, complete"] == "2", "the codes of our own points are counted nowhere else"


def study_table(part: Section) -> Table:
    return next(b for b in part.blocks if isinstance(b, Table) and b.caption.startswith("The same answers by code"))


def test_without_a_second_set_there_is_no_table_of_it(tmp_path: Path) -> None:
    write(tmp_path / "run", ONE_OF_EACH, run_plan(1))
    assert "Our own points" not in study_parts(tmp_path / "run")


def test_the_file_of_codes_has_the_second_set(tmp_path: Path) -> None:
    write(
        tmp_path / "run", [[twice("g10", "accurate_complete", "incorrect", 1, 2), code("g1", "incorrect")]], run_plan(1)
    )
    file = io.StringIO()
    write_codes(runs_of([gather(tmp_path / "run")], [None]), file)
    first, second = csv.DictReader(io.StringIO(file.getvalue()))
    assert (first["code"], first["own_code"]) == ("accurate_complete", "incorrect")
    assert (first["own_points_met"], first["own_points_missed"]) == ("F0: “Plans”", "F50; F51")
    assert (second["own_code"], second["own_points_met"], second["own_points_missed"]) == ("", "", "")
