"""The extractor: a model splits a reply into claims and quotes them; code finds the quotes and the gaps between them.

A claim is rejected and counted, never repaired, if its quote is not in the reply, if it names a figure that its quote
does not contain, or if too few of its words are in its quote: what cannot be shown in the target's own words was not
said. If factual sentences of the reply are left out (see `text.coverage`), the extractor is asked once for the rest.
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
from ..text.overlap import shares_enough_words
from ..text.quotes import find_quote
from .ask import Answer, JudgeClient, ask

_NO_COVERAGE = Coverage(0, 0, ())


@dataclass(frozen=True)
class Extraction:
    claims: tuple[Claim, ...] = ()
    rejected: tuple[RejectedClaim, ...] = ()
    failure: str | None = None
    first: Coverage = _NO_COVERAGE
    """What the claims of the first answer cover."""
    final: Coverage = _NO_COVERAGE


async def extract(client: JudgeClient, turn_id: str, payload: ExtractorInput) -> Extraction:
    answer = await ask(client, payload, ExtractorReply, _check)
    if answer.value is None:
        return Extraction(failure=answer.failure)
    found = anchor(turn_id, payload.reply, answer.value, payload.question)
    first = covered_by(payload.reply, found.claims)
    if first.enough:
        return Extraction(found.claims, found.rejected, None, first, first)
    rest = payload.model_copy(update={"left_out": first.left_out})
    # A failure here is ignored: what the extractor leaves out twice stays left out, and is counted.
    more = (await ask(client, rest, ExtractorReply, _check, first=client.max_asks)).value
    added = anchor(turn_id, payload.reply, more, payload.question, "again.") if more else Extraction()
    known = {(claim.text, claim.quote_spans) for claim in found.claims}
    claims = (*found.claims, *(claim for claim in added.claims if (claim.text, claim.quote_spans) not in known))
    rejected = (*found.rejected, *added.rejected)
    return Extraction(claims, rejected, None, first, covered_by(payload.reply, claims))


def _check(reply: ExtractorReply, _: ExtractorReply | None) -> Answer[ExtractorReply]:
    ids = [claim.claim_id for claim in reply.claims]
    repeated = sorted({claim_id for claim_id in ids if ids.count(claim_id) > 1})
    return Answer(problems=(f"claim ids {repeated} are used more than once",)) if repeated else Answer(reply)


def covered_by(reply: str, claims: tuple[Claim, ...]) -> Coverage:
    return coverage(reply, [(span.start, span.end) for claim in claims for span in claim.quote_spans])


def anchor(turn_id: str, reply: str, extracted: ExtractorReply, question: str = "", prefix: str = "") -> Extraction:
    """Locate the quotes of every claim in the reply; reject the claims that fail."""
    claims: list[Claim] = []
    rejected: list[RejectedClaim] = []
    for quoted in extracted.claims:
        spans = tuple(span for quote in quoted.quotes if (span := find_quote(reply, quote)))
        found = [reply[span.start : span.end] for span in spans]
        reason = _rejection(quoted, found, question)
        if reason:
            rejected.append(RejectedClaim(turn_id=turn_id, text=quoted.text, reason=reason))
            continue
        claims.append(
            Claim(
                claim_id=f"{turn_id}.{prefix}{quoted.claim_id}",
                text=quoted.text,
                type=quoted.type,
                confidence=quoted.confidence,
                verifiable=quoted.verifiable or _checkable(quoted, found),
                quote_spans=spans,
                turn_id=turn_id,
            )
        )
    return Extraction(ExtractorOutput(claims=tuple(claims)).claims, tuple(rejected))


def _checkable(claim: QuotedClaim, found: list[str]) -> bool:
    """Whether verifiers get a claim that the extractor called unverifiable: it is factual, or it states an amount."""
    amounts = any(is_amount(figure) for quote in found for figure in figures(quote))
    return claim.type == "factual" or (amounts and claim.type != "referral")


def _rejection(claim: QuotedClaim, found: list[str], question: str) -> str | None:
    """Why a claim is rejected, or None."""
    if len(found) < len(claim.quotes):
        return "a quote is not in the reply"
    unquoted = figures(claim.text).difference(*map(figures, found))
    if unquoted:
        return f"the claim's figures {sorted(unquoted)} are not in its quotes"
    if not shares_enough_words([*found, question], claim.text):
        return "the claim's words are not in its quotes"
    return None
