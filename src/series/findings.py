"""What a series says: every line followed over its points with alarms and claims, verdicts, segments and events.

Targets are compared only within a segment, with the thresholds recorded at its beginning. A change of judge looks like
a change of target, so the judges come first: a verdict on a target is "cannot tell" if its judges drifted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from ..records.model_name import split_name
from ..records.series import LineLimit, Outcome, Point, ScenarioValue, Segment, Series
from ..scoring.definitions import LESS_IS_BETTER, MEASURES
from ..stats.bounded import Bounded, Unit, bounded_mean
from ..stats.monitoring import ChanceVariance, Design, Direction, Step, follow
from .folder import SeriesLines, read_lines, read_series
from .points import design_of

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
    def from_period(self) -> str | None:
        """The period of the first point after the change that the first alarm is about."""
        if self.alarm is None:
            return None
        since = self.steps[self.alarm].since
        return self.periods[self.alarm if since is None else since]

    @property
    def direction(self) -> Direction | None:
        return None if self.alarm is None else _said(self.steps[self.alarm])

    @property
    def sure(self) -> bool:
        """Whether there is a claim in the direction of the alarm."""
        return self.claim is not None and self.steps[self.claim].claim == self.direction

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
        self.series = series
        self._noise: dict[tuple[str, str, Outcome | None], ChanceVariance] = {}

    def line(
        self,
        kind: LineKind,
        name: str,
        outcome: Outcome | None,
        limit: LineLimit,
        points: Mapping[str, Mapping[str, ScenarioValue]],
    ) -> Line:
        """`points`: by period, the value of each scenario or labeled reply.

        A scenario counts as many questions as it had at its first point: some are asked only of some targets.
        """
        weights = {name: float(one.questions) for values in list(points.values())[::-1] for name, one in values.items()}
        design = design_of(limit, self.series.floor)
        clusters = {name: replace(one, weight=weights.get(name, one.weight)) for name, one in design.clusters.items()}
        steps, self._noise[kind, name, outcome] = follow(
            [{name: one.value for name, one in values.items()} for values in points.values()],
            Design(clusters, design.floor),
            limit=limit.limit,
            level=limit.level,
            learned=self._noise.get((kind, name, outcome)),
        )
        return Line(kind, name, outcome, limit, tuple(points), tuple(steps))


def capital(text: str) -> str:
    """With a capital letter at its beginning, and the others as they are."""
    return f"{text[:1].upper()}{text[1:]}"


def outcome_name(outcome: Outcome | None) -> str:
    return MEASURES[outcome].subject if outcome else "labels"


Verdict = Literal["drifted", "cannot tell", "no alarm"]
"""The most serious first."""
EXPLAINED = 0.5
"""If the judges moved by this share of what a target seems to have moved, it may have been the judges."""


class Decided(NamedTuple):
    verdict: Verdict
    why: str
    """A sentence without its full stop."""


def _seriousness(decided: Decided) -> int:
    return get_args(Verdict).index(decided.verdict)


def decide_line(
    series: Series, segment: Segment, points: Sequence[Point], line: Line, judges: Sequence[Line]
) -> Decided:
    drifted = [judge for judge in judges if judge.alarm is not None]
    # A single judge before all of them together, then the earliest.
    drifted.sort(key=lambda one: (one.kind != "anchors" or ":" not in one.name, one.from_period or ""))
    if line.alarm is not None:
        raised = line.periods[line.alarm]
        point = next(point for point in points if point.period == raised)
        doubt = _doubt(line, segment, point, judges, drifted) or _missing(series, line, point)
        if doubt:
            return Decided("cannot tell", f"{moved(line)}, but {doubt}")
        sure = " and the claim holds at any number of looks" if line.sure else ""
        return Decided("drifted", f"{moved(line)}: the alarm was raised in {raised}{sure}")
    if drifted:
        return Decided("cannot tell", judge_drifted(drifted[0]))
    if lost := _missing(series, line, points[-1]):
        return Decided("cannot tell", lost)
    if len(points) == 1:
        text = f"{points[0].period} is the first point of its segment, so there is nothing to compare yet"
        return Decided("no alarm", text)
    return Decided("no alarm", f"no alarm in {len(points)} points")


def _missing(series: Series, line: Line, point: Point) -> str | None:
    """That answers are missing which could hide or make a change, if so many are."""
    assert line.outcome is not None
    lost = point.targets[line.name].missing[line.outcome]
    if not lost.of or lost.missing / lost.of < series.floor:
        return None
    return f"{lost.missing:,} of {lost.of:,} answers are missing in {point.period}"


def moved(line: Line) -> str:
    """What an alarm is about."""
    assert line.alarm is not None
    way = "rose" if line.direction == "up" else "fell"
    return f"{outcome_name(line.outcome)} {way} from {line.from_period} on"


def judge_drifted(line: Line) -> str:
    judge = f"the judge {line.name}" if ":" in line.name else "the panel of judges"
    if line.kind == "frozen":
        judge = f"the judging of unchanged transcripts of {line.name}"
    return f"{judge} drifted from {line.from_period} on"


def _doubt(line: Line, segment: Segment, point: Point, judges: Sequence[Line], drifted: Sequence[Line]) -> str | None:
    """Why an alarm about a target may be about its judges; None if it is not."""
    for judge in drifted:
        if (judge.from_period or "") <= point.period:
            return judge_drifted(judge)
    # A judge checks a point if its own point of that period could be compared with an earlier one.
    checked = {
        at for one in judges for at, step in zip(one.periods, one.steps, strict=True) if step.reference is not None
    }
    models = (*segment.verifiers, segment.extractor, segment.scorer, *filter(None, [segment.adjudicator]))
    offline = all(split_name(model).provider == "offline" for model in models)
    # Points that were restated were judged by one panel, at one time.
    if not point.restated and not offline and point.period not in checked:
        return f"the judges were not checked in {point.period}"
    same = [one for one in judges if (one.kind, one.name, one.outcome) == ("frozen", line.name, line.outcome)]
    mine, theirs = _shift(line, line), _shift(same[0], line) if same else None
    # What share of the target's move the judges made on its unchanged transcripts, in the same direction.
    share = theirs / mine if mine and theirs else 0.0
    if share >= EXPLAINED:
        return f"the judges moved as well, by {share:.0%} of it on transcripts that did not change"
    return None


def _shift(line: Line, alarmed: Line) -> float | None:
    """The mean from the change to the alarm of a line, minus the mean before."""
    since, raised = alarmed.from_period or "", alarmed.periods[alarmed.alarm or 0]
    known = [
        (period, step.value) for period, step in zip(line.periods, line.steps, strict=True) if step.value is not None
    ]
    before = [value for period, value in known if period < since]
    after = [value for period, value in known if since <= period <= raised]
    return sum(after) / len(after) - sum(before) / len(before) if before and after else None


EventKind = Literal["segment", "ended", "facts", "judge served", "judge drifted", "served", "alarm", "claim"]


@dataclass(frozen=True)
class Event:
    period: str
    kind: EventKind
    subject: str
    """A target or a judge; empty if it is about all."""
    text: str
    number: int = 0
    """Its place among the events of the series, in charts and tables."""


@dataclass(frozen=True)
class TargetSegment:
    """One target in one segment."""

    target: str
    points: tuple[Point, ...]
    """Those that have it."""
    lines: tuple[Line, ...]
    """One per outcome."""
    levels: dict[Outcome, tuple[Bounded, ...]]
    """The value of an outcome at each point, with its interval over scenarios."""
    by_line: tuple[Decided, ...]
    """What is decided of each line."""
    ended: str | None
    """Why its line ended, if it did."""

    @property
    def decided(self) -> Decided:
        """Of its most serious line."""
        return min(self.by_line, key=_seriousness)

    @property
    def verdict(self) -> Verdict:
        return self.decided.verdict

    @property
    def why(self) -> str:
        return self.decided.why

    def line(self, outcome: Outcome) -> Line | None:
        return next((line for line in self.lines if line.outcome == outcome), None)


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
    def points(self) -> tuple[Point, ...]:
        return tuple(point for one in self.segments for point in one.points)

    @property
    def by_target(self) -> dict[str, list[TargetSegment]]:
        """Every target, in the order in which they first appear, in each segment that it has points in."""
        found: dict[str, list[TargetSegment]] = {}
        for one in (one for segment in self.segments for one in segment.targets):
            found.setdefault(one.target, []).append(one)
        return found

    @property
    def last_period(self) -> str | None:
        return self.current.points[-1].period if self.current else None


def read_findings(folder: Path) -> SeriesFindings:
    """InputError: not a series. IntegrityError: a line of it was changed."""
    return series_findings(folder, read_series(folder), read_lines(folder))


def series_findings(folder: Path, series: Series, lines: SeriesLines) -> SeriesFindings:
    points, follower = lines.points_of(*lines.shown), Follower(series)
    anchors = _anchor_lines(follower, lines.shown, points)
    found = tuple(
        _segment(segment, mine, anchors, follower) for segment in lines.shown if (mine := lines.points_of(segment))
    )
    last = min((target.decided for target in found[-1].targets), key=_seriousness, default=None) if found else None
    return SeriesFindings(
        folder,
        series,
        found,
        _events(found, anchors),
        last.verdict if last else "no alarm",
        lines.head,
        len(lines.points) - len(points),
    )


def _segment(
    segment: Segment, points: tuple[Point, ...], anchors: Sequence[Line], follower: Follower
) -> SegmentFindings:
    frozen = tuple(
        follower.line(
            "frozen",
            target,
            outcome,
            limit,
            {point.period: point.rejudged.get(target, {}).get(outcome, {}) for point in points},
        )
        for target in points[0].rejudged
        for outcome, limit in segment.frozen.items()
    )
    judges = (*frozen, *anchors)
    targets = tuple(
        _target(segment, target, points, judges, follower)
        for target in dict.fromkeys(name for point in points for name in point.targets)
    )
    return SegmentFindings(segment, points, targets, judges)


def _anchor_lines(follower: Follower, segments: Sequence[Segment], points: Sequence[Point]) -> tuple[Line, ...]:
    """The labeled replies do not depend on the plan year, so these lines go on over segments of the same judges.

    If the labels changed, for example with a release, other lines begin; what the old ones showed stays.
    """
    limit = next((segment.anchors for segment in segments if segment.anchors), None)
    if limit is None:
        return ()
    by_gold: dict[tuple[str | None, str], dict[str, dict[str, ScenarioValue]]] = {}
    for point in points:
        for name, replies in point.anchors.items():
            by_gold.setdefault((point.gold, name), {})[point.period] = {
                reply: ScenarioValue(value=one.right / one.of, questions=int(planned.weight))
                for reply, one in replies.items()
                if one.of and (planned := limit.clusters.get(reply))
            }
    return tuple(follower.line("anchors", name, None, limit, checked) for (_, name), checked in by_gold.items())


def _target(
    segment: Segment, target: str, points: Sequence[Point], judges: Sequence[Line], follower: Follower
) -> TargetSegment:
    ended = next((one.why for point in points for one in point.ended if one.target == target), None)
    mine = tuple(point for point in points if target in point.targets)
    values = {
        outcome: {point.period: point.targets[target].values[outcome] for point in mine} for outcome in segment.targets
    }
    lines = tuple(
        follower.line("target", target, outcome, limit, values[outcome]) for outcome, limit in segment.targets.items()
    )
    # As in the report of the run: every question has the same weight, and scenarios are the independent units.
    levels = {
        outcome: tuple(bounded_mean([Unit(one.value, one.questions) for one in at.values()]) for at in known.values())
        for outcome, known in values.items()
    }
    each = tuple(decide_line(follower.series, segment, mine, line, judges) for line in lines)
    return TargetSegment(target, mine, lines, levels, each, ended)


def _events(segments: Sequence[SegmentFindings], anchors: Sequence[Line]) -> tuple[Event, ...]:
    found = [event for one in segments for event in _segment_events(one)]
    found += [event for line in anchors for event in _line_events(line)]
    found += _served_events(segments)
    order = get_args(EventKind)
    found.sort(key=lambda event: (event.period, order.index(event.kind), event.subject))
    return tuple(replace(event, number=number) for number, event in enumerate(found, 1))


def _segment_events(one: SegmentFindings) -> Iterator[Event]:
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


def _served_events(segments: Sequence[SegmentFindings]) -> Iterator[Event]:
    """Also across segments: a model that changed in January changed."""
    known: dict[tuple[EventKind, str], tuple[str, ...]] = {}
    for point in (point for one in segments for point in one.points):
        now: dict[tuple[EventKind, str], tuple[str, ...]] = {
            ("judge served", name): ids for name, ids in point.judges.items()
        }
        now |= {("served", name): target.served for name, target in point.targets.items()}
        for (kind, name), ids in now.items():
            before = known.get((kind, name), ())
            if before and ids and before != ids:
                yield Event(point.period, kind, name, f"served by {', '.join(ids)}, before by {', '.join(before)}")
            known[kind, name] = ids or before
