"""A study code and everything behind it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .base import Ident, Record, is_empty, is_none
from .rubric import ClosedAnswer, StudyCode


class Backing(Record):
    """A claim and the target's own words for it."""

    claim_id: str
    quotes: tuple[str, ...]
    evidence: tuple[str, ...]
    why: Literal["not_material"] | None = Field(default=None, exclude_if=is_none)
    """Set if a contradiction is minor not for its low severity, but because the rule says that it does not bear on
    this decision."""


class MadePoint(Record):
    """A point that was made, and by which claims."""

    point: str
    claims: tuple[Backing, ...]


class OwnPoints(Record):
    """How a question with points of the study was answered by the points of our own scenario."""

    code: StudyCode
    points_met: tuple[MadePoint, ...]
    points_missed: tuple[str, ...]


class LookedUp(Record):
    """A specific that a target with search, or a person with look-up tools, may have looked up."""

    quote: str
    checked: bool
    """Whether a page of the snapshot supports it. If not, nobody has checked it yet."""


class QuestionCode(Record):
    """How one question was answered, as the study codes it, with its reason."""

    question_group: Ident
    """The turn's id if it is in no group."""
    turn_ids: tuple[Ident, ...]
    code: StudyCode | None
    """None for a closed question, which is outside the levels."""
    answer: ClosedAnswer | None
    reason: str
    lookup_dependent: bool
    points_met: tuple[MadePoint, ...]
    points_missed: tuple[str, ...]
    partial_points_met: tuple[MadePoint, ...]
    wrong: tuple[Backing, ...]
    """Contradictions severe enough to count."""
    minor: tuple[Backing, ...]
    """Contradictions that do not count: less severe, or about something that does not bear on this decision."""
    fabricated: tuple[str, ...]
    """Specifics, in the target's words, that no one can know without looking them up, and that have no source."""
    looked_up: tuple[LookedUp, ...] = Field(default=(), exclude_if=is_empty)
    """Such specifics that have a source, or that a person with look-up tools stated."""
    own: OwnPoints | None = Field(default=None, exclude_if=is_none)
    """The second set of points; None where the code already goes by our own points."""
