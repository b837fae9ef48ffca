"""Every named failpoint struck once, and a few random kills; `make crash` does hundreds."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from src import storage
from src.audit import verify
from src.store.failpoints import NAMES, VARIABLE
from tests import crash
from tests.runs import ONE, call, make_run, newest, process

BEFORE_IT_BEGAN = ("run.after_mkdir", "manifest.before_link")
ARGUMENTS = ("run", "--scenario", ONE, "--target", "fake:wrong", "--target", "fake:careful", "--quiet")


@pytest.fixture(scope="module")
def unkilled(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    run = make_run(tmp_path_factory.mktemp("unkilled"), *ARGUMENTS[1:-1])
    return (run / storage.RESULTS).read_bytes()


def killed_at(failpoint: str, out: Path) -> Path:
    finished = process(*ARGUMENTS, "--out", out, env={VARIABLE: failpoint})
    assert finished.returncode == -signal.SIGKILL, finished.stderr
    return newest(out)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in (*BEFORE_IT_BEGAN, "journal.before_recovery")])
def test_killed_at_every_failpoint_the_run_resumes_to_the_same_bytes(
    name: str, tmp_path: Path, unkilled: bytes
) -> None:
    late = name.startswith(("journal.", "results.")) and name != "results.fsync"
    run = killed_at(f"{name}:2" if late else name, tmp_path)
    before = {path.name: path.read_bytes() for path in run.iterdir() if path.suffix == ".jsonl"}
    code, _, err = call("resume", run, "--quiet")
    assert code == 0, err
    assert (run / storage.RESULTS).read_bytes() == unkilled
    for file, data in before.items():
        assert (run / file).read_bytes().startswith(data)
    found = verify(run)
    assert found.sealed
    assert found.torn_lines == (1 if name == "journal.torn_write" else 0)
    assert call("replay", run)[0] == 0


@pytest.mark.parametrize("name", BEFORE_IT_BEGAN)
def test_killed_before_the_manifest_nothing_was_spent_and_resume_says_so(name: str, tmp_path: Path) -> None:
    run = killed_at(name, tmp_path)
    code, _, err = call("resume", run)
    assert code == 2
    assert "the run never began" in err
    assert not (run / storage.JOURNAL).exists()


def test_a_crash_during_recovery_is_recovered_from_too(tmp_path: Path, unkilled: bytes) -> None:
    run = killed_at("journal.torn_write:3", tmp_path)
    for _ in range(2):
        finished = process("resume", run, "--quiet", env={VARIABLE: "journal.before_recovery"})
        assert finished.returncode == -signal.SIGKILL
    with (run / storage.JOURNAL).open("ab") as file:  # a recovery that was itself cut off
        file.write(b'\n{"chain":"00')
    assert call("resume", run, "--quiet")[0] == 0
    assert (run / storage.RESULTS).read_bytes() == unkilled
    assert verify(run).torn_lines == 2


FAILING_DISKS = (
    "journal.before_write:3:ENOSPC",
    "journal.fsync:2:EIO",
    "results.before_write:1:ENOSPC",
    "results.fsync:1:EIO",
    "seal.before_link:1:ENOSPC",
)


@pytest.mark.parametrize("failpoint", FAILING_DISKS)
def test_a_failing_disk_stops_the_run_with_its_own_code_and_can_be_resumed(
    failpoint: str, tmp_path: Path, unkilled: bytes
) -> None:
    finished = process(*ARGUMENTS, "--out", tmp_path, env={VARIABLE: failpoint})
    assert finished.returncode == 6
    assert "the disk refused" in finished.stderr
    assert "Traceback" not in finished.stderr
    run = newest(tmp_path)
    before = (run / storage.JOURNAL).read_bytes()
    assert call("resume", run, "--quiet")[0] == 0
    assert (run / storage.JOURNAL).read_bytes().startswith(before)
    assert (run / storage.RESULTS).read_bytes() == unkilled


def test_a_disk_full_before_the_manifest_leaves_no_manifest(tmp_path: Path) -> None:
    finished = process(*ARGUMENTS, "--out", tmp_path, env={VARIABLE: "manifest.before_link:1:ENOSPC"})
    assert finished.returncode == 6
    assert list(newest(tmp_path).iterdir()) == []


def test_random_kills_lose_nothing_and_pay_nothing_twice(tmp_path: Path) -> None:
    tally = crash.soak(kills=8, seed=7, parent=tmp_path)
    assert tally.problems == []
    assert tally.kills >= 8
    assert tally.studies >= 1
