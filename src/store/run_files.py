"""The files of a run folder, read back. `storage` describes the folder and writes it.

A folder with a seal is a complete run, and a sealed run whose files are not the sealed ones is an error, not a shorter
run. Every reader calls `read_seal`, which is cheap: it hashes the manifest and compares the last chain value of each
chained file with the seal. `audit.verify` reads everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec
from pydantic import TypeAdapter, ValidationError

from ..errors import InputError, IntegrityError, StorageError
from ..records.base import Record
from ..records.result import TrialResult
from ..records.run import (
    FIRST_RELEASE,
    FORMAT,
    REPLAYABLE,
    BatchIntent,
    CallHead,
    CallRecord,
    JournalNote,
    Manifest,
    Seal,
)
from . import hash_chain, strict_json, structs
from .run_folder import JOURNAL, MANIFEST, RESULTS, SEAL, check_count, check_seal, differs_from_seal, manifest_sha256

R = TypeVar("R", bound=Record)
_NOTES: TypeAdapter[JournalNote] = TypeAdapter(JournalNote)


def encode_record(record: Record) -> bytes:
    return strict_json.encode(record.model_dump(mode="json"))


def read_record(path: Path, kind: type[R]) -> R:
    """Read a record that this project wrote. Its bytes must be exactly what was written."""
    try:
        found: tuple[R, bool] = _record_of(path.read_bytes(), kind)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StorageError(f"{path} cannot be read ({error.strerror}).") from None
    except ValidationError:
        raise IntegrityError(f"{path} is damaged: it is not a valid {kind.__name__.lower()}.") from None
    record, same = found
    if not same:
        raise IntegrityError(f"{path} was changed after it was written.")
    return record


@lru_cache(maxsize=16)
def _record_of(data: bytes, kind: type[R]) -> tuple[R, bool]:
    """The record in these bytes, and whether it is written so. One command reads a manifest many times."""
    record = kind.model_validate_json(data)
    try:
        return record, encode_record(record) + b"\n" == data
    except ValueError:  # a number without limit, which Pydantic reads and nothing here writes
        return record, False


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a run, of this format or an earlier one."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, not a run folder. Give the folder that contains {MANIFEST}.")
    try:
        _check_format(folder)
        return read_record(folder / MANIFEST, Manifest)
    except FileNotFoundError:
        what = f"has no {MANIFEST}, so it is not a run folder" if folder.is_dir() else "does not exist"
        raise InputError(f"{folder} {what}.") from None


def _check_format(folder: Path) -> None:
    """Refuse what a later release wrote. A manifest that cannot be read at all is reported by `read_record`."""
    path = folder / MANIFEST
    try:
        written = msgspec.json.decode(path.read_bytes(), type=Versioned).format
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
    """Refuse what only the release that wrote a run can do."""
    if manifest.format not in (REPLAYABLE if what == "replay" else (FORMAT,)):
        raise InputError(
            f"{folder} has format {manifest.format}, and this release cannot {what} it. Install "
            f"{FIRST_RELEASE[manifest.format]} for that; verify, report, compare, export and rejudge work here."
        )


def read_seal(folder: Path, manifest: Manifest) -> Seal | None:
    """The seal of a complete run, whose files are there and end as it says; None if the run is not complete."""
    seal = read_seal_record(folder, manifest)
    if seal is None:
        return None
    journal, results = folder / JOURNAL, folder / RESULTS
    hint = f"; `medicare-eval verify {folder}` names the first bad line"
    if hash_chain.last_value(results, hash_chain.GENESIS) != seal.results_head:
        with results.open("rb") as file:
            check_count(results, "trial", sum(line.endswith(b"\n") for line in file), seal.trials)
        raise differs_from_seal(results, hint)
    if hash_chain.last_value(journal, seal.files[MANIFEST]) != seal.journal_head:
        raise differs_from_seal(journal, hint)
    return seal


def read_seal_record(folder: Path, manifest: Manifest) -> Seal | None:
    """The seal, if it belongs to this manifest and no file is missing. Journal and results are not opened."""
    try:
        seal = read_record(folder / SEAL, Seal)
    except FileNotFoundError:
        return None
    check_seal(folder, seal, manifest.format, manifest.trial_count)
    return seal


class RecordedCalls:
    """A journal for reading: streamed once, its chain checked, the calls of the wanted trials indexed by id."""

    def __init__(self, path: Path, genesis: str, wanted: Callable[[str], bool]) -> None:
        self.path = path
        self.calls = 0
        self.notes: list[JournalNote] = []
        """What the journal says about the run as a whole, in order."""
        self.unanswered: set[str] = set()
        """Calls that were put into a batch and have no record."""
        self._index: dict[str, tuple[int, int]] = {}
        self.reader = hash_chain.ChainReader(path, genesis)
        for line in self.reader:
            if not hash_chain.is_call(line.payload):
                if hash_chain.is_note(line.payload):
                    self.notes.append(note := parsed_note(path, line))
                    if isinstance(note, BatchIntent):
                        self.unanswered.update(one.call for one in note.lines)
                continue
            self.calls += 1
            call = call_id(line.payload)
            self.unanswered.discard(call)
            if wanted(call.partition("|")[0]):
                self._index[call] = (line.offset, line.length)

    @cached_property
    def _file(self) -> BinaryIO:
        """Opened when first used: processes that share an open file also share its position."""
        return self.path.open("rb")

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
        if "_file" in self.__dict__:
            self._file.close()


class _Call(msgspec.Struct):
    call: str


class _Trial(msgspec.Struct):
    trial_id: str


class Versioned(msgspec.Struct):
    """What every file of a record says."""

    format: int = 1


_decode_call = msgspec.json.Decoder(_Call).decode
_decode_trial = msgspec.json.Decoder(_Trial).decode


def call_id(payload: bytes) -> str:
    """The call's name in a journal line, without building the whole record."""
    return _decode_call(payload).call


def trial_id(payload: bytes) -> str:
    return _decode_trial(payload).trial_id


def call_heads(folder: Path) -> Iterator[CallHead]:
    """Every attempt in a run's journal, with only the fields needed for counting."""
    path = folder / JOURNAL
    if not path.exists():
        return
    for line in hash_chain.ChainReader(path, manifest_sha256(folder)):
        if hash_chain.is_call(line.payload):
            yield CallHead.model_validate_json(line.payload)


def read_calls(folder: Path, manifest: Manifest) -> Iterator[CallRecord]:
    """Every attempt in a run's journal, whole."""
    read_seal(folder, manifest)
    path = folder / JOURNAL
    if path.exists():
        for line in hash_chain.ChainReader(path, manifest_sha256(folder)):
            if hash_chain.is_call(line.payload):
                yield parsed(path, line, CallRecord)


def earlier_folder(folder: Path, manifest: Manifest) -> Path:
    """Where the run is whose transcripts a re-judging run uses: beside it, or where it was. It may be gone."""
    assert manifest.transcripts is not None
    beside = folder.parent / manifest.transcripts.run_id
    return beside if beside.is_dir() and beside != folder else folder.parent / manifest.transcripts.folder


class StoredResults:
    """The results of a run, complete or not, one at a time in plan order."""

    def __init__(self, folder: Path, manifest: Manifest, *, fast: bool = False) -> None:
        """`fast` gives structs in place of records, with the same fields and values, checked in the same way."""
        self._path = folder / RESULTS
        self._fast = fast
        self.sealed = read_seal(folder, manifest) is not None
        self.head = hash_chain.GENESIS
        """The chain value of the last result that was read."""
        self.count = 0
        """Results read so far."""

    def __iter__(self) -> Iterator[TrialResult]:
        if not self._path.exists():
            return
        reader = hash_chain.ChainReader(self._path, hash_chain.GENESIS)
        for line in reader:
            result = structs.read_line("ResultLine", line.payload) if self._fast else None
            result = result or parsed(self._path, line, TrialResult)
            self.head, self.count = reader.head, reader.count
            yield result


def read_notes(folder: Path) -> Iterator[JournalNote]:
    """What a run's journal says about the run as a whole, in order."""
    path = folder / JOURNAL
    if path.exists():
        for line in hash_chain.ChainReader(path, manifest_sha256(folder)):
            if hash_chain.is_note(line.payload):
                yield parsed_note(path, line)


def parsed_note(path: Path, line: hash_chain.ChainedLine) -> JournalNote:
    try:
        return _NOTES.validate_json(line.payload)
    except ValidationError:
        raise IntegrityError(f"{path}, line {line.number}: this is not a note that this release knows.") from None


def parsed(path: Path, line: hash_chain.ChainedLine, kind: type[R]) -> R:
    """The record in a line of a chained file."""
    try:
        return kind.model_validate_json(line.payload)
    except ValidationError as error:
        field = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise IntegrityError(f"{path}, line {line.number}: field {field} does not fit a {kind.__name__}.") from None
