"""Runs for a coming, a current and an unknown plan year, and figures that are not published yet."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from src import storage
from src.planning.fill_slots import is_coming
from src.planning.library import Library
from src.planning.plan import make_plan
from src.planning.rubrics import check_study_points
from src.planning.scenario_files import read_scenario, read_scenarios
from src.planning.study_file import make_study
from src.schemas import PlannedScenario, RunPlan, Scenario
from tests.cases import each_case
from tests.helpers import ROOT
from tests.runs import Called, call, newest
from tests.test_fill_slots import facts_file, figure
from tests.test_study_points import Says, asked, coded, study_points, with_rule
from tests.test_study_points import fact as listed

BANK = ROOT / "scenarios"
TOPICS = BANK / "v1" / "topics"
PENALTIES = TOPICS / "late_penalties.json"
DRUGS = TOPICS / "part_d_costs.json"
IRMAA = TOPICS / "irmaa.json"
AWAITED = "As of 2026-11-16, this amount for 2027 is not published yet: "


def run(folder: Path, *arguments: object) -> Called:
    return call("run", *arguments, "--target", "fake:careful", "--target", "fake:wrong", "--out", folder, "--quiet")


def planned(*scenarios: Path, today: date | None = None, **fields: Any) -> RunPlan:
    study = make_study({"scenarios": [str(one) for one in scenarios], "targets": ["fake:careful"], **fields})
    return make_plan(study, today=today)


def facts_of(plan: RunPlan) -> Iterator[tuple[PlannedScenario, dict[str, str]]]:
    for one in plan.scenarios:
        yield one, {fact.library or fact.fact_id: fact.statement for fact in one.scenario.answer_key.canonical_facts}


def points(one: PlannedScenario) -> int:
    return sum(len(turn.required_points) for turn in one.scenario.scripted_turns)


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.suffix in (".md", ".html", ".csv")}  # fmt: skip


# The coming year, in November


@pytest.fixture(scope="module")
def coming(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("coming")
    given = [part for path in (PENALTIES, DRUGS, IRMAA) for part in ("--scenario", path)]
    code, said, err = run(out, *given, "--plan-year", "2027")
    assert code == 0, err
    assert "expired" not in (said + err).casefold()
    return newest(out)


def test_the_coming_year_can_be_run_today(coming: Path) -> None:
    plan = storage.read_manifest(coming).plan
    assert (plan.plan_year, plan.coming, plan.expired) == (2027, True, ())
    assert plan.points_left_out > 1
    for one, said in facts_of(plan):
        if one.scenario.scenario_id == "part_d_costs":
            assert any("$2,400" in text for text in said.values())
    assert call("verify", coming).code == 0
    assert call("replay", coming).code == 0


def test_an_amount_that_is_awaited_is_a_fact_and_no_point(coming: Path) -> None:
    plan = storage.read_manifest(coming).plan
    waiting = {
        fact.fact_id
        for one in plan.scenarios
        for fact in one.scenario.answer_key.canonical_facts
        if fact.not_published and one.scenario.scenario_id == "late_penalties"
    }
    assert waiting
    for one in plan.scenarios:
        for fact in one.scenario.answer_key.canonical_facts:
            assert fact.statement.startswith(AWAITED) == bool(fact.not_published)
            if fact.not_published:
                assert "is a guess. The amount for 2026 is $" in fact.statement
        if one.scenario.scenario_id == "late_penalties":
            asked = [point for turn in one.scenario.scripted_turns for point in turn.required_points]
            assert not waiting.intersection(map(str, asked))
            assert one.unpublished
    awaited = [fact for fact in plan.background if fact.not_published]
    assert len(awaited) > 20
    assert len({fact.statement for fact in awaited}) == len(awaited)


def test_the_report_and_the_export_say_that_the_year_is_coming_and_what_was_left_out(
    coming: Path, tmp_path: Path
) -> None:
    plan = storage.read_manifest(coming).plan
    assert call("report", coming, "--out", tmp_path / "report").code == 0
    said = " ".join((tmp_path / "report" / "report.md").read_text(encoding="utf-8").split())
    assert "Answer keys of the coming plan year: 2027 had not begun when this run was planned" in said
    assert f"{plan.points_left_out} points of the questions left out, because the figures of 2027 are not" in said
    assert call("export", coming, "--to", "csv", "--out", tmp_path / "export").code == 0
    (row,) = csv.DictReader((tmp_path / "export" / "run.csv").read_text(encoding="utf-8").splitlines())
    assert row["coming"].lower() in ("true", "1")
    assert int(row["points_left_out"]) == plan.points_left_out
    assert row["expired"] in ("", "[]")
    for name, text in texts(tmp_path / "report").items():
        assert "expired" not in text.casefold(), name


def test_a_run_of_this_year_is_neither_coming_nor_short_of_points(tmp_path: Path) -> None:
    plan = planned(PENALTIES)
    assert (plan.plan_year, plan.coming, plan.points_left_out) == (2026, False, 0)
    assert "coming" not in plan.model_dump()
    assert "unpublished" not in plan.scenarios[0].model_dump()


@each_case(
    ("today", "coming_"), [("2026-10-15", True), ("2026-12-31", True), ("2027-01-01", False), ("2027-12-31", False)]
)
def test_the_key_of_2027_may_be_used_from_october_15(today: str, coming_: bool) -> None:
    day = date.fromisoformat(today)
    assert is_coming(2027, day) == coming_
    plan = planned(DRUGS, today=day, plan_year=2027)
    assert (plan.coming, plan.expired) == (coming_, ())


def test_the_key_of_2027_may_not_be_used_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDICARE_EVAL_TODAY", "2026-10-14")
    code, out, err = run(tmp_path, "--scenario", DRUGS, "--plan-year", "2027")
    assert (code, out) == (2, "")
    assert "part_d_costs: the key of 2027 may be used from 2026-10-15, and today is 2026-10-14; choose" in err
    assert "expired key" not in err


EARLY = "the key of 2027 may be used from 2026-10-15, and today is 2026-10-14"
LATE = "its plan year 2027 ended on 2027-12-31, and today is 2028-01-01"


@pytest.mark.slow
@each_case(("today", "why"), [("2026-10-14", EARLY), ("2026-10-15", None), ("2027-01-02", None), ("2028-01-01", LATE)])
def test_every_key_of_the_bank_opens_and_ends_with_its_plan_year(today: str, why: str | None) -> None:
    """Also those without a figure, whose facts hold before and after."""
    plan = planned(BANK, today=date.fromisoformat(today), plan_year=2027, allow_expired=True)
    names = sorted({one.scenario.scenario_id for one in plan.scenarios})
    assert len(names) == len(list(BANK.rglob("*.json")))
    assert sorted(plan.expired) == ([f"{name}: {why}" for name in names] if why else [])


@each_case("year", [2026, 2027])
def test_every_scenario_of_the_bank_can_be_run_for_this_year_and_the_next(year: int) -> None:
    plan = planned(BANK, plan_year=year)
    assert plan.expired == ()
    assert len({one.scenario.scenario_id for one in plan.scenarios}) == len(list(BANK.rglob("*.json")))


# January


@pytest.fixture
def january(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDICARE_EVAL_TODAY", "2027-01-02")


@pytest.mark.usefixtures("january")
@pytest.mark.parametrize("named", [(), ("--plan-year", "2027")])
def test_a_run_in_january_works_with_what_is_published(tmp_path: Path, named: tuple[str, ...]) -> None:
    code, _, err = run(tmp_path, "--scenario", IRMAA, "--scenario", DRUGS, *named)
    assert code == 0, err
    plan = storage.read_manifest(newest(tmp_path)).plan
    assert (plan.plan_year, plan.coming, plan.expired) == (2027, False, ())
    assert plan.points_left_out > 1
    assert call("report", newest(tmp_path), "--out", tmp_path / "report").code == 0
    said = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert f"{plan.points_left_out} points of the questions left out" in " ".join(said.split())
    assert "coming plan year" not in said
    assert "expired" not in said.casefold()


@pytest.mark.usefixtures("january")
def test_in_january_nothing_is_said_of_a_figure_whose_month_has_passed() -> None:
    """It may be published by now, so that an amount is a guess is no longer known."""
    plan = planned(PENALTIES, TOPICS / "savings_programs.json")
    expected = {fact.not_published for fact in plan.background if fact.not_published}
    assert expected == {"2027-01"}
    for _, said in facts_of(plan):
        assert not any("standard Part B premium for 2027" in text and "not published" in text for text in said.values())


@pytest.mark.usefixtures("january")
def test_in_january_the_whole_bank_is_listed_as_current() -> None:
    code, out, err = call("scenarios", "list", "--json")
    assert (code, err) == (0, "")
    assert {row["status"] for row in json.loads(out)} == {"current"}


# A year that nobody knows


def test_a_year_without_figures_is_refused_with_what_to_do(tmp_path: Path) -> None:
    code, out, err = run(tmp_path, "--scenario", PENALTIES, "--plan-year", "2028")
    assert (code, out) == (2, "")
    assert err == (
        "medicare-eval: --plan-year: figures are available only for 2025, 2026 and 2027, not for 2028. "
        "Add a file for that year with --facts, or choose another --plan-year.\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_in_a_year_without_figures_a_plain_run_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDICARE_EVAL_TODAY", "2028-01-02")
    code, out, err = run(tmp_path, "--scenario", PENALTIES)
    assert (code, out) == (2, "")
    assert "there are no figures for 2028 yet, the year of today's date. Add a file for it with --facts" in err


# A file of one's own


def test_a_file_with_two_figures_runs_and_counts_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDICARE_EVAL_TODAY", "2028-02-01")
    own = {"part_b_premium": figure("$230.10"), "part_d_cap": figure("$2,600")}
    path = facts_file(tmp_path, 2028, own)
    code, _, err = run(tmp_path / "runs", "--scenario", PENALTIES, "--scenario", DRUGS, "--facts", path)
    assert code == 0, err
    plan = storage.read_manifest(newest(tmp_path / "runs")).plan
    assert (plan.plan_year, plan.coming, plan.expired) == (2028, False, ())
    assert plan.points_left_out > 0
    said = {text for _, facts in facts_of(plan) for text in facts.values()}
    assert any("$2,600" in text for text in said)
    assert not any("not published yet" in text for text in said)
    whole = planned(PENALTIES, DRUGS, today=date(2026, 11, 16))
    for less, full in zip(plan.scenarios, whole.scenarios, strict=True):
        lost = {(one.turn_id, one.point) for one in less.unpublished if one.turn_id}
        assert points(less) + len(lost) == points(full), less.name


def with_value(folder: Path, name: str, value: str) -> Path:
    """The figures of 2027 as they ship, with one that was awaited."""
    made = json.loads((ROOT / "facts" / "2027.json").read_text(encoding="utf-8"))
    assert made["figures"][name]["value"] is None
    made["figures"][name] |= {"value": value, "status": "published", "expected": None}
    path = folder / "2027.json"
    path.write_text(json.dumps(made), encoding="utf-8")
    return path


def test_a_figure_that_is_published_turns_its_points_on_again(tmp_path: Path) -> None:
    name = "part_b_with_24_month_penalty"
    library = Library()
    rests_on = [one for one, fact in library.facts.items() if f"{{{{figure.{name}}}}}" in fact.statement]
    assert rests_on
    before = planned(PENALTIES, TOPICS / "cobra.json", plan_year=2027)
    after = planned(PENALTIES, TOPICS / "cobra.json", plan_year=2027, facts=str(with_value(tmp_path, name, "$255.50")))
    assert after.points_left_out < before.points_left_out
    assert [one for _, said in facts_of(before) for one, text in said.items() if "$255.50" in text] == []
    stated = {one for _, said in facts_of(after) for one, text in said.items() if "$255.50" in text}
    assert stated and stated <= set(rests_on)
    gained = sum(map(points, after.scenarios)) - sum(map(points, before.scenarios))
    assert gained > 0


def test_a_file_with_the_figures_that_came_out_is_enough(tmp_path: Path) -> None:
    """The others are those that ship, awaited ones among them."""
    name = "part_b_with_24_month_penalty"
    one = planned(PENALTIES, TOPICS / "cobra.json", plan_year=2027, facts=str(with_value(tmp_path, name, "$255.50")))
    two = planned(
        PENALTIES,
        TOPICS / "cobra.json",
        plan_year=2027,
        facts=str(facts_file(tmp_path, 2027, {name: figure("$255.50")})),
    )
    assert one.points_left_out == two.points_left_out
    for whole, short in zip(facts_of(one), facts_of(two), strict=True):
        assert whole[1] == short[1]
    assert {fact.statement for fact in one.background} == {fact.statement for fact in two.background}
    assert {"facts/mine.json", "facts/2027.json (bundled)"} <= two.references.keys()


# Points of the study


AWAITS = {**listed("F2", "B-extra-benefits", "As of today, the amount is not published."), "not_published": "2026-11"}


def awaiting(one: Scenario) -> PlannedScenario:
    """A scenario of whose key B-extra-benefits lacks its figure."""
    return PlannedScenario(path="s.json", sha256="0" * 64, scenario=one, left_out=("B-extra-benefits",))


def test_what_is_not_published_makes_no_point_of_the_study() -> None:
    made = asked("mine", [listed("F1", "B-any-provider"), AWAITS])
    either = with_rule(study_points=study_points(["B-any-provider", "B-extra-benefits"]))
    check_study_points(awaiting(made), either)
    assert coded(made, either, Says(["F2"])).code == "not_substantive"
    assert [point.point for point in coded(made, either, Says(["F1"])).points_met] == ["F1"]


def test_a_point_of_the_study_that_only_awaited_facts_could_make_drops_out() -> None:
    made = asked("mine", [listed("F1", "B-any-provider"), AWAITS])
    rubric = with_rule(study_points=study_points(["B-any-provider"], ["B-extra-benefits"]))
    check_study_points(awaiting(made), rubric)
    code = coded(made, rubric, Says(["F1"]))
    assert (code.code, code.points_missed) == ("accurate_complete", ())
    published = asked("mine", [listed("F1", "B-any-provider"), listed("F2", "B-extra-benefits")])
    assert coded(published, rubric, Says(["F1"])).points_missed == ("F2",)


# Figures that ship


def test_a_figure_of_2027_is_published_or_says_when_it_will_be() -> None:
    figures = Library().year(2027).figures
    awaited = {name: one for name, one in figures.items() if one.value is None}
    assert 0 < len(awaited) < len(figures)
    for name, one in figures.items():
        assert (one.status == "not_published") == (name in awaited) == (one.expected is not None)
        if one.expected:
            assert "2026-11" <= one.expected <= "2027-02", name


@each_case("name", ["part_b_premium", "part_a_deductible", "qmb_income_one"])
def test_what_is_announced_late_is_not_published_yet(name: str) -> None:
    assert Library().year(2027).figures[name].value is None


@each_case(
    ("name", "value"), [("part_d_cap", "$2,400"), ("part_d_deductible_max", "$700"), ("base_beneficiary_premium", "$41.33")]
)  # fmt: skip
def test_what_is_announced_early_is_there(name: str, value: str) -> None:
    assert Library().year(2027).figures[name].value == value


@each_case(
    ("changes", "says"),
    [
        ({"value": None}, "a published figure has a value and no expected month"),
        ({"expected": "2026-11"}, "a published figure has a value and no expected month"),
        ({"status": "not_published"}, "a figure that is not_published has the value null"),
        ({"value": None, "status": "not_published"}, "the month in which it is expected"),
        ({"value": None, "status": "not_published", "expected": "November"}, "expected"),
        ({"value": None, "status": "soon", "expected": "2026-11"}, "'soon' is not allowed"),
    ],
)
def test_a_figure_is_either_published_or_awaited(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    path = facts_file(tmp_path, 2027, {"part_b_premium": {**figure("$230.10"), **changes}})
    code, out, err = call("validate", PENALTIES, "--facts", path)
    assert (code, out) == (2, "")
    assert f"--facts: {path}: field figures.part_b_premium" in err
    assert says in err


@each_case("year", [2025, 2026, 2027])
def test_no_key_of_the_bank_is_left_without_points_for_lack_of_figures(year: int) -> None:
    library = Library()
    for file in read_scenarios([str(BANK)]):
        if year in file.years(library):
            asks = any(turn.required_points for turn in file.scenario.scripted_turns)
            for one in file.planned(year, library):
                assert points(one) > 0 or not asks, one.name


def test_a_point_with_another_right_answer_is_kept_when_one_figure_is_awaited(tmp_path: Path) -> None:
    """Any of several facts makes the point, so the one that is known carries it."""
    made = json.loads(DRUGS.read_text(encoding="utf-8"))
    made["answer_key"] = {
        "canonical_facts": [],
        "library_facts": {"F1": "B-part-b-with-24-month-penalty", "F2": "B-part-b-penalty-rate"},
        "required_points": [{"any_of": ["F1", "F2"]}],
        "disallowed_claims": [],
    }
    made["scripted_turns"] = [
        {"turn_id": "Q1", "user_message": "What is the penalty?", "required_points": [{"any_of": ["F1", "F2"]}]}
    ]
    made["variants"] = []
    path = tmp_path / "s.json"
    path.write_text(json.dumps(made), encoding="utf-8")
    (one,) = read_scenario(path).planned(2027, Library())
    assert one.scenario.scripted_turns[0].required_points == ("F2",)
    assert one.unpublished == ()
