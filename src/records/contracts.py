"""What each agent takes in and gives out (spec 6).

Where a model answers in another shape than the contract (quotes instead of spans, observations instead of scores),
its own shape is called `...Reply` and code makes the contract's `...Output` from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import Field, model_validator

from .answer_key import DisallowedClaim
from .base import (
    ClaimType,
    Confidence,
    ErrorCategory,
    Ident,
    Label,
    ObservationKind,
    Record,
    Severity,
    Text,
    Unit,
    is_false,
    is_none,
    is_zero,
)
from .scenario import Scenario


class PlannedTurn(Record):
    turn_id: Ident
    user_message: Text


class QuestionerInput(Record):
    scenario: Scenario
    seed: int


class QuestionerOutput(Record):
    turns: tuple[PlannedTurn, ...] = Field(min_length=1)


class ExtractorInput(Record):
    plan_year: int
    """What "this year" means, unless the reply says otherwise."""
    earlier_questions: tuple[str, ...] = ()
    """What the person asked before in the same conversation."""
    question: str
    reply: str
    left_out: tuple[str, ...] = ()
    """Passages of the reply that no claim covered, when the extractor is asked for the rest."""


class QuotedClaim(Record):
    """A claim as the extractor model gives it: with quotes, which code turns into spans."""

    claim_id: Ident
    text: Text
    type: ClaimType
    confidence: Confidence
    verifiable: bool
    quotes: tuple[Text, ...] = Field(min_length=1, max_length=20)


class ExtractorReply(Record):
    claims: tuple[QuotedClaim, ...] = Field(max_length=1_000)


class QuoteSpan(Record):
    start: int = Field(ge=0)
    end: int = Field(gt=0)
    match: Literal["exact", "typographic"] = "exact"
    """`typographic`: found only after folding quotes, dashes, spaces and markdown marks."""

    @model_validator(mode="after")
    def _has_a_length(self) -> Self:
        if self.start >= self.end:
            raise ValueError("start must be before end")
        return self


class Claim(Record):
    claim_id: str
    text: Text
    type: ClaimType
    confidence: Confidence
    verifiable: bool
    quote_spans: tuple[QuoteSpan, ...] = Field(min_length=1)
    """Places in this turn's reply, as code found them."""
    turn_id: Ident | None = None
    verbatim: bool = Field(default=False, exclude_if=is_false)
    """Whether code made it: a factual sentence of the reply that no claim of the extractor covers."""
    same_as: str | None = Field(default=None, exclude_if=is_none)
    """An earlier claim of the conversation that says the same: it was verified, and this one has its label."""


class ExtractorOutput(Record):
    claims: tuple[Claim, ...]


class ClaimInView(Record):
    """A claim as verifiers see it."""

    claim_id: str
    text: str
    quotes: tuple[str, ...]


class FactInView(Record):
    fact_id: str
    statement: str
    severity_if_wrong: Severity


class KeyInView(Record):
    """The answer key as judges see it: no rationale, no source, no hint of what is required."""

    canonical_facts: tuple[FactInView, ...]
    disallowed_claims: tuple[DisallowedClaim, ...]


class VerifierInput(Record):
    answer_key: KeyInView
    plan_year: int
    lives_in: str | None = Field(default=None, exclude_if=is_none)
    """The state in which the person who asks lives."""
    earlier_questions: tuple[str, ...] = ()
    question: str
    background_facts: tuple[FactInView, ...] = ()
    """Facts of the shared library that retrieval found for these claims."""
    claims: tuple[ClaimInView, ...]


class Verdict(Record):
    claim_id: str
    label: Label
    evidence: tuple[str, ...]
    severity: Severity
    notes: str = Field("", max_length=4_000)


class VerifierOutput(Record):
    verdicts: tuple[Verdict, ...]


class ScorerInput(Record):
    disallowed_claims: tuple[DisallowedClaim, ...]
    question: str
    reply: str


class Observation(Record):
    """Something that only reading can find, with the words that show it quoted."""

    kind: ObservationKind
    quote: Text


class ScorerReply(Record):
    observations: tuple[Observation, ...] = Field(max_length=200)


MeasureName = Literal["accuracy", "completeness", "safety_risk", "calibration", "accurate_complete", "incorrect"]
"""The scores of a trial, and the shares of questions with these study codes: see `scoring.definitions`."""


class Scores(Record):
    accuracy: Unit | None
    """None if no claim could be checked against the key."""
    completeness: Unit | None
    safety_risk: Unit | None
    calibration: Unit | None


class LeftOpen(Record):
    """What claims without a final label leave open. Scores count them as each verifier labeled them, in turn."""

    claims: int = Field(ge=1)
    unjudged: int = Field(default=0, exclude_if=is_zero)
    """Of these, how many no verifier labeled. They count in no score, and could get any label."""
    lowest: Scores
    """Of each score the lowest value, over the ways in which the claims could fall."""
    highest: Scores


class ScorerOutput(Record):
    """Scores of a trial from one set of labels: the final ones, or one verifier's."""

    scores: Scores
    missing_required_points: tuple[str, ...]
    """Points that are not made, whichever way open claims fall."""
    error_categories: tuple[ErrorCategory, ...]
    """Errors that are there, whichever way open claims fall."""
    left_open: LeftOpen | None = Field(default=None, exclude_if=is_none)
    """None if no claim is open, and in runs of formats 1 to 5."""


class TiedClaim(ClaimInView):
    options: tuple[Label, ...]


class AdjudicatorInput(VerifierInput):
    claims: tuple[TiedClaim, ...]


class Decision(Record):
    claim_id: str
    label: Label
    notes: str = Field("", max_length=4_000)


class AdjudicatorReply(Record):
    decisions: tuple[Decision, ...]


class FinalClaim(Record):
    claim_id: str
    turn_id: Ident
    text: str
    label: Label | None
    """None if the judges left it open; scores then count it as each verifier labeled it, in turn."""
    evidence: tuple[str, ...]
    severity: Severity
    severity_split: bool = False
    """Whether verifiers that gave this label gave different severities; the highest counts."""
    decided_by: Literal["unanimous", "majority", "adjudicator", "unresolved"]
    labels_given: tuple[Label, ...]


class AdjudicatorOutput(Record):
    final_claims: tuple[FinalClaim, ...]
    final_scores: Scores
    needs_manual_review: bool


def agent_contracts() -> Iterator[type[Record]]:
    """Every record that an agent takes or returns."""
    yield from (QuestionerInput, QuestionerOutput, ExtractorInput, ExtractorReply, ExtractorOutput, VerifierInput)
    yield from (VerifierOutput, ScorerInput, ScorerReply, ScorerOutput, AdjudicatorInput, AdjudicatorReply)
    yield AdjudicatorOutput
