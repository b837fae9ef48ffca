"""What evidence pages show of a result, as structs that msgspec decodes fast.

Each struct restates some fields of a record. tests/findings/test_result_fields.py compares them with the records, so a
field that is renamed or changes its type there cannot go unnoticed here.
"""

from __future__ import annotations

import msgspec

from ...schemas import Label, Severity


class TargetFields(msgspec.Struct):
    name: str
    served_models: list[str]


class SearchFields(msgspec.Struct):
    searches: int
    queries: list[str] = []
    errors: list[str] = []


class ExchangeFields(msgspec.Struct):
    turn_id: str
    question_group: str | None
    user_message: str
    outcome: str
    reply: str | None
    detail: str | None
    search: SearchFields | None = None


class SpanFields(msgspec.Struct):
    start: int
    end: int


class ClaimFields(msgspec.Struct):
    claim_id: str
    text: str
    type: str
    quote_spans: list[SpanFields]
    turn_id: str | None = None


class RejectedFields(msgspec.Struct):
    turn_id: str
    text: str
    reason: str


class VerdictFields(msgspec.Struct):
    claim_id: str
    label: Label
    evidence: list[str]
    severity: Severity
    notes: str = ""


class FinalClaimFields(msgspec.Struct):
    claim_id: str
    turn_id: str
    text: str
    label: Label | None
    evidence: list[str]
    severity: Severity
    decided_by: str


class ScoreFields(msgspec.Struct):
    accuracy: float | None
    completeness: float | None
    safety_risk: float | None
    calibration: float | None


class BackingFields(msgspec.Struct):
    claim_id: str
    quotes: list[str]
    evidence: list[str]


class PointFields(msgspec.Struct):
    point: str
    claims: list[BackingFields]


class OwnPointsFields(msgspec.Struct):
    code: str
    points_met: list[PointFields]
    points_missed: list[str]


class LookedUpFields(msgspec.Struct):
    quote: str
    checked: bool


class CodeFields(msgspec.Struct):
    question_group: str
    turn_ids: list[str]
    code: str | None
    answer: str | None
    reason: str
    points_met: list[PointFields]
    points_missed: list[str]
    partial_points_met: list[PointFields]
    wrong: list[BackingFields]
    minor: list[BackingFields]
    fabricated: list[str]
    looked_up: list[LookedUpFields] = []
    own: OwnPointsFields | None = None


class ReviewReasonFields(msgspec.Struct):
    detail: str


class MarkedFields(msgspec.Struct):
    start: int
    end: int
    why: str


class ReadingFields(msgspec.Struct):
    turn_id: str
    how: str
    why: str = ""
    left_out: list[str] = []
    marked: list[MarkedFields] = []


class ObservationFields(msgspec.Struct):
    kind: str
    quote: str


class TurnObservationFields(msgspec.Struct):
    turn_id: str
    observation: ObservationFields


class FailureFields(msgspec.Struct):
    stage: str
    turn_id: str
    judge: int
    reason: str


class JudgedByFields(msgspec.Struct):
    verifiers: dict[str, str]


class CitationFields(msgspec.Struct):
    url: str
    outcome: str
    why: str


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
    rejected_claims: list[RejectedFields]
    verdicts: dict[str, list[VerdictFields]]
    repeat_verdicts: dict[str, list[list[VerdictFields]]]
    final_claims: list[FinalClaimFields]
    final_scores: ScoreFields | None
    study_codes: list[CodeFields]
    readings: list[ReadingFields]
    observations: list[TurnObservationFields]
    judge_failures: list[FailureFields]
    judged_by: JudgedByFields
    review_reasons: list[ReviewReasonFields] | None = None
    citations: list[TurnCitationFields] = []
    """None in runs of format 1, which did not record them."""


class CodedFields(msgspec.Struct):
    """What codes.csv shows of a line."""

    trial_id: str
    scenario_id: str
    variant: str | None
    target: TargetFields
    study_codes: list[CodeFields]


class ClaimedFields(msgspec.Struct):
    """What dollars.csv shows of a line."""

    trial_id: str
    scenario_id: str
    variant: str | None
    target: TargetFields
    conversation: list[ExchangeFields]
    claims: list[ClaimFields]
    final_claims: list[FinalClaimFields]


decode = msgspec.json.Decoder(TrialFields).decode
decode_codes = msgspec.json.Decoder(CodedFields).decode
decode_claims = msgspec.json.Decoder(ClaimedFields).decode
