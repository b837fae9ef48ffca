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


def decide(
    series: Series, segment: Segment, points: Sequence[Point], lines: Sequence[Line], judges: Sequence[Line]
) -> Decided:
    drifted = sorted((line for line in judges if line.alarm is not None), key=_named_first)
    reasons = []
    for line in lines:
        if line.alarm is None:
            continue
        doubt = _doubt(line, segment, points, judges, drifted)
        if doubt is None:
            sure = " and the claim holds at any number of looks" if line.claim is not None else ""
            return Decided("drifted", f"{moved(line)}: the alarm was raised in {line.periods[line.alarm]}{sure}")
        reasons.append(f"{moved(line)}, but {doubt}")
    if reasons:
        return Decided("cannot tell", reasons[0])
    if drifted:
        return Decided("cannot tell", judge_drifted(drifted[0]))
    for outcome in segment.targets:
        lost = points[-1].targets[lines[0].name].missing[outcome]
        if lost.of and lost.missing / lost.of >= series.floor:
            return Decided("cannot tell", f"{lost.missing:,} of {lost.of:,} answers are missing in {points[-1].period}")
    if len(points) == 1:
        return Decided(
            "no alarm", f"{points[0].period} is the first point of its segment, so there is nothing to compare yet"
        )
    return Decided("no alarm", f"no alarm in {len(points)} points")


def moved(line: Line) -> str:
    """What an alarm is about."""
    assert line.alarm is not None
    way = "rose" if line.direction == "up" else "fell"
    return f"{outcome_name(line.outcome)} {way} from {line.from_period} on"


def judge_drifted(line: Line) -> str:
    return f"{judge_name(line)} drifted from {line.from_period} on"


def _named_first(line: Line) -> tuple[bool, str]:
    """A single judge before all of them together, then the earliest."""
    return ":" not in line.name, line.from_period or ""


def _doubt(
    line: Line, segment: Segment, points: Sequence[Point], judges: Sequence[Line], drifted: Sequence[Line]
) -> str | None:
    """Why an alarm about a target may be about its judges; None if it is not."""
    assert line.alarm is not None
    raised = line.periods[line.alarm]
    for judge in drifted:
        if (judge.from_period or "") <= raised:
            return judge_drifted(judge)
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
