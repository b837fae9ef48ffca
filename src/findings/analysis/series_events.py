"""What happened in a series, in order: segments, alarms, claims, judges that drifted, other models served."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, Protocol, get_args

from ...records.series import Point, Segment
from .series_line import Line, outcome_name
from .series_verdict import judge_drifted, moved

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
