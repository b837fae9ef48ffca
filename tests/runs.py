"""Making real runs for tests: through the command line, in a process of its own or in this one."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from src import storage
from src.cli import main
from tests.made_once import Made, made_once

ROOT = Path(__file__).resolve().parent.parent
SCENARIOS = ROOT / "scenarios" / "v1"
ONE = str(SCENARIOS / "scenario_001.json")
THREE = str(SCENARIOS / "*.json")
"""The first three scenarios, without the study and the topics below them."""
END_TO_END = ("--split", "dev", "--only", "end-to-end")
"""A check of the rule-based judge that several tests read."""
PARTIAL = ("--scenario", ONE, "--target", "fake:partial")
HANGS_S = 600
"""When a process is given up, so that a test that hangs ends. No test takes that long, even on a busy machine."""


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "src.orchestrator", *map(str, arguments)]


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without any provider's key."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
    return {**kept, **(extra or {})}


def process(*arguments: object, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, from the checkout."""
    return subprocess.run(
        command(*arguments), cwd=ROOT, env=environment(env), capture_output=True, text=True, timeout=HANGS_S
    )


class Called(NamedTuple):
    code: int
    out: str
    err: str


def call(*arguments: object) -> Called:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = int(stop.code or 0)
    return Called(code, out.getvalue(), err.getvalue())


def make_run(out: Path, *arguments: object) -> Path:
    """A finished run of one scenario and one fake target, or of what the arguments say."""
    code, _, err = call("run", *(arguments or PARTIAL), "--out", out, "--quiet")
    assert code == 0, err
    return newest(out)


def shared(*command: object) -> Made:
    """What a command made, with fake models only, and printed; many tests read it, and none may change it."""

    def make(out: Path) -> Made:
        code, printed, err = call(*command, "--out", out, "--quiet")
        assert code == 0, err
        return Made(newest(out), printed)

    return made_once(tuple(map(str, command)), make)


def shared_run(*arguments: object) -> Path:
    """A run as `make_run` makes it, shared by all tests that read it."""
    return shared("run", *(arguments or PARTIAL)).folder


def copied_run(out: Path, *arguments: object) -> Path:
    """A run as `make_run` makes it, copied for a test that changes it or cares where it lies."""
    run = shared_run(*arguments)
    return Path(shutil.copytree(run, out / run.name))


def newest(out: Path) -> Path:
    return max(filter(Path.is_dir, out.iterdir()), key=lambda folder: folder.stat().st_mtime_ns)


def resumes(run: Path, *arguments: object) -> None:
    """`resume` finishes the run: it is sealed and complete."""
    code, _, err = call("resume", run, "--quiet", *arguments)
    assert code == 0, err
    verifies(run)


def verifies(run: Path) -> None:
    """`verify` accepts the run and gives the number of its trials and calls."""
    code, out, err = call("verify", run)
    assert code == 0, err
    trials = len((run / storage.RESULTS).read_bytes().splitlines())
    assert f"OK. {trials} of {trials} trials and " in out


def replays(run: Path) -> None:
    """`replay` computes every result again, to the same bytes."""
    code, out, err = call("replay", run)
    assert code == 0, err
    trials = len((run / storage.RESULTS).read_bytes().splitlines())
    assert f"{trials} of {trials} results" in out
