"""The verifier: a model labels each claim against the key; code enforces the rules.

Every claim gets one verdict about the claim as its quotes say it. SUPPORTED and CONTRADICTED cite at least one id of
what the judge was shown; NOT_IN_KEY cites none. A claim that is SUPPORTED must be about what the key and the question
are about, and share something with the facts cited. Whether an answer makes a required point is another question, which
code decides (`scoring.points`). Verdicts that pass are kept; the judge is asked again only for the rest.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from ..records.base import severity_rank
from ..records.model_name import is_person
from ..schemas import (
    AnswerKey,
    BackgroundFact,
    CanonicalFact,
    Claim,
    ClaimInView,
    FactInView,
    KeyInView,
    Verdict,
    VerifierInput,
    VerifierOutput,
)
from ..text.overlap import could_rest_on
from .ask import AskedTurn, JudgeAnswer, JudgeClient, ask, one_per_claim

Payload = TypeVar("Payload", bound=VerifierInput)


@dataclass(frozen=True)
class Verification:
    verdicts: tuple[Verdict, ...]
    """In the order of the claims, not the order that the judge saw."""
    unjudged: tuple[str, ...]
    """Claims left without a valid verdict."""
    failure: str | None


@dataclass(frozen=True)
class Shown:
    """What a verifier or adjudicator is shown beside the claims."""

    asked: AskedTurn
    key: KeyInView
    background: tuple[FactInView, ...] = ()
    """Facts of the shared library that retrieval found for these claims."""

    def payload(self, kind: type[Payload], claims: Sequence[ClaimInView]) -> Payload:
        """What a judge of these claims is sent."""
        return kind(
            answer_key=self.key,
            plan_year=self.asked.plan_year,
            lives_in=self.asked.lives_in,
            earlier_questions=self.asked.earlier,
            question=self.asked.question,
            background_facts=self.background,
            claims=tuple(claims),
        )

    @cached_property
    def facts(self) -> dict[str, FactInView]:
        return {fact.fact_id: fact for fact in (*self.key.canonical_facts, *self.background)}

    @cached_property
    def known(self) -> tuple[str, ...]:
        """Every text that the claims may be about."""
        facts = (*self.key.canonical_facts, *self.background)
        return (self.asked.question, *self.asked.earlier, *(fact.statement for fact in facts))

    @cached_property
    def disallowed(self) -> frozenset[str]:
        return frozenset(claim.claim_id for claim in self.key.disallowed_claims)


def key_in_view(key: AnswerKey) -> KeyInView:
    return KeyInView(canonical_facts=tuple(map(fact_in_view, key.canonical_facts)), disallowed_claims=key.disallowed())


def fact_in_view(fact: CanonicalFact | BackgroundFact) -> FactInView:
    return FactInView(fact_id=fact.fact_id, statement=fact.statement, severity_if_wrong=fact.severity_if_wrong)


def in_view(claim: Claim, reply: str) -> ClaimInView:
    quotes = tuple(reply[span.start : span.end] for span in claim.quote_spans)
    return ClaimInView(claim_id=claim.claim_id, text=claim.text, quotes=quotes)


async def verify(client: JudgeClient, claims: tuple[ClaimInView, ...], shown: Shown) -> Verification:
    """One judge's verdicts on these claims, which it sees in an order of its own."""
    order = list(claims)
    random.Random(client.seed).shuffle(order)  # noqa: S311 - for an order, not for secrets
    payload = shown.payload(VerifierInput, order)
    by_id = {claim.claim_id: claim for claim in claims}
    person = is_person(client.model)

    def check(reply: VerifierOutput, accepted: dict[str, Verdict] | None) -> JudgeAnswer[dict[str, Verdict]]:
        return one_per_claim(
            reply.verdicts,
            by_id,
            accepted,
            lambda given: violations(given, by_id[given.claim_id], shown, topical=not person),
        )

    answer = await ask(client, payload, VerifierOutput, check, longest=len(claims), keeps_entries=True)
    accepted = answer.value or {}
    verdicts = tuple(accepted[claim_id] for claim_id in by_id if claim_id in accepted)
    unjudged = tuple(claim_id for claim_id in by_id if claim_id not in accepted)
    return Verification(VerifierOutput(verdicts=verdicts).verdicts, unjudged, answer.failure if unjudged else None)


def violations(verdict: Verdict, claim: ClaimInView, shown: Shown, *, topical: bool = True) -> list[str]:
    """Which rules a verdict breaks, in words that a judge can act on; each is said of the claim.

    `topical`: whether what supports a claim must share words with it. That is a rough test which some correct verdicts
    fail. A model must pass it; a person is asked, and may insist.
    """
    facts, disallowed = shown.facts, shown.disallowed
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
        if topical and off_topic(verdict, claim, shown):
            problems.append(f"cites {list(verdict.evidence)}, which are about something else than the claim")
    return problems


def off_topic(verdict: Verdict, claim: ClaimInView, shown: Shown) -> bool:
    """Whether no fact that a verdict cites in support of a claim shares words with it."""
    cited = [shown.facts[one].statement for one in verdict.evidence if one in shown.facts]
    supports = verdict.label == "SUPPORTED" and bool(cited)
    return supports and not could_rest_on([claim.text, *claim.quotes], cited, shown.known)
