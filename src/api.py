"""Carrying a run out: prices, folder and manifest, the adapters, signals, and what is printed at its end."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import platform
import signal
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from . import (
    __version__,
    orchestrator,
    reporting,
    storage,
)
from .adapters.base import Adapter
from .adapters.models import full_id
from .adapters.registry import canonical_name, make_adapter
from .calls.budget import RunBudget
from .calls.gateway import CallResources, Stop
from .calls.limits import Ceilings, Limits
from .calls.prices import (
    PRICE_FILE,
    load_prices,
    price_for,
    read_table,
)
from .cli import tables
from .cli.progress import Progress
from .errors import ConfigError, IncompleteRun, InputError
from .planning.clock import today
from .records.model_name import split_name
from .records.preregistration import Registration
from .schemas import (
    Manifest,
    Price,
    RunPlan,
    Seal,
    Transcripts,
)
from .store import strict_json
from .store.failpoints import Failpoints

CALLS_A_TRIAL = 8
"""Calls one trial may have in flight at once, generously: a turn to the target, and judges at work on earlier ones."""
DEPENDENCIES = ("pydantic", "rich", "openai", "anthropic", "google-genai")


def price_table(override: Path | None) -> dict[str, Price]:
    return load_prices(override, today=today(), full_id=lambda name: full_id(canonical_name(name)))


def as_of(override: Path | None) -> str:
    given = [f"{read_table(override).as_of} (given)"] if override else []
    return ", ".join([*given, read_table(PRICE_FILE).as_of])


def prices_for(api_ids: Mapping[str, str], override: Path | None) -> dict[str, Price]:
    """The known price of each model, by the name it is called by here."""
    table = price_table(override)
    known = {name: price_for(table, split_name(name).provider, api_id) for name, api_id in api_ids.items()}
    return {name: price for name, price in known.items() if price is not None}


def check_max_cost(manifest: Manifest, limit: float | None) -> None:
    unknown = [name for name in manifest.plan.api_ids if name not in manifest.prices]
    if limit is not None and unknown:
        raise ConfigError(
            f"--max-cost needs the price of every model, and that of {', '.join(unknown)} is not known: start the run "
            "with --prices FILE, a file of the built-in table's format."
        )


def versions() -> dict[str, str]:
    found = {"ai-medicare-eval": __version__, "python": platform.python_version()}
    for name in DEPENDENCIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def start(
    plan: RunPlan,
    arguments: argparse.Namespace,
    earlier: Path | None = None,
    registered: Registration | None = None,
) -> int:
    """A new run folder, its manifest, and the run itself. `earlier`: the run whose transcripts are judged again."""
    failpoints = Failpoints.from_environment()
    now = datetime.now(UTC)
    ceilings(arguments.rpm, arguments.tpm)
    manifest = Manifest(
        run_id="",
        created=now.isoformat(timespec="seconds"),
        plan_sha256=strict_json.fingerprint(plan.model_dump(mode="json")),
        versions=versions(),
        concurrency=arguments.concurrency,
        prices_as_of=as_of(arguments.prices),
        prices=prices_for(plan.api_ids, arguments.prices),
        registration=registered,
        transcripts=_transcripts(earlier, arguments.out, keep_claims=arguments.keep_claims) if earlier else None,
        plan=plan,
    )
    check_max_cost(manifest, arguments.max_cost)
    folder = storage.create_run_folder(arguments.out, now, failpoints)
    manifest = manifest.model_copy(update={"run_id": folder.name})
    storage.write_once(folder / storage.MANIFEST, storage.encode_record(manifest) + b"\n", failpoints, "manifest")
    return carry_out(folder, manifest, arguments, earlier)


def _transcripts(earlier: Path, out: Path, *, keep_claims: bool) -> Transcripts:
    return Transcripts(
        run_id=storage.read_manifest(earlier).run_id,
        folder=Path(os.path.relpath(earlier, out)).as_posix(),
        manifest_sha256=storage.manifest_sha256(earlier),
        journal_sha256=storage.file_sha256(earlier / storage.JOURNAL),
        stages=("questioner", "target", "extractor") if keep_claims else ("questioner", "target"),
    )


def carry_out(folder: Path, manifest: Manifest, arguments: argparse.Namespace, earlier: Path | None = None) -> int:
    if manifest.transcripts and earlier is None:
        beside = folder.parent / manifest.transcripts.run_id
        earlier = beside if beside.is_dir() and beside != folder else folder.parent / manifest.transcripts.folder
        if not earlier.is_dir():
            raise InputError(f"{earlier}: the run whose transcripts are judged again is not there; put it back.")
    progress = Progress(quiet=arguments.quiet)
    try:
        seal = asyncio.run(_execute(folder, manifest, arguments, progress, earlier))
    except IncompleteRun as stopped:
        print_summary(folder, manifest, None, as_json=arguments.json)
        limit = " --max-cost USD" if arguments.max_cost else ""
        raise IncompleteRun(f"{stopped} Go on with: medicare-eval resume {folder}{limit}") from None
    print_summary(folder, manifest, seal, as_json=arguments.json)
    return 0


async def _execute(
    folder: Path, manifest: Manifest, arguments: argparse.Namespace, progress: Progress, earlier: Path | None
) -> Seal:
    stop = Stop()
    budget = None
    if arguments.max_cost is not None:
        budget = RunBudget(arguments.max_cost, manifest.prices, storage.call_heads(folder))
    made: dict[str, Adapter] = {}

    def adapter_for(provider: str) -> Adapter:
        if provider not in made:
            made[provider] = make_adapter(provider)
        return made[provider]

    gc.freeze()  # what is loaded by now stays: collecting it again and again costs a sixth of the CPU of a call
    gc.set_threshold(50_000, 20, 50)
    stop_on_signal(stop)
    try:
        return await orchestrator.execute(
            folder,
            manifest,
            concurrency=arguments.concurrency,
            resources=CallResources(
                adapter_for=adapter_for,
                limits=Limits(CALLS_A_TRIAL * arguments.concurrency, ceilings(arguments.rpm, arguments.tpm)),
                stop=stop,
                budget=budget,
            ),
            on_call=progress.on_call,
            on_start=progress.start,
            on_trial=progress.on_trial,
            earlier=earlier,
        )
    finally:
        progress.stop()
        for adapter in made.values():
            await adapter.aclose()


def ceilings(requests: list[tuple[str, int]], tokens: list[tuple[str, int]]) -> dict[str, Ceilings]:
    a_minute: dict[str, dict[str, int]] = {}
    for what, given in (("requests", requests), ("tokens", tokens)):
        for name, number in given:
            provider = split_name(canonical_name(f"{name}:any")).provider
            a_minute.setdefault(provider, {})[what] = number
    return {provider: Ceilings(**given) for provider, given in a_minute.items()}


def stop_on_signal(stop: Stop) -> None:
    """The first Ctrl-C lets calls in flight finish; the second ends the process where it stands."""

    heard_before = False

    def heard() -> None:
        nonlocal heard_before
        if heard_before:
            os._exit(130)
        heard_before = True
        stop.ask()
        print("Stopping: calls in flight are being finished. Ctrl-C again stops at once.", file=sys.stderr, flush=True)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, heard)


def print_summary(folder: Path, manifest: Manifest, seal: Seal | None, *, as_json: bool) -> None:
    summary = reporting.summarize(folder, manifest)
    spending = reporting.spending(folder, manifest)
    names = (storage.MANIFEST, storage.JOURNAL, storage.RESULTS, storage.SEAL)
    written = [folder / name for name in names if (folder / name).exists()]
    if as_json:
        document = {"run": str(folder), "head": seal.results_head if seal else None, "sealed": seal is not None}
        costs = {"costs": [vars(row) for row in spending], "prices_as_of": manifest.prices_as_of}
        print(json.dumps({**document, **reporting.summary_json(summary), **costs}, indent=2, ensure_ascii=False))
        return
    print(tables.summary_table(summary))
    if any(tally.codes for tally in summary.by_target.values()):
        print(f"\n{tables.code_table(summary)}")
    print(tables.cost_text(spending, manifest.prices_as_of))
    for notice in reporting.notices(summary):
        print(f"\n{notice}")
    print("\nWritten:")
    for path in written:
        print(f"  {path}")
    if seal:
        print(f"Head of the results (keep it elsewhere; `verify --expect` checks it):\n  {seal.results_head}")
