"""What a series says: alarms and claims of every line, the judges apart from the targets, segments and events.

Targets are compared only within a segment, with the thresholds recorded at its beginning. A verdict on a target is
"cannot tell" if its judges drifted, because a change of judge looks like a change of target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal, get_args

from ...records.model_name import split_name
from ...records.series import LineLimit, Outcome, Point, ScenarioValue, Segment, Series
from ...stats.bounded import Bounded, Unit, bounded_mean
from ...stats.monitoring import Direction, Step, follow
from ...store.series_folder import SeriesLines, read_lines, read_series
from .series_design import design_of

Verdict = Literal["drifted", "cannot tell", "no alarm"]
EventKind = Literal["segment", "ended", "facts", "judge served", "judge drifted", "served", "alarm", "claim"]
BETTER_UP = {"accuracy", "completeness", "calibration", "accurate_complete"}
"""Outcomes of which more is better; of the others, less."""
EXPLAINED = 0.5
"""If the judges moved by this share of what a target seems to have moved, it may have been the judges."""


@dataclass(frozen=True)
class Line:
    """One number followed over the points of a segment, or over all segments with the same judges."""

    kind: Literal["target", "frozen", "anchors"]
    """A target's answers; the first transcripts of the segment, judged again; the labeled replies."""
    name: str
    """The target, or the judge; empty for all judges together."""
    outcome: Outcome | None
    """None for anchors: the share of claims labeled correctly."""
    limit: LineLimit
    periods: tuple[str, ...]
    steps: tuple[Step, ...]

    @property
    def alarm(self) -> int | None:
        """The place of the first point with an alarm."""
        return _first(self.steps, lambda step: step.alarm)

    @property
    def claim(self) -> int | None:
        """The place of the point at which the claim was made."""
        return _first(self.steps, lambda step: step.claim)

    @property
    def since(self) -> int | None:
        """The first point after the change that the first alarm is about."""
        return None if self.alarm is None else self.steps[self.alarm].since

    @property
    def direction(self) -> Direction | None:
        return None if self.alarm is None else self.steps[self.alarm].alarm

    @property
    def worse(self) -> bool | None:
        """Whether the alarm is about a change for the worse; None without an alarm."""
        if self.direction is None:
            return None
        return (self.direction == "up") != (self.outcome is None or self.outcome in BETTER_UP)


def _first(steps: Sequence[Step], said: Callable[[Step], str | None]) -> int | None:
    return next((place for place, step in enumerate(steps) if said(step)), None)


@dataclass(frozen=True)
class Level:
    """The value of an outcome at one point, with its interval over scenarios."""

    period: str
    share: Bounded


@dataclass(frozen=True)
class TargetSegment:
    """One target in one segment."""

    target: str
    lines: tuple[Line, ...]
    """One per outcome."""
    levels: dict[Outcome, tuple[Level, ...]]
    verdict: Verdict
    why: str
    """A sentence without its full stop."""
    ended: str | None
    """Why its line ended, if it did."""


@dataclass(frozen=True)
class SegmentFindings:
    segment: Segment
    points: tuple[Point, ...]
    targets: tuple[TargetSegment, ...]
    judges: tuple[Line, ...]
    """On the first transcripts of the segment, and on the labeled replies."""

    @property
    def baseline(self) -> Point:
        return self.points[0]


@dataclass(frozen=True)
class Event:
    period: str
    kind: EventKind
    subject: str
    """A target or a judge; empty if it is about all."""
    text: str


@dataclass(frozen=True)
class SeriesFindings:
    folder: Path
    series: Series
    segments: tuple[SegmentFindings, ...]
    """Those that were restated by other judges are left out."""
    events: tuple[Event, ...]
    verdict: Verdict
    """The most serious of the targets' verdicts in the last segment."""
    head: str
    """The last chain value of `points.jsonl`: keep it elsewhere."""
    replaced: int
    """Points of earlier judges, which are kept in the file and not shown."""

    @property
    def current(self) -> SegmentFindings | None:
        return self.segments[-1] if self.segments else None

    @property
    def last_period(self) -> str | None:
        return self.current.points[-1].period if self.current else None


def read_findings(folder: Path) -> SeriesFindings:
    """InputError: not a series. IntegrityError: a line of it was changed."""
    return series_findings(folder, read_series(folder), read_lines(folder))


def series_findings(folder: Path, series: Series, lines: SeriesLines) -> SeriesFindings:
    segments = lines.segments
    judging = segments[-1].judging if segments else 0
    shown = [segment for segment in segments if segment.judging == judging]
    numbers = {segment.number for segment in shown}
    points = [point for point in lines.points if point.segment in numbers]
    anchors = _anchor_lines(series, shown, points)
    found = tuple(
        _segment(series, segment, mine, anchors)
        for segment in shown
        if (mine := tuple(point for point in points if point.segment == segment.number))
    )
    verdicts = [target.verdict for target in found[-1].targets] if found else []
    return SeriesFindings(
        folder,
        series,
        found,
        tuple(_events(found, anchors)),
        worst(verdicts),
        lines.head,
        len(lines.points) - len(points),
    )


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    order: tuple[Verdict, ...] = ("drifted", "cannot tell", "no alarm")
    return next((one for one in order if one in verdicts), "no alarm")


def _segment(series: Series, segment: Segment, points: tuple[Point, ...], anchors: Sequence[Line]) -> SegmentFindings:
    frozen = tuple(
        Line(
            "frozen",
            "",
            outcome,
            limit,
            tuple(point.period for point in points),
            tuple(_follow(series, limit, [_plain(point.rejudged.get(outcome, {})) for point in points])),
        )
        for outcome, limit in segment.frozen.items()
    )
    judges = (*frozen, *anchors)
    targets = tuple(
        _target(series, segment, target, points, judges)
        for target in dict.fromkeys(name for point in points for name in point.targets)
    )
    return SegmentFindings(segment, points, targets, judges)


def _follow(series: Series, limit: LineLimit, points: Sequence[Mapping[str, float]]) -> list[Step]:
    return follow(points, design_of(limit, series.floor), limit=limit.limit, level=limit.level)


def _plain(values: Mapping[str, ScenarioValue]) -> dict[str, float]:
    return {name: one.value for name, one in values.items()}


def _anchor_lines(series: Series, segments: Sequence[Segment], points: Sequence[Point]) -> tuple[Line, ...]:
    """The labeled replies do not depend on the plan year, so these lines go on over segments of the same judges."""
    limit = next((segment.anchors for segment in segments if segment.anchors), None)
    checked = [point for point in points if point.anchors]
    if limit is None or not checked:
        return ()
    names = dict.fromkeys(name for point in checked for name in point.anchors)
    return tuple(
        Line(
            "anchors",
            name,
            None,
            limit,
            tuple(point.period for point in checked),
            tuple(
                _follow(
                    series,
                    limit,
                    [
                        {reply: one.right / one.of for reply, one in point.anchors.get(name, {}).items() if one.of}
                        for point in checked
                    ],
                )
            ),
        )
        for name in names
    )


def _target(
    series: Series, segment: Segment, target: str, points: Sequence[Point], judges: Sequence[Line]
) -> TargetSegment:
    mine = [point for point in points if target in point.targets]
    lines = tuple(
        Line(
            "target",
            target,
            outcome,
            limit,
            tuple(point.period for point in mine),
            tuple(_follow(series, limit, [_plain(point.targets[target].values[outcome]) for point in mine])),
        )
        for outcome, limit in segment.targets.items()
    )
    levels = {
        outcome: tuple(Level(point.period, _level(point.targets[target].values[outcome], limit)) for point in mine)
        for outcome, limit in segment.targets.items()
    }
    found, why = _verdict(series, segment, mine, lines, judges)
    ended = next((one.why for point in points for one in point.ended if one.target == target), None)
    return TargetSegment(target, lines, levels, found, why, ended)


def _level(values: Mapping[str, ScenarioValue], limit: LineLimit) -> Bounded:
    units = [Unit(one.value, limit.clusters[name].weight) for name, one in values.items() if name in limit.clusters]
    return bounded_mean(units)


def _verdict(
    series: Series, segment: Segment, points: Sequence[Point], lines: Sequence[Line], judges: Sequence[Line]
) -> tuple[Verdict, str]:
    drifted = [line for line in judges if line.alarm is not None and line.periods[line.alarm] <= points[-1].period]
    reasons = []
    for line in lines:
        if line.alarm is None:
            continue
        doubt = _doubt(line, segment, points, judges, drifted)
        if doubt is None:
            sure = " and the claim holds at any number of looks" if line.claim is not None else ""
            return "drifted", f"{_moved(line)}: the alarm was raised in {line.periods[line.alarm]}{sure}"
        reasons.append(f"{_moved(line)}, but {doubt}")
    if reasons:
        return "cannot tell", reasons[0]
    if drifted:
        line = drifted[0]
        return "cannot tell", f"{judge_name(line)} drifted in {line.periods[line.alarm or 0]}"
    for outcome in segment.targets:
        lost = points[-1].targets[lines[0].name].missing[outcome]
        if lost.of and lost.missing / lost.of >= series.floor:
            return "cannot tell", f"{lost.missing:,} of {lost.of:,} answers are missing in {points[-1].period}"
    if len(points) == 1:
        return "no alarm", f"{points[0].period} is the first point of its segment, so there is nothing to compare yet"
    return "no alarm", f"no alarm in {len(points)} points"


def _moved(line: Line) -> str:
    assert line.alarm is not None
    way = "worse" if line.worse else "better"
    return f"{outcome_name(line.outcome)} became {way} in {line.periods[line.since or 0]}"


def _doubt(
    line: Line, segment: Segment, points: Sequence[Point], judges: Sequence[Line], drifted: Sequence[Line]
) -> str | None:
    """Why an alarm about a target may be about its judges; None if it is not."""
    assert line.alarm is not None
    raised = line.periods[line.alarm]
    for judge in drifted:
        since = judge.periods[judge.since or 0]
        if since <= raised:
            return f"{judge_name(judge)} drifted in {since}"
    point = next(point for point in points if point.period == raised)
    if not point.rejudged and not point.anchors and not _offline(segment):
        return f"the judges were not checked in {raised}"
    share = _by_judges(line, judges)
    if share >= EXPLAINED:
        return f"the judges moved as well, by {share:.0%} of it on transcripts that did not change"
    return None


def _by_judges(line: Line, judges: Sequence[Line]) -> float:
    """What share of a target's move the judges made on unchanged transcripts, in the same direction."""
    assert line.alarm is not None
    same = next((one for one in judges if one.kind == "frozen" and one.outcome == line.outcome), None)
    if same is None:
        return 0.0
    mine = _shift(line, line.alarm, line.since or 0)
    place = next((at for at, period in enumerate(same.periods) if period == line.periods[line.alarm]), None)
    theirs = _shift(same, place, line.since or 0) if place is not None else None
    return max(0.0, theirs / mine) if mine and theirs else 0.0


def _shift(line: Line, alarm: int, since: int) -> float | None:
    """The mean from the change to the alarm, minus the mean before."""
    before = [step.value for step in line.steps[:since] if step.value is not None]
    after = [step.value for step in line.steps[since : alarm + 1] if step.value is not None]
    return sum(after) / len(after) - sum(before) / len(before) if before and after else None


def _offline(segment: Segment) -> bool:
    models = (*segment.verifiers, segment.extractor, segment.scorer, *filter(None, [segment.adjudicator]))
    return all(split_name(model).provider == "offline" for model in models)


def judge_name(line: Line) -> str:
    """The judge, or the judges, of a line."""
    if line.kind == "frozen":
        return "the judging of transcripts that did not change"
    return f"the judge {line.name}" if ":" in line.name else line.name


OUTCOME_NAMES: dict[str, str] = {
    "accurate_complete": "accurate and complete answers",
    "incorrect": "incorrect answers",
    "accuracy": "accuracy",
    "completeness": "completeness",
    "safety_risk": "safety risk",
    "calibration": "calibration",
}


def outcome_name(outcome: Outcome | None) -> str:
    return OUTCOME_NAMES[outcome] if outcome else "labels"


def _events(segments: Sequence[SegmentFindings], anchors: Sequence[Line]) -> list[Event]:
    found = [event for one in segments for event in _segment_events(one)]
    found += [event for line in anchors for event in _line_events(line)]
    found += _served_events(segments)
    order = get_args(EventKind)
    return sorted(found, key=lambda event: (event.period, order.index(event.kind), event.subject))


def _segment_events(one: SegmentFindings) -> Iterator[Event]:
    if one.segment.reasons:
        yield Event(one.baseline.period, "segment", "", "; ".join(one.segment.reasons))
    for point in one.points:
        yield from (Event(point.period, "ended", end.target, end.why) for end in point.ended)
    for before, point in pairwise(one.points):
        if before.facts != point.facts and not point.restated:
            yield Event(point.period, "facts", "", "facts were added to the library, or lost their validity")
    for line in (*(line for target in one.targets for line in target.lines), *one.judges):
        if line.kind != "anchors":
            yield from _line_events(line)


def _line_events(line: Line) -> Iterator[Event]:
    if line.alarm is not None:
        if line.kind == "target":
            yield Event(line.periods[line.alarm], "alarm", line.name, _moved(line))
        else:
            name = judge_name(line)
            since = line.periods[line.since or 0]
            yield Event(line.periods[line.alarm], "judge drifted", line.name, f"{name} drifted in {since}")
    if line.claim is not None and line.kind == "target":
        text = f"that {outcome_name(line.outcome)} changed holds at any number of looks"
        yield Event(line.periods[line.claim], "claim", line.name, text)


def _served_events(segments: Sequence[SegmentFindings]) -> Iterator[Event]:
    """Also across segments: a model that changed in January changed."""
    targets: dict[str, tuple[str, ...]] = {}
    judges: dict[str, tuple[str, ...]] = {}
    for one in segments:
        for point in one.points:
            for kind, known, now in (
                ("served", targets, {name: target.served for name, target in point.targets.items()}),
                ("judge served", judges, dict(point.judges)),
            ):
                for name, ids in now.items():
                    before = known.get(name)
                    if before and ids and before != ids:
                        text = f"served by {', '.join(ids)}, before by {', '.join(before)}"
                        yield Event(point.period, "served" if kind == "served" else "judge served", name, text)
                    known[name] = ids or before or ()
