"""The extractor: a model splits a reply into claims and quotes them; code finds the quotes.

A claim whose quote is not in the reply, or that names a figure its quote does not hold, is rejected and counted,
never repaired: what cannot be shown in the target's own words was not said.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..figures import figures
from ..quotes import find_quote
from ..schemas import Claim, ExtractorInput, ExtractorOutput, ExtractorReply, QuotedClaim, RejectedClaim
from .asking import Seat, ask


@dataclass(frozen=True)
class Extraction:
    claims: tuple[Claim, ...] = ()
    rejected: tuple[RejectedClaim, ...] = ()
    failure: str | None = None


async def extract(seat: Seat, turn_id: str, payload: ExtractorInput) -> Extraction:
    replies: list[ExtractorReply] = []

    def accept(reply: ExtractorReply) -> list[str]:
        ids = [claim.claim_id for claim in reply.claims]
        repeated = sorted({claim_id for claim_id in ids if ids.count(claim_id) > 1})
        if repeated:
            return [f"claim ids {repeated} stand more than once"]
        replies.append(reply)
        return []

    failure = await ask(seat, payload, ExtractorReply, accept)
    if failure:
        return Extraction(failure=failure)
    return anchor(turn_id, payload.reply, replies[-1])


def anchor(turn_id: str, reply: str, extracted: ExtractorReply) -> Extraction:
    """Tie every claim to places in the reply; set aside those that cannot be."""
    claims: list[Claim] = []
    rejected: list[RejectedClaim] = []
    for quoted in extracted.claims:
        spans = tuple(span for quote in quoted.quotes if (span := find_quote(reply, quote)))
        reason = _why_not(quoted, [reply[span.start : span.end] for span in spans])
        if reason:
            rejected.append(RejectedClaim(turn_id=turn_id, text=quoted.text, reason=reason))
            continue
        claims.append(
            Claim(
                claim_id=f"{turn_id}.{quoted.claim_id}",
                text=quoted.text,
                type=quoted.type,
                confidence=quoted.confidence,
                verifiable=quoted.verifiable,
                quote_spans=spans,
                turn_id=turn_id,
            )
        )
    return Extraction(ExtractorOutput(claims=tuple(claims)).claims, tuple(rejected))


def _why_not(claim: QuotedClaim, found: list[str]) -> str | None:
    if len(found) < len(claim.quotes):
        return "a quote is not in the reply"
    unquoted = figures(claim.text).difference(*map(figures, found))
    if unquoted:
        return f"the claim's figures {sorted(unquoted)} are not in its quotes"
    return None
