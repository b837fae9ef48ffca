"""What calls cost: a dated price table that can be overridden, and the cost of a call.

Amounts are US dollars. An unknown price is None and stays None: an unknown cost never counts as zero. A call that may
or may not have been billed counts as billed, so that a limit holds. This file knows records only, not adapters or the
environment, so reports may use it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from math import ceil
from pathlib import Path
from typing import Literal

from pydantic import Field

from ..errors import InputError
from ..records.model_name import split_name
from ..records.price import BatchPrice, SearchPrice
from ..schemas import CallOutcome, IsoDate, ModelName, Price, Record, Usage
from ..store.input_files import read_user_file

PRICE_FILE = Path(__file__).resolve().parent.parent / "adapters" / "prices.json"
PER = 1_000_000
"""Prices are for this many tokens."""
SEARCHES = 1_000
"""Prices are for this many searches."""
RESULT_TOKENS = 8_000
"""Input tokens of what one search finds, where they are not known yet. It is what OpenAI bills for a search of its
small models; users measured 6,000 to 9,000 per search of larger ones."""
FREE_PROVIDERS = ("fake", "offline", "human", "transcript")
MAYBE_BILLED: frozenset[CallOutcome] = frozenset(
    {"ok", "refused", "blocked", "truncated", "empty", "timeout", "malformed", "transient"}
)
"""Outcomes after which the provider may have sent a bill, unless it answered with an HTTP error."""
_DATE_SUFFIX = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8}|(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))$")


class PriceTable(Record):
    """A file of prices."""

    as_of: IsoDate
    currency: Literal["USD"]
    unit: Literal["1M tokens"]
    note: str = ""
    batch: dict[str, BatchPrice] = Field(default_factory=dict)
    """What calls in a batch cost, by provider."""
    search: dict[str, SearchPrice] = Field(default_factory=dict)
    """What web searches cost, by provider. A row of `prices` may have its own."""
    prices: dict[ModelName, Price]
    """By `provider:API id`."""


FREE = Price(input=0.0, output=0.0, cached=0.0, source="runs on this machine", read="2026-11-16")


def read_table(path: Path) -> PriceTable:
    """A price file, checked; errors name file and field."""
    return read_user_file(path, PriceTable)[1]


def load_prices(
    override: Path | None, *, today: date | None = None, full_id: Callable[[str], str] = lambda name: name
) -> dict[str, Price]:
    """The built-in prices, added to or overridden by a user's own; those in force on `today`, if given.

    `full_id` turns a name as a user may write it (`grok:grok-2`) into the name of its row (`xai:grok-2-1212`).
    """
    built_in = read_table(PRICE_FILE)
    found, batch, search = dict(built_in.prices), dict(built_in.batch), dict(built_in.search)
    if override is not None:
        given: dict[str, str] = {}
        own = read_table(override)
        batch |= own.batch
        search |= own.search
        for name, price in own.prices.items():
            row = full_id(name)
            if given.setdefault(row, name) != name:
                raise InputError(f"{override}: field prices: {name} and {given[row]} are the same model. Keep one.")
            found[row] = price
    return {
        name: _completed(
            name,
            price.on(today) if today else price,
            batch.get(split_name(name).provider),
            search.get(split_name(name).provider),
        )
        for name, price in found.items()
    }


def _completed(name: str, price: Price, batch: BatchPrice | None, search: SearchPrice | None) -> Price:
    """With what the provider charges for all its models."""
    if price.batch is None and batch:
        price = price.model_copy(update={"batch": batch})
    if price.search is None and search and not split_name(name).model.startswith(search.not_for):
        price = price.model_copy(update={"search": search.per_1000})
    return price


def _undated(name: str) -> str:
    return _DATE_SUFFIX.sub("", name)


def price_for(prices: Mapping[str, Price], provider: str, api_id: str) -> Price | None:
    """A model's price: its own row, or that of the same id with or without a date where only one can be meant."""
    if provider in FREE_PROVIDERS:
        return FREE
    name = f"{provider}:{api_id}"
    if name in prices:
        return prices[name]
    if _undated(name) != name:
        return prices.get(_undated(name))
    dated = [price for row, price in prices.items() if _undated(row) == name]
    return dated[0] if len(dated) == 1 else None


def cost(price: Price, usage: Usage, *, searches: int = 0, batch: bool = False) -> float | None:
    """What a call cost by the tokens it used and its web searches.

    None where the provider did not say how many tokens, or where the price of searches is unknown.
    """
    searched = _searched(price, searches)
    if usage.input_tokens is None or usage.output_tokens is None or searched is None:
        return None
    cached = min(usage.cached_tokens or 0, usage.input_tokens)
    written = min(usage.cache_write_tokens or 0, usage.input_tokens - cached)
    plain = usage.input_tokens - cached - written
    read_rate = price.input if price.cached is None else price.cached
    discount = price.batch if batch else None
    whole = plain * price.input + written * _write_rate(price) + usage.output_tokens * price.output
    if discount is not None:
        return (whole * discount.share + cached * read_rate * discount.cached_share) / PER + searched
    return (whole + cached * read_rate) / PER + searched


def _searched(price: Price, searches: int) -> float | None:
    if not searches:
        return 0.0
    return None if price.search is None else searches * price.search / SEARCHES


def _write_rate(price: Price) -> float:
    return price.input if price.cache_write is None else price.cache_write


def worst_case(price: Price, characters: int, max_tokens: int, *, searches: int = 0, batch: bool = False) -> float:
    """The most a call should cost: a token for every three characters sent, all written to a cache if that costs more
    and none read from one, and the longest reply. For each search also its price, and 8,000 tokens (`RESULT_TOKENS`)
    of what it finds. A provider that takes no limit of searches may pass this."""
    share = price.batch.share if batch and price.batch else 1.0
    sent = ceil(characters / 3) + searches * RESULT_TOKENS
    tokens = share * (sent * max(price.input, _write_rate(price)) + max_tokens * price.output) / PER
    return tokens + (_searched(price, searches) or 0.0)


def charge(
    outcome: CallOutcome,
    status: int | None,
    usage: Usage,
    price: Price | None,
    reserved: float,
    *,
    searches: int = 0,
    batch: bool = False,
) -> float:
    """What an attempt counts as: by its usage and searches if known; in full if it may have been billed; else nothing.

    A line of a batch that had no turn, because the batch expired for example, is not billed.
    """
    known = cost(price, usage, searches=searches, batch=batch) if price else None
    if known is not None:
        return known
    if batch and outcome == "transient":
        return 0.0
    refused_by_http = status is not None and not 200 <= status < 300
    return reserved if outcome in MAYBE_BILLED and not refused_by_http else 0.0
