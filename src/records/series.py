"""A series: one frozen study, run again and again (`series.json`), and its points (`points.jsonl`)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, field_validator

from .base import Ident, Line, ModelName, Record, Sha256, Unit, is_empty, is_false, is_none
from .contracts import MeasureName
from .judge_check import Split

SERIES_FORMAT: Literal[1] = 1
Cadence = Literal["day", "week", "month", "quarter"]
Outcome = MeasureName
Period = Annotated[str, StringConstraints(pattern=r"^\d{4}-(\d{2}(-\d{2})?|W\d{2}|Q[1-4])$")]
"""What a point stands for: 2026-11-18, 2026-W47, 2026-11 or 2026-Q4. Later periods sort after earlier ones."""
Day = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class RunReference(Record):
    """A complete run, found by its path and known by its hashes."""

    folder: str
    """Relative to the folder of the series."""
    run_id: str
    results_head: Sha256
    manifest_sha256: Sha256


class CheckReference(Record):
    """A judge check."""

    folder: str
    """Relative to the folder of the series."""
    check_id: str
    record_sha256: Sha256


class Anchors(Record):
    """Labeled replies that the judges label again at every point."""

    split: Split
    limit: int | None
    """Replies drawn by the seed. None: all."""
    gold: str | None = Field(default=None, exclude_if=is_none)
    """A folder of other labels, relative to the series. None: the gold set that ships with the project."""


class Series(Record):
    """What stays the same as long as the series goes on."""

    format: Literal[1] = SERIES_FORMAT
    title: Line
    created: str
    versions: dict[str, str]
    study: dict[str, Any]
    """The study, as in a study file; paths are relative to the folder of the series. Without a plan year, each point
    has that of its date."""
    cadence: Cadence
    outcomes: tuple[Outcome, ...] = Field(min_length=1)
    """The primary outcomes. Each target has a line for each."""
    floor: float = Field(gt=0, lt=1)
    """The smallest change that matters."""
    alpha: float = Field(gt=0, lt=0.5)
    """The share of unchanged series that may have a false alarm, over all targets and outcomes."""
    points: int = Field(ge=2, le=1_000)
    """Points that the thresholds are made for, without the first."""
    anchors: Anchors | None
    """None: the judges are checked only on the transcripts of each segment's first point."""
    seed: int = Field(ge=0, le=2**63 - 1)

    @field_validator("outcomes")
    @classmethod
    def _different(cls, names: tuple[Outcome, ...]) -> tuple[Outcome, ...]:
        if len(set(names)) < len(names):
            raise ValueError("an outcome is named twice")
        return names


class ClusterDesign(Record):
    weight: float = Field(gt=0)
    """Questions of a scenario, or claims of a labeled reply."""
    answers: float = Field(gt=0)
    """Answers to them at one point."""


class FoundShare(Record):
    """What a rule finds in simulated series."""

    share: Unit
    delay: float | None
    """Median number of points; None if fewer than half of the series were found."""


class SimulatedPower(Record):
    """How often a drop of this size is found, if answers are a mixture of sure and unsure ones."""

    drop: float
    after: int
    """Points before the drop."""
    alarm: FoundShare
    claim: FoundShare


class LineLimit(Record):
    """The threshold of a line, simulated for its design."""

    clusters: dict[str, ClusterDesign]
    points: int
    level: float = Field(gt=0, lt=1)
    """The share of unchanged lines that may have a false alarm, and the inverse of the wealth that makes a claim."""
    limit: float = Field(gt=0)
    """Of the CUSUM."""
    series: int
    """Simulated for each kind of chance."""
    seed: int
    power: SimulatedPower | None = Field(default=None, exclude_if=is_none)


class PlanParts(Record):
    """Hashes of what must stay the same for points to be compared."""

    plan_year: int
    key: Sha256
    rubric: Sha256
    judging: Sha256
    asking: Sha256
    """Scenarios, variants, turns, repeats and seed."""
    questions: Sha256
    """Their words, with figures of the plan year filled in."""
    files: Sha256
    """The scenario files."""
    targets: dict[ModelName, Sha256]
    """Model id, parameters and settings of each."""


class Segment(Record):
    """A line of `points.jsonl`: from here on, points are compared with each other and with none before."""

    line: Literal["segment"] = "segment"
    number: int = Field(ge=1)
    reasons: tuple[Line, ...] = Field(min_length=1)
    judging: int = Field(ge=1)
    """Counts the changes of judges. Segments of the same number share the anchors' lines."""
    parts: PlanParts
    study: dict[str, Any]
    """As in `series.json`, with the judges of this segment."""
    verifiers: tuple[ModelName, ...]
    extractor: ModelName
    scorer: ModelName
    adjudicator: ModelName | None
    targets: dict[Outcome, LineLimit]
    """Of every target's line."""
    frozen: dict[Outcome, LineLimit]
    """Of the lines of the judges on the first point's transcripts."""
    anchors: LineLimit | None
    """Of each judge's line on the anchors."""


class ScenarioValue(Record):
    value: Unit
    questions: int
    """Questions that have a value."""


class MissingAnswers(Record):
    missing: int = 0
    of: int = 0


class TargetPoint(Record):
    """What one target did at one point."""

    values: dict[Outcome, dict[Ident, ScenarioValue]]
    """By outcome and scenario: the mean over questions of the mean over variants of the mean over repeats."""
    missing: dict[Outcome, MissingAnswers]
    served: tuple[str, ...]
    """Model ids that the provider reported."""
    fingerprints: tuple[str, ...] = Field(default=(), exclude_if=is_empty)
    """Of its systems, if it reported them. They differ between machines, so a change is no event."""


class RightLabels(Record):
    right: int
    of: int


class PointCost(Record):
    """US dollars; None if a price is unknown."""

    run: float | None
    frozen: float | None = 0.0
    anchors: float | None = 0.0

    @property
    def total(self) -> float | None:
        parts = (self.run, self.frozen, self.anchors)
        return None if None in parts else sum(part for part in parts if part is not None)


class EndedTarget(Record):
    target: ModelName
    why: Line


class Point(Record):
    """A line of `points.jsonl`: one run of the study."""

    line: Literal["point"] = "point"
    segment: int = Field(ge=1)
    period: Period
    date: Day
    restated: bool = Field(default=False, exclude_if=is_false)
    """Whether it is an earlier point, judged again because the judges changed."""
    run: RunReference
    transcripts: RunReference | None = Field(default=None, exclude_if=is_none)
    """The run that asked the targets, if `run` judged its transcripts again."""
    frozen: RunReference | None = None
    """The transcripts of the segment's first point, judged again at this one, with the library of this one."""
    check: CheckReference | None = None
    targets: dict[ModelName, TargetPoint]
    rejudged: dict[ModelName, dict[Outcome, dict[Ident, ScenarioValue]]] = Field(
        default_factory=dict, exclude_if=is_empty
    )
    """From `frozen`, for the targets of the segment's first point; at that point, what it was judged then."""
    anchors: dict[Line, dict[Line, RightLabels]] = Field(default_factory=dict, exclude_if=is_empty)
    """By judge and labeled reply."""
    gold: Sha256 | None = Field(default=None, exclude_if=is_none)
    """Of the labels: points with others are not compared on them."""
    judges: dict[ModelName, tuple[str, ...]]
    """Model ids that the judges' providers reported."""
    facts: Sha256
    """Of the library's facts that verifiers could use beyond the keys."""
    ended: tuple[EndedTarget, ...] = Field(default=(), exclude_if=is_empty)
    """Targets whose line ended before this point."""
    cost: PointCost


SeriesLine = Annotated[Segment | Point, Field(discriminator="line")]


class PointIntent(Record):
    """`points/PERIOD/point.json`: what is being done, so that a stopped point goes on as it began."""

    format: Literal[1] = SERIES_FORMAT
    period: Period
    date: Day
    lines: int
    """Lines of `points.jsonl` before it."""
    study: dict[str, Any]
    """The study of this point, in full: without targets that ended, and with the judges of now."""
    reasons: tuple[Line, ...]
    """Why a new segment begins; empty if none does."""
    judges_changed: bool = False
    ended: tuple[EndedTarget, ...] = ()
    run: str | None = None
    """A run that was made elsewhere, relative to the series; it is not run again."""
    check: str | None = None
    frozen: str | None = None
