"""Put one reply of the gold set to the judges, in up to two ways.

End to end, the reply goes the way of every reply of a run (`runner.judge_turn`), so a check measures what a run does.
Verifiers alone get the gold claims, so that they are measured apart from the extractor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..agents import adjudicator, verifier
from ..agents.ask import JudgeClient
from ..calls.gateway import CallId
from ..records.judge_check import CheckPlan
from ..runner.call_resources import JudgeClients
from ..runner.judge_turn import Turn, TurnJudge
from ..schemas import CallRecord, FinalClaim, Label, Role, Verdict
from ..scoring.result import TurnJudgment
from ..store.strict_json import derive_seed
from .gold import GoldItem

GOLD_CLAIMS = "gold"
"""The part, in call ids, of calls about gold claims."""


@dataclass
class JudgedReply:
    """What the judges made of one reply."""

    item: GoldItem
    judgment: TurnJudgment | None = None
    """End to end; None if that was not measured."""
    final: tuple[FinalClaim, ...] = ()
    """The final labels of the claims of `judgment`."""
    verdicts: list[dict[str, Verdict]] = field(default_factory=list)
    """By verifier: gold claim id to verdict; empty if verifiers alone were not measured."""
    panel: dict[str, Verdict] = field(default_factory=dict)
    """Gold claim id to the verdict of all verifiers together."""
    failures: list[str] = field(default_factory=list)
    records: list[CallRecord] = field(default_factory=list)
    """Of every call, in the order made."""

    def reasons(self, claim_id: str) -> str:
        """What the verifiers said of an extracted claim."""
        said = [v.notes for judge in (self.judgment.verdicts if self.judgment else ()) for v in judge
                if v.claim_id == claim_id]  # fmt: skip
        return " / ".join(dict.fromkeys(said))


class ReplyJudge:
    """Judges gold replies with the judges of one check."""

    def __init__(self, plan: CheckPlan, judges: JudgeClients) -> None:
        self._plan, self._judges = plan, judges
        self._turns = TurnJudge(plan, judges)

    async def judge(self, item: GoldItem) -> JudgedReply:
        judged = JudgedReply(item)
        if "end_to_end" in self._plan.measures:
            await self._end_to_end(judged)
        if "verifier" in self._plan.measures:
            await self._gold_claims(judged)
        return judged

    async def _end_to_end(self, judged: JudgedReply) -> None:
        reply = judged.item.reply
        turn = Turn(
            trial_id=reply.reply_id,
            turn_id=reply.turn_id,
            asked=judged.item.asked,
            reply=reply.text,
            key=judged.item.key,
            seed=derive_seed(self._plan.seed, reply.reply_id),
            state=judged.item.state,
        )
        found = judged.judgment = await self._turns.judge(turn)
        judged.final = adjudicator.conclude(found.claims, found.verdicts, found.settled)
        judged.records += found.records
        judged.failures += [f"{reply.reply_id}: {one.stage} {one.judge or ''}: {one.reason}" for one in found.failures]

    async def _gold_claims(self, judged: JudgedReply) -> None:
        item, plan = judged.item, self._plan
        for number, model in enumerate(plan.verifiers, 1):
            given = await verifier.verify(self._client(judged, "verifier", model, number), item.claims, item.shown)
            judged.verdicts.append({verdict.claim_id: verdict for verdict in given.verdicts})
            if given.failure:
                judged.failures.append(f"{item.reply.reply_id}: judge_{number}, gold claims: {given.failure}")
        by_judge = [list(verdicts.values()) for verdicts in judged.verdicts]
        ties = adjudicator.tied(item.claims, by_judge)
        settled: Mapping[str, Label] = {}
        if ties and plan.adjudicator:
            client = self._client(judged, "adjudicator", plan.adjudicator)
            answer = await adjudicator.settle(client, ties, item.shown)
            settled = answer.value or {}
            if answer.failure:
                judged.failures.append(f"{item.reply.reply_id}: adjudicator, gold claims: {answer.failure}")
        for claim in item.claims:
            final = adjudicator.final_label(claim.claim_id, by_judge, settled)
            if final.label:
                judged.panel[claim.claim_id] = final.verdicts[0]

    def _client(self, judged: JudgedReply, role: Role, model: str, number: int = 0) -> JudgeClient:
        reply = judged.item.reply
        call = CallId(reply.reply_id, role, reply.turn_id, number, part=GOLD_CLAIMS)
        seed = derive_seed(self._plan.seed, reply.reply_id, role, number, GOLD_CLAIMS)
        return self._judges.client(role, model, call, seed=seed, families=(), records=judged.records)
