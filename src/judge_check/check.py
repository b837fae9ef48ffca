"""Checking judges on the gold set: the extractor reads its replies, the verifiers label its claims, code counts errors.

Verifiers get the gold claims, not the extractor's, so that each is measured on its own. Every call goes through the
gateway and is journaled in the check's folder, as in a run; a check that was stopped goes on where it stood.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .. import storage
from ..agents import (
    adjudicator,
    extractor,
    questioner,
    verifier,
)
from ..agents.ask import JudgeClient
from ..calls.gateway import CallId, CallResources, LiveGateway
from ..errors import InputError
from ..planning.library import Library
from ..planning.scenario_files import expand, read_scenario
from ..records.base import severity_rank
from ..records.gold import (
    ClaimKind,
    GoldClaim,
    GoldFile,
    GoldReply,
    Split,
)
from ..records.judge_check import (
    CheckManifest,
    CheckPlan,
    ExtractorMeasured,
    JudgeCheck,
    JudgeError,
    JudgeMeasured,
    LabelCount,
)
from ..runner.judge_clients import JudgeClients
from ..schemas import (
    CallRecord,
    ClaimInView,
    ExtractorInput,
    KeyInView,
    Label,
    PlannedScenario,
    QuestionerInput,
    Verdict,
)
from ..store.failpoints import Failpoints
from ..store.input_files import read_user_file
from ..store.package_data import data_folder
from ..store.strict_json import derive_seed, fingerprint, sha256
from ..text.coverage import coverage
from ..text.quotes import find_quote

PANEL = "panel"
_AT_ONCE = 8


@dataclass(frozen=True)
class Item:
    """One reply of the gold set with what judges see of it."""

    reply: GoldReply
    question: str
    key: KeyInView
    claims: tuple[ClaimInView, ...]


@dataclass
class Gold:
    items: list[Item]
    files: dict[str, str]
    references: dict[str, str]

    @property
    def claims(self) -> int:
        return sum(len(item.claims) for item in self.items)


def load_gold(split: Split, folder: Path | None = None) -> Gold:
    """Every reply of one part of the gold set, its scenario made ready for the year it was written for."""
    root = folder or data_folder("gold") / split
    library = Library()
    bank = {path.stem: path for path in expand([str(data_folder("scenarios"))])}
    items: list[Item] = []
    files: dict[str, str] = {}
    for path in sorted(root.glob("*.json")):
        data, gold = read_user_file(path, GoldFile)
        files[f"{split}/{path.name}"] = sha256(data)
        if gold.scenario_id not in bank:
            raise InputError(f"{path}: field scenario_id: {gold.scenario_id!r} is no scenario of the bank.")
        planned = {one.variant: one for one in read_scenario(bank[gold.scenario_id]).planned(gold.plan_year, library)}
        for reply in gold.replies:
            _check_reply(path, reply, planned, items)
            chosen = planned.get(reply.variant) or next(iter(planned.values()))
            asked = questioner.question(QuestionerInput(scenario=chosen.scenario, seed=0))
            question = next((turn.user_message for turn in asked.turns if turn.turn_id == reply.turn_id), "")
            key = verifier.key_in_view(chosen.scenario.answer_key)
            claims = tuple(_in_view(path, reply, claim) for claim in reply.claims)
            items.append(Item(reply, question, key, claims))
            _check_labels(path, items[-1])
    if not items:
        raise InputError(f"{root}: holds no gold files.")
    return Gold(items, files, library.used)


def _check_reply(
    path: Path, reply: GoldReply, planned: Mapping[str | None, PlannedScenario], items: Sequence[Item]
) -> None:
    if reply.variant and reply.variant not in planned:
        raise InputError(f"{path}: {reply.reply_id}: variant {reply.variant!r} is none of the scenario's.")
    one = planned.get(reply.variant) or next(iter(planned.values()))
    if reply.turn_id not in [turn.turn_id for turn in one.scenario.scripted_turns]:
        raise InputError(f"{path}: {reply.reply_id}: turn {reply.turn_id!r} is none of the scenario's.")
    if any(item.reply.reply_id == reply.reply_id for item in items):
        raise InputError(f"{path}: reply_id {reply.reply_id!r} stands more than once in the gold set.")
    names = [claim.claim_id for claim in reply.claims]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise InputError(f"{path}: {reply.reply_id}: claim_id {repeated[0]!r} stands more than once.")


def _check_labels(path: Path, item: Item) -> None:
    """Gold labels keep the rules that judges are held to."""
    for claim, seen in zip(item.reply.claims, item.claims, strict=True):
        label = Verdict(
            claim_id=claim.claim_id, label=claim.label, evidence=claim.evidence, severity=claim.severity, notes=""
        )
        for problem in verifier.violations(label, seen, item.key, item.question):
            raise InputError(f"{path}: {item.reply.reply_id} {claim.claim_id}: {problem}.")


def _in_view(path: Path, reply: GoldReply, claim: GoldClaim) -> ClaimInView:
    spans = [find_quote(reply.text, quote) for quote in claim.quotes]
    if None in spans:
        raise InputError(f"{path}: {reply.reply_id} {claim.claim_id}: a quote is not in the reply; mend it.")
    quotes = tuple(reply.text[span.start : span.end] for span in spans if span)
    return ClaimInView(claim_id=claim.claim_id, text=claim.text, quotes=quotes)


@dataclass
class CheckedReply:
    """What judges made of one reply of the gold set."""

    item: Item
    extraction: extractor.Extraction = field(default_factory=extractor.Extraction)
    verdicts: list[dict[str, Verdict]] = field(default_factory=list)
    final: dict[str, Verdict] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    records: list[CallRecord] = field(default_factory=list)


async def check(
    folder: Path, manifest: CheckManifest, gold: Gold, resources: CallResources, on_reply: Callable[[], None]
) -> tuple[JudgeCheck, list[CallRecord]]:
    """Carry a check out, or on; its record is written by the caller."""
    plan = manifest.plan
    failpoints = Failpoints.from_environment()
    with storage.RunLock(folder):
        journal = storage.Journal(
            folder / storage.JOURNAL, storage.manifest_sha256(folder), wanted=lambda trial: True, failpoints=failpoints
        )
        try:
            judges = JudgeClients(
                LiveGateway(journal, plan.policy, resources),
                plan.prompts,
                plan.api_ids,
                lambda model: plan.parameters,
                plan.policy.max_asks,
            )
            gate = asyncio.Semaphore(_AT_ONCE)

            async def one(item: Item) -> CheckedReply:
                async with gate:
                    found = await _judge(judges, plan, item)
                on_reply()
                return found

            tasks = [asyncio.create_task(one(item)) for item in gold.items]
            await asyncio.wait(tasks)  # a stop lets calls in flight finish, and each is journaled
            judged = [task.result() for task in tasks]
        finally:
            journal.close()
    records = [record for found in judged for record in found.records]
    return measured(manifest, judged), records


async def _judge(judges: JudgeClients, plan: CheckPlan, item: Item) -> CheckedReply:
    found = CheckedReply(item)
    name = item.reply.reply_id

    def seed(*use: object) -> int:
        return derive_seed(plan.seed, name, *use)

    call = CallId(name, "extractor", item.reply.turn_id)
    client = judges.client(
        "extractor", plan.extractor, call, seed=seed("extractor"), families=(), records=found.records
    )
    payload = ExtractorInput(question=item.question, reply=item.reply.text)
    found.extraction = await extractor.extract(client, item.reply.turn_id, payload)
    if found.extraction.failure:
        found.failures.append(f"{name}: extractor: {found.extraction.failure}")
    for number, model in enumerate(plan.verifiers, 1):
        call = CallId(name, "verifier", item.reply.turn_id, number)
        client = judges.client(
            "verifier", model, call, seed=seed("verifier", number), families=(), records=found.records
        )
        given = await verifier.verify(client, item.question, item.claims, item.key)
        found.verdicts.append({verdict.claim_id: verdict for verdict in given.verdicts})
        if given.failure:
            found.failures.append(f"{name}: judge_{number}: {given.failure}")
    call = CallId(name, "adjudicator", item.reply.turn_id)
    client = judges.client(
        "adjudicator", plan.adjudicator, call, seed=seed("adjudicator"), families=(), records=found.records
    )
    await _settle(client, item, found)
    return found


async def _settle(client: JudgeClient, item: Item, found: CheckedReply) -> None:
    """The panel's word on each claim, as a run would have it."""
    by_judge = [list(one.values()) for one in found.verdicts]
    ties = adjudicator.tied(item.claims, by_judge)
    settled: dict[str, Label] = {}
    if ties:
        answer = await adjudicator.settle(client, item.question, ties, item.key)
        settled = answer.value or {}
        if answer.failure:
            found.failures.append(f"{item.reply.reply_id}: adjudicator: {answer.failure}")
    for claim in item.claims:
        final = adjudicator.final_label(claim.claim_id, by_judge, settled)
        if final.label:
            first = final.verdicts[0] if final.verdicts else None
            found.final[claim.claim_id] = Verdict(
                claim_id=claim.claim_id,
                label=final.label,
                evidence=first.evidence if first else (),
                severity=first.severity if first else "none",
                notes=first.notes if first else "settled by the adjudicator",
            )


def measured(manifest: CheckManifest, judged: Sequence[CheckedReply]) -> JudgeCheck:
    plan = manifest.plan
    judges = [
        _measure(f"judge_{number}", model, [(one.item, one.verdicts[number - 1]) for one in judged])
        for number, model in enumerate(plan.verifiers, 1)
    ]
    if len(plan.verifiers) > 1:
        judges.append(_measure(PANEL, None, [(one.item, one.final) for one in judged]))
    return JudgeCheck(
        check_id=manifest.check_id,
        plan_sha256=fingerprint(plan.model_dump(mode="json")),
        split=plan.split,
        replies=len(judged),
        claims=sum(len(one.item.claims) for one in judged),
        judges=tuple(judges),
        extractor=_measure_extractor(plan.extractor, judged),
        failures=tuple(failure for one in judged for failure in one.failures),
        calls=sum(len(one.records) for one in judged),
        cost=None,
        verifiers=plan.verifiers,
        adjudicator=plan.adjudicator,
        prompts={role: prompt.sha256 for role, prompt in plan.prompts.items()},
    )


def _measure(name: str, model: str | None, given: Sequence[tuple[Item, dict[str, Verdict]]]) -> JudgeMeasured:
    counts: Counter[tuple[Label, Label | None]] = Counter()
    kinds: dict[ClaimKind, list[int]] = {}
    same = 0
    errors: list[JudgeError] = []
    for item, verdicts in given:
        for claim in item.reply.claims:
            verdict = verdicts.get(claim.claim_id)
            label = verdict.label if verdict else None
            counts[claim.label, label] += 1
            right = kinds.setdefault(claim.kind, [0, 0])
            right[0] += label == claim.label
            right[1] += 1
            if verdict and label == claim.label:
                same += not claim.evidence or bool(set(claim.evidence) & set(verdict.evidence))
            else:
                errors.append(_error(item, claim, verdict))
    return JudgeMeasured(
        name=name,
        model=model,
        confusion=tuple(
            LabelCount(gold=gold, given=label, claims=n) for (gold, label), n in sorted(counts.items(), key=str)
        ),
        by_kind={kind: (right, total) for kind, (right, total) in sorted(kinds.items())},
        same_evidence=same,
        errors=tuple(sorted(errors, key=_badness)),
    )


def _error(item: Item, claim: GoldClaim, verdict: Verdict | None) -> JudgeError:
    return JudgeError(
        reply_id=item.reply.reply_id,
        claim_id=claim.claim_id,
        kind=claim.kind,
        text=claim.text,
        quotes=claim.quotes,
        gold=claim.label,
        given=verdict.label if verdict else None,
        gold_evidence=claim.evidence,
        given_evidence=verdict.evidence if verdict else (),
        severity=claim.severity,
        gold_reason=claim.reason,
        given_reason=verdict.notes if verdict else "no usable verdict",
    )


def _badness(error: JudgeError) -> tuple[int, int, str, str]:
    """The worst first: wrong called right, right called wrong, then what was missed, the gravest of each first."""
    order = {
        ("CONTRADICTED", "SUPPORTED"): 0,
        ("SUPPORTED", "CONTRADICTED"): 1,
        ("NOT_IN_KEY", "SUPPORTED"): 2,
        ("NOT_IN_KEY", "CONTRADICTED"): 3,
        ("CONTRADICTED", "NOT_IN_KEY"): 4,
        ("SUPPORTED", "NOT_IN_KEY"): 5,
    }
    rank = order.get((error.gold, error.given or ""), 6)
    return rank, -severity_rank(error.severity), error.reply_id, error.claim_id


def _measure_extractor(model: str, judged: Sequence[CheckedReply]) -> ExtractorMeasured:
    total: Counter[str] = Counter()
    for one in judged:
        reply = one.item.reply.text
        gold = [_spans(reply, claim.quotes) for claim in one.item.reply.claims]
        given = [
            [(span.start, span.end) for span in claim.quote_spans]
            for claim in one.extraction.claims
            if claim.verifiable
        ]
        total["gold"] += len(gold)
        total["found"] += sum(any(_overlap(spans, other) for other in given) for spans in gold)
        total["extracted"] += len(given)
        total["on_gold"] += sum(any(_overlap(spans, other) for other in gold) for spans in given)
        total["rejected"] += len(one.extraction.rejected)
        total["typographic"] += sum(
            span.match == "typographic" for claim in one.extraction.claims for span in claim.quote_spans
        )
        covered = coverage(reply, [(s.start, s.end) for c in one.extraction.claims for s in c.quote_spans])
        total["factual"] += covered.sentences
        total["covered"] += covered.covered
    return ExtractorMeasured(
        model=model,
        gold_claims=total["gold"],
        found=total["found"],
        extracted=total["extracted"],
        on_gold=total["on_gold"],
        rejected=total["rejected"],
        typographic=total["typographic"],
        factual_sentences=total["factual"],
        covered=total["covered"],
    )


def _spans(reply: str, quotes: Iterable[str]) -> list[tuple[int, int]]:
    return [(span.start, span.end) for quote in quotes if (span := find_quote(reply, quote))]


def _overlap(one: Sequence[tuple[int, int]], other: Sequence[tuple[int, int]]) -> bool:
    return any(a < d and c < b for a, b in one for c, d in other)


def matrix(judge: JudgeMeasured) -> dict[tuple[str, str | None], int]:
    return {(count.gold, count.given): count.claims for count in judge.confusion}


def texts(errors: Sequence[JudgeError]) -> Iterator[str]:
    for error in errors:
        cited = f" ({', '.join(error.given_evidence)})" if error.given_evidence else ""
        given = f"{error.given or 'nothing'}{cited}"
        yield f"{error.reply_id} {error.claim_id} [{error.kind}] gold {error.gold}, given {given}"
        yield f"    {' '.join(error.text.split())}"
        yield f"    gold:  {error.gold_reason}"
        yield f"    judge: {' '.join(error.given_reason.split())}"
