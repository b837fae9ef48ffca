"""Changes that a newcomer makes, done for real in a copy of the checkout: they work, and touch as few files as promised."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import pytest

from src.store.package_data import DataKind
from tests.runs import ROOT, environment

ONE = "scenarios/v1/scenario_001.json"
MOST_FILES = 2
"""Files of src/ that one of these changes may touch."""


def checkout(folder: Path) -> Path:
    """A copy of src/ and schemas/, compiled files too; the other data are links."""
    for name in ("src", "schemas"):
        shutil.copytree(ROOT / name, folder / name)
    for name in set(get_args(DataKind)) - {"schemas"}:
        (folder / name).symlink_to(ROOT / name)
    return folder


def patch(folder: Path, changes: Mapping[str, tuple[str, str]]) -> None:
    """Put text after a line of a file, by file."""
    for name, (line, added) in changes.items():
        text = (folder / name).read_text(encoding="utf-8")
        assert text.count(line) == 1, f"{name} does not have this once: {line}"
        (folder / name).write_text(text.replace(line, line + added), encoding="utf-8")


def touched(folder: Path) -> set[str]:
    """The files of src/ that differ from ours, or are new."""
    files = (path for path in (folder / "src").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    names = {path.relative_to(folder).as_posix() for path in files}
    return {one for one in names if not same((ROOT / one), folder / one)}


def same(ours: Path, theirs: Path) -> bool:
    return ours.is_file() and ours.read_bytes() == theirs.read_bytes()


def python(folder: Path, *arguments: str) -> str:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


# A new flag: `--most-trials N` refuses a plan that is larger

FLAG = {
    "src/records/study.py": (
        '    seed: int = option("seed of every random draw in the run", "N", default=42, ge=0, le=2**63 - 1)\n',
        '    most_trials: int | None = option("refuse a plan of more trials", "N", default=None, ge=1)\n',
    ),
    "src/planning/plan.py": (
        "    _check_size(plan)\n    _check_execution(study, plan)\n",
        "    if study.most_trials and plan.trial_count > study.most_trials:\n"
        '        raise InputError(f"the plan has {plan.trial_count} trials.", field="most_trials")\n',
    ),
}
TRIED = f"""
import contextlib, io, json, os
import src as me
from src.cli import main
assert me.__file__.startswith(os.getcwd())
seen = {{}}
def call(name, *words):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([*words])
        except SystemExit as error:
            code = error.code
    seen[name] = [code, out.getvalue(), err.getvalue()]
both = ("--scenario", "{ONE}", "--target", "fake:careful", "--repeats", "2", "--dry-run")
call("help", "run", "--help")
call("enough", "run", *both, "--most-trials", "2")
call("flag", "run", *both, "--most-trials", "1")
call("too small", "run", *both, "--most-trials", "0")
call("no number", "run", *both, "--most-trials", "x")
with open("study.toml", "w") as file:
    file.write('scenarios = ["{ONE}"]\\ntargets = ["fake:careful"]\\nrepeats = 2\\nmost_trials = 1\\n')
call("key", "run", "study.toml", "--dry-run")
call("flag over key", "run", "study.toml", "--dry-run", "--most-trials", "2")
study = dict(scenarios=["{ONE}"], targets=["fake:careful"], repeats=2)
for name, number in (("keyword", 1), ("keyword too small", 0)):
    try:
        me.plan(**study, most_trials=number)
    except me.InputError as error:
        seen[name] = [error.exit_code, "", str(error)]
seen["enough by keyword"] = [0, str(me.plan(**study, most_trials=2).trial_count), ""]
print(json.dumps(seen))
"""


@pytest.fixture(scope="module")
def flagged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = checkout(tmp_path_factory.mktemp("flag"))
    patch(folder, FLAG)
    python(folder, "-m", "src.schemas", "schemas")
    return folder


def test_a_new_flag_is_a_study_key_and_a_keyword_too_and_is_explained_and_checked(flagged: Path) -> None:
    seen: dict[str, Any] = json.loads(python(flagged, "-c", TRIED))
    code, text, _ = seen["help"]
    assert code == 0
    assert "--most-trials N       refuse a plan of more trials\n" in text
    code, text, _ = seen["enough"]
    assert code == 0 and "\nmost_trials = 2\n" in text
    assert seen["flag"] == [2, "", "medicare-eval: --most-trials: the plan has 2 trials.\n"]
    assert seen["too small"] == [2, "", "medicare-eval: --most-trials: must be at least 1 (got 0).\n"]
    says = "argument --most-trials: 'x' is not a whole number. Try: medicare-eval run --help\n"
    assert seen["no number"] == [2, "", f"medicare-eval run: {says}"]
    assert seen["key"] == [2, "", "medicare-eval: study.toml: field most_trials: the plan has 2 trials.\n"]
    assert seen["flag over key"][0] == 0
    assert seen["keyword"] == [2, "", "Field most_trials: the plan has 2 trials."]
    assert seen["keyword too small"] == [2, "", "Field most_trials: must be at least 1 (got 0)."]
    assert seen["enough by keyword"][1] == "2"


def test_a_new_flag_touches_two_files_of_the_source(flagged: Path) -> None:
    assert touched(flagged) == FLAG.keys()
    assert len(FLAG) <= MOST_FILES


# A new column, in the export, the codebook and the report: how often a trial's replies hedge

COLUMN = {
    "src/trials/tables.py": (
        '        integer("judge_failures", "Times a judge gave no usable answer", "trial.judge_failures"),\n',
        '        integer("hedged", "Passages of all replies that hedge",\n'
        '            lambda of: sum(one.observation.kind == "hedge" for one in of.trial.observations),\n'
        '            in_report="passages that hedge", reads={"observations.observation": "kind"}),\n',
    )
}
MADE = f"""
import contextlib, csv, io, json, os, pathlib
import src as me
from src.cli import main
assert me.__file__.startswith(os.getcwd())
def call(*words):
    with contextlib.redirect_stdout(io.StringIO()):
        assert main([*words]) == 0
call("run", "--scenario", "{ONE}", "--target", "fake:careful", "--target", "fake:evasive", "--out", "runs", "--quiet")
(run,) = pathlib.Path("runs").iterdir()
call("export", str(run), "--out", "export", "--to", "csv")
call("report", str(run), "--out", "report")
def rows(name):
    return list(csv.DictReader(open(f"export/{{name}}.csv", encoding="utf-8")))
print(json.dumps({{
    "trials": [row["hedged"] for row in rows("trial")],
    "turns": sum(int(row["hedges"]) for row in rows("turn")),
    "codebook": [row["meaning"] for row in rows("codebook") if row["column"] == "hedged"],
    "report": pathlib.Path("report/report.md").read_text(encoding="utf-8"),
}}))
"""


@pytest.fixture(scope="module")
def with_column(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = checkout(tmp_path_factory.mktemp("column"))
    patch(folder, COLUMN)
    return folder


def test_a_new_column_is_in_the_export_the_codebook_and_the_report(with_column: Path) -> None:
    seen: dict[str, Any] = json.loads(python(with_column, "-c", MADE))
    assert len(seen["trials"]) == 2
    assert sum(map(int, seen["trials"])) == seen["turns"] > 0
    assert seen["codebook"] == ["Passages of all replies that hedge"]
    lines = seen["report"].splitlines()
    (heading,) = [place for place, line in enumerate(lines) if "| passages that hedge" in line]
    place = lines[heading].split("|").index(" passages that hedge ")
    assert lines[heading + 2].split("|")[place].strip() == str(seen["turns"])


def test_a_new_column_touches_one_file_of_the_source(with_column: Path) -> None:
    assert touched(with_column) == COLUMN.keys()
    assert len(COLUMN) <= MOST_FILES
