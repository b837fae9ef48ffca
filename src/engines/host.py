"""What all workers of a run share: the queue of shards, rate limits, the budget, and the wish to stop.

It lives in one place: in the parent of local processes, or in a Ray actor. Workers send it requests by name, through
whatever connects them (`engines.shard_worker` is the other end). A worker has a session; if it dies, `forget` gives
back the places and the money that it held.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import storage
from ..calls.budget import RunBudget
from ..calls.limits import Limits, Slot
from ..errors import ConfigError, IncompleteRun, InputError, IntegrityError, StorageError
from ..records.base import Record
from ..records.run import MAX_SHARDS
from ..runner.call_resources import call_limits, run_budget
from ..runner.shards import SHARDS
from ..schemas import CallHead, Manifest, RunLimits, Shard

# What a worker is told when it starts, and how a run's limits are divided.

SHARDS_PER_PROCESS = 4
"""More shards than processes, so that a slow shard does not leave a core idle at the end."""


class Job(Record):
    """The same for all workers of a run. Travels as JSON."""

    run: str
    """The run folder, as an absolute path."""
    of: int
    """Number of shards."""
    earlier: str | None
    """The run whose transcripts are judged again, if any."""
    trials: int
    """At a time, in one worker."""
    limits: RunLimits
    """Of one worker, where they are not shared."""
    shared_limits: bool
    """Whether the host admits every call, so that limits hold for all workers together."""
    shared_budget: bool

    all_limits: RunLimits
    """Of all workers together."""
    all_trials: int
    """At a time, in all workers together."""

    def folder(self, index: int) -> Path:
        return Path(self.run) / SHARDS / Shard(index=index, of=self.of).name


def shard_count(manifest: Manifest, processes: int) -> int:
    return min(manifest.plan.question_sets, SHARDS_PER_PROCESS * processes, MAX_SHARDS)


def divided(limits: RunLimits, processes: int) -> tuple[RunLimits, bool]:
    """The limits of one worker, and whether no even division is possible, so that workers must ask for every call.

    Calls in flight are divided evenly if there are enough. Rates are counted in one place, to be exact.
    """
    in_flight = {provider: number // processes for provider, number in limits.calls_in_flight.items()}
    shared = bool(limits.requests_per_minute or limits.tokens_per_minute or 0 in in_flight.values())
    return limits if shared else limits.model_copy(update={"calls_in_flight": in_flight}), shared


KINDS = {kind.__name__: kind for kind in (ConfigError, IncompleteRun, InputError, IntegrityError, StorageError)}


@dataclass(frozen=True)
class CallCost:
    """What decides the most that a call may cost."""

    model: str
    characters: int
    max_tokens: int
    most_searches: int


@dataclass
class _Session:
    """What one worker holds."""

    places: dict[int, tuple[AbstractAsyncContextManager[Slot], Slot]] = field(default_factory=dict)
    money: Counter[float] = field(default_factory=Counter)
    """Amounts reserved for calls in flight, and how many of each."""
    shards: set[int] = field(default_factory=set)


@dataclass
class State:
    """All workers of a run at one moment, and what they have done so far."""

    unfinished: frozenset[int]
    """Shards."""
    calls: int = 0
    calls_not_ok: int = 0
    done: dict[int, int] = field(default_factory=dict)
    """Trials done, by shard."""
    notice: str = ""
    """Why a worker waits, if the last thing that was heard is that one does."""
    stop_reason: str | None = None
    failure: tuple[str, str] | None = None
    """The first error of a worker: the name of its class, and its message."""

    def check(self) -> None:
        """Raise what stopped the run, if it did not come to its end."""
        if self.failure:
            kind, message = self.failure
            raise KINDS.get(kind, RuntimeError)(message)
        if self.unfinished:
            raise IncompleteRun(self.stop_reason or "The run was stopped before its end.")


class Host:
    """Answers the requests of all workers, in one event loop."""

    def __init__(self, shards: Iterable[int], limits: Limits, budget: RunBudget | None) -> None:
        """`shards`: numbers of those that are not complete."""
        self._waiting = deque(shards)
        self.state = State(frozenset(self._waiting))
        self._limits = limits
        self._budget = budget
        self._sessions: dict[str, _Session] = {}
        self._places = 0
        self.on_change: Callable[[], None] = lambda: None
        requests = (
            self.next_shard, self.done, self.progress, self.notice, self.stopped, self.failed, self.enter, self.leave,
            self.reserve, self.settle,
        )  # fmt: skip
        self._requests: dict[str, Callable[..., Awaitable[Any]]] = {one.__name__: one for one in requests}

    async def ask(self, session: str, name: str, arguments: list[Any]) -> tuple[Any, str | None]:
        """Carry out a request of a worker: the reply, and why the run stops if it does."""
        held = self._sessions.setdefault(session, _Session())
        value = await self._requests[name](session, held, *arguments)
        return value, self.state.stop_reason

    def stop(self, reason: str) -> None:
        """Ask all workers to stop after their calls in flight. The first reason counts."""
        if self.state.stop_reason is None:
            self.state.stop_reason = reason
        self._limits.open()
        if self._budget:
            self._budget.open()

    async def forget(self, session: str) -> set[int]:
        """Take back what a worker held that has ended. Its unfinished shards are handed out again.

        Its calls in flight may have been paid for, so their money counts as spent.
        """
        held = self._sessions.pop(session, _Session())
        for context, _ in held.places.values():
            await context.__aexit__(None, None, None)
        for amount, times in held.money.items():
            for _ in range(times):
                assert self._budget is not None
                self._budget.drop(amount, paid=amount)
        lost = held.shards & self.state.unfinished
        self._waiting.extendleft(sorted(lost, reverse=True))
        return lost

    async def take_over(self, session: str, index: int) -> None:
        """A worker starts with a shard that its engine gave it. What an earlier worker with it held is taken back."""
        for other, held in list(self._sessions.items()):
            if index in held.shards:
                await self.forget(other)
        self._sessions.setdefault(session, _Session()).shards.add(index)

    async def next_shard(self, session: str, held: _Session) -> int | None:
        if self.state.stop_reason is not None or not self._waiting:
            return None
        index = self._waiting.popleft()
        held.shards.add(index)
        return index

    async def done(self, session: str, held: _Session, index: int) -> None:
        self.state.unfinished -= {index}
        self.on_change()

    async def progress(
        self, session: str, held: _Session, calls: int, not_ok: int, done: list[tuple[int, int]]
    ) -> None:
        self.state.calls += calls
        self.state.calls_not_ok += not_ok
        self.state.done.update(done)
        if calls > not_ok:
            self.state.notice = ""
        self.on_change()

    async def notice(self, session: str, held: _Session, text: str) -> None:
        self.state.notice = text
        self.on_change()

    async def stopped(self, session: str, held: _Session, reason: str) -> None:
        self.stop(reason)

    async def failed(self, session: str, held: _Session, kind: str, message: str) -> None:
        if self.state.failure is None:
            self.state.failure = kind, message
        self.stop(message)

    async def enter(self, session: str, held: _Session, provider: str, tokens: float) -> int | None:
        """Wait for a place at a provider; the number of the place."""
        context = self._limits.limiter(provider).slot(tokens)
        slot = await context.__aenter__()
        if self._sessions.get(session) is not held:  # the worker ended while it waited
            await context.__aexit__(None, None, None)
            return None
        self._places += 1
        held.places[self._places] = context, slot
        return self._places

    async def leave(self, session: str, held: _Session, place: int | None, report: list[Any] | None) -> None:
        """Give a place back; `report`: outcome, status, Retry-After, tokens used."""
        found = held.places.pop(place, None) if place is not None else None
        if found is None:
            return
        context, slot = found
        if report:
            outcome, status, retry_after_s, used = report
            slot.answered(outcome, status=status, retry_after_s=retry_after_s, used=used)
        await context.__aexit__(None, None, None)

    async def reserve(self, session: str, held: _Session, model: str, sizes: Sequence[int]) -> float | None:
        """Reserve the most that a call may cost; None: it would pass the limit, or the run stops.

        `sizes`: the other fields of `CallCost`.
        """
        assert self._budget is not None
        amount = await self._budget.reserve(CallCost(model, *sizes))
        if amount is None:
            return None
        if self._sessions.get(session) is not held:
            self._budget.drop(amount)
            return None
        held.money[amount] += 1
        return amount

    async def settle(self, session: str, held: _Session, amount: float, head: str) -> None:
        assert self._budget is not None
        if held.money[amount]:
            held.money[amount] -= 1
            self._budget.settle(amount, CallHead.model_validate_json(head))


def make_host(job: Job, unfinished: Sequence[int]) -> Host:
    """The host of a run whose shards are there; its budget has what they have spent."""
    folder = Path(job.run)
    budget = run_budget(job.all_limits, storage.read_manifest(folder), folder)
    return Host(unfinished, call_limits(job.all_limits, job.all_trials), budget)
