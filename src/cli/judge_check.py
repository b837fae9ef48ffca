"""`judge-check`: what it prints. The check itself is in `judge_check`."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Sequence

from ..calls.gateway import Stop
from ..judge_check.check import CheckOptions, CheckRun, check_judges_async
from ..records.judge_check import ExtractorMeasured, JudgeCheck, JudgeError, JudgeMeasured
from ..schemas import Label
from ..stats.confusion import accuracy, macro_f1, measures
from ..stats.intervals import Share, wilson
from ..storage import encode_record
from ..text.count import counted
from ..text.money import money_text
from . import tables
from .options import given
from .progress import ShowProgress
from .signals import stop_on_signal

LABELS: tuple[Label, Label, Label] = ("SUPPORTED", "CONTRADICTED", "NOT_IN_KEY")
SEED = 20_250_401
"""Of the resampling behind intervals; fixed, so that the same record gives the same table."""
FAILURES_SHOWN = 5


def judge_check(arguments: argparse.Namespace) -> int:
    rates = given(arguments)
    options = CheckOptions(
        judge_models=arguments.judge_model,
        judges=arguments.judges,
        adjudicator_model=arguments.adjudicator_model,
        split=arguments.split,
        gold=arguments.gold,
        seed=arguments.seed,
        out=arguments.out,
        resume=arguments.resume,
        allow_retired=arguments.allow_retired,
        requests_per_minute=rates.get("requests_per_minute", {}),
        tokens_per_minute=rates.get("tokens_per_minute", {}),
    )
    done = asyncio.run(_check(options, quiet=arguments.quiet))
    if arguments.json:
        print(encode_record(done.record).decode("utf-8"))
    else:
        print("\n".join(_lines(done, worst=arguments.worst)))
    return 0


async def _check(options: CheckOptions, *, quiet: bool) -> CheckRun:
    stop = Stop()
    stop_on_signal(stop)
    return await check_judges_async(options, progress=None if quiet else ShowProgress(), stop=stop)


def _lines(done: CheckRun, *, worst: int) -> Iterator[str]:
    record = done.record
    part = "held-out" if record.split == "held_out" else "dev"
    replies = counted(record.replies, "reply", "replies")
    yield f"{counted(record.claims, 'claim')} in {replies}, {part} part of the gold set"
    yield f"\n{measure_table(record)}"
    for judge in record.judges:
        model = f" ({judge.model})" if judge.model else ""
        yield f"\n{judge.name}{model}: gold labels in rows, given labels in columns"
        yield confusion_table(judge)
    yield f"\n{kind_table(record)}"
    yield ""
    yield from _extractor_lines(record.extractor)
    failures = counted(len(record.failures), "failure")
    calls = counted(record.calls, "call")
    yield f"{calls}, {money_text(record.cost)}; {failures}{':' if record.failures else '.'}"
    yield from (f"  {failure[:200]}" for failure in record.failures[:FAILURES_SHOWN])
    if worst:
        judge = record.judges[-1]
        shown = judge.errors[:worst]
        yield f"\nThe {len(shown)} worst of {len(judge.errors)} errors by {judge.name}:"
        yield from error_lines(shown)
    yield f"\nRecord: {done.record_path}"


def _extractor_lines(measured: ExtractorMeasured) -> Iterator[str]:
    found = share(wilson(measured.found, measured.gold_claims))
    on_gold = share(wilson(measured.on_gold, measured.extracted))
    yield f"Extractor {measured.model}:"
    yield f"  finds {found} of the gold claims ({measured.found} of {measured.gold_claims});"
    yield f"  {on_gold} of its {measured.extracted} verifiable claims overlap a gold claim;"
    yield f"  covers {measured.covered} of {measured.factual_sentences} factual sentences;"
    yield f"  {measured.rejected} of its claims rejected."


def error_lines(errors: Sequence[JudgeError]) -> Iterator[str]:
    for error in errors:
        cited = f" ({', '.join(error.given_evidence)})" if error.given_evidence else ""
        given = f"{error.given or 'nothing'}{cited}"
        yield f"{error.reply_id} {error.claim_id} [{error.kind}] gold {error.gold}, given {given}"
        yield f"    {' '.join(error.text.split())}"
        yield f"    gold:  {error.gold_reason}"
        yield f"    judge: {' '.join(error.given_reason.split())}"


def share(one: Share) -> str:
    if one.value is None or one.low is None or one.high is None:
        return "-"
    return f"{one.value:.1%} ({100 * one.low:.0f}-{one.high:.0%})"


def measure_table(record: JudgeCheck) -> str:
    rows = []
    for judge in record.judges:
        counts = judge.matrix()
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
    caption = "Row `all`: claims labeled correctly, and macro F1. 95% intervals."
    return tables.plain_table(columns, rows, caption=caption)


def confusion_table(judge: JudgeMeasured) -> str:
    counts = judge.matrix()
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
    return tables.plain_table(columns, rows, caption="Claims labeled correctly, by kind.")
