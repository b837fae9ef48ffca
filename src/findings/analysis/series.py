"""What a series says: alarms and claims of every line, the judges apart from the targets, segments and events.

Targets are compared only within a segment, with the thresholds recorded at its beginning. A verdict on a target is
"cannot tell" if its judges drifted, because a change of judge looks like a change of target.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal, Protocol, get_args

from ...records.series import Outcome, Point, ScenarioValue, Segment, Series
from ...stats.bounded import Bounded, Unit, bounded_mean
from ...store.series_folder import SeriesLines, read_lines, read_series
from .series_line import Follower, Line, Values, judge_name, outcome_name
from .series_verdict import Decided, Verdict, decide_line, judge_drifted, most_serious, moved, worst

EventKind = Literal["segment", "ended", "facts", "judge served", "judge drifted", "served", "alarm", "claim"]


class TargetLines(Protocol):
    @property
    def lines(self) -> tuple[Line, ...]: ...


class SegmentLines(Protocol):
    """A segment with its points and its lines."""

    @property
    def segment(self) -> Segment: ...

    @property
    def points(self) -> tuple[Point, ...]: ...

    @property
    def targets(self) -> Sequence[TargetLines]: ...

    @property
    def judges(self) -> tuple[Line, ...]: ...


@dataclass(frozen=True)
class Event:
    period: str
    kind: EventKind
    subject: str
    """A target or a judge; empty if it is about all."""
    text: str


def events_of(segments: Sequence[SegmentLines], anchors: Sequence[Line]) -> list[Event]:
    found = [event for one in segments for event in _segment_events(one)]
    found += [event for line in anchors for event in _line_events(line)]
    found += _served_events(segments)
    order = get_args(EventKind)
    return sorted(found, key=lambda event: (event.period, order.index(event.kind), event.subject))


def _segment_events(one: SegmentLines) -> Iterator[Event]:
    if one.segment.reasons:
        yield Event(one.points[0].period, "segment", "", "; ".join(one.segment.reasons))
    for point in one.points:
        yield from (Event(point.period, "ended", end.target, end.why) for end in point.ended)
    for before, point in pairwise(one.points):
        if before.facts != point.facts and not point.restated:
            yield Event(point.period, "facts", "", "the library has other facts, because of their dates or of an edit")
    for line in (*(line for target in one.targets for line in target.lines), *one.judges):
        if line.kind != "anchors":
            yield from _line_events(line)


def _line_events(line: Line) -> Iterator[Event]:
    if line.alarm is not None:
        if line.kind == "target":
            yield Event(line.periods[line.alarm], "alarm", line.name, moved(line))
        else:
            yield Event(line.periods[line.alarm], "judge drifted", line.name, judge_drifted(line))
    if line.claim is not None and line.kind == "target":
        text = f"that {outcome_name(line.outcome)} changed holds at any number of looks"
        yield Event(line.periods[line.claim], "claim", line.name, text)


def _served_events(segments: Sequence[SegmentLines]) -> Iterator[Event]:
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


__all__ = [
    "Event", "EventKind", "Level", "Line", "SegmentFindings", "SeriesFindings", "TargetSegment",
    "Verdict", "judge_name", "outcome_name", "read_findings", "series_findings",
]  # fmt: skip


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
    by_line: tuple[Decided, ...]
    """What is decided of each line."""
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
    follower = Follower(series)
    anchors = _anchor_lines(follower, shown, points)
    found = tuple(
        _segment(series, segment, mine, anchors, follower)
        for segment in shown
        if (mine := tuple(point for point in points if point.segment == segment.number))
    )
    verdicts = [target.verdict for target in found[-1].targets] if found else []
    return SeriesFindings(
        folder,
        series,
        found,
        tuple(events_of(found, anchors)),
        worst(verdicts),
        lines.head,
        len(lines.points) - len(points),
    )


def _segment(
    series: Series, segment: Segment, points: tuple[Point, ...], anchors: Sequence[Line], follower: Follower
) -> SegmentFindings:
    frozen = tuple(
        follower.line(
            "frozen",
            target,
            outcome,
            limit,
            [Values.of(point.period, again(point, target, outcome)) for point in points],
        )
        for target in points[0].rejudged
        for outcome, limit in segment.frozen.items()
    )
    judges = (*frozen, *anchors)
    targets = tuple(
        _target(series, segment, _of_target(target, points), judges, follower)
        for target in dict.fromkeys(name for point in points for name in point.targets)
    )
    return SegmentFindings(segment, points, targets, judges)


def again(point: Point, target: str, outcome: Outcome) -> Mapping[str, ScenarioValue]:
    """What a target's first transcripts were judged at a point."""
    return point.rejudged.get(target, {}).get(outcome, {})


def _anchor_lines(follower: Follower, segments: Sequence[Segment], points: Sequence[Point]) -> tuple[Line, ...]:
    """The labeled replies do not depend on the plan year, so these lines go on over segments of the same judges.

    If the labels changed, for example with a release, other lines begin; what the old ones showed stays.
    """
    limit = next((segment.anchors for segment in segments if segment.anchors), None)
    if limit is None:
        return ()
    by_gold: dict[tuple[str | None, str], list[Point]] = {}
    for point in points:
        for name in point.anchors:
            by_gold.setdefault((point.gold, name), []).append(point)
    return tuple(
        follower.line("anchors", name, None, limit, [Values(point.period, _right(point, name)) for point in checked])
        for (_, name), checked in by_gold.items()
    )


def _right(point: Point, judge: str) -> dict[str, float]:
    """The share of right labels by reply."""
    return {reply: one.right / one.of for reply, one in point.anchors.get(judge, {}).items() if one.of}


@dataclass(frozen=True)
class _TargetPoints:
    target: str
    points: tuple[Point, ...]
    """Those that have it."""
    ended: str | None


def _of_target(target: str, points: Sequence[Point]) -> _TargetPoints:
    ended = next((one.why for point in points for one in point.ended if one.target == target), None)
    return _TargetPoints(target, tuple(point for point in points if target in point.targets), ended)


def _target(
    series: Series, segment: Segment, of: _TargetPoints, judges: Sequence[Line], follower: Follower
) -> TargetSegment:
    target, mine = of.target, of.points
    lines = tuple(
        follower.line(
            "target",
            target,
            outcome,
            limit,
            [Values.of(point.period, point.targets[target].values[outcome]) for point in mine],
        )
        for outcome, limit in segment.targets.items()
    )
    levels = {
        outcome: tuple(Level(point.period, _level(point.targets[target].values[outcome])) for point in mine)
        for outcome in segment.targets
    }
    each = tuple(decide_line(series, segment, mine, line, judges) for line in lines)
    decided = most_serious(each)
    return TargetSegment(target, lines, levels, each, decided.verdict, decided.why, of.ended)


def _level(values: Mapping[str, ScenarioValue]) -> Bounded:
    """As in the report of the run: every question has the same weight, and scenarios are the independent units."""
    return bounded_mean([Unit(one.value, one.questions) for one in values.values()])
