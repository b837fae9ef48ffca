"""A run carried out in shards by an engine, from wherever it is to its seal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from .. import orchestrator, storage
from ..calls.stop import Stop
from ..planning.limits import trials_at_once
from ..records.study import ExecutionOptions
from ..runner import shards
from ..runner.adapter_pool import AdapterPool
from ..runner.call_resources import call_resources
from ..runner.progress import ProgressCounter
from ..schemas import CallRecord, Manifest, RunLimits
from .host import State
from .job import Job, divided, shard_count
from .processes import LocalEngine


@dataclass(frozen=True, kw_only=True)
class ShardedRun:
    """A run and what it needs to be carried out in shards."""

    folder: Path
    manifest: Manifest
    options: ExecutionOptions
    limits: RunLimits
    noted: RunLimits | None
    """Limits that are to be noted in the journal, because they replace earlier ones."""
    earlier: Path | None
    stop: Stop
    counter: ProgressCounter


async def carry_out(run: ShardedRun) -> None:
    """Divide the run, unless it is; carry out its shards; merge and seal."""
    with storage.RunLock(run.folder):
        if run.options.engine == "ray":
            from .ray_engine import ray_engine

            with ray_engine(run.options.ray_address, run.options.processes) as engine:
                await _carry_out(run, engine)
        else:
            await _carry_out(run, LocalEngine(run.options.processes or 1))


class Engine(Protocol):
    """What carries out shards."""

    processes: int
    """At the same time, at most."""
    always_shared: bool
    """Whether limits are always counted in one place."""

    async def run(self, job: Job, unfinished: Sequence[int], stop: Stop, on_state: Callable[[State], None]) -> State:
        """Carry out these shards, or as many as are done when the run stops."""
        ...


async def _carry_out(run: ShardedRun, engine: Engine) -> None:
    folder, manifest = run.folder, run.manifest
    if not shards.is_divided(folder):
        shards.divide(folder, manifest, shard_count(manifest, engine.processes))
    folders = shards.shard_folders(folder)
    done = {number: shards.results_in(shard) for number, shard in enumerate(folders, 1)}
    run.counter.on_start(manifest.trial_count, sum(done.values()))
    unfinished = [number for number, shard in enumerate(folders, 1) if not (shard / storage.SEAL).exists()]
    if unfinished:
        probes = await _begin(run)

        def on_state(state: State) -> None:
            totals = state.totals
            trials_done = sum({**done, **totals.done}.values())
            run.counter.on_totals(probes + totals.calls, totals.calls_not_ok, trials_done, totals.notice)

        job = _job(run, len(folders), min(engine.processes, len(unfinished)), shared=engine.always_shared)
        state = await engine.run(job, unfinished, run.stop, on_state)
        on_state(state)
        state.check()
    await asyncio.to_thread(shards.merge_into_run, folder, manifest)


async def _begin(run: ShardedRun) -> int:
    """Note limits and probe models in the run's own journal; the number of calls that were made."""
    calls = 0

    def on_call(record: CallRecord) -> None:
        nonlocal calls
        calls += 1
        run.counter.on_call(record)

    pool = AdapterPool()
    resources = call_resources(
        run.folder, run.manifest, run.limits, run.options, pool=pool, stop=run.stop, counter=run.counter
    )
    try:
        await orchestrator.begin(
            run.folder, run.manifest, resources, on_call, limits=run.noted, probe=not run.options.no_probe
        )
    finally:
        await pool.aclose()
    return calls


def _job(run: ShardedRun, of: int, workers: int, *, shared: bool) -> Job:
    trials = trials_at_once(run.options, run.limits)
    parts = divided(run.limits, workers)
    return Job(
        run=str(run.folder.resolve()),
        of=of,
        earlier=str(run.earlier.resolve()) if run.earlier else None,
        trials=-(-trials // workers),
        limits=parts.limits,
        shared_limits=shared or parts.shared,
        shared_budget=run.limits.max_cost is not None,
        all_limits=run.limits,
        all_trials=trials,
    )
