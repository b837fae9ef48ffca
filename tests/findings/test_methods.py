"""The Methods section and Table 1: the run's real numbers, ready to paste, and inert whatever names say."""

from __future__ import annotations

import csv
import re
from io import StringIO
from pathlib import Path

import pytest

from src.findings.judge_agreement import judging
from src.findings.read_run import gather
from src.reports.methods import AUTHOR, METHODS_MD, methods_markdown
from src.reports.series import Runs, runs_of
from src.reports.table_one import HEADER, TABLE_ONE_CSV, table_one, table_one_csv
from src.reports.write import write_report
from src.schemas import Registration
from src.stats.bounded import LEAST_IN_STRATA, LEAST_UNITS
from src.storage import MANIFEST, encode_record
from src.trials.missing import MISSING
from tests.findings.made_runs import (
    call_on,
    hostile,
    manifest_of,
    one_of_each,
    planned,
    rich,
    rule,
    write_journal,
    write_run,
)
from tests.helpers import HASH, manifest, scenario
from tests.runs import ONE, shared_run

EVIL = "<script>alert(1)</script>|`[x](javascript:y)`\x1b[31m\u202e"


def runs_in(*folders: Path) -> Runs:
    found = [gather(folder) for folder in folders]
    return runs_of(found, [judging(one) for one in found])


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(text)))


def value(rows: list[dict[str, str]], characteristic: str, level: str = "", target: str = "") -> str:
    found = [
        row["value"]
        for row in rows
        if (row["characteristic"], row["level"], row["target"]) == (characteristic, level, target)
    ]
    assert len(found) == 1, (characteristic, level, target)
    return found[0]


@pytest.fixture(scope="module")
def real() -> Path:
    return shared_run(
        "--scenario", ONE, "--target", "fake:partial", "--target", "fake:wrong",
        "--repeats", "2",
    )  # fmt: skip


def test_a_report_always_comes_with_methods_and_a_table_one(real: Path, tmp_path: Path) -> None:
    written = write_report([real], tmp_path / "out")
    assert {tmp_path / "out" / METHODS_MD, tmp_path / "out" / TABLE_ONE_CSV} <= set(written)
    assert (tmp_path / "out" / METHODS_MD).read_text(encoding="utf-8") == methods_markdown(runs_in(real))


def test_methods_give_the_numbers_of_the_run(real: Path) -> None:
    text, plan = methods_markdown(runs_in(real)), manifest_of(real).plan
    day = manifest_of(real).created[:10]
    assert "We evaluated 2 targets: fake:partial (served as partial) and fake:wrong (served as wrong)." in text
    assert f"They were asked on {day} (UTC)." in text
    assert "temperature 0, at most 2048 tokens per reply, and seeds derived from 42" in text
    assert "no system prompt, no documents, no tools and no web search" in text
    assert "in 1 scenario about invented people, which with their variants make 1 script" in text
    assert "Each script was run 2 times with each model: 4 trials planned, 4 with results." in text
    facts = len(plan.scenarios[0].scenario.answer_key.canonical_facts)
    assert f"checked against {facts} facts for plan year 2026" in text
    assert "2 verifiers (offline:rules and offline:rules)" in text
    assert "The study was not pre-registered." in text
    assert f"{AUTHOR} name the primary outcome." in text


def test_methods_say_how_intervals_and_missing_answers_are_handled(real: Path) -> None:
    text, intervals, missing = methods_markdown(runs_in(real)), rule("intervals"), rule("missing")
    assert intervals in text
    assert missing in text
    assert f"fewer than {LEAST_UNITS} scenarios, or fewer than {LEAST_IN_STRATA} scripts" in intervals
    for word in ("mid-P", "CR2", "Korn and Graubard", "averaged over repeats and then over variants"):
        assert word in intervals
    for word in ("refused, blocked", "failed, were cut off or were not asked", "lowest and the highest"):
        assert word in missing


def test_table_one_counts_what_was_asked_and_what_happened(real: Path) -> None:
    runs = runs_in(real)
    rows = rows_of(table_one_csv(runs))
    assert tuple(rows[0]) == HEADER
    assert value(rows, "Scenarios") == value(rows, "Scripts") == "1"
    theme = runs.runs[0].found.manifest.plan.scenarios[0].scenario.themes[0]
    assert value(rows, "Scenarios by theme", theme) == "1 (100%)"
    assert value(rows, "Trials planned") == "4"
    assert value(rows, "Trials", "planned", "fake:wrong") == value(rows, "Trials", "scored", "fake:wrong") == "2"
    assert value(rows, "Version that answered", "", "fake:wrong") == "wrong"
    assert int(value(rows, "Calls", "", "fake:wrong")) > 0
    statuses = [row for row in rows if row["characteristic"] == "Facts in the answer keys" and row["level"]]
    total = int(value(rows, "Facts in the answer keys").replace(",", ""))
    assert sum(int(row["value"].split(" ")[0].replace(",", "")) for row in statuses) == total


def test_every_planned_trial_is_in_table_one_once(tmp_path: Path) -> None:
    runs = runs_in(write_run(tmp_path / "run", one_of_each(), planned()))
    rows = rows_of(table_one_csv(runs))
    unscored = [
        int(row["value"])
        for row in rows
        if row["characteristic"] == "Trials not scored" and row["target"] == "fake:careful"
    ]
    scored = int(value(rows, "Trials", "scored", "fake:careful"))
    assert scored + sum(unscored) == int(value(rows, "Trials", "planned", "fake:careful")) == 30
    assert value(rows, "Trials not scored", "cut off", "fake:careful") == "1"
    missing = sum(code.value == MISSING for row in runs.series[0].rows for code in row.counted)
    assert int(value(rows, "Questions of these trials", "missing", "fake:careful")) == missing


def test_dates_are_from_the_journal_and_a_run_without_calls_has_none(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [rich()], planned())
    rows = rows_of(table_one_csv(runs_in(folder)))
    assert value(rows, "First call (UTC)", "", "openai:gpt-x") == "–"
    write_journal(folder, [call_on("2026-03-09", "openai:gpt-x"), call_on("2026-03-01", "openai:gpt-x")])
    runs = runs_in(folder)
    rows = rows_of(table_one_csv(runs))
    assert value(rows, "First call (UTC)", "", "openai:gpt-x") == "2026-03-01"
    assert value(rows, "Last call (UTC)", "", "openai:gpt-x") == "2026-03-09"
    assert "from 2026-03-01 to 2026-03-09 (UTC)" in methods_markdown(runs)


def test_a_pre_registration_is_told_with_its_deviations(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [rich()], planned())
    kept = Registration(
        sha256=HASH, created="2026-01-01", primary_outcome="accuracy of claims", tests=("A vs B",), notes="",
        deviations=("targets: one was added",),
    )  # fmt: skip
    made = manifest(planned()).model_copy(update={"registration": kept})
    (folder / MANIFEST).write_bytes(encode_record(made) + b"\n")
    text = methods_markdown(runs_in(folder))
    assert f"pre-registered on 2026\\-01\\-01 (sha256 `{HASH}`)" in text
    assert "The primary outcome, registered before the run, was: accuracy of claims." in text
    assert "Deviation: targets: one was added." in text
    assert "name the primary outcome" not in text


def test_two_runs_have_a_methods_section_each_and_share_table_one(real: Path, tmp_path: Path) -> None:
    other = write_run(tmp_path / "run", [rich()], planned())
    runs = runs_in(real, other)
    text = methods_markdown(runs)
    assert text.count("## Methods, run ") == 2
    study, targets = table_one(runs)
    assert len(study.columns) == 2
    assert len(targets.columns) == 4
    widths = {line.count("|") for line in text.split("**A. ")[1].split("**B. ")[0].splitlines() if line.startswith("|")}
    assert widths == {5}, "each run has its column, also for levels that only one of them has"


def test_no_runs_give_an_empty_table() -> None:
    assert table_one_csv(runs_of([], [])) == ",".join(HEADER) + "\n"
    assert "## Table 1" in methods_markdown(runs_of([], []))


def test_hostile_names_are_inert(tmp_path: Path) -> None:
    one = rich()
    target = one.target.model_copy(update={"served_models": (EVIL, "=1+1"), "not_applied": (EVIL,)})
    persona = {"language": EVIL, "state": "=cmd()"}
    made = planned(scenarios=[scenario(title=EVIL, themes=[EVIL.replace("\x1b", "")], persona=persona)])
    folder = write_run(tmp_path / "run", [one.model_copy(update={"target": target}), *hostile()[1:]], made)
    runs = runs_in(folder)
    text, table = methods_markdown(runs), table_one_csv(runs)
    for bad in ("<script>", "\x1b", "\u202e", "](javascript"):
        assert bad not in text
    assert "\x1b" not in table and "\u202e" not in table
    cells = [cell for row in csv.reader(StringIO(table)) for cell in row]
    assert not [cell for cell in cells if re.match(r"[=+@-]", cell)]
    assert any(cell.startswith("'=cmd()") for cell in cells)


def test_the_same_run_gives_the_same_text(real: Path) -> None:
    assert methods_markdown(runs_in(real)) == methods_markdown(runs_in(real))
    assert table_one_csv(runs_in(real)) == table_one_csv(runs_in(real))
