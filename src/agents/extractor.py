"""The extractor: a model splits a reply into claims and quotes them; code finds the quotes and the gaps between them.

A claim is rejected and counted, never repaired, if its quote is not in the reply, if it names a figure that neither its
quotes nor what they stand under nor the question supplies, or if too few of its words are in its quotes: what cannot be
shown in the target's own words was not said. What no claim covers (see `text.coverage`), and the words of rejected
claims, are offered to the extractor once more. What then is still left out and states something that a key could check
becomes a claim in its own words, up to a limit. So the extractor cannot hide what the target said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

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
from ..text.coverage import Coverage, coverage, is_factual, states_a_fact
from ..text.figures import figures, is_amount
from ..text.overlap import shares_enough_words
from ..text.quantities import unstated
from ..text.quotes import place_quotes
from ..text.sentences import Span, clauses, contexts, previous_sentences, sentences
from .ask import AskedTurn, JudgeAnswer, JudgeClient, ask

_NO_COVERAGE = Coverage(0, ())
CHARACTERS_PER_CLAIM = 20
"""No reply makes claims more densely than this."""
FEWEST = 10
BEFORE_A_CLAUSE = ",;:-–—)"
"""What a part of a sentence that is understood without the rest of it follows."""
MOST_OWN_WORDS = 30
"""Claims in its own words that one reply may have. Each is at most a sentence, and these are of limited length."""


@dataclass(frozen=True)
class Extraction:
    claims: tuple[Claim, ...] = ()
    rejected: tuple[RejectedClaim, ...] = ()
    failure: str | None = None
    first: Coverage = _NO_COVERAGE
    """What the claims of the first answer cover."""
    final: Coverage = _NO_COVERAGE
    """What all claims of the extractor cover; what they leave out became claims in its own words."""
    left_out: tuple[str, ...] = ()
    """The words of what they leave out."""
    surplus: int = 0
    """Claims in its own words that were too many."""
    lost: tuple[Span, ...] = ()
    """The sentences that rejected claims are about."""


async def extract(client: JudgeClient, turn_id: str, asked: AskedTurn, reply: str, prefix: str = "") -> Extraction:
    """The claims of a text. `prefix`: what their ids begin with, beside the turn."""
    payload = ExtractorInput(
        plan_year=asked.plan_year, earlier_questions=asked.earlier, question=asked.question, reply=reply
    )
    longest = max(FEWEST, len(reply) // CHARACTERS_PER_CLAIM)
    answer = await ask(client, payload, ExtractorReply, _check, longest=longest)
    if answer.value is None:
        return Extraction(failure=answer.failure)
    found = anchor(turn_id, reply, answer.value, asked, prefix)
    first = final = coverage(reply, found.claims)
    claims, rejected, lost = found.claims, found.rejected, found.lost
    open_spans = sorted({*first.left_out, *first.others, *first.remainders, *lost}, key=lambda span: span.start)
    passages = tuple(dict.fromkeys(reply[span.start : span.end] for span in open_spans))
    if passages and (not first.enough or any(map(is_factual, passages))):
        rest = payload.model_copy(update={"left_out": passages})
        # A failure here is ignored: what the extractor leaves out twice is judged in its own words.
        more = (await ask(client, rest, ExtractorReply, _check, longest=longest, first=client.max_asks)).value
        added = anchor(turn_id, reply, more, asked, f"{prefix}again.") if more else Extraction()
        known = {(claim.text, claim.quote_spans) for claim in claims}
        claims += tuple(claim for claim in added.claims if (claim.text, claim.quote_spans) not in known)
        rejected += added.rejected
        lost = tuple(span for span in (*lost, *added.lost) if not _quoted(span, added.claims))
        final = coverage(reply, claims)
    own = in_own_words(turn_id, reply, prefix, claims, final=final, lost=lost)
    return replace(own, claims=(*claims, *own.claims), rejected=rejected, first=first)


def _quoted(sentence: Span, claims: Sequence[Claim]) -> bool:
    return any(one.start < sentence.end and sentence.start < one.end for claim in claims for one in claim.quote_spans)


def in_own_words(
    turn_id: str,
    reply: str,
    prefix: str = "",
    claims: Sequence[Claim] = (),
    *,
    final: Coverage | None = None,
    lost: Sequence[Span] = (),
) -> Extraction:
    """What these claims leave out, and the sentences that rejected claims were about, as claims in their own words."""
    final = final or coverage(reply, claims)
    left_out = [*final.left_out, *final.remainders, *(one for one in lost if one not in final.left_out)]
    made = verbatim(turn_id, reply, sorted(set(left_out), key=lambda one: one.start), claims, prefix)
    return Extraction(
        claims=made[:MOST_OWN_WORDS],
        first=final,
        final=final,
        left_out=tuple(reply[span.start : span.end] for span in final.left_out),
        surplus=len(made[MOST_OWN_WORDS:]),
    )


def _check(reply: ExtractorReply, _: ExtractorReply | None) -> JudgeAnswer[ExtractorReply]:
    ids = [claim.claim_id for claim in reply.claims]
    repeated = sorted({claim_id for claim_id in ids if ids.count(claim_id) > 1})
    return JudgeAnswer(problems=(f"claim ids {repeated} are used more than once",)) if repeated else JudgeAnswer(reply)


def verbatim(
    turn_id: str, reply: str, left_out: Sequence[Span], claims: Sequence[Claim], prefix: str = ""
) -> tuple[Claim, ...]:
    """Sentences that no claim covers: each clause that states a fact as a claim in its own words.

    A list item, a table row or a fragment is quoted with the heading and the lead-in that it stands under, and a part
    of a sentence with its sentence.
    """
    above = contexts(reply)
    whole = {
        one: next((s for s in sentences(reply) if s.start <= one.start and one.end <= s.end), one) for one in left_out
    }
    own = [
        (sentence, clause)
        for sentence in left_out
        for clause in clauses(reply, sentence)
        if states_a_fact(reply[clause.start : clause.end]) or above.get(sentence)
    ]
    return tuple(
        Claim(
            claim_id=f"{turn_id}.{prefix}own.{number}",
            text=reply[clause.start : clause.end],
            type=_type(sentence, claims),
            confidence="high",
            verifiable=True,
            quote_spans=tuple(
                QuoteSpan(start=one.start, end=one.end)
                for one in dict.fromkeys(
                    (Span(clause.start, clause.end), *_around(reply, sentence, whole[sentence], above))
                )
            ),
            turn_id=turn_id,
            verbatim=True,
        )
        for number, (sentence, clause) in enumerate(own, 1)
    )


def _around(reply: str, sentence: Span, whole: Span, above: Mapping[Span, tuple[Span, ...]]) -> Iterator[Span]:
    """What a claim in its own words needs to be understood."""
    if (reply[whole.start : sentence.start].rstrip() or ",")[-1] not in BEFORE_A_CLAUSE:
        yield Span(whole.start, whole.end)
    for one in above.get(whole, ()):
        yield Span(one.start, one.end)


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
    unsaid: list[tuple[QuoteSpan | None, ...]] = []
    above = contexts(reply)
    before = previous_sentences(reply)
    for quoted, placed in zip(extracted.claims, place_quotes(reply, extracted.claims), strict=True):
        spans = tuple(span for span in placed if span)
        found = [reply[span.start : span.end] for span in spans]
        reason = _rejection(quoted, found, asked)
        if reason and spans and len(spans) == len(placed):
            for more in _neighbors(reply, spans, above, before):
                text = reply[more.start : more.end]
                if unstated(quoted.text, found, given=asked.given) != unstated(
                    quoted.text, [*found, text], given=asked.given
                ):
                    spans = (*spans, QuoteSpan(start=more.start, end=more.end))
                    found.append(text)
            reason = _rejection(quoted, found, asked)
        if reason:
            rejected.append(RejectedClaim(turn_id=turn_id, text=quoted.text, reason=reason))
            unsaid.append(placed)
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
    lost = dict.fromkeys(span for placed in unsaid for span in _lost(reply, placed, claims))
    return Extraction(ExtractorOutput(claims=tuple(claims)).claims, tuple(rejected), lost=tuple(lost))


def _neighbors(
    reply: str, spans: Sequence[QuoteSpan], above: Mapping[Span, tuple[Span, ...]], before: Mapping[Span, Span]
) -> Iterator[Span]:
    """What a quote stands under, and the sentence before it in its paragraph: these may supply its figures."""
    for sentence in sentences(reply):
        if any(one.start < sentence.end and sentence.start < one.end for one in spans):
            yield from above.get(sentence, ())
            if sentence in before:
                yield before[sentence]


def _lost(reply: str, placed: Sequence[QuoteSpan | None], claims: Sequence[Claim]) -> Iterator[Span]:
    """The sentences that a rejected claim quotes, as far as they state a fact.

    If a quote is not in the reply, nothing shows that the claim was about words which other claims quote.
    """
    kept = [span for claim in claims for span in claim.quote_spans] if None in placed else []
    spans = [span for span in placed if span and not any(o.start <= span.start and span.end <= o.end for o in kept)]
    for one in sentences(reply):
        quoted = any(one.start < span.end and span.start < one.end for span in spans)
        if quoted and states_a_fact(reply[one.start : one.end]):
            yield one


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
