"""Shards put together: the run that one process would have written.

Results go into plan order, which makes results.jsonl identical to that of a single run, byte for byte. Journals follow
each other by shard and are chained again, from the hash of the merged manifest. Every call and every note is kept as it
was written. Records of torn lines are counted and dropped: the lines that they name are not copied either.

Files are streamed. Every line's place in its chain is checked on the way, and each chain must end as its seal says.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from .. import storage
from ..errors import IncompleteRun, InputError, IntegrityError, StorageError
from ..planning.trials import shard_of, trials
from ..schemas import Manifest, RecoveryRecord, Seal
from ..store import hash_chain
from ..store.failpoints import Failpoints
from ..store.hash_chain import ChainWriter

SAME = (
    "format", "plan_sha256", "plan", "versions", "prices", "prices_as_of", "transcripts", "registration", "plugins",
)  # fmt: skip
"""Fields of the manifest that all shards of a study share. The others cannot change a result."""
RESULTS_BUFFER = 1 << 16
"""Bytes read at once from each results file; all of them are open at the same time."""


@dataclass(frozen=True)
class ShardFolder:
    """A complete shard."""

    path: Path
    manifest: Manifest
    seal: Seal


@dataclass(frozen=True)
class Merged:
    run: Path
    shards: int
    trials: int
    calls: int
    torn_lines: int
    """Lines that crashes left incomplete in the shards' journals. They are not in the merged journal."""
    head: str
    """The results hash."""


def merge(folders: Sequence[Path], to: Path) -> Merged:
    """Merge all shards of a study into a new run folder. It appears complete, or not at all."""
    shards = complete_shards(folders)
    _check_free(to)
    first = shards[0].manifest
    manifest = first.model_copy(
        update={"shard": None, "run_id": to.name, "created": min(shard.manifest.created for shard in shards)}
    )
    failpoints = Failpoints.from_environment()
    beside = to.parent / f".{to.name}.merging"
    storage.require_folder(to.parent)
    try:
        beside.mkdir(parents=True, exist_ok=True)
        with storage.RunLock(beside):
            empty(beside)  # what a merge that was killed left
            storage.write_once(
                beside / storage.MANIFEST, storage.encode_record(manifest) + b"\n", failpoints, "manifest"
            )
            seal, torn_lines = write_merged(shards, (), beside, storage.manifest_sha256(beside), failpoints)
            _check_free(to)
            failpoints.hit("merge.before_rename")
            beside.rename(to)
            storage.sync_folder(to.parent)
    except OSError as error:
        raise storage.storage_error(to, error) from None
    return Merged(to, len(shards), seal.trials, seal.calls, torn_lines, seal.results_head)


def _check_free(to: Path) -> None:
    if to.exists():
        raise StorageError(f"{to} already exists and will not be overwritten. Give a new folder.")


def complete_shards(folders: Sequence[Path]) -> list[ShardFolder]:
    """The shards of one study in order, all of them there once and complete; an error says what is missing."""
    read = [(folder, storage.read_manifest(folder)) for folder in folders]
    by_index: dict[int, tuple[Path, Manifest]] = {}
    for folder, manifest in read:
        _check_same_study(folder, manifest, *read[0])
        assert manifest.shard is not None
        shard = manifest.shard
        if shard.index in by_index:
            raise InputError(
                f"{by_index[shard.index][0]} and {folder} are both shard {shard.index} of {shard.of}. "
                "Give each shard once."
            )
        by_index[shard.index] = folder, manifest
    of = read[0][1].shard.of if read[0][1].shard else 1
    if missing := [str(index) for index in range(1, of + 1) if index not in by_index]:
        raise InputError(f"Shard {', '.join(missing)} of {of} is missing. Give all {of} shards of the study.")
    in_order = (by_index[index] for index in range(1, of + 1))
    return [ShardFolder(folder, manifest, complete_seal(folder, manifest)) for folder, manifest in in_order]


def _check_same_study(folder: Path, manifest: Manifest, first_folder: Path, first: Manifest) -> None:
    if manifest.shard is None:
        raise InputError(f"{folder} is a whole run, not a shard. Give folders that `run --shard I/K` wrote.")
    differing = [name for name in SAME if getattr(manifest, name) != getattr(first, name)]
    if differing:
        raise InputError(
            f"{folder} and {first_folder} are not shards of the same study: their manifests differ in "
            f"{', '.join(name for name in differing if name != 'plan' or len(differing) == 1)}."
        )
    assert first.shard is not None
    if manifest.shard.of != first.shard.of:
        raise InputError(
            f"{folder} is one of {manifest.shard.of} shards, and {first_folder} is one of {first.shard.of}. "
            "Give shards of the same division."
        )


def complete_seal(folder: Path, manifest: Manifest) -> Seal:
    """The seal of a run or shard; an error says how to complete it if it has none."""
    seal = storage.read_seal(folder, manifest)
    if seal is None:
        raise IncompleteRun(f"{folder} is not complete. First run: medicare-eval resume {folder}")
    return seal


class _Journals:
    """The lines of all journals, one shard after the other; counted on the way."""

    def __init__(self, first_lines: Iterable[bytes], shards: Sequence[ShardFolder]) -> None:
        self._first_lines = first_lines
        self._shards = shards
        self.calls = 0
        self.torn_lines = 0

    def __iter__(self) -> Iterator[bytes]:
        for payload in chain(self._first_lines, *map(self._of, self._shards)):
            self.calls += hash_chain.is_call(payload)
            yield payload

    def _of(self, shard: ShardFolder) -> Iterator[bytes]:
        path = shard.path / storage.JOURNAL
        reader = hash_chain.ChainReader(path, shard.seal.files[storage.MANIFEST])
        for line in reader:
            if hash_chain.is_recovery(line.payload):
                self.torn_lines += len(storage.parsed(path, line, RecoveryRecord).recovered)
            else:
                yield line.payload
        if reader.head != shard.seal.journal_head:
            raise storage.differs_from_seal(path)


def write_merged(
    shards: Sequence[ShardFolder], first_lines: Iterable[bytes], to: Path, manifest_sha256: str, failpoints: Failpoints
) -> tuple[Seal, int]:
    """Write journal, results and seal of a merged run, and return the seal and the number of torn lines.

    `first_lines` come before the shards' in the journal.
    """
    journals = _Journals(first_lines, shards)
    with ChainWriter(to / storage.JOURNAL, manifest_sha256) as journal:
        for payload in journals:
            journal.add(payload)
    failpoints.hit("merge.after_journal")
    with ChainWriter(to / storage.RESULTS, hash_chain.GENESIS) as results:
        for payload in _results(shards):
            results.add(payload)
    seal = Seal(
        results_head=results.head,
        journal_head=journal.head,
        trials=results.count,
        calls=journals.calls,
        files=dict(zip(storage.SEALED, (manifest_sha256, journal.sha256, results.sha256), strict=True)),
    )
    storage.write_once(to / storage.SEAL, storage.encode_record(seal) + b"\n", failpoints, "seal")
    return seal, journals.torn_lines


def _results(shards: Sequence[ShardFolder]) -> Iterator[bytes]:
    """The results of all shards in plan order."""
    manifest = shards[0].manifest
    readers = [
        hash_chain.ChainReader(shard.path / storage.RESULTS, hash_chain.GENESIS, buffer=RESULTS_BUFFER)
        for shard in shards
    ]
    with ExitStack() as open_files:
        lines = [open_files.enter_context(closing(reader.lines())) for reader in readers]
        for trial in trials(manifest.plan):
            at = shard_of(manifest, trial) - 1
            line = next(lines[at], None)
            if line is None or storage.trial_id(line.payload) != trial.trial_id:
                raise IntegrityError(f"{readers[at].path} has no result of trial {trial.trial_id} at its place.")
            yield line.payload
        for shard, reader, rest in zip(shards, readers, lines, strict=True):
            if next(rest, None) is not None or reader.head != shard.seal.results_head:
                raise storage.differs_from_seal(reader.path)


def empty(folder: Path) -> None:
    """Remove what is in a folder, but not the folder."""
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
