"""Count what judges got right and wrong on the gold set. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ..records.base import severity_rank
from ..records.gold import ClaimKind, GoldClaim
from ..records.judge_check import (
    CheckManifest,
    ExtractorMeasured,
    JudgeCheck,
    JudgeError,
    JudgeMeasured,
    LabelCount,
)
from ..schemas import Label, QuoteSpan, Verdict
from ..store.strict_json import fingerprint
from ..text.coverage import coverage
from ..text.quotes import find_quote
from .gold import GoldItem
from .judge_reply import JudgedReply

PANEL = "panel"
_WORST_FIRST: dict[tuple[Label, Label | None], int] = {
    ("CONTRADICTED", "SUPPORTED"): 0,
    ("SUPPORTED", "CONTRADICTED"): 1,
    ("NOT_IN_KEY", "SUPPORTED"): 2,
    ("NOT_IN_KEY", "CONTRADICTED"): 3,
    ("CONTRADICTED", "NOT_IN_KEY"): 4,
    ("SUPPORTED", "NOT_IN_KEY"): 5,
}
"""Gold and given label to rank. First wrong claims called right, then right claims called wrong; misses come last."""
_NO_VERDICT = 6


def measure(manifest: CheckManifest, judged: Sequence[JudgedReply], cost: float | None) -> JudgeCheck:
    """The record of a check: errors of every verifier, of the panel if there are two or more, and of the extractor."""
    plan = manifest.plan
    items = [one.item for one in judged]
    judges = [
        _measure_judge(f"judge_{number}", model, items, [one.verdicts[number - 1] for one in judged])
        for number, model in enumerate(plan.verifiers, 1)
    ]
    if len(plan.verifiers) > 1:
        judges.append(_measure_judge(PANEL, None, items, [one.final for one in judged]))
    return JudgeCheck(
        check_id=manifest.check_id,
        plan_sha256=fingerprint(plan.model_dump(mode="json")),
        split=plan.split,
        replies=len(judged),
        claims=sum(len(item.claims) for item in items),
        judges=tuple(judges),
        extractor=_measure_extractor(plan.extractor, judged),
        failures=tuple(failure for one in judged for failure in one.failures),
        calls=sum(len(one.records) for one in judged),
        cost=cost,
        verifiers=plan.verifiers,
        adjudicator=plan.adjudicator,
        prompts={role: prompt.sha256 for role, prompt in plan.prompts.items()},
    )


def _measure_judge(
    name: str, model: str | None, items: Sequence[GoldItem], given: Sequence[dict[str, Verdict]]
) -> JudgeMeasured:
    counts: Counter[tuple[Label, Label | None]] = Counter()
    right: Counter[ClaimKind] = Counter()
    total: Counter[ClaimKind] = Counter()
    same_evidence = 0
    errors: list[JudgeError] = []
    for item, verdicts in zip(items, given, strict=True):
        for claim in item.reply.claims:
            verdict = verdicts.get(claim.claim_id)
            counts[claim.label, verdict.label if verdict else None] += 1
            total[claim.kind] += 1
            if verdict and verdict.label == claim.label:
                right[claim.kind] += 1
                same_evidence += not claim.evidence or bool(set(claim.evidence) & set(verdict.evidence))
            else:
                errors.append(_error(item, claim, verdict))
    return JudgeMeasured(
        name=name,
        model=model,
        confusion=tuple(
            LabelCount(gold=gold, given=label, claims=n) for (gold, label), n in sorted(counts.items(), key=str)
        ),
        by_kind={kind: (right[kind], total[kind]) for kind in sorted(total)},
        same_evidence=same_evidence,
        errors=tuple(sorted(errors, key=_badness)),
    )


def _error(item: GoldItem, claim: GoldClaim, verdict: Verdict | None) -> JudgeError:
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
    rank = _WORST_FIRST.get((error.gold, error.given), _NO_VERDICT)
    return rank, -severity_rank(error.severity), error.reply_id, error.claim_id


def _measure_extractor(model: str, judged: Sequence[JudgedReply]) -> ExtractorMeasured:
    total: Counter[str] = Counter()
    for one in judged:
        reply, extraction = one.item.reply.text, one.extraction
        gold = [_spans(reply, claim.quotes) for claim in one.item.reply.claims]
        given = [claim.quote_spans for claim in extraction.claims if claim.verifiable]
        every = [span for claim in extraction.claims for span in claim.quote_spans]
        covered = coverage(reply, [(span.start, span.end) for span in every])
        total.update(
            gold_claims=len(gold),
            found=sum(any(_overlap(spans, other) for other in given) for spans in gold),
            extracted=len(given),
            on_gold=sum(any(_overlap(spans, other) for other in gold) for spans in given),
            rejected=len(extraction.rejected),
            typographic=sum(span.match == "typographic" for span in every),
            factual_sentences=covered.sentences,
            covered=covered.covered,
        )
    return ExtractorMeasured(model=model, **total)


def _spans(reply: str, quotes: Iterable[str]) -> tuple[QuoteSpan, ...]:
    return tuple(span for quote in quotes if (span := find_quote(reply, quote)))


def _overlap(one: Sequence[QuoteSpan], other: Sequence[QuoteSpan]) -> bool:
    return any(a.start < b.end and b.start < a.end for a in one for b in other)
