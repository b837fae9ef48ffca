"""The extractor: a model splits a reply into claims and quotes them; code finds the quotes and what they leave out.

A claim whose quote is not in the reply, that names a figure its quote does not hold, or whose words its quote does not
bear, is rejected and counted, never repaired: what cannot be shown in the target's own words was not said. Where
factual sentences of the reply are left out (see `coverage`), the extractor is asked once for the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..schemas import (
    Claim,
    ExtractorInput,
    ExtractorOutput,
    ExtractorReply,
    QuotedClaim,
    RejectedClaim,
)
from ..text.coverage import Coverage, coverage
from ..text.figures import figures, is_amount
from ..text.overlap import bears
from ..text.quotes import find_quote
from .ask import JudgeClient, ask

_NOTHING = Coverage(0, 0, ())


@dataclass(frozen=True)
class Extraction:
    claims: tuple[Claim, ...] = ()
    rejected: tuple[RejectedClaim, ...] = ()
    failure: str | None = None
    first: Coverage = _NOTHING
    """What the first answer covered."""
    final: Coverage = _NOTHING


async def extract(client: JudgeClient, turn_id: str, payload: ExtractorInput) -> Extraction:
    given, failure = await _ask(client, payload, first=0)
    if failure or given is None:
        return Extraction(failure=failure)
    found = anchor(turn_id, payload.reply, given, payload.question)
    first = covered_by(payload.reply, found.claims)
    if first.enough:
        return Extraction(found.claims, found.rejected, None, first, first)
    rest = payload.model_copy(update={"left_out": first.left_out})
    more, _ = await _ask(client, rest, first=client.max_asks)  # what it left out twice stays left out, and is counted
    added = anchor(turn_id, payload.reply, more, payload.question, "again.") if more else Extraction()
    known = {(claim.text, claim.quote_spans) for claim in found.claims}
    claims = (*found.claims, *(claim for claim in added.claims if (claim.text, claim.quote_spans) not in known))
    rejected = (*found.rejected, *added.rejected)
    return Extraction(claims, rejected, None, first, covered_by(payload.reply, claims))


async def _ask(client: JudgeClient, payload: ExtractorInput, *, first: int) -> tuple[ExtractorReply | None, str | None]:
    replies: list[ExtractorReply] = []

    def accept(reply: ExtractorReply) -> list[str]:
        ids = [claim.claim_id for claim in reply.claims]
        repeated = sorted({claim_id for claim_id in ids if ids.count(claim_id) > 1})
        if repeated:
            return [f"claim ids {repeated} stand more than once"]
        replies.append(reply)
        return []

    failure = await ask(client, payload, ExtractorReply, accept, first=first)
    return (replies[-1] if replies else None), failure


def covered_by(reply: str, claims: tuple[Claim, ...]) -> Coverage:
    return coverage(reply, [(span.start, span.end) for claim in claims for span in claim.quote_spans])


def anchor(turn_id: str, reply: str, extracted: ExtractorReply, question: str = "", prefix: str = "") -> Extraction:
    """Tie every claim to places in the reply; set aside those that cannot be."""
    claims: list[Claim] = []
    rejected: list[RejectedClaim] = []
    for quoted in extracted.claims:
        spans = tuple(span for quote in quoted.quotes if (span := find_quote(reply, quote)))
        reason = _why_not(quoted, [reply[span.start : span.end] for span in spans], question)
        if reason:
            rejected.append(RejectedClaim(turn_id=turn_id, text=quoted.text, reason=reason))
            continue
        claims.append(
            Claim(
                claim_id=f"{turn_id}.{prefix}{quoted.claim_id}",
                text=quoted.text,
                type=quoted.type,
                confidence=quoted.confidence,
                verifiable=quoted.verifiable or _checkable(quoted, [reply[span.start : span.end] for span in spans]),
                quote_spans=spans,
                turn_id=turn_id,
            )
        )
    return Extraction(ExtractorOutput(claims=tuple(claims)).claims, tuple(rejected))


def _checkable(claim: QuotedClaim, found: list[str]) -> bool:
    """A factual claim, and one that states an amount, is put to the verifiers whatever the extractor says of it."""
    amounts = any(is_amount(figure) for quote in found for figure in figures(quote))
    return claim.type == "factual" or (amounts and claim.type != "referral")


def _why_not(claim: QuotedClaim, found: list[str], question: str) -> str | None:
    if len(found) < len(claim.quotes):
        return "a quote is not in the reply"
    unquoted = figures(claim.text).difference(*map(figures, found))
    if unquoted:
        return f"the claim's figures {sorted(unquoted)} are not in its quotes"
    if not bears([*found, question], claim.text):
        return "the claim's words are not in its quotes"
    return None
