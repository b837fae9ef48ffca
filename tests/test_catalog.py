"""`scenarios list`, `facts`, `sources` and `new-scenario`: what they show and write."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from src.errors import InputError
from src.inputs.authoring.catalog import CONFIRMED, list_facts, list_scenarios, list_sources, write_skeleton
from src.planning.fill_facts import background_for
from src.planning.house_rules import PLACEHOLDER
from src.planning.library import Library
from src.planning.scenario_files import read_scenarios
from tests.cases import each_case
from tests.helpers import ROOT
from tests.runs import ONE, call
from tests.test_lint import BANK, COBRA, Document, good
from tests.test_scenario_bank import FIGURE, files, resolved

# scenarios list, facts, sources


def as_json(*arguments: object) -> list[Document]:
    code, out, err = call(*arguments, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert isinstance(found, list)
    return found


@pytest.mark.slow
def test_every_scenario_of_the_bank_is_listed_once_with_its_plan_years() -> None:
    rows = {row["scenario_id"]: row for row in as_json("scenarios", "list")}
    assert len(rows) == len(as_json("scenarios", "list")) == len(list(BANK.rglob("*.json")))
    for file in files():
        row, one = rows[file.scenario.scenario_id], file.scenario
        current = {f.fact_id: f for p in file.planned(2026, Library()) for f in p.scenario.answer_key.canonical_facts}
        assert row["plan_years"] == [year for year in (2025, 2026, 2027) if year >= one.effective_date.year]
        assert row["title"] == one.title
        assert row["themes"] == list(one.themes)
        assert row["variants"] == [each.variant_id for each in one.variants]
        assert row["turns"] == len(one.scripted_turns)
        assert row["facts"] == len(current) == row["primary"] + row["secondary"] + row["derived"]
        assert (row["status"], row["unpublished"]) == ("current", 0)
        assert Path(row["path"]) == file.path
    code, out, _ = call("scenarios", "list")
    assert code == 0
    assert out.count("2025-2027") + out.count("2026-2027") == len(rows)
    assert "left out rest on" not in " ".join(out.split())
    counted = Counter(how for row in rows.values() for how in ("primary", "secondary", "derived") for _ in range(row[how]))  # fmt: skip
    caption = " ".join(out.split())
    assert f"{len(rows)} scenarios. P/S/D: facts confirmed in the primary source ({counted['primary']})" in caption
    assert f"cites it ({counted['secondary']}), or derived by arithmetic ({counted['derived']})." in caption


def test_only_the_scenarios_named_are_listed(tmp_path: Path) -> None:
    assert [row["scenario_id"] for row in as_json("scenarios", "list", COBRA)] == ["cobra"]
    code, out, _ = call("scenarios", "list", COBRA)
    assert code == 0
    assert "cobra" in out
    assert "irmaa" not in out
    code, out, err = call("scenarios", "list", tmp_path / "none")
    assert (code, out) == (2, "")
    assert "no scenario file found. Give a .json file, a folder" in err


def test_a_scenario_of_a_past_year_is_listed_as_expired(monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = as_json("scenarios", "list", COBRA, "--plan-year", "2025")
    assert (row["status"], row["plan_years"]) == ("expired", [2025, 2026, 2027])
    monkeypatch.setenv("MEDICARE_EVAL_TODAY", "2028-01-01")
    (row,) = as_json("scenarios", "list", ONE)
    assert (row["status"], row["plan_years"]) == ("expired", [2025, 2026, 2027])
    code, _, err = call("validate", ONE)
    assert code == 2
    assert "expired on 2027-12-31; confirm it again, or add the new plan year's figures." in err


@pytest.mark.slow
def test_the_list_of_a_coming_year_says_so_and_counts_points_left_out() -> None:
    rows = as_json("scenarios", "list", "--plan-year", "2027")
    assert {row["status"] for row in rows} == {"coming"}
    library, lost = Library(), 0
    for row, file in zip(rows, files(), strict=True):
        points = {(one.turn_id, one.point) for each in file.planned(2027, library) for one in each.unpublished}
        assert row["unpublished"] == len({point for point in points if point[0]})
        lost += row["unpublished"]
    assert lost > 10
    code, out, _ = call("scenarios", "list", "--plan-year", "2027")
    said = " ".join(out.split())
    assert code == 0
    assert said.count(" coming ") >= len(rows)
    assert "expired" not in said
    assert said.endswith("Points left out rest on figures that are not published, or not known here.")


@pytest.mark.slow
def test_the_list_of_this_year_as_named_is_the_list() -> None:
    assert as_json("scenarios", "list", "--plan-year", "2026") == as_json("scenarios", "list")


def test_a_plan_year_before_the_scenario_is_not_listed(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(good()), encoding="utf-8")
    (row,) = as_json("scenarios", "list", path)
    assert row["plan_years"] == [2026, 2027]


# scenarios library


def test_the_library_is_listed_with_its_states_sources_and_counts() -> None:
    rows = as_json("scenarios", "library")
    library = Library()
    states = {state for fact in library.facts.values() for state in fact.states}
    expected = background_for(2026, library, states).facts
    assert [row["fact_id"] for row in rows] == [fact.fact_id for fact in expected]
    code, out, err = call("scenarios", "library")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert len(lines) == 2 * len(rows) + 1
    for row, said, source in zip(rows, lines[::2], lines[1::2], strict=False):
        where = f" ({', '.join(row['states'])})" if row.get("states") else ""
        assert said == f"{row['fact_id']}{where}: {row['statement']}"
        how = f"    {row['confirmed_by']}, {row['severity_if_wrong']} if wrong; "
        assert source == f"{how}{row['source']}, {row['locator']}"
    counts = Counter(row["confirmed_by"] for row in rows)
    assert lines[-1] == f"{len(rows):,} facts: " + ", ".join(f"{counts[how]:,} {how}" for how in CONFIRMED) + "."


def test_the_library_of_another_year_has_that_year_s_figures() -> None:
    said = {row["fact_id"]: row["statement"] for row in as_json("scenarios", "library", "--plan-year", "2025")}
    assert "$222.00" in said["B-part-b-with-24-month-penalty"]
    code, out, err = call("scenarios", "library", "--plan-year", "2028")
    assert (code, out) == (2, "")
    assert "--plan-year: figures are available only for 2025, 2026 and 2027, not for 2028." in err


@pytest.mark.slow
@each_case("year", [2025, 2026])
def test_every_fact_of_a_year_is_shown_with_that_year_s_figures(year: int) -> None:
    rows = as_json("scenarios", "facts", "--plan-year", str(year))
    shown = {(row["scenario_id"], row["fact_id"], row["statement"]) for row in rows}
    assert shown == {(name, each.fact_id, each.statement) for name, each in resolved(year)}
    assert len(shown) == len(rows)
    assert {row["plan_year"] for row in rows} == {None, year}
    assert all(row["valid_from"] and row["confirmed_by"] for row in rows)


def test_facts_of_all_years_are_shown_with_dates_and_how_they_were_confirmed() -> None:
    rows = as_json("scenarios", "facts", COBRA)
    first, second, third = (row["statement"] for row in rows if row["fact_id"] == "F10")
    assert first.endswith("24 months late pays $222.00 a month for Part B in 2025.")
    assert second.endswith("24 months late pays $243.50 a month for Part B in 2026.")
    assert third.startswith("As of 2026-11-16, this amount for 2027 is not published yet: ")
    assert len({row["fact_id"] for row in rows}) == len(library_ids(COBRA)) == 26
    code, out, _ = call("scenarios", "facts", COBRA)
    assert code == 0
    for row in rows:
        window = f"from {row['valid_from']}" + (f" to {row['valid_until']}" if row["valid_until"] else "")
        said = f"    {row['confirmed_by']}, {window}; {row['source']}, {row['locator'] or 'no locator'}\n"
        assert f"cobra {row['fact_id']}: {row['statement']}\n{said}" in f"{out}\n"
    assert f"\n{out}".count("\ncobra F") == len(rows)


def test_facts_of_a_year_without_figures_are_refused() -> None:
    for what in ("list", "facts", "sources"):
        for year in ("2024", "2028"):
            code, out, err = call("scenarios", what, COBRA, "--plan-year", year)
            assert (code, out) == (2, "")
            assert f"--plan-year: figures are available only for 2025, 2026 and 2027, not for {year}." in err


def library_ids(path: Path) -> dict[str, str]:
    """Fact id in a key to its id in the library."""
    return dict(json.loads(path.read_text(encoding="utf-8"))["answer_key"]["library_facts"])


@dataclass
class Sourced:
    """The files that facts and figures come from, read without the code under test."""

    figures: dict[int, Document]
    library: dict[str, Document]

    def address(self, fact: Document, year: int) -> str | None:
        """Where a fact was read; None if the year has not its figure, or awaits one that is no amount of dollars."""
        names = FIGURE.findall(fact["statement"] + fact.get("rationale", ""))
        slots = [self.figures[year].get(name) for name in names]
        if None in slots or (self.waits_for(fact, year) == "msp_for_1600"):
            return None
        waits = [one for one in slots if one and one["value"] is None]
        if waits:
            assert waits[0]["expected"] >= "2026-11"  # otherwise it would be left out
            return str(waits[0]["address"])
        return fact.get("address") or (slots[0]["address"] if slots and slots[0] else "")

    def waits_for(self, fact: Document, year: int) -> str | None:
        """The figure that must be published before a fact can be stated."""
        names = FIGURE.findall(fact["statement"] + fact.get("rationale", ""))
        return next((name for name in names if self.figures[year].get(name, {"value": ""})["value"] is None), None)

    def holds(self, fact: Document, year: int) -> bool:
        years = fact.get("plan_years") or fact.get("only", {}).get("plan_years") or [year]
        begins, ends = fact.get("valid_from") or "", fact.get("valid_until") or "9999"
        return year in years and begins <= f"{year}-12-31" and ends >= f"{year}-01-01"


def read_sources() -> Sourced:
    def read(path: Path) -> Document:
        return dict(json.loads(path.read_text(encoding="utf-8")))

    folder = ROOT / "facts"
    held = [*folder.glob("library/*.json"), *folder.glob("states/*.json")]
    return Sourced(
        {year: read(folder / f"{year}.json")["figures"] for year in (2025, 2026, 2027)},
        {fact["fact_id"]: fact for path in held for fact in read(path)["facts"]},
    )


def addresses() -> dict[str, set[tuple[str, str]]]:
    """Address to the facts that rely on it."""
    sources = read_sources()
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for path in sorted(BANK.rglob("*.json")):
        made = json.loads(path.read_text(encoding="utf-8"))
        facts = [(one["fact_id"], one) for one in made["answer_key"]["canonical_facts"]]
        for fact_id, name in made["answer_key"].get("library_facts", {}).items():
            start, _, end = name.partition("{{state}}")
            ids = [one for one in sources.library if one.startswith(start) and one.endswith(end)] if end else [name]
            facts += [(fact_id, sources.library[one]) for one in ids if not end or in_state(made, one[len(start) :])]
        for year in [year for year in sources.figures if f"{year}-12-31" >= made["effective_date"]]:
            waiting = set()  # that a figure is not published is said once, by the first fact that needs it
            for fact_id, fact in sorted(facts, key=lambda one: int(one[0][1:])):
                address = sources.address(fact, year) if sources.holds(fact, year) else None
                waits_for = sources.waits_for(fact, year)
                if address is not None and (waits_for is None or waits_for not in waiting):
                    found[address].add((made["scenario_id"], fact_id))
                    waiting.add(waits_for)
    return found


STATES = {one["name"]: one["state"].lower() for one in map(json.loads, (path.read_text(encoding="utf-8") for path in (ROOT / "facts" / "states").glob("*.json")))}  # fmt: skip


def in_state(made: Document, rest: str) -> bool:
    """Whether somebody who asks lives in the state whose code these letters begin with."""
    homes = [made["persona"].get("state"), *(one.get("persona", {}).get("state") for one in made.get("variants", []))]
    return len(rest) > 2 and rest[:2] in {STATES.get(home) for home in homes}


def test_every_address_of_the_bank_is_listed_with_the_facts_that_rely_on_it() -> None:
    rows = as_json("scenarios", "sources")
    shown = {
        row["address"] or "": {(name, each.partition("(")[0]) for name, ids in row["facts"].items() for each in ids}
        for row in rows
    }
    assert len(shown) == len(rows)
    assert all(len(ids) == len(set(ids)) for row in rows for ids in row["facts"].values())
    assert shown == addresses()


@pytest.mark.slow
def test_sources_are_shown_as_text_too() -> None:
    code, out, _ = call("scenarios", "sources")
    assert code == 0
    lines = out.splitlines()
    rows = as_json("scenarios", "sources")
    for row in rows:
        count = sum(map(len, row["facts"].values()))
        assert f"{row['address'] or '(no address recorded)'}  [{count}]" in lines
        for title in row["titles"]:
            assert f"    {title}" in lines
        for name, ids in row["facts"].items():
            assert f"      {name}: {' '.join(ids)}" in lines
    assert lines[-1] == f"{sum(bool(row['address']) for row in rows)} addresses."


def test_sources_of_one_year_name_that_year_only() -> None:
    shown = {each for row in as_json("scenarios", "sources", COBRA) for each in row["facts"]["cobra"]}
    assert {"F10(2025)", "F10(2026)", "F10(2027)"} <= shown
    shown = {
        each for row in as_json("scenarios", "sources", COBRA, "--plan-year", "2025") for each in row["facts"]["cobra"]
    }
    assert "F10(2025)" in shown
    assert "F10(2026)" not in shown
    assert len(shown) == 26


# new-scenario


def replaced(value: Any) -> Any:
    """A skeleton with its placeholders replaced."""
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
    assert all(line.startswith(start) and line.endswith(f"the placeholder {PLACEHOLDER} is still there; write your own text.") for line in lines)  # fmt: skip
    commented = sum(PLACEHOLDER in line for line in text.splitlines() if line.lstrip().startswith('"//'))
    assert commented == 0
    assert len(lines) == text.count(PLACEHOLDER)
    path.write_text(json.dumps(replaced(made)), encoding="utf-8")
    code, out, err = call("validate", path)
    assert (code, err) == (0, "")
    assert f"{path}: ok: my_own-1, 1 turn, 2 facts, 1 required point\n" in out


def test_a_new_scenario_goes_to_the_current_folder_under_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert err == f"medicare-eval: {path} already exists and will not be overwritten. Choose another file with --out.\n"
    assert path.read_bytes() == b"mine"
    assert call("new-scenario", "mine", "--out", tmp_path)[0] == 2


@each_case("name", ["", "../up", "a/b", "two words", "-x", "é", "x" * 65, "a.json"])
def test_a_bad_id_is_refused_and_nothing_is_written(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = call("new-scenario", name)
    assert (code, out) == (2, "")
    assert err.startswith("medicare-eval new-scenario: ")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_path_is_reported_without_mention_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    path = tmp_path / "file" / "mine.json"
    code, out, err = call("new-scenario", "mine", "--out", path)
    assert (code, out) == (6, "")
    assert err.startswith(f"medicare-eval: {path}: write failed (")
    assert err.endswith(". Choose another file with --out.\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_reported(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    code, _, err = call("new-scenario", "mine", "--out", closed / "mine.json")
    assert code == 6
    assert str(closed / "mine.json") in err
    assert list(closed.iterdir()) == []


# Called from Python


def test_the_catalog_gives_rows_and_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    given = read_scenarios([str(COBRA)])
    (row,) = list_scenarios(given, Library(), date(2026, 11, 16))
    assert (row.scenario_id, row.status, row.plan_years, row.facts) == ("cobra", "current", (2025, 2026, 2027), 26)
    assert [row.confirmed(how) for how in CONFIRMED] == [row.primary, row.secondary, row.derived]
    (late,) = list_scenarios(given, Library(), date(2027, 1, 1), 2026)
    assert late == replace(row, status="expired")
    (coming,) = list_scenarios(given, Library(), date(2026, 11, 16), 2027)
    assert (coming.status, coming.plan_years) == ("coming", row.plan_years)
    (penalty,) = (one.fact.statement for one in list_facts(given, Library(), 2025) if one.fact.fact_id == "F10")
    assert penalty.endswith("24 months late pays $222.00 a month for Part B in 2025.")
    assert {name for source in list_sources(given, Library()) for name in source.facts} == {"cobra"}
    assert capsys.readouterr() == ("", "")


def test_a_skeleton_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "drafts" / "mine.json"
    write_skeleton("mine", path)
    before = path.read_bytes()
    assert json.loads(before)["scenario_id"] == "mine"
    with pytest.raises(InputError, match="already exists and will not be overwritten"):
        write_skeleton("other", path)
    assert path.read_bytes() == before
