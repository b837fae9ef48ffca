"""From a conversation and its judgments to one result record. Pure: no call, no clock, no file.

Scores are computed here by code, once from each verifier's own verdicts and once from the final ones. A claim without a
final label never voids a score: it counts as each verifier labeled it, in turn. Only a trial in
which every asked turn was answered or refused, and every judge did its work, is `scored`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

from ..agents import adjudicator, scorer
from ..planning.trials import Trial
from ..records.citation import CheckedCitation
from ..records.model_name import family, is_version_of, split_name
from ..records.run import FORMAT
from ..schemas import (
    AdjudicatorOutput,
    CallRecord,
    Claim,
    Exchange,
    FinalClaim,
    Fingerprints,
    Flags,
    JudgedBy,
    JudgeFailure,
    JudgeService,
    Label,
    MarkedPassage,
    Observation,
    ObservationKind,
    QuestionCode,
    RejectedClaim,
    RunPlan,
    ScorerOutput,
    Stage,
    TargetRecord,
    TrialOutcome,
    TrialResult,
    TurnCitation,
    TurnObservation,
    TurnOutcome,
    TurnReading,
    Verdict,
    WithoutMarked,
    point_facts,
)
from . import study_codes
from .points import AskedConversation, missing_points
from .review import review_reasons

ENDS_CONVERSATION: frozenset[TurnOutcome] = frozenset(
    {"transient", "timeout", "rate_limited", "malformed", "permanent"}
)
_NOT_SCORED: tuple[TrialOutcome, ...] = ("blocked", "truncated", "empty")


L = TypeVar("L", bound=FinalClaim | Verdict)


@dataclass
class TurnJudgment:
    """What the judges made of one reply."""

    turn_id: str
    claims: tuple[Claim, ...] = ()
    rejected: tuple[RejectedClaim, ...] = ()
    verdicts: list[tuple[Verdict, ...]] = field(default_factory=list)
    observations: tuple[Observation, ...] = ()
    settled: dict[str, Label] = field(default_factory=dict)
    records: list[CallRecord] = field(default_factory=list)
    """Of the judges' calls."""
    failures: list[JudgeFailure] = field(default_factory=list)
    repeats: list[list[tuple[Verdict, ...]]] = field(default_factory=list)
    """By verifier: what it said when asked again."""
    reading: TurnReading | None = None
    """How the reply was evaluated."""
    shared: list[tuple[Verdict, ...]] = field(default_factory=list)
    """By verifier, in the audit sample: what it said when the claims shared a call."""
    citations: tuple[CheckedCitation, ...] = ()
    """The addresses that the reply cites, checked."""


def failed(stage: Stage, turn_id: str, judge: int, claims: tuple[str, ...], reason: str) -> JudgeFailure:
    return JudgeFailure(stage=stage, turn_id=turn_id, judge=judge, claim_ids=claims, reason=reason)


def _outcome(
    exchanges: Sequence[Exchange], failures: Sequence[JudgeFailure], *, questioner_failed: bool
) -> TrialOutcome:
    """What became of the trial; only `scored` counts in scores."""
    happened = {exchange.outcome for exchange in exchanges}
    if questioner_failed:
        return "questioner_failure"
    if happened & ENDS_CONVERSATION:
        return "failed"
    for outcome in _NOT_SCORED:
        if outcome in happened:
            return outcome
    if "answered" not in happened:
        return "refused"
    return "judge_failure" if any(not failure.claim_ids for failure in failures) else "scored"


@dataclass(frozen=True)
class _Merged:
    """What the judges made of all replies of a trial, put together."""

    claims: tuple[Claim, ...]
    rejected: tuple[RejectedClaim, ...]
    failures: tuple[JudgeFailure, ...]
    readings: tuple[TurnReading, ...]
    observations: tuple[TurnObservation, ...]
    by_judge: tuple[tuple[Verdict, ...], ...]
    """By verifier, in the order of the plan."""
    final: tuple[FinalClaim, ...]
    citations: tuple[TurnCitation, ...]

    def observed(self, kind: ObservationKind) -> bool:
        return any(item.observation.kind == kind for item in self.observations)


def _merge(plan: RunPlan, judgments: Sequence[TurnJudgment], questioner_failure: str | None) -> _Merged:
    claims = tuple(claim for judgment in judgments for claim in judgment.claims)
    failures = [failure for judgment in judgments for failure in judgment.failures]
    if questioner_failure:
        failures.append(failed("questioner", "-", 0, (), questioner_failure))
    by_judge = tuple(
        tuple(verdict for judgment in judgments if judgment.verdicts for verdict in judgment.verdicts[number])
        for number in range(len(plan.verifiers))
    )
    settled = {claim_id: label for judgment in judgments for claim_id, label in judgment.settled.items()}
    return _Merged(
        claims=claims,
        rejected=tuple(rejected for judgment in judgments for rejected in judgment.rejected),
        failures=tuple(failures),
        readings=tuple(judgment.reading for judgment in judgments if judgment.reading),
        observations=tuple(
            TurnObservation(turn_id=judgment.turn_id, observation=observation)
            for judgment in judgments
            for observation in (*judgment.observations, *_invented(judgment))
        ),
        citations=tuple(
            TurnCitation(turn_id=judgment.turn_id, citation=citation)
            for judgment in judgments
            for citation in judgment.citations
        ),
        by_judge=by_judge,
        final=adjudicator.conclude(claims, by_judge, settled),
    )


def repeated(claims: Sequence[Claim], labels: Sequence[L]) -> list[L]:
    """The labels, and those that claims have because an earlier claim says the same."""
    by_claim: dict[str | None, list[L]] = {}
    for one in labels:
        by_claim.setdefault(one.claim_id, []).append(one)
    again: list[L] = []
    for claim in claims:
        for first in by_claim.get(claim.same_as, ()):
            moved = {"claim_id": claim.claim_id, "turn_id": claim.turn_id, "text": claim.text}
            fields = type(first).model_fields
            copied = first.model_copy(update={name: value for name, value in moved.items() if name in fields})
            again.append(cast(L, copied))
    return [*labels, *again]


def _invented(judgment: TurnJudgment) -> Iterator[Observation]:
    """Addresses in a reply that do not exist or are not what they look like are fabricated specifics."""
    written = dict.fromkeys(one.url for one in judgment.citations if one.invented and one.where == "text")
    seen = [one.quote for one in judgment.observations if one.kind == "fabricated_specific"]
    for address in written:
        if not any(address in quote for quote in seen):
            yield Observation(kind="fabricated_specific", quote=address)


def _score(
    talk: AskedConversation,
    merged: _Merged,
    labels: Sequence[FinalClaim | Verdict],
    by_judge: Sequence[Sequence[Verdict]],
    *,
    refused: bool,
) -> ScorerOutput:
    """Scores from one set of labels: the final ones, or one verifier's.

    A claim without a label is open. It counts as each of `by_judge` labeled it, in turn: the scores are the means over
    these verifiers. A verifier without a verdict on a claim leaves it out.
    """
    confidence = {claim.claim_id: claim.confidence for claim in merged.claims}
    settled = [claim for claim in labels if claim.label is not None]
    decided = {claim.claim_id for claim in settled}
    distinct = (claim for claim in merged.claims if claim.verifiable and claim.same_as is None)
    still_open = [claim for claim in distinct if claim.claim_id not in decided]
    points, weights = talk.owed, talk.rubric.weights

    def scored(claims: Iterable[FinalClaim | Verdict]) -> list[scorer.ScoredClaim]:
        return [
            scorer.ScoredClaim(one.label, one.evidence, one.severity, confidence[one.claim_id])
            for one in claims
            if one.label is not None
        ]

    def output(missing: Sequence[str]) -> ScorerOutput:
        observations = [item.observation for item in merged.observations]
        return scorer.score(len(points), missing, weights, scored(settled), observations, refused=refused)

    def missing_by(given: Sequence[FinalClaim | Verdict]) -> tuple[str, ...]:
        return missing_points(talk, repeated(merged.claims, given))

    if not still_open:
        return output(missing_by(settled))
    given: dict[str, list[Verdict | None]] = {claim.claim_id: [] for claim in still_open}
    readings = []
    for judge in by_judge:
        own = {verdict.claim_id: verdict for verdict in judge if verdict.claim_id in given}
        for claim_id, verdicts in given.items():
            verdicts.append(own.get(claim_id))
        read = [*settled, *own.values()]
        readings.append(scorer.scores_of(len(points), len(missing_by(read)), weights, scored(read)))
    unjudged = [claim_id for claim_id, verdicts in given.items() if not any(verdicts)]
    facts = tuple(dict.fromkeys(fact for point in points for fact in point_facts(point)))
    for claim_id in unjudged:
        given[claim_id] += _any_label(claim_id, facts)
    best, worst = (
        missing_by([*settled, *(one for ways in given.values() for one in _falling(ways, first))])
        for first in ("SUPPORTED", "CONTRADICTED")
    )
    ways = [[scored([one])[0] if one else None for one in verdicts] for verdicts in given.values()]
    return output(best).model_copy(
        update={
            "scores": scorer.mean_scores(readings),
            "left_open": scorer.left_open(
                len(points), (len(best), len(worst)), weights, scored(settled), ways, unjudged=len(unjudged)
            ),
        }
    )


def _any_label(claim_id: str, facts: tuple[str, ...]) -> Iterator[Verdict]:
    """What a verifier could have said of a claim that none labeled."""
    yield Verdict(claim_id=claim_id, label="SUPPORTED", evidence=facts, severity="none", notes="")
    yield Verdict(claim_id=claim_id, label="CONTRADICTED", evidence=(), severity="high", notes="")


def _falling(ways: Sequence[Verdict | None], first: Label) -> list[Verdict]:
    """The verdicts that count if an open claim falls as `first`, or else, if it can, as neither side."""
    if found := [one for one in ways if one and one.label == first]:
        return found
    left_out = any(one is None or one.label == "NOT_IN_KEY" for one in ways)
    return [] if left_out else [one for one in ways if one]


def assemble(
    plan: RunPlan,
    trial: Trial,
    exchanges: Sequence[Exchange],
    records: Sequence[CallRecord],
    judgments: Sequence[TurnJudgment],
    *,
    questioner_failure: str | None = None,
) -> TrialResult:
    """The result of one trial. Pure: scores are computed here, from verdicts, by code."""
    plan = plan.for_target(trial.target)
    scenario = trial.planned.scenario
    rubric = plan.rubrics[scenario.rubric_version].rubric
    merged = _merge(plan, judgments, questioner_failure)
    outcome = _outcome(exchanges, merged.failures, questioner_failed=questioner_failure is not None)
    scored = outcome == "scored"
    refused = any(exchange.outcome == "refused" for exchange in exchanges)
    talk = AskedConversation(scenario, rubric, exchanges, merged.claims)
    summary = _score(talk, merged, merged.final, merged.by_judge, refused=refused)
    look_up = look_up_of(plan, trial.target)
    codes = _codes(talk, merged, look_up)
    reasons = review_reasons(
        exchanges=exchanges,
        readings=merged.readings,
        claims=merged.claims,
        rejected=merged.rejected,
        final=merged.final,
        observations=merged.observations,
        codes=codes,
    )
    concluded = AdjudicatorOutput(
        final_claims=merged.final, final_scores=summary.scores, needs_manual_review=bool(reasons)
    )
    return TrialResult(
        trial_id=trial.trial_id,
        scenario_id=scenario.scenario_id,
        variant=trial.planned.variant,
        repetition=trial.repetition,
        target=_target(plan, trial, records),
        outcome=outcome,
        conversation=tuple(exchanges),
        claims=merged.claims,
        rejected_claims=merged.rejected,
        verdicts={f"judge_{number}": verdicts for number, verdicts in enumerate(merged.by_judge, 1)},
        repeat_verdicts=_repeats(plan, judgments),
        shared_verdicts=_shared(plan, judgments),
        scores_by_judge={
            f"judge_{number}": _score(talk, merged, verdicts, [verdicts], refused=refused)
            for number, verdicts in enumerate(merged.by_judge, 1)
            if scored
        },
        final_claims=concluded.final_claims,
        final_scores=concluded.final_scores if scored else None,
        left_open=summary.left_open if scored else None,
        without_marked=_without_marked(talk, merged, look_up, refused=refused) if scored else None,
        missing_required_points=summary.missing_required_points if scored else (),
        study_codes=codes,
        error_categories=summary.error_categories if scored else (),
        needs_manual_review=concluded.needs_manual_review,
        review_reasons=reasons,
        readings=merged.readings,
        severity_disagreements=sum(claim.severity_split for claim in merged.final),
        disagreement=adjudicator.disagreement(merged.final),
        flags=Flags(
            refusal=refused or merged.observed("refusal"), hallucinated_specifics=merged.observed("fabricated_specific")
        ),
        observations=merged.observations,
        citations=merged.citations,
        judge_failures=merged.failures,
        judged_by=JudgedBy(
            extractor=plan.extractor,
            verifiers={f"judge_{number}": model for number, model in enumerate(plan.verifiers, 1)},
            scorer=plan.scorer,
            adjudicator=plan.adjudicator,
        ),
        judge_services=_services(plan, judgments),
        rubric_version=scenario.rubric_version,
        fingerprints=Fingerprints(
            scenario=trial.planned.sha256,
            rubric=plan.rubrics[scenario.rubric_version].sha256,
            prompts={role: prompt.sha256 for role, prompt in plan.prompts.items()},
        ),
        format=FORMAT,
    )


def look_up_of(plan: RunPlan, target: str) -> study_codes.LookUp:
    """What a target could look things up with."""
    settings = plan.settings_of(target)
    if settings.recorded and settings.recorded.kind == "phone":
        return "person"
    return "search" if settings.search or settings.recorded else "none"


def _codes(talk: AskedConversation, merged: _Merged, look_up: study_codes.LookUp) -> tuple[QuestionCode, ...]:
    return study_codes.study_codes(
        study_codes.CodingInput(
            scenario=talk.scenario,
            rubric=talk.rubric,
            exchanges=talk.exchanges,
            claims=merged.claims,
            final=repeated(merged.claims, merged.final),
            observations=merged.observations,
            failures=merged.failures,
            citations=merged.citations,
            look_up=look_up,
        )
    )


def _without_marked(
    talk: AskedConversation, merged: _Merged, look_up: study_codes.LookUp, *, refused: bool
) -> WithoutMarked | None:
    """The trial without the claims that are in marked passages alone; None if no passage is marked."""
    marked = {reading.turn_id: reading.marked for reading in merged.readings if reading.marked}
    if not marked:
        return None
    left_out = {claim.claim_id for claim in merged.claims if _is_within(claim, marked.get(claim.turn_id or "", ()))}
    kept: list[Claim] = []
    heirs: dict[str, str] = {}
    """The first claim that is kept and says the same as one that is left out, by the latter."""
    for claim in merged.claims:
        if claim.claim_id in left_out:
            continue
        same = heirs.get(claim.same_as or "", claim.same_as)
        if same in left_out:
            heirs[str(same)] = claim.claim_id
            same = None
        kept.append(claim.model_copy(update={"same_as": same}))
    distinct = {claim.claim_id for claim in kept if claim.same_as is None}
    final = tuple(one for one in repeated(merged.claims, merged.final) if one.claim_id in distinct)
    rest = replace(merged, claims=tuple(kept), final=final)
    again = AskedConversation(talk.scenario, talk.rubric, talk.exchanges, kept)
    by_judge = [repeated(merged.claims, verdicts) for verdicts in merged.by_judge]
    summary = _score(again, rest, final, by_judge, refused=refused)
    return WithoutMarked(
        left_out=tuple(claim.claim_id for claim in merged.claims if claim.claim_id in left_out),
        final_scores=summary.scores,
        left_open=summary.left_open,
        study_codes=_codes(again, rest, look_up),
    )


def _is_within(claim: Claim, passages: Sequence[MarkedPassage]) -> bool:
    return bool(passages) and all(
        any(one.start <= span.start and span.end <= one.end for one in passages) for span in claim.quote_spans
    )


def _repeats(plan: RunPlan, judgments: Sequence[TurnJudgment]) -> dict[str, tuple[tuple[Verdict, ...], ...]]:
    """By judge, one entry per repeat: its verdicts on all claims of the trial."""
    again = [judgment.repeats for judgment in judgments if judgment.repeats]
    return {
        f"judge_{number + 1}": tuple(
            tuple(verdict for repeats in again for verdict in repeats[number][k]) for k in range(plan.judge_repeats)
        )
        for number in range(len(plan.verifiers) if again else 0)
    }


def _shared(plan: RunPlan, judgments: Sequence[TurnJudgment]) -> dict[str, tuple[Verdict, ...]]:
    """By judge: its verdicts on the claims of the audit sample, when they shared a call."""
    audited = [judgment.shared for judgment in judgments if judgment.shared]
    return {
        f"judge_{number + 1}": tuple(verdict for shared in audited for verdict in shared[number])
        for number in range(len(plan.verifiers) if audited else 0)
    }


def _target(plan: RunPlan, trial: Trial, records: Sequence[CallRecord]) -> TargetRecord:
    provider, model = split_name(trial.target)
    api_id = plan.api_ids.get(trial.target, model)
    served = tuple(dict.fromkeys(record.served_model for record in records if record.served_model))
    return TargetRecord(
        name=trial.target,
        provider=provider,
        model=model,
        family=family(trial.target),
        api_id=api_id,
        served_models=served,
        served_as_requested=None if plan.settings_of(trial.target).recorded else as_requested(served, api_id),
        fingerprints=tuple(dict.fromkeys(record.fingerprint for record in records if record.fingerprint)),
        not_applied=tuple(dict.fromkeys(name for record in records for name in record.not_applied)),
    )


def as_requested(served: Sequence[str], api_id: str) -> bool | None:
    return all(is_version_of(name, api_id) for name in served) if served else None


def _services(plan: RunPlan, judgments: Sequence[TurnJudgment]) -> tuple[JudgeService, ...]:
    """The models that served as judges, in an order that does not depend on which call returned first."""
    by_model: dict[str, list[CallRecord]] = {}
    for judgment in judgments:
        for record in judgment.records:
            by_model.setdefault(record.model, []).append(record)
    return tuple(
        JudgeService(
            model=model,
            served_models=served,
            served_as_requested=as_requested(served, plan.api_ids.get(model, split_name(model).model)),
            not_applied=tuple(sorted({name for record in records for name in record.not_applied})),
        )
        for model, records in sorted(by_model.items())
        for served in [tuple(sorted({record.served_model for record in records if record.served_model}))]
    )
