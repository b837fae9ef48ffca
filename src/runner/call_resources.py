"""What a run needs to make its calls: adapters, limits, budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .. import storage
from ..adapters.base import About, Adapter, ModelRequest
from ..adapters.registry import make_adapter
from ..agents.ask import JudgeClient
from ..calls.budget import RunBudget
from ..calls.gateway import CallId, Gateway
from ..calls.limits import Ceilings, Limits
from ..calls.people import People
from ..calls.resources import CallResources
from ..calls.stop import Stop
from ..planning.limits import EVERY_PROVIDER, trials_at_once
from ..records.model_name import family_of_id
from ..records.study import ExecutionOptions
from ..schemas import CallHead, CallParameters, CallRecord, LimitsNote, Manifest, Prompt, Role, RunLimits
from .progress import ProgressCounter
from .shards import call_heads


class AdapterPool:
    """One adapter per provider, made when a call first needs it and closed when the run ends."""

    def __init__(self) -> None:
        self._made: dict[str, Adapter] = {}

    def __call__(self, provider: str) -> Adapter:
        if provider not in self._made:
            self._made[provider] = make_adapter(provider)
        return self._made[provider]

    async def aclose(self) -> None:
        for adapter in self._made.values():
            await adapter.aclose()


CALLS_PER_TRIAL = 8
"""Calls one trial may have in flight at once, generously: one to the target, and judges at work on earlier turns."""


def current_limits(folder: Path, manifest: Manifest) -> RunLimits:
    """The limits that hold for a run that was started before: the last ones given."""
    held = manifest.limits or RunLimits()
    for note in storage.read_notes(folder):
        if isinstance(note, LimitsNote):
            held = note.limits
    return held


def call_limits(limits: RunLimits, trials: int) -> Limits:
    """The limiters of a run with so many trials at a time."""
    providers = {*limits.requests_per_minute, *limits.tokens_per_minute}
    ceilings = {
        provider: Ceilings(limits.requests_per_minute.get(provider), limits.tokens_per_minute.get(provider))
        for provider in providers
    }
    most = limits.calls_in_flight.get(EVERY_PROVIDER, CALLS_PER_TRIAL * trials)
    return Limits(most, ceilings, limits.calls_in_flight)


def run_budget(limits: RunLimits, manifest: Manifest, folder: Path) -> RunBudget | None:
    """The money of a run, less what its journal has spent; None if there is no limit."""
    if limits.max_cost is None:
        return None
    return RunBudget(limits.max_cost, manifest.prices, paid_calls(folder, manifest), manifest.plan.most_searches)


def paid_calls(folder: Path, manifest: Manifest) -> Iterator[CallHead]:
    """The attempts that a run made. Those that it took from an earlier run were paid for there."""
    taken = manifest.transcripts.stages if manifest.transcripts else ()
    return (head for head in call_heads(folder, manifest) if head.call.split("|")[1] not in taken)


def call_resources(
    folder: Path,
    manifest: Manifest,
    limits: RunLimits,
    options: ExecutionOptions,
    *,
    pool: AdapterPool,
    stop: Stop,
    counter: ProgressCounter,
    people: People | None = None,
) -> CallResources:
    return CallResources(
        adapter_for=pool,
        limits=call_limits(limits, trials_at_once(options, limits)),
        stop=stop,
        budget=run_budget(limits, manifest, folder),
        max_outage_s=limits.max_outage_s,
        on_notice=counter.on_notice,
        batch=limits.batch == "judges",
        batch_wait_s=None if options.batch_wait is None else 60 * options.batch_wait,
        people=people or People(),
    )


@dataclass(frozen=True)
class JudgeClients:
    """What all judge clients of a run, or of a judge check, have in common.

    Each is bound to a role, a model, its prompt, and the families that may not answer.
    """

    gateway: Gateway
    prompts: Mapping[Role, Prompt]
    api_ids: Mapping[str, str]
    parameters: Callable[[str], CallParameters]
    """By model."""
    max_asks: int

    def client(
        self,
        role: Role,
        model: str,
        call: CallId,
        *,
        seed: int,
        families: Sequence[str],
        records: list[CallRecord],
        about: About | None = None,
    ) -> JudgeClient:
        """`families`: families that may not answer here. Every call the client makes is added to `records`."""

        async def make(ask: int, request: ModelRequest) -> CallRecord:
            record = await self.gateway.call(replace(call, ask=ask), request)
            records.append(record)
            if record.served_model and family_of_id(record.served_model) in families:
                message = f"answered by {record.served_model}, of the target's own family"
                return record.model_copy(update={"outcome": "permanent", "text": None, "error": message})
            return record

        return JudgeClient(
            model=model,
            api_id=self.api_ids.get(model, ""),
            system=self.prompts[role].text,
            prompt_sha256=self.prompts[role].sha256,
            seed=seed,
            parameters=self.parameters(model),
            max_asks=self.max_asks,
            about=about,
            call=make,
        )
