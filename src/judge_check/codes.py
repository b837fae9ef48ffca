"""Study codes on the gold set: the code that follows from the gold labels, beside the one that the judges lead to.

Both are given by the coder of a run (`scoring.study_codes`), for the question that the reply answers. A gold reply is
one turn, and its labels are of claims alone. So a question is left out if its group has several turns, or if its rule
also goes by what the gold set does not label: made-up specifics, and whether an answer sounds unsure or only refers
elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..agents import questioner
from ..records.judge_check import CodesMeasured, NotCoded, ReplyCode
from ..schemas import (
    Claim,
    Exchange,
    FinalClaim,
    GroupRule,
    QuestionerInput,
    ScriptedTurn,
    StudyCode,
    TurnObservation,
)
from ..scoring.points import group_of
from ..scoring.study_codes import CodingInput, study_codes
from .gold import GoldItem
from .judge_reply import JudgedReply


def measure_codes(judged: Sequence[JudgedReply]) -> CodesMeasured:
    """The codes of every gold reply that can be coded, and how many cannot, by reason."""
    replies: list[ReplyCode] = []
    left_out: Counter[NotCoded] = Counter()
    for one in judged:
        item = one.item
        reason = why_not_coded(item)
        if reason:
            left_out[reason] += 1
            continue
        gold, given = _code(item, _gold_labels(item)), _code(item, _given_labels(one))
        if gold is None or given is None:
            left_out["no_code"] += 1
            continue
        replies.append(
            ReplyCode(
                reply_id=item.reply.reply_id,
                scenario_id=item.scenario_id,
                question_group=group_of(_turn(item)),
                gold=gold,
                given=given,
            )
        )
    return CodesMeasured(replies=tuple(replies), left_out=dict(sorted(left_out.items())))


def why_not_coded(item: GoldItem) -> NotCoded | None:
    """Why the labels of one reply do not decide the code of its question; None if they do."""
    turn = _turn(item)
    group = group_of(turn)
    rule = item.rubric.rule(group)
    if not item.rubric.study_codes or not (turn.question_group or turn.required_points) or rule.closed:
        return "no_code"
    if sum(group_of(one) == group for one in item.scenario.scripted_turns) > 1:
        return "several_turns"
    return "not_labeled" if _needs_observations(rule) else None


def _needs_observations(rule: GroupRule) -> bool:
    return rule.fabricated != "noted" or rule.referral_alone != "not_substantive" or rule.hedged != "counts"


def _turn(item: GoldItem) -> ScriptedTurn:
    return next(one for one in item.scenario.scripted_turns if one.turn_id == item.reply.turn_id)


def _code(item: GoldItem, judged: CodingInput) -> StudyCode | None:
    group = group_of(_turn(item))
    return next((one.code for one in study_codes(judged) if one.question_group == group), None)


def _gold_labels(item: GoldItem) -> CodingInput:
    """The gold claims, as judges who all give the gold labels would conclude."""
    turn_id = item.reply.turn_id
    claims = tuple(
        Claim(
            claim_id=claim.claim_id,
            text=claim.text,
            type="factual",
            confidence="high",
            verifiable=True,
            quote_spans=spans,
            turn_id=turn_id,
        )
        for claim, spans in zip(item.reply.claims, item.spans, strict=True)
    )
    final = tuple(
        FinalClaim(
            claim_id=claim.claim_id,
            turn_id=turn_id,
            text=claim.text,
            label=claim.label,
            evidence=claim.evidence,
            severity=claim.severity,
            decided_by="unanimous",
            labels_given=(claim.label, claim.label),
        )
        for claim in item.reply.claims
    )
    return CodingInput(
        scenario=item.scenario,
        rubric=item.rubric,
        exchanges=_exchanges(item),
        claims=claims,
        final=final,
        observations=(),
        failures=(),
    )


def _given_labels(judged: JudgedReply) -> CodingInput:
    """What the judges made of the reply, end to end."""
    found, item = judged.judgment, judged.item
    assert found is not None
    return CodingInput(
        scenario=item.scenario,
        rubric=item.rubric,
        exchanges=_exchanges(item),
        claims=found.claims,
        final=judged.final,
        observations=tuple(TurnObservation(turn_id=found.turn_id, observation=one) for one in found.observations),
        failures=found.failures,
    )


def _exchanges(item: GoldItem) -> tuple[Exchange, ...]:
    """The reply with its question, and the questions before it, which are part of what the person has said."""
    turns = {one.turn_id: one for one in item.scenario.scripted_turns}
    asked = questioner.question(QuestionerInput(scenario=item.scenario, seed=0)).turns
    exchanges = []
    for turn in asked:
        here = turn.turn_id == item.reply.turn_id
        if here or not turns[turn.turn_id].condition:
            exchanges.append(
                Exchange(
                    turn_id=turn.turn_id,
                    question_group=turns[turn.turn_id].question_group,
                    user_message=turn.user_message,
                    outcome="answered",
                    reply=item.reply.text if here else "",
                    detail=None,
                    served_model=None,
                )
            )
        if here:
            break
    return tuple(exchanges)
