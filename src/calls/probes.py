"""Probes: short calls that ask whether a model answers. They are recorded like others, and no result depends on them.

All models of a run are probed before its first call, so that a wrong key or a retired model is found before any trial.
A model that fails again and again, or that refuses a request, is probed by its circuit breaker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from ..adapters.base import RETRYABLE, Message, ModelRequest
from ..records.model_name import split_name
from ..records.target import TargetSettings
from ..schemas import CallParameters, CallRecord
from ..store.strict_json import derive_seed
from .limits import backoff_s
from .prices import FREE_PROVIDERS
from .stop import Stop, pause

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
