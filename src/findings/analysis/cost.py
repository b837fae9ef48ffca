"""What a run's calls came to: attempts, tokens and cost by model, from its journal."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ... import storage
from ...calls.prices import cost
from ...schemas import Manifest

_STARTED = re.compile(rb'"started":"([0-9T:.+-]{10,40})"')
PARTS = ("questioner", "target", "judges")


@dataclass
class Spending:
    """What one model's calls in one role came to."""

    part: str
    """target or judges (the questioner's calls are its own part)"""
    model: str
    attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    without_usage: int = 0
    """Attempts whose tokens the provider did not state."""
    cost: float | None = 0.0
    """None where the model's price is unknown."""


def spending(folder: Path, manifest: Manifest) -> list[Spending]:
    """Attempts, tokens and cost by model, the target's apart from the judges'."""
    rows: dict[tuple[str, str], Spending] = {}
    for head in storage.call_heads(folder):
        stage = head.call.split("|")[1]
        part = stage if stage in ("target", "questioner") else "judges"
        row = rows.setdefault((part, head.model), Spending(part, head.model))
        row.attempts += 1
        row.input_tokens += head.usage.input_tokens or 0
        row.output_tokens += head.usage.output_tokens or 0
        row.without_usage += head.usage.output_tokens is None
        price = manifest.prices.get(head.model)
        paid = cost(price, head.usage) if price else None
        row.cost = None if price is None or row.cost is None else row.cost + (paid or 0.0)
    return sorted(rows.values(), key=lambda row: (PARTS.index(row.part), row.model))


def call_dates(folder: Path) -> tuple[str, str] | None:
    """When the first and the last call of a run began; None where nothing was called."""
    path = folder / storage.JOURNAL
    if not path.exists():
        return None
    with path.open("rb") as file:
        # The first such field of a line is the call's own: what was sent and received stands behind it.
        found = [match[1].decode("ascii") for line in file if (match := _STARTED.search(line))]
    return (min(found), max(found)) if found else None
