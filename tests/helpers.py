"""Builders for tests: scenarios, claims, verdicts, scripted judge clients, call records, results and plans."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from src.adapters.base import ModelRequest
from src.agents.ask import JudgeClient
from src.planning.rubrics import load_rubric
from src.schemas import (
    CallOutcome,
    CallParameters,
    CallPolicy,
    CallRecord,
    Claim,
    ClaimInView,
    ClaimType,
    Confidence,
    Exchange,
    FinalClaim,
    Fingerprints,
    Flags,
    JudgedBy,
    KeyInView,
    Label,
    Manifest,
    PlannedScenario,
    Prompt,
    QuotedClaim,
    QuoteSpan,
    Role,
    RunPlan,
    Scenario,
    Scores,
    Severity,
    TargetRecord,
    TrialOutcome,
    TrialResult,
    Usage,
    Verdict,
)
from src.storage import RESULTS, encode_record
from src.store.hash_chain import GENESIS, chained
from src.store.strict_json import fingerprint
from src.text.fence import unwrap

ROOT = Path(__file__).resolve().parents[1]
HASH = "0" * 64
ROLES: tuple[Role, ...] = ("questioner", "extractor", "verifier", "scorer", "adjudicator")


def fact_json(fact_id: str = "F1", statement: str = "Plans have networks.", severity: str = "medium") -> dict[str, Any]:
    return {
        "fact_id": fact_id,
        "statement": statement,
        "rationale": "",
        "source": "Medicare & You 2026",
        "severity_if_wrong": severity,
    }


def scenario_json(**changes: Any) -> dict[str, Any]:
    """A small valid scenario as it would be in a file; keyword arguments replace whole top-level fields."""
    return {
        "scenario_id": "s1",
        "title": "A small scenario",
        "effective_date": "2026-01-01",
        "persona": {"name": "Ada Inventado", "city": "Lakemont"},
        "scripted_turns": [{"turn_id": "Q1", "user_message": "What is Part B?"}],
        "variation_knobs": {},
        "answer_key": {
            "canonical_facts": [fact_json("F1"), fact_json("F2", "The premium is $202.90 a month.", "high")],
            "required_points": ["F1", "F2"],
            "disallowed_claims": ["Naming a doctor as in-network", "Promising a price"],
        },
        "rubric_version": "v1",
        **changes,
    }


def scenario(**changes: Any) -> Scenario:
    return Scenario.model_validate_json(json.dumps(scenario_json(**changes)))


def quoted(
    claim_id: str = "C1",
    text: str = "Plans have networks.",
    quotes: Sequence[str] = ("Plans have networks.",),
    *,
    type_: ClaimType = "factual",
    verifiable: bool = True,
) -> QuotedClaim:
    return QuotedClaim(
        claim_id=claim_id, text=text, type=type_, confidence="high", verifiable=verifiable, quotes=tuple(quotes)
    )


def claim(claim_id: str = "Q1.C1", *, confidence: Confidence = "high", verifiable: bool = True) -> Claim:
    return Claim(
        claim_id=claim_id,
        text="Plans have networks.",
        type="factual",
        confidence=confidence,
        verifiable=verifiable,
        quote_spans=(QuoteSpan(start=0, end=5),),
        turn_id=claim_id.partition(".")[0],
    )


def shown(claim_id: str = "Q1.C1", *quotes: str) -> ClaimInView:
    return ClaimInView(claim_id=claim_id, text="Plans have networks.", quotes=quotes or ("Plans have networks.",))


def verdict(
    claim_id: str = "Q1.C1",
    label: Label = "SUPPORTED",
    evidence: Sequence[str] | None = None,
    severity: Severity | None = None,
) -> Verdict:
    """A verdict that keeps the rules unless the arguments say otherwise."""
    cites = ("F1",) if evidence is None and label != "NOT_IN_KEY" else tuple(evidence or ())
    return Verdict(
        claim_id=claim_id,
        label=label,
        evidence=cites,
        severity=severity or ("medium" if label == "CONTRADICTED" else "none"),
        notes="",
    )


def verdicts_json(*given: Verdict) -> str:
    return json.dumps({"verdicts": [one.model_dump(mode="json") for one in given]})


def call_record(
    call: str = "t|target|Q1|0|0|1",
    *,
    request: ModelRequest | None = None,
    outcome: CallOutcome = "ok",
    text: str | None = "An answer.",
    final: bool = True,
    error: str | None = None,
) -> CallRecord:
    return CallRecord(
        call=call,
        request_sha256=request.sha256() if request else HASH,
        prompt_sha256=request.prompt_sha256 if request else None,
        model=request.model if request else "fake:careful",
        input_characters=request.characters if request else 0,
        max_tokens=request.max_tokens if request else 100,
        outcome=outcome,
        final=final,
        text=text,
        stop_reason=None,
        served_model=None,
        fingerprint=None,
        request_id=None,
        usage=Usage(),
        not_applied=(),
        error=error,
        status=None,
        sent=None,
        received=None,
        started="2026-01-01T00:00:00.000+00:00",
        latency_ms=0.0,
    )


@dataclass(frozen=True)
class Failed:
    """A scripted call that brings no usable text, or text with another outcome than ok."""

    outcome: CallOutcome
    text: str | None = None
    error: str | None = "planned by the test"


def with_canary(answer: str, message: str) -> str:
    """A scripted answer with the canary of the message it answers, if it is a JSON object without one."""
    try:
        document = json.loads(answer)
    except (ValueError, RecursionError):
        return answer
    if not isinstance(document, dict) or "canary" in document:
        return answer
    canary = json.dumps(unwrap(message)[0])
    return answer.replace("{", f'{{"canary": {canary}' + (", " if document else ""), 1)


ScriptedReply = str | Failed | Callable[[ModelRequest], str]


@dataclass
class ScriptedJudge:
    """Answers from a list, in order; keeps what it was asked. Being asked more often than scripted fails the test."""

    replies: list[ScriptedReply]
    asked: list[tuple[int, ModelRequest]] = field(default_factory=list)

    async def call(self, number: int, request: ModelRequest) -> CallRecord:
        assert self.replies, "the judge was asked more often than the test planned"
        self.asked.append((number, request))
        reply = self.replies.pop(0)
        if isinstance(reply, Failed):
            return call_record(request=request, outcome=reply.outcome, text=reply.text, error=reply.error)
        said = reply if isinstance(reply, str) else reply(request)
        return call_record(request=request, text=with_canary(said, request.messages[0].content))

    def payload(self, place: int = 0) -> Any:
        """The JSON the agent sent with one asking: its input, which stays the first message."""
        return json.loads(unwrap(self.asked[place][1].messages[0].content)[1])

    def problems(self, place: int) -> list[str]:
        """The problems that this ask named in the answer before it."""
        found = json.loads(self.asked[place][1].messages[-1].content)["problems"]
        assert isinstance(found, list)
        return found


def client(*replies: ScriptedReply, max_asks: int = 3, seed: int = 7) -> tuple[JudgeClient, ScriptedJudge]:
    judge = ScriptedJudge(list(replies))
    made = JudgeClient(
        model="anthropic:a-judge",
        api_id="a-judge-20260101",
        system="You judge.",
        seed=seed,
        parameters=CallParameters(temperature=0.0, max_tokens=1_000),
        max_asks=max_asks,
        call=judge.call,
    )
    return made, judge


def key_of(one: Scenario) -> KeyInView:
    from src.agents.verifier import key_in_view

    return key_in_view(one.answer_key)


def plan(
    *,
    scenarios: Sequence[Scenario] | None = None,
    targets: Sequence[str] = ("fake:careful",),
    verifiers: Sequence[str] = ("offline:rules", "offline:rules"),
    repeats: int = 1,
    questioner: str | None = None,
) -> RunPlan:
    chosen = scenarios or [scenario()]
    return RunPlan(
        scenarios=tuple(PlannedScenario(path=f"{s.scenario_id}.json", sha256=HASH, scenario=s) for s in chosen),
        plan_year=2026,
        rubrics={"v1": load_rubric("v1")},
        targets=tuple(targets),
        verifiers=tuple(verifiers),
        extractor=verifiers[0],
        scorer=verifiers[0],
        adjudicator=verifiers[0],
        questioner=questioner,
        api_ids={name: name.partition(":")[2] for name in (*targets, *verifiers, *filter(None, [questioner]))},
        repeats=repeats,
        seed=42,
        target_parameters=CallParameters(temperature=0.0, max_tokens=100),
        judge_parameters=CallParameters(temperature=0.0, max_tokens=100),
        policy=CallPolicy(),
        prompts={role: Prompt(sha256=HASH, text=role) for role in ROLES},
    )


def manifest(made: RunPlan) -> Manifest:
    return Manifest(
        run_id="20260101T000000Z",
        created="2026-01-01T00:00:00+00:00",
        plan_sha256=fingerprint(made.model_dump(mode="json")),
        versions={"python": "3.11"},
        concurrency=1,
        prices_as_of="2026-01-01",
        prices={},
        plan=made,
    )


def final_claim(claim_id: str = "Q1.C1", label: Label | None = "SUPPORTED", **changes: Any) -> FinalClaim:
    fields: dict[str, Any] = {
        "claim_id": claim_id,
        "turn_id": claim_id.partition(".")[0],
        "text": "Plans have networks.",
        "label": label,
        "evidence": ("F1",) if label and label != "NOT_IN_KEY" else (),
        "severity": "medium" if label == "CONTRADICTED" else "none",
        "decided_by": "unanimous" if label else "unresolved",
        "labels_given": (label, label) if label else (),
    }
    return FinalClaim(**{**fields, **changes})


def result(
    *,
    target: str = "fake:careful",
    scenario_id: str = "s1",
    repetition: int = 1,
    outcome: TrialOutcome = "scored",
    accuracy: float | None = 1.0,
    scores: Scores | None = None,
    question: str = "What is Part B?",
    reply: str = "Plans have networks.",
    claims: Sequence[Claim] = (),
    final_claims: Sequence[FinalClaim] = (),
    errors: Sequence[str] = (),
    refusal: bool = False,
    fabricated: bool = False,
    review: bool = False,
) -> TrialResult:
    provider, _, model = target.partition(":")
    given = scores or Scores(accuracy=accuracy, completeness=0.5, safety_risk=0.1, calibration=0.9)
    return TrialResult(
        trial_id=f"{scenario_id}.{provider}-{model[:20]}.r{repetition}",
        scenario_id=scenario_id,
        variant=None,
        repetition=repetition,
        target=TargetRecord(
            name=target,
            provider=provider,
            model=model,
            family=provider,
            api_id=model,
            served_models=(),
            served_as_requested=None,
            fingerprints=(),
            not_applied=(),
        ),
        outcome=outcome,
        conversation=(
            Exchange(
                turn_id="Q1",
                question_group=None,
                user_message=question,
                outcome="answered",
                reply=reply,
                detail=None,
                served_model=None,
            ),
        ),
        claims=tuple(claims),
        rejected_claims=(),
        verdicts={},
        scores_by_judge={},
        final_claims=tuple(final_claims),
        final_scores=given if outcome == "scored" else None,
        missing_required_points=(),
        study_codes=(),
        readings=(),
        severity_disagreements=0,
        error_categories=tuple(errors),
        needs_manual_review=review,
        disagreement=None,
        flags=Flags(refusal=refusal, hallucinated_specifics=fabricated),
        observations=(),
        judge_failures=(),
        judged_by=JudgedBy(
            extractor="offline:rules",
            verifiers={"judge_1": "offline:rules"},
            scorer="offline:rules",
            adjudicator="offline:rules",
        ),
        judge_services=(),
        rubric_version="v1",
        fingerprints=Fingerprints(scenario=HASH, rubric=HASH, prompts=dict.fromkeys(ROLES, HASH)),
    )


def write_results(folder: Path, results: Sequence[TrialResult]) -> None:
    """A results.jsonl as a run leaves it: chained."""
    head, lines = GENESIS, b""
    for one in results:
        head, line = chained(head, encode_record(one))
        lines += line
    (folder / RESULTS).write_bytes(lines)
