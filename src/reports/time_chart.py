"""Charts over time: one panel per outcome, the band outside of which an alarm is raised, and numbered events.

The line, the band and the mean are broken where a new segment begins, because points of different segments are not
compared. An alarm is a diamond, other points are circles. Wide and narrow forms differ only in their sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from .forest import BLUE, BOLD, NARROW, PAPER, SMALL, VERMILLION, WIDE, Drawing, Tick, line, px, squeezed, text

EventLook = Literal["segment", "alarm", "other"]
TITLE = 24
BADGE = 15
"""Heights of the title and of an event's number."""
_APART = 17
"""Least distance of two numbers on one line."""
_BAND = 'class="band" fill="#7a7a7a" fill-opacity="0.18" stroke="none"'
_EDGE = ' stroke-opacity="0.35" stroke-width="0.8"'
_HALO = f' class="halo" stroke="{PAPER}" stroke-width="4" paint-order="stroke"'
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
    title: str
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
            f"{panel.title}: {'. New segment: '.join('; '.join(p.text for p in part) for part in panel.parts)}."
            for panel in self.panels
        )


@dataclass(frozen=True, slots=True)
class _Size:
    width: int
    left: int
    right: int
    tall: int
    """Height of a panel."""
    label: int
    """Room for the label of a time."""
    key: int
    """Parts of the key on a line."""


_WIDE = _Size(WIDE, 46, WIDE - 18, 150, 62, 4)
_NARROW = _Size(NARROW, 38, NARROW - 12, 130, 58, 2)


@dataclass(frozen=True, slots=True)
class _Plot:
    """Where times and values are on the drawing."""

    left: float
    right: float
    first: float
    half: float
    """Half of the distance of two points that follow on each other."""
    top: float = 0.0
    bottom: float = 1.0
    low: float = 0.0
    high: float = 1.0

    def x(self, at: float) -> float:
        return self.left + self.half * (1 + 2 * (at - self.first))

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.bottom - (self.bottom - self.top) * min(1.0, max(0.0, share))


def drawn_wide_time(chart: TimeChart) -> Drawing:
    return _drawn(chart, _WIDE)


def drawn_narrow_time(chart: TimeChart) -> Drawing:
    return _drawn(chart, _NARROW)


def _drawn(chart: TimeChart, size: _Size) -> Drawing:
    times = [tick.at for tick in chart.ticks]
    half = (size.right - size.left) / (2 * (times[-1] - times[0] + 1))
    across = _Plot(size.left, size.right, times[0], half)
    badges = _badges(chart.events, across)
    start = TITLE + 20.0 * -(-len(_KEY) // size.key) + 4
    y = start + (BADGE + 3) * (1 + max((badge.row for badge in badges), default=-1))
    elements: list[str] = []
    foot = y
    for panel in chart.panels:
        top, foot = y + 28, y + 28 + size.tall
        plot = replace(across, top=top, bottom=foot, low=panel.ticks[0].at, high=panel.ticks[-1].at)
        elements.append(text(0, y + 18, panel.title, extra=f"{BOLD}{_HALO}"))
        elements += _scale(plot, panel)
        for part in panel.parts:
            elements += _part(plot, part)
        y = foot + 12
    elements += _times(chart.ticks, across, foot, size)
    marks = [element for badge in badges for element in _event_line(badge, start, foot)]
    marks += [element for badge in badges for element in _badge(badge, start)]
    named = text(0, 14, squeezed(chart.title, size.width // 9), extra=BOLD)
    return Drawing([named, *_key(size), *marks, *elements], int(foot + 26), size.width, 0)


@dataclass(frozen=True, slots=True)
class _KeyPart:
    name: str
    width: int


_KEY = (
    _KeyPart("value with its 95% interval", 200),
    _KeyPart("band: outside is an alarm", 190),
    _KeyPart("mean of the points before", 195),
    _KeyPart("alarm raised", 110),
)


def _key(size: _Size) -> Iterator[str]:
    x, y = 0.0, TITLE + 12.0
    for place, part in enumerate(_KEY):
        if place and place % size.key == 0:
            x, y = 0.0, y + 20
        if place == 0:
            yield from _dot(x + 8, y, y - 7, y + 7, alarm=False)
        elif place == 1:
            yield f'<rect x="{px(x)}" y="{px(y - 6)}" width="16" height="12" {_BAND}/>'
            yield from (line(x, edge, x + 16, edge, _EDGE) for edge in (y - 6, y + 6))
        elif place == 2:
            yield line(x, y, x + 18, y, ' stroke-dasharray="4 3"')
        else:
            yield from _dot(x + 8, y, None, None, alarm=True)
        yield text(x + 23, y + 4, part.name, extra=SMALL)
        x += part.width if size.key > 2 else size.width / 2 + (8 if place % 2 == 0 else 0)


@dataclass(frozen=True, slots=True)
class _Badge:
    """Where the number of an event is."""

    event: TimeEvent
    x: float
    row: int


def _badges(events: Sequence[TimeEvent], plot: _Plot) -> list[_Badge]:
    """Numbers that are close to each other are below each other. A segment begins before its first point."""
    ends: list[float] = []
    found = []
    places = [(plot.x(event.at) - plot.half * (event.look == "segment"), event) for event in events]
    for x, event in sorted(places, key=lambda one: (one[0], one[1].number)):
        row = next((row for row, end in enumerate(ends) if end + _APART <= x), len(ends))
        ends[row : row + 1] = [x]
        found.append(_Badge(event, x, row))
    return found


def _event_line(badge: _Badge, start: float, foot: float) -> Iterator[str]:
    yield line(badge.x, start + (BADGE + 3) * badge.row + BADGE, badge.x, foot, _EVENT_LINES[badge.event.look])


def _badge(badge: _Badge, start: float) -> Iterator[str]:
    """The number of an event: a square for a new segment, a filled circle for an alarm or a claim."""
    event, x, top = badge.event, badge.x, start + (BADGE + 3) * badge.row
    strong = event.look == "alarm"
    look = f'class="people" fill="{VERMILLION}"' if strong else f'class="badge" fill="{PAPER}" stroke="currentColor"'
    if event.look == "segment":
        yield f'<rect x="{px(x - BADGE / 2)}" y="{px(top)}" width="{BADGE}" height="{BADGE}" {look}/>'
    else:
        yield f'<circle cx="{px(x)}" cy="{px(top + BADGE / 2)}" r="{px(BADGE / 2)}" {look}/>'
    ink = f'class="onmark" fill="{PAPER}"' if strong else 'fill="currentColor"'
    place = f'x="{px(x)}" y="{px(top + BADGE / 2 + 3.5)}" text-anchor="middle"'
    yield f'<text {place} font-size="10" font-weight="bold" {ink}>{event.number}</text>'


def _scale(plot: _Plot, panel: TimePanel) -> Iterator[str]:
    for tick in panel.ticks:
        y = plot.y(tick.at)
        yield line(plot.left, y, plot.right, y, ' stroke-opacity="0.15"')
        yield text(plot.left - 6, y + 4, tick.text, anchor="end", extra=SMALL)


def _times(ticks: Sequence[Tick], plot: _Plot, foot: float, size: _Size) -> Iterator[str]:
    """A mark at every point, and as many labels as there is room for, with the last one."""
    taken = plot.x(ticks[-1].at)
    shown = {ticks[-1].at}
    for tick in reversed(ticks[:-1]):
        if taken - plot.x(tick.at) >= size.label:
            shown.add(tick.at)
            taken = plot.x(tick.at)
    yield line(plot.left, foot, plot.right, foot)
    for tick in ticks:
        x = plot.x(tick.at)
        yield line(x, foot, x, foot + 5)
        if tick.at in shown:
            yield text(x, foot + 18, tick.text, anchor="middle", extra=SMALL)


def _part(plot: _Plot, part: Sequence[TimePoint]) -> Iterator[str]:
    yield from _bands(plot, part)
    means = [(point, point.mean) for point in part if point.mean is not None]
    if means:
        steps = [f"{px(plot.y(mean))}H{px(plot.x(point.at) + plot.half)}" for point, mean in means]
        path = f"M{px(plot.x(means[0][0].at) - plot.half)} {'V'.join(steps)}"
        yield f'<path d="{path}" fill="none" stroke="currentColor" stroke-dasharray="4 3"/>'
    known = [(plot.x(point.at), plot.y(point.value)) for point in part if point.value is not None]
    if len(known) > 1:
        path = "L".join(f"{px(x)} {px(y)}" for x, y in known)
        yield f'<path d="M{path}" class="reach ai" fill="none" stroke="{BLUE}" stroke-width="1.5"/>'
    for point in part:
        if point.value is not None:
            low, high = (None if end is None else plot.y(end) for end in (point.low, point.high))
            yield from _dot(plot.x(point.at), plot.y(point.value), high, low, alarm=point.alarm)


def _bands(plot: _Plot, part: Sequence[TimePoint]) -> Iterator[str]:
    """The band of each point, as wide as the time that it is for."""
    for point in part:
        low, high = point.band_low, point.band_high
        if low is None or high is None or low >= high:
            continue
        left, right, top, bottom = plot.x(point.at) - plot.half, plot.x(point.at) + plot.half, plot.y(high), plot.y(low)
        place = f'x="{px(left)}" y="{px(top)}" width="{px(right - left)}" height="{px(bottom - top)}"'
        yield f"<rect {place} {_BAND}/>"
        yield from (line(left, edge, right, edge, _EDGE) for edge in (top, bottom))


def _dot(x: float, y: float, top: float | None, bottom: float | None, *, alarm: bool) -> Iterator[str]:
    who, fill = ("people", VERMILLION) if alarm else ("ai", BLUE)
    if top is not None and bottom is not None:
        ends = f'x1="{px(x)}" y1="{px(top)}" x2="{px(x)}" y2="{px(bottom)}"'
        yield f'<line {ends} class="reach {who}" stroke="{fill}" stroke-width="2.2" stroke-linecap="round"/>'
    look = f'class="{who}" fill="{fill}" stroke="{PAPER}" stroke-width="1.2"'
    if alarm:
        yield f'<path d="M{px(x - 7)} {px(y)}l7 -7l7 7l-7 7Z" {look}/>'
    else:
        yield f'<circle cx="{px(x)}" cy="{px(y)}" r="4.5" {look}/>'
