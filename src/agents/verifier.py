"""The verifier: a model labels each claim against the key; code holds it to the rules.

Every claim gets one verdict. SUPPORTED and CONTRADICTED cite at least one id of this key, NOT_IN_KEY cites none. A
judge must not credit what only its own prompt says: the amounts of money and percentages of a cited fact, or those it
names as telling, must all stand in the claim's quotes; where it states other figures alone (dates, durations, numbers,
but not years, nor the age of 65), one of them must. What the question itself said is not asked for. And quotes and fact
must have a word in common. Verdicts that pass are kept; only the rest is asked for again.
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
from ..text.overlap import related
from .ask import JudgeClient, ask

_NOTHING = re.compile(
    r"\b(?:pays?|owes?|costs?|charged?|are|is|get|for)\b[^.;]{0,30}?\b(?:nothing|free|zero)\b(?! is)|"
    r"\bno (?:additional |extra |further |out-of-pocket )?(?:costs?|charges?|copay(?:ment)?s?|coinsurance)\b|"
    r"\bwithout (?:any )?(?:cost|charge)\b|\b(?:not|n['’]t)\b[^.;]{0,12}\b(?:pay|cost|owe)\b[^.;]{0,12}\banything\b|"
    r"\bfree of charge\b|\bat no cost\b|\bgratis\b|\bno cuesta nada\b",
    re.IGNORECASE,
)
_NOT_NOTHING = re.compile(
    r"\bnot (?:quite )?free\b|n['’]t free\b|\btoll[- ]free\b|\bnothing is certain\b", re.IGNORECASE
)
"""Words for $0."""


@dataclass(frozen=True)
class Verification:
    verdicts: tuple[Verdict, ...]
    """In the order of the claims, whatever order the judge saw."""
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
    """One judge's verdicts on one reply's claims, shown in an order of its own."""
    shown = list(claims)
    random.Random(client.seed).shuffle(shown)  # noqa: S311 - an order, no secret
    accepted: dict[str, Verdict] = {}
    by_id = {claim.claim_id: claim for claim in claims}

    def accept(reply: VerifierOutput) -> list[str]:
        problems = []
        given = [verdict.claim_id for verdict in reply.verdicts]
        for verdict in reply.verdicts:
            claim = by_id.get(verdict.claim_id)
            if claim is None:
                problems.append(f"{verdict.claim_id[:80]} is not one of the claims")
            elif verdict.claim_id not in accepted:
                found = violations(verdict, claim, key, question)
                if given.count(verdict.claim_id) > 1:
                    found.append("stands more than once")
                if found:
                    problems += [f"{verdict.claim_id}: {problem}" for problem in found]
                else:
                    accepted[verdict.claim_id] = verdict
        missing = [claim_id for claim_id in by_id if claim_id not in accepted and claim_id not in given]
        return problems + [f"{claim_id}: has no verdict" for claim_id in missing]

    failure = await ask(
        client, VerifierInput(question=question, claims=tuple(shown), answer_key=key), VerifierOutput, accept
    )
    verdicts = tuple(accepted[claim_id] for claim_id in by_id if claim_id in accepted)
    unjudged = tuple(claim_id for claim_id in by_id if claim_id not in accepted)
    return Verification(VerifierOutput(verdicts=verdicts).verdicts, unjudged, failure if unjudged else None)


def violations(verdict: Verdict, claim: ClaimInView, key: KeyInView, question: str = "") -> list[str]:
    """Which rules a verdict breaks, in words a judge can act on."""
    facts = {fact.fact_id: fact for fact in key.canonical_facts}
    disallowed = {claim.claim_id for claim in key.disallowed_claims}
    problems = []
    unknown = [cited for cited in verdict.evidence if cited not in facts and cited not in disallowed]
    if unknown:
        problems.append(f"cites {[one[:20] for one in unknown[:5]]}, which are not ids of this key")
    if len(set(verdict.evidence)) != len(verdict.evidence):
        problems.append("cites an id twice")
    if verdict.label == "NOT_IN_KEY" and verdict.evidence:
        problems.append("is NOT_IN_KEY and so must cite nothing")
    if verdict.label != "NOT_IN_KEY" and not verdict.evidence:
        problems.append(f"is {verdict.label} and so must cite at least one id")
    if (verdict.label == "CONTRADICTED") == (verdict.severity == "none"):
        problems.append("severity must be low, medium or high if CONTRADICTED and none if not")
    if verdict.label == "CONTRADICTED" and verdict.severity != "none":
        grades = [severity_rank(facts[cited].severity_if_wrong) for cited in verdict.evidence if cited in facts]
        if severity_rank(verdict.severity) < max(grades, default=0) - 1:
            problems.append("severity is more than one grade below that of the fact it contradicts")
    if verdict.label == "SUPPORTED":
        if disallowed.intersection(verdict.evidence):
            problems.append("a disallowed claim cannot support anything")
        cited_facts = {cited: facts[cited] for cited in verdict.evidence if cited in facts}
        problems += _uncredited(claim, cited_facts, figures(question))
    return problems


def _uncredited(claim: ClaimInView, cited: dict[str, FactInView], asked: frozenset[str]) -> list[str]:
    """What stands in the key but not in what the target wrote is not the target's."""
    quoted = frozenset[str]().union(*map(figures, claim.quotes))
    if any(_NOTHING.search(_NOT_NOTHING.sub(" ", quote)) for quote in claim.quotes):
        quoted |= {"$0"}
    problems = []
    for fact_id, fact in cited.items():
        told = telling(figures(fact.statement)) - asked
        named = frozenset[str]().union(*map(figures, fact.tells))
        needed = (named or frozenset(filter(is_amount, told))) - asked
        if needed - quoted:
            problems.append(f"credits {fact_id}, but its {sorted(needed - quoted)} do not stand in the quote")
        elif told and not needed and not told & quoted:
            problems.append(f"credits {fact_id}, but none of its figures {sorted(told)} stands in the quote")
        elif not related([*claim.quotes, claim.text], fact.statement):
            problems.append(f"credits {fact_id}, but the quote has no word in common with it")
    return problems
