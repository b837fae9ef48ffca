"""Charts as SVG, drawn directly: the same bytes each time, no script, no font and nothing loaded from elsewhere.

Colors are those of Okabe and Ito, which color-blind readers can tell apart; each also has its own hatching and a number
beside it, so that a chart works in gray. Inside a page a chart uses the page's text color; as a separate file it has a
white background. PNG needs the optional `resvg-py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from . import drawing
from .drawing import (
    BLUE,
    FONT,
    GREY,
    HALO,
    INK,
    NARROW,
    PAPER,
    SKY,
    SMALL,
    SMALLEST,
    VERMILLION,
    WIDE,
    WIDTH,
    YELLOW,
    Drawing,
    Group,
    Panel,
    Scale,
    Size,
    Tick,
    Who,
    line,
    px,
    safe,
    shape,
    text,
)  # fmt: skip
from .time_chart import TimeChart, drawn_time

BINS = 10
TENTHS = tuple(Tick(part / 5, f"{part / 5:.1f}") for part in range(6))
TALL, THICK = 44, 17
"""Height of the highest bar of a histogram, and of a bar of shares."""


@dataclass(frozen=True, slots=True)
class Bar:
    label: str
    counts: tuple[int, ...]
    notes: tuple[str, ...] = ()
    """Shown beside it."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many trials fall into each tenth of a scale from 0 to 1, one row per target."""

    name: str
    title: str
    rows: tuple[Bar, ...]
    """Their counts are from the lowest tenth to the highest."""

    @property
    def description(self) -> str:
        return " ".join(
            f"{row.label}, from 0 to 1 by tenths: {', '.join(map(str, row.counts))}; {', '.join(row.notes)}."
            for row in self.rows
        )


@dataclass(frozen=True, slots=True)
class StackChart:
    """Bars of shares that sum to one, in groups."""

    name: str
    title: str
    heading: str
    parts: tuple[str, ...]
    """What the counts of a bar are, in order."""
    groups: tuple[Group[Bar], ...]

    @property
    def description(self) -> str:
        bars = [
            f"{group.title}: {'; '.join(f'{bar.label} {_spoken(bar.counts)}' for bar in group.rows)}."
            for group in self.groups
        ]
        return f"Counts of {', '.join(self.parts)}. {' '.join(bars)}"


def _spoken(counts: Sequence[int]) -> str:
    return "-".join(map(str, counts))


@dataclass(frozen=True, slots=True)
class Mark:
    """An estimate as it is shown in one panel."""

    value: float | None
    low: float | None
    high: float | None
    text: str
    note: str = ""
    """Shown beside the number if there is no interval: why."""

    @property
    def spoken(self) -> str:
        return f"{self.text}, {self.note}" if self.note else self.text


@dataclass(frozen=True, slots=True)
class ForestRow:
    label: str
    marks: tuple[Mark, ...]
    """One for each panel."""
    who: Who = "ai"


@dataclass(frozen=True, slots=True)
class ForestChart:
    """Estimates with their intervals, one row for each."""

    name: str
    title: str
    panels: tuple[Panel, ...]
    groups: tuple[Group[ForestRow], ...]
    stacked: bool = False
    """Whether panels are one below the other in the wide form, too."""

    @property
    def description(self) -> str:
        return " ".join(
            f"{panel.title}{f', {group.title}' if group.title else ''}: "
            f"{'; '.join(f'{row.label} {row.marks[place].spoken}' for row in group.rows)}."
            for place, panel in enumerate(self.panels)
            for group in self.groups
        )


Chart = Histogram | StackChart | ForestChart | TimeChart
NARROW_FORMS = (ForestChart, TimeChart)
"""Charts that are drawn a second time for phones."""


def svg(chart: Chart, *, alone: bool, narrow: bool = False) -> str:
    """A chart as an SVG element.

    Args:
        chart: What to draw.
        alone: For a separate file, with a white background.
        narrow: For the width of a phone; only charts of `NARROW_FORMS` have such a form.
    """
    elements, height, width = _drawn(chart, narrow)
    name = f"{chart.name}-narrow" if narrow else chart.name
    alone_only = f' xmlns="http://www.w3.org/2000/svg" color="{INK}"' if alone else ""
    head = [
        f'<svg{alone_only} class="{"narrow" if narrow else "wide"}" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-labelledby="{name}-title {name}-desc" '
        f'font-family="{FONT}" font-size="13">',
        f'<title id="{name}-title">{safe(chart.title)}</title>',
        f'<desc id="{name}-desc">{safe(chart.description)}</desc>',
    ]
    if alone:
        head.append(f'<rect x="0" width="{width}" height="{height}" fill="{PAPER}"/>')
    return "\n".join([*head, *elements, "</svg>"]) + "\n"


def _drawn(chart: Chart, narrow: bool) -> Drawing:
    match chart:
        case Histogram(rows=rows):
            draw = partial(_tenths, max((count for row in rows for count in row.counts), default=0))
            return drawing.drawn([Panel("", TENTHS)], [Group("", rows)], Size(WIDTH, 60, values=160), draw)
        case StackChart():
            panel = Panel(chart.heading, (), ends=(0, 1))
            made = drawing.drawn([panel], chart.groups, Size(WIDTH, 20, names=100, values=56), _stack, 30)
            return made._replace(elements=[*_key(chart.parts), *made.elements])
        case ForestChart():
            wide = Size(WIDTH, 24, values=160) if chart.stacked else Size(WIDE, 21, beside=True)
            size = Size(NARROW, 36, names=14, above=SMALL + HALO) if narrow else wide
            return drawing.drawn(chart.panels, chart.groups, size, _mark)
        case TimeChart():
            return drawn_time(chart, narrow)


def _mark(row: ForestRow, place: int, scale: Scale, y: float) -> Iterator[str]:
    mark = row.marks[place]
    if mark.value is not None:
        ends = () if mark.low is None or mark.high is None else (scale.at(mark.low), y, scale.at(mark.high), y)
        yield from drawing.point(scale.at(mark.value), y, row.who, ends)
    yield text(scale.end + 12, y + 4, mark.text)
    if mark.note:
        yield text(scale.end + 18 + 8.5 * len(mark.text), y + 4, mark.note, extra=SMALLEST)


def _tenths(most: int, row: Bar, _: int, scale: Scale, y: float) -> Iterator[str]:
    base, width = y + 30, (scale.end - scale.start) / len(row.counts)
    yield line(scale.start, base, scale.end, base)
    for place, count in enumerate(row.counts):
        if count:
            high, x = max(2.0, TALL * count / most), scale.start + width * place
            yield shape("rect", f'fill="{BLUE}"', x=x + 2, y=base - high, width=width - 4, height=high)
            yield text(x + width / 2, base - high - 3, str(count), anchor="middle", extra=SMALL)
    for place, note in enumerate(reversed(row.notes)):
        yield text(scale.end + 14, base - 4 - 15 * place, note, extra=SMALL)


def _key(parts: Sequence[str]) -> Iterator[str]:
    x = 0.0
    for place, part in enumerate(parts):
        yield _block(place, x, 4, 16, 14)
        yield text(x + 21, 15, part, extra=SMALL)
        x += 34 + 6.7 * len(part)


def _stack(bar: Bar, _: int, scale: Scale, y: float) -> Iterator[str]:
    total = sum(bar.counts)
    x, top = scale.start, y - 9
    for place, count in enumerate(bar.counts):
        if count:
            width = (scale.end - scale.start) * count / total
            yield _block(place, x, top, width, THICK)
            if width >= 9 + 7 * len(str(count)):
                yield (
                    f'<text x="{px(x + width / 2)}" y="{px(y + 4)}" text-anchor="middle" font-size="11" '
                    'font-weight="bold" fill="#000000" stroke="#ffffff" stroke-width="3" paint-order="stroke">'
                    f"{count}</text>"
                )
            x += width
    yield text(scale.end + 8, y + 4, f"n={total}", extra=SMALL)


FILLS = (BLUE, SKY, YELLOW, VERMILLION, GREY)
HATCH = 8


def _block(part: int, x: float, y: float, width: float, height: float) -> str:
    """A colored block with its hatching. Drawn line by line, because printing SVG patterns makes huge images."""
    strokes = "".join(_hatching(part, x, y, width, height))
    look = f'fill="{FILLS[part]}" stroke="#000000" stroke-width="0.6"'
    block = shape("rect", look, x=x, y=y, width=width, height=height)
    if not strokes:
        return block
    look = 'stroke-width="2.4" stroke-linecap="round"' if part == 2 else 'stroke-width="1.1"'
    return f'{block}\n<path d="{strokes}" fill="none" stroke="#000000" stroke-opacity="0.55" {look}/>'


def _hatching(part: int, x: float, y: float, width: float, height: float) -> Iterator[str]:
    """By part: nothing, rising lines, dots, crossed lines, horizontal lines."""
    across = range(int(x // HATCH) + 1, int((x + width) // HATCH) + 1)
    if part in (1, 3):
        for step in range(int(x // HATCH) + 1, int((x + width + height) // HATCH) + 1):
            start, end = max(x, step * HATCH - height), min(x + width, step * HATCH)
            if start < end:
                low = y + height - (start - (step * HATCH - height))
                yield f"M{px(start)} {px(low)}L{px(end)} {px(low - (end - start))}"
                if part == 3:
                    yield f"M{px(start)} {px(2 * y + height - low)}L{px(end)} {px(2 * y + height - low + end - start)}"
    elif part == 2:
        for row, level in enumerate((y + height * 0.3, y + height * 0.75)):
            for place in across:
                at = place * HATCH - HATCH / 2 * row
                if x < at < x + width:
                    yield f"M{px(at)} {px(level)}h0"
    elif part == 4:
        for share in (0.25, 0.5, 0.75):
            yield f"M{px(x)} {px(y + height * share)}h{px(width)}"


PNG_WIDTH = 2 * WIDTH
"""In pixels. Most of the time of writing a report goes into them."""


def renderer() -> Callable[[str], bytes] | None:
    """A function that renders a separate chart as PNG at twice its size; None without `resvg-py`, or without any font.

    Letters come from the installed fonts, so a PNG has the same bytes only where the same fonts are installed.
    """
    try:
        resvg: Any = import_module("resvg_py")
    except ImportError:
        return None

    def render(drawn: str, width: int = PNG_WIDTH) -> bytes:
        return bytes(resvg.svg_to_bytes(svg_string=drawn, width=width, sans_serif_family="DejaVu Sans"))

    blank = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20">{}</svg>'
    letter = f'<text y="15" font-family="{FONT}">M</text>'
    return None if render(blank.format(letter), 20) == render(blank.format(""), 20) else render
