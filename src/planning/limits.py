"""The limits of a run, from what a user said."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path

from ..adapters.models import full_id
from ..adapters.registry import canonical_name, canonical_provider
from ..calls.prices import PRICE_FILE, load_prices, price_for, read_table
from ..errors import ConfigError, InputError, about
from ..records.model_name import split_name
from ..records.study import ExecutionOptions
from ..schemas import Price, RunLimits
from .clock import today

EVERY_PROVIDER = "*"
TRIALS_AT_ONCE = 8
IN_ONE_PROCESS = "batches are sent by one process, which is all they need. Leave out `processes` and `engine`."


def limits_of(options: ExecutionOptions, before: RunLimits | None = None) -> RunLimits:
    """What holds for a run: what is given now, and otherwise what held before. Providers by their own names."""
    held = before or RunLimits()
    in_flight = options.calls_in_flight
    named = {EVERY_PROVIDER: in_flight} if isinstance(in_flight, int) else in_flight or {}
    batch = options.batch or held.batch
    if batch != "none" and ((options.processes or 1) > 1 or options.engine != "local"):
        raise InputError(IN_ONE_PROCESS, field="batch")
    if options.ray_address is not None and options.engine != "ray":
        raise InputError("this is for `engine` ray. Give that too, or leave this out.", field="ray_address")
    if options.engine == "ray" and not is_installed("ray"):
        raise ConfigError("Ray is not installed. Run: python -m pip install 'ray>=2.60,<3'", field="engine")
    return RunLimits(
        max_cost=held.max_cost if options.max_cost is None else options.max_cost,
        requests_per_minute={
            **held.requests_per_minute,
            **_by_provider("requests_per_minute", options.requests_per_minute),
        },
        tokens_per_minute={**held.tokens_per_minute, **_by_provider("tokens_per_minute", options.tokens_per_minute)},
        calls_in_flight={**held.calls_in_flight, **_by_provider("calls_in_flight", named)},
        max_outage_s=held.max_outage_s if options.max_outage is None else options.max_outage,
        batch=batch,
    )


def is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ValueError:  # a module that is only a name
        return False


def _by_provider(field: str, numbers: dict[str, int]) -> dict[str, int]:
    with about(field):
        return {
            name if name == EVERY_PROVIDER else canonical_provider(name): number for name, number in numbers.items()
        }


def trials_at_once(options: ExecutionOptions, limits: RunLimits) -> int:
    """As given; otherwise enough trials that calls in flight can reach their limit."""
    return options.concurrency or max([TRIALS_AT_ONCE, *limits.calls_in_flight.values()])


def share_of(limits: RunLimits, of: int) -> RunLimits:
    """The part of a study's limits that each of its shards may use; shards on other machines know nothing of it."""

    def part(field: str, numbers: dict[str, int]) -> dict[str, int]:
        for provider, number in numbers.items():
            if number < of:
                raise InputError(
                    f"{number} for {provider} cannot be divided among {of} shards. Give at least {of}.", field=field
                )
        return {provider: number // of for provider, number in numbers.items()}

    return limits.model_copy(
        update={
            "max_cost": None if limits.max_cost is None else limits.max_cost / of,
            "requests_per_minute": part("requests_per_minute", limits.requests_per_minute),
            "tokens_per_minute": part("tokens_per_minute", limits.tokens_per_minute),
            "calls_in_flight": part("calls_in_flight", limits.calls_in_flight),
        }
    )


# What the calls of a plan are taken to cost.


def price_table(override: Path | None) -> dict[str, Price]:
    """The built-in prices, with those of a user's file added or replaced."""
    return load_prices(override, today=today(), full_id=lambda name: full_id(canonical_name(name)))


def prices_as_of(override: Path | None) -> str:
    given = [f"{read_table(override).as_of} (given)"] if override else []
    return ", ".join([*given, read_table(PRICE_FILE).as_of])


def prices_for(api_ids: Mapping[str, str], override: Path | None) -> dict[str, Price]:
    """The known price of each model, by the name it has in the plan."""
    table = price_table(override)
    known = {name: price_for(table, split_name(name).provider, api_id) for name, api_id in api_ids.items()}
    return {name: price for name, price in known.items() if price is not None}


def check_prices_known(
    models: Iterable[str], prices: Mapping[str, Price], max_cost: float | None, searching: Collection[str] = ()
) -> None:
    """A budget can only be kept if every model has a price, and every one that searches a price of searches."""
    if max_cost is None:
        return
    unknown = [name for name in models if name not in prices]
    if not unknown and (without := [name for name in searching if prices[name].search is None]):
        raise ConfigError(
            f"no price of web searches is known for {', '.join(without)}. Add `search`, in dollars per 1,000 searches, "
            "to its row in a price file (same format as src/adapters/prices.json) and start the run with that file as "
            "`prices`.",
            field="max_cost",
        )
    if unknown:
        raise ConfigError(
            f"no price is known for {', '.join(unknown)}. Add it to a price file (same format as "
            "src/adapters/prices.json) and start the run with that file as `prices`.",
            field="max_cost",
        )
