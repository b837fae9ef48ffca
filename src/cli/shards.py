"""`merge`, and what is said about a shard and about a run that is carried out in shards."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from ..api.shards import merge as merge_shards
from ..planning.limits import limits_of, share_of
from ..reading import Run
from ..records.study import Study
from ..runner import shards
from ..schemas import RunLimits, Shard
from ..text.count import counted


def merge(arguments: argparse.Namespace) -> int:
    merged = merge_shards(arguments.shard, to=arguments.to)
    if arguments.json:
        print(json.dumps(asdict(merged), indent=2, default=str))
        return 0
    trials, calls = counted(merged.trials, "trial"), counted(merged.calls, "call")
    print(f"{merged.run}: merged {counted(merged.shards, 'shard')} with {trials} and {calls}.")
    if merged.torn_lines:
        print(f"  lines left incomplete by crashes, and left out: {merged.torn_lines}")
    print(f"  results hash: {merged.head}")
    return 0


def shard_notice(study: Study, shard: Shard) -> str:
    """Which part is carried out, and with which part of the limits."""
    limits = share_of(limits_of(study), shard.of)
    shares = _shares(limits)
    text = f"Shard {shard.index} of {shard.of}."
    return f"{text} Its share of the limits: {'; '.join(shares)}." if shares else text


def _shares(limits: RunLimits) -> list[str]:
    found = [] if limits.max_cost is None else [f"${limits.max_cost:,.2f}"]
    for numbers, what in (
        (limits.requests_per_minute, "requests per minute"),
        (limits.tokens_per_minute, "tokens per minute"),
        (limits.calls_in_flight, "calls in flight"),
    ):
        for provider, number in numbers.items():
            found.append(f"{number:,} {what}" if provider == "*" else f"{provider} {number:,} {what}")
    return found


def print_divided(run: Run, *, as_json: bool) -> None:
    """How far a run is whose results are not in plan order yet."""
    done = sum(shards.results_in(shard) for shard in shards.shard_folders(run.path))
    planned = run.manifest.trial_count
    if as_json:
        print(json.dumps({"run": str(run.path), "head": None, "sealed": False, "planned": planned, "done": done}))
    else:
        print(f"{run.path}: {done:,} of {counted(planned, 'trial')} done. Results are written when all are.")
