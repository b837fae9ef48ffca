"""The run folder: exclusive, append-only, locked, recovered by appending."""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import subprocess
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from src import storage
from src.errors import InputError, IntegrityError, StorageError
from src.schemas import CallRecord, Usage
from src.store import hash_chain
from src.store.failpoints import VARIABLE, Failpoints
from tests.cases import each_case
from tests.runs import HANGS_S, ONE, ROOT, call, command, copied_run, environment, newest, process, resumes

NONE = Failpoints(None)
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
GENESIS = "a" * 64


def record(name: str) -> CallRecord:
    return CallRecord(
        call=f"{name}|target|Q1|0|0|1", request_sha256="b" * 64, prompt_sha256=None, model="fake:careful", outcome="ok", final=True,
        status=None, usage=Usage(), input_characters=9, max_tokens=9, served_model=None, fingerprint=None,
        request_id=None, stop_reason=None, not_applied=(), started="s", latency_ms=1.0, error=None, text="words",
        sent={"a": 1}, received="x" * 5_000,
    )  # fmt: skip


def journal(path: Path) -> storage.Journal:
    return storage.Journal(path, GENESIS, wanted=lambda trial: True, failpoints=NONE)


def append_all(path: Path, *names: str) -> storage.Journal:
    opened = journal(path)

    async def go() -> None:
        await asyncio.gather(*(opened.append(record(name)) for name in names))

    asyncio.run(go())
    return opened


def test_runs_started_in_the_same_second_all_get_a_folder_of_their_own(tmp_path: Path) -> None:
    made: list[Path] = []
    threads = [
        threading.Thread(target=lambda: made.append(storage.create_run_folder(tmp_path, NOW, NONE))) for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 20
    assert {path.name for path in made} >= {"20260102T030405Z", "20260102T030405Z-2", "20260102T030405Z-20"}


def test_a_file_is_written_once_and_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    storage.write_once(path, b"first", NONE, "manifest")
    with pytest.raises(StorageError, match="already exists"):
        storage.write_once(path, b"second", NONE, "manifest")
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_records_come_back_after_the_journal_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    append_all(path, "t1", "t2", "t3").close()
    again = journal(path)
    assert again.calls == 3
    assert again.lookup("t2|target|Q1|0|0|1") == record("t2")
    assert again.lookup("t9|target|Q1|0|0|1") is None
    again.close()


def test_calls_of_finished_trials_are_not_kept_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    append_all(path, "done", "open").close()
    again = storage.Journal(path, GENESIS, wanted=lambda trial: trial == "open", failpoints=NONE)
    assert again.lookup("done|target|Q1|0|0|1") is None
    assert again.lookup("open|target|Q1|0|0|1") is not None
    again.close()


def test_records_that_wait_together_share_one_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs: list[int] = []
    real = os.fdatasync

    def counted(fd: int) -> None:
        syncs.append(fd)
        real(fd)

    monkeypatch.setattr(os, "fdatasync", counted)
    append_all(tmp_path / "calls.jsonl", *(f"t{n}" for n in range(200))).close()
    assert 1 <= len(syncs) <= 5


def test_a_system_without_fdatasync_syncs_the_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fdatasync")
    append_all(tmp_path / "calls.jsonl", "t1").close()
    again = journal(tmp_path / "calls.jsonl")
    assert again.calls == 1
    again.close()


def test_any_error_while_writing_is_raised_in_the_call_that_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(fd: int) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("src.storage._sync", broken)
    opened = journal(tmp_path / "calls.jsonl")
    with pytest.raises(StorageError, match="ZeroDivisionError"):
        asyncio.run(opened.append(record("t1")))
    opened.close()


@each_case("cut", [1, 9, 40, 75, 80, 2_000, -1, -2])
def test_a_torn_last_line_is_skipped_without_truncating_the_file(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "calls.jsonl"
    append_all(path, "t1", "t2").close()
    whole = path.read_bytes()
    second = whole.index(b"\n") + 1
    torn = whole[: second + cut] if cut > 0 else whole[:cut]
    path.write_bytes(torn)
    again = journal(path)
    lost = cut != -1  # without its newline only, a line is whole
    assert again.calls == (1 if lost else 2)
    again.close()
    assert path.read_bytes().startswith(torn)
    append_all(path, "t3").close()
    last = journal(path)
    assert last.calls == (2 if lost else 3)
    assert last.lookup("t3|target|Q1|0|0|1") is not None
    last.close()


def test_damage_before_the_last_line_is_refused_and_not_skipped(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    append_all(path, "t1", "t2", "t3").close()
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(data)
    with pytest.raises(IntegrityError, match="line 1: hash chain broken"):
        journal(path)
    assert path.read_bytes() == bytes(data)


def test_after_a_failed_sync_nothing_more_is_written(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    opened = storage.Journal(path, GENESIS, wanted=bool, failpoints=Failpoints("journal.fsync:2:EIO"))

    async def go() -> None:
        await opened.append(record("t1"))
        with pytest.raises(StorageError, match="Input/output error"):
            await opened.append(record("t2"))
        size = path.stat().st_size
        with pytest.raises(StorageError, match="Input/output error"):
            await opened.append(record("t3"))
        assert path.stat().st_size == size

    asyncio.run(go())
    opened.close()


def test_a_second_process_on_a_run_is_refused(tmp_path: Path) -> None:
    run = copied_run(tmp_path)
    (run / storage.SEAL).unlink()
    with storage.RunLock(run):
        finished = process("resume", run)
    assert finished.returncode == 6
    assert f"{run} is in use by another process. Wait for it to finish, or stop it." in finished.stderr
    resumes(run)


def test_resume_of_a_finished_run_calls_nothing_and_changes_nothing(tmp_path: Path) -> None:
    run = copied_run(tmp_path)
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    code, out, err = call("resume", run)
    assert code == 0
    assert "complete" in err
    assert "fake:partial" in out
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


def test_resume_refuses_results_that_it_would_not_write_again(tmp_path: Path) -> None:
    run = copied_run(tmp_path, "--scenario", ONE, "--target", "fake:partial", "--repeats", "2")
    (run / storage.SEAL).unlink()
    path = run / storage.RESULTS
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second[:300].replace(b"fake", b"fork"))
    code, _, err = call("resume", run, "--quiet")
    assert code == 5
    assert "line 2" in err


@pytest.mark.slow
def test_a_file_size_limit_of_the_system_is_a_storage_error(tmp_path: Path) -> None:
    """The kernel itself refuses the write: as close to a full disk as a test can get."""
    finished = subprocess.run(
        command("run", "--scenario", ONE, "--target", "fake:careful", "--repeats", 5, "--out", tmp_path, "--quiet"),
        cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=HANGS_S,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_200_000, 1_200_000)),
    )  # fmt: skip
    assert (newest(tmp_path) / storage.MANIFEST).stat().st_size < 1_200_000, "only the journal is to be too large"
    assert finished.returncode == 6, finished.stderr
    assert "File too large" in finished.stderr
    assert f"then run `medicare-eval resume {newest(tmp_path)}`." in finished.stderr
    assert "Traceback" not in finished.stderr
    resumes(newest(tmp_path))


def _without_override() -> None:
    """Give up root's right to write anywhere, so that a read-only folder is read-only for root too."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        prctl(24, capability, 0, 0, 0)


def test_a_read_only_folder_is_a_storage_error(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(0o555)
    finished = subprocess.run(
        command("run", "--scenario", ONE, "--target", "fake:careful", "--out", locked, "--quiet"),
        cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=HANGS_S, preexec_fn=_without_override,
    )  # fmt: skip
    assert finished.returncode == 6, finished.stderr
    assert "(Permission denied). Free some space, or choose a folder that you can write to." in finished.stderr
    assert "resume" not in finished.stderr
    assert "Traceback" not in finished.stderr
    assert list(locked.iterdir()) == []


@each_case(("name", "says"), [("", "has no manifest.json, so it is not a run folder."), ("nowhere", "does not exist.")])
def test_a_folder_without_a_manifest_is_named_in_the_error(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(InputError) as found:
        storage.read_manifest(tmp_path / name)
    assert str(found.value) == f"{tmp_path / name} {says}"


def test_chain_values_depend_on_everything_before() -> None:
    first, line = hash_chain.chained(hash_chain.GENESIS, b'{"a":1}')
    second, _ = hash_chain.chained(first, b'{"a":1}')
    assert first != second
    assert line == b'{"chain":"' + first.encode() + b'","a":1}\n'


@each_case("sizes", [[], [10], [10, 20], [hash_chain.TAIL], [10, 3 * hash_chain.TAIL], [200_000, 10]])
def test_the_last_chain_value_is_the_head_that_a_reader_of_the_whole_file_finds(
    tmp_path: Path, sizes: list[int]
) -> None:
    path, head, data = tmp_path / "lines", GENESIS, b""
    for size in sizes:
        head, line = hash_chain.chained(head, b'{"a":"' + b"x" * size + b'"}')
        data += line
    path.write_bytes(data)
    reader = hash_chain.ChainReader(path, GENESIS)
    assert len(list(reader)) == len(sizes)
    assert hash_chain.last_value(path, GENESIS) == reader.head == head


@each_case("end", [b'{"chain":"', b"\n", b"{}\n", b"garbage\n", b"x" * hash_chain.TAIL])
def test_a_file_that_does_not_end_with_a_chained_line_has_no_last_chain_value(tmp_path: Path, end: bytes) -> None:
    path = tmp_path / "lines"
    path.write_bytes(hash_chain.chained(GENESIS, b'{"a":1}').line + end)
    assert hash_chain.last_value(path, GENESIS) is None
    path.write_bytes(end)
    assert hash_chain.last_value(path, GENESIS) is None


@each_case("given", ["run", "judge-check"])
@each_case("below", ["", "below"])
def test_a_file_in_place_of_the_output_folder_is_refused(given: str, below: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    what = ("--scenario", ONE, "--target", "fake:careful") if given == "run" else ("--split", "dev")
    code, out, err = call(given, *what, "--out", tmp_path / "file" / below, "--quiet")
    assert (code, out) == (2, "")
    assert err == f"medicare-eval: {tmp_path / 'file'} is a file. Give a folder.\n"
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


def test_a_judge_check_that_cannot_be_written_says_how_to_resume_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "journal.fsync:2:ENOSPC")
    code, _, err = call("judge-check", "--split", "dev", "--out", tmp_path, "--quiet")
    assert code == 6
    assert "(No space left on device). Data already saved is intact." in err
    assert f"then run `medicare-eval judge-check --resume {newest(tmp_path)}`." in err
