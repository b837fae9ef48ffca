"""The fields of a result that are counted, as structs that msgspec decodes fast.

Each struct restates some fields of a record. tests/findings/test_result_fields.py compares them with the records, so a
field that is renamed or changes its type there cannot go unnoticed here.
"""

from __future__ import annotations

import msgspec

from ...records.base import Severity


class TargetFields(msgspec.Struct):
    name: str
    served_models: list[str]
    served_as_requested: bool | None
    fingerprints: list[str]
    not_applied: list[str]


class ExchangeFields(msgspec.Struct):
    turn_id: str
    question_group: str | None
    user_message: str
    outcome: str


class ClaimFields(msgspec.Struct):
    claim_id: str
    type: str
    confidence: str


class VerdictFields(msgspec.Struct):
    claim_id: str
    label: str


class FinalClaimFields(msgspec.Struct):
    claim_id: str
    turn_id: str
    text: str
    label: str | None
    evidence: list[str]
    severity: Severity
    decided_by: str
    labels_given: list[str]


class ScoreFields(msgspec.Struct):
    accuracy: float | None
    completeness: float | None
    safety_risk: float | None
    calibration: float | None


class ScorerFields(msgspec.Struct):
    scores: ScoreFields


class OwnPointsFields(msgspec.Struct):
    code: str
    points_met: list[msgspec.Raw]
    points_missed: list[msgspec.Raw]


class CodeFields(msgspec.Struct):
    question_group: str
    turn_ids: list[str]
    code: str | None
    answer: str | None
    lookup_dependent: bool
    own: OwnPointsFields | None = None


class FlagFields(msgspec.Struct):
    refusal: bool
    hallucinated_specifics: bool


class ReadingFields(msgspec.Struct):
    how: str
    sentences: int
    covered_first: int
    covered: int
    typographic_quotes: int
    verbatim: int = 0
    marked: list[msgspec.Raw] = []


class WithoutFields(msgspec.Struct):
    """The result if the marked passages had not been written."""

    final_scores: ScoreFields | None
    study_codes: list[CodeFields]


class FailureFields(msgspec.Struct):
    stage: str
    turn_id: str
    judge: int
    reason: str


class ServiceFields(msgspec.Struct):
    model: str
    served_models: list[str]
    served_as_requested: bool | None
    not_applied: list[str]


class ReasonFields(msgspec.Struct):
    kind: str


class CitationFields(msgspec.Struct):
    url: str
    outcome: str
    host_class: str


class TurnCitationFields(msgspec.Struct):
    turn_id: str
    citation: CitationFields


class TrialFields(msgspec.Struct):
    """A line of results.jsonl."""

    trial_id: str
    scenario_id: str
    variant: str | None
    repetition: int
    target: TargetFields
    outcome: str
    conversation: list[ExchangeFields]
    claims: list[ClaimFields]
    rejected_claims: list[msgspec.Raw]
    verdicts: dict[str, list[VerdictFields]]
    repeat_verdicts: dict[str, list[list[VerdictFields]]]
    scores_by_judge: dict[str, ScorerFields]
    final_claims: list[FinalClaimFields]
    final_scores: ScoreFields | None
    study_codes: list[CodeFields]
    error_categories: list[str]
    needs_manual_review: bool
    readings: list[ReadingFields]
    severity_disagreements: int
    disagreement: float | None
    flags: FlagFields
    judge_failures: list[FailureFields]
    judge_services: list[ServiceFields]
    review_reasons: list[ReasonFields] | None = None
    """None in runs of format 1, which did not record them."""
    shared_verdicts: dict[str, list[VerdictFields]] = {}
    without_marked: WithoutFields | None = None
    citations: list[TurnCitationFields] = []
