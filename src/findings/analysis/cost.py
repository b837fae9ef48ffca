"""What a run's calls cost, when they were made and why they failed, from one pass over its journal."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ... import storage
from ...calls.prices import cost
from ...schemas import CallRecord, Manifest
from ...store import hash_chain
from ...store.projection import projection
from .call_errors import ErrorCounts, JournalErrors

PARTS = ("questioner", "target", "judges")
_decode = projection(
    CallRecord,
    {"": "call model outcome final status usage stop_reason started error batch", "search": "searches"},
)


@dataclass
class Spending:
    """What one model's calls in one role cost."""

    part: str
    """One of `PARTS`."""
    model: str
    attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Of the input: read from the provider's cache."""
    searches: int = 0
    """On the web."""
    without_usage: int = 0
    """Attempts for which the provider reported no tokens."""
    cost: float | None = 0.0
    """None if the model's price is unknown, or that of its searches."""


class CallTimes(NamedTuple):
    """When the first and the last call started, as ISO timestamps in UTC."""

    first: str
    last: str

    @staticmethod
    def spanning(times: list[CallTimes]) -> CallTimes | None:
        """From the earliest of the first to the latest of the last; None if there are none."""
        return CallTimes(min(t.first for t in times), max(t.last for t in times)) if times else None


@dataclass
class CallTotals:
    spending: list[Spending] = field(default_factory=list)
    times: dict[str, CallTimes] = field(default_factory=dict)
    """By model."""
    errors: ErrorCounts = field(default_factory=dict)


def read_calls(folder: Path, manifest: Manifest) -> CallTotals:
    """Attempts, tokens, cost, times and errors by model; the target's calls are counted apart from the judges'."""
    found = CallTotals()
    path = folder / storage.JOURNAL
    if not path.exists():
        return found
    rows: dict[tuple[str, str], Spending] = {}
    errors = JournalErrors(found.errors)
    for line in hash_chain.ChainReader(path, storage.manifest_sha256(folder)):
        if not hash_chain.is_call(line.payload):
            continue
        call = _decode(line.payload)
        errors.add(call)
        stage = call.call.split("|")[1]
        if stage == "probe":
            stage = "target" if call.model in manifest.plan.targets else "judge"
        part = stage if stage in ("target", "questioner") else "judges"
        _add(rows.setdefault((part, call.model), Spending(part, call.model)), call, manifest)
        times = found.times.get(call.model, CallTimes(call.started, call.started))
        found.times[call.model] = CallTimes(min(times.first, call.started), max(times.last, call.started))
    found.spending = sorted(rows.values(), key=lambda row: (PARTS.index(row.part), row.model))
    return found


def _add(row: Spending, call: CallRecord, manifest: Manifest) -> None:
    usage = call.usage
    row.attempts += 1
    row.input_tokens += usage.input_tokens or 0
    row.output_tokens += usage.output_tokens or 0
    row.cached_tokens += usage.cached_tokens or 0
    row.without_usage += usage.output_tokens is None
    searches = call.search.searches if call.search else 0
    row.searches += searches
    price = manifest.prices.get(call.model)
    if price is None or row.cost is None or (searches and price.search is None):
        row.cost = None
    else:
        row.cost += cost(price, usage, searches=searches, batch=call.batch is not None) or 0.0
