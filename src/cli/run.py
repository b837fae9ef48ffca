"""Commands that start, continue or join runs: `run`, `demo`, `resume`, `rejudge`, `merge` and `freeze`."""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib.util
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from .. import reporting, storage
from ..api import checks, runs
from ..calls.estimate import estimate
from ..calls.stop import Stop
from ..errors import IncompleteRun
from ..findings.rule_judge import one_model_notices
from ..planning.limits import limits_of, price_table, share_of
from ..planning.plan import make_plan
from ..planning.preregistration import registration_of
from ..planning.study_file import as_document, as_toml, completed, load_study, read_study, registered_study
from ..planning.trials import planned_calls
from ..reading import Run
from ..records.study import Study
from ..runner import shards
from ..runner.shards import is_divided
from ..schemas import RunLimits, RunPlan, Shard
from ..store.package_data import data_folder
from ..store.strict_json import fingerprint
from ..text.count import counted
from . import tables
from .options import given, own, registration
from .progress import ShowProgress, stop_on_signal
from .scenarios import house_rule_notice


def run(arguments: argparse.Namespace) -> int:
    study = _study(arguments)
    if arguments.dry_run:
        plan = make_plan(study)
        registration_of(arguments.registered, plan, allow_deviations=arguments.allow_deviations)
        _warn(study, arguments)
        return show_plan(study, plan, as_json=arguments.json)
    _warn(study, arguments)
    if arguments.shard and not arguments.quiet:
        print(f"medicare-eval: {shard_notice(study, runs.shard_of(arguments.shard))}", file=sys.stderr)
    return _carry_out(
        lambda stop, progress: runs.run_async(
            study,
            registered=arguments.registered,
            allow_deviations=arguments.allow_deviations,
            shard=arguments.shard,
            stop=stop,
            progress=progress,
        ),
        arguments,
    )


def _warn(study: Study, arguments: argparse.Namespace) -> None:
    """Say how many house rules the scenarios break, if the run is not refused for something else."""
    if not arguments.quiet and not study.strict and (notice := house_rule_notice(study)):
        make_plan(study)
        print(f"medicare-eval: {notice}", file=sys.stderr)


def _study(arguments: argparse.Namespace) -> Study:
    changes = given(arguments)
    if arguments.registered and not arguments.study:
        return registered_study(arguments.registered, changes)
    return load_study(arguments.study, changes)


def demo(arguments: argparse.Namespace) -> int:
    from ..adapters.local_adapters import NAMES

    study = load_study(
        None,
        {
            "scenarios": ["scenarios/v1/study", "scenarios/v1/*.json"],
            "targets": [f"fake:{name}" for name in NAMES],
            "allow_expired": True,
            **given(arguments),
        },
    )
    code = _carry_out(lambda stop, progress: runs.run_async(study, stop=stop, progress=progress), arguments)
    if not arguments.json:
        print(f"\n{next_steps()}")
    return code


def resume(arguments: argparse.Namespace) -> int:
    complete = Run(arguments.run).complete
    code = _carry_out(
        lambda stop, progress: runs.resume_async(
            arguments.run, stop=stop, progress=progress, **own(arguments, without="run json quiet")
        ),
        arguments,
    )
    if complete:
        print("This run was complete already; nothing was called.", file=sys.stderr)
    return code


def rejudge(arguments: argparse.Namespace) -> int:
    return _carry_out(
        lambda stop, progress: runs.rejudge_async(
            arguments.run, stop=stop, progress=progress, **own(arguments, without="run json quiet")
        ),
        arguments,
    )


def freeze(arguments: argparse.Namespace) -> int:
    changes = given(arguments)
    if said := registration(arguments):
        in_file = read_study(arguments.study).get("registration") if arguments.study else None
        changes["registration"] = {**in_file, **said} if isinstance(in_file, dict) else said
    frozen = runs.freeze(arguments.study, to=arguments.to, **changes)
    print(f"{frozen.path}: pre-registration of {counted(frozen.trials, 'trial')}, sha256 {frozen.sha256}")
    print(f"Publish the hash, then: medicare-eval run --registered {frozen.path}")
    return 0


Work = Callable[[Stop, ShowProgress | None], Coroutine[Any, Any, Run]]


def _carry_out(work: Work, arguments: argparse.Namespace) -> int:
    """Run to the end, or to the first Ctrl-C, and print the summary either way.

    A run that ends without any score has not done what it was started for, so its exit code is not 0.
    """

    async def main() -> Run:
        stop = Stop()
        stop_on_signal(stop)
        return await work(stop, None if arguments.quiet else ShowProgress())

    gc.freeze()  # what is loaded by now stays: collecting it again and again costs a sixth of the CPU of a call
    gc.set_threshold(50_000, 20, 50)
    try:
        finished = asyncio.run(main())
    except IncompleteRun as stopped:
        if stopped.run and is_divided(stopped.run):
            print_divided(Run(stopped.run), as_json=arguments.json)
        elif stopped.run:
            print_summary(Run(stopped.run), as_json=arguments.json)
        raise
    problem = reporting.nothing_scored(print_summary(finished, as_json=arguments.json))
    if problem:
        print(f"medicare-eval: {problem}", file=sys.stderr)
        return IncompleteRun.exit_code
    return 0


def merge(arguments: argparse.Namespace) -> int:
    merged = checks.merge(arguments.shard, to=arguments.to)
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


def print_summary(run: Run, *, as_json: bool) -> reporting.Summary:
    """Print it, and return it for the exit code."""
    summary = run.summary()
    spending = summary.found.calls.spending
    seal = storage.read_seal(run.path, run.manifest)
    if as_json:
        document = {
            "run": str(run.path),
            "head": seal.results_head if seal else None,
            "sealed": seal is not None,
            **reporting.summary_json(summary),
            "errors": [vars(error) for error in summary.errors],
            "costs": [vars(row) for row in spending],
            "prices_as_of": run.manifest.prices_as_of,
        }
        print(json.dumps(document, indent=2, ensure_ascii=False))
        return summary
    print(tables.summary_table(summary))
    if any(tally.codes for tally in summary.by_target.values()):
        print(f"\n{tables.code_table(summary)}")
    print(tables.wrapped(tables.cost_text(spending, run.manifest.prices_as_of)))
    if summary.errors:
        print(f"\n{tables.error_text(summary.errors)}")
    for notice in reporting.notices(summary):
        print(f"\n{tables.wrapped(notice)}")
    print("\nWritten:")
    for name in (storage.MANIFEST, storage.JOURNAL, storage.RESULTS, storage.SEAL):
        if (run.path / name).exists():
            print(f"  {run.path / name}")
    if seal:
        print("Results hash (save this somewhere else; check it later with")
        print("`medicare-eval verify RUN --expect HASH`):")
        print(f"  {seal.results_head}")
    return summary


BATCH_NOTE = (
    "Judges' calls go into batches, where their provider has them, and are estimated at batch prices. What of them",
    "is read from a cache is not promised there. Batches take up to a day; a run needs three or more rounds of them.",
)


def show_plan(study: Study, plan: RunPlan, *, as_json: bool) -> int:
    whole = completed(study, plan)
    prices = price_table(Path(study.prices) if study.prices else None)
    batch = study.batch == "judges"
    rows = estimate(plan, prices, api_id_of=lambda name: plan.api_ids[name], batch=batch)
    calls = planned_calls(plan)
    calls["total"] = sum(calls.values())
    if as_json:
        document = {
            "trials": plan.trial_count,
            "scenarios": [planned.name for planned in plan.scenarios],
            "targets": list(plan.targets),
            "verifiers": list(plan.verifiers),
            "adjudicator": plan.adjudicator,
            "judges_by_target": {name: plan.judges_of(name).model_dump(mode="json") for name in plan.targets},
            "warnings": list(one_model_notices(plan)),
            "repeats": plan.repeats,
            "seed": plan.seed,
            "calls": calls,
            "estimate": [asdict(row) for row in rows],
            "plan_sha256": fingerprint(plan.model_dump(mode="json")),
            "study": as_document(whole),
        }
        print(json.dumps(document, indent=2, ensure_ascii=False))
        return 0
    sizes = {"scenario": len(plan.scenarios), "target": len(plan.targets), "repeat": plan.repeats}
    print("# The study in full. Save this as a .toml file here and run it with: medicare-eval run FILE")
    print(as_toml(whole))
    _comment(
        f"{counted(plan.trial_count, 'trial')}: {' x '.join(counted(n, what) for what, n in sizes.items())}",
        f"  scenarios   {', '.join(planned.name for planned in plan.scenarios)}",
        f"  targets     {', '.join(plan.targets)}",
        *_judge_lines(plan),
        f"  isolation   {plan.isolation}",
        *_year_notes(plan),
        "Calls (minimum: no retries, no re-asks, no ties):",
        *(f"  {role:<12}{count:>8,}" for role, count in calls.items()),
        *tables.estimate_table(rows).splitlines(),
        *(BATCH_NOTE if batch else ()),
        "No call was made and nothing was written.",
    )
    return 0


def _judge_lines(plan: RunPlan) -> list[str]:
    """Who judges whom: one line for each target if they have different judges."""
    open_ties = "none: ties stay open for a person"
    if not plan.judges_by_target:
        lines = [f"  verifiers   {', '.join(plan.verifiers)}", f"  adjudicator {plan.adjudicator or open_ties}"]
    else:
        lines = ["  judges      each target has its own, none of its model family:"]
        for target in plan.targets:
            judges = plan.judges_of(target)
            reading = "" if judges.extractor == judges.scorer == judges.verifiers[0] else f"; reads: {judges.extractor}"
            ties = judges.adjudicator or open_ties
            lines.append(f"    {target} is judged by {', '.join(judges.verifiers)}; settles ties: {ties}{reading}")
    warned = (line for notice in one_model_notices(plan) for line in tables.wrapped(f"Warning: {notice}").splitlines())
    return [*lines, *(f"  {line}" for line in warned)]


def _year_notes(plan: RunPlan) -> list[str]:
    """What the plan year means for the keys."""
    notes = [f"  plan year   {plan.plan_year}" + (" (coming)" if plan.coming else "")]
    if plan.points_left_out:
        left_out = counted(plan.points_left_out, "point")
        notes.append(f"  left out    {left_out} of questions: figures not published, or not in the file of figures")
    return notes


def _comment(*lines: str) -> None:
    """As comments, so that all of the output is a study file."""
    for line in lines:
        print(f"# {line}".rstrip())


# What to type after the demo to try a real model, for each way to install and start this command.

NAME = "medicare-eval"
EXTRAS = "[openai,anthropic]"


@dataclass(frozen=True)
class _Way:
    """How to have this command with the SDKs of two providers."""

    install: str | None
    """None: `program` brings them."""
    program: str


def next_steps() -> str:
    way = _way()
    return "\n".join(
        [
            "Next: try a real model. You need two API keys, because the judge must come from",
            "a different provider than the target:",
            *([f"  {way.install}"] if way.install else []),
            "  export OPENAI_API_KEY=... ANTHROPIC_API_KEY=...",
            f"  {way.program} run --scenario scenarios/v1/scenario_001.json \\",
            "    --target openai:gpt-4.1 --judges 2 --seed 42",
        ]
    )


def _way() -> _Way:
    environment = Path(sys.prefix)
    wanted = _requirement()
    if "UV" in os.environ and environment.parent.name.startswith("archive-v"):  # a folder of uv's cache
        return _Way(None, f"uvx --from {wanted} {NAME}")
    if (environment / "uv-receipt.toml").is_file():
        return _Way(f"uv tool install {wanted}", NAME)
    if (environment / "pipx_metadata.json").is_file():
        if environment.parent.name == "venvs":
            return _Way(f"pipx install --force {wanted}", NAME)
        return _Way(None, f"pipx run --spec {wanted} {NAME}")
    python = _command(Path(sys.executable))
    pip = f"{python} -m pip install" if importlib.util.find_spec("pip") else f"uv pip install --python {python}"
    return _Way(f"{pip} {wanted}", _program(python))


def _requirement() -> str:
    """What an installer needs to find this package again, with two extras: its checkout, its name or its file."""
    checkout = data_folder("scenarios").parent
    if (checkout / "pyproject.toml").is_file():
        return "--editable " + shlex.quote(f"{'.' if checkout == Path.cwd() else checkout}{EXTRAS}")
    try:
        source = metadata.distribution(NAME).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        source = None
    if source is None:
        return shlex.quote(f"{NAME}{EXTRAS}")
    found = json.loads(source)
    version_control = found.get("vcs_info", {}).get("vcs")
    address = f"{version_control}+{found['url']}" if version_control else found["url"]
    return shlex.quote(f"{NAME}{EXTRAS} @ {address}")


def _program(python: str) -> str:
    started = Path(sys.argv[0])
    return _command(started) if started.stem == NAME else f"{python} -m {__name__.partition('.')[0]}.orchestrator"


def _command(path: Path) -> str:
    """The name of a program that PATH leads to, or its path from here."""
    found = shutil.which(path.name)
    return path.name if found and Path(found) == path.absolute() else shlex.quote(str(_from_here(path.absolute())))


def _from_here(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
