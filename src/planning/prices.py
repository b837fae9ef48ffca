"""What the calls of a plan are taken to cost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from ..adapters.models import full_id
from ..adapters.registry import canonical_name
from ..calls.prices import PRICE_FILE, load_prices, price_for, read_table
from ..errors import ConfigError
from ..records.model_name import split_name
from ..schemas import Price
from .clock import today


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
