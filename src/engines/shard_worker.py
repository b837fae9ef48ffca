"""Carries out shards in one process, through the same code as a whole run."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import socket
import sys
import time
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from .. import orchestrator, storage
from ..adapters.base import ModelRequest
from ..calls.resources import CallResources
from ..calls.stop import Stop
from ..errors import HarnessError, IncompleteRun, StorageError
from ..runner.call_resources import AdapterPool, call_limits
from ..runner.schedule import TrialSlots
from ..schemas import CallHead, CallOutcome, CallRecord
from .host import Job

# A worker's end of what all workers share. `SharedLimits` and `SharedBudget` take the place of the run's own.


class Remote(Protocol):
    """The connection to the host."""

    async def ask(self, name: str, *arguments: Any) -> Any:
        """Send a request and wait for its answer. None if the host is gone."""
        ...

    def tell(self, name: str, *arguments: Any) -> None:
        """Send a request without waiting for an answer."""
        ...


class SharedSlot:
    """One call's place in a limiter of the host."""

    def __init__(self) -> None:
        self.report: list[Any] | None = None

    def answered(
        self, outcome: CallOutcome, *, status: int | None = None, retry_after_s: float | None = None, used: int | None
    ) -> None:
        """Kept until the place is given back, so that both need one message."""
        self.report = [outcome, status, retry_after_s, used]


class SharedLimiter:
    """Admits calls to one provider, as the host decides."""

    def __init__(self, remote: Remote, provider: str) -> None:
        self._remote = remote
        self._provider = provider

    @asynccontextmanager
    async def slot(self, tokens: float) -> AsyncIterator[SharedSlot]:
        place = await self._remote.ask("enter", self._provider, tokens)
        slot = SharedSlot()
        try:
            yield slot
        finally:
            self._remote.tell("leave", place, slot.report)


class SharedLimits:
    """The limiters of the run, by provider."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    def limiter(self, provider: str) -> SharedLimiter:
        return SharedLimiter(self._remote, provider)

    def open(self) -> None:
        """Nothing to do: the host admits all who wait when the run stops."""


class SharedBudget:
    """The money of the run."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    async def reserve(self, request: ModelRequest) -> float | None:
        sizes = [request.characters, request.max_tokens, request.most_searches]
        amount = await self._remote.ask("reserve", request.model, sizes)
        return None if amount is None else float(amount)

    def settle(self, reserved: float, record: CallRecord) -> None:
        head = CallHead.model_validate({name: getattr(record, name) for name in CallHead.model_fields})
        self._remote.tell("settle", reserved, head.model_dump_json())

    def open(self) -> None:
        """Nothing to do: the host answers all who wait when the run stops."""


REPORT_S = 0.2
"""Between two reports of progress. Each answer says whether the run stops."""
LOCK_S = 180.0
"""How long to wait for a shard that another process holds: a worker whose parent was killed finishes its calls."""


class ShardWorker:
    """Shards of one run in one event loop. They share adapters, limits and the number of trials at a time."""

    def __init__(self, job: Job, remote: Remote, stop: Stop) -> None:
        self._job = job
        self._remote = remote
        self._stop = stop
        self._pool = AdapterPool()
        self._free = asyncio.Semaphore(job.trials)
        self._limits = SharedLimits(remote) if job.shared_limits else call_limits(job.limits, job.trials)
        self._calls = self._not_ok = 0
        self._done: dict[int, int] = {}
        """Trials done, by shard."""
        stop.listen(lambda: remote.tell("stopped", stop.reason))

    async def work(self) -> None:
        """Carry out shards until the host has no more. The next starts when no trial of the last one waits any more."""
        async with self._reporting(), asyncio.TaskGroup() as shards:
            while (index := await self._remote.ask("next_shard")) is not None:
                started = asyncio.Event()
                shards.create_task(self._carry_out(int(index), started.set))
                await started.wait()

    async def carry_out_one(self, index: int) -> None:
        """Carry out one shard that an engine chose."""
        async with self._reporting():
            await self._carry_out(index, lambda: None)

    @contextlib.asynccontextmanager
    async def _reporting(self) -> AsyncIterator[None]:
        reports = asyncio.create_task(self._report_again_and_again())
        try:
            yield
        finally:
            reports.cancel()
            await self._report()
            await self._pool.aclose()

    async def _report_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(REPORT_S)
            await self._report()

    async def _report(self) -> None:
        counts = self._calls, self._not_ok
        self._calls = self._not_ok = 0
        await self._remote.ask("progress", *counts, list(self._done.items()))

    def _on_call(self, record: CallRecord) -> None:
        self._calls += 1
        self._not_ok += record.outcome != "ok"

    async def _carry_out(self, index: int, on_last_start: Callable[[], None]) -> None:
        """One shard to its end. What goes wrong is reported to the host, and stops this worker."""
        folder = self._job.folder(index)
        try:
            await self._execute(index, folder, on_last_start)
            await self._remote.ask("done", index)
        except IncompleteRun as stopped:
            self._stop.ask(str(stopped))
        except HarnessError as error:
            resume = f"{storage.RESUME} {folder}"
            message = str(error).replace(resume, f"{storage.RESUME} {self._job.run}")
            await self._fail(type(error).__name__, message)
        except Exception:
            await self._fail("Exception", traceback.format_exc())
        finally:
            on_last_start()

    async def _fail(self, kind: str, message: str) -> None:
        await self._remote.ask("failed", kind, message)
        self._stop.ask(message)

    async def _execute(self, index: int, folder: Path, on_last_start: Callable[[], None]) -> None:
        await _wait_for_lock(folder, self._stop)
        manifest = storage.read_manifest(folder)
        if storage.read_seal(folder, manifest):
            return
        job = self._job

        def on_start(trials: int, done: int) -> None:
            self._done[index] = done

        def on_trial() -> None:
            self._done[index] += 1

        await orchestrator.execute(
            folder,
            manifest,
            concurrency=job.trials,
            slots=TrialSlots(job.trials, self._free, on_last_start),
            resources=CallResources(
                adapter_for=self._pool,
                limits=self._limits,
                stop=self._stop,
                budget=SharedBudget(self._remote) if job.shared_budget else None,
                max_outage_s=job.limits.max_outage_s,
                on_notice=lambda notice: self._remote.tell("notice", notice),
            ),
            on_call=self._on_call,
            on_start=on_start,
            on_trial=on_trial,
            earlier=Path(job.earlier) if job.earlier else None,
        )


async def _wait_for_lock(folder: Path, stop: Stop) -> None:
    """Wait until no other process holds the shard."""
    until = time.monotonic() + LOCK_S
    while True:
        stop.check()
        try:
            with storage.RunLock(folder):
                return
        except StorageError:
            if time.monotonic() > until:
                raise
        await asyncio.sleep(REPORT_S)


# A worker process: `python -m src.engines.shard_worker FD`, started by `engines.run` and of no use by itself.
#
# It talks to its parent over a socket, in lines of JSON. If the parent is gone, it finishes its calls in flight, so
# that none is paid for in vain, and ends.


class ParentConnection:
    """Sends requests to the host in the parent process."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stop: Stop) -> None:
        self._reader = reader
        self._writer = writer
        self._stop = stop
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._gone = False

    async def ask(self, name: str, *arguments: Any) -> Any:
        if self._gone:
            return None
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._send(number, name, arguments)
        return await answer

    def tell(self, name: str, *arguments: Any) -> None:
        if not self._gone:
            self._send(0, name, arguments)

    def _send(self, number: int, name: str, arguments: tuple[Any, ...]) -> None:
        self._writer.write(json.dumps([number, name, arguments]).encode() + b"\n")

    async def listen(self) -> None:
        """Take answers until the parent is gone."""
        with contextlib.suppress(ConnectionError):  # a parent that is killed before it has read everything
            while (line := await self._reader.readline()).endswith(b"\n"):
                self._take(line)
        self._gone = True
        self._stop.ask("The process that started this worker has ended.")
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_result(None)

    def _take(self, line: bytes) -> None:
        number, value, stop = json.loads(line)
        if stop is not None and not self._stop.event.is_set():
            self._stop.ask(stop)
        answer = self._waiting.pop(number, None)
        if answer and not answer.done():
            answer.set_result(value)


async def work(connection: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=connection)
    job = Job.model_validate_json(await reader.readline())
    stop = Stop()
    parent = ParentConnection(reader, writer, stop)
    listening = asyncio.create_task(parent.listen())
    try:
        await ShardWorker(job, parent, stop).work()
    finally:
        listening.cancel()
        writer.close()


def main(descriptor: int) -> None:
    gc.freeze()  # as the command line does: collecting what stays costs a sixth of the CPU of a call
    gc.set_threshold(50_000, 20, 50)
    asyncio.run(work(socket.socket(fileno=descriptor)))


if __name__ == "__main__":
    main(int(sys.argv[1]))
