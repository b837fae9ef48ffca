"""The plan and the record of a judge check."""

from __future__ import annotations

from pydantic import Field

from .base import (
    Label,
    ModelName,
    Record,
    Severity,
    Sha256,
)
from .gold import ClaimKind, Split
from .run import (
    CallParameters,
    CallPolicy,
    Prompt,
    Role,
)


class CheckPlan(Record):
    """Everything that decides a check: the judges, and the gold set by its hashes."""

    split: Split
    gold: dict[str, Sha256] = Field(min_length=1)
    """Gold file to its hash."""
    references: dict[str, Sha256]
    verifiers: tuple[ModelName, ...] = Field(min_length=1)
    extractor: ModelName
    adjudicator: ModelName
    api_ids: dict[ModelName, str]
    seed: int
    parameters: CallParameters
    policy: CallPolicy
    prompts: dict[Role, Prompt]


class CheckManifest(Record):
    check_id: str
    created: str
    versions: dict[str, str]
    plan: CheckPlan


class LabelCount(Record):
    """How many claims with one gold label were given one label. None: no usable verdict."""

    gold: Label
    given: Label | None
    claims: int


class JudgeError(Record):
    """A claim that a judge labeled differently from the gold set, with both reasons."""

    reply_id: str
    claim_id: str
    kind: ClaimKind
    text: str
    quotes: tuple[str, ...]
    gold: Label
    given: Label | None
    gold_evidence: tuple[str, ...]
    given_evidence: tuple[str, ...]
    severity: Severity
    gold_reason: str
    given_reason: str


class JudgeMeasured(Record):
    """One verifier, or the panel of all verifiers with ties settled."""

    name: str
    model: ModelName | None
    """None for the panel."""
    confusion: tuple[LabelCount, ...]
    by_kind: dict[ClaimKind, tuple[int, int]]
    """Kind to the number of claims labeled correctly, and of all claims."""
    same_evidence: int
    """Of the claims labeled correctly, how many cite a fact that the gold set cites."""
    errors: tuple[JudgeError, ...]
    """The worst first."""

    def matrix(self) -> dict[tuple[str, str | None], int]:
        """Gold and given label to the number of claims."""
        return {(count.gold, count.given): count.claims for count in self.confusion}


class ExtractorMeasured(Record):
    model: ModelName
    gold_claims: int
    found: int
    """Gold claims that an extracted claim overlaps."""
    extracted: int
    """Verifiable claims that the extractor gave."""
    on_gold: int
    """Of these, how many overlap a gold claim."""
    rejected: int
    typographic: int
    factual_sentences: int
    covered: int


class JudgeCheck(Record):
    """What a check found. Reports use it to correct their estimates."""

    check_id: str
    plan_sha256: Sha256
    split: Split
    replies: int
    claims: int
    judges: tuple[JudgeMeasured, ...]
    extractor: ExtractorMeasured
    failures: tuple[str, ...]
    calls: int
    cost: float | None
    """None if a price is unknown."""
    verifiers: tuple[ModelName, ...]
    adjudicator: ModelName
    prompts: dict[Role, Sha256]
