"""The adjudicator: majority by code; a model is asked only on a tie, and only to choose among labels already given.

A claim that fewer than two verifiers judged, or whose tie nobody could settle, stays unresolved and counts nowhere.
Evidence is what most of the verifiers who gave the winning label cite; their gravest severity stands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import get_args

from ..records.base import severity_rank
from ..schemas import (
    AdjudicatorInput,
    AdjudicatorReply,
    Claim,
    ClaimInView,
    FinalClaim,
    KeyInView,
    Label,
    TiedClaim,
    Verdict,
)
from .ask import JudgeClient, ask


def tied(claims: Sequence[ClaimInView], verdicts: Sequence[Sequence[Verdict]]) -> tuple[TiedClaim, ...]:
    """The claims on which no label has a majority, with the labels that were given."""
    found = []
    for claim in claims:
        leaders = _leaders(_labels(claim.claim_id, verdicts))
        if len(leaders) > 1:
            found.append(TiedClaim(claim_id=claim.claim_id, text=claim.text, quotes=claim.quotes, options=leaders))
    return tuple(found)


async def settle(
    client: JudgeClient, question: str, ties: tuple[TiedClaim, ...], key: KeyInView
) -> tuple[dict[str, Label], str | None]:
    """The adjudicator model's choice for each tie; or, for those it did not settle, why."""
    chosen: dict[str, Label] = {}
    options = {tie.claim_id: tie.options for tie in ties}

    def accept(reply: AdjudicatorReply) -> list[str]:
        problems = []
        ids = [decision.claim_id for decision in reply.decisions]
        for decision in reply.decisions:
            allowed = options.get(decision.claim_id)
            if allowed is None or ids.count(decision.claim_id) > 1:
                problems.append(f"{decision.claim_id[:80]} is not a tied claim, or stands more than once")
            elif decision.claim_id in chosen:
                continue
            elif decision.label not in allowed:
                problems.append(f"{decision.claim_id}: the label must be one of {list(allowed)}")
            else:
                chosen[decision.claim_id] = decision.label
        return problems + [f"{claim_id}: has no decision" for claim_id in options if claim_id not in chosen]

    failure = await ask(
        client, AdjudicatorInput(question=question, claims=ties, answer_key=key), AdjudicatorReply, accept
    )
    return chosen, failure if len(chosen) < len(ties) else None


def conclude(
    claims: Sequence[Claim], verdicts: Sequence[Sequence[Verdict]], settled: Mapping[str, Label]
) -> tuple[FinalClaim, ...]:
    """The final word on every claim that was put to the verifiers."""
    return tuple(_final(claim, verdicts, settled) for claim in claims if claim.verifiable)


def final_label(
    claim_id: str, verdicts: Sequence[Sequence[Verdict]], settled: Mapping[str, Label]
) -> tuple[Label | None, list[Verdict]]:
    """The label that stands, and the verdicts behind it."""
    leaders = _leaders(_labels(claim_id, verdicts))
    label = leaders[0] if len(leaders) == 1 else settled.get(claim_id)
    return label, [v for judge in verdicts for v in judge if v.claim_id == claim_id and v.label == label]


def _final(claim: Claim, verdicts: Sequence[Sequence[Verdict]], settled: Mapping[str, Label]) -> FinalClaim:
    labels = _labels(claim.claim_id, verdicts)
    leaders = _leaders(labels)
    label, behind = final_label(claim.claim_id, verdicts, settled)
    assert claim.turn_id is not None
    return FinalClaim(
        claim_id=claim.claim_id,
        turn_id=claim.turn_id,
        text=claim.text,
        label=label,
        evidence=_evidence(behind),
        severity=max((verdict.severity for verdict in behind), key=severity_rank, default="none"),
        severity_split=len({verdict.severity for verdict in behind}) > 1,
        decided_by=(
            "unresolved"
            if label is None
            else "adjudicator"
            if len(leaders) > 1
            else "unanimous"
            if len(set(labels)) == 1 and len(labels) == len(verdicts)
            else "majority"
        ),
        labels_given=labels,
    )


def _evidence(behind: Sequence[Verdict]) -> tuple[str, ...]:
    """The ids that more than half of the winning verdicts cite; where there is none, all that any of them does."""
    counts = Counter(cited for verdict in behind for cited in verdict.evidence)
    agreed = tuple(cited for cited, count in counts.items() if 2 * count > len(behind))
    return agreed or tuple(counts)


def _labels(claim_id: str, verdicts: Sequence[Sequence[Verdict]]) -> tuple[Label, ...]:
    return tuple(verdict.label for judge in verdicts for verdict in judge if verdict.claim_id == claim_id)


def _leaders(labels: tuple[Label, ...]) -> tuple[Label, ...]:
    """The label more than half gave; else all that were given; none where fewer than two judges gave one."""
    if len(labels) < 2:
        return ()
    counts = Counter(labels)
    majority = [label for label, count in counts.items() if 2 * count > len(labels)]
    return tuple(majority or [label for label in get_args(Label) if counts[label]])


def disagreement(final: Sequence[FinalClaim]) -> float | None:
    """Share of the claims judged at least twice on which the verifiers did not all agree."""
    judged = [claim for claim in final if len(claim.labels_given) > 1]
    if not judged:
        return None
    return round(sum(len(set(claim.labels_given)) > 1 for claim in judged) / len(judged), 6)
