"""Kills and failing disks at every named place of storage; random kills in the slow suite, hundreds with `make crash`."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from src import storage
from src.audit import verify
from src.store.failpoints import VARIABLE
from tests import crash
from tests.failpoint_names import NAMES
from tests.runs import ONE, call, make_run, newest, process, replays, resumes
from tests.suites import sample

ARGUMENTS = ("run", "--scenario", ONE, "--target", "fake:wrong", "--target", "fake:careful", "--quiet")
BEFORE_THE_MANIFEST = ("run.after_mkdir", "manifest.before_link")
ELSEWHERE = (*BEFORE_THE_MANIFEST, "journal.before_recovery", *(name for name in NAMES if name.startswith("batch.")))
"""Not hit by an ordinary run; for batches see `test_batch_crash`."""
AFTER_THE_MANIFEST = [name for name in NAMES if name not in ELSEWHERE]
IN_EVERY_RUN = "journal.torn_write"
"""The kill that needs most of the recovery; the others are in the slow suite."""


@pytest.fixture(scope="module")
def unkilled(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    run = make_run(tmp_path_factory.mktemp("unkilled"), *ARGUMENTS[1:-1])
    return (run / storage.RESULTS).read_bytes()


def killed_at(failpoint: str, out: Path) -> Path:
    finished = process(*ARGUMENTS, "--out", out, env={VARIABLE: failpoint})
    assert finished.returncode == -signal.SIGKILL, finished.stderr
    return newest(out)


def resumes_to(run: Path, expected: bytes) -> None:
    """The run is resumed, and its results are those of a run that was never killed."""
    before = {path.name: path.read_bytes() for path in run.iterdir() if path.suffix == ".jsonl"}
    resumes(run)
    assert (run / storage.RESULTS).read_bytes() == expected
    for file, data in before.items():
        assert (run / file).read_bytes().startswith(data), f"{file} does not start with what was in it"
    replays(run)


@pytest.mark.parametrize("name", sample(AFTER_THE_MANIFEST, [IN_EVERY_RUN], pytest.mark.slow))
def test_a_run_killed_at_a_failpoint_resumes_to_the_same_bytes(name: str, tmp_path: Path, unkilled: bytes) -> None:
    late = name.startswith(("journal.", "results.")) and name != "results.fsync"
    run = killed_at(f"{name}:2" if late else name, tmp_path)
    resumes_to(run, unkilled)
    assert verify(run).torn_lines == (1 if name == "journal.torn_write" else 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", BEFORE_THE_MANIFEST)
def test_a_run_killed_before_its_manifest_has_spent_nothing_and_resume_says_so(name: str, tmp_path: Path) -> None:
    run = killed_at(name, tmp_path)
    code, _, err = call("resume", run)
    assert code == 2
    assert "has no manifest.json, so it is not a run folder" in err
    assert not (run / storage.JOURNAL).exists()


@pytest.mark.slow
def test_a_crash_during_recovery_is_recovered_from_too(tmp_path: Path, unkilled: bytes) -> None:
    run = killed_at("journal.torn_write:3", tmp_path)
    for _ in range(2):
        finished = process("resume", run, "--quiet", env={VARIABLE: "journal.before_recovery"})
        assert finished.returncode == -signal.SIGKILL
    with (run / storage.JOURNAL).open("ab") as file:  # a recovery that was itself cut off
        file.write(b'\n{"chain":"00')
    resumes_to(run, unkilled)
    assert verify(run).torn_lines == 2


FAILING_DISKS = {
    "journal.before_write:3:ENOSPC": "No space left on device",
    "journal.fsync:2:EIO": "Input/output error",
    "results.before_write:1:ENOSPC": "No space left on device",
    "results.fsync:1:EIO": "Input/output error",
    "seal.before_link:1:ENOSPC": "No space left on device",
}


@pytest.mark.parametrize("failpoint", FAILING_DISKS)
def test_a_failing_disk_stops_the_run_with_exit_code_6_and_it_can_be_resumed(
    failpoint: str, tmp_path: Path, unkilled: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as failing:
        failing.setenv(VARIABLE, failpoint)
        code, _, err = call(*ARGUMENTS, "--out", tmp_path)
    assert code == 6
    assert FAILING_DISKS[failpoint] in err
    assert "medicare-eval resume" in err
    resumes_to(newest(tmp_path), unkilled)


def test_a_disk_that_is_full_before_the_manifest_leaves_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "manifest.before_link:1:ENOSPC")
    code, _, err = call(*ARGUMENTS, "--out", tmp_path)
    assert code == 6
    assert "No space left on device" in err
    assert list(newest(tmp_path).iterdir()) == []


@pytest.mark.slow
def test_random_kills_lose_nothing_and_pay_for_nothing_twice(tmp_path: Path) -> None:
    tally = crash.soak(kills=6, seed=7, parent=tmp_path)
    assert tally.problems == []
    assert tally.kills >= 6
    assert tally.studies >= 1
