"""The examples for SLURM arrays and CI matrices, carried out: the merged run is that of one process, to the byte."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from src import storage
from tests.runs import HANGS_S, ROOT, SCENARIOS, environment, make_run, newest, replays, verifies

EXAMPLES = ROOT / "examples"
STUDY = f"""\
scenarios = ["{SCENARIOS}/*.json"]
targets = ["fake:careful", "fake:wrong"]
repeats = 2
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An empty folder with a study, and `medicare-eval` on the path."""
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    program = tmp_path / "bin" / "medicare-eval"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m src.orchestrator "$@"\n')
    program.chmod(0o755)
    return tmp_path


def shell(script: list[str], place: Path, extra: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    env = environment({**extra, "PATH": f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}"})
    return subprocess.run(script, cwd=place, env=env, capture_output=True, text=True, timeout=HANGS_S)


def is_the_single_run(run: Path, place: Path) -> None:
    one = make_run(place / "one", place / "study.toml")
    assert (run / storage.RESULTS).read_bytes() == (one / storage.RESULTS).read_bytes()
    verifies(run)
    replays(run)


def sbatch(script: Path, place: Path, array: range, **env: str) -> list[subprocess.CompletedProcess[str]]:
    """What `sbatch --array` does: one task after the other, each with its variables."""
    return [
        shell(
            ["bash", str(script)],
            place,
            {"SLURM_ARRAY_TASK_ID": str(number), "SLURM_ARRAY_TASK_COUNT": str(len(array)), **env},
        )
        for number in array
    ]


@pytest.mark.slow
def test_the_slurm_array_gives_the_single_run_also_if_a_task_is_requeued(place: Path) -> None:
    script = EXAMPLES / "slurm_array.sh"
    tasks = sbatch(script, place, range(1, 4), STUDY="study.toml")
    assert [task.returncode for task in tasks] == [0, 0, 0], tasks[0].stderr
    second = newest(place / "shards" / "2")
    (second / storage.SEAL).unlink()
    early = shell(["bash", str(script), "merge"], place, {})
    assert (early.returncode, "is not complete. First run: medicare-eval resume" in early.stderr) == (4, True)
    requeued = sbatch(script, place, range(1, 4), STUDY="study.toml")
    assert [task.returncode for task in requeued] == [0, 0, 0]
    assert [len(list((place / "shards" / str(number)).iterdir())) for number in (1, 2, 3)] == [1, 1, 1]
    merged = shell(["bash", str(script), "merge"], place, {})
    assert merged.returncode == 0, merged.stderr
    is_the_single_run(place / "runs" / "study", place)


def filled(text: str, values: Mapping[str, object]) -> str:
    """`${{ matrix.shard }}` and the like with their values."""
    return re.sub(r"\$\{\{\s*([\w.]+)\s*\}\}", lambda found: str(values.get(found[1], "")), text)


def own_steps(job: dict[str, Any]) -> list[str]:
    """The commands of a job, without the installation, which this checkout stands for."""
    return [step["run"] for step in job["steps"] if "run" in step and step["name"] != "Install"]


@pytest.mark.slow
def test_the_ci_matrix_gives_the_single_run(place: Path) -> None:
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load((EXAMPLES / "ci_matrix.yml").read_text(encoding="utf-8"))["jobs"]
    matrix = jobs["shard"]["strategy"]["matrix"]["shard"]
    assert jobs["merge"]["needs"] == "shard"
    commands = [filled(step, {"matrix.shard": entry}) for entry in matrix for step in own_steps(jobs["shard"])]
    assert len(commands) == len(matrix)
    for command in (*commands, *own_steps(jobs["merge"])):
        done = shell(["bash", "-e", "-c", command], place, {})
        assert done.returncode == 0, done.stderr
    is_the_single_run(place / "runs" / "study", place)
