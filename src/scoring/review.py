"""Why a trial needs manual review. Decided here once and recorded in the result; everything else reads the record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..agents import adjudicator
from ..schemas import (
    Claim,
    Exchange,
    FinalClaim,
    QuestionCode,
    RejectedClaim,
    ReviewReason,
    TurnObservation,
    TurnReading,
)
from ..text.count import counted
from ..text.coverage import COVERAGE_BELOW

REVIEW_ABOVE = 0.2
"""Fraction of claims on which the verifiers disagree."""
REJECTED_ABOVE = 0.2
"""Fraction of claims without a real quote: above it, the extractor did not read the reply well."""
LONGEST_DETAIL = 1_000
"""Characters of a reason."""
LONG_REPLY_WORDS = 20
"""If the extractor finds nothing to check in a reply with more words than this, it probably missed something."""


def review_reasons(
    *,
    exchanges: Sequence[Exchange],
    readings: Sequence[TurnReading],
    claims: Sequence[Claim],
    rejected: Sequence[RejectedClaim],
    final: Sequence[FinalClaim],
    observations: Sequence[TurnObservation],
    codes: Sequence[QuestionCode] = (),
) -> tuple[ReviewReason, ...]:
    """Every reason that holds, in a fixed order; empty where no person needs to look."""
    return (
        *_apart(readings),
        *_unjudged(readings),
        *_nothing_extracted(exchanges, readings, claims, observations),
        *_low_coverage(readings),
        *_rejected(claims, rejected),
        *_disagreement(final),
        *_open(final),
        *_unchecked(codes),
    )


def _apart(readings: Sequence[TurnReading]) -> Iterator[ReviewReason]:
    marked = [reading for reading in readings if reading.marked]
    if marked:
        found = [passage for reading in marked for passage in reading.marked]
        why = dict.fromkeys(passage.why for passage in found)
        number = counted(len(found), "passage")
        yield ReviewReason(
            kind="judged_apart",
            detail=f"{number} judged apart from the rest of the reply. The screen found: {'; '.join(why)}."[
                :LONGEST_DETAIL
            ],
            turn_ids=tuple(reading.turn_id for reading in marked),
        )


def _unjudged(readings: Sequence[TurnReading]) -> Iterator[ReviewReason]:
    found = [reading for reading in readings if reading.unjudged or reading.unjudged_claims]
    if found:
        characters = counted(sum(reading.unjudged for reading in found), "character")
        claims = counted(sum(reading.unjudged_claims for reading in found), "claim")
        yield ReviewReason(
            kind="unjudged",
            detail=f"A reply is longer than what is judged of one: {characters} and {claims} were left out.",
            turn_ids=tuple(reading.turn_id for reading in found),
        )


def _nothing_extracted(
    exchanges: Sequence[Exchange],
    readings: Sequence[TurnReading],
    claims: Sequence[Claim],
    observations: Sequence[TurnObservation],
) -> Iterator[ReviewReason]:
    """Long replies that neither refuse nor refer, and in which the extractor found nothing to check."""
    judged = {reading.turn_id for reading in readings}
    found = {claim.turn_id for claim in claims if claim.verifiable}
    evasive = {item.turn_id for item in observations if item.observation.kind in ("refusal", "referral")}
    turns = tuple(
        exchange.turn_id
        for exchange in exchanges
        if exchange.turn_id in judged - found - evasive and len((exchange.reply or "").split()) > LONG_REPLY_WORDS
    )
    if turns:
        yield ReviewReason(
            kind="nothing_extracted",
            detail=f"The extractor found no checkable claim in a reply of more than {LONG_REPLY_WORDS} words.",
            turn_ids=turns,
        )


def _low_coverage(readings: Sequence[TurnReading]) -> Iterator[ReviewReason]:
    low = [reading for reading in readings if reading.covered < COVERAGE_BELOW * reading.sentences]
    if low:
        covered, sentences = sum(r.covered for r in low), sum(r.sentences for r in low)
        yield ReviewReason(
            kind="low_coverage",
            detail=f"Claims cover only {covered} of {sentences} factual sentences of these replies.",
            turn_ids=tuple(reading.turn_id for reading in low),
        )


def _rejected(claims: Sequence[Claim], rejected: Sequence[RejectedClaim]) -> Iterator[ReviewReason]:
    total = len(claims) + len(rejected)
    if len(rejected) > REJECTED_ABOVE * total:
        yield ReviewReason(
            kind="rejected_claims",
            detail=f"{len(rejected)} of {total} extracted claims were rejected: their quotes do not support them.",
            turn_ids=tuple(dict.fromkeys(claim.turn_id for claim in rejected)),
        )


def _disagreement(final: Sequence[FinalClaim]) -> Iterator[ReviewReason]:
    share = adjudicator.disagreement(final)
    if share is not None and share > REVIEW_ABOVE:
        split = tuple(claim.claim_id for claim in final if len(set(claim.labels_given)) > 1)
        yield ReviewReason(
            kind="judges_disagree",
            detail=f"The verifiers disagree on {share:.0%} of the claims; more than {REVIEW_ABOVE:.0%} needs review.",
            claim_ids=split,
        )


def _open(final: Sequence[FinalClaim]) -> Iterator[ReviewReason]:
    left = tuple(claim.claim_id for claim in final if claim.label is None)
    if left:
        yield ReviewReason(
            kind="open_claims",
            detail=f"{len(left)} {'claim has' if len(left) == 1 else 'claims have'} no final label.",
            claim_ids=left,
        )


def _unchecked(codes: Sequence[QuestionCode]) -> Iterator[ReviewReason]:
    """Lookup questions whose answer was looked up, from a source that nobody has checked."""
    found = [code for code in codes if code.lookup_dependent and any(not one.checked for one in code.looked_up)]
    if found:
        number = sum(not one.checked for code in found for one in code.looked_up)
        yield ReviewReason(
            kind="unchecked_source",
            detail=f"{counted(number, 'specific')} looked up, from a source that nobody has checked.",
            turn_ids=tuple(dict.fromkeys(turn for code in found for turn in code.turn_ids)),
        )
