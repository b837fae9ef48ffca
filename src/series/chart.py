"""One chart per target of a series: a panel per outcome, a part per segment, and the events that concern it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from math import ceil, floor

from ..records.series import Outcome
from ..reports.document import Cell, ChartBlock, number_cell, share_cell, shown
from ..reports.drawing import Tick
from ..reports.links import slug
from ..reports.time_chart import EventLook, TimeChart, TimeEvent, TimePanel, TimePoint
from ..scoring.definitions import SHARES
from ..stats.bounded import Bounded
from ..text.rounded import percent, rounded
from .findings import Event, EventKind, Line, SeriesFindings, TargetSegment, outcome_name

KINDS: dict[EventKind, str] = {
    "segment": "new segment",
    "served": "target served by another model",
    "judge served": "judge served by another model",
    "alarm": "alarm",
    "claim": "claim",
    "judge drifted": "judges drifted",
    "ended": "line ended",
    "facts": "other facts in the library",
}
_LOOKS: dict[EventKind, EventLook] = {"segment": "segment", "alarm": "alarm", "claim": "alarm"}
_STEPS = (0.02, 0.05, 0.1, 0.2, 0.25)
_MOST_TICKS = 6
CAPTION = (
    "Dots are values at each point; lines through them are 95% intervals over scenarios. A value outside of the gray "
    "band raises an alarm. The band is narrower if points before it moved the same way, and ends with the alarm. "
    "Numbers are events, explained in the table below. Scales need not begin at 0."
)


def events_of(found: SeriesFindings, target: str) -> list[Event]:
    """Those about this target, about the judges, and about all."""
    judges = ("judge served", "judge drifted")
    return [event for event in found.events if event.kind in judges or event.subject in ("", target)]


def value_cell(outcome: str | None, share: Bounded) -> Cell:
    """`62% (54–70%)` for a share of questions, `0.62 (0.54–0.70)` for a score."""
    return share_cell(share) if outcome in SHARES else number_cell(share.value, share.low, share.high)


def plain_value(outcome: str | None, value: float | None) -> str:
    """The same without an interval."""
    return "–" if value is None else f"{percent(value)}%" if outcome in SHARES else rounded(value)


def capital(text: str) -> str:
    """With a capital letter at its beginning, and the others as they are."""
    return f"{text[:1].upper()}{text[1:]}"


def panel_title(outcome: Outcome) -> str:
    return f"{capital(outcome_name(outcome))}{', of 100' if outcome in SHARES else ''}"


def chart_of(found: SeriesFindings, target: str, place: int, events: Sequence[Event]) -> ChartBlock:
    """The chart of a target; `place` is its number on the page."""
    parts = found.by_target[target]
    periods = sorted({period for one in parts for period in one.lines[0].periods})
    outcomes = list(dict.fromkeys(outcome for one in parts for outcome in one.levels))
    times = _times([*periods, *(event.period for event in events)])
    panels = tuple(_panel(outcome, parts, times) for outcome in outcomes)
    chart = TimeChart(
        f"series-{place}-{slug(target)}",
        f"Chart {place}: {target} over time",
        panels,
        tuple(Tick(times[period], period) for period in sorted(times)),
        tuple(TimeEvent(event.number, times[event.period], _LOOKS.get(event.kind, "other")) for event in events),
    )
    return ChartBlock(chart, CAPTION)


def _panel(outcome: Outcome, parts: Sequence[TargetSegment], times: dict[str, float]) -> TimePanel:
    drawn = tuple(
        tuple(_points(line, one.levels[outcome], times)) for one in parts if (line := one.line(outcome)) and line.steps
    )
    return TimePanel(panel_title(outcome), tuple(_scale(outcome, drawn)), drawn)


def _points(line: Line, levels: Sequence[Bounded], times: dict[str, float]) -> Iterator[TimePoint]:
    for place, (period, level, step) in enumerate(zip(line.periods, levels, line.steps, strict=True)):
        low, high = band(line, place)
        raised = line.alarm == place
        told = f"{period} {shown(value_cell(line.outcome, level))}{', alarm' if raised else ''}"
        yield TimePoint(times[period], level.value, level.low, level.high, told, step.reference, low, high, raised)


def band(line: Line, place: int) -> tuple[float | None, float | None]:
    """The values that raise no alarm; none at the first point, and none once an alarm was raised."""
    step = line.steps[place]
    return (None, None) if line.alarm is not None and place > line.alarm else (step.low, step.high)


def _scale(outcome: Outcome, parts: Sequence[Sequence[TimePoint]]) -> Iterator[Tick]:
    """Round numbers around all values, their intervals, and the last band of each segment."""
    ends = [end for part in parts for point in part for end in (point.value, point.low, point.high) if end is not None]
    for part in parts:
        bands = [(one.band_low, one.band_high) for one in part if one.band_low is not None]
        ends += [end for end in (bands[-1] if bands else ()) if end is not None]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    step = next((one for one in _STEPS if (high - low) / one <= _MOST_TICKS - 1), _STEPS[-1])
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    last = max(last, first + 2)
    if last * step > 1:
        first, last = min(first, round(1 / step) - 2), round(1 / step)
    for number in range(max(0, first), last + 1):
        at = number * step
        yield Tick(at, percent(at) if outcome in SHARES else rounded(at))


def _times(periods: Iterable[str]) -> dict[str, float]:
    """Where periods are on the scale of time: as far apart as they are, or in order if they are of several kinds."""
    known = sorted(set(periods))
    try:
        if len({(len(period), period[5:6].isdigit()) for period in known}) == 1:
            return {period: _number(period) for period in known}
    except ValueError:  # no such day or week
        pass
    return {period: float(place) for place, period in enumerate(known)}


def _number(period: str) -> float:
    """2026-11-18, 2026-W47, 2026-11 or 2026-Q4 as a number of days, weeks, months or quarters."""
    year, part = int(period[:4]), period[5:]
    if part.startswith("Q"):
        return year * 4.0 + int(part[1:])
    if part.startswith("W"):
        return float(date.fromisocalendar(year, int(part[1:]), 1).toordinal() // 7)
    if "-" in part:
        return float(date.fromisoformat(period).toordinal())
    return year * 12.0 + int(part)
