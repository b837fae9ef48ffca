"""Measure judges on the gold set, from options to a record in a folder of its own.

Every call goes through the gateway and is journaled in the check's folder, as in a run, so a check that was stopped
can be resumed without making any call twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path

from .. import storage
from ..adapters.models import check_not_retired, resolve
from ..adapters.registry import canonical_name, check_usable
from ..calls.gateway import CallResources, LiveGateway, Stop
from ..calls.limits import Limits
from ..calls.prices import cost
from ..errors import IncompleteRun, InputError
from ..findings.analysis.judge_agreement import RECORD
from ..planning.clock import today
from ..planning.judges import OFFLINE_JUDGE, check_is_judge
from ..planning.prices import prices_for
from ..planning.prompts import load_prompts
from ..records.gold import Split
from ..records.judge_check import CheckManifest, CheckPlan, JudgeCheck
from ..runner.adapter_pool import AdapterPool
from ..runner.judge_clients import JudgeClients
from ..runner.new_run import RunSettings, versions
from ..runner.progress import OnProgress, ProgressCounter
from ..runner.wait import wait
from ..schemas import CallParameters, CallPolicy
from ..store.failpoints import Failpoints
from ..store.input_files import read_user_file
from .gold import Gold, GoldItem, load_gold
from .judge_reply import JudgedReply, judge_reply
from .measure import measure

REPLIES_AT_ONCE = 8
CALLS_AT_ONCE = 64
"""No more than this many calls to one provider, however many replies are being judged."""
MAX_TOKENS = 16_000
RESUME = "medicare-eval judge-check --resume"


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """What to check, and where the check is stored."""

    judge_models: Sequence[str] = ()
    """`provider:model` of each judge. Empty: the offline judge."""
    judges: int = 1
    """Verifiers; they cycle through the judge models. Two or more also form a panel."""
    adjudicator_model: str | None = None
    """Settles the panel's ties. None: the last judge model."""
    split: Split = "held_out"
    gold: Path | None = None
    """Folder of another gold set in the same format. None: the one that ships with the project."""
    seed: int = 42
    out: Path = Path("judge-checks")
    """Folder in which the check's own folder is created."""
    resume: Path | None = None
    """Folder of a check that was stopped. Its judges, split and seed are used, not the ones given here."""
    allow_retired: bool = False
    requests_per_minute: Mapping[str, int] = field(default_factory=dict)
    """By provider."""
    tokens_per_minute: Mapping[str, int] = field(default_factory=dict)
    """By provider."""


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
        options: which judges and gold set, and where to store the check. None: the offline judge, held-out part.
        progress: called with a `RunProgress` after every call and reply; each reply counts as one trial.

    Returns:
        The check's folder, manifest and record.

    Raises:
        InputError: the gold set, a model name or the folder to resume cannot be used.
        ConfigError: a model is not a judge, is retired, or has no key.
        IncompleteRun: the check was stopped. `CheckOptions(resume=...)` continues it.

    Example:
        >>> run = check_judges(CheckOptions(judge_models=["offline:rules"], split="dev"))
        >>> run.record.claims
        378
    """
    return wait(lambda stop: check_judges_async(options, progress=progress, stop=stop))


async def check_judges_async(
    options: CheckOptions | None = None, *, progress: OnProgress | None = None, stop: Stop | None = None
) -> CheckRun:
    """Like `check_judges`, to be awaited. `stop.ask()` ends the check after the calls in flight."""
    options = options or CheckOptions()
    resources = _resources(options, stop)
    if options.resume:
        folder = options.resume
        _, manifest = read_user_file(folder / storage.MANIFEST, CheckManifest)
        gold = load_gold(manifest.plan.split, options.gold)
        if manifest.plan.gold != gold.files:
            raise InputError(f"{folder} was started on a different gold set. Start a new check.")
    else:
        gold = load_gold(options.split, options.gold)
        folder, manifest = _create(options.out, _plan(options, gold))
    judged = await _judge_all(folder, manifest.plan, gold, resources, ProgressCounter(progress, folder))
    record = measure(manifest, judged, _cost(manifest.plan, judged))
    if not (folder / RECORD).exists():
        data = storage.encode_record(record) + b"\n"
        storage.write_once(folder / RECORD, data, Failpoints.from_environment(), "check")
    return CheckRun(folder, manifest, record)


def _plan(options: CheckOptions, gold: Gold) -> CheckPlan:
    models = list(dict.fromkeys(map(canonical_name, options.judge_models))) or [OFFLINE_JUDGE]
    adjudicator = canonical_name(options.adjudicator_model) if options.adjudicator_model else models[-1]
    for model in (*models, adjudicator):
        check_is_judge(model)
        check_not_retired(model, today=today(), allow_retired=options.allow_retired)
        check_usable(model)
    return CheckPlan(
        split=options.split,
        gold=dict(gold.files),
        references=dict(gold.references),
        verifiers=tuple(islice(cycle(models), max(options.judges, len(models)))),
        extractor=models[0],
        adjudicator=adjudicator,
        api_ids={model: resolve(model) for model in (*models, adjudicator)},
        seed=options.seed,
        parameters=CallParameters(temperature=0.0, max_tokens=MAX_TOKENS),
        policy=CallPolicy(),
        prompts=load_prompts(),
    )


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


@dataclass(frozen=True)
class _Resources:
    pool: AdapterPool
    calls: CallResources


def _resources(options: CheckOptions, stop: Stop | None) -> _Resources:
    settings = RunSettings(requests_per_minute=options.requests_per_minute, tokens_per_minute=options.tokens_per_minute)
    pool = AdapterPool()
    limits = Limits(CALLS_AT_ONCE, settings.ceilings())
    return _Resources(pool, CallResources(adapter_for=pool, limits=limits, stop=stop or Stop()))


async def _judge_all(
    folder: Path, plan: CheckPlan, gold: Gold, resources: _Resources, counter: ProgressCounter
) -> list[JudgedReply]:
    with storage.RunLock(folder):
        journal = storage.Journal(
            folder / storage.JOURNAL,
            storage.manifest_sha256(folder),
            wanted=lambda reply_id: True,
            failpoints=Failpoints.from_environment(),
            resume=RESUME,
        )
        try:
            judges = JudgeClients(
                LiveGateway(journal, plan.policy, resources.calls, counter.on_call),
                plan.prompts,
                plan.api_ids,
                lambda model: plan.parameters,
                plan.policy.max_asks,
            )
            return await _each(judges, plan, gold.items, counter)
        except IncompleteRun as stopped:
            raise IncompleteRun(f"{stopped} To continue: {RESUME} {folder}", run=folder) from None
        finally:
            counter.on_end()
            journal.close()
            await resources.pool.aclose()


async def _each(
    judges: JudgeClients, plan: CheckPlan, items: Sequence[GoldItem], counter: ProgressCounter
) -> list[JudgedReply]:
    gate = asyncio.Semaphore(REPLIES_AT_ONCE)

    async def one(item: GoldItem) -> JudgedReply:
        async with gate:
            judged = await judge_reply(judges, plan, item)
        counter.on_trial()
        return judged

    counter.on_start(len(items), 0)
    # After a stop or a failure, calls in flight still finish, and each is journaled.
    ended = await asyncio.gather(*map(one, items), return_exceptions=True)
    for outcome in ended:
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome for outcome in ended if isinstance(outcome, JudgedReply)]


def _cost(plan: CheckPlan, judged: Sequence[JudgedReply]) -> float | None:
    """What all calls cost; None if a price is unknown."""
    prices = prices_for(plan.api_ids, None)
    records = [record for one in judged for record in one.records]
    if any(record.model not in prices for record in records):
        return None
    return sum(cost(prices[record.model], record.usage) or 0.0 for record in records)
