"""Whether a run is what was written, whether its results can be computed again, and joining shards. Calls no model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from .. import audit
from ..audit import Replayed, Verified
from ..errors import InputError
from ..store.run_folder import PathLike, as_path

if TYPE_CHECKING:
    from ..runner.merge import Merged

WORTH_PROCESSES = 100
"""Results that are computed again in several processes; fewer are done before the processes are started."""


def verify(path: PathLike, expect: str | None = None) -> Verified:
    """Check that a run folder is exactly what was written: chains, seal, schemas, every quote and evidence id.

    Args:
        path: the run folder.
        expect: the results hash that was kept elsewhere.

    Returns:
        Counts, the results hash, and whether the run is sealed.

    Raises:
        IntegrityError: names the first file and line that is wrong.

    Example:
        >>> import medicare_eval as me
        >>> run = me.run(scenarios=["scenarios/v1/scenario_001.json"], targets=["fake:careful"])
        >>> me.verify(run.path).sealed
        True
    """
    return audit.verify(as_path(path), expect)


def replay(path: PathLike) -> Replayed:
    """Compute a run's results again from its manifest and journal, without any adapter, and compare bytes.

    Args:
        path: the run folder.

    Returns:
        How many results were computed again, of how many planned, and their hash.

    Raises:
        InputError: the run has another format; the message names the release to install.
        IncompleteRun: the run has no results yet.
        IntegrityError: a result is not what its journal gives.

    Example:
        >>> import medicare_eval as me
        >>> run = me.run(scenarios=["scenarios/v1/scenario_001.json"], targets=["fake:careful"])
        >>> me.replay(run.path).trials
        1
    """
    from .. import orchestrator, storage
    from ..findings.processes import process_count, results_of
    from ..planning.trials import trials_of
    from ..runner.wait import wait  # `verify` needs none of these

    folder = as_path(path)
    manifest = storage.read_manifest(folder)
    storage.require_current(folder, manifest, "replay")
    stored = audit.stored_lines(folder, manifest)
    planned = trials_of(manifest)
    recorded = storage.RecordedCalls(folder / storage.JOURNAL, storage.manifest_sha256(folder), lambda trial: True)

    def recompute(piece: audit.StoredPiece) -> None:
        todo = planned[piece.trials.start : piece.trials.stop]
        try:
            with audit.ResultComparer(piece) as compare:
                wait(lambda stop: orchestrator.recompute(manifest, recorded, todo, compare))
        finally:
            recorded.close()

    # Each process does one piece. The pieces are in order, so the first line that differs is the one that is named.
    pieces = stored.pieces(process_count() if len(stored.places) >= WORTH_PROCESSES else 1)
    results_of([partial(recompute, piece) for piece in pieces])
    return Replayed(manifest.run_id, len(stored.places), len(planned), stored.head)


def merge(shards: Sequence[PathLike], *, to: PathLike) -> Merged:
    """Join all shards of a study into one run, as if one process had carried it out.

    Args:
        shards: the run folders that `run(shard="I/K")` wrote, in any order. They are read and left as they are.
        to: the run folder to write; an existing folder is never used.

    Returns:
        The new run, counts, and the results hash.

    Raises:
        InputError: a shard is missing, is given twice, or belongs to another study.
        IncompleteRun: a shard is not complete; the message says how to resume it.
        IntegrityError: a shard is not what was written.
        StorageError: the folder exists already, or the disk refused.

    Example:
        >>> import medicare_eval as me
        >>> study = {"scenarios": ["scenarios/v1/scenario_001.json"], "targets": ["fake:careful"], "repeats": 2}
        >>> shards = [me.run(study, shard=f"{number}/2") for number in (1, 2)]
        >>> me.verify(me.merge(shards, to="runs/merged").run).trials
        2
    """
    from ..runner import merge as runner_merge

    folders = [as_path(shard) for shard in shards]
    if not folders:
        raise InputError("Give the folders of all shards.")
    runner_merge.complete_shards(folders)
    for folder in folders:
        audit.verify(folder)
    return runner_merge.merge(folders, as_path(to))
