"""The verifier: a model labels each claim against the key; code enforces the rules.

Every claim gets one verdict. SUPPORTED and CONTRADICTED cite at least one id of the key; NOT_IN_KEY cites none. A judge
must not credit what only its own prompt says, so the claim's quotes must contain the figures of every fact cited for
SUPPORTED: all figures in the fact's `tells` or, if it has none, all its amounts of money and percentages. If a fact
states only other figures (dates, durations, numbers, but not years or the age of 65), one of them is enough. Figures
that the question already states are not required. Quotes and fact must also share a word. Verdicts that pass are kept;
the judge is asked again only for the rest.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from ..records.base import severity_rank
from ..schemas import (
    AnswerKey,
    Claim,
    ClaimInView,
    FactInView,
    KeyInView,
    Verdict,
    VerifierInput,
    VerifierOutput,
)
from ..text.figures import figures, is_amount, telling
from ..text.overlap import shares_a_word
from .ask import Answer, JudgeClient, ask, one_per_claim

_ZERO = re.compile(
    r"\b(?:pays?|owes?|costs?|charged?|are|is|get|for)\b[^.;]{0,30}?\b(?:nothing|free|zero)\b(?! is)|"
    r"\bno (?:additional |extra |further |out-of-pocket )?(?:costs?|charges?|copay(?:ment)?s?|coinsurance)\b|"
    r"\bwithout (?:any )?(?:cost|charge)\b|\b(?:not|n['’]t)\b[^.;]{0,12}\b(?:pay|cost|owe)\b[^.;]{0,12}\banything\b|"
    r"\bfree of charge\b|\bat no cost\b|\bgratis\b|\bno cuesta nada\b",
    re.IGNORECASE,
)
"""Words for $0."""
_NOT_ZERO = re.compile(r"\bnot (?:quite )?free\b|n['’]t free\b|\btoll[- ]free\b|\bnothing is certain\b", re.IGNORECASE)


@dataclass(frozen=True)
class Verification:
    verdicts: tuple[Verdict, ...]
    """In the order of the claims, not the order that the judge saw."""
    unjudged: tuple[str, ...]
    """Claims left without a valid verdict."""
    failure: str | None


def key_in_view(key: AnswerKey) -> KeyInView:
    return KeyInView(
        canonical_facts=tuple(
            FactInView(
                fact_id=fact.fact_id,
                statement=fact.statement,
                severity_if_wrong=fact.severity_if_wrong,
                tells=fact.tells,
            )
            for fact in key.canonical_facts
        ),
        disallowed_claims=key.disallowed(),
    )


def in_view(claim: Claim, reply: str) -> ClaimInView:
    quotes = tuple(reply[span.start : span.end] for span in claim.quote_spans)
    return ClaimInView(claim_id=claim.claim_id, text=claim.text, quotes=quotes)


async def verify(client: JudgeClient, question: str, claims: tuple[ClaimInView, ...], key: KeyInView) -> Verification:
    """One judge's verdicts on one reply's claims, which it sees in an order of its own."""
    shown = list(claims)
    random.Random(client.seed).shuffle(shown)  # noqa: S311 - for an order, not for secrets
    payload = VerifierInput(question=question, claims=tuple(shown), answer_key=key)
    by_id = {claim.claim_id: claim for claim in claims}

    def check(reply: VerifierOutput, accepted: dict[str, Verdict] | None) -> Answer[dict[str, Verdict]]:
        return one_per_claim(
            reply.verdicts, by_id, accepted, lambda given: violations(given, by_id[given.claim_id], key, question)
        )

    answer = await ask(client, payload, VerifierOutput, check)
    accepted = answer.value or {}
    verdicts = tuple(accepted[claim_id] for claim_id in by_id if claim_id in accepted)
    unjudged = tuple(claim_id for claim_id in by_id if claim_id not in accepted)
    return Verification(VerifierOutput(verdicts=verdicts).verdicts, unjudged, answer.failure if unjudged else None)


def violations(verdict: Verdict, claim: ClaimInView, key: KeyInView, question: str = "") -> list[str]:
    """Which rules a verdict breaks, in words that a judge can act on; each is said of the claim."""
    facts = {fact.fact_id: fact for fact in key.canonical_facts}
    disallowed = {claim.claim_id for claim in key.disallowed_claims}
    problems = []
    unknown = [cited for cited in verdict.evidence if cited not in facts and cited not in disallowed]
    if unknown:
        problems.append(f"cites {[one[:20] for one in unknown[:5]]}, which are not ids in the answer key")
    if len(set(verdict.evidence)) != len(verdict.evidence):
        problems.append("cites an id twice")
    if verdict.label == "NOT_IN_KEY" and verdict.evidence:
        problems.append("is NOT_IN_KEY, so it must cite nothing")
    if verdict.label != "NOT_IN_KEY" and not verdict.evidence:
        problems.append(f"is {verdict.label}, so it must cite at least one id")
    if (verdict.label == "CONTRADICTED") == (verdict.severity == "none"):
        problems.append("needs severity low, medium or high if CONTRADICTED, and none otherwise")
    if verdict.label == "CONTRADICTED" and verdict.severity != "none":
        grades = [severity_rank(facts[cited].severity_if_wrong) for cited in verdict.evidence if cited in facts]
        if severity_rank(verdict.severity) < max(grades, default=0) - 1:
            problems.append("has a severity more than one grade below the severity_if_wrong of the fact it contradicts")
    if verdict.label == "SUPPORTED":
        if disallowed.intersection(verdict.evidence):
            problems.append("cites a disallowed claim, which cannot support anything")
        cited_facts = {cited: facts[cited] for cited in verdict.evidence if cited in facts}
        problems += _uncredited(claim, cited_facts, figures(question))
    return problems


def _uncredited(claim: ClaimInView, cited: dict[str, FactInView], asked: frozenset[str]) -> list[str]:
    """What the cited facts state that the target did not write: it must not be credited."""
    quoted = frozenset[str]().union(*map(figures, claim.quotes))
    if any(_ZERO.search(_NOT_ZERO.sub(" ", quote)) for quote in claim.quotes):
        quoted |= {"$0"}
    problems = []
    for fact_id, fact in cited.items():
        stated = telling(figures(fact.statement)) - asked
        named = frozenset[str]().union(*map(figures, fact.tells))
        needed = (named or frozenset(filter(is_amount, stated))) - asked
        if needed - quoted:
            problems.append(
                f"cites {fact_id}, but the figures {sorted(needed - quoted)} do not appear in the claim's quotes"
            )
        elif stated and not needed and not stated & quoted:
            problems.append(f"cites {fact_id}, but none of its figures {sorted(stated)} appears in the claim's quotes")
        elif not shares_a_word([*claim.quotes, claim.text], fact.statement):
            problems.append(f"cites {fact_id}, but the claim and its quotes share no word with it")
    return problems
