"""A rubric: how verdicts become scores and study codes. It is data, so that a reader can check each rule."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from .base import Confidence, Ident, Line, Record, Unit, is_absent

StudyCode = Literal["accurate_complete", "accurate_incomplete", "not_substantive", "incorrect", "incomplete_data"]
CODES: tuple[StudyCode, ...] = (
    "accurate_complete", "accurate_incomplete", "not_substantive", "incorrect", "incomplete_data",
)  # fmt: skip
ClosedAnswer = Literal["yes", "no", "unsure"]
Grade = Literal["low", "medium", "high"]


Scope = Literal["question", "conversation"]
"""Where claims can make a point: in answers to the question that requires it, or anywhere in the conversation."""


class ClosedScale(Record):
    """A question outside the four levels: only whether the answer says yes, no or neither."""

    yes: tuple[Line, ...] = Field(min_length=1)
    no: tuple[Line, ...] = Field(min_length=1)
    unsure: tuple[Line, ...] = ()


class StudyPoint(Record):
    """One point that the published study looks for, in our words."""

    name: Line
    any_of: tuple[Ident, ...] = Field(min_length=1)
    """Library facts, each of which makes the point if the scenario's key has it."""


class GroupRule(Record):
    """How one question group is coded."""

    topic: Line
    study_group: int | None = None
    """The study's number; None for groups of our own."""
    scenario: Literal["both", "medicare_only", "dual_eligible", "other"] = "other"
    needs: Line
    """What a complete answer contains, in words; the points themselves are in the scenario's turns."""
    lookup_dependent: bool = False
    """Whether the truth depends on a plan, a doctor or a place that must be looked up."""
    incomplete_level: bool = True
    """Whether accurate_incomplete exists here; if not, a part of the answer is not_substantive."""
    material_from: Grade = "medium"
    """A contradiction must be at least this severe to make an answer incorrect."""
    background_from: Grade = Field(default="high", exclude_if=lambda grade: grade == "high")
    """The same for a contradiction of background facts alone, which are not about the question."""
    referral_alone: Literal["not_substantive", "accurate_complete"] = "not_substantive"
    """The code of an answer that makes no point but says it cannot know, or refers elsewhere."""
    fabricated: Literal["incorrect", "incorrect_unless_complete", "noted"] = "noted"
    """What a fabricated specific does, if no fact of the key supports it."""
    hedged: Literal["counts", "accurate_incomplete", "not_substantive"] = Field(
        default="counts", exclude_if=lambda hedged: hedged == "counts"
    )
    """The best code of an answer of which every claim that makes a point sounds unsure ("I believe so")."""
    not_material: tuple[Ident, ...] = Field(default=(), exclude_if=is_absent)
    """Library facts, or facts of the key, that do not bear on this decision: to contradict them is a minor error."""
    closed: ClosedScale | None = None
    points_from: Scope = Field(default="question", exclude_if=lambda scope: scope == "question")
    """Where a point of this group may be made to count toward its study code."""
    study_points: tuple[StudyPoint, ...] = Field(default=(), exclude_if=is_absent)
    """The study's points, if they are not those of the scenario's turns. The code then goes by them, and the turns'
    own points give a second code."""
    study_partial: tuple[Ident, ...] = Field(default=(), exclude_if=is_absent)
    """Library facts that make an answer substantive in the study, but never complete."""
    study_faithful: bool | None = Field(default=None, exclude_if=is_absent)
    """Whether the code means what the study's code means. None: not stated, as in rubrics before this field."""
    differs: Line | None = Field(default=None, exclude_if=is_absent)
    """In which ways this rule still differs from the study's."""

    @model_validator(mode="after")
    def _tells_study_points_apart(self) -> Self:
        names = [point.name for point in self.study_points]
        facts = [frozenset(point.any_of) for point in self.study_points]
        if len(set(names)) < len(names) or len(set(facts)) < len(facts):
            raise ValueError("study_points: no two points may have the same name or the same facts")
        if self.closed and self.study_points:
            raise ValueError("study_points: a closed question has no points")
        return self


class ScoreWeights(Record):
    severity: dict[Grade, Unit]
    """How much one contradiction adds to the risk, by its severity."""
    confidence: dict[Confidence, Unit]
    """How sure a claim sounds, as a probability that it is right."""

    @model_validator(mode="after")
    def _rises_with_gravity(self) -> Self:
        if set(self.severity) != {"low", "medium", "high"} or set(self.confidence) != {"low", "medium", "high"}:
            raise ValueError("severity and confidence each need low, medium and high")
        for name, weights in (("severity", self.severity), ("confidence", self.confidence)):
            if not 0 < weights["low"] <= weights["medium"] <= weights["high"]:
                raise ValueError(f"{name} must not fall from low to high, and low must be above 0")
        return self


RubricName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
"""As in the name of its file."""


class Rubric(Record):
    rubric_version: RubricName
    note: Line
    weights: ScoreWeights
    default: GroupRule
    """For questions in no group that is named below."""
    groups: dict[Ident, GroupRule]
    points_from: Scope = Field(default="question", exclude_if=lambda scope: scope == "question")
    """Where a point may be made to count toward completeness."""
    study_codes: bool = Field(default=True, exclude_if=bool)
    """Whether questions get study codes besides the scores."""

    def rule(self, group: str) -> GroupRule:
        """The rule of a group: its own, or that of the name before its first dash (`lookup-doctor` is a `lookup`)."""
        return self.groups.get(group) or self.groups.get(group.partition("-")[0]) or self.default
