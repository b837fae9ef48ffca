"""The rows that a run adds to the exported tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ... import storage
from ...schemas import (
    Claim,
    Exchange,
    FinalClaim,
    GroupRule,
    Manifest,
    ReviewReason,
    RunPlan,
    Scores,
    TrialResult,
    TurnReading,
    Verdict,
)
from ...scoring.definitions import SCORES
from ..analysis.baseline import load_baseline
from ..analysis.dollars import CostlyError, Costs, costs_of, errors_of
from ..analysis.missing import measured_score
from ..analysis.read_run import (
    NOT_RECORDED,
    OPEN_TIE,
    group_rules,
    has_fake_target,
    is_open_tie,
    judged_offline,
    software_version,
)
from .question_rows import counselor_rows, like_for_like, question_row
from .tables import CITATION, CLAIM, COUNSELOR, DOLLAR, JOINED, JUDGE, QUESTION, RUN, TRIAL, TURN, VERDICT, Row, Table


@dataclass(frozen=True)
class About:
    """What the rows of a run need to know about it."""

    run_id: str
    verifiers: dict[str, str]
    """Judge to model."""
    rules: dict[tuple[str, str], GroupRule]
    compared: frozenset[tuple[str, str]]
    """Questions, by scenario and group, that are compared like for like with counselors."""
    plan: RunPlan
    costs: Costs

    @classmethod
    def of(cls, manifest: Manifest) -> About:
        verifiers = {f"judge_{n}": name for n, name in enumerate(manifest.plan.verifiers, 1)}
        plan = manifest.plan
        rules = group_rules(plan)
        compared = like_for_like(rules, load_baseline())
        return cls(manifest.run_id, verifiers, rules, compared, plan, costs_of(plan))


class TableRow(NamedTuple):
    table: Table
    row: Row


def run_rows(manifest: Manifest, results: storage.StoredResults, about: About) -> Iterator[TableRow]:
    """The rows that belong to no trial; `results` must have been read to the end."""
    yield TableRow(RUN, _run(manifest, results))
    for row in counselor_rows(about.run_id, about.rules, load_baseline()):
        yield TableRow(COUNSELOR, row)


def _run(manifest: Manifest, results: storage.StoredResults) -> Row:
    plan, registered = manifest.plan, manifest.registration
    return {
        "run_id": manifest.run_id,
        "created": manifest.created,
        "software_version": software_version(manifest),
        "python_version": manifest.versions.get("python"),
        "plan_sha256": manifest.plan_sha256,
        "results_head": results.head,
        "sealed": results.sealed,
        "trials_planned": plan.trial_count,
        "trials_here": results.count,
        "plan_year": plan.plan_year,
        "seed": str(plan.seed),
        "repeats": plan.repeats,
        "judge_repeats": plan.judge_repeats,
        "judge_sample": plan.judge_sample,
        "scenarios": JOINED.join(planned.name for planned in plan.scenarios),
        "targets": JOINED.join(plan.targets),
        "verifiers": JOINED.join(plan.verifiers),
        "extractor": plan.extractor,
        "scorer": plan.scorer,
        "adjudicator": plan.adjudicator,
        "isolation": plan.isolation,
        "audit_sample": plan.audit_sample,
        "background_facts": len(plan.background),
        "questioner": plan.questioner,
        "target_temperature": plan.target_parameters.temperature,
        "target_max_tokens": plan.target_parameters.max_tokens,
        "judge_temperature": plan.judge_parameters.temperature,
        "judge_max_tokens": plan.judge_parameters.max_tokens,
        "wording_title": plan.wording.title if plan.wording else None,
        "wording_sha256": plan.wording.sha256 if plan.wording else None,
        "expired": _list(plan.expired),
        "coming": plan.coming,
        "points_left_out": plan.points_left_out,
        "offline_judge": judged_offline(plan),
        "fake_target": has_fake_target(plan),
        "transcripts_of": manifest.transcripts.run_id if manifest.transcripts else None,
        "registration_sha256": registered.sha256 if registered else None,
        "primary_outcome": registered.primary_outcome if registered else None,
        "deviations": _list(registered.deviations) if registered else None,
    }


def trial_rows(result: TrialResult, about: About) -> Iterator[TableRow]:
    """Everything that one trial adds to the tables."""
    base: Row = {
        "run_id": about.run_id,
        "trial_id": result.trial_id,
        "scenario_id": result.scenario_id,
        "variant": result.variant,
        "target": result.target.name,
        "repetition": result.repetition,
    }
    kind = about.plan.settings_of(result.target.name).kind
    yield TableRow(TRIAL, base | {"target_kind": kind} | _trial(result))
    for judge, model in about.verifiers.items():
        own = result.scores_by_judge.get(judge)
        scores = _score_cells(result, _own(own.scores if own else None))
        yield TableRow(JUDGE, base | {"judge": judge, "judge_model": model} | scores)
    yield from (TableRow(TURN, base | row) for row in _turns(result))
    yield from (TableRow(CLAIM, base | row) for row in _claims(result, about))
    yield from (TableRow(VERDICT, base | row) for row in _verdicts(result, about))
    yield from (TableRow(CITATION, base | row) for row in _citations(result))
    yield from (TableRow(QUESTION, base | row) for row in _questions(result, about))
    for error in errors_of(result, about.costs):
        yield from (TableRow(DOLLAR, base | row) for row in _dollars(error))


def _citations(result: TrialResult) -> Iterator[Row]:
    for position, one in enumerate(result.citations, 1):
        cited = one.citation
        yield {
            "turn_id": one.turn_id,
            "position": position,
            "claim_id": cited.claim_id,
            "url": cited.url,
            "where": cited.where,
            "host_class": cited.host_class,
            "citation_outcome": cited.outcome,
            "page_sha256": cited.page_sha256,
            "why": cited.why,
        }


def _list(parts: Sequence[str]) -> str | None:
    return JOINED.join(parts) or None


def why_no_score(result: TrialResult) -> str:
    """Why a score is missing."""
    if result.outcome != "scored":
        return result.outcome
    return "unresolved" if any(claim.label is None for claim in result.final_claims) else "nothing_to_check"


def _score_cells(result: TrialResult, scores: Mapping[str, float | None]) -> Row:
    cells: Row = {}
    for name in SCORES:
        cells[name] = scores[name]
        cells[f"{name}_missing"] = why_no_score(result) if scores[name] is None else None
    return cells


def _own(scores: Scores | None) -> dict[str, float | None]:
    return {name: getattr(scores, name) if scores else None for name in SCORES}


def _counted(result: TrialResult) -> dict[str, float | None]:
    """The final scores, as they count in estimates."""
    final = _own(result.final_scores)
    return {name: measured_score(result.outcome, name, score).value for name, score in final.items()}


def coverage_of(result: TrialResult) -> Row:
    """Factual claims with a final label, and how many of them the key could decide."""
    factual = {claim.claim_id for claim in result.claims if claim.type == "factual"}
    labels = [claim.label for claim in result.final_claims if claim.claim_id in factual and claim.label]
    return {"factual_claims": len(labels), "key_decided": sum(label != "NOT_IN_KEY" for label in labels)}


def _without_cells(result: TrialResult) -> Row:
    without = result.without_marked
    reason = why_no_score(result)
    if result.outcome == "scored" and without is None:
        reason = "not_marked"
    elif without is not None and without.final_scores is None:
        reason = "unread_without"
    cells: Row = {}
    for name in SCORES:
        value: float | None = getattr(without.final_scores, name) if without and without.final_scores else None
        cells[f"{name}_unmarked"] = value
        cells[f"{name}_unmarked_missing"] = reason if value is None else None
    return cells


def _trial(result: TrialResult) -> Row:
    target = result.target
    labels = Counter(claim.label for claim in result.final_claims)
    return {
        "provider": target.provider,
        "model": target.model,
        "family": target.family,
        "api_id": target.api_id,
        "served_models": _list(target.served_models),
        "served_as_requested": target.served_as_requested,
        "fingerprints": _list(target.fingerprints),
        "not_applied": _list(target.not_applied),
        "searches": sum(turn.search.searches for turn in result.conversation if turn.search),
        "citations": len(result.citations),
        "outcome": result.outcome,
        **_score_cells(result, _counted(result)),
        **coverage_of(result),
        "claims": len(result.claims),
        "claims_supported": labels["SUPPORTED"],
        "claims_contradicted": labels["CONTRADICTED"],
        "claims_not_in_key": labels["NOT_IN_KEY"],
        "claims_unresolved": labels[None],
        "rejected_claims": len(result.rejected_claims),
        "missing_required_points": _list(result.missing_required_points),
        "error_categories": _list(result.error_categories),
        "refusal": result.flags.refusal,
        "hallucinated_specifics": result.flags.hallucinated_specifics,
        "needs_manual_review": result.needs_manual_review,
        **_review_cells(result.review_reasons, needed=result.needs_manual_review),
        "disagreement": result.disagreement,
        "disagreement_missing": why_no_score(result) if result.disagreement is None else None,
        "marked_replies": sum(bool(reading.marked) for reading in result.readings),
        **_without_cells(result),
        "severity_disagreements": result.severity_disagreements,
        "judge_failures": len(result.judge_failures),
        "rubric_version": result.rubric_version,
        "scenario_sha256": result.fingerprints.scenario,
        "rubric_sha256": result.fingerprints.rubric,
    }


def _review_cells(reasons: Sequence[ReviewReason] | None, *, needed: bool) -> Row:
    if reasons is None:
        unknown = NOT_RECORDED if needed else None
        return {"review_reasons": unknown, "review_details": unknown}
    return {
        "review_reasons": _list([reason.kind for reason in reasons]),
        "review_details": _list([reason.detail for reason in reasons]),
    }


def _turns(result: TrialResult) -> Iterator[Row]:
    readings = {reading.turn_id: reading for reading in result.readings}
    claims = Counter(claim.turn_id for claim in result.claims)
    rejected = Counter(claim.turn_id for claim in result.rejected_claims)
    seen = Counter((item.turn_id, item.observation.kind) for item in result.observations)
    for position, exchange in enumerate(result.conversation, 1):
        turn_id = exchange.turn_id
        yield {
            **_exchange(exchange, position),
            **_reading(readings.get(turn_id)),
            "claims": claims[turn_id],
            "rejected_claims": rejected[turn_id],
            "refusals": seen[turn_id, "refusal"],
            "referrals": seen[turn_id, "referral"],
            "hedges": seen[turn_id, "hedge"],
            "fabricated_specifics": seen[turn_id, "fabricated_specific"],
        }


def _exchange(exchange: Exchange, position: int) -> Row:
    return {
        "turn_id": exchange.turn_id,
        "position": position,
        "question_group": exchange.question_group,
        "outcome": exchange.outcome,
        "user_message": exchange.user_message,
        "reply": exchange.reply,
        "reply_characters": len(exchange.reply or ""),
        "detail": exchange.detail,
        "served_model": exchange.served_model,
    }


def _reading(reading: TurnReading | None) -> Row:
    return {
        "read_how": reading.how if reading else None,
        "read_why": (reading.why or None) if reading else None,
        "sentences": reading.sentences if reading else None,
        "sentences_covered_first": reading.covered_first if reading else None,
        "sentences_covered": reading.covered if reading else None,
        "verbatim": reading.verbatim if reading else None,
        "marked": len(reading.marked) if reading else None,
        "marked_why": _list([passage.why for passage in reading.marked]) if reading else None,
        "verified": _verified(reading) if reading else None,
        "typographic_quotes": reading.typographic_quotes if reading else None,
    }


def _verified(reading: TurnReading) -> str:
    return reading.verified or "together" if reading.how == "judges" else "none"


def quotes_of(claim: Claim, replies: Mapping[str | None, str]) -> list[str]:
    """The target's own words for a claim."""
    reply = replies.get(claim.turn_id, "")
    return [reply[span.start : span.end] for span in claim.quote_spans]


def replies_of(result: TrialResult) -> dict[str | None, str]:
    return {exchange.turn_id: exchange.reply or "" for exchange in result.conversation}


def _claims(result: TrialResult, about: About) -> Iterator[Row]:
    final = {claim.claim_id: claim for claim in result.final_claims}
    replies = replies_of(result)
    for claim in result.claims:
        decided = final.get(claim.claim_id)
        missing = None
        if decided is None or decided.label is None:
            missing = _why_no_label(claim, decided, about)
        folded = any(span.match == "typographic" for span in claim.quote_spans)
        yield {
            "turn_id": claim.turn_id,
            "claim_id": claim.claim_id,
            "claim": claim.text,
            "quotes": " … ".join(quotes_of(claim, replies)),
            "spans": JOINED.join(f"{span.start}-{span.end}" for span in claim.quote_spans),
            "quote_match": "typographic" if folded else "exact",
            "type": claim.type,
            "confidence": claim.confidence,
            "verifiable": claim.verifiable,
            "verbatim": claim.verbatim,
            "label": decided.label if decided else None,
            "label_missing": missing,
            "evidence": _list(decided.evidence) if decided else None,
            "severity": decided.severity if decided else None,
            "severity_split": decided.severity_split if decided else None,
            "decided_by": decided.decided_by if decided else None,
            "labels_given": _list(decided.labels_given) if decided else None,
        }


def _why_no_label(claim: Claim, final: FinalClaim | None, about: About) -> str:
    if not claim.verifiable:
        return "not_verifiable"
    if final and is_open_tie(about.plan, final.decided_by, final.labels_given):
        return OPEN_TIE
    return "unresolved"


def _verdicts(result: TrialResult, about: About) -> Iterator[Row]:
    turns = {claim.claim_id: claim.turn_id for claim in result.claims if claim.verifiable}
    in_shared = {one.claim_id for verdicts in result.shared_verdicts.values() for one in verdicts}
    shared = {claim_id: turn_id for claim_id, turn_id in turns.items() if claim_id in in_shared}
    for judge, model in about.verifiers.items():
        base: Row = {"judge": judge, "judge_model": model, "asked": "alone_or_together"}
        rounds = (result.verdicts.get(judge, ()), *result.repeat_verdicts.get(judge, ()))
        for repeat, verdicts in enumerate(rounds):
            yield from _verdict_rows(turns, verdicts, base | {"repeat": repeat})
        in_shared_calls = result.shared_verdicts.get(judge, ())
        yield from _verdict_rows(shared, in_shared_calls, base | {"asked": "shared_call", "repeat": 0})


def _verdict_rows(turns: Mapping[str, str | None], verdicts: Sequence[Verdict], base: Row) -> Iterator[Row]:
    """One row per claim, also where the judge gave no verdict."""
    given = {verdict.claim_id: verdict for verdict in verdicts}
    for claim_id, turn_id in turns.items():
        yield {"turn_id": turn_id, "claim_id": claim_id} | base | _verdict(given.get(claim_id))


def _verdict(verdict: Verdict | None) -> Row:
    return {
        "label": verdict.label if verdict else None,
        "evidence": _list(verdict.evidence) if verdict else None,
        "severity": verdict.severity if verdict else None,
        "notes": (verdict.notes or None) if verdict else None,
    }


def _questions(result: TrialResult, about: About) -> Iterator[Row]:
    return (question_row(code, result, about.rules, about.compared) for code in result.study_codes)


def _dollars(error: CostlyError) -> Iterator[Row]:
    missing = "unpriced" if error.formula is None else "no_single_amount"
    no_stated = missing if error.needs_stated or error.formula is None else "none_needed"
    for years in error.horizon:
        amount = error.dollars(years)
        yield {
            "turn_id": error.turn_id,
            "claim_id": error.claim_id,
            "fact_id": error.fact.fact_id,
            "library_fact": error.fact.library,
            "cost_class": error.cost_class,
            "severity": error.severity,
            "formula": error.formula,
            "stated": None if error.stated is None else float(error.stated),
            "stated_missing": no_stated if error.stated is None else None,
            "years": years,
            "dollars": None if amount is None else float(amount),
            "dollars_missing": missing if amount is None else None,
        }
