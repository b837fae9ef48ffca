"""Measure judges on the gold set, from options to a record in a folder of its own.

Every call goes through the gateway and is journaled in the check's folder, as in a run, so a check that was stopped
can be resumed without making any call twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

from .. import storage
from ..adapters.models import check_not_retired, resolve
from ..adapters.registry import canonical_name, check_usable
from ..calls.batches import make_batcher, with_open_batches
from ..calls.breaker import probe_requests
from ..calls.budget import RunBudget
from ..calls.gateway import LiveGateway
from ..calls.prices import cost
from ..calls.resources import CallResources
from ..calls.stop import Stop
from ..errors import IncompleteRun, InputError, about
from ..findings.judge_agreement import RECORD, read_record
from ..planning.clock import today
from ..planning.judges import check_adjudicator, check_is_judge, families_of, judges_of_targets
from ..planning.limits import check_prices_known, limits_of, prices_for
from ..planning.plan import AUDIT_SAMPLE, JUDGE_TEMPERATURE, call_policy
from ..planning.prompts import load_prompts
from ..records.judge_check import CheckManifest, CheckPlan, JudgeCheck, Measurement, Split
from ..records.run import BatchIntent
from ..records.study import ExecutionOptions, JudgeOptions
from ..records.target import TargetSettings
from ..runner.call_resources import AdapterPool, JudgeClients, call_limits
from ..runner.new_run import versions
from ..runner.progress import OnProgress, ProgressCounter
from ..runner.wait import wait
from ..schemas import CallParameters, CallPolicy, Price, TargetJudges
from ..store.failpoints import Failpoints
from .gold import Gold, GoldItem, load_gold
from .judge_reply import JudgedReply, ReplyJudge
from .measure import measure

REPLIES_AT_ONCE = 8
LONGEST_TIMEOUT = 3_600
RESUME = "medicare-eval judge-check --resume"


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """What to check, and where the check is stored."""

    judges: JudgeOptions = field(default_factory=JudgeOptions)
    """Who judges and how, as in a run. Without judge models: the default judges of up to two providers whose keys are
    set, else the offline judge."""
    targets: Sequence[str] = ()
    """Targets of the run that the check is for: what is not set in `judges` is then chosen as for that run, which
    no model of a target's family judges."""
    measures: Sequence[Measurement] = get_args(Measurement)
    split: Split = "held_out"
    gold: Path | None = None
    """Folder of another gold set in the same format. None: the one that ships with the project."""
    limit: int | None = None
    """Judge only so many replies, drawn by the seed. None: all."""
    seed: int = 42
    timeout: float = CallPolicy().timeout_s
    """Seconds per attempt at a call."""
    out: Path = Path("judge-checks")
    """Folder in which the check's own folder is created."""
    resume: Path | None = None
    """Folder of a check that was stopped. Its judges, split and seed are used, not the ones given here."""
    prices: Path | None = None
    """A price table that adds to or overrides the built-in prices."""
    execution: ExecutionOptions = field(default_factory=ExecutionOptions)
    """Limits, as in a run. Replies are judged eight at a time, however many trials a run would have."""


@dataclass(frozen=True)
class CheckRun:
    """A finished check."""

    folder: Path
    manifest: CheckManifest
    record: JudgeCheck

    @property
    def record_path(self) -> Path:
        return self.folder / RECORD


def check_judges(options: CheckOptions | None = None, *, progress: OnProgress | None = None) -> CheckRun:
    """Measure judges on the gold set and write the record. Works where an event loop is running, too.

    Args:
        options: which judges and gold set, and where to store the check. None: the default judges, held-out part.
        progress: called with a `RunProgress` after every call and reply; each reply counts as one trial.

    Returns:
        The check's folder, manifest and record.

    Raises:
        InputError: the gold set, a model name or the folder to resume cannot be used.
        ConfigError: a model is not a judge, is retired, or has no key.
        IncompleteRun: the check was stopped. `CheckOptions(resume=...)` continues it.

    Example:
        >>> judges = JudgeOptions(judges=("offline:rules",))
        >>> run = check_judges(CheckOptions(judges=judges, split="dev"))
        >>> run.record.claims
        378
    """
    return wait(lambda stop: check_judges_async(options, progress=progress, stop=stop))


async def check_judges_async(
    options: CheckOptions | None = None, *, progress: OnProgress | None = None, stop: Stop | None = None
) -> CheckRun:
    """Like `check_judges`, to be awaited. `stop.ask()` ends the check after the calls in flight."""
    options = options or CheckOptions()
    limits_of(options.execution)  # refused before anything is written
    if options.resume:
        folder = options.resume
        manifest = read_record(folder / storage.MANIFEST, CheckManifest)
        gold = load_gold(manifest.plan.split, options.gold)
        if manifest.plan.gold != gold.files:
            raise InputError(f"{folder} was started on a different gold set. Start a new check.")
    else:
        gold = load_gold(options.split, options.gold)
        folder, manifest = _create(options.out, _plan(options, gold))
    plan = manifest.plan
    drawn = gold.drawn(plan.limit, plan.seed)
    counter = ProgressCounter(progress, folder)
    prices = prices_for(plan.api_ids, options.prices)
    resources = _resources(options, stop, counter, _budget(options, folder, plan, prices))
    judged = await _judge_all(folder, plan, drawn, resources, counter, probe=not options.execution.no_probe)
    record = measure(manifest, drawn, judged, _cost(prices, judged))
    if not (folder / RECORD).exists():
        data = storage.encode_record(record) + b"\n"
        storage.write_once(folder / RECORD, data, Failpoints.from_environment(), "check")
    return CheckRun(folder, manifest, record)


def _plan(options: CheckOptions, gold: Gold) -> CheckPlan:
    judges = options.judges
    if not 0 < options.timeout <= LONGEST_TIMEOUT:
        raise InputError(f"must be above 0 and at most {LONGEST_TIMEOUT:,} (got {options.timeout:g}).", field="timeout")
    with about("targets"):
        targets = tuple(dict.fromkeys(map(canonical_name, options.targets)))
    chosen = _judges(judges, targets)
    verifiers, adjudicator = chosen.verifiers, _adjudicator(judges, chosen, targets)
    check_adjudicator(adjudicator, verifiers)
    models = tuple(canonical_name(judge.model) for judge in judges.judges) or verifiers
    named = dict.fromkeys((*models, adjudicator) if adjudicator else models)
    for model in named:
        check_is_judge(model)
        check_not_retired(model, today=today(), allow_retired=judges.allow_retired)
        check_usable(model)
    return CheckPlan(
        split=options.split,
        gold=dict(gold.files),
        references=dict(gold.references),
        rubrics=dict(gold.rubrics),
        measures=tuple(options.measures),
        limit=options.limit,
        verifiers=verifiers,
        extractor=verifiers[0],
        scorer=verifiers[0],
        adjudicator=adjudicator,
        isolation=judges.isolation,
        audit_sample=AUDIT_SAMPLE if judges.isolation == "flagged" else 0.0,
        background=gold.background,
        api_ids={model: resolve(model) for model in named},
        seed=options.seed,
        parameters={model: _parameters(judges, model) for model in named},
        policy=call_policy(options.timeout),
        prompts=load_prompts(),
    )


def _judges(judges: JudgeOptions, targets: Sequence[str]) -> TargetJudges:
    """The judges that these targets would have in a run. A check measures one set of judges."""
    by_target = judges_of_targets(judges, {name: families_of(name, TargetSettings()) for name in targets})
    found = set(by_target.values())
    if len(found) > 1:
        raise InputError(
            "these have different judges, and a check measures those of one target. Name one of them, or name judges "
            "that are of the family of none.",
            field="targets",
        )
    return found.pop()


def _adjudicator(judges: JudgeOptions, chosen: TargetJudges, targets: Sequence[str]) -> str | None:
    """As in a run. Where judges are named and no target is, only a judge that was named, because a model that has a key
    may be the target of the run."""
    named = {canonical_name(judge.model) for judge in judges.judges}
    if named and not targets and not judges.adjudicator and chosen.adjudicator not in named:
        return None
    return chosen.adjudicator


def _parameters(judges: JudgeOptions, model: str) -> CallParameters:
    """What is sent to a judge: the shared settings, or its own."""
    shared = CallParameters(temperature=JUDGE_TEMPERATURE, max_tokens=judges.judge_max_tokens)
    own = next((one for one in judges.judges if canonical_name(one.model) == model), None)
    given = own.model_dump(include={"temperature", "max_tokens"}, exclude_none=True) if own else {}
    return shared.model_copy(update=given)


def _create(out: Path, plan: CheckPlan) -> tuple[Path, CheckManifest]:
    """Make the check's folder and write its manifest."""
    failpoints = Failpoints.from_environment()
    now = datetime.now(UTC)
    folder = storage.create_run_folder(out, now, failpoints)
    manifest = CheckManifest(
        check_id=folder.name, created=now.isoformat(timespec="seconds"), versions=versions(), plan=plan
    )
    data = storage.encode_record(manifest) + b"\n"
    storage.write_once(folder / storage.MANIFEST, data, failpoints, "manifest")
    return folder, manifest


def _budget(options: CheckOptions, folder: Path, plan: CheckPlan, prices: Mapping[str, Price]) -> RunBudget | None:
    """The money of a check, less what its journal has spent; None if there is no limit."""
    most = options.execution.max_cost
    check_prices_known(plan.api_ids, prices, most)
    return None if most is None else RunBudget(most, prices, storage.call_heads(folder))


def _resources(
    options: CheckOptions, stop: Stop | None, counter: ProgressCounter, budget: RunBudget | None
) -> CallResources:
    limits = limits_of(options.execution)
    return CallResources(
        adapter_for=AdapterPool(),
        limits=call_limits(limits, REPLIES_AT_ONCE),
        stop=stop or Stop(),
        budget=budget,
        max_outage_s=limits.max_outage_s,
        on_notice=counter.on_notice,
        batch=None if options.execution.batch is None else limits.batch == "judges",
        batch_wait_s=None if options.execution.batch_wait is None else 60 * options.execution.batch_wait,
    )


async def _judge_all(
    folder: Path, plan: CheckPlan, gold: Gold, calls: CallResources, counter: ProgressCounter, *, probe: bool
) -> list[JudgedReply]:
    with storage.RunLock(folder):
        journal = storage.Journal(
            folder / storage.JOURNAL,
            storage.manifest_sha256(folder),
            wanted=lambda reply_id: True,
            failpoints=Failpoints.from_environment(),
            resume=RESUME,
        )
        batcher = None
        try:
            # A check that was started with batches keeps using them, unless the user says otherwise.
            began = calls.batch is None and any(isinstance(note, BatchIntent) for note in journal.notes)
            batcher = make_batcher(journal, replace(calls, batch=True) if began else calls)
            gateway = LiveGateway(journal, plan.policy, calls, counter.on_call, batcher=batcher)
            if probe:
                gateway.probes.before_first_call(probe_requests(plan.api_ids, plan.parameters.__getitem__, plan.seed))
            judges = JudgeClients(
                gateway, plan.prompts, plan.api_ids, lambda model: plan.parameters[model], plan.policy.max_asks
            )
            at_once = len(gold.items) if batcher else REPLIES_AT_ONCE
            return await _each(ReplyJudge(plan, judges), gold.items, counter, at_once)
        except IncompleteRun as stopped:
            said = with_open_batches(stopped, batcher)
            raise IncompleteRun(f"{said} To continue: {RESUME} {folder}", run=folder) from None
        finally:
            counter.on_end()
            if batcher:
                await batcher.aclose()
            journal.close()
            assert isinstance(calls.adapter_for, AdapterPool)
            await calls.adapter_for.aclose()


async def _each(
    judge: ReplyJudge, items: Sequence[GoldItem], counter: ProgressCounter, at_once: int
) -> list[JudgedReply]:
    gate = asyncio.Semaphore(max(1, at_once))

    async def one(item: GoldItem) -> JudgedReply:
        async with gate:
            judged = await judge.judge(item)
        counter.on_trial()
        return judged

    counter.on_start(len(items), 0)
    # After a stop or a failure, calls in flight still finish, and each is journaled.
    ended = await asyncio.gather(*map(one, items), return_exceptions=True)
    for outcome in ended:
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome for outcome in ended if isinstance(outcome, JudgedReply)]


def _cost(prices: Mapping[str, Price], judged: Sequence[JudgedReply]) -> float | None:
    """What all calls cost; None if a price is unknown."""
    records = [record for one in judged for record in one.records]
    if any(record.model not in prices for record in records):
        return None
    return sum(cost(prices[record.model], record.usage, batch=record.batch is not None) or 0.0 for record in records)
