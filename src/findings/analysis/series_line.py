"""One number of a series followed over its points, with its alarms and claims; and what is measured at one point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Literal

from ...records.judge_check import JudgeCheck, JudgeMeasured
from ...records.series import LineLimit, MissingAnswers, Outcome, RightLabels, ScenarioValue, Series, TargetPoint
from ...scoring.definitions import LESS_IS_BETTER, MEASURES
from ...stats.monitoring import ChanceVariance, Design, Direction, Step, follow
from ...trials.row import Row
from .estimates import question_values, tallied_rows
from .read_run import Findings
from .series_design import design_of

LineKind = Literal["target", "frozen", "anchors"]


@dataclass(frozen=True)
class Line:
    """One number followed over the points of a segment, or over all segments with the same judges."""

    kind: LineKind
    """A target's answers; the first transcripts of the segment, judged again; the labeled replies."""
    name: str
    """The target, also for its transcripts that are judged again; or the judge."""
    outcome: Outcome | None
    """None for anchors: the share of claims labeled correctly."""
    limit: LineLimit
    periods: tuple[str, ...]
    steps: tuple[Step, ...]

    @property
    def alarm(self) -> int | None:
        """The place of the first point with an alarm, or with a claim if that comes first."""
        return _first(self.steps, _said)

    @property
    def claim(self) -> int | None:
        """The place of the point at which the claim was made."""
        return _first(self.steps, lambda step: step.claim)

    @property
    def since(self) -> int | None:
        """The first point after the change that the first alarm is about."""
        if self.alarm is None:
            return None
        since = self.steps[self.alarm].since
        return self.alarm if since is None else since

    @property
    def from_period(self) -> str | None:
        """The period of that point."""
        return None if self.since is None else self.periods[self.since]

    @property
    def direction(self) -> Direction | None:
        return None if self.alarm is None else _said(self.steps[self.alarm])

    @property
    def sure(self) -> bool:
        """Whether there is a claim in the direction of the alarm."""
        return self.claim is not None and self.steps[self.claim].claim == self.direction

    def place(self, period: str) -> int | None:
        """The place of a period's point, if the line has it."""
        return self.periods.index(period) if period in self.periods else None

    @property
    def worse(self) -> bool | None:
        """Whether the alarm is about a change for the worse; None without an alarm."""
        if self.direction is None:
            return None
        return (self.direction == "up") == (self.outcome in LESS_IS_BETTER)


def _said(step: Step) -> Direction | None:
    return step.alarm or step.claim


def _first(steps: Sequence[Step], said: Callable[[Step], str | None]) -> int | None:
    return next((place for place, step in enumerate(steps) if said(step)), None)


class Follower:
    """Follows lines. What one segment shows of chance is used in the next; levels are never compared across them."""

    def __init__(self, series: Series) -> None:
        self._floor = series.floor
        self._noise: dict[tuple[str, str, Outcome | None], ChanceVariance] = {}

    def line(
        self, kind: LineKind, name: str, outcome: Outcome | None, limit: LineLimit, points: Sequence[Values]
    ) -> Line:
        found = follow(
            [one.by_cluster for one in points],
            _asked_design(design_of(limit, self._floor), points),
            limit=limit.limit,
            level=limit.level,
            learned=self._noise.get((kind, name, outcome)),
        )
        self._noise[kind, name, outcome] = found.noise
        return Line(kind, name, outcome, limit, tuple(one.period for one in points), tuple(found.steps))


@dataclass(frozen=True)
class Values:
    """What was measured at one point."""

    period: str
    by_cluster: Mapping[str, float]
    weights: Mapping[str, float] = field(default_factory=dict)
    """Questions that have a value. Empty: as planned."""

    @classmethod
    def of(cls, period: str, values: Mapping[str, ScenarioValue]) -> Values:
        return cls(
            period,
            {name: one.value for name, one in values.items()},
            {name: float(one.questions) for name, one in values.items()},
        )


def _asked_design(design: Design, points: Sequence[Values]) -> Design:
    """A scenario counts as many questions as it had at its first point: some are asked only of some targets."""
    first: dict[str, float] = {}
    for one in points:
        first = {**one.weights, **first}
    clusters = {name: replace(one, weight=first.get(name, one.weight)) for name, one in design.clusters.items()}
    return Design(clusters, design.floor)


def judge_name(line: Line) -> str:
    """The judge, or the judges, of a line."""
    if line.kind == "frozen":
        return f"the judging of unchanged transcripts of {line.name}"
    return f"the judge {line.name}" if ":" in line.name else "the panel of judges"


def outcome_name(outcome: Outcome | None) -> str:
    return MEASURES[outcome].subject if outcome else "labels"


END_TO_END = "all judges, end to end"


def values_by_scenario(rows: Sequence[Row], outcome: Outcome) -> dict[str, ScenarioValue]:
    """Each question is averaged over repeats, then over variants; a scenario over its questions."""
    found: dict[str, list[float]] = {}
    for one in question_values(tallied_rows(rows, outcome)):
        found.setdefault(one.question.scenario_id, []).append(one.value)
    return {
        name: ScenarioValue(value=fsum(values) / len(values), questions=len(values))
        for name, values in sorted(found.items())
    }


def missing_answers(rows: Sequence[Row], outcome: Outcome) -> MissingAnswers:
    tallies = [tally for variants in tallied_rows(rows, outcome).values() for tally in variants.values()]
    missing = sum(tally.missing for tally in tallies)
    return MissingAnswers(missing=missing, of=missing + sum(tally.n for tally in tallies))


def target_points(found: Findings, outcomes: Iterable[Outcome]) -> dict[str, TargetPoint]:
    chosen = tuple(outcomes)
    points = {}
    for target in found.plan_targets:
        rows = found.of_target(target)
        service = found.services.get(target)
        points[target] = TargetPoint(
            values={name: values_by_scenario(rows, name) for name in chosen},
            missing={name: missing_answers(rows, name) for name in chosen},
            served=tuple(sorted(service.served)) if service else (),
            fingerprints=tuple(sorted(service.fingerprints)) if service else (),
        )
    return points


def values_of_targets(
    found: Findings, outcomes: Iterable[Outcome]
) -> dict[str, dict[Outcome, dict[str, ScenarioValue]]]:
    """What the judges made of each target's transcripts."""
    chosen = tuple(outcomes)
    return {
        target: {name: values_by_scenario(found.of_target(target), name) for name in chosen}
        for target in found.plan_targets
    }


def served_judges(found: Findings) -> dict[str, tuple[str, ...]]:
    judges = found.manifest.plan.judge_models()
    return {name: tuple(sorted(found.services[name].served)) for name in judges if name in found.services}


def anchor_labels(record: JudgeCheck) -> dict[str, dict[str, RightLabels]]:
    """Of each verifier, and of all judges end to end: how many claims of each reply got the right label."""
    found = {name_of(one): _labels(one) for one in record.judges if one.model}
    if record.end_to_end:
        found[END_TO_END] = _labels(record.end_to_end)
    return found


def name_of(judge: JudgeMeasured) -> str:
    return str(judge.model)


def _labels(judge: JudgeMeasured) -> dict[str, RightLabels]:
    return {
        reply.reply_id: RightLabels(
            right=sum(one.claims for one in reply.confusion if one.given == one.gold),
            of=sum(one.claims for one in reply.confusion),
        )
        for reply in sorted(judge.replies, key=lambda one: one.reply_id)
        if reply.confusion
    }
