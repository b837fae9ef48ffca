"""A run carried out in shards by an engine, from wherever it is to its seal."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
import sys
import uuid
from asyncio.subprocess import Process
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import orchestrator, storage
from ..calls.stop import Stop
from ..errors import ConfigError, IncompleteRun
from ..planning.limits import trials_at_once
from ..records.study import ExecutionOptions
from ..runner import shards
from ..runner.call_resources import AdapterPool, call_resources
from ..runner.progress import ProgressCounter
from ..schemas import CallRecord, Manifest, RunLimits
from .host import Host, Job, State, divided, make_host, shard_count
from .shard_worker import ShardWorker


@dataclass(frozen=True, kw_only=True)
class Execution:
    """A run and what it needs to be carried out."""

    folder: Path
    manifest: Manifest
    options: ExecutionOptions
    limits: RunLimits
    noted: RunLimits | None
    """Limits that are to be noted in the journal, because they replace earlier ones."""
    earlier: Path | None
    """The run whose transcripts are judged again, if any."""
    stop: Stop
    counter: ProgressCounter


async def carry_out(run: Execution) -> None:
    """Divide the run, unless it is; carry out its shards; merge and seal."""
    with storage.RunLock(run.folder):
        if run.options.engine == "ray":
            with ray_engine(run.options.ray_address, run.options.processes) as engine:
                await _carry_out(run, engine)
        else:
            await _carry_out(run, LocalEngine(run.options.processes or 1))


async def _carry_out(run: Execution, engine: LocalEngine | RayEngine) -> None:
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
            trials_done = sum({**done, **state.done}.values())
            run.counter.on_totals(probes + state.calls, state.calls_not_ok, trials_done, state.notice)

        job = _job(run, len(folders), min(engine.processes, len(unfinished)), shared=engine.always_shared)
        state = await engine.run(job, unfinished, run.stop, on_state)
        on_state(state)
        state.check()
    await asyncio.to_thread(shards.merge_into_run, folder, manifest)


async def _begin(run: Execution) -> int:
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


def _job(run: Execution, of: int, workers: int, *, shared: bool) -> Job:
    trials = trials_at_once(run.options, run.limits)
    limits, no_division = divided(run.limits, workers)
    return Job(
        run=str(run.folder.resolve()),
        of=of,
        earlier=str(run.earlier.resolve()) if run.earlier else None,
        trials=-(-trials // workers),
        limits=limits,
        shared_limits=shared or no_division,
        shared_budget=run.limits.max_cost is not None,
        all_limits=run.limits,
        all_trials=trials,
    )


# A run in several processes of this machine.
#
# The parent hosts what they share and starts fresh interpreters, connected by a socket each. A worker that dies is
# noticed by the end of its connection; another one continues its shards from their journals.

MAX_RESTARTS = 3
"""Of one worker. More than that is not bad luck."""
WAITING = frozenset({"enter", "reserve"})
"""Requests whose answer may take long, so that others must not wait for it."""
PACKAGE = __package__ or ""


class LocalEngine:
    """Worker processes on this machine."""

    always_shared = False
    """Whether limits are always counted in one place."""

    def __init__(self, processes: int) -> None:
        self.processes = processes

    async def run(self, job: Job, unfinished: Sequence[int], stop: Stop, on_state: Callable[[State], None]) -> State:
        """Carry out these shards, or as many as are done when the run stops."""
        host = make_host(job, unfinished)
        host.on_change = lambda: on_state(host.state)
        stop.listen(lambda: host.stop(stop.reason))
        if stop.event.is_set():
            host.stop(stop.reason)
        workers = min(self.processes, len(unfinished))
        await asyncio.gather(*(_keep_working(host, job, lane) for lane in range(workers)))
        return host.state


async def _keep_working(host: Host, job: Job, lane: int) -> None:
    """Start a worker, and another one in its place if it dies."""
    for start in range(MAX_RESTARTS + 1):
        session = f"{lane}.{start}"
        code = await _one_worker(host, job, session)
        lost = await host.forget(session)
        if not code and not lost:
            return
        if host.state.stop_reason is not None:
            return
    host.stop(f"A worker process ended {MAX_RESTARTS + 1} times before its work was done (exit code {code}).")


async def _one_worker(host: Host, job: Job, session: str) -> int:
    """A worker process from its start to its end; its exit code."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = await _start(theirs)
    reader, writer = await asyncio.open_connection(sock=ours)
    try:
        writer.write(job.model_dump_json().encode() + b"\n")
        await _serve(host, session, reader, writer)
        return await process.wait()
    finally:
        writer.close()


async def _start(connection: socket.socket) -> Process:
    """A fresh interpreter. A session of its own: Ctrl-C is for the parent, which tells its workers to stop."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        f"{PACKAGE}.shard_worker",
        str(connection.fileno()),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        pass_fds=(connection.fileno(),),
        start_new_session=True,
        env=_environment(),
    )


def _environment() -> dict[str, str]:
    """This process's own. In a checkout the package is not installed under its name, so its folder is added."""
    environment = dict(os.environ)
    if PACKAGE.startswith("src."):
        root = str(Path(__file__).resolve().parents[2])
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [root, environment.get("PYTHONPATH")]))
    return environment


async def _serve(host: Host, session: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer a worker's requests until it ends."""
    waiting: set[asyncio.Task[None]] = set()

    async def answer(number: int, name: str, arguments: list[object]) -> None:
        answered = await host.ask(session, name, arguments)
        if number:
            writer.write(json.dumps([number, *answered]).encode() + b"\n")

    try:
        with contextlib.suppress(ConnectionError):
            while (line := await reader.readline()).endswith(b"\n"):
                number, name, arguments = json.loads(line)
                if name in WAITING:
                    task = asyncio.create_task(answer(number, name, arguments))
                    waiting.add(task)
                    task.add_done_callback(waiting.discard)
                else:
                    await answer(number, name, arguments)
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


# A run on a Ray cluster: every shard is a task, and one actor hosts what the tasks share.
#
# Ray retries the task of a worker that died. The shard's journal is continued, so no recorded call is made again. Keys
# are read from the environment of the nodes; they never travel through Ray. The run folder must be on a path that all
# nodes see, with locks that work (docs/machines.md).

MAX_RETRIES = 3
"""Of one shard, by Ray, if its worker dies."""
REQUESTS = 10_000
"""That the actor may have open: calls that wait for their turn."""
STATE_S = 0.3
"""Between two looks at what the tasks have done."""
NO_USAGE_STATS = {"RAY_USAGE_STATS_ENABLED": "0"}
"""For a cluster that this process starts: it must not report to anyone. Other clusters decide for themselves."""


@contextlib.contextmanager
def ray_engine(address: str | None, processes: int | None) -> Iterator[RayEngine]:
    """Connect to a cluster, or start one on this machine. It is left when the block ends."""
    import ray

    connected = ray.is_initialized()
    if not connected:
        _connect(ray, address or os.environ.get("RAY_ADDRESS"), processes)
    try:
        cpus = int(ray.cluster_resources().get("CPU", 1))
        yield RayEngine(ray, processes or max(1, cpus))
    finally:
        if not connected:
            ray.shutdown()


def _connect(ray: Any, address: str | None, processes: int | None) -> None:
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        os.environ.update(NO_USAGE_STATS)
        ray.init("local", num_cpus=processes, include_dashboard=False, **quiet)
        return
    try:
        ray.init(address, **quiet)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        why = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise ConfigError(f"no Ray cluster answers at {address} ({why}).", field="ray_address") from None


class RayEngine:
    """Tasks of a Ray cluster."""

    always_shared = True

    def __init__(self, ray: Any, processes: int) -> None:
        self._ray = ray
        self.processes = processes

    async def run(self, job: Job, unfinished: Sequence[int], stop: Stop, on_state: Callable[[State], None]) -> State:
        ray, told = self._ray, job.model_dump_json()
        host = ray.remote(num_cpus=0, max_concurrency=REQUESTS)(HostActor).remote(told, list(unfinished))
        task = ray.remote(num_cpus=1, max_retries=MAX_RETRIES, scheduling_strategy="SPREAD")(carry_out_shard)
        free = asyncio.Semaphore(self.processes)
        stop.listen(lambda: host.stop.remote(stop.reason))
        if stop.event.is_set():
            await host.stop.remote(stop.reason)

        async def one(index: int) -> None:
            async with free:
                if not stop.event.is_set():
                    await task.remote(told, index, host)

        watching = asyncio.create_task(_watch(host, stop, on_state))
        try:
            async with asyncio.TaskGroup() as shards:
                for index in unfinished:
                    shards.create_task(one(index))
            return await _state(host)
        except* ray.exceptions.RayError as errors:
            first = errors.exceptions[0]
            raise IncompleteRun(f"A task of the Ray cluster was lost ({type(first).__name__}).") from None
        finally:
            watching.cancel()
            ray.kill(host)


async def _state(host: Any) -> State:
    state: State = await host.state.remote()
    return state


async def _watch(host: Any, stop: Stop, on_state: Callable[[State], None]) -> None:
    """Report what tasks have done, and stop if one of them says so."""
    while True:
        await asyncio.sleep(STATE_S)
        state = await _state(host)
        on_state(state)
        if state.stop_reason is not None and not stop.event.is_set():
            stop.ask(state.stop_reason)


class HostActor:
    """The host of a run, as a Ray actor."""

    def __init__(self, job: str, unfinished: list[int]) -> None:
        self._host = make_host(Job.model_validate_json(job), unfinished)

    async def ask(self, session: str, name: str, arguments: list[Any]) -> tuple[Any, str | None]:
        return await self._host.ask(session, name, arguments)

    async def join(self, session: str, index: int) -> None:
        """A task starts with a shard. If an earlier one had it and died, what that one held is taken back."""
        await self._host.take_over(session, index)

    async def stop(self, reason: str) -> None:
        self._host.stop(reason)

    async def state(self) -> State:
        return self._host.state


class ActorConnection:
    """Sends a task's requests to the actor."""

    def __init__(self, host: Any, session: str, stop: Stop) -> None:
        self._host = host
        self._session = session
        self._stop = stop

    async def ask(self, name: str, *arguments: Any) -> Any:
        import ray

        try:
            value, stop = await self._host.ask.remote(self._session, name, list(arguments))
        except ray.exceptions.RayError:
            self._stop.ask("The process that holds the limits of this run has ended.")
            return None
        if stop is not None and not self._stop.event.is_set():
            self._stop.ask(stop)
        return value

    def tell(self, name: str, *arguments: Any) -> None:
        self._host.ask.remote(self._session, name, list(arguments))


def carry_out_shard(job: str, index: int, host: Any) -> None:
    """The task: one shard from wherever it is to its end."""
    asyncio.run(_carry_out_task(Job.model_validate_json(job), index, host))


async def _carry_out_task(job: Job, index: int, host: Any) -> None:
    session, stop = uuid.uuid4().hex, Stop()
    await host.join.remote(session, index)
    await ShardWorker(job, ActorConnection(host, session, stop), stop).carry_out_one(index)
