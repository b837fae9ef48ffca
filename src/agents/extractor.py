"""The extractor: a model splits a reply into claims and quotes them; code finds the quotes and the gaps between them.

A claim is rejected and counted, never repaired, if its quote is not in the reply, if it names a figure that neither its
quote nor the question supplies, or if too few of its words are in its quote: what cannot be shown in the target's own
words was not said. If too many sentences of the reply are left out (see `text.coverage`), the extractor is asked once
for the rest. Any sentence that is still left out becomes a claim in its own words. So the extractor cannot hide what
the target said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..schemas import (
    Claim,
    ClaimType,
    ExtractorInput,
    ExtractorOutput,
    ExtractorReply,
    QuotedClaim,
    QuoteSpan,
    RejectedClaim,
)
from ..text.coverage import Coverage, coverage
from ..text.figures import figures, is_amount
from ..text.overlap import shares_enough_words
from ..text.quantities import unstated
from ..text.quotes import find_quote
from ..text.sentences import Span, clauses, table_headers
from .ask import AskedTurn, JudgeAnswer, JudgeClient, ask

_NO_COVERAGE = Coverage(0, ())
CHARACTERS_PER_CLAIM = 20
"""No reply makes claims more densely than this."""
FEWEST = 10


@dataclass(frozen=True)
class Extraction:
    claims: tuple[Claim, ...] = ()
    rejected: tuple[RejectedClaim, ...] = ()
    failure: str | None = None
    first: Coverage = _NO_COVERAGE
    """What the claims of the first answer cover."""
    final: Coverage = _NO_COVERAGE
    """What all claims of the extractor cover; what they leave out became claims in its own words."""


async def extract(client: JudgeClient, turn_id: str, asked: AskedTurn, reply: str) -> Extraction:
    payload = ExtractorInput(
        plan_year=asked.plan_year, earlier_questions=asked.earlier, question=asked.question, reply=reply
    )
    longest = max(FEWEST, len(reply) // CHARACTERS_PER_CLAIM)
    answer = await ask(client, payload, ExtractorReply, _check, longest=longest)
    if answer.value is None:
        return Extraction(failure=answer.failure)
    found = anchor(turn_id, reply, answer.value, asked)
    first = final = coverage(reply, found.claims)
    claims, rejected = found.claims, found.rejected
    if not first.enough:
        passages = tuple(reply[span.start : span.end] for span in first.left_out)
        rest = payload.model_copy(update={"left_out": passages})
        # A failure here is ignored: what the extractor leaves out twice is judged in its own words.
        more = (await ask(client, rest, ExtractorReply, _check, longest=longest, first=client.max_asks)).value
        added = anchor(turn_id, reply, more, asked, "again.") if more else Extraction()
        known = {(claim.text, claim.quote_spans) for claim in claims}
        claims += tuple(claim for claim in added.claims if (claim.text, claim.quote_spans) not in known)
        rejected += added.rejected
        final = coverage(reply, claims)
    own_words = verbatim(turn_id, reply, final.left_out, claims)
    return Extraction((*claims, *own_words), rejected, None, first, final)


def _check(reply: ExtractorReply, _: ExtractorReply | None) -> JudgeAnswer[ExtractorReply]:
    ids = [claim.claim_id for claim in reply.claims]
    repeated = sorted({claim_id for claim_id in ids if ids.count(claim_id) > 1})
    return JudgeAnswer(problems=(f"claim ids {repeated} are used more than once",)) if repeated else JudgeAnswer(reply)


def verbatim(turn_id: str, reply: str, left_out: Sequence[Span], claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """Sentences that no claim covers, each clause as a claim in its own words; a table row with its header."""
    own = [(sentence, clause) for sentence in left_out for clause in clauses(reply, sentence)]
    headers = table_headers(reply) if any(sentence.row for sentence in left_out) else {}
    return tuple(
        Claim(
            claim_id=f"{turn_id}.own.{number}",
            text=reply[clause.start : clause.end],
            type=_type(sentence, claims),
            confidence="high",
            verifiable=True,
            quote_spans=tuple(QuoteSpan(start=one.start, end=one.end) for one in (clause, *headers.get(sentence, ()))),
            turn_id=turn_id,
            verbatim=True,
        )
        for number, (sentence, clause) in enumerate(own, 1)
    )


def _type(sentence: Span, claims: Sequence[Claim]) -> ClaimType:
    """What the extractor called the sentence if it gave an unverifiable claim for it; otherwise factual."""
    return next(
        (
            claim.type
            for claim in claims
            for span in claim.quote_spans
            if not claim.verifiable and span.start < sentence.end and sentence.start < span.end
        ),
        "factual",
    )


def anchor(turn_id: str, reply: str, extracted: ExtractorReply, asked: AskedTurn, prefix: str = "") -> Extraction:
    """Locate the quotes of every claim in the reply; reject the claims that fail."""
    claims: list[Claim] = []
    rejected: list[RejectedClaim] = []
    for quoted in extracted.claims:
        spans = tuple(span for quote in quoted.quotes if (span := find_quote(reply, quote)))
        found = [reply[span.start : span.end] for span in spans]
        reason = _rejection(quoted, found, asked)
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


def _rejection(claim: QuotedClaim, found: list[str], asked: AskedTurn) -> str | None:
    """Why a claim is rejected, or None."""
    if len(found) < len(claim.quotes):
        return "a quote is not in the reply"
    unquoted = unstated(claim.text, found, given=asked.given)
    if unquoted:
        return f"the claim's figures {list(unquoted)} are not in its quotes"
    if not shares_enough_words([*found, asked.question], claim.text):
        return "the claim's words are not in its quotes"
    return None
