"""The limits of a run, from what a user said."""

from __future__ import annotations

from ..adapters.registry import canonical_provider
from ..errors import about
from ..records.study import ExecutionOptions
from ..schemas import RunLimits

EVERY_PROVIDER = "*"
TRIALS_AT_ONCE = 8


def limits_of(options: ExecutionOptions, before: RunLimits | None = None) -> RunLimits:
    """What holds for a run: what is given now, and otherwise what held before. Providers by their own names."""
    held = before or RunLimits()
    in_flight = options.calls_in_flight
    named = {EVERY_PROVIDER: in_flight} if isinstance(in_flight, int) else in_flight or {}
    return RunLimits(
        max_cost=held.max_cost if options.max_cost is None else options.max_cost,
        requests_per_minute={
            **held.requests_per_minute,
            **_by_provider("requests_per_minute", options.requests_per_minute),
        },
        tokens_per_minute={**held.tokens_per_minute, **_by_provider("tokens_per_minute", options.tokens_per_minute)},
        calls_in_flight={**held.calls_in_flight, **_by_provider("calls_in_flight", named)},
        max_outage_s=held.max_outage_s if options.max_outage is None else options.max_outage,
        batch=options.batch or held.batch,
    )


def _by_provider(field: str, numbers: dict[str, int]) -> dict[str, int]:
    with about(field):
        return {
            name if name == EVERY_PROVIDER else canonical_provider(name): number for name, number in numbers.items()
        }


def trials_at_once(options: ExecutionOptions, limits: RunLimits) -> int:
    """As given; otherwise enough trials that calls in flight can reach their limit."""
    return options.concurrency or max([TRIALS_AT_ONCE, *limits.calls_in_flight.values()])
