"""The run folder: created exclusively, appended to, never overwritten.

    runs/<UTC timestamp>/
      manifest.json   the plan and what it ran on; written once, before the first call
      calls.jsonl     the journal: every attempt at every call, chained, durable before it is used
      results.jsonl   one line per trial, in plan order, chained, no timestamps
      seal.json       heads, counts and file hashes; written when the run is complete

One process at a time holds a run, by an exclusive lock on the folder. A disk that fails stops the run (exit code 6)
and leaves what was there; `resume` continues from there.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from .errors import InputError, IntegrityError, StorageError
from .schemas import CallRecord, JournalNote, Seal
from .store import hash_chain, locking
from .store.failpoints import Failpoints
from .store.run_files import (
    RecordedCalls,
    StoredResults,
    call_heads,
    earlier_folder,
    encode_record,
    parsed,
    parsed_note,
    read_calls,
    read_manifest,
    read_notes,
    read_record,
    read_seal,
    read_seal_record,
    require_current,
    trial_id,
)
from .store.run_folder import (
    JOURNAL,
    MANIFEST,
    RESULTS,
    SEAL,
    SEALED,
    check_count,
    differs_from_seal,
    file_sha256,
    manifest_sha256,
)

__all__ = [
    "JOURNAL", "MANIFEST", "RESULTS", "SEAL", "SEALED", "Journal", "RecordedCalls", "Results", "RunLock",
    "StoredResults", "call_heads", "check_count", "create_run_folder", "differs_from_seal", "earlier_folder",
    "encode_record", "file_sha256", "manifest_sha256", "parsed", "parsed_note", "read_calls", "read_manifest",
    "read_notes", "read_record", "read_seal", "read_seal_record", "require_current", "require_folder", "storage_error",
    "sync_folder", "trial_id", "write_once", "write_seal",
]  # fmt: skip

RESUME = "medicare-eval resume"


def storage_error(path: Path, error: OSError, *, resume: str | None = None) -> StorageError:
    """A write that failed. `resume` is the command that continues what was being written, if it can be continued."""
    if resume is None:
        what = "Free some space, or choose a folder that you can write to."
    else:
        what = f"Data already saved is intact. Free some space or make the folder writable, then run `{resume}`."
    return StorageError(f"{path}: write failed ({error.strerror or error}). {what}")


def require_folder(path: Path) -> None:
    """Refuse to write into a folder that is a file, or is below one."""
    try:
        file = next((place for place in (path, *path.parents) if place.exists() and not place.is_dir()), None)
    except OSError as error:
        raise storage_error(path, error) from None
    if file:
        raise InputError(f"{file} is a file. Give a folder.")


def create_run_folder(parent: Path, now: datetime, failpoints: Failpoints) -> Path:
    """Make `parent/<UTC timestamp>`, or the first free `-2`, `-3`, ... of it. An existing folder is never used."""
    locking.check_supported()
    stamp = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    require_folder(parent)
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for n in range(1, 10_000):
            folder = parent / (stamp if n == 1 else f"{stamp}-{n}")
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            sync_folder(parent)
            failpoints.hit("run.after_mkdir")
            return folder
    except OSError as error:
        raise storage_error(parent, error) from None
    raise StorageError(f"{parent}: ten thousand runs were started in one second. Choose another `out`.")


def write_once(path: Path, data: bytes, failpoints: Failpoints, name: str, *, resume: str | None = None) -> None:
    """Write a whole file durably, or fail and leave nothing. An existing file is never replaced."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        failpoints.hit(f"{name}.before_link")
        os.link(temporary, path)
        failpoints.hit(f"{name}.after_link")
        sync_folder(path.parent)
    except FileExistsError:
        raise StorageError(f"{path} already exists and will not be overwritten.") from None
    except OSError as error:
        raise storage_error(path, error, resume=resume) from None
    finally:
        temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows cannot open a folder, and needs no sync of it
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class RunLock:
    """Holds a run for one process; the second is refused. The system lets go of it when the process ends."""

    def __init__(self, folder: Path) -> None:
        try:
            self._fd = locking.lock_folder(folder)
        except BlockingIOError:
            raise StorageError(f"{folder} is in use by another process. Wait for it to finish, or stop it.") from None

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


class Journal:
    """The append-only record of calls behind the gateway. `store.hash_chain` describes its lines and recovery."""

    def __init__(
        self, path: Path, genesis: str, *, wanted: Callable[[str], bool], failpoints: Failpoints, resume: str = RESUME
    ) -> None:
        self._path = path
        self._resume = f"{resume} {path.parent}"
        self._failpoints = failpoints
        self._pending: list[tuple[bytes, int, asyncio.Future[None]]] = []
        self._flushing: asyncio.Task[None] | None = None
        self._broken: StorageError | None = None
        self._fd = _open_for_append(path, self._resume)
        self._recorded = RecordedCalls(path, genesis, wanted)
        self.head, self.calls = self._recorded.reader.head, self._recorded.calls
        self.notes = self._recorded.notes
        """What the journal said about the run as a whole when it was opened."""
        self.unanswered = self._recorded.unanswered
        """Calls that were in a batch then, without a record."""
        self._recover(self._recorded.reader)

    def lookup(self, call: str) -> CallRecord | None:
        return self._recorded.lookup(call)

    def _recover(self, reader: hash_chain.ChainReader) -> None:
        addition = b"" if reader.ends_clean else b"\n"
        if reader.torn:
            self.head, line = hash_chain.chained(self.head, hash_chain.recovery_payload(reader.torn))
            addition += line
        if not addition:
            return
        try:
            self._failpoints.hit("journal.before_recovery")
            _write_all(self._fd, addition)
            os.fsync(self._fd)
        except OSError as error:
            raise storage_error(self._path, error, resume=self._resume) from None

    async def append(self, record: CallRecord | JournalNote) -> None:
        """Return once the record is on disk. Many waiting records share one sync."""
        if self._broken:
            raise self._broken
        future = asyncio.get_running_loop().create_future()
        # The serializer's own JSON: eight times faster, and a journal line is never compared with a rewritten one.
        self._pending.append((record.__pydantic_serializer__.to_json(record), isinstance(record, CallRecord), future))
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush())
        await future

    async def _flush(self) -> None:
        try:
            while self._pending:
                batch, self._pending = self._pending, []
                head, lines = self.head, []
                for payload, _, _ in batch:
                    head, line = hash_chain.chained(head, payload)
                    lines.append(line)
                error = self._broken or await asyncio.to_thread(self._commit, b"".join(lines))
                if error:
                    self._broken = error
                else:
                    self.head = head
                    self.calls += sum(calls for _, calls, _ in batch)
                for _, _, future in batch:
                    if future.cancelled():
                        continue
                    if error:
                        future.set_exception(error)
                    else:
                        future.set_result(None)
        finally:
            self._flushing = None

    def _commit(self, data: bytes) -> StorageError | None:
        """Write and sync. After a failed sync, data may be lost even if a second sync succeeds: no retry."""
        try:
            self._failpoints.hit("journal.before_write")
            if self._failpoints.armed("journal.torn_write"):
                _write_all(self._fd, data[: len(data) // 2])
            self._failpoints.hit("journal.torn_write")
            _write_all(self._fd, data)
            self._failpoints.hit("journal.after_write")
            self._failpoints.hit("journal.fsync")
            _sync(self._fd)
            self._failpoints.hit("journal.after_fsync")
        except OSError as error:
            return storage_error(self._path, error, resume=self._resume)
        except Exception as error:  # whatever it is, the calls that wait must get it
            return StorageError(f"{self._path} could not be written ({type(error).__name__}: {error}).")
        return None

    def close(self) -> None:
        self._recorded.close()
        os.close(self._fd)


def _sync(fd: int) -> None:
    """Flush data to disk; on systems without fdatasync, the whole file."""
    getattr(os, "fdatasync", os.fsync)(fd)


def _open_for_append(path: Path, resume: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    except OSError as error:
        raise storage_error(path, error, resume=resume) from None


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


class Results:
    """results.jsonl, written in plan order. What it already contains must be what would be written again."""

    def __init__(self, path: Path, plan_order: list[str], failpoints: Failpoints) -> None:
        self._path = path
        self._failpoints = failpoints
        self._resume = f"{RESUME} {path.parent}"
        self._fd = _open_for_append(path, self._resume)
        reader = hash_chain.ChainReader(path, hash_chain.GENESIS)
        for line, expected in zip(reader, [*plan_order, None], strict=False):
            if expected is None or trial_id(line.payload) != expected:
                raise IntegrityError(f"{path}, line {line.number}: this trial is out of order; the file was edited.")
        self.head, self.count = reader.head, reader.count
        self._fragment = self._torn_end(reader)

    def _torn_end(self, reader: hash_chain.ChainReader) -> bytes:
        """The bytes of a half-written last line. A whole last line without a newline gets one."""
        if reader.torn and (len(reader.torn) > 1 or reader.torn[0].ended):
            raise reader.broken()
        if reader.torn:
            length = reader.torn[0].length
            return os.pread(self._fd, length, reader.size - length)
        if not reader.ends_clean:
            self._write(b"\n")
        return b""

    def append(self, payload: bytes) -> None:
        """The next result in plan order, as `encode_record` gives it."""
        head, line = hash_chain.chained(self.head, payload)
        if not line.startswith(self._fragment):
            raise IntegrityError(
                f"{self._path}, line {self.count + 1}: this incomplete line does not match the recomputed result of "
                f"{trial_id(payload)}; the file was edited."
            )
        self._write(line[len(self._fragment) :])
        self._fragment = b""
        self.head = head
        self.count += 1

    def _write(self, data: bytes) -> None:
        try:
            self._failpoints.hit("results.before_write")
            if self._failpoints.armed("results.torn_write"):
                _write_all(self._fd, data[: len(data) // 2])
            self._failpoints.hit("results.torn_write")
            _write_all(self._fd, data)
            self._failpoints.hit("results.after_write")
        except OSError as error:
            raise storage_error(self._path, error, resume=self._resume) from None

    def sync(self) -> None:
        try:
            self._failpoints.hit("results.fsync")
            os.fsync(self._fd)
        except OSError as error:
            raise storage_error(self._path, error, resume=self._resume) from None

    def close(self) -> None:
        os.close(self._fd)


def write_seal(folder: Path, journal: Journal, results: Results, failpoints: Failpoints) -> Seal:
    results.sync()
    seal = Seal(
        results_head=results.head,
        journal_head=journal.head,
        trials=results.count,
        calls=journal.calls,
        files={name: file_sha256(folder / name) for name in SEALED},
    )
    write_once(folder / SEAL, encode_record(seal) + b"\n", failpoints, "seal", resume=f"{RESUME} {folder}")
    return seal
