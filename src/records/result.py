"""The result of one trial: what was asked and said, and what judges and code made of it (spec 9)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .base import Ident, Line, ModelName, Record, Sha256, TrialOutcome, TurnOutcome, is_empty, is_none, is_zero
from .citation import CheckedCitation
from .contracts import Claim, FinalClaim, LeftOpen, Observation, ScorerOutput, Scores, Verdict
from .run import Format, Role, Stage, is_first
from .study_code import QuestionCode
from .target import WebSearch


class TargetRecord(Record):
    name: ModelName
    provider: str
    model: str
    family: str
    api_id: str
    """The API id it was called by."""
    served_models: tuple[str, ...]
    """Every model id that answered, in order of first appearance."""
    served_as_requested: bool | None
    """Whether each of these is the id called, or a dated version of it; None if no reply named a model."""
    fingerprints: tuple[str, ...]
    not_applied: tuple[str, ...]


class Exchange(Record):
    """One turn of the conversation, asked or not."""

    turn_id: Ident
    question_group: Ident | None
    user_message: str
    outcome: TurnOutcome
    reply: str | None
    """What the target wrote, verbatim; None if it wrote nothing."""
    detail: str | None
    """Why there is no answer, if there is none."""
    served_model: str | None
    search: WebSearch | None = Field(default=None, exclude_if=is_none)
    """What the target searched for this reply."""


CALL_FAILED = "the call failed: "
"""In the reason of a judge's failure, before the outcome of the call and its error."""


class JudgeFailure(Record):
    """A judge that gave no usable answer. Never a verdict."""

    stage: Stage
    turn_id: str
    judge: int
    claim_ids: tuple[str, ...]
    """The claims it left without a verdict; empty if the whole stage failed."""
    reason: str


class RejectedClaim(Record):
    """A claim that was rejected because its quote is not in the reply, or because it says more than its quote."""

    turn_id: Ident
    text: str
    reason: str


class MarkedPassage(Record):
    """A passage of a reply that was judged apart from the rest, and why the screen marked it."""

    start: int
    end: int
    why: str


class TurnReading(Record):
    """How one reply was evaluated (by judges or by a fixed rule) and how much of it the claims cover."""

    turn_id: Ident
    how: Literal["judges", "rule", "tampered"]
    """`tampered`, in formats 1 and 2 only: it addressed the judge and was not judged."""
    why: str = ""
    sentences: int = 0
    """Sentences with factual content."""
    covered_first: int = 0
    """Of these, how many the extractor's first answer covered."""
    covered: int = 0
    left_out: tuple[str, ...] = ()
    typographic_quotes: int = 0
    """Quotes that were found only after folding quotes, dashes, spaces and markdown marks."""
    verbatim: int = Field(default=0, exclude_if=is_zero)
    """Factual sentences that no claim of the extractor covers, each of which became a claim in its own words."""
    unjudged: int = Field(default=0, exclude_if=is_zero)
    """Characters at the end of the reply that no judge was shown: it is longer than what is judged of one reply."""
    unjudged_claims: int = Field(default=0, exclude_if=is_zero)
    """Claims beyond the most that one reply may have; no verifier got them, and they are not recorded."""
    marked: tuple[MarkedPassage, ...] = Field(default=(), exclude_if=is_empty)
    """What the screen found: passages that were judged apart from the rest of the reply."""
    verified: Literal["each_claim", "both_ways"] | None = Field(default=None, exclude_if=is_none)
    """`each_claim`: one claim per verifier call. `both_ways`: also in shared calls, as part of the audit sample."""


class TurnObservation(Record):
    turn_id: Ident
    observation: Observation


class TurnCitation(Record):
    """A citation of a reply, and what was found out about it."""

    turn_id: Ident
    citation: CheckedCitation


class Flags(Record):
    refusal: bool
    hallucinated_specifics: bool


class JudgedBy(Record):
    extractor: ModelName
    verifiers: dict[str, ModelName]
    scorer: ModelName
    adjudicator: ModelName | None


class JudgeService(Record):
    """The model that really served as a judge in one trial."""

    model: ModelName
    served_models: tuple[str, ...]
    served_as_requested: bool | None
    not_applied: tuple[str, ...]


class Fingerprints(Record):
    scenario: Sha256
    rubric: Sha256
    prompts: dict[Role, Sha256]


ReviewKind = Literal[
    "addresses_judge", "judged_apart", "unjudged", "nothing_extracted", "low_coverage", "rejected_claims",
    "judges_disagree", "open_claims", "unchecked_source",
]  # fmt: skip
"""`addresses_judge`: up to format 5 the name of `judged_apart`."""


class ReviewReason(Record):
    """Why a person should look at a trial."""

    kind: ReviewKind
    detail: Line
    """One sentence with the numbers behind it."""
    turn_ids: tuple[Ident, ...] = ()
    claim_ids: tuple[str, ...] = ()


class WithoutMarked(Record):
    """The result of a trial without the claims of its marked passages."""

    left_out: tuple[str, ...] = Field(default=(), exclude_if=is_empty)
    """The claims that are in marked passages alone. All others count as they do in the trial."""
    claims: tuple[Claim, ...] = Field(default=(), exclude_if=is_empty)
    """Up to format 5: the claims of marked replies, which were judged again without the passages."""
    final_claims: tuple[FinalClaim, ...] = Field(default=(), exclude_if=is_empty)
    """Up to format 5, like `claims`."""
    final_scores: Scores | None
    """None if a judge failed."""
    left_open: LeftOpen | None = Field(default=None, exclude_if=is_none)
    study_codes: tuple[QuestionCode, ...]


class TrialResult(Record):
    """One trial: one scenario asked of one target once."""

    trial_id: str
    scenario_id: Ident
    variant: Ident | None
    repetition: int
    target: TargetRecord
    outcome: TrialOutcome
    conversation: tuple[Exchange, ...]
    claims: tuple[Claim, ...]
    rejected_claims: tuple[RejectedClaim, ...]
    verdicts: dict[str, tuple[Verdict, ...]]
    """By judge: judge_1, judge_2, ..."""
    repeat_verdicts: dict[str, tuple[tuple[Verdict, ...], ...]] = Field(default_factory=dict)
    """By judge, one entry per repeat, for trials of the sample that is judged again."""
    shared_verdicts: dict[str, tuple[Verdict, ...]] = Field(default_factory=dict, exclude_if=is_empty)
    """By judge: its verdicts on claims of the audit sample when they share a call with others. They do not count."""
    scores_by_judge: dict[str, ScorerOutput]
    final_claims: tuple[FinalClaim, ...]
    final_scores: Scores | None
    """None if the trial was not scored; `outcome` says why."""
    left_open: LeftOpen | None = Field(default=None, exclude_if=is_none)
    """The range of each final score; None if no claim is open, and in runs of formats 1 to 5."""
    without_marked: WithoutMarked | None = Field(default=None, exclude_if=is_none)
    """Set if the screen marked a reply of a scored trial."""
    missing_required_points: tuple[str, ...]
    """Points that are not made, whichever way open claims fall."""
    study_codes: tuple[QuestionCode, ...]
    error_categories: tuple[str, ...]
    needs_manual_review: bool
    review_reasons: tuple[ReviewReason, ...] | None = Field(default=None, exclude_if=is_none)
    """Why, one entry per reason; empty if no review is needed. None in runs of format 1, which did not record it."""
    readings: tuple[TurnReading, ...]
    severity_disagreements: int
    """Claims that judges agreed are wrong, with different severities; the highest counts."""
    disagreement: float | None
    """Fraction of judged claims on which the verifiers did not all agree."""
    flags: Flags
    observations: tuple[TurnObservation, ...]
    citations: tuple[TurnCitation, ...] = Field(default=(), exclude_if=is_empty)
    """The addresses that replies cite; one that backs several claims is listed for each."""
    judge_failures: tuple[JudgeFailure, ...]
    judged_by: JudgedBy
    judge_services: tuple[JudgeService, ...]
    rubric_version: str
    fingerprints: Fingerprints
    format: Format = Field(default=1, exclude_if=is_first)


class ResultLine(TrialResult):
    """A line of results.jsonl: a result with its chain value."""

    chain: Sha256
