"""Run folders made by hand: every outcome, hostile text, judges that fail, closed questions, repeated verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, get_args

from src.records.citation import CheckedCitation, CitationOutcome
from src.records.contracts import FinalClaim, QuoteSpan, ScorerOutput, Scores
from src.reports import template
from src.schemas import (
    CallRecord,
    Claim,
    Exchange,
    JudgeFailure,
    Manifest,
    Observation,
    QuestionCode,
    RejectedClaim,
    RunPlan,
    Scenario,
    Severity,
    TrialOutcome,
    TrialResult,
    TurnCitation,
    TurnObservation,
    TurnOutcome,
    TurnReading,
    Verdict,
)
from src.storage import JOURNAL, MANIFEST, RESULTS, encode_record, manifest_sha256
from src.store.hash_chain import GENESIS, chained

from ..helpers import call_record, fact_json, manifest, plan, result, scenario

OUTCOMES: tuple[TrialOutcome, ...] = get_args(TrialOutcome)
HOSTILE = (
    "=HYPERLINK(\"http://evil\",\"x\")", "+1+1", "-2+3", "@SUM(A1)", "\t=1+1", "\r=1+1", "＝1+1",
    "\x1b[31mred\x1b[0m\x07", "line\nbreak, \"quotes\" and ; semicolons\r\n", "\u202eright to left", "nul\x00inside",
    "日本語 😀 é ﷽", "\ufeffbom", "a|b`c`<script>alert(1)</script>", "trailing   ", "NA", "null", "", "'", "x" * 70_000,
)  # fmt: skip


def write_run(folder: Path, results: Iterable[TrialResult], made: RunPlan | None = None) -> Path:
    """A run folder as a run leaves it, unsealed."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).write_bytes(encode_record(manifest(made or plan())) + b"\n")
    head = GENESIS
    with (folder / RESULTS).open("wb") as file:
        for one in results:
            head, line = chained(head, encode_record(one))
            file.write(line)
    return folder


def write_journal(folder: Path, records: Sequence[CallRecord]) -> None:
    head = manifest_sha256(folder)
    with (folder / JOURNAL).open("wb") as file:
        for record in records:
            head, line = chained(head, record.__pydantic_serializer__.to_json(record))
            file.write(line)


def call_on(day: str, model: str) -> CallRecord:
    return call_record().model_copy(update={"model": model, "started": f"{day}T23:59:59.000+00:00"})


def costly() -> Scenario:
    """A scenario whose facts have costs: one with a price for life, one that needs an amount, one without a price."""
    costs: list[dict[str, Any]] = [
        {"cost_class": "priced", "formula": "dime(0.10 * 2 * 202.90) * 12 * years", "horizon": [1, 10, 20]},
        {"cost_class": "exposure", "formula": "abs(stated - 202.90) * 12", "note": "=SUM(A1)"},
        {"cost_class": "unpriced"},
    ]
    said = "The premium is $202.90 a month."
    facts = [{**fact_json(f"F{n}", said), "cost_if_wrong": cost} for n, cost in enumerate(costs, 1)]
    key = {"canonical_facts": facts, "required_points": ["F1"], "disallowed_claims": []}
    return scenario(answer_key=key)


def planned(**changes: Any) -> RunPlan:
    fields: dict[str, Any] = {"scenarios": [costly()], **changes}
    return plan(targets=("fake:careful", "openai:gpt-x"), repeats=30, **fields)


def of_outcome(outcome: TrialOutcome, repetition: int) -> TrialResult:
    return result(outcome=outcome, repetition=repetition)


def nothing_to_check(repetition: int) -> TrialResult:
    empty = Scores(accuracy=None, completeness=0.0, safety_risk=0.0, calibration=None)
    return result(repetition=repetition, scores=empty)


def one_of_each() -> list[TrialResult]:
    """A trial of each outcome, and a scored one without anything to check."""
    made = [of_outcome(outcome, n) for n, outcome in enumerate(OUTCOMES, 1)]
    return [*made, nothing_to_check(len(made) + 1)]


def rich(repetition: int = 1, text: str = "Plans have networks.", target: str = "fake:careful") -> TrialResult:
    """A scored trial with everything in it: two turns, three claims, verdicts and repeats, a judge that failed once."""
    reply = text or "x"
    span = (QuoteSpan(start=0, end=len(reply)),)

    def claim(number: int, *, verifiable: bool = True) -> Claim:
        return Claim(
            claim_id=f"Q1.C{number}", text=(text or "x")[:20_000], type="factual", confidence="high",
            verifiable=verifiable, quote_spans=span, turn_id="Q1",
        )  # fmt: skip

    def verdict(number: int, label: Any = "SUPPORTED") -> Verdict:
        severity: Severity = "high" if label == "CONTRADICTED" else "none"
        return Verdict(claim_id=f"Q1.C{number}", label=label, evidence=("F1",), severity=severity, notes=text[:4_000])

    def final(number: int, label: Any) -> FinalClaim:
        return FinalClaim(
            claim_id=f"Q1.C{number}", turn_id="Q1", text=(text or "x")[:20_000], label=label,
            evidence=("F1", "F2", "F3") if label else (), severity="high" if label == "CONTRADICTED" else "none",
            decided_by="majority" if label else "unresolved", labels_given=(label,) if label else (),
        )  # fmt: skip

    def exchange(turn_id: str, outcome: TurnOutcome, said: str | None) -> Exchange:
        return Exchange(
            turn_id=turn_id, question_group="cost" if turn_id == "Q1" else None, user_message=text or "x",
            outcome=outcome, reply=said, detail=None if said else text, served_model="served-1" if said else None,
        )  # fmt: skip

    def code(group: str, **given: Any) -> QuestionCode:
        fields: dict[str, Any] = {
            "turn_ids": ("Q1",), "code": None, "answer": None, "reason": text, "lookup_dependent": False,
            "points_met": (), "points_missed": ("F3|F4",), "partial_points_met": (), "wrong": (), "minor": (),
            "fabricated": (text,),
        }  # fmt: skip
        return QuestionCode(question_group=group, **(fields | given))

    def citation(claim_id: str | None, outcome: CitationOutcome) -> TurnCitation:
        checked = CheckedCitation(
            url=(text or "x")[:2_000], where="text", start=0, end=1, claim_id=claim_id, host_class="other", outcome=outcome,
            page_sha256="0" * 64 if claim_id else None, why=text[:1_000] or "x",
        )  # fmt: skip
        return TurnCitation(turn_id="Q1", citation=checked)

    scores = Scores(accuracy=1 / 3, completeness=0.5, safety_risk=0.6, calibration=None)
    own = ScorerOutput(scores=scores, missing_required_points=(), error_categories=())
    return result(target=target, repetition=repetition, scores=scores).model_copy(
        update={
            "conversation": (exchange("Q1", "answered", reply), exchange("Q2", "skipped", None)),
            "claims": (claim(1), claim(2), claim(3, verifiable=False), claim(4)),
            "citations": (citation("Q1.C1", "supported"), citation(None, "not_official")),
            "rejected_claims": (RejectedClaim(turn_id="Q1", text=text, reason="no quote"),),
            "verdicts": {
                "judge_1": (verdict(1), verdict(2, "CONTRADICTED"), verdict(4)),
                "judge_2": (verdict(1, "NOT_IN_KEY"), verdict(2, "CONTRADICTED")),
            },
            "repeat_verdicts": {"judge_1": ((verdict(1, "CONTRADICTED"), verdict(2), verdict(4)),)},
            "scores_by_judge": {"judge_1": own, "judge_2": own},
            "final_claims": (final(1, "SUPPORTED"), final(2, "CONTRADICTED"), final(4, None)),
            "study_codes": (
                code("cost", code="incorrect"), code("closed", answer="yes"), code("unanswered", code="incomplete_data"),
            ),
            "missing_required_points": ("F1", "F3|F4"),
            "error_categories": ("contradiction",),
            "readings": (
                TurnReading(turn_id="Q1", how="judges", sentences=3, covered_first=1, covered=2, typographic_quotes=1),
            ),
            "observations": (TurnObservation(turn_id="Q1", observation=Observation(kind="hedge", quote="perhaps")),),
            "judge_failures": (
                JudgeFailure(stage="verifier", turn_id="Q1", judge=2, claim_ids=("Q1.C4",), reason=text),
            ),
            "disagreement": 0.5,
        }
    )  # fmt: skip


def hostile() -> list[TrialResult]:
    return [rich(n, text) for n, text in enumerate(HOSTILE, 1)]


def manifest_of(folder: Path) -> Manifest:
    return Manifest.model_validate_json((folder / MANIFEST).read_bytes())


def rule(name: str) -> str:
    """What Methods and the checklists say about intervals, missing answers, differences or outcomes."""
    return " ".join(str(getattr(template.named("text", "rules").module, name)()).split())
