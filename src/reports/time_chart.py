"""Charts over time: one panel per outcome, the band outside of which an alarm is raised, and numbered events.

The line, the band and the mean are broken where a new segment begins, because points of different segments are not
compared. An alarm is a diamond, other points are circles. The scale of the one panel is time, and its rows are
outcomes, which have scales of their own. Wide and narrow forms differ only in their sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

from .drawing import (
    BLUE,
    BOLD,
    DASHED,
    FAINT,
    HALO,
    NARROW,
    PAPER,
    SMALL,
    VERMILLION,
    WIDE,
    Drawing,
    Group,
    Panel,
    Scale,
    Size,
    Tick,
    drawn,
    line,
    point,
    px,
    shape,
    squeezed,
    text,
)  # fmt: skip

EventLook = Literal["segment", "alarm", "other"]
RADIUS, BADGE = 4.5, 15
"""Sizes of a point and of an event's number."""
_APART = 17
"""Least distance of two numbers on one line."""
_BAND = 'class="band" fill="#7a7a7a" fill-opacity="0.18" stroke="none"'
_EDGE = ' stroke-opacity="0.35" stroke-width="0.8"'
_EVENT_LINES: dict[EventLook, str] = {
    "segment": ' stroke-width="1.2"',
    "alarm": ' stroke-dasharray="6 3" stroke-opacity="0.6"',
    "other": ' stroke-dasharray="1.5 3" stroke-opacity="0.6"',
}


@dataclass(frozen=True, slots=True)
class TimePoint:
    """A value at one time."""

    at: float
    """On the scale of time, see `TimeChart.ticks`."""
    value: float | None
    low: float | None
    high: float | None
    text: str
    """When and how much, for readers who do not see the chart."""
    mean: float | None = None
    """Of the points before it."""
    band_low: float | None = None
    band_high: float | None = None
    """A value outside of these raises an alarm."""
    alarm: bool = False
    """Whether the alarm was raised here."""


@dataclass(frozen=True, slots=True)
class TimePanel:
    label: str
    ticks: tuple[Tick, ...]
    """Of the values; the first and the last are the ends of the scale."""
    parts: tuple[tuple[TimePoint, ...], ...]
    """One for each segment. They are not joined."""


@dataclass(frozen=True, slots=True)
class TimeEvent:
    number: int
    at: float
    look: EventLook = "other"


@dataclass(frozen=True, slots=True)
class TimeChart:
    name: str
    title: str
    panels: tuple[TimePanel, ...]
    """Of the same times."""
    ticks: tuple[Tick, ...]
    """Every time that has a point; as many get a label as there is room for."""
    events: tuple[TimeEvent, ...] = ()

    @property
    def description(self) -> str:
        return " ".join(
            f"{panel.label}: {'. New segment: '.join('; '.join(p.text for p in part) for part in panel.parts)}."
            for panel in self.panels
        )


def drawn_time(chart: TimeChart, narrow: bool) -> Drawing:
    size = Size(NARROW, 162, 38, 12, above=BOLD + HALO) if narrow else Size(WIDE, 182, 46, 18, above=BOLD + HALO)
    ends = (chart.ticks[0].at - 0.5, chart.ticks[-1].at + 0.5)
    panel = Panel("", chart.ticks, ends=ends)
    across = panel.scale(size.names, size.width - size.values)
    key, start = _key(size.width)
    badges = _badges(chart.events, across, start)
    y = max((badge.top + BADGE + 3 for badge in badges), default=start)
    made = drawn([panel], [Group("", chart.panels)], size, partial(_panel, size.row - 32), y)
    foot = made.height - 34
    marks = [line(one.x, one.top + BADGE, one.x, foot, _EVENT_LINES[one.event.look]) for one in badges]
    marks += [element for badge in badges for element in _badge(badge)]
    named = text(0, 14, squeezed(chart.title, size.width // 9), extra=BOLD)
    return made._replace(elements=[named, *key, *marks, *made.elements])


_KEY = (
    ("value with its 95% interval", 186), ("band: outside is an alarm", 170), ("mean of the points before", 186),
    ("alarm raised", 110),
)  # fmt: skip
"""Parts of the key, with their widths."""


def _key(width: int) -> tuple[list[str], float]:
    """The key, in as many lines as it takes, and where it ends."""
    elements: list[str] = []
    x, y = 0.0, 36.0
    for place, (name, room) in enumerate(_KEY):
        if x + room > width:
            x, y = 0.0, y + 20
        samples = (
            point(x + 8, y, "ai", (x + 8, y - 7, x + 8, y + 7), RADIUS), _band(x, x + 16, y - 6, y + 6),
            [line(x, y, x + 18, y, DASHED)], point(x + 8, y, "people"),
        )  # fmt: skip
        elements += [*samples[place], text(x + 23, y + 4, name, extra=SMALL)]
        x += room
    return elements, y + 12


class _Badge(NamedTuple):
    """Where the number of an event is."""

    event: TimeEvent
    x: float
    top: float


def _badges(events: Sequence[TimeEvent], across: Scale, start: float) -> list[_Badge]:
    """Numbers that are close to each other are below each other. A segment begins before its first point."""
    ends: list[float] = []
    found = []
    places = [(across.at(event.at - 0.5 * (event.look == "segment")), event) for event in events]
    for x, event in sorted(places, key=lambda one: (one[0], one[1].number)):
        row = next((row for row, end in enumerate(ends) if end + _APART <= x), len(ends))
        ends[row : row + 1] = [x]
        found.append(_Badge(event, x, start + (BADGE + 3) * row))
    return found


def _badge(badge: _Badge) -> Iterator[str]:
    """The number of an event: a square for a new segment, a filled circle for an alarm or a claim."""
    event, x, top = badge
    strong = event.look == "alarm"
    look = f'class="people" fill="{VERMILLION}"' if strong else f'class="badge" fill="{PAPER}" stroke="currentColor"'
    if event.look == "segment":
        yield shape("rect", look, x=x - BADGE / 2, y=top, width=BADGE, height=BADGE)
    else:
        yield shape("circle", look, cx=x, cy=top + BADGE / 2, r=BADGE / 2)
    ink = f'class="onmark" fill="{PAPER}"' if strong else 'fill="currentColor"'
    place = f'x="{px(x)}" y="{px(top + BADGE / 2 + 3.5)}" text-anchor="middle"'
    yield f'<text {place} font-size="10" font-weight="bold" {ink}>{event.number}</text>'


def _panel(tall: int, panel: TimePanel, _: int, across: Scale, middle: float) -> Iterator[str]:
    up = Scale(panel.ticks[0].at, panel.ticks[-1].at, middle + tall / 2, middle - tall / 2)
    for tick in panel.ticks:
        y = up.at(tick.at)
        yield line(across.start, y, across.end, y, FAINT)
        yield text(across.start - 6, y + 4, tick.text, anchor="end", extra=SMALL)
    for part in panel.parts:
        yield from _part(part, across, up)


def _part(part: Sequence[TimePoint], across: Scale, up: Scale) -> Iterator[str]:
    """A band and a mean are as wide as the time that they are for."""
    known = [(across.at(one.at), up.at(one.value), one) for one in part if one.value is not None]
    for one in part:
        if one.band_low is not None and one.band_high is not None and one.band_low < one.band_high:
            sides = across.at(one.at - 0.5), across.at(one.at + 0.5)
            yield from _band(*sides, up.at(one.band_high), up.at(one.band_low))
    if means := [(one.at, one.mean) for one in part if one.mean is not None]:
        steps = "V".join(f"{px(up.at(mean))}H{px(across.at(at + 0.5))}" for at, mean in means)
        yield f'<path d="M{px(across.at(means[0][0] - 0.5))} {steps}" fill="none" stroke="currentColor"{DASHED}/>'
    if len(known) > 1:
        path = "L".join(f"{px(x)} {px(y)}" for x, y, _ in known)
        yield f'<path d="M{path}" class="reach ai" fill="none" stroke="{BLUE}" stroke-width="1.5"/>'
    for x, y, one in known:
        ends = () if one.low is None or one.high is None else (x, up.at(one.high), x, up.at(one.low))
        yield from point(x, y, "people" if one.alarm else "ai", ends, RADIUS)


def _band(left: float, right: float, top: float, bottom: float) -> Iterator[str]:
    yield shape("rect", _BAND, x=left, y=top, width=right - left, height=bottom - top)
    yield from (line(left, edge, right, edge, _EDGE) for edge in (top, bottom))
