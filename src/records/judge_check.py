"""The plan and the record of a judge check."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from pydantic import Field

from .background import BackgroundFact
from .base import Ident, Label, Line, ModelName, Record, Severity, Sha256, Text, is_empty, is_none
from .facts import PlanYear
from .rubric import StudyCode
from .run import CallParameters, CallPolicy, Isolation, Prompt, Role

# The gold set: replies whose claims were labeled by hand, each label with its reason. Judges are measured on it.

ClaimKind = Literal[
    "plain", "paraphrase", "wrong_figure", "other_year", "swapped_program", "negation", "half_true", "hedged",
    "over_general", "not_in_key", "disallowed", "key_only", "derived", "absolute", "equal_quantity",
    "condition_left_out",
]  # fmt: skip
"""`other_year`: the right figure of another year. `key_only`: the reply does not say it, only the key does. `derived`:
a figure computed from the key's. `equal_quantity`: the key's quantity in another unit or in words."""
Split = Literal["dev", "held_out", "second", "third"]


class Labeling(Record):
    """What one labeler said about a claim, before the labelers' differences were settled."""

    label: Label
    evidence: tuple[str, ...]
    severity: Severity
    kind: ClaimKind
    reason: Line


class GoldClaim(Labeling):
    claim_id: Ident
    text: Text
    quotes: tuple[Text, ...] = Field(min_length=1)
    labelings: tuple[Labeling, ...] = ()
    """Of independent labelers; empty if one person labeled the claim."""


class PlantedError(Record):
    """A sentence that the reply's writer made wrong on purpose."""

    sentence: Text
    why_wrong: Line


class GoldReply(Record):
    reply_id: Ident
    turn_id: Ident
    variant: Ident | None = None
    quality: Literal["good", "mixed", "poor", "refusal"]
    text: Text
    asked: tuple[Text, ...] = Field(default=(), exclude_if=is_empty)
    """The person's messages as they were sent, the one that this replies to last. Empty: those of the scenario."""
    planted_errors: tuple[PlantedError, ...] = ()
    claims: tuple[GoldClaim, ...]


class GoldFile(Record):
    """`gold/<split>/<scenario>.json`"""

    scenario_id: Ident
    plan_year: PlanYear
    split: Split | None = None
    note: Line | None = None
    replies: tuple[GoldReply, ...] = Field(min_length=1)


CHECK_FORMAT: Literal[3] = 3
"""Of the manifest and the record. In earlier ones the gold labels did not speak of the library of facts."""
Measurement = Literal["end_to_end", "verifier"]
"""`end_to_end`: reply in, final labels out, as in a run. `verifier`: each verifier gets the gold claims."""
Given = Literal["SUPPORTED", "CONTRADICTED", "NOT_IN_KEY", "open", "missed"]
"""What a gold claim got: a label; `open`, no final label; or `missed`, no extracted claim."""


class CheckPlan(Record):
    """Everything that decides a check: the judges, and the gold set by its hashes."""

    split: Split
    gold: dict[str, Sha256] = Field(min_length=1)
    """Gold file to its hash."""
    references: dict[str, Sha256]
    rubrics: dict[str, Sha256]
    """Of the scenarios behind the gold set, by version."""
    measures: tuple[Measurement, ...] = Field(min_length=1)
    limit: int | None = None
    """Replies to judge, drawn by the seed; None: all."""
    verifiers: tuple[ModelName, ...] = Field(min_length=2)
    extractor: ModelName
    scorer: ModelName
    adjudicator: ModelName | None
    """None: ties stay open, as in a run."""
    isolation: Isolation
    audit_sample: float
    background: tuple[BackgroundFact, ...] = Field(default=(), exclude_if=is_empty)
    """As in a run of the gold set's plan year."""
    api_ids: dict[ModelName, str]
    seed: int
    parameters: dict[ModelName, CallParameters]
    policy: CallPolicy
    prompts: dict[Role, Prompt]


class CheckManifest(Record):
    format: Literal[3] = CHECK_FORMAT
    check_id: str
    created: str
    versions: dict[str, str]
    plan: CheckPlan


class GivenCount(Record):
    """How many claims with one gold label were given one label, or none."""

    gold: Label
    given: Given
    claims: int


class ReplyCounts(Record):
    """One reply of the gold set. Claims of one reply are not independent, so intervals need these counts."""

    reply_id: Ident
    scenario_id: Ident
    confusion: tuple[GivenCount, ...]
    spurious: dict[Label | Literal["open"], int] = Field(default_factory=dict)
    """Extracted claims that match no gold claim, by their final label."""


class JudgeError(Record):
    """A claim that a judge labeled differently from the gold set, with both reasons."""

    reply_id: str
    claim_id: str
    kind: ClaimKind
    text: str
    quotes: tuple[str, ...]
    gold: Label
    given: Given
    gold_evidence: tuple[str, ...]
    given_evidence: tuple[str, ...]
    severity: Severity
    gold_reason: str
    given_reason: str


class LabelPrecision(Record):
    """Of the claims that got one label, the share whose gold label it is; None if no claim got it."""

    matched: float | None
    """Over claims that match a gold claim."""
    with_spurious: float | None
    """If every claim that matches no gold claim counts as wrong."""


class JudgeMeasured(Record):
    """One verifier, the panel of all verifiers with ties settled, or all judges end to end."""

    name: str
    model: ModelName | None
    """None where several judges work together."""
    replies: tuple[ReplyCounts, ...]
    by_kind: dict[ClaimKind, tuple[int, int]]
    """Kind to the number of claims labeled correctly, and of all claims."""
    precision: dict[Label, LabelPrecision] = Field(default_factory=dict, exclude_if=is_empty)
    """Empty in records that did not note it; it follows from `replies`."""
    same_evidence: int
    """Of the claims labeled correctly, how many cite a fact that the gold set cites."""
    errors: tuple[JudgeError, ...]
    """The worst first."""

    def matrix(self) -> dict[tuple[Label, Given], int]:
        """Gold label and what was given to the number of claims."""
        total: Counter[tuple[Label, Given]] = Counter()
        for reply in self.replies:
            total.update({(one.gold, one.given): one.claims for one in reply.confusion})
        return dict(total)

    def spurious(self) -> dict[str, int]:
        """Extracted claims that match no gold claim, by their final label."""
        total: Counter[str] = Counter()
        for reply in self.replies:
            total.update(reply.spurious)
        return dict(total)


class ExtractorMeasured(Record):
    model: ModelName
    gold_claims: int
    found: int
    """Gold claims that an extracted claim matches."""
    extracted: int
    """Verifiable claims that the extractor gave, and sentences taken as claims in their own words."""
    verbatim: int
    """Of these, sentences that the extractor left out twice."""
    on_gold: int
    """Of the extracted claims, how many match a gold claim."""
    rejected: int
    typographic: int
    sentences: int
    covered: int
    """Of the sentences that say something, how many the extractor's own claims cover."""


NotCoded = Literal["no_code", "several_turns", "not_labeled"]
"""Why a gold reply has no study code: its question is not coded; its group has several turns; or the code also goes by
what the gold set does not label."""


class ReplyCode(Record):
    """The study code of the question that a gold reply answers."""

    reply_id: Ident
    scenario_id: Ident
    question_group: Ident
    gold: StudyCode
    """By the gold labels."""
    given: StudyCode
    """By the judges, end to end; `incomplete_data` if they failed or left open a claim that decides it."""


class CodesMeasured(Record):
    replies: tuple[ReplyCode, ...]
    left_out: dict[NotCoded, int]
    """Gold replies without a code, by reason."""


class JudgeCheck(Record):
    """What a check found. Reports use it to correct their estimates."""

    format: Literal[3] = CHECK_FORMAT
    check_id: str
    plan_sha256: Sha256
    split: Split
    limit: int | None
    replies: int
    claims: int
    off_topic: int
    """Gold labels that the rule of topical overlap would not let a verifier give with the gold evidence."""
    end_to_end: JudgeMeasured | None
    judges: tuple[JudgeMeasured, ...]
    """Each verifier given the gold claims, and the panel of all."""
    codes: CodesMeasured | None = Field(default=None, exclude_if=is_none)
    """Study codes end to end; None if that was not measured, as in records before this field."""
    extractor_measured: ExtractorMeasured | None
    failures: tuple[str, ...]
    calls: int
    cost: float | None
    """None if a price is unknown."""
    extractor: ModelName
    verifiers: tuple[ModelName, ...]
    adjudicator: ModelName | None
    scorer: ModelName
    isolation: Isolation
    api_ids: dict[ModelName, str]
    parameters: dict[ModelName, CallParameters]
    prompts: dict[Role, Sha256]
    rubrics: dict[str, Sha256]
    background_sha256: Sha256 | None = Field(default=None, exclude_if=is_none)
    """Of the background facts that hold in every state, apart from their figures.

    None in records that did not note it: it is not compared.
    """
    gold: dict[str, Sha256]
