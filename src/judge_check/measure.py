"""Count what judges got right and wrong on the gold set. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from ..agents import questioner
from ..agents.adjudicator import conclude
from ..findings.judge_agreement import background_sha256, gold_reply
from ..records.base import severity_rank
from ..records.judge_check import (
    CheckManifest,
    CheckPlan,
    ClaimKind,
    CodesMeasured,
    ExtractorMeasured,
    Given,
    GivenCount,
    GoldClaim,
    JudgeCheck,
    JudgeError,
    JudgeMeasured,
    LabelPrecision,
    NotCoded,
    ReplyCode,
    ReplyCounts,
)
from ..schemas import Claim, Exchange, Label, QuestionerInput, ScriptedTurn, StudyCode, TurnObservation, Verdict
from ..scoring.points import group_of
from ..scoring.study_codes import CodingInput, study_codes
from ..stats.confusion import JudgedGold, precision, precision_with_spurious
from ..store.strict_json import fingerprint
from ..text.quotes import Placed, best_pairs, ranked_pairs, words_of
from .gold import Gold, GoldItem, verdict_of
from .judge_reply import JudgedReply

PANEL = "panel"
END_TO_END = "end to end"
_WORST_FIRST: dict[tuple[Label, Given], int] = {
    ("CONTRADICTED", "SUPPORTED"): 0,
    ("SUPPORTED", "CONTRADICTED"): 1,
    ("NOT_IN_KEY", "SUPPORTED"): 2,
    ("NOT_IN_KEY", "CONTRADICTED"): 3,
    ("CONTRADICTED", "missed"): 4,
    ("CONTRADICTED", "NOT_IN_KEY"): 4,
    ("SUPPORTED", "NOT_IN_KEY"): 5,
}
"""Gold and given label to rank. First wrong claims called right, then right claims called wrong; misses come last."""
_NO_LABEL = 6


@dataclass(frozen=True)
class GivenLabel:
    """What one gold claim got, and why."""

    label: Given
    evidence: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class MeasuredReply:
    item: GoldItem
    given: tuple[GivenLabel, ...]
    """By gold claim."""
    spurious: Mapping[Label | str, int]


def measure(manifest: CheckManifest, gold: Gold, judged: Sequence[JudgedReply], cost: float | None) -> JudgeCheck:
    """The record of a check: the errors of all judges end to end, and of verifiers and their panel on gold claims."""
    plan = manifest.plan
    whole = [one for one in judged if one.judgment]
    matched = [_matches(one) for one in whole]
    ends = [_end_to_end(one, found) for one, found in zip(whole, matched, strict=True)]
    return JudgeCheck(
        check_id=manifest.check_id,
        plan_sha256=fingerprint(plan.model_dump(mode="json")),
        split=plan.split,
        limit=plan.limit,
        replies=len(judged),
        claims=sum(len(one.item.claims) for one in judged),
        off_topic=len(gold.off_topic()),
        end_to_end=_measured(END_TO_END, None, ends) if ends else None,
        judges=_verifiers(plan, judged) if "verifier" in plan.measures else (),
        codes=measure_codes(whole) if whole else None,
        extractor_measured=_extractor(plan.extractor, whole, matched) if whole else None,
        failures=tuple(failure for one in judged for failure in one.failures),
        calls=sum(len(one.records) for one in judged),
        cost=cost,
        extractor=plan.extractor,
        verifiers=plan.verifiers,
        adjudicator=plan.adjudicator,
        scorer=plan.scorer,
        isolation=plan.isolation,
        api_ids=plan.api_ids,
        parameters=plan.parameters,
        prompts={role: prompt.sha256 for role, prompt in plan.prompts.items()},
        rubrics=plan.rubrics,
        background_sha256=background_sha256(plan.background),
        gold=plan.gold,
    )


def _verifiers(plan: CheckPlan, judged: Sequence[JudgedReply]) -> tuple[JudgeMeasured, ...]:
    def of(name: str, model: str | None, verdicts: Iterable[Mapping[str, Verdict]]) -> JudgeMeasured:
        replies = [
            MeasuredReply(one.item, tuple(_of_verdict(given.get(claim.claim_id)) for claim in one.item.claims), {})
            for one, given in zip(judged, verdicts, strict=True)
        ]
        return _measured(name, model, replies)

    single = [
        of(f"judge_{n + 1}", model, [one.verdicts[n] for one in judged]) for n, model in enumerate(plan.verifiers)
    ]
    return (*single, of(PANEL, None, [one.panel for one in judged]))


def _of_verdict(verdict: Verdict | None) -> GivenLabel:
    if verdict is None:
        return GivenLabel("open", reason="no usable verdict")
    return GivenLabel(verdict.label, verdict.evidence, verdict.notes)


def _checked(judged: JudgedReply) -> tuple[Claim, ...]:
    assert judged.judgment is not None
    return tuple(claim for claim in judged.judgment.claims if claim.verifiable and claim.same_as is None)


def _matches(judged: JudgedReply) -> Matches:
    item = judged.item
    gold = [PlacedGold(seen.text, spans, seen.quotes) for seen, spans in zip(item.claims, item.spans, strict=True)]
    return match(gold, [Placed(claim.text, claim.quote_spans) for claim in _checked(judged)])


def _end_to_end(judged: JudgedReply, found: Matches) -> MeasuredReply:
    assert judged.judgment is not None
    finals = judged.final
    extracted = not any(one.stage == "extractor" for one in judged.judgment.failures)
    given: list[GivenLabel] = []
    for places in found.of_gold:
        if not places:
            given.append(GivenLabel("missed" if extracted else "open", reason="no extracted claim matches it"))
            continue
        # A statement with a wrong part is wrong; otherwise the claim that fits it best speaks for it.
        chosen = next((finals[at] for at in places if finals[at].label == "CONTRADICTED"), finals[places[0]])
        if chosen.label is None:
            given.append(GivenLabel("open", reason=f"no final label for: {chosen.text}"))
        else:
            reason = f"{chosen.text} | {judged.reasons(chosen.claim_id)}"
            given.append(GivenLabel(chosen.label, chosen.evidence, reason))
    return MeasuredReply(judged.item, tuple(given), Counter(finals[at].label or "open" for at in found.spurious))


def _measured(name: str, model: str | None, replies: Sequence[MeasuredReply]) -> JudgeMeasured:
    right: Counter[ClaimKind] = Counter()
    total: Counter[ClaimKind] = Counter()
    same_evidence = 0
    errors: list[JudgeError] = []
    for one in replies:
        for claim, given in zip(one.item.reply.claims, one.given, strict=True):
            total[claim.kind] += 1
            if given.label == claim.label:
                right[claim.kind] += 1
                same_evidence += not claim.evidence or bool(set(claim.evidence) & set(given.evidence))
            else:
                errors.append(_error(one.item, claim, given))
    counts = tuple(map(_counts, replies))
    return JudgeMeasured(
        name=name,
        model=model,
        replies=counts,
        precision=_precision(gold_reply(one) for one in counts),
        by_kind={kind: (right[kind], total[kind]) for kind in sorted(total)},
        same_evidence=same_evidence,
        errors=tuple(sorted(errors, key=_badness)),
    )


def _precision(replies: Iterable[JudgedGold]) -> dict[Label, LabelPrecision]:
    counted = list(replies)
    labels: tuple[Label, ...] = get_args(Label)
    return {
        label: LabelPrecision(
            matched=precision([one.confusion for one in counted], label).value,
            with_spurious=precision_with_spurious(counted, label).value,
        )
        for label in labels
    }


def _counts(one: MeasuredReply) -> ReplyCounts:
    counts = Counter((c.label, g.label) for c, g in zip(one.item.reply.claims, one.given, strict=True))
    return ReplyCounts(
        reply_id=one.item.reply.reply_id,
        scenario_id=one.item.scenario_id,
        confusion=tuple(GivenCount(gold=gold, given=given, claims=n) for (gold, given), n in sorted(counts.items())),
        spurious=dict(sorted(one.spurious.items())),  # type: ignore[arg-type]  # keys are labels or `open`
    )


def _error(item: GoldItem, claim: GoldClaim, given: GivenLabel) -> JudgeError:
    return JudgeError(
        reply_id=item.reply.reply_id,
        claim_id=claim.claim_id,
        kind=claim.kind,
        text=claim.text,
        quotes=claim.quotes,
        gold=claim.label,
        given=given.label,
        gold_evidence=claim.evidence,
        given_evidence=given.evidence,
        severity=claim.severity,
        gold_reason=claim.reason,
        given_reason=given.reason,
    )


def _badness(error: JudgeError) -> tuple[int, int, str, str]:
    rank = _WORST_FIRST.get((error.gold, error.given), _NO_LABEL)
    return rank, -severity_rank(error.severity), error.reply_id, error.claim_id


def _extractor(model: str, judged: Sequence[JudgedReply], matched: Sequence[Matches]) -> ExtractorMeasured:
    total: Counter[str] = Counter()
    for one, found in zip(judged, matched, strict=True):
        assert one.judgment is not None
        given = _checked(one)
        reading = one.judgment.reading
        assert reading is not None
        total.update(
            gold_claims=len(one.item.claims),
            found=sum(bool(places) for places in found.of_gold),
            extracted=len(given),
            verbatim=sum(claim.verbatim for claim in given),
            on_gold=len(given) - len(found.spurious),
            rejected=len(one.judgment.rejected),
            typographic=reading.typographic_quotes,
            sentences=reading.sentences,
            covered=reading.covered,
        )
    return ExtractorMeasured(model=model, **total)


# Which extracted claims are which gold claims. Pure functions.
#
# Pairs of claims are found and ranked by `text.quotes`, and the best is taken first, each claim once. Then:
#
# - An extracted claim that is left over is a part of the gold claim that it fits best.
# - A gold claim that is left over shares the extracted claim that fits it best, if that claim's text has most words of
#   its text or of its quotes: the extractor left two statements in one claim. Otherwise it was missed.
# - An extracted claim whose quotes are on no gold claim is spurious.

LEAST_WORDS = 2 / 3
"""Of the words of a gold claim, or of its quotes, that must be in the extracted claim which it shares with another."""


@dataclass(frozen=True)
class PlacedGold(Placed):
    """A gold claim."""

    quotes: tuple[str, ...]

    def is_within(self, other: Placed) -> bool:
        """Whether the other claim's text has most words of this one, or of its quotes."""
        mine = (self.words, words_of(" ".join(self.quotes)))
        return any(one and len(one & other.words) >= LEAST_WORDS * len(one) for one in mine)


@dataclass(frozen=True)
class Matches:
    of_gold: tuple[tuple[int, ...], ...]
    """By gold claim: its extracted claims, the best first; empty if it was missed."""
    spurious: tuple[int, ...]
    """Extracted claims that match no gold claim."""


def match(gold: Sequence[PlacedGold], extracted: Sequence[Placed]) -> Matches:
    ranked = ranked_pairs(gold, extracted)
    of_gold: list[list[int]] = [[] for _ in gold]
    used: set[int] = set()
    for one, other in best_pairs(ranked):
        of_gold[one].append(other)
        used.add(other)
    left = [one for one, found in enumerate(of_gold) if not found]
    for one, other in ranked:
        if other not in used and of_gold[one]:
            of_gold[one].append(other)
            used.add(other)
    for one in left:
        near = (other for gold_at, other in ranked if gold_at == one)
        of_gold[one] += [other for other in near if gold[one].is_within(extracted[other])][:1]
    return Matches(tuple(map(tuple, of_gold)), tuple(at for at in range(len(extracted)) if at not in used))


# Study codes on the gold set: the code that follows from the gold labels, beside the one that the judges lead to.
#
# Both are given by the coder of a run (`scoring.study_codes`), for the question that the reply answers. A gold reply is
# one turn, and its labels are of claims alone. So a question is left out if its group has several turns, or if its rule
# also goes by what the gold set does not label: made-up specifics, and whether an answer sounds unsure or only refers
# elsewhere.


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
    needs = rule.fabricated != "noted" or rule.referral_alone != "not_substantive" or rule.hedged != "counts"
    return "not_labeled" if needs else None


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
    labels = [verdict_of(claim) for claim in item.reply.claims]
    return CodingInput(
        scenario=item.scenario,
        rubric=item.rubric,
        exchanges=_exchanges(item),
        claims=claims,
        final=conclude(claims, [labels, labels], {}),
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
