"""What a worker is told when it starts, and how a run's limits are divided."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..records.base import Record
from ..records.run import MAX_SHARDS
from ..runner.shards import SHARDS
from ..schemas import Manifest, RunLimits, Shard

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


@dataclass(frozen=True)
class Divided:
    limits: RunLimits
    """Of one worker."""
    shared: bool
    """Whether no even division is possible, so that workers must ask for every call."""


def divided(limits: RunLimits, processes: int) -> Divided:
    """Calls in flight are divided evenly if there are enough. Rates are counted in one place, to be exact."""
    in_flight = {provider: number // processes for provider, number in limits.calls_in_flight.items()}
    shared = bool(limits.requests_per_minute or limits.tokens_per_minute or 0 in in_flight.values())
    return Divided(limits if shared else limits.model_copy(update={"calls_in_flight": in_flight}), shared)
