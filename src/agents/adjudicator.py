"""The adjudicator: code takes the majority; a model is asked only on a tie, to choose among the labels already given.

That model is never of a verifier's family: no model settles a tie that it made. Without such a model, ties stay open
for a person. A claim that fewer than two verifiers judged, or whose tie was not settled, is unresolved and does not
count. The evidence is what most of the verifiers who gave the winning label cite; the severity is the highest that they
gave.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from ..records.base import severity_rank
from ..schemas import (
    AdjudicatorInput,
    AdjudicatorReply,
    Claim,
    ClaimInView,
    Decision,
    FinalClaim,
    Label,
    TiedClaim,
    Verdict,
)
from .ask import JudgeAnswer, JudgeClient, ask, one_per_claim
from .verifier import Shown


def tied(claims: Sequence[ClaimInView], verdicts: Sequence[Sequence[Verdict]]) -> tuple[TiedClaim, ...]:
    """The claims for which no label has a majority, with the labels that were given."""
    found = []
    for claim in claims:
        leaders = _leaders(_labels(claim.claim_id, verdicts))
        if len(leaders) > 1:
            found.append(TiedClaim(claim_id=claim.claim_id, text=claim.text, quotes=claim.quotes, options=leaders))
    return tuple(found)


async def settle(client: JudgeClient, ties: tuple[TiedClaim, ...], shown: Shown) -> JudgeAnswer[dict[str, Label]]:
    """The adjudicator model's label for each tie, with problems if any tie is left."""
    payload = shown.payload(AdjudicatorInput, ties)
    options = {tie.claim_id: tie.options for tie in ties}

    def violations(decision: Decision) -> list[str]:
        allowed = options[decision.claim_id]
        return [] if decision.label in allowed else [f"must have one of the labels {list(allowed)}"]

    def check(reply: AdjudicatorReply, accepted: dict[str, Decision] | None) -> JudgeAnswer[dict[str, Decision]]:
        return one_per_claim(reply.decisions, options, accepted, violations)

    answer = await ask(client, payload, AdjudicatorReply, check, longest=len(ties), keeps_entries=True)
    labels = {claim_id: decision.label for claim_id, decision in (answer.value or {}).items()}
    return JudgeAnswer(labels, answer.problems if len(labels) < len(ties) else ())


def conclude(
    claims: Sequence[Claim], verdicts: Sequence[Sequence[Verdict]], settled: Mapping[str, Label]
) -> tuple[FinalClaim, ...]:
    """The final label of every claim that the verifiers were given; one that was made before has none of its own."""
    given: dict[str, list[list[Verdict]]] = {}
    for number, judge in enumerate(verdicts):
        for verdict in judge:
            given.setdefault(verdict.claim_id, [[] for _ in verdicts])[number].append(verdict)
    none: list[list[Verdict]] = [[] for _ in verdicts]
    judged = [claim for claim in claims if claim.verifiable and claim.same_as is None]
    return tuple(_final(claim, given.get(claim.claim_id, none), settled) for claim in judged)


@dataclass(frozen=True)
class FinalLabel:
    """The label of a claim, and the verdicts that gave it."""

    label: Label | None
    """None if the claim is unresolved."""
    verdicts: tuple[Verdict, ...]


def final_label(claim_id: str, verdicts: Sequence[Sequence[Verdict]], settled: Mapping[str, Label]) -> FinalLabel:
    leaders = _leaders(_labels(claim_id, verdicts))
    label = leaders[0] if len(leaders) == 1 else settled.get(claim_id)
    winning = tuple(v for judge in verdicts for v in judge if v.claim_id == claim_id and v.label == label)
    return FinalLabel(label, winning)


def _final(claim: Claim, verdicts: Sequence[Sequence[Verdict]], settled: Mapping[str, Label]) -> FinalClaim:
    labels = _labels(claim.claim_id, verdicts)
    final = final_label(claim.claim_id, verdicts, settled)
    severities = [verdict.severity for verdict in final.verdicts]
    assert claim.turn_id is not None
    return FinalClaim(
        claim_id=claim.claim_id,
        turn_id=claim.turn_id,
        text=claim.text,
        label=final.label,
        evidence=_evidence(final.verdicts),
        severity=max(severities, key=severity_rank, default="none"),
        severity_split=len(set(severities)) > 1,
        decided_by=(
            "unresolved"
            if final.label is None
            else "adjudicator"
            if len(_leaders(labels)) > 1
            else "unanimous"
            if len(set(labels)) == 1 and len(labels) == len(verdicts)
            else "majority"
        ),
        labels_given=labels,
    )


def _evidence(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """The ids that more than half of these verdicts cite, or all that any of them cites if there are none."""
    counts = Counter(cited for verdict in verdicts for cited in verdict.evidence)
    agreed = tuple(cited for cited, count in counts.items() if 2 * count > len(verdicts))
    return agreed or tuple(counts)


def _labels(claim_id: str, verdicts: Sequence[Sequence[Verdict]]) -> tuple[Label, ...]:
    return tuple(verdict.label for judge in verdicts for verdict in judge if verdict.claim_id == claim_id)


def _leaders(labels: tuple[Label, ...]) -> tuple[Label, ...]:
    """The label that more than half gave, or all labels given; none if fewer than two judges gave one."""
    if len(labels) < 2:
        return ()
    counts = Counter(labels)
    majority = [label for label, count in counts.items() if 2 * count > len(labels)]
    return tuple(majority or [label for label in get_args(Label) if counts[label]])


def disagreement(final: Sequence[FinalClaim]) -> float | None:
    """Share of the claims with at least two verdicts on which the verifiers did not all agree."""
    judged = [claim for claim in final if len(claim.labels_given) > 1]
    if not judged:
        return None
    return round(sum(len(set(claim.labels_given)) > 1 for claim in judged) / len(judged), 6)
