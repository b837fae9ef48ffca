"""`run`, `demo`, `resume`, `rejudge` and `freeze`: what starts or continues a run."""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from .. import api
from ..adapters.fake_adapter import NAMES as FAKE_NAMES
from ..calls.gateway import Stop
from ..errors import IncompleteRun
from ..planning.plan import make_plan
from ..planning.preregistration import registration
from ..planning.study_file import load_study, make_judge_options, registered_study
from ..reading import Run
from ..records.study import JudgeOptions, Study
from .dry_run import show_plan
from .next_steps import next_steps
from .options import FLAGS, given
from .progress import ShowProgress
from .signals import stop_on_signal
from .summary import print_summary


def run(arguments: argparse.Namespace) -> int:
    study = _study(arguments)
    if arguments.dry_run:
        plan = make_plan(study)
        if arguments.registered:
            registration(arguments.registered, plan, allow_deviations=arguments.allow_deviations)
        return show_plan(study, plan, as_json=arguments.json)
    return _carry_out(
        lambda stop, progress: api.run_async(
            study,
            registered=arguments.registered,
            allow_deviations=arguments.allow_deviations,
            stop=stop,
            progress=progress,
        ),
        arguments,
    )


def _study(arguments: argparse.Namespace) -> Study:
    changes = given(arguments)
    if getattr(arguments, "registered", None) and not arguments.study:
        return registered_study(arguments.registered, changes, FLAGS)
    return load_study(arguments.study, changes, {name: FLAGS[name] for name in changes})


def demo(arguments: argparse.Namespace) -> int:
    study = load_study(
        None,
        {
            "scenarios": ["scenarios/v1/study", "scenarios/v1/*.json"],
            "targets": [f"fake:{name}" for name in FAKE_NAMES],
            "allow_expired": True,
            **given(arguments),
        },
        FLAGS,
    )
    code = _carry_out(lambda stop, progress: api.run_async(study, stop=stop, progress=progress), arguments)
    if not arguments.json:
        print(f"\n{next_steps()}")
    return code


def resume(arguments: argparse.Namespace) -> int:
    complete = Run(arguments.run).complete
    code = _carry_out(
        lambda stop, progress: api.resume_async(arguments.run, **given(arguments), stop=stop, progress=progress),
        arguments,
    )
    if complete:
        print("This run was complete already; nothing was called.", file=sys.stderr)
    return code


def rejudge(arguments: argparse.Namespace) -> int:
    changes = given(arguments)
    judging = {name: value for name, value in changes.items() if name in JudgeOptions.model_fields}
    make_judge_options(judging, FLAGS)  # here too, so that an error names the flag
    return _carry_out(
        lambda stop, progress: api.rejudge_async(
            arguments.run, keep_claims=arguments.keep_claims, stop=stop, progress=progress, **changes
        ),
        arguments,
    )


def freeze(arguments: argparse.Namespace) -> int:
    study = _study(arguments)
    words = {"primary_outcome": arguments.primary_outcome, "tests": arguments.test, "notes": arguments.notes}
    said = {name: value for name, value in words.items() if value is not None}
    if said:
        kept = study.registration.model_dump(mode="json") if study.registration else {}
        study = load_study(study, {"registration": {**kept, **said}}, {"registration": "--primary-outcome"})
    frozen = api.freeze(study, to=arguments.to)
    print(f"{frozen.path}: pre-registration of {frozen.trials} trials, sha256 {frozen.sha256}")
    print(f"Publish the hash, then: medicare-eval run --registered {frozen.path}")
    return 0


Work = Callable[[Stop, ShowProgress | None], Coroutine[Any, Any, Run]]


def _carry_out(work: Work, arguments: argparse.Namespace) -> int:
    """Run to the end, or to the first Ctrl-C, and print the summary either way."""

    async def main() -> Run:
        stop = Stop()
        stop_on_signal(stop)
        return await work(stop, None if arguments.quiet else ShowProgress())

    gc.freeze()  # what is loaded by now stays: collecting it again and again costs a sixth of the CPU of a call
    gc.set_threshold(50_000, 20, 50)
    try:
        finished = asyncio.run(main())
    except IncompleteRun as stopped:
        if stopped.run:
            print_summary(Run(stopped.run), as_json=arguments.json)
        raise
    print_summary(finished, as_json=arguments.json)
    return 0
