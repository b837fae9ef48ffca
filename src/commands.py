"""What each command of the command line does."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import platform
import shutil
import signal
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import BinaryIO

from pydantic import ValidationError

from . import __version__, canonical, chain, orchestrator, reporting, storage, tables
from . import doctor as doctor_module
from .adapters.base import Adapter, split_name
from .adapters.fake_adapter import NAMES as FAKE_NAMES
from .adapters.models import MODELS, full_id
from .adapters.registry import PROVIDERS, canonical_name, check_usable, make_adapter
from .audit import verify as audit_run
from .authoring import new_scenario, scenarios, validate
from .clock import today
from .datafiles import data_folder
from .door import Means, Stop
from .errors import ConfigError, IncompleteRun, InputError, IntegrityError
from .failpoints import Failpoints
from .limits import Ceilings, Limits
from .money import PRICE_FILE, estimate, load_prices, price_for, read_table
from .planning import RunOptions, make_plan, planned_calls, trials
from .progress import Progress
from .purse import RunPurse
from .schemas import CallPolicy, Manifest, Price, RunPlan, Seal
from .userfiles import explain

__all__ = [
    "demo",
    "doctor",
    "models",
    "new_scenario",
    "replay",
    "report",
    "resume",
    "run",
    "scenarios",
    "validate",
    "verify",
]
CALLS_A_TRIAL = 8
"""Calls one trial may have under way at once, generously: a turn to the target, and judges at work on earlier ones."""
DEPENDENCIES = ("pydantic", "rich", "openai", "anthropic", "google-genai")


def run(arguments: argparse.Namespace) -> int:
    try:
        plan = make_plan(
            RunOptions(
                scenarios=arguments.scenario,
                targets=arguments.target,
                judges=arguments.judges,
                judge_models=arguments.judge_model,
                adjudicator_model=arguments.adjudicator_model,
                paraphrase=arguments.paraphrase,
                questioner_model=arguments.questioner_model,
                seed=arguments.seed,
                repeats=arguments.repeats,
                temperature=arguments.temperature,
                max_tokens=arguments.max_tokens,
                policy=CallPolicy(max_attempts=arguments.max_attempts, timeout_s=arguments.timeout),
                allow_retired=arguments.allow_retired,
                plan_year=arguments.plan_year,
                allow_expired=arguments.allow_expired,
                variants=arguments.variant,
                wording=arguments.wording,
                facts_file=arguments.facts,
                plan_file=arguments.plan_file,
            )
        )
    except ValidationError as error:
        raise InputError(f"The plan cannot be made: {explain(error)}") from None
    if arguments.dry_run:
        return _show_plan(plan, arguments)
    return _start(plan, arguments)


def demo(arguments: argparse.Namespace) -> int:
    bank = data_folder("scenarios") / "v1"
    options = RunOptions(
        scenarios=[str(bank / "study"), str(bank / "*.json")],
        targets=[f"fake:{name}" for name in FAKE_NAMES],
        allow_expired=True,
    )
    code = _start(make_plan(options), arguments)
    if not arguments.json:
        _print_next_step()
    return code


def _print_next_step() -> None:
    """What to type to do the same with a real model, from where the user stands."""
    scenario = data_folder("scenarios") / "v1" / "scenario_001.json"
    package = "." if (data_folder("scenarios").parent / "pyproject.toml").is_file() else "ai-medicare-eval"
    python = _from_here(Path(sys.executable))
    module = Path(sys.argv[0]).suffix == ".py"
    program = f"{python} -m src.orchestrator" if module else _from_here(Path(sys.argv[0]))
    print("\nNext, with real keys (a judge is of another maker than the target):")
    print(f"  {python} -m pip install '{package}[openai,anthropic]'")
    print("  export OPENAI_API_KEY=... ANTHROPIC_API_KEY=...")
    print(f"  {'medicare-eval' if shutil.which('medicare-eval') else program} run --scenario {_from_here(scenario)} \\")
    print("    --target openai:gpt-4.1 --judges 2 --seed 42")


def _from_here(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if Path.cwd() in path.parents else path


def _show_plan(plan: RunPlan, arguments: argparse.Namespace) -> int:
    rows = estimate(plan, _price_table(arguments.prices), api_id_of=lambda name: plan.api_ids[name])
    calls = planned_calls(plan)
    calls["total"] = sum(calls.values())
    count_of_trials = len(trials(plan))
    scenario_ids = [planned.scenario.scenario_id for planned in plan.scenarios]
    document = {
        "trials": count_of_trials,
        "scenarios": scenario_ids,
        "targets": list(plan.targets),
        "verifiers": list(plan.verifiers),
        "adjudicator": plan.adjudicator,
        "repeats": plan.repeats,
        "seed": plan.seed,
        "calls": calls,
        "estimate": [vars(row) for row in rows],
        "plan_sha256": canonical.fingerprint(plan.model_dump(mode="json")),
    }
    if arguments.json:
        print(json.dumps(document, indent=2))
        return 0
    size = f"{len(plan.scenarios)} scenarios x {len(plan.targets)} targets x {plan.repeats} repeats"
    print(f"{count_of_trials} trials: {size}")
    print(f"  scenarios   {', '.join(scenario_ids)}")
    print(f"  targets     {', '.join(plan.targets)}")
    print(f"  verifiers   {', '.join(plan.verifiers)}")
    print(f"  adjudicator {plan.adjudicator}")
    print("calls, if every turn is asked, every first answer is fit and no claim is tied:")
    for role, count in calls.items():
        print(f"  {role:<12}{count:>8,}")
    print(tables.estimate_table(rows))
    print("No call was made and nothing was written.")
    return 0


def _price_table(override: Path | None) -> dict[str, Price]:
    return load_prices(override, today=today(), full_id=lambda name: full_id(canonical_name(name)))


def _as_of(override: Path | None) -> str:
    given = [f"{read_table(override).as_of} (given)"] if override else []
    return ", ".join([*given, read_table(PRICE_FILE).as_of])


def _prices(plan: RunPlan, override: Path | None) -> dict[str, Price]:
    """The known price of each model of a plan, by the name the plan gives it."""
    table = _price_table(override)
    known = {name: price_for(table, split_name(name)[0], api_id) for name, api_id in plan.api_ids.items()}
    return {name: price for name, price in known.items() if price is not None}


def _check_max_cost(manifest: Manifest, limit: float | None) -> None:
    unknown = [name for name in manifest.plan.api_ids if name not in manifest.prices]
    if limit is not None and unknown:
        raise ConfigError(
            f"--max-cost needs the price of every model, and that of {', '.join(unknown)} is not known: start the run "
            "with --prices FILE, a file of the built-in table's format."
        )


def _versions() -> dict[str, str]:
    found = {"ai-medicare-eval": __version__, "python": platform.python_version()}
    for name in DEPENDENCIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _start(plan: RunPlan, arguments: argparse.Namespace) -> int:
    failpoints = Failpoints.from_environment()
    now = datetime.now(UTC)
    _ceilings(arguments.rpm, arguments.tpm)
    manifest = Manifest(
        run_id="",
        created=now.isoformat(timespec="seconds"),
        plan_sha256=canonical.fingerprint(plan.model_dump(mode="json")),
        versions=_versions(),
        concurrency=arguments.concurrency,
        prices_as_of=_as_of(arguments.prices),
        prices=_prices(plan, arguments.prices),
        plan=plan,
    )
    _check_max_cost(manifest, arguments.max_cost)
    folder = storage.create_run_folder(arguments.out, now, failpoints)
    manifest = manifest.model_copy(update={"run_id": folder.name})
    storage.write_once(folder / storage.MANIFEST, storage.encode_record(manifest) + b"\n", failpoints, "manifest")
    return _carry_out(folder, manifest, arguments)


def resume(arguments: argparse.Namespace) -> int:
    folder: Path = arguments.run
    manifest = storage.read_manifest(folder)
    if (folder / storage.SEAL).exists():
        _print_summary(folder, manifest, storage.read_record(folder / storage.SEAL, Seal), as_json=arguments.json)
        print("This run is complete already; nothing was called.", file=sys.stderr)
        return 0
    _check_max_cost(manifest, arguments.max_cost)
    for name in manifest.plan.api_ids:
        check_usable(name)
    return _carry_out(folder, manifest, arguments)


def _carry_out(folder: Path, manifest: Manifest, arguments: argparse.Namespace) -> int:
    progress = Progress(quiet=arguments.quiet)
    try:
        seal = asyncio.run(_execute(folder, manifest, arguments, progress))
    except IncompleteRun as stopped:
        _print_summary(folder, manifest, None, as_json=arguments.json)
        limit = " --max-cost USD" if arguments.max_cost else ""
        raise IncompleteRun(f"{stopped} Go on with: medicare-eval resume {folder}{limit}") from None
    _print_summary(folder, manifest, seal, as_json=arguments.json)
    return 0


async def _execute(folder: Path, manifest: Manifest, arguments: argparse.Namespace, progress: Progress) -> Seal:
    stop = Stop()
    purse = None
    if arguments.max_cost is not None:
        purse = RunPurse(arguments.max_cost, manifest.prices, storage.call_heads(folder))
    made: dict[str, Adapter] = {}

    def adapter_for(provider: str) -> Adapter:
        if provider not in made:
            made[provider] = make_adapter(provider)
        return made[provider]

    gc.freeze()  # what is loaded by now stays: collecting it again and again costs a sixth of the CPU of a call
    gc.set_threshold(50_000, 20, 50)
    _stop_on_signal(stop)
    try:
        return await orchestrator.execute(
            folder,
            manifest,
            concurrency=arguments.concurrency,
            means=Means(
                adapter_for=adapter_for,
                limits=Limits(CALLS_A_TRIAL * arguments.concurrency, _ceilings(arguments.rpm, arguments.tpm)),
                stop=stop,
                purse=purse,
            ),
            on_call=progress.on_call,
            on_start=progress.start,
            on_trial=progress.on_trial,
        )
    finally:
        progress.stop()
        for adapter in made.values():
            await adapter.aclose()


def _ceilings(requests: list[tuple[str, int]], tokens: list[tuple[str, int]]) -> dict[str, Ceilings]:
    a_minute: dict[str, dict[str, int]] = {}
    for what, given in (("requests", requests), ("tokens", tokens)):
        for name, number in given:
            provider = split_name(canonical_name(f"{name}:any"))[0]
            a_minute.setdefault(provider, {})[what] = number
    return {provider: Ceilings(**given) for provider, given in a_minute.items()}


def _stop_on_signal(stop: Stop) -> None:
    """The first Ctrl-C lets calls under way finish; the second ends the process where it stands."""

    heard_before = False

    def heard() -> None:
        nonlocal heard_before
        if heard_before:
            os._exit(130)
        heard_before = True
        stop.ask()
        print("Stopping: calls under way are being finished. Ctrl-C again stops at once.", file=sys.stderr, flush=True)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, heard)


def _print_summary(folder: Path, manifest: Manifest, seal: Seal | None, *, as_json: bool) -> None:
    summary = reporting.summarise(folder, manifest)
    spending = reporting.spending(folder, manifest)
    names = (storage.MANIFEST, storage.JOURNAL, storage.RESULTS, storage.SEAL)
    written = [folder / name for name in names if (folder / name).exists()]
    if as_json:
        document = {"run": str(folder), "head": seal.results_head if seal else None, "sealed": seal is not None}
        costs = {"costs": [vars(row) for row in spending], "prices_as_of": manifest.prices_as_of}
        print(json.dumps({**document, **reporting.summary_json(summary), **costs}, indent=2, ensure_ascii=False))
        return
    print(tables.summary_table(summary))
    if summary.study.counts:
        print(f"\n{tables.code_table(summary)}")
    print(tables.cost_text(spending, manifest.prices_as_of))
    for notice in reporting.notices(summary):
        print(f"\n{notice}")
    print("\nWritten:")
    for path in written:
        print(f"  {path}")
    if seal:
        print(f"Head of the results (keep it elsewhere; `verify --expect` checks it):\n  {seal.results_head}")


def verify(arguments: argparse.Namespace) -> int:
    found = audit_run(arguments.run, arguments.expect)
    if arguments.json:
        print(json.dumps(vars(found), indent=2))
    else:
        print(
            f"{arguments.run}: {found.trials} of {found.planned} trials, {found.calls} calls: all is as it was written."
        )
        print(f"  torn lines left by crashes, and recovered: {found.torn_lines}")
        print(f"  head: {found.head}")
    if not found.sealed:
        raise IncompleteRun(
            f"{arguments.run}: is not sealed: the run is not complete; go on with `medicare-eval resume`."
        )
    return 0


def replay(arguments: argparse.Namespace) -> int:
    folder: Path = arguments.run
    manifest = storage.read_manifest(folder)
    path = folder / storage.RESULTS
    if not path.exists():
        raise IncompleteRun(f"{folder}: holds no results yet; go on with `medicare-eval resume {folder}`.")
    stored = sum(1 for _ in chain.ChainReader(path, chain.GENESIS))
    with path.open("rb") as file:
        compared = _Comparer(path, file)
        asyncio.run(orchestrator.recompute(folder, manifest, compared, stored))
    planned = len(trials(manifest.plan))
    print(f"{folder}: {compared.count} of {planned} results computed again from the journal: identical to the byte.")
    print(f"  head: {compared.head}")
    if compared.count < planned:
        raise IncompleteRun(f"{folder}: the run is not complete; go on with `medicare-eval resume {folder}`.")
    return 0


class _Comparer:
    """Chains results anew and holds each line against the stored one."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self.head = chain.GENESIS
        self.count = 0

    def __call__(self, payload: bytes) -> None:
        self.head, line = chain.chained(self.head, payload)
        self.count += 1
        if self._file.read(len(line)) != line:
            trial = storage.trial_id(payload)
            raise IntegrityError(
                f"{self._path}: line {self.count} ({trial}) is not what its journal gives when computed again."
            )


def models(arguments: argparse.Namespace) -> int:
    day = today()
    rows = [
        {
            "name": row.full_name,
            "api_id": row.api_id,
            "status": row.status_on(day),
            "since": row.since.isoformat() if row.since else None,
            "note": row.since_note,
            "successors": list(row.successors),
            "key": PROVIDERS[row.provider].key_variable,
            "key_is_set": PROVIDERS[row.provider].key_is_set(),
        }
        for row in MODELS
    ]
    print(json.dumps(rows, indent=2) if arguments.json else tables.model_table(rows))
    return 0


def doctor(arguments: argparse.Namespace) -> int:
    findings = doctor_module.examine(reach=arguments.reach, out=arguments.out)
    print(json.dumps(doctor_module.as_json(findings), indent=2) if arguments.json else doctor_module.table(findings))
    return 3 if any(finding.state == "error" for finding in findings) else 0


def report(arguments: argparse.Namespace) -> int:
    manifest = storage.read_manifest(arguments.run)
    for path in reporting.write_report(arguments.run, manifest, arguments.out or arguments.run / "report"):
        print(path)
    return 0
