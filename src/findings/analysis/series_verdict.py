"""The verdict on a target of a series. A change of judge looks like a change of target, so the judges come first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from ...records.model_name import split_name
from ...records.series import Point, Segment, Series
from .series_line import Line, judge_name, outcome_name

Verdict = Literal["drifted", "cannot tell", "no alarm"]
EXPLAINED = 0.5
"""If the judges moved by this share of what a target seems to have moved, it may have been the judges."""


class Decided(NamedTuple):
    verdict: Verdict
    why: str
    """A sentence without its full stop."""


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    order: tuple[Verdict, ...] = ("drifted", "cannot tell", "no alarm")
    return next((one for one in order if one in verdicts), "no alarm")


def most_serious(decided: Sequence[Decided]) -> Decided:
    """The verdict on a target is that of its most serious line."""
    found = worst([one.verdict for one in decided])
    return next(one for one in decided if one.verdict == found)


def decide_line(
    series: Series, segment: Segment, points: Sequence[Point], line: Line, judges: Sequence[Line]
) -> Decided:
    drifted = sorted((judge for judge in judges if judge.alarm is not None), key=_named_first)
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
    return f"{judge_name(line)} drifted from {line.from_period} on"


def _named_first(line: Line) -> tuple[bool, str]:
    """A single judge before all of them together, then the earliest."""
    return line.kind != "anchors" or ":" not in line.name, line.from_period or ""


def _doubt(line: Line, segment: Segment, point: Point, judges: Sequence[Line], drifted: Sequence[Line]) -> str | None:
    """Why an alarm about a target may be about its judges; None if it is not."""
    for judge in drifted:
        if (judge.from_period or "") <= point.period:
            return judge_drifted(judge)
    # Points that were restated were judged by one panel, at one time.
    if not point.restated and not _offline(segment) and not any(_compared(judge, point.period) for judge in judges):
        return f"the judges were not checked in {point.period}"
    share = _by_judges(line, judges)
    if share >= EXPLAINED:
        return f"the judges moved as well, by {share:.0%} of it on transcripts that did not change"
    return None


def _compared(line: Line, period: str) -> bool:
    """Whether a judge's point of this period could be compared with an earlier one."""
    place = line.place(period)
    return place is not None and line.steps[place].reference is not None


def _by_judges(line: Line, judges: Sequence[Line]) -> float:
    """What share of a target's move the judges made on its unchanged transcripts, in the same direction."""
    same = [one for one in judges if (one.kind, one.name, one.outcome) == ("frozen", line.name, line.outcome)]
    mine = _shift(line, line)
    theirs = _shift(same[0], line) if same else None
    return max(0.0, theirs / mine) if mine and theirs else 0.0


def _shift(line: Line, alarmed: Line) -> float | None:
    """The mean from the change to the alarm of a line, minus the mean before."""
    since, raised = alarmed.from_period or "", alarmed.periods[alarmed.alarm or 0]
    known = [
        (period, step.value) for period, step in zip(line.periods, line.steps, strict=True) if step.value is not None
    ]
    before = [value for period, value in known if period < since]
    after = [value for period, value in known if since <= period <= raised]
    return sum(after) / len(after) - sum(before) / len(before) if before and after else None


def _offline(segment: Segment) -> bool:
    models = (*segment.verifiers, segment.extractor, segment.scorer, *filter(None, [segment.adjudicator]))
    return all(split_name(model).provider == "offline" for model in models)
