"""Checking a run: is it what was written, and can its results be computed again?"""

from __future__ import annotations

from .. import audit, orchestrator, storage
from ..audit import Replayed, Verified
from ..planning.trials import trials as planned_trials
from ..reading import PathLike, as_path
from ..runner.wait import wait


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
    folder = as_path(path)
    manifest = storage.read_manifest(folder)
    storage.require_current(folder, manifest, "replay")
    with audit.ResultComparer(folder, manifest) as compared:
        wait(lambda stop: orchestrator.recompute(folder, manifest, compared, compared.stored))
        return Replayed(manifest.run_id, compared.count, len(planned_trials(manifest.plan)), compared.head)
