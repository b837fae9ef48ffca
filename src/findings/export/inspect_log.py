"""Transcripts as logs of Inspect (inspect.aisi.org.uk): `inspect view --log-dir OUT/inspect` shows each conversation.

There is one log per target, or several if there are many trials, because Inspect writes a log in one go. A sample is a
trial: its id is the scenario, its epoch the repetition; claims, verdicts and study codes are in its metadata. A missing
score is NaN, as is usual in Inspect, and its explanation says why.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...schemas import (
    Manifest,
    Scenario,
    TrialResult,
    point_facts,
)
from ..analysis.trial_row import SCORES
from .rows import coverage_of, quotes_of, replies_of, why_no_score
from .tables import MISSING
from .writers import optional

LOG_SAMPLES = 1_000
LOG_CHARACTERS = 20_000_000
"""A log is written when it has this many samples, or when all samples in memory have this much text."""
SCORER = "medicare_eval"
_ERRORS = ("failed", "questioner_failure")


class InspectSink:
    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._log = optional("inspect_ai.log", "inspect")
        self._model = optional("inspect_ai.model", "inspect")
        self._scorer = optional("inspect_ai.scorer", "inspect")
        self._folder = folder
        self._manifest = manifest
        self._targets = {p.name: _reference(p.scenario) for p in manifest.plan.scenarios}
        self._samples: dict[str, list[Any]] = {target: [] for target in manifest.plan.targets}
        self._characters = dict.fromkeys(self._samples, 0)
        self._written: dict[str, int] = {}
        self._paths: list[Path] = []

    def add(self, result: TrialResult) -> None:
        target = result.target.name
        self._samples[target].append(self._sample(result))
        self._characters[target] += sum(len(e.user_message) + len(e.reply or "") for e in result.conversation)
        if len(self._samples[target]) >= LOG_SAMPLES:
            self._write(target)
        elif sum(self._characters.values()) >= LOG_CHARACTERS:
            self._write(max(self._characters, key=lambda name: self._characters[name]))

    def close(self) -> list[Path]:
        for target in list(self._samples):
            if self._samples[target] or not self._written.get(target):
                self._write(target)
        return self._paths

    def _sample(self, result: TrialResult) -> Any:
        name = f"{result.scenario_id}@{result.variant}" if result.variant else result.scenario_id
        asked = [exchange for exchange in result.conversation if exchange.outcome not in ("skipped", "not_asked")]
        messages: list[Any] = []
        for exchange in asked:
            about = {"turn_id": exchange.turn_id, "outcome": exchange.outcome}
            messages.append(self._model.ChatMessageUser(content=exchange.user_message, metadata=about))
            if exchange.reply is not None:
                model = exchange.served_model or result.target.api_id
                messages.append(self._model.ChatMessageAssistant(content=exchange.reply, model=model, metadata=about))
        replies = [exchange.reply for exchange in asked if exchange.reply is not None]
        output = self._model.ModelOutput.from_content(result.target.api_id, replies[-1]) if replies else None
        why = _what_failed(result)
        return self._log.EvalSample(
            id=name,
            epoch=result.repetition,
            input=asked[0].user_message if asked else "",
            target=self._targets.get(name, []),
            messages=messages,
            scores={score: self._score(result, score) for score in SCORES},
            metadata=_metadata(result),
            **({"output": output} if output else {}),
            error=self._log.EvalError(message=why, traceback=why, traceback_ansi=why) if why else None,
        )

    def _score(self, result: TrialResult, name: str) -> Any:
        value: float | None = getattr(result.final_scores, name) if result.final_scores else None
        if value is not None:
            return self._scorer.Score(value=value)
        reason = why_no_score(result.outcome)
        return self._scorer.Score(
            value=math.nan, explanation=f"{reason}: {MISSING[reason].meaning}", metadata={"missing": reason}
        )

    def _write(self, target: str) -> None:
        samples, self._samples[target] = self._samples[target], []
        self._characters[target] = 0
        number = self._written[target] = self._written.get(target, 0) + 1
        self._folder.mkdir(parents=True, exist_ok=True)
        slug = re.sub(r"[^A-Za-z0-9-]+", "-", target)
        path = self._folder / f"{self._manifest.run_id}_medicare-eval_{slug}-{number}.eval"
        self._log.write_eval_log(self._eval_log(target, samples, number), str(path), format="eval")
        self._paths.append(path)

    def _eval_log(self, target: str, samples: Sequence[Any], number: int) -> Any:
        manifest, plan, log = self._manifest, self._manifest.plan, self._log
        created = manifest.created
        config = self._model.GenerateConfig(
            temperature=plan.target_parameters.temperature, max_tokens=plan.target_parameters.max_tokens
        )
        return log.EvalLog(
            status="success",
            eval=log.EvalSpec(
                eval_id=f"{manifest.run_id}-{re.sub('[^A-Za-z0-9-]+', '-', target)}-{number}",
                run_id=manifest.run_id,
                created=created,
                task="medicare-eval",
                task_id=manifest.plan_sha256,
                dataset=log.EvalDataset(name="medicare-eval", samples=len(samples)),
                model=target.replace(":", "/", 1),
                model_generate_config=config,
                config=log.EvalConfig(epochs=plan.repeats),
                packages=dict(manifest.versions),
                metadata={
                    "plan_sha256": manifest.plan_sha256,
                    "api_id": plan.api_ids.get(target),
                    "plan_year": plan.plan_year,
                    "seed": str(plan.seed),
                    "verifiers": list(plan.verifiers),
                    "adjudicator": plan.adjudicator,
                    "exported_from": "results.jsonl of medicare-eval; no call was made by Inspect",
                },
            ),
            results=log.EvalResults(
                total_samples=len(samples),
                completed_samples=len(samples),
                scores=[self._mean(samples, name) for name in SCORES],
            ),
            stats=log.EvalStats(started_at=created, completed_at=created),
            samples=list(samples),
        )

    def _mean(self, samples: Sequence[Any], name: str) -> Any:
        values = [sample.scores[name].value for sample in samples]
        there = [value for value in values if not math.isnan(value)]
        mean = math.fsum(there) / len(there) if there else math.nan
        return self._log.EvalScore(
            name=name,
            scorer=SCORER,
            scored_samples=len(there),
            unscored_samples=len(values) - len(there),
            metrics={"mean": self._log.EvalMetric(name="mean", value=mean)},
        )


def _reference(scenario: Scenario) -> list[str]:
    """What a complete answer says, according to the answer key."""
    facts = {fact.fact_id: fact.statement for fact in scenario.answer_key.canonical_facts}
    return [" / ".join(facts[name] for name in point_facts(point)) for point in scenario.all_required_points()]


def _what_failed(result: TrialResult) -> str | None:
    if result.outcome not in _ERRORS:
        return None
    details = [f"{exchange.turn_id}: {exchange.detail}" for exchange in result.conversation if exchange.detail]
    details += [f"{failure.stage}: {failure.reason}" for failure in result.judge_failures]
    return "; ".join([MISSING[result.outcome].meaning, *details])


def _metadata(result: TrialResult) -> dict[str, Any]:
    final = {claim.claim_id: claim for claim in result.final_claims}
    replies = replies_of(result)
    claims = []
    for claim in result.claims:
        decided = final.get(claim.claim_id)
        claims.append(
            {
                "claim_id": claim.claim_id,
                "turn_id": claim.turn_id,
                "claim": claim.text,
                "quotes": quotes_of(claim, replies),
                "type": claim.type,
                "confidence": claim.confidence,
                "label": decided.label if decided else None,
                "evidence": list(decided.evidence) if decided else [],
                "severity": decided.severity if decided else None,
                "decided_by": decided.decided_by if decided else "not_verifiable",
                "verdicts": {
                    judge: verdict.model_dump(mode="json", exclude={"claim_id"})
                    for judge, verdicts in result.verdicts.items()
                    for verdict in verdicts
                    if verdict.claim_id == claim.claim_id
                },
            }
        )
    return {
        "trial_id": result.trial_id,
        "outcome": result.outcome,
        "claims": claims,
        "rejected_claims": [claim.model_dump(mode="json") for claim in result.rejected_claims],
        "study_codes": [
            {"question_group": code.question_group, "code": code.code, "answer": code.answer, "reason": code.reason}
            for code in result.study_codes
        ],
        "missing_required_points": list(result.missing_required_points),
        "error_categories": list(result.error_categories),
        "needs_manual_review": result.needs_manual_review,
        **coverage_of(result),
        "marked_passages": [
            {"turn_id": reading.turn_id, "start": one.start, "end": one.end, "why": one.why}
            for reading in result.readings
            for one in reading.marked
        ],
        "review_reasons": None
        if result.review_reasons is None
        else [reason.model_dump(mode="json") for reason in result.review_reasons],
        "judge_failures": [failure.model_dump(mode="json") for failure in result.judge_failures],
        "served_models": list(result.target.served_models),
        "turns": [{"turn_id": e.turn_id, "outcome": e.outcome, "detail": e.detail} for e in result.conversation],
    }
