"""Put one reply of the gold set to the judges: the extractor, each verifier, and the adjudicator on ties.

Verifiers get the gold claims, not the extractor's, so that each role is measured on its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..agents import adjudicator, extractor, verifier
from ..agents.ask import JudgeClient
from ..calls.gateway import CallId
from ..records.judge_check import CheckPlan
from ..runner.judge_clients import JudgeClients
from ..schemas import CallRecord, ExtractorInput, Label, Role, Verdict
from ..store.strict_json import derive_seed
from .gold import GoldItem


@dataclass
class JudgedReply:
    """What the judges made of one reply."""

    item: GoldItem
    extraction: extractor.Extraction = field(default_factory=extractor.Extraction)
    verdicts: list[dict[str, Verdict]] = field(default_factory=list)
    """By verifier: claim id to verdict."""
    final: dict[str, Verdict] = field(default_factory=dict)
    """The panel's: claim id to verdict."""
    failures: list[str] = field(default_factory=list)
    records: list[CallRecord] = field(default_factory=list)
    """Of every call, in the order made."""


async def judge_reply(judges: JudgeClients, plan: CheckPlan, item: GoldItem) -> JudgedReply:
    """Ask every judge of the plan about one reply."""
    judged = JudgedReply(item)
    name, turn_id = item.reply.reply_id, item.reply.turn_id

    def client(role: Role, model: str, number: int = 0) -> JudgeClient:
        use = (role, number) if number else (role,)
        seed = derive_seed(plan.seed, name, *use)
        call = CallId(name, role, turn_id, number)
        return judges.client(role, model, call, seed=seed, families=(), records=judged.records)

    payload = ExtractorInput(question=item.question, reply=item.reply.text)
    judged.extraction = await extractor.extract(client("extractor", plan.extractor), turn_id, payload)
    if judged.extraction.failure:
        judged.failures.append(f"{name}: extractor: {judged.extraction.failure}")
    for number, model in enumerate(plan.verifiers, 1):
        given = await verifier.verify(client("verifier", model, number), item.question, item.claims, item.key)
        judged.verdicts.append({verdict.claim_id: verdict for verdict in given.verdicts})
        if given.failure:
            judged.failures.append(f"{name}: judge_{number}: {given.failure}")
    await _conclude(client("adjudicator", plan.adjudicator), judged)
    return judged


async def _conclude(client: JudgeClient, judged: JudgedReply) -> None:
    """The panel's verdict on each claim, by the rules of a run."""
    item = judged.item
    by_judge = [list(verdicts.values()) for verdicts in judged.verdicts]
    ties = adjudicator.tied(item.claims, by_judge)
    settled: dict[str, Label] = {}
    if ties:
        answer = await adjudicator.settle(client, item.question, ties, item.key)
        settled = answer.value or {}
        if answer.failure:
            judged.failures.append(f"{item.reply.reply_id}: adjudicator: {answer.failure}")
    for claim in item.claims:
        final = adjudicator.final_label(claim.claim_id, by_judge, settled)
        if final.label:
            first = final.verdicts[0] if final.verdicts else None
            judged.final[claim.claim_id] = Verdict(
                claim_id=claim.claim_id,
                label=final.label,
                evidence=first.evidence if first else (),
                severity=first.severity if first else "none",
                notes=first.notes if first else "settled by the adjudicator",
            )
