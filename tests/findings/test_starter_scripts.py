"""The scripts beside exported tables load them in R, Stata and Python, and get the numbers of the report."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from src.exports.export import STARTERS, export
from src.findings.human_comparison import Headline, compare_with_counselors, headline, load_baseline
from src.findings.read_run import gather
from src.schemas import Exchange, QuestionCode, RunPlan, StudyCode, TrialResult, TurnOutcome
from tests.cases import each_case

from ..helpers import plan, result, scenario
from .made_runs import write_run

TARGETS = ("fake:careful", "openai:gpt-x")
GROUPS = {"Q1": "g1", "Q2": "g2", "Q3": "g14", "Q4": "g9"}
"""Of the study: compared like for like, closed, dependent on a lookup, and compared like for like."""
LEVELS: tuple[StudyCode, ...] = ("accurate_complete", "incorrect", "accurate_complete", "not_substantive")
CLOSED = "g2"
FAILED_FIRST = 150
"""More than the hundred cells by which writers of other packages guess a type."""
NO_ANSWER = "No answer counts: all of them are missing, or no question was coded."
SHARE = 1e-9
LIMIT = 1e-6


def planned() -> RunPlan:
    turns = [{"turn_id": turn, "user_message": f"About {g}?", "question_group": g} for turn, g in GROUPS.items()]
    names = ("medicare_only", "dual_eligible", "s3", "s4", "s5")
    scenarios = [scenario(scenario_id=name, scripted_turns=turns) for name in names]
    return plan(scenarios=scenarios, targets=TARGETS, repeats=2)


def _turn(turn_id: str, outcome: TurnOutcome) -> Exchange:
    return Exchange(
        turn_id=turn_id, question_group=GROUPS[turn_id], user_message="?", outcome=outcome,
        reply="Yes." if outcome == "answered" else None, detail=None if outcome == "answered" else "Lost.",
        served_model=None,
    )  # fmt: skip


def _code(turn_id: str, given: StudyCode) -> QuestionCode:
    closed = GROUPS[turn_id] == CLOSED and given != "incomplete_data"
    return QuestionCode(
        question_group=GROUPS[turn_id], turn_ids=(turn_id,), code=None if closed else given,
        answer="yes" if closed else None, reason="Why.", lookup_dependent=False, points_met=(), points_missed=(),
        partial_points_met=(), wrong=(), minor=(), fabricated=(),
    )  # fmt: skip


def _trial(name: str, variant: str | None, target: str, repetition: int, turns: dict[str, Any]) -> TrialResult:
    """`turns`: by turn, the outcome, and the code if it was answered."""
    lost = any(outcome == "timeout" for outcome, _ in turns.values())
    made = result(scenario_id=name, target=target, repetition=repetition, outcome="failed" if lost else "scored")
    return made.model_copy(
        update={
            "trial_id": f"{name}@{variant}.{target.replace(':', '-')}.r{repetition}",
            "variant": variant,
            "conversation": tuple(_turn(turn, outcome) for turn, (outcome, _) in turns.items()),
            "study_codes": tuple(_code(turn, code or "incomplete_data") for turn, (_, code) in turns.items()),
        }
    )


def results() -> list[TrialResult]:
    """Many failed trials first, then answers of all kinds: some blocked, some lost, unequal numbers of repeats."""
    nothing = {turn: ("timeout" if turn == "Q1" else "not_asked", None) for turn in GROUPS}
    made = [
        _trial("medicare_only", "early", target, n, nothing) for n in range(1, FAILED_FIRST + 1) for target in TARGETS
    ]
    count = 0
    for name in ("medicare_only", "dual_eligible", "s3", "s4", "s5"):
        for variant in ("a", "b", "c") if name != "s5" else (None,):
            for place, target in enumerate(TARGETS):
                for repetition in range(1, 3 + (name == "s4")):
                    count += 1
                    turns: dict[str, Any] = {
                        turn: ("answered", LEVELS[(count * 7 + n * (3 - place)) % len(LEVELS)])
                        for n, turn in enumerate(GROUPS)
                    }
                    if count % 5 == 0:
                        turns["Q1"] = ("blocked", None)
                    if count % 4 == 0:
                        turns["Q4"] = ("timeout", None)
                    made.append(_trial(name, variant, target, repetition, turns))
    return made


def agreeing() -> list[TrialResult]:
    """Every answer is complete, and none is missing."""
    turns = dict.fromkeys(GROUPS, ("answered", "accurate_complete"))
    return [_trial(name, None, TARGETS[0], 1, turns) for name in ("medicare_only", "dual_eligible", "s3", "s4")]


@cache
def headlines(folder: Path) -> dict[str, Headline]:
    """What the report says of each target."""
    found = gather(folder)
    baseline = load_baseline()
    rows = {target: found.of_target(target) for target in found.plan_targets}
    return {
        target: headline(mine, compare_with_counselors(mine, found.rules, baseline)) for target, mine in rows.items()
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run") / "run", results(), planned())


def exported(folder: Path, name: str, out: Path) -> Path:
    export(folder, out, [name])
    return out


def checked(computed: dict[str, Any], folder: Path, *, limits: bool = True) -> None:
    """What a script computed is what the report says."""
    wanted = headlines(folder)
    by_target = {row["target"]: row for row in computed["headline"]}
    assert set(by_target) == {target for target, one in wanted.items() if one.complete.value is not None}
    for target, row in by_target.items():
        ours = wanted[target].complete
        assert row["share"] == pytest.approx(ours.value, abs=SHARE), target
        assert (row["scenarios"], row["questions"]) == (ours.units, ours.questions)
        assert (row["answers"], row["missing"]) == (ours.answers, ours.missing)
        if limits:
            assert ours.low is not None
            assert (row["low"], row["high"]) == pytest.approx((ours.low, ours.high), abs=LIMIT), target
    same = {row["target"]: row["share"] for row in computed["same_questions"]}
    people = {row["mode"]: row["share"] for row in computed["counselors"]}
    for target in by_target:
        study = wanted[target].study
        assert study
        beside = study.outcomes["accurate_complete"]
        assert same[target] == pytest.approx(beside.target.value, abs=SHARE)
        assert people == pytest.approx({mode: one.value for mode, one in beside.counselors.items()}, abs=SHARE)


# Python

IN_PYTHON = """
import json, os, runpy, sys
for folder in sys.argv[1:]:
    os.chdir(folder)
    names = runpy.run_path("start.py")
    print()
    print(json.dumps({name: json.loads(names[name].to_json(orient="records", double_precision=15))
                      for name in ("headline", "same_questions", "counselors")}))
"""


def in_python(*folders: Path) -> list[dict[str, Any]]:
    """What the script finds in each of these exports, in one process: pandas takes long to load."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", IN_PYTHON, *folders], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Share of questions answered accurately and completely") == len(folders)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"headline"')]


@pytest.mark.slow
def test_python_gets_the_headline_number_from_every_format(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    names = ("csv", "parquet", "dta", "sav")
    found = dict(zip(names, in_python(*(exported(run, name, tmp_path / name) for name in names)), strict=True))

    @each_case("name", names)
    def agrees(name: str) -> None:
        checked(found[name], run, limits=find_spec("scipy") is not None)

    agrees()


def test_python_agrees_if_all_scenarios_do(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    folder = write_run(tmp_path / "run", agreeing(), planned())
    assert headlines(folder)[TARGETS[0]].complete.value == 1
    (found,) = in_python(exported(folder, "csv", tmp_path / "out"))
    checked(found, folder, limits=find_spec("scipy") is not None)


def test_the_made_run_is_hard_enough(run: Path) -> None:
    """Missing answers come first and are many, and no average is the same if the steps are left out or swapped."""
    found = gather(run)
    for target, one in headlines(run).items():
        ours = one.complete
        assert ours.missing > FAILED_FIRST and ours.value is not None
        assert 0.2 < ours.value < 0.8
        codes = [code for row in found.of_target(target) for code in row.counted]
        plain = sum(code.value == "accurate_complete" for code in codes if code.value != "missing")
        assert abs(plain / sum(code.value != "missing" for code in codes) - ours.value) > 1e-4
        assert one.study and one.study.numbers == (1, 9)


def test_without_an_answer_that_counts_python_says_so(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    for name, made in (("lost", results()[:4]), ("none", [])):
        out = exported(write_run(tmp_path / name, made, planned()), "csv", tmp_path / f"{name}-out")
        done = subprocess.run([sys.executable, "start.py"], cwd=out, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (1, f"{NO_ANSWER}\n")


# R

IN_R = """
source("start.R")
said <- function(name, table) for (row in seq_len(NROW(table))) for (column in names(table)) {
  value <- table[[column]][row]
  cat("\\n", name, "\\t", row, "\\t", column, "\\t", if (is.numeric(value)) sprintf("%.17g", value) else value, sep = "")
}
cat("\\n")
said("headline", headline); said("same_questions", same_questions); said("counselors", counselors)
"""


@cache
def r_has(package: str) -> bool:
    script = f'quit(status = if (requireNamespace("{package}", quietly = TRUE)) 0 else 1)'
    return subprocess.run(["Rscript", "-e", script], capture_output=True).returncode == 0


def in_r(out: Path) -> dict[str, Any]:
    environment = {**os.environ, "RETICULATE_PYTHON": sys.executable}
    done = subprocess.run(["Rscript", "-e", IN_R], cwd=out, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "Share of questions answered accurately and completely" in done.stdout
    found: dict[str, dict[str, dict[str, Any]]] = {"headline": {}, "same_questions": {}, "counselors": {}}
    for line in done.stdout.splitlines():
        if line.count("\t") == 3:
            name, row, column, value = line.split("\t")
            number = re.fullmatch(r"-?[0-9.]+(e-?[0-9]+)?|0|1", value)
            found[name].setdefault(row, {})[column] = float(value) if number else value
    return {name: list(rows.values()) for name, rows in found.items()}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
@pytest.mark.parametrize("name", ["csv", "dta", "sav", "parquet"])
def test_r_gets_the_headline_number_from_every_format(name: str, run: Path, tmp_path: Path) -> None:
    if name in ("dta", "sav") and not r_has("haven"):
        pytest.skip("the R package haven is not installed")
    if name == "parquet" and not any(map(r_has, ("nanoparquet", "arrow", "reticulate"))):
        pytest.skip("none of the R packages nanoparquet, arrow and reticulate is installed")
    checked(in_r(exported(run, name, tmp_path / "out")), run)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_r_agrees_if_all_scenarios_do(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", agreeing(), planned())
    checked(in_r(exported(folder, "csv", tmp_path / "out")), folder)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_without_an_answer_that_counts_r_says_so(tmp_path: Path) -> None:
    for name, made in (("lost", results()[:4]), ("none", [])):
        out = exported(write_run(tmp_path / name, made, planned()), "csv", tmp_path / f"{name}-out")
        done = subprocess.run(["Rscript", "start.R"], cwd=out, capture_output=True, text=True)
        assert done.returncode == 1
        assert NO_ANSWER in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_r_reads_tables_in_pieces(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from src.exports import writers

    if not r_has("haven"):
        pytest.skip("the R package haven is not installed")
    monkeypatch.setattr(writers, "PIECE_ROWS", 300)
    out = exported(run, "dta", tmp_path / "out")
    assert (out / "question.3.dta").is_file()
    checked(in_r(out), run)
    (found,) = in_python(out)
    checked(found, run)


# Stata, which has no interpreter here

COMMANDS = {
    "version", "clear", "set", "local", "use", "foreach", "append", "tempfile", "save", "merge", "drop", "tabulate",
    "generate", "replace", "collapse", "display", "list", "keep", "if", "duplicates", "egen", "bysort", "exit",
}  # fmt: skip
MADE = {"complete", "share", "questions", "coded", "weight"}
"""Variables that the script makes itself."""


def stata_lines(text: str) -> list[str]:
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("*") and line != "}"]


def test_every_variable_of_the_stata_script_is_in_its_table(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyreadstat")
    out = exported(run, "dta", tmp_path / "out")
    text = (out / "start.do").read_text(encoding="utf-8")
    lines = stata_lines(text)
    assert {line.split()[0].rstrip(":") for line in lines} <= COMMANDS
    reader = import_module("pyreadstat")
    (answer,) = re.findall(r"^local answer (.+)$", text, re.M)
    loaded = re.findall(r'use (.+) using "(\w+)\.dta"', text.replace("`answer'", answer))
    assert [table for _, table in loaded] == ["question", "trial", "counselor"]
    known: set[str] = set(MADE)
    for names, table in loaded:
        held = set(reader.read_dta(out / f"{table}.dta", metadataonly=True)[1].column_names)
        assert set(names.split()) <= held, table
        known |= set(names.split())
    for line in lines:
        used = re.findall(r"by\(([\w ]+)\)|tag\(([\w ]+)\)|^bysort ([\w ]+):|^list ([\w ]+),|^keep ([\w ]+)$", line)
        used += re.findall(r"missing\((\w+)\)|(\w+) ==|\(\w+\) \w+=(\w+)|\(\w+\) (\w+) |aweight=(\w+)", line)
        for name in " ".join(part for found in used for part in found).split():
            assert name in known | {"_N"}, line
    assert text.count("{") == text.count("}")


def test_numbers_of_codes_in_the_stata_script_are_those_of_the_codebook(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyreadstat")
    out = exported(run, "dta", tmp_path / "out")
    labels = import_module("pyreadstat").read_dta(out / "question.dta", metadataonly=True)[1].variable_value_labels
    text = (out / "start.do").read_text(encoding="utf-8")
    assert labels["counted_code"][1] == "accurate_complete"
    assert labels["compared"][1] == "yes"
    for number, code in (
        (1, "accurate_complete"),
        (2, "accurate_incomplete"),
        (3, "not_substantive"),
        (4, "incorrect"),
    ):
        assert labels["counted_code"][number] == code
        assert f"{number} {code}" in " ".join(line.lstrip("* ") for line in text.splitlines())


# All of them


def test_scripts_are_written_once_and_never_over_those_of_the_user(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert {out / name for name in STARTERS} <= set(export(run, out, ["csv"]))
    (out / "start.R").write_text("mine", encoding="utf-8")
    assert not {out / name for name in STARTERS} & set(export(run, out, ["jsonl"]))
    assert (out / "start.R").read_text(encoding="utf-8") == "mine"


def test_scripts_name_only_tables_and_columns_that_exist(run: Path, tmp_path: Path) -> None:
    from src.exports.tables import TABLES

    out = exported(run, "csv", tmp_path / "out")
    columns = {column.name for table in TABLES for column in table.columns}
    named = set(
        re.findall(r"(?:question|trial|counselor|answers|counted|people)\$(\w+)", (out / "start.R").read_text())
    )
    made = {"trial_outcome", "level", "why_missing", "complete", "coded", "share", "weight"}
    assert named and named - made <= columns
    tables = {table.name for table in TABLES}
    for name in ("start.R", "start.py"):
        assert set(re.findall(r'load_table\("(\w+)"\)', (out / name).read_text())) <= tables


def test_scripts_are_plain_text_that_fits_the_page() -> None:
    for path in (Path(__file__).parents[2] / "src/exports/starters").iterdir():
        lines = path.read_text(encoding="utf-8").splitlines()
        assert all(len(line) <= 120 and line == line.rstrip() and line.isascii() for line in lines), path.name
        if path.name == "start.py.txt":
            compile("\n".join(lines), path.name, "exec")
