"""A run that is carried out in shards: `RUN/shards/I-of-K/`, each a run folder with a part of the trials.

The parent makes them all at once, from whatever the run's journal already has, and workers carry them out. When all are
complete, they are merged into RUN and removed. Each step ends with one rename, so a process that is killed in between
leaves either nothing or a finished step, and `resume` continues:

    RUN/calls.jsonl   what belongs to no trial: notes and probes (and calls made before the run was divided)
    RUN/shards/       the shards, all of them
    RUN/merged/       the merged files, complete; only left to be moved into RUN
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from .. import storage
from ..planning.trials import shard_of, trials
from ..schemas import CallHead, Manifest, Shard
from ..store import hash_chain
from ..store.failpoints import Failpoints
from ..store.hash_chain import ChainWriter
from ..store.run_files import call_id
from .merge import complete_shards, write_merged

SHARDS, MERGED = "shards", "merged"
_NEW_SHARDS, _NEW_MERGED = ".shards", ".merged"


def is_divided(folder: Path) -> bool:
    """Whether a run is being carried out in shards."""
    return (folder / SHARDS).is_dir()


def parent_of(folder: Path) -> Path | None:
    """The run that a shard is carried out for, if it is inside one."""
    inside = folder.resolve().parent
    run = inside.parent
    return run if inside.name == SHARDS and (run / storage.MANIFEST).is_file() else None


def shard_folders(folder: Path) -> list[Path]:
    """The shards of a divided run, in order."""
    return sorted((folder / SHARDS).iterdir(), key=lambda path: int(path.name.partition("-")[0]))


def shard_manifest(manifest: Manifest, shard: Shard) -> Manifest:
    return manifest.model_copy(update={"shard": shard, "run_id": f"{manifest.run_id}.{shard.name}"})


def divide(folder: Path, manifest: Manifest, of: int) -> None:
    """Make the shard folders of a run. Calls that the run already has go into the journals of their shards."""
    failpoints = Failpoints.from_environment()
    new = folder / _NEW_SHARDS
    try:
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        shards = [Shard(index=index, of=of) for index in range(1, of + 1)]
        for shard in shards:
            (new / shard.name).mkdir()
            data = storage.encode_record(shard_manifest(manifest, shard)) + b"\n"
            storage.write_once(new / shard.name / storage.MANIFEST, data, failpoints, "shard_manifest")
        _divide_journal(folder, manifest, shards, new)
        failpoints.hit("shards.before_rename")
        new.rename(folder / SHARDS)
        storage.sync_folder(folder)
        failpoints.hit("shards.after_rename")
    except OSError as error:
        raise storage.storage_error(folder, error, resume=f"{storage.RESUME} {folder}") from None


def _divide_journal(folder: Path, manifest: Manifest, shards: list[Shard], new: Path) -> None:
    path = folder / storage.JOURNAL
    if not path.exists():
        return
    shard_of = _shard_by_name(manifest, shards[0].of)
    with ExitStack() as files:
        writers: dict[int, ChainWriter] = {}
        for line in hash_chain.ChainReader(path, storage.manifest_sha256(folder)):
            index = shard_of.get(_trial_of(line.payload))
            if index is None:
                continue
            if index not in writers:
                place = new / shards[index - 1].name
                writer = ChainWriter(place / storage.JOURNAL, storage.manifest_sha256(place))
                writers[index] = files.enter_context(writer)
            writers[index].add(line.payload)


def _shard_by_name(manifest: Manifest, of: int) -> dict[str, int]:
    """Trials, and the question sets that they share, to the number of their shard."""
    divided = shard_manifest(manifest, Shard(index=1, of=of))
    found: dict[str, int] = {}
    for trial in trials(manifest.plan):
        found[trial.trial_id] = found[trial.questions_id] = shard_of(divided, trial)
    return found


def _trial_of(payload: bytes) -> str:
    """The trial or question set that a line of the journal is about; empty for notes."""
    return call_id(payload).partition("|")[0] if hash_chain.is_call(payload) else ""


def run_lines(folder: Path, manifest: Manifest) -> Iterator[bytes]:
    """The lines of a divided run's own journal that belong to no trial: notes and probes."""
    path = folder / storage.JOURNAL
    if not path.exists():
        return
    trial_names = _shard_by_name(manifest, 1)
    for line in hash_chain.ChainReader(path, storage.manifest_sha256(folder)):
        if not hash_chain.is_recovery(line.payload) and _trial_of(line.payload) not in trial_names:
            yield line.payload


def call_heads(folder: Path, manifest: Manifest) -> Iterator[CallHead]:
    """Every attempt of a run, divided or not, with only the fields needed for counting."""
    if not is_divided(folder):
        yield from storage.call_heads(folder)
        return
    for payload in run_lines(folder, manifest):
        if hash_chain.is_call(payload):
            yield CallHead.model_validate_json(payload)
    for shard in shard_folders(folder):
        yield from storage.call_heads(shard)


def results_in(shard: Path) -> int:
    """Trials of a shard that are done."""
    path = shard / storage.RESULTS
    if not path.exists():
        return 0
    with path.open("rb") as file:
        return sum(line.endswith(b"\n") for line in file)


def remove_shards(folder: Path) -> None:
    """Remove what a sealed run no longer needs: all of it is in the run's own files."""
    for name in (_NEW_SHARDS, _NEW_MERGED, MERGED, SHARDS):
        shutil.rmtree(folder / name, ignore_errors=True)


def merge_into_run(folder: Path, manifest: Manifest) -> None:
    """Put the complete shards of a run into it, seal it, and remove them. Continues where an earlier try ended."""
    failpoints = Failpoints.from_environment()
    new, merged = folder / _NEW_MERGED, folder / MERGED
    try:
        if not merged.exists() and storage.read_seal_record(folder, manifest) is None:
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir()
            shards = complete_shards(shard_folders(folder))
            lines = run_lines(folder, manifest)
            write_merged(shards, lines, new, storage.manifest_sha256(folder), failpoints)
            failpoints.hit("merge.before_rename")
            new.rename(merged)
            storage.sync_folder(folder)
            failpoints.hit("merge.after_rename")
        for name, what in ((storage.JOURNAL, "journal"), (storage.RESULTS, "results"), (storage.SEAL, "seal")):
            if (merged / name).exists():
                (merged / name).replace(folder / name)
                storage.sync_folder(folder)
            failpoints.hit(f"merge.after_{what}_move")
        remove_shards(folder)
    except OSError as error:
        raise storage.storage_error(folder, error, resume=f"{storage.RESUME} {folder}") from None
