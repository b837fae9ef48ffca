"""Starting, continuing and re-judging runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import orchestrator, storage
from ..adapters.registry import check_usable
from ..calls.people import People
from ..calls.stop import Stop
from ..engines.run import Execution, carry_out
from ..errors import IncompleteRun, InputError, from_origin
from ..planning import preregistration
from ..planning.limits import check_prices_known, limits_of, share_of, trials_at_once
from ..planning.plan import make_plan, replan
from ..planning.study_file import (
    as_document,
    completed,
    given,
    load_study,
    make_execution_options,
    make_judge_options,
    origin_of,
    registered_study,
    seen_from,
)
from ..planning.targets import check_unchanged
from ..reading import Run
from ..records.model_name import is_person
from ..records.run import MAX_SHARDS
from ..records.study import ExecutionOptions, Study
from ..runner.call_resources import AdapterPool, call_resources, current_limits
from ..runner.new_run import create_run, transcripts_of, write_preregistration
from ..runner.progress import OnProgress, ProgressCounter
from ..runner.shards import is_divided, parent_of, remove_shards
from ..runner.wait import wait
from ..schemas import Manifest, RunLimits, RunPlan, Shard
from ..store.run_folder import PathLike, as_path


def study(source: Study | Mapping[str, Any] | PathLike | None = None, /, **changes: Any) -> Study:
    """A study from a file, from keywords, or from a file changed by keywords.

    Args:
        source: a study file (TOML), a `Study`, or a dict of its fields. None: keywords alone.
        changes: fields of `Study`; each replaces what the source says, except None, which leaves it.

    Returns:
        The study, checked field by field. Models and scenario files are checked by `plan`.

    Raises:
        InputError: a field is missing, unknown or has a value that is not allowed.

    Example:
        >>> import medicare_eval as me
        >>> me.study(scenarios=["scenarios/v1"], targets=["fake:careful"], repeats=3).repeats
        3
    """
    if isinstance(source, Mapping):
        return load_study(None, {**source, **changes})
    return load_study(source if source is None or isinstance(source, Study) else as_path(source), changes)


def plan(source: Study | Mapping[str, Any] | PathLike | None = None, /, **changes: Any) -> RunPlan:
    """What a study comes to: scenarios with their keys filled in, models, parameters, seeds. Calls nothing.

    Args:
        source: a study file (TOML), a `Study`, or a dict of its fields. None: keywords alone.
        changes: fields of `Study`; each replaces what the source says, except None, which leaves it.

    Returns:
        The plan. `len(plan.scenarios) * len(plan.targets) * plan.repeats` is its number of trials (`trial_count`).

    Raises:
        InputError: a file, field or value cannot be used.
        ConfigError: a key or SDK is missing, or a judge is not allowed to judge a target.

    Example:
        >>> import medicare_eval as me
        >>> plan = me.plan(scenarios=["scenarios/v1/scenario_001.json"], targets=["fake:careful", "fake:wrong"])
        >>> plan.trial_count
        2
    """
    with from_origin(origin_of(source, changes)):
        return make_plan(study(source, **changes))


async def run_async(
    source: Study | Mapping[str, Any] | PathLike | None = None,
    /,
    *,
    registered: PathLike | None = None,
    allow_deviations: bool = False,
    shard: str | None = None,
    progress: OnProgress | None = None,
    stop: Stop | None = None,
    **changes: Any,
) -> Run:
    """Like `run`, to be awaited. `stop.ask()` ends the run after the calls in flight."""
    registration_file = None if registered is None else as_path(registered)
    with from_origin(origin_of(registration_file if source is None else source, changes)):
        if registration_file and source is None:
            chosen = registered_study(registration_file, changes)
        else:
            chosen = study(source, **changes)
        made = make_plan(chosen)
        kept = preregistration.registration_of(registration_file, made, allow_deviations=allow_deviations)
        new = create_run(
            made,
            out=Path(chosen.out),
            options=chosen,
            prices=Path(chosen.prices) if chosen.prices else None,
            study=completed(chosen, made),
            registration=kept,
            shard=None if shard is None else shard_of(shard),
        )
    await execute(new.folder, new.manifest, chosen, progress=progress, stop=stop)
    return Run(new.folder)


def shard_of(text: str) -> Shard:
    """A shard as a user writes it: `2/5`."""
    index, slash, of = text.partition("/")
    try:
        shard = Shard(index=int(index), of=int(of)) if slash else None
    except ValueError:
        shard = None
    if shard is None or shard.index > shard.of:
        raise InputError(f"{text!r}: expected I/K, for example 2/5. K is at most {MAX_SHARDS}.", field="shard")
    return shard


def run(
    source: Study | Mapping[str, Any] | PathLike | None = None,
    /,
    *,
    registered: PathLike | None = None,
    allow_deviations: bool = False,
    shard: str | None = None,
    progress: OnProgress | None = None,
    **changes: Any,
) -> Run:
    """Ask every target every scenario and judge the answers.

    Args:
        source: a study file (TOML), a `Study`, or a dict of its fields. None: keywords alone.
        registered: a pre-registration made by `freeze` that the run must match. With it, no source is needed.
        allow_deviations: run even if the plan differs from the pre-registration; reports list the differences.
        shard: `"2/5"` carries out the second of five parts, with a fifth of the limits; `merge` joins the parts.
        progress: called with a `RunProgress` after every call and trial; `medicare_eval.ShowProgress()` shows a bar.
        changes: fields of `Study`; each replaces what the source says, except None, which leaves it.

    Returns:
        The complete run.

    Raises:
        InputError: a file, field or value cannot be used. Nothing was called.
        ConfigError: a key or SDK is missing, or a judge is not allowed to judge a target. Nothing was called.
        IncompleteRun: the run stopped before its end (its `run` says where). `resume` continues it.
        StorageError: the disk refused. What was saved is intact.

    Example:
        >>> import medicare_eval as me
        >>> run = me.run(scenarios=["scenarios/v1/scenario_001.json"], targets=["fake:careful"])
        >>> run.complete
        True
    """
    return wait(
        lambda stop: run_async(
            source,
            registered=registered,
            allow_deviations=allow_deviations,
            shard=shard,
            progress=progress,
            stop=stop,
            **changes,
        )
    )


async def resume_async(
    path: PathLike, *, progress: OnProgress | None = None, stop: Stop | None = None, **settings: Any
) -> Run:
    """Like `resume`, to be awaited."""
    return await resume_with_people(as_path(path), None, settings, progress=progress, stop=stop)


async def resume_with_people(
    folder: Path,
    people: People | None,
    settings: Mapping[str, Any],
    *,
    progress: OnProgress | None = None,
    stop: Stop | None = None,
) -> Run:
    """Continue a run whose calls to people wait in `people`; None: it goes as far as it can without them."""
    options = make_execution_options(given(settings))
    manifest = storage.read_manifest(folder)
    if storage.read_seal(folder, manifest):
        remove_shards(folder)
        return Run(folder)
    storage.require_current(folder, manifest, "resume")
    if run := parent_of(folder):
        raise InputError(f"{folder} is a part of {run}. To continue: medicare-eval resume {run}")
    held = current_limits(folder, manifest)
    plan, max_cost = manifest.plan, limits_of(options, held).max_cost
    check_prices_known(plan.api_ids, manifest.prices, max_cost, plan.most_searches)
    for name in manifest.models_called:
        check_usable(name)
    if not manifest.transcripts:
        check_unchanged(plan)
    await execute(folder, manifest, options, held=held, progress=progress, stop=stop, people=people)
    return Run(folder)


def resume(path: PathLike, *, progress: OnProgress | None = None, **settings: Any) -> Run:
    """Continue a run that was stopped or killed. No recorded call is made or paid for again.

    Args:
        path: the run folder.
        progress: called with a `RunProgress` after every call and trial.
        settings: fields of `ExecutionOptions`: concurrency, calls_in_flight, max_cost (for the whole run, with what was
            spent before), requests_per_minute, tokens_per_minute, max_outage, no_probe. A limit that is not given stays
            what it was.

    Returns:
        The complete run. A run that was complete already is returned as it is.

    Raises:
        InputError: not a run folder, or one of another format, or a value that cannot be used.
        ConfigError: a key or SDK is missing.
        IncompleteRun: the run stopped again.

    Example:
        >>> import medicare_eval as me
        >>> run = me.run(scenarios=["scenarios/v1/scenario_001.json"], targets=["fake:careful"])
        >>> me.resume(run.path).complete
        True
    """
    return wait(lambda stop: resume_async(path, progress=progress, stop=stop, **settings))


async def rejudge_async(
    path: PathLike,
    *,
    keep_claims: bool = False,
    out: PathLike = "runs",
    prices: PathLike | None = None,
    progress: OnProgress | None = None,
    stop: Stop | None = None,
    **changes: Any,
) -> Run:
    """Like `rejudge`, to be awaited."""
    earlier = as_path(path)
    transcripts = transcripts_of(earlier, Path(out), keep_claims=keep_claims)
    settings = {name: value for name, value in changes.items() if name in ExecutionOptions.model_fields}
    judging = {name: value for name, value in changes.items() if name not in settings}
    made = replan(storage.read_manifest(earlier).plan, make_judge_options(judging), keep_claims=keep_claims)
    options = make_execution_options(given(settings))
    new = create_run(
        made, out=Path(out), options=options, prices=Path(prices) if prices else None, transcripts=transcripts
    )
    await execute(new.folder, new.manifest, options, progress=progress, stop=stop, earlier=earlier)
    return Run(new.folder)


def rejudge(
    path: PathLike,
    *,
    keep_claims: bool = False,
    out: PathLike = "runs",
    prices: PathLike | None = None,
    progress: OnProgress | None = None,
    **changes: Any,
) -> Run:
    """Judge the transcripts of a complete run again, with other judges, as a new run. No target is called.

    Args:
        path: the earlier run; it is read and left as it is.
        keep_claims: reuse the extracted claims too, so that verdicts compare claim by claim.
        out: the folder that gets the new run folder.
        prices: a price table that adds to or overrides the built-in prices.
        progress: called with a `RunProgress` after every call and trial.
        changes: fields of `JudgeOptions` (judges, verifiers, adjudicator, judge_repeats, judge_sample, allow_retired)
            and of `ExecutionOptions` (concurrency, calls_in_flight, max_cost and so on, as in `resume`).

    Returns:
        The new run.

    Raises:
        InputError: not a run folder, or a field or value cannot be used.
        IncompleteRun: the earlier run is not complete, or this one stopped before its end.
        ConfigError: a judge is not allowed to judge a target, or its key or SDK is missing.

    Example:
        >>> import medicare_eval as me
        >>> run = me.run(scenarios=["scenarios/v1/scenario_001.json"], targets=["fake:careful"])
        >>> again = me.rejudge(run.path, judges=["offline:rules"], keep_claims=True)
        >>> me.compare([run.path, again.path]).trials
        1
    """
    return wait(
        lambda stop: rejudge_async(
            path, keep_claims=keep_claims, out=out, prices=prices, progress=progress, stop=stop, **changes
        )
    )


@dataclass(frozen=True)
class Frozen:
    """A pre-registration that was written."""

    path: Path
    trials: int
    sha256: str
    """Of the file: what to publish."""


def freeze(source: Study | Mapping[str, Any] | PathLike | None = None, /, *, to: PathLike, **changes: Any) -> Frozen:
    """Write a pre-registration: everything that decides a study, by hash, before it is run.

    Args:
        source: a study file (TOML), a `Study`, or a dict of its fields. None: keywords alone.
        to: the file to write; an existing file is never replaced.
        changes: fields of `Study`. `registration` says the primary outcome, the tests and notes in words.

    Returns:
        The file and its hash. `run(registered=...)` needs nothing else.

    Raises:
        InputError: the study has no `registration`, cannot be planned, or the file exists already.
        ConfigError: a key or SDK is missing, or a judge is not allowed to judge a target.

    Example:
        >>> import medicare_eval as me
        >>> frozen = me.freeze(
        ...     scenarios=["scenarios/v1/scenario_001.json"],
        ...     targets=["fake:careful"],
        ...     registration={"primary_outcome": "share of accurate and complete answers"},
        ...     to="registered.json",
        ... )
        >>> me.run(registered="registered.json").manifest.registration.deviations
        ()
    """
    path = Path(to)
    with from_origin(origin_of(source, changes)):
        chosen = study(source, **changes)
        if chosen.registration is None:
            raise InputError("a pre-registration needs a primary outcome.", field="registration.primary_outcome")
        made = make_plan(chosen)
    document = seen_from(as_document(completed(chosen, made)), path.parent)
    del document["out"]  # where runs go is up to the folder they are started from
    frozen = preregistration.freeze(made, chosen.registration, study=document)
    return Frozen(path, frozen.trials, write_preregistration(path, frozen))


async def execute(
    folder: Path,
    manifest: Manifest,
    options: ExecutionOptions,
    *,
    held: RunLimits | None = None,
    progress: OnProgress | None,
    stop: Stop | None,
    earlier: Path | None = None,
    people: People | None = None,
) -> None:
    """Carry a run to its end from wherever it is. `held`: its limits so far, if it was started before."""
    if manifest.transcripts and earlier is None:
        earlier = storage.earlier_folder(folder, manifest)
        if not earlier.is_dir():
            raise InputError(f"{earlier}, whose transcripts this run judges, does not exist. Put it back.")
    limits = limits_of(options, held)
    if is_divided(folder) and limits.batch != "none":
        raise InputError(f"{folder} is divided among processes, which send no batches. Leave this out.", field="batch")
    noted = None if held is None or limits == held else limits
    counter = ProgressCounter(progress, folder)
    people = people or People()
    made = Execution(
        folder=folder, manifest=manifest, options=options, limits=limits, noted=noted, earlier=earlier,
        stop=stop or Stop(), counter=counter,
    )  # fmt: skip
    try:
        several = options.engine != "local" or (options.processes or 1) > 1
        by_people = any(map(is_person, manifest.plan.judge_models()))  # whom one process asks
        if is_divided(folder) or (several and not by_people):
            await carry_out(made)
        else:
            await _execute_here(made, people)
    except IncompleteRun as stopped:
        command = "review continue" if people.needed else "resume"
        raise IncompleteRun(f"{stopped} To continue: medicare-eval {command} {folder}", run=folder) from None
    finally:
        counter.on_end()


async def _execute_here(run: Execution, people: People) -> None:
    """Carry out a run, or a shard with its share of the limits, in this process."""
    folder, manifest, options, counter = run.folder, run.manifest, run.options, run.counter
    share = share_of(run.limits, manifest.shard.of) if manifest.shard else run.limits
    pool = AdapterPool()
    try:
        await orchestrator.execute(
            folder,
            manifest,
            concurrency=trials_at_once(options, share),
            resources=call_resources(
                folder, manifest, share, options, pool=pool, stop=run.stop, counter=counter, people=people
            ),
            on_call=counter.on_call,
            on_start=counter.on_start,
            on_trial=counter.on_trial,
            earlier=run.earlier,
            limits=run.noted,
            probe=not options.no_probe,
        )
    finally:
        await pool.aclose()
