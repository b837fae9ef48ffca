"""Joining the shards of a study."""

from __future__ import annotations

from collections.abc import Sequence

from .. import audit
from ..errors import InputError
from ..runner import merge as runner_merge
from ..runner.merge import Merged
from ..store.run_folder import PathLike, as_path


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
    folders = [as_path(shard) for shard in shards]
    if not folders:
        raise InputError("Give the folders of all shards.")
    runner_merge.complete_shards(folders)
    for folder in folders:
        audit.verify(folder)
    return runner_merge.merge(folders, as_path(to))
