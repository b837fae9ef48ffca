"""What each command of the command line does."""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
from pathlib import Path
from typing import BinaryIO

from pydantic import ValidationError

from .. import orchestrator, storage
from ..adapters.fake_adapter import NAMES as FAKE_NAMES
from ..adapters.models import MODELS
from ..adapters.registry import PROVIDERS, check_usable
from ..api import (
    carry_out,
    check_max_cost,
    price_table,
    print_summary,
    start,
)
from ..audit import verify as audit_run
from ..calls.prices import estimate
from ..errors import IncompleteRun, InputError, IntegrityError
from ..planning.clock import today
from ..planning.plan import (
    RunOptions,
    make_plan,
    planned_calls,
    replan,
    trials,
)
from ..planning.preregistration import freeze as freeze_plan
from ..planning.preregistration import registration, write_frozen
from ..schemas import CallPolicy, RunPlan, Seal
from ..store import hash_chain, strict_json
from ..store.input_files import explain
from ..store.package_data import data_folder
from . import doctor as doctor_module
from . import tables
from .judge_check import judge_check
from .scenarios import new_scenario, scenarios, validate

__all__ = ["judge_check", "new_scenario", "scenarios", "validate"]


def run(arguments: argparse.Namespace) -> int:
    plan = _plan(arguments)
    kept = registration(arguments.plan, plan, allow_deviations=arguments.allow_deviations) if arguments.plan else None
    if arguments.dry_run:
        return _show_plan(plan, arguments)
    return start(plan, arguments, registered=kept)


def _plan(arguments: argparse.Namespace) -> RunPlan:
    try:
        return make_plan(
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
                judge_repeats=arguments.judge_repeats,
                judge_sample=arguments.judge_sample,
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


def freeze(arguments: argparse.Namespace) -> int:
    """The same options as `run`; writes what would be run, and runs nothing."""
    frozen = freeze_plan(
        _plan(arguments),
        primary_outcome=arguments.primary_outcome,
        tests=arguments.test,
        notes=arguments.notes,
    )
    digest = write_frozen(arguments.to, frozen)
    print(f"{arguments.to}: frozen, {frozen.trials} trials; sha256 {digest}")
    print(f"Publish the hash, then: medicare-eval run ... --plan {arguments.to}")
    return 0


def demo(arguments: argparse.Namespace) -> int:
    bank = data_folder("scenarios") / "v1"
    options = RunOptions(
        scenarios=[str(bank / "study"), str(bank / "*.json")],
        targets=[f"fake:{name}" for name in FAKE_NAMES],
        allow_expired=True,
    )
    code = start(make_plan(options), arguments)
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
    rows = estimate(plan, price_table(arguments.prices), api_id_of=lambda name: plan.api_ids[name])
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
        "plan_sha256": strict_json.fingerprint(plan.model_dump(mode="json")),
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


def rejudge(arguments: argparse.Namespace) -> int:
    earlier: Path = arguments.run
    manifest = storage.read_manifest(earlier)
    if not (earlier / storage.SEAL).exists():
        raise IncompleteRun(f"{earlier}: is not complete; go on with `medicare-eval resume {earlier}` first.")
    options = RunOptions(
        scenarios=[],
        targets=[],
        judges=arguments.judges,
        judge_models=arguments.judge_model,
        adjudicator_model=arguments.adjudicator_model,
        judge_repeats=arguments.judge_repeats,
        judge_sample=arguments.judge_sample,
        allow_retired=arguments.allow_retired,
    )
    plan = replan(manifest.plan, options, keep_claims=arguments.keep_claims)
    return start(plan, arguments, earlier)


def resume(arguments: argparse.Namespace) -> int:
    folder: Path = arguments.run
    manifest = storage.read_manifest(folder)
    if (folder / storage.SEAL).exists():
        print_summary(folder, manifest, storage.read_record(folder / storage.SEAL, Seal), as_json=arguments.json)
        print("This run is complete already; nothing was called.", file=sys.stderr)
        return 0
    storage.require_current(folder, manifest, "resume")
    check_max_cost(manifest, arguments.max_cost)
    for name in manifest.plan.api_ids:
        check_usable(name)
    return carry_out(folder, manifest, arguments)


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
    storage.require_current(folder, manifest, "replay")
    path = folder / storage.RESULTS
    if not path.exists():
        raise IncompleteRun(f"{folder}: holds no results yet; go on with `medicare-eval resume {folder}`.")
    stored = sum(1 for _ in hash_chain.ChainReader(path, hash_chain.GENESIS))
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
    """Chains results again and holds each line against the stored one."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self.head = hash_chain.GENESIS
        self.count = 0

    def __call__(self, payload: bytes) -> None:
        self.head, line = hash_chain.chained(self.head, payload)
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
