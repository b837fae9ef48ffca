"""`judge-check`: what it prints. The check itself is in `judge_check`."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle, islice
from typing import get_args

from ..adapters.registry import canonical_name
from ..calls.stop import Stop
from ..errors import InputError
from ..findings.code_error import code_rates
from ..findings.judge_agreement import gold_reply, read_record
from ..judge_check.check import CheckOptions, CheckRun, check_judges_async
from ..planning.study_file import make_execution_options, make_judge_options
from ..records.judge_check import (
    CheckManifest,
    CheckPlan,
    CodesMeasured,
    ExtractorMeasured,
    Given,
    JudgeCheck,
    JudgeError,
    JudgeMeasured,
    Measurement,
    NotCoded,
)
from ..records.study import ExecutionOptions, JudgeOptions
from ..schemas import Label
from ..scoring.definitions import SHARES
from ..stats.clustered import ClusteredShare
from ..stats.confusion import Confusion, precision, precision_with_spurious, recall, share_right
from ..stats.intervals import Share
from ..storage import MANIFEST, encode_record
from ..text.count import counted
from ..text.money import money_text
from ..text.rounded import percent
from . import tables
from .options import given
from .progress import ShowProgress, stop_on_signal

LABELS: tuple[Label, Label, Label] = ("SUPPORTED", "CONTRADICTED", "NOT_IN_KEY")
OUTCOMES: tuple[Given, ...] = (*LABELS, "open", "missed")
PARTS = {"dev": "dev part", "held_out": "held-out part", "second": "second part", "third": "third part"}
FAILURES_SHOWN = 5
LEFT_OUT: dict[NotCoded, str] = {
    "no_code": "whose question has no code",
    "several_turns": "whose question has several turns",
    "not_labeled": "whose code also goes by what is not labeled",
}
"""Why a gold reply has no study code."""


def judge_check(arguments: argparse.Namespace) -> int:
    said = given(arguments)
    judges = {name: value for name, value in said.items() if name in JudgeOptions.model_fields}
    if arguments.resume:
        _check_settings(arguments)
    every: tuple[Measurement, ...] = get_args(Measurement)
    options = CheckOptions(
        judges=make_judge_options(judges),
        targets=tuple(said.get("targets", ())),
        measures=tuple(one for one in every if arguments.only in (None, one.replace("_", "-"))),
        gold=arguments.gold,
        limit=arguments.limit,
        out=arguments.out,
        resume=arguments.resume,
        execution=make_execution_options(
            {name: value for name, value in said.items() if name in ExecutionOptions.model_fields}
        ),
        **{name: value for name in ("split", "seed", "timeout") if (value := getattr(arguments, name)) is not None},
    )
    done = asyncio.run(_check(options, quiet=arguments.quiet))
    if arguments.json:
        print(encode_record(done.record).decode("utf-8"))
    else:
        print("\n".join(_lines(done, worst=arguments.worst)))
    return 0


def _check_settings(arguments: argparse.Namespace) -> None:
    """Refuse to resume a check with other settings than it was started with: they would be ignored."""
    folder = arguments.resume
    if "targets" in given(arguments):
        raise InputError(f"{folder} has its judges already, so --target changes nothing. Leave out --target.")
    plan = read_record(folder / MANIFEST, CheckManifest).plan
    kept = _settings_of(plan)
    for name, value in _settings_given(arguments, plan, kept).items():
        if value != kept[name]:
            flag = arguments.flags[name]
            raise InputError(
                f"{folder} was started with {flag} {kept[name]} and cannot be resumed with {flag} {value}. Leave out "
                f"{flag}, or start a new check."
            )


def _settings_given(arguments: argparse.Namespace, plan: CheckPlan, known: Iterable[str]) -> dict[str, object]:
    """What the user typed, in the form of `_settings_of`."""
    found = {name: value for name in known if (value := vars(arguments).get(name)) is not None}
    if "judges" in found:
        models = cycle(canonical_name(name) for name in found["judges"])
        found["judges"] = " ".join(islice(models, len(plan.verifiers)))
    if "adjudicator" in found and found["adjudicator"] != "none":
        found["adjudicator"] = canonical_name(found["adjudicator"])
    return found


def _settings_of(plan: CheckPlan) -> dict[str, object]:
    """What a check was started with, by the name of the option."""
    return {
        "split": plan.split,
        "only": plan.measures[0].replace("_", "-") if len(plan.measures) == 1 else "both",
        "limit": plan.limit or "all",
        "seed": plan.seed,
        "timeout": plan.policy.timeout_s,
        "isolation": plan.isolation,
        "verifiers": len(plan.verifiers),
        "judge_max_tokens": plan.parameters[plan.extractor].max_tokens,
        "judges": " ".join(plan.verifiers),
        "adjudicator": plan.adjudicator or "none",
    }


async def _check(options: CheckOptions, *, quiet: bool) -> CheckRun:
    stop = Stop()
    stop_on_signal(stop)
    return await check_judges_async(options, progress=None if quiet else ShowProgress(), stop=stop)


def _lines(done: CheckRun, *, worst: int) -> Iterator[str]:
    record = done.record
    measured = [*([record.end_to_end] if record.end_to_end else []), *record.judges]
    yield from _heading(record)
    yield f"\n{measure_table(measured)}"
    for judge in measured:
        model = f" ({judge.model})" if judge.model else ""
        yield f"\n{judge.name}{model}: gold labels in rows, what they got in columns"
        yield confusion_table(judge)
    yield f"\n{kind_table(measured)}"
    yield ""
    yield from _remarks(record)
    failures = counted(len(record.failures), "failure")
    calls = counted(record.calls, "call")
    yield f"{calls}, {money_text(record.cost)}; {failures}{':' if record.failures else '.'}"
    yield from (f"  {failure[:200]}" for failure in record.failures[:FAILURES_SHOWN])
    if worst:
        judge = record.end_to_end or record.judges[-1]
        shown = judge.errors[:worst]
        yield f"\nThe {len(shown)} worst of {len(judge.errors)} errors, {judge.name}:"
        yield from error_lines(shown)
    yield f"\nRecord: {done.record_path}"


def _heading(record: JudgeCheck) -> Iterator[str]:
    drawn = ", drawn at random" if record.limit else ""
    replies = counted(record.replies, "reply", "replies")
    yield f"{counted(record.claims, 'claim')} in {replies}{drawn}, {PARTS[record.split]} of the gold set"
    ties = f"settled by {record.adjudicator}" if record.adjudicator else "not settled (they stay open)"
    yield f"extractor {record.extractor}, verifiers {', '.join(record.verifiers)}"
    yield f"ties {ties}, isolation {record.isolation}"


def _remarks(record: JudgeCheck) -> Iterator[str]:
    if record.codes:
        yield from code_lines(record.codes)
    if record.extractor_measured:
        yield from _extractor_lines(record.extractor_measured)
    if record.off_topic:
        labels = counted(record.off_topic, "gold label")
        yield f"{labels} a verifier may not give with the gold evidence (topical overlap)."


def code_lines(measured: CodesMeasured) -> Iterator[str]:
    """How often the judges lead to the study code that follows from the gold labels."""
    yield f"Study codes, end to end, of {counted(len(measured.replies), 'reply', 'replies')}:"
    for code in SHARES:
        found, wrongly = code_rates(measured, code)
        yield f"  {code} found {_of(found)}, wrongly given {_of(wrongly)};"
    open_codes = sum(one.given == "incomplete_data" for one in measured.replies)
    yield f"  {open_codes} left without a code by the judges, which do not count here;"
    why = "; ".join(f"{n} {LEFT_OUT[reason]}" for reason, n in measured.left_out.items())
    yield f"  not coded: {why or 'none'}."


def _of(share: Share) -> str:
    interval = "" if share.low is None or share.high is None else f" ({percent(share.low)}-{percent(share.high)}%)"
    return f"{share.count} of {share.n}{interval}"


def _extractor_lines(measured: ExtractorMeasured) -> Iterator[str]:
    yield f"Extractor {measured.model}:"
    yield f"  {measured.found} of {measured.gold_claims} gold claims found;"
    yield f"  {measured.on_gold} of {measured.extracted} extracted claims match a gold claim;"
    yield f"  {measured.covered} of {measured.sentences} sentences covered,"
    yield f"  {counted(measured.verbatim, 'passage')} made into claims in their own words;"
    yield f"  {counted(measured.rejected, 'claim')} rejected."


def error_lines(errors: Sequence[JudgeError]) -> Iterator[str]:
    for error in errors:
        cited = f" ({', '.join(error.given_evidence)})" if error.given_evidence else ""
        yield f"{error.reply_id} {error.claim_id} [{error.kind}] gold {error.gold}, given {error.given}{cited}"
        yield f"    {' '.join(error.text.split())}"
        yield f"    gold:  {error.gold_reason}"
        yield f"    judge: {' '.join(error.given_reason.split())}"


def share(one: ClusteredShare) -> str:
    if one.value is None or one.low is None or one.high is None:
        return "-"
    return f"{percent(one.value, 1)}% ({percent(one.low)}-{percent(one.high)}%)"


def _percent(one: ClusteredShare) -> str:
    return "-" if one.value is None else f"{percent(one.value, 1)}%"


def confusions(judge: JudgeMeasured) -> list[Confusion]:
    """By reply; claims that background facts decided are left out."""
    return [gold_reply(reply).confusion for reply in judge.replies]


def measure_table(measured: Sequence[JudgeMeasured]) -> str:
    rows = []
    for judge in measured:
        replies = confusions(judge)
        whole = share_right(replies)
        rows.append([f"{judge.name}, all", str(whole.n), f"{whole.effective:.0f}", share(whole), ""])
        for label in LABELS:
            found = recall(replies, label)
            size = f"{found.effective:.0f}"
            rows.append([f"  {label}", str(found.n), size, share(found), share(precision(replies, label))])
    headings = ("judges, gold label", "claims", "effective", "right (recall)", "precision")
    caption = (
        "95% intervals, by reply: claims of one reply are not independent, and\n"
        "`effective` is the number of independent claims that would tell as much.\n"
        "Precision is over claims that match a gold claim; `with spurious`, in the\n"
        "table of counts, is precision if every spurious claim counts as wrong."
    )
    return tables.plain_table(headings, rows, caption=caption)


def confusion_table(judge: JudgeMeasured) -> str:
    counts, spurious = judge.matrix(), judge.spurious()
    rows = [[gold, *(str(counts.get((gold, got), 0)) for got in OUTCOMES)] for gold in LABELS]
    if spurious:
        rows.append(["spurious", *(str(spurious.get(got, 0)) for got in OUTCOMES[:-1]), ""])
        replies = [gold_reply(reply) for reply in judge.replies]
        rows.append(["with spurious", *(_percent(precision_with_spurious(replies, label)) for label in LABELS), "", ""])
    return tables.plain_table(("", *OUTCOMES), rows)


def kind_table(measured: Sequence[JudgeMeasured]) -> str:
    kinds = sorted({kind for judge in measured for kind in judge.by_kind})
    rows = []
    for kind in kinds:
        cells = [judge.by_kind.get(kind, (0, 0)) for judge in measured]
        rows.append([kind.replace("_", " "), *(f"{right} of {total}" for right, total in cells)])
    headings = ("kind", *(judge.name for judge in measured))
    return tables.plain_table(headings, rows, caption="Claims labeled correctly, by kind.")
