"""A circuit breaker for each model: an outage pauses the model and is never taken for its answer.

A model is up as long as it answers something. After some failures in a row, or when a call has used up its attempts and
nothing shows that the model is up, all its calls pause. A probe, a short call, then asks whether the model answers at
all. If it does, the failures were those of single calls, and calls go on. If it does not, the model is down: it is
probed again at growing intervals until it answers, or until `max_outage_s` is over and the run stops.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from ..adapters.base import RETRYABLE, Message, ModelRequest
from ..records.model_name import split_name
from ..records.target import TargetSettings
from ..schemas import CallParameters, CallPolicy, CallRecord
from ..store.strict_json import derive_seed
from .limits import backoff_s
from .prices import FREE_PROVIDERS
from .stop import Stop, pause

FAILURES_IN_A_ROW = 5
"""From all calls of a model, without an answer in between: then it is probed."""
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0


@dataclass(frozen=True)
class _Failure:
    at: float
    counts: bool


@dataclass
class Tries:
    """The failed attempts of one call in this process."""

    failures: list[_Failure] = field(default_factory=list)


class Breaker:
    """Whether one model is up. For one event loop."""

    def __init__(
        self,
        model: str,
        *,
        max_outage_s: float,
        probe: Callable[[], Awaitable[ProbeResult]],
        ask: Callable[[], Awaitable[ProbeResult]],
        pause: Callable[[float], Awaitable[None]],
        give_up: Callable[[str], None],
        on_pause: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        """`probe` asks whether the model is up, and `ask` whether it answers something short, which is more.

        `pause` waits, and raises when the run stops. `give_up` stops it.
        """
        self._model, self._max_outage_s = model, max_outage_s
        self._probe, self._wait, self._give_up, self._on_pause = probe, pause, give_up, on_pause
        self._clock, self._ask_anything = clock, ask
        self._up = float("-inf")
        """When the call began that the model answered, the latest of them. It was up after that."""
        self._down_since: float | None = None
        """When the first failure since the last answer ended."""
        self._in_a_row = 0
        self._outage_ended = float("-inf")
        self._checking: asyncio.Task[None] | None = None
        self._asking = asyncio.Lock()
        self._known_up = float("-inf")
        """When the last probe began that showed that a refusal was of one request."""

    async def ready(self) -> None:
        """Wait while the model is paused."""
        while self._checking is not None:
            await asyncio.shield(self._checking)

    def answered(self, began: float | None = None) -> None:
        """The model gave a reply of any kind, or refused one request and answers others: it is up.

        `began`: when the call was sent; None: now. An answer to what was sent before an outage says nothing of it.
        """
        self._up = max(self._up, self._clock() if began is None else began)
        self._down_since, self._in_a_row = None, 0

    def failed(self, tries: Tries, policy: CallPolicy, *, rate_limited: bool) -> bool:
        """A call failed in a way that an outage explains. Returns whether that was its last attempt.

        It is if the attempts or the time of the policy are used up outside of outages, and the model has answered
        something that was asked after the failure before. Being told to slow down uses up time, but no attempt.
        """
        now = self._clock()
        is_up = bool(tries.failures) and self._up >= tries.failures[-1].at
        tries.failures.append(_Failure(now, counts=not rate_limited))
        self._in_a_row += 1
        if self._down_since is None:
            self._down_since = now
        own = [one for one in tries.failures if one.at > self._outage_ended]
        used_up = sum(one.counts for one in own) >= policy.max_attempts or (
            bool(own) and now - own[0].at > policy.deadline_s
        )
        if (used_up and not is_up) or self._in_a_row >= FAILURES_IN_A_ROW:
            self._check()
        return used_up and is_up

    async def refuses_only_this(self) -> ProbeResult:
        """A request was refused. Whether the model answers another one, asked after that.

        If not, the refusal is not about the words of the request, whatever it says. If the model is down, it pauses.
        """
        refused = self._clock()
        async with self._asking:
            if self._known_up >= refused:
                return ProbeResult(answered=True)
            began = self._clock()
            found = await self._ask_anything()
            if found.answered:
                self._known_up = began
                self.answered(began)
            elif found.retry:
                self._check()
            return found

    def _check(self) -> None:
        if self._checking is None:
            self._checking = asyncio.create_task(self._find_out())
            self._checking.add_done_callback(lambda task: task.cancelled() or task.exception())  # calls get it too

    async def _find_out(self) -> None:
        """Probe until the model answers, or until the run stops."""
        began = self._down_since if self._down_since is not None else self._clock()
        pause = FIRST_PAUSE_S
        try:
            while True:
                asked = self._clock()
                if (found := await self._probe()).answered:
                    break
                lasted = self._clock() - began
                if lasted >= self._max_outage_s:
                    self._give_up(
                        f"{self._model} has answered nothing for {duration(lasted)}, longer than `max_outage`. "
                        f"It last said: {found.message}."
                    )
                else:
                    self._on_pause(f"{self._model} does not answer ({found.message}); trying again in {pause:g} s.")
                await self._wait(min(pause, max(0.0, self._max_outage_s - lasted)))
                pause = min(LONGEST_PAUSE_S, 2 * pause)
                self._outage_ended = float("inf")  # until it is over, no failure counts
            if self._outage_ended == float("inf"):
                self._outage_ended = self._clock()
            self.answered(asked)
        finally:
            self._checking = None


def duration(seconds: float) -> str:
    """`45 seconds`, `30 minutes`."""
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"


# Probes: short calls that ask whether a model answers. They are recorded like others, and no result depends on them.
#
# All models of a run are probed before its first call, so that a wrong key or a retired model is found before any
# trial. A model that fails again and again, or that refuses a request, is probed by its circuit breaker.

PROBE_TRIAL = "probe"
"""Stands for the trial in the names of probes, which belong to none."""
PROBE = "Reply with the word OK."
PROBES = 3
"""Times a model is asked before the first trial until it counts as not answering."""


@dataclass(frozen=True)
class ProbeResult:
    """Whether a model answered a probe, and what it said if not."""

    answered: bool
    message: str = ""
    retry: bool = False
    """Whether it may answer later."""


class Probes:
    """Asks models whether they answer. For one event loop."""

    def __init__(self, call: Callable[[ModelRequest], Awaitable[CallRecord]], stop: Stop) -> None:
        """`call` makes a call and records it."""
        self._call = call
        self._stop = stop
        self._first: tuple[ModelRequest, ...] = ()
        self._probing: asyncio.Task[None] | None = None

    def before_first_call(self, requests: Iterable[ModelRequest]) -> None:
        """Probe these models before the first call that is not recorded, and not at all if there is none."""
        self._first = tuple(requests)

    async def done(self) -> None:
        """Wait for the probes before the first call. Raises `Stopping` if a model did not answer."""
        if self._first and self._probing is None:
            self._probing = asyncio.create_task(self.probe(self._first))
        if self._probing is not None and not (self._probing.done() and self._probing.exception() is None):
            await asyncio.shield(self._probing)

    async def probe(self, requests: Iterable[ModelRequest]) -> None:
        """Ask each model something short, at the same time. Raises `Stopping` if one of them does not answer."""
        found = await asyncio.gather(*map(self._several_times, requests))
        unanswered = [one for one in found if not one.answered]
        if unanswered:
            self._stop.ask(f"{unanswered[0].message}.")
        self._stop.check()

    async def _several_times(self, request: ModelRequest) -> ProbeResult:
        for number in range(1, PROBES + 1):
            found = await self.once(request)
            if found.answered or not found.retry or number == PROBES:
                break
            await pause(self._stop, backoff_s(number, derive_seed(request.seed, number)))
        if found.answered:
            return found
        return replace(found, message=f"{request.model} did not answer a short test call: {found.message}")

    async def is_up(self, request: ModelRequest) -> ProbeResult:
        """Whether the model answers at all: an error of this one request is an answer too."""
        found = await self.once(request)
        return found if found.retry else replace(found, answered=True)

    async def once(self, request: ModelRequest) -> ProbeResult:
        """Whether the model answers this request."""
        record = await self._call(request)
        return ProbeResult(
            answered=record.outcome not in RETRYABLE and record.outcome not in ("permanent", "denied"),
            message=record.error or record.outcome,
            retry=record.outcome in RETRYABLE,
        )


def probe_request(like: ModelRequest) -> ModelRequest:
    """A short request to the same model, with the same parameters. It has no system prompt and does not search."""
    return ModelRequest(
        model=like.model,
        api_id=like.api_id,
        messages=(Message("user", PROBE),),
        temperature=like.temperature,
        max_tokens=like.max_tokens,
        effort=like.effort,
        seed=like.seed,
    )


def probe_requests(
    api_ids: Mapping[str, str],
    parameters_of: Callable[[str], CallParameters],
    seed: int,
    settings_of: Callable[[str], TargetSettings] = lambda model: TargetSettings(),
) -> list[ModelRequest]:
    """A short request to each model that is not on this machine, with the parameters of its real calls."""
    found = []
    for model, api_id in api_ids.items():
        if split_name(model).provider in FREE_PROVIDERS:
            continue
        takes, settings = parameters_of(model), settings_of(model)
        like = ModelRequest(
            model=model,
            api_id=api_id,
            messages=(),
            temperature=takes.temperature,
            max_tokens=takes.max_tokens + settings.reasoning_tokens,
            effort=settings.reasoning_effort,
            seed=seed,
        )
        found.append(probe_request(like))
    return found
