"""A run on a Ray cluster: every shard is a task, and one actor hosts what the tasks share.

Ray retries the task of a worker that died. The shard's journal is continued, so no recorded call is made again. Keys
are read from the environment of the nodes; they never travel through Ray. The run folder must be on a path that all
nodes see, with locks that work (docs/machines.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..calls.stop import Stop
from ..errors import ConfigError, IncompleteRun
from .host import Job, State, make_host
from .shard_worker import ShardWorker

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
    asyncio.run(_carry_out_shard(Job.model_validate_json(job), index, host))


async def _carry_out_shard(job: Job, index: int, host: Any) -> None:
    session, stop = uuid.uuid4().hex, Stop()
    await host.join.remote(session, index)
    await ShardWorker(job, ActorConnection(host, session, stop), stop).carry_out_one(index)
