"""`python -m bench.judging_cost [--write FILE]`: what judging the demo study costs at list prices, in three ways.

The demo's scenarios and targets, judged by each of the default judges in all roles. Calls and tokens are those of
`run --dry-run`, which names its assumptions. Without caching, all input has the full price. With it, all but the first
call of a scenario read the start that they share from the cache, where it is long enough for the model. In batches, the
prices are the shares in src/adapters/prices.json, with their sources. No provider promises that a batch finds its own
starts in the cache, so both cases are given; the last column is cached and in batches over no caching.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import src as me
from src.adapters.local_adapters import NAMES
from src.adapters.models import resolve
from src.adapters.registry import PROVIDERS
from src.calls.estimate import EstimateRow, estimate
from src.calls.prices import load_prices
from src.schemas import Price, RunPlan

from .study import ROOT
from .table import write

SCENARIOS = [str(ROOT / "scenarios/v1/study"), str(ROOT / "scenarios/v1/*.json")]
JUDGES = tuple(f"{one.name}:{one.default_judge}" for one in PROVIDERS.values() if one.default_judge)


@dataclass(frozen=True)
class JudgingCost:
    """Of one judge."""

    judge: str
    calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    today: float
    cached: float
    batched_alone: float
    """If a batch finds nothing in a cache."""
    batched: float

    def cells(self) -> list[str]:
        counts = (self.calls, self.input_tokens, self.cached_tokens, self.output_tokens)
        money = (f"${amount:,.2f}" for amount in (self.today, self.cached, self.batched_alone, self.batched))
        return [self.judge, *(f"{count:,}" for count in counts), *money, f"{self.batched / self.today:.0%}"]


HEAD = [
    "judge", "calls", "tokens in", "of them cached", "tokens out", "no caching", "cached",
    "in batches", "cached, in batches", "share",
]  # fmt: skip


def demo_plan(judge: str) -> RunPlan:
    """The demo's plan, with this judge in all roles; planned offline, so that no key is needed."""
    made = me.plan(scenarios=SCENARIOS, targets=[f"fake:{name}" for name in NAMES], allow_expired=True)
    roles = {"verifiers": (judge,) * len(made.verifiers), "extractor": judge, "scorer": judge, "adjudicator": None}
    return made.model_copy(update=roles)


def judging_cost(plan: RunPlan, prices: dict[str, Price]) -> JudgingCost:
    judge = plan.extractor

    def rows(*, batch: bool = False, table: dict[str, Price] = prices) -> list[EstimateRow]:
        found = estimate(plan, table, api_id_of=resolve, batch=batch)
        return [row for row in found if row.role not in ("target", "questioner")]

    plain = {name: _without_cache(price) for name, price in prices.items()}
    counted = rows()
    return JudgingCost(
        judge,
        sum(row.calls for row in counted),
        sum(row.input_tokens for row in counted),
        sum(row.cached_tokens for row in counted),
        sum(row.output_tokens for row in counted),
        _total(rows(table=plain)),
        _total(counted),
        _total(rows(table=plain, batch=True)),
        _total(rows(batch=True)),
    )


def _without_cache(price: Price) -> Price:
    """All input at the same price, in a batch too."""
    batch = price.batch.model_copy(update={"cached_share": price.batch.share}) if price.batch else None
    return price.model_copy(update={"cached": None, "cache_write": None, "batch": batch})


def _total(rows: Sequence[EstimateRow]) -> float:
    return sum(row.cost or 0.0 for row in rows)


def table() -> str:
    prices = load_prices(None)
    lines = [HEAD, *(judging_cost(demo_plan(judge), prices).cells() for judge in JUDGES)]
    rule = ["---", *["---:"] * (len(HEAD) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [lines[0], rule, *lines[1:]])


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.judging_cost", description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the table into this file: docs/batches.md")
    arguments = parser.parse_args(words)
    found = table()
    print(found)
    if arguments.write:
        write(arguments.write, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
