"""What a check of judges on the gold set found."""

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
    """All that decides a check: the judges, and the gold set by its hash."""

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
    """How many claims of one gold label got one label; None: no usable verdict."""

    gold: Label
    given: Label | None
    claims: int


class JudgeError(Record):
    """A claim on which a judge and the gold set differ, with both reasons."""

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
    """One verifier, or the panel of them with ties settled."""

    name: str
    model: ModelName | None
    """None for the panel."""
    confusion: tuple[LabelCount, ...]
    by_kind: dict[ClaimKind, tuple[int, int]]
    """Kind to claims labeled right, and all."""
    same_evidence: int
    """Of the claims labeled right, how many cite a fact the gold set cites."""
    errors: tuple[JudgeError, ...]


class ExtractorMeasured(Record):
    model: ModelName
    gold_claims: int
    found: int
    """Gold claims that an extracted claim overlaps."""
    extracted: int
    """Verifiable claims the extractor gave."""
    on_gold: int
    """Of these, how many overlap a gold claim."""
    rejected: int
    typographic: int
    factual_sentences: int
    covered: int


class JudgeCheck(Record):
    """The record a check leaves; reports correct their estimates by it."""

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
    """None where a price is not known."""
    verifiers: tuple[ModelName, ...]
    adjudicator: ModelName
    prompts: dict[Role, Sha256]
