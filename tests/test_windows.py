"""On a system without folder locks, as Windows is, runs can be read, and running is refused in one sentence.

The system is simulated: what Python lacks on Windows and a reading command could come to need is taken away.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from src.store.locking import UNSUPPORTED

from .runs import ONE, ROOT, copied_run, environment

OLD_RUN = ROOT / "tests" / "formats" / "0.1" / "run"
SIMULATED = """
import asyncio, contextlib, io, json, os, shutil, signal, sys

sys.modules["fcntl"] = None
for name in ("pread", "fdatasync", "fork", "getuid", "O_DIRECTORY"):
    delattr(os, name)
delattr(signal, "SIGKILL")
asyncio.SelectorEventLoop.add_signal_handler = asyncio.AbstractEventLoop.add_signal_handler
shutil._use_fd_functions = False  # as there: a folder cannot be opened
plain_open = os.open

def open_file(path, *rest, **named):
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", str(path))
    return plain_open(path, *rest, **named)

os.open = open_file
from src.cli import main

for arguments in json.loads(sys.argv[1]):
    errors = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        code = main(arguments)
    print(json.dumps([code, errors.getvalue().strip()]))
"""


def windows(*commands: Sequence[object]) -> list[tuple[int, str]]:
    """Exit code and stderr of each command, all run in one process."""
    given = json.dumps([[str(argument) for argument in command] for command in commands])
    finished = subprocess.run(
        [sys.executable, "-c", SIMULATED, given], cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=120
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    ended = [json.loads(line) for line in finished.stdout.splitlines()]
    assert len(ended) == len(commands)
    return [(code, stderr) for code, stderr in ended]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied_run(tmp_path_factory.mktemp("runs"))


def test_a_run_of_the_first_release_is_verified_and_reported(tmp_path: Path) -> None:
    report = tmp_path / "report"
    assert windows(("verify", OLD_RUN), ("report", OLD_RUN, "--out", report)) == [(0, ""), (0, "")]
    assert (report / "report.md").is_file()


@pytest.mark.slow
def test_every_command_that_calls_no_model_works(run: Path, tmp_path: Path) -> None:
    frozen, export, new = tmp_path / "a.json", tmp_path / "export", tmp_path / "new.json"
    commands: list[Sequence[object]] = [
        ("replay", run),
        ("resume", run, "--quiet"),  # complete already: shows its summary
        ("export", run, "--to", "csv", "--out", export),
        ("compare", run, OLD_RUN),
        ("drift", run, run),
        ("sensitivity", run),
        ("power", "--sd", 0.2),
        ("validate", ONE),
        ("scenarios", "list"),
        ("new-scenario", "mine", "--out", new),
        ("models",),
        ("plugins",),
        ("doctor", "--out", tmp_path),
        ("run", "--scenario", ONE, "--target", "fake:careful", "--dry-run"),
        ("freeze", "--scenario", ONE, "--target", "fake:careful", "--primary-outcome", "accuracy", "--to", frozen),
    ]
    for command, (code, stderr) in zip(commands, windows(*commands), strict=True):
        assert code == 0, (command[0], stderr)
    assert (export / "trial.csv").is_file()
    assert sorted(tmp_path.iterdir()) == [frozen, export, new]


@pytest.mark.slow
def test_running_is_refused_in_one_sentence_and_writes_nothing(run: Path, tmp_path: Path) -> None:
    stopped = shutil.copytree(run, tmp_path / "stopped")
    (stopped / "seal.json").unlink()
    before = {path.name: path.read_bytes() for path in stopped.iterdir()}
    out = tmp_path / "runs"
    refused = windows(
        ("run", "--scenario", ONE, "--target", "fake:careful", "--quiet", "--out", out),
        ("demo", "--quiet", "--out", out),
        ("rejudge", run, "--quiet", "--out", out),
        ("judge-check", "--quiet", "--out", out),
        ("resume", stopped, "--quiet"),
    )
    assert refused == [(3, f"medicare-eval: {UNSUPPORTED}")] * 5
    assert not out.exists()
    assert {path.name: path.read_bytes() for path in stopped.iterdir()} == before


def test_the_guide_shows_the_sentence() -> None:
    guide = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert UNSUPPORTED in " ".join(guide.split())
