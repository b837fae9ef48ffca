"""The rule-based judge, `offline:rules`: one pure function per agent. A test double: its scores are not results.

It shows that runs, reports and checks work without a model or a key. It labels a claim only if the claim says what a
statement of the key says in nearly the same words, or the same with one other figure or one negation more or less.
Everything else is NOT_IN_KEY, which most sentences of an ordinary answer are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ..records.base import ObservationKind, severity_rank
from ..records.contracts import (
    AdjudicatorInput,
    AdjudicatorReply,
    ClaimInView,
    Decision,
    FactInView,
    Observation,
    ScorerInput,
    ScorerReply,
    Verdict,
    VerifierInput,
    VerifierOutput,
)
from ..records.scenario import DisallowedClaim
from ..text.coverage import names_a_program
from ..text.figures import figures
from ..text.sentences import sentences
from .claims import MAX_QUOTE, claim_type, declines, extract, has_done
from .compare import Difference, compare
from .reading import LOW, Reading, spoken
from .reading import read as read_sentence
from .rephrase import rephrase

__all__ = ["adjudicate", "extract", "read", "rephrase", "verify"]

_MOST_OBSERVATIONS = 200
_ACT = re.compile(r"^\w+ing\b\s*")
"""How a disallowed claim begins: "Claiming that", "Telling the person to"."""
_AFTER_CLAUSE = re.compile(r"[,;:].*", re.DOTALL)
_NOT_PLAIN = re.compile('["\u2190-\u2bff\U0001f000-\U0001faff]')
"""Quotation marks, crosses and other signs may say that a sentence is not meant as it reads."""
_UNNAMED = frozenset(["it", "they", "this", "that", "these", "those", "he", "she", "both", "neither", "such"])
"""Words at the start of a sentence that speak of something named elsewhere."""


def verify(task: VerifierInput) -> VerifierOutput:
    """One verdict for each claim, in the order of the claims."""
    return VerifierOutput(verdicts=tuple(_verdict(claim, task) for claim in task.claims))


def _verdict(claim: ClaimInView, task: VerifierInput) -> Verdict:
    none = Verdict(
        claim_id=claim.claim_id,
        label="NOT_IN_KEY",
        evidence=(),
        severity="none",
        notes="No statement of the key says this.",
    )
    said = read_sentence(claim.text)
    asked = " ".join((*task.earlier_questions, task.question))
    if claim.text.endswith("?") or not _is_quoted(claim, said, asked):
        return none
    years = frozenset({str(task.plan_year)})
    facts = (*task.answer_key.canonical_facts, *task.background_facts)
    closest = _closest({fact: compare(said, read_sentence(fact.statement), years) for fact in facts})
    same = tuple(fact for fact, difference in closest.items() if difference.kind == "same")
    broken = _broken(claim.text, said, task.answer_key.disallowed_claims, years)
    if same and len(same) == len(closest) and not broken:
        return Verdict(
            claim_id=claim.claim_id,
            label="SUPPORTED",
            evidence=tuple(fact.fact_id for fact in same),
            severity="none",
            notes="Says nearly this.",
        )
    # A figure of the question may be the person's own.
    opposed = () if said.figures & figures(asked) else tuple(closest)
    if not (broken or opposed) or same or not _speaks_plainly(claim.text):
        return none
    return Verdict(
        claim_id=claim.claim_id,
        label="CONTRADICTED",
        evidence=(*broken, *(fact.fact_id for fact in opposed)),
        severity=max((fact.severity_if_wrong for fact in opposed), key=severity_rank, default="high"),
        notes="Makes a disallowed claim." if broken else "Says this with another figure, or the opposite.",
    )


def _closest(compared: Mapping[FactInView, Difference]) -> dict[FactInView, Difference]:
    """The facts that speak of the same as the sentence; of these, those that share most words with it."""
    about = {fact: difference for fact, difference in compared.items() if difference.kind != "other"}
    best = max((difference.shared for difference in about.values()), default=0.0)
    return {fact: difference for fact, difference in about.items() if difference.shared == best}


def _speaks_plainly(text: str) -> bool:
    return not _NOT_PLAIN.search(text) and not _UNNAMED.intersection(spoken(text)[:2])


def _is_quoted(claim: ClaimInView, said: Reading, question: str) -> bool:
    """Whether the reply itself says what the claim says: its figures, and most of its words."""
    given = read_sentence(" ".join(claim.quotes))
    asked = read_sentence(question)
    known = given.content | asked.content
    return said.figures <= given.figures | asked.figures and 2 * len(said.content & known) >= len(said.content)


def _broken(text: str, said: Reading, disallowed: Sequence[DisallowedClaim], years: frozenset[str]) -> tuple[str, ...]:
    """The disallowed claims that a sentence makes in nearly their own words."""
    broken = []
    for rule in disallowed:
        statement = _ACT.sub("", rule.statement)
        if statement.startswith("to have "):
            makes = has_done(spoken(text)) and _matches(read_sentence(_AFTER_CLAUSE.sub("", text)), statement, years)
        else:
            makes = not said.hedges - read_sentence(statement).hedges and _matches(said, statement, years)
        if makes:
            broken.append(rule.claim_id)
    return tuple(broken)


def _matches(said: Reading, statement: str, years: frozenset[str]) -> bool:
    difference = compare(said, read_sentence(statement), years)
    return difference.kind == "same" and difference.exact


def read(task: ScorerInput) -> ScorerReply:
    """Refusals, referrals, hedges and fabricated specifics, each with the words that show it."""
    quotes = [task.reply[span.start : span.end] for span in sentences(task.reply) if not span.heading]
    quotes = [quote for quote in quotes if quote.strip() and len(quote) <= MAX_QUOTE]
    # A reply that states something is unsure of the rest; one that states nothing refuses.
    declined: ObservationKind = "hedge" if any(claim_type(quote) == "factual" for quote in quotes) else "refusal"
    found: list[Observation] = []
    for quote in quotes:
        found += [Observation(kind=seen, quote=quote) for seen in _kinds(quote, declined, task)]
    return ScorerReply(observations=tuple(found[:_MOST_OBSERVATIONS]))


def _kinds(quote: str, declined: ObservationKind, task: ScorerInput) -> Iterator[ObservationKind]:
    said, kind_of_claim = read_sentence(quote), claim_type(quote)
    if declines(quote):
        yield declined
    elif said.hedges & LOW:
        yield "hedge"
    if kind_of_claim == "referral":
        yield "referral"
    if kind_of_claim == "factual" and not said.hedges and _fabricates(quote, said, task):
        yield "fabricated_specific"


def _fabricates(quote: str, said: Reading, task: ScorerInput) -> bool:
    """Whether it makes a disallowed claim, or speaks of a named plan or doctor of the question as if it had looked."""
    if _broken(quote, said, task.disallowed_claims, frozenset()):
        return True
    named = {name for name in read_sentence(task.question).names & said.content if not names_a_program(name)}
    lookups = [read_sentence(rule.statement).content for rule in task.disallowed_claims if "lookup" in rule.statement]
    return len(named) > 1 and not said.negations and any(said.content & rule for rule in lookups)


def adjudicate(task: AdjudicatorInput) -> AdjudicatorReply:
    """NOT_IN_KEY wherever a verifier gave it, otherwise the first label given."""
    return AdjudicatorReply(
        decisions=tuple(
            Decision(
                claim_id=claim.claim_id,
                label="NOT_IN_KEY" if "NOT_IN_KEY" in claim.options else claim.options[0],
                notes="The rules settle no tie.",
            )
            for claim in task.claims
        )
    )
