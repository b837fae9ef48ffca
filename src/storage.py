"""The run folder: created exclusively, appended to, never overwritten.

    runs/<UTC timestamp>/
      manifest.json   the plan and what it ran on; written once, before the first call
      calls.jsonl     the journal: every attempt at every call, chained, durable before it is used
      results.jsonl   one line per trial, in plan order, chained, no timestamps
      seal.json       heads, counts and file hashes; written when the run is complete

One process at a time holds a run, by an exclusive lock on the folder. A disk that fails stops the run (exit code 6)
and leaves what was there; `resume` goes on from it.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec
from pydantic import ValidationError

from .errors import InputError, IntegrityError, StorageError
from .records.run import FIRST_RELEASE, FORMAT
from .schemas import (
    CallHead,
    CallRecord,
    Manifest,
    Record,
    Seal,
    TrialResult,
)
from .store import hash_chain, locking, strict_json
from .store.failpoints import Failpoints

MANIFEST, JOURNAL, RESULTS, SEAL = "manifest.json", "calls.jsonl", "results.jsonl", "seal.json"
R = TypeVar("R", bound=Record)


def encode_record(record: Record) -> bytes:
    return strict_json.encode(record.model_dump(mode="json"))


def storage_error(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"{path}: write failed ({error.strerror or error}). Data already saved is intact. "
        "Free some space or pick a writable folder, then run `medicare-eval resume RUN`."
    )


def create_run_folder(parent: Path, now: datetime, failpoints: Failpoints) -> Path:
    """Make `parent/<UTC timestamp>`, or the first free `-2`, `-3`, ... of it. An existing folder is never used."""
    locking.check_supported()
    stamp = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for n in range(1, 10_000):
            folder = parent / (stamp if n == 1 else f"{stamp}-{n}")
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            _sync_folder(parent)
            failpoints.hit("run.after_mkdir")
            return folder
    except OSError as error:
        raise storage_error(parent, error) from None
    raise StorageError(f"{parent}: ten thousand runs were started in one second. Choose another --out.")


def write_once(path: Path, data: bytes, failpoints: Failpoints, name: str) -> None:
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
        _sync_folder(path.parent)
    except FileExistsError:
        raise StorageError(f"{path} already exists and will not be overwritten.") from None
    except OSError as error:
        raise storage_error(path, error) from None
    finally:
        temporary.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    if not hasattr(os, "O_DIRECTORY"):  # Windows cannot open a folder, and needs no sync of it
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def read_record(path: Path, kind: type[R]) -> R:
    """Read a record that this project wrote. Its bytes must be exactly what was written."""
    try:
        data = path.read_bytes()
        record = kind.model_validate_json(data)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StorageError(f"{path} cannot be read ({error.strerror}).") from None
    except ValidationError:
        raise IntegrityError(f"{path}, line 1: not what was written. It is not a valid {kind.__name__}.") from None
    if encode_record(record) + b"\n" != data:
        raise IntegrityError(f"{path}, line 1: not what was written. Its bytes were changed.")
    return record


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a run, of this format or an earlier one."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, not a run folder. Give the folder that contains {MANIFEST}.")
    try:
        _check_format(folder)
        return read_record(folder / MANIFEST, Manifest)
    except FileNotFoundError:
        what = "The run never started; start a new one" if folder.is_dir() else "There is no such folder"
        raise InputError(f"{folder} has no {MANIFEST}. {what}.") from None


def _check_format(folder: Path) -> None:
    """Refuse what a later release wrote. A manifest that cannot be read at all is reported by `read_record`."""
    path = folder / MANIFEST
    try:
        written = msgspec.json.decode(path.read_bytes(), type=_Versioned).format
    except FileNotFoundError:
        raise
    except (OSError, msgspec.DecodeError):
        return
    if written > FORMAT:
        raise InputError(
            f"{folder} was written by a later release (format {written}; this one reads up to {FORMAT}). "
            "Install the release that its manifest.json names under versions."
        )


def require_current(folder: Path, manifest: Manifest, what: str) -> None:
    """Refuse what only the release that wrote a run can do: compute its results again, byte for byte."""
    if manifest.format != FORMAT:
        raise InputError(
            f"{folder} has format {manifest.format}, and this release cannot {what} it. Install "
            f"{FIRST_RELEASE[manifest.format]} for that; verify, report, compare, export and rejudge work here."
        )


def manifest_sha256(folder: Path) -> str:
    return strict_json.sha256((folder / MANIFEST).read_bytes())


class RunLock:
    """Holds a run for one process; the second is refused. The system lets go of it when the process ends."""

    def __init__(self, folder: Path) -> None:
        try:
            self._fd = locking.lock_folder(folder)
        except BlockingIOError:
            raise StorageError(f"{folder}: is in use by another process; wait for it or stop it.") from None

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


class RecordedCalls:
    """A journal for reading: streamed once, its chain checked, the calls of the wanted trials indexed by id."""

    def __init__(self, path: Path, genesis: str, wanted: Callable[[str], bool]) -> None:
        self.path = path
        self.calls = 0
        self._index: dict[str, tuple[int, int]] = {}
        self.reader = hash_chain.ChainReader(path, genesis)
        for line in self.reader:
            if hash_chain.is_recovery(line.payload):
                continue
            self.calls += 1
            call = call_id(line.payload)
            if wanted(call.partition("|")[0]):
                self._index[call] = (line.offset, line.length)
        self._file = path.open("rb")

    def lookup(self, call: str) -> CallRecord | None:
        """The record of this attempt, if there is one. Each is looked up once, so its index entry is then dropped."""
        place = self._index.pop(call, None)
        if place is None:
            return None
        offset, length = place
        self._file.seek(offset)
        line = self._file.read(length)
        return CallRecord.model_validate_json(hash_chain.payload_of(line))

    def close(self) -> None:
        self._file.close()


class Journal:
    """The append-only record of calls behind the gateway. `store.hash_chain` describes its lines and recovery."""

    def __init__(self, path: Path, genesis: str, *, wanted: Callable[[str], bool], failpoints: Failpoints) -> None:
        self._path = path
        self._failpoints = failpoints
        self._pending: list[tuple[bytes, asyncio.Future[None]]] = []
        self._flushing: asyncio.Task[None] | None = None
        self._broken: StorageError | None = None
        self._fd = _open_for_append(path)
        self._recorded = RecordedCalls(path, genesis, wanted)
        self.head, self.calls = self._recorded.reader.head, self._recorded.calls
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
            raise storage_error(self._path, error) from None

    async def append(self, record: CallRecord) -> None:
        """Return once the record is on disk. Many waiting records share one sync."""
        if self._broken:
            raise self._broken
        future = asyncio.get_running_loop().create_future()
        # The serializer's own JSON: eight times faster, and a journal line is never compared with a rewritten one.
        self._pending.append((record.__pydantic_serializer__.to_json(record), future))
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush())
        await future

    async def _flush(self) -> None:
        try:
            while self._pending:
                batch, self._pending = self._pending, []
                head, lines = self.head, []
                for payload, _ in batch:
                    head, line = hash_chain.chained(head, payload)
                    lines.append(line)
                error = self._broken or await asyncio.to_thread(self._commit, b"".join(lines))
                if error:
                    self._broken = error
                else:
                    self.head = head
                    self.calls += len(batch)
                for _, future in batch:
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
            return storage_error(self._path, error)
        except Exception as error:  # whatever it is, the calls that wait must get it
            return StorageError(f"{self._path} could not be written ({type(error).__name__}: {error}).")
        return None

    def close(self) -> None:
        self._recorded.close()
        os.close(self._fd)


def _sync(fd: int) -> None:
    """Flush data to disk; on systems without fdatasync, the whole file."""
    getattr(os, "fdatasync", os.fsync)(fd)


def _open_for_append(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    except OSError as error:
        raise storage_error(path, error) from None


class _Call(msgspec.Struct):
    call: str


class _Trial(msgspec.Struct):
    trial_id: str


class _Versioned(msgspec.Struct):
    format: int


_decode_call = msgspec.json.Decoder(_Call).decode
_decode_trial = msgspec.json.Decoder(_Trial).decode


def call_id(payload: bytes) -> str:
    """The call's name in a journal line, without building the whole record."""
    return _decode_call(payload).call


def call_heads(folder: Path) -> Iterator[CallHead]:
    """Every attempt in a run's journal, with only the fields needed for counting."""
    path = folder / JOURNAL
    if not path.exists():
        return
    for line in hash_chain.ChainReader(path, manifest_sha256(folder)):
        if not hash_chain.is_recovery(line.payload):
            yield CallHead.model_validate_json(line.payload)


def read_calls(folder: Path) -> Iterator[CallRecord]:
    """Every attempt in a run's journal, whole."""
    path = folder / JOURNAL
    if path.exists():
        for line in hash_chain.ChainReader(path, manifest_sha256(folder)):
            if not hash_chain.is_recovery(line.payload):
                yield _whole(path, line, CallRecord)


def read_results(folder: Path) -> Iterator[TrialResult]:
    """Every result of a run so far, in plan order."""
    path = folder / RESULTS
    if path.exists():
        for line in hash_chain.ChainReader(path, hash_chain.GENESIS):
            yield _whole(path, line, TrialResult)


def _whole(path: Path, line: hash_chain.ChainedLine, kind: type[R]) -> R:
    try:
        return kind.model_validate_json(line.payload)
    except ValidationError as error:
        raise IntegrityError(
            f"{path}, line {line.number}: not a {kind.__name__} ({error.error_count()} fields do not fit)."
        ) from None


def trial_id(payload: bytes) -> str:
    return _decode_trial(payload).trial_id


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


class Results:
    """results.jsonl, written in plan order. What it already contains must be what would be written again."""

    def __init__(self, path: Path, plan_order: list[str], failpoints: Failpoints) -> None:
        self._path = path
        self._failpoints = failpoints
        self._fd = _open_for_append(path)
        reader = hash_chain.ChainReader(path, hash_chain.GENESIS)
        for line, expected in zip(reader, [*plan_order, None], strict=False):
            if expected is None or trial_id(line.payload) != expected:
                raise IntegrityError(f"{path}, line {line.number}: not what was written. Its trial is out of order.")
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
                f"{self._path}, line {self.count + 1}: not what was written. Its incomplete start differs from the "
                f"recomputed result of {trial_id(payload)}."
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
            raise storage_error(self._path, error) from None

    def sync(self) -> None:
        try:
            self._failpoints.hit("results.fsync")
            os.fsync(self._fd)
        except OSError as error:
            raise storage_error(self._path, error) from None

    def close(self) -> None:
        os.close(self._fd)


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_seal(folder: Path, journal: Journal, results: Results, failpoints: Failpoints) -> Seal:
    results.sync()
    seal = Seal(
        results_head=results.head,
        journal_head=journal.head,
        trials=results.count,
        calls=journal.calls,
        files={name: file_sha256(folder / name) for name in (MANIFEST, JOURNAL, RESULTS)},
    )
    write_once(folder / SEAL, encode_record(seal) + b"\n", failpoints, "seal")
    return seal
