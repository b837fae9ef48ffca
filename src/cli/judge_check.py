"""The command `judge-check`: judges measured on the gold set, with a table, their worst errors, and a record."""

from __future__ import annotations

import argparse
import asyncio
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path

from .. import storage
from ..adapters.base import Adapter
from ..adapters.models import check_not_retired, resolve
from ..adapters.registry import canonical_name, check_usable, make_adapter
from ..api import (
    CALLS_A_TRIAL,
    ceilings,
    prices_for,
    stop_on_signal,
    versions,
)
from ..calls.gateway import CallResources, Stop
from ..calls.limits import Limits
from ..calls.prices import cost
from ..errors import IncompleteRun, InputError
from ..findings.analysis.judge_agreement import RECORD
from ..judge_check.check import (
    Gold,
    check,
    load_gold,
    matrix,
    texts,
)
from ..planning.clock import today
from ..planning.plan import OFFLINE_JUDGE, check_is_judge
from ..planning.prompts import load_prompts
from ..records.judge_check import (
    CheckManifest,
    CheckPlan,
    JudgeCheck,
    JudgeMeasured,
)
from ..schemas import (
    CallParameters,
    CallPolicy,
    CallRecord,
    Label,
)
from ..stats.confusion import accuracy, macro_f1, measures
from ..stats.intervals import Share, wilson
from ..store.failpoints import Failpoints
from ..store.input_files import read_user_file
from . import tables
from .progress import Progress

LABELS: tuple[Label, Label, Label] = ("SUPPORTED", "CONTRADICTED", "NOT_IN_KEY")
SEED = 20_250_401
"""Of the resampling behind intervals; fixed, so that the same record gives the same table."""


def judge_check(arguments: argparse.Namespace) -> int:
    if arguments.resume:
        folder: Path = arguments.resume
        _, manifest = read_user_file(folder / storage.MANIFEST, CheckManifest)
        gold = load_gold(manifest.plan.split, arguments.gold)
        if manifest.plan.gold != gold.files:
            raise InputError(f"{folder}: was begun on another gold set, or another part of it; start a new check.")
    else:
        gold = load_gold(arguments.split, arguments.gold)
        plan = _plan(arguments, gold)
        now = datetime.now(UTC)
        folder = storage.create_run_folder(arguments.out, now, Failpoints.from_environment())
        manifest = CheckManifest(
            check_id=folder.name, created=now.isoformat(timespec="seconds"), versions=versions(), plan=plan
        )
        data = storage.encode_record(manifest) + b"\n"
        storage.write_once(folder / storage.MANIFEST, data, Failpoints.from_environment(), "manifest")
    try:
        record, calls = asyncio.run(_carry_out(folder, manifest, gold, arguments))
    except IncompleteRun as stopped:
        raise IncompleteRun(f"{stopped} Go on with: medicare-eval judge-check --resume {folder}") from None
    record = record.model_copy(update={"cost": _cost(manifest.plan, calls)})
    if not (folder / RECORD).exists():
        data = storage.encode_record(record) + b"\n"
        storage.write_once(folder / RECORD, data, Failpoints.from_environment(), "check")
    _show(record, folder, arguments)
    return 0


def _plan(arguments: argparse.Namespace, gold: Gold) -> CheckPlan:
    models = list(dict.fromkeys(map(canonical_name, arguments.judge_model))) or [OFFLINE_JUDGE]
    adjudicator = canonical_name(arguments.adjudicator_model) if arguments.adjudicator_model else models[-1]
    for model in (*models, adjudicator):
        check_is_judge(model)
        check_not_retired(model, today=today(), allow_retired=arguments.allow_retired)
        check_usable(model)
    return CheckPlan(
        split=arguments.split,
        gold=gold.files,
        references=gold.references,
        verifiers=tuple(islice(cycle(models), max(arguments.judges, len(models)))),
        extractor=models[0],
        adjudicator=adjudicator,
        api_ids={model: resolve(model) for model in (*models, adjudicator)},
        seed=arguments.seed,
        parameters=CallParameters(temperature=0.0, max_tokens=16_000),
        policy=CallPolicy(),
        prompts=load_prompts(),
    )


async def _carry_out(
    folder: Path, manifest: CheckManifest, gold: Gold, arguments: argparse.Namespace
) -> tuple[JudgeCheck, list[CallRecord]]:
    stop = Stop()
    made: dict[str, Adapter] = {}
    progress = Progress(quiet=arguments.quiet)

    def adapter_for(provider: str) -> Adapter:
        if provider not in made:
            made[provider] = make_adapter(provider)
        return made[provider]

    stop_on_signal(stop)
    limits = Limits(CALLS_A_TRIAL * 8, ceilings(arguments.rpm, arguments.tpm))
    means = CallResources(adapter_for=adapter_for, limits=limits, stop=stop)
    progress.start(len(gold.items), 0)
    try:
        return await check(folder, manifest, gold, means, progress.on_trial)
    finally:
        progress.stop()
        for adapter in made.values():
            await adapter.aclose()


def _cost(plan: CheckPlan, calls: list[CallRecord]) -> float | None:
    prices = prices_for(plan.api_ids, None)
    if any(record.model not in prices for record in calls):
        return None
    return sum(cost(prices[record.model], record.usage) or 0.0 for record in calls)


def _show(record: JudgeCheck, folder: Path, arguments: argparse.Namespace) -> None:
    if arguments.json:
        print(record.model_dump_json(indent=2))
        return
    print(
        f"{record.claims} claims of {record.replies} replies, {record.split.replace('_', '-')} part of the gold set\n"
    )
    print(measure_table(record))
    for judge in record.judges:
        print(f"\n{judge.name}{f' ({judge.model})' if judge.model else ''}: gold in rows, given in columns")
        print(confusion_table(judge))
    print(f"\n{kind_table(record)}")
    given = record.extractor
    found, on_gold = wilson(given.found, given.gold_claims), wilson(given.on_gold, given.extracted)
    print(f"\nExtractor {given.model}: finds {share(found)} of the gold claims ({given.found} of {given.gold_claims});")
    print(f"  {share(on_gold)} of its {given.extracted} verifiable claims lie on a gold claim;")
    print(f"  covers {given.covered} of {given.factual_sentences} factual sentences; {given.rejected} rejected.")
    paid = tables.dollars(record.cost)
    print(f"{record.calls} calls, {paid}; {len(record.failures)} failures{':' if record.failures else '.'}")
    for failure in record.failures[:5]:
        print(f"  {failure[:200]}")
    if arguments.worst:
        worst = record.judges[-1].errors[: arguments.worst]
        print(f"\nThe worst {len(worst)} of {len(record.judges[-1].errors)} errors of {record.judges[-1].name}:")
        print("\n".join(texts(worst)))
    print(f"\nRecord: {folder / RECORD}")


def share(one: Share) -> str:
    if one.value is None or one.low is None or one.high is None:
        return "-"
    return f"{one.value:.1%} ({100 * one.low:.0f}-{one.high:.0%})"


def measure_table(record: JudgeCheck) -> str:
    rows = []
    for judge in record.judges:
        counts = matrix(judge)
        whole, macro = accuracy(counts), macro_f1(counts, LABELS)
        rows.append([f"{judge.name} all", share(whole), "", "", "-" if macro is None else f"{macro:.2f} (macro)"])
        for label in LABELS:
            one = measures(counts, label, seed=SEED)
            f1 = "-" if one.f1 is None else f"{one.f1:.2f} ({one.f1_low:.2f}-{one.f1_high:.2f})"
            rows.append([label, share(one.sensitivity), share(one.specificity), share(one.precision), f1])
    columns: tables.Columns = [
        ("judge, label", "left"), ("sensitivity", "right"), ("specificity", "right"),
        ("precision", "right"), ("F1", "right"),
    ]  # fmt: skip
    caption = "In the row `all`: share of claims labeled right, and macro F1. 95% intervals."
    return tables.plain_table(columns, rows, caption=caption)


def confusion_table(judge: JudgeMeasured) -> str:
    counts = matrix(judge)
    columns: tables.Columns = [("", "left"), *((str(label or "none"), "right") for label in (*LABELS, None))]
    rows = [[gold, *(str(counts.get((gold, given), 0)) for given in (*LABELS, None))] for gold in LABELS]
    return tables.plain_table(columns, rows)


def kind_table(record: JudgeCheck) -> str:
    kinds = sorted({kind for judge in record.judges for kind in judge.by_kind})
    columns: tables.Columns = [("kind", "left"), *((judge.name, "right") for judge in record.judges)]
    rows = []
    for kind in kinds:
        cells = [judge.by_kind.get(kind, (0, 0)) for judge in record.judges]
        rows.append([kind.replace("_", " "), *(f"{right} of {total}" for right, total in cells)])
    return tables.plain_table(columns, rows, caption="Claims labeled right, by kind.")
