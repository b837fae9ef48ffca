"""`run`, `demo`, `resume`, `rejudge` and `freeze`: what starts or continues a run."""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from .. import reporting
from ..adapters.fake_adapter import NAMES as FAKE_NAMES
from ..api import runs
from ..calls.stop import Stop
from ..errors import IncompleteRun
from ..planning.plan import make_plan
from ..planning.preregistration import registration_of
from ..planning.study_file import load_study, read_study, registered_study
from ..reading import Run
from ..records.study import Study
from ..runner.shards import is_divided
from ..text.count import counted
from .dry_run import show_plan
from .next_steps import next_steps
from .options import given, registration
from .progress import ShowProgress
from .scenarios import house_rule_notice
from .shards import print_divided, shard_notice
from .signals import stop_on_signal
from .summary import print_summary


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
    study = load_study(
        None,
        {
            "scenarios": ["scenarios/v1/study", "scenarios/v1/*.json"],
            "targets": [f"fake:{name}" for name in FAKE_NAMES],
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
        lambda stop, progress: runs.resume_async(arguments.run, **given(arguments), stop=stop, progress=progress),
        arguments,
    )
    if complete:
        print("This run was complete already; nothing was called.", file=sys.stderr)
    return code


def rejudge(arguments: argparse.Namespace) -> int:
    return _carry_out(
        lambda stop, progress: runs.rejudge_async(
            arguments.run, keep_claims=arguments.keep_claims, stop=stop, progress=progress, **given(arguments)
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
