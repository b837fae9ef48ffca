"""Charts as SVG, drawn directly: the same bytes each time, no script, no font and nothing loaded from elsewhere.

Colors are those of Okabe and Ito, which color-blind readers can tell apart; each also has its own hatching and a number
beside it, so that a chart works in gray. Inside a page a chart uses the page's text color; as a separate file it has a
white background. PNG needs the optional `resvg-py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from .forest import (
    BLUE,
    BOLD,
    EDGE,
    FONT,
    GREY,
    INK,
    PAPER,
    SKY,
    SMALL,
    VERMILLION,
    WIDTH,
    YELLOW,
    Drawing,
    ForestChart,
    cut,
    drawn_narrow,
    drawn_stacked,
    drawn_wide,
    label,
    line,
    px,
    safe,
    text,
)
from .time_chart import TimeChart, drawn_narrow_time, drawn_wide_time

__all__ = [
    "BINS",
    "NARROW_FORMS",
    "PAPER",
    "WIDTH",
    "Bar",
    "BarGroup",
    "BarPanel",
    "Chart",
    "ForestChart",
    "Histogram",
    "HistogramRow",
    "StackChart",
    "TimeChart",
    "renderer",
    "svg",
]

BINS = 10
THICK = 17


@dataclass(frozen=True, slots=True)
class HistogramRow:
    label: str
    counts: tuple[int, ...]
    """From the lowest tenth to the highest."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many trials fall into each tenth of a scale from 0 to 1, one row per target."""

    name: str
    title: str
    rows: tuple[HistogramRow, ...]

    @property
    def description(self) -> str:
        return " ".join(
            f"{row.label}, from 0 to 1 by tenths: {', '.join(map(str, row.counts))}; {', '.join(row.notes)}."
            for row in self.rows
        )


@dataclass(frozen=True, slots=True)
class Bar:
    label: str
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BarGroup:
    title: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class BarPanel:
    title: str
    groups: tuple[BarGroup, ...]


@dataclass(frozen=True, slots=True)
class StackChart:
    """Bars of shares that sum to one, in groups, in panels."""

    name: str
    title: str
    parts: tuple[str, ...]
    """What the counts of a bar are, in order."""
    panels: tuple[BarPanel, ...]

    @property
    def description(self) -> str:
        bars = [
            f"{group.title}: {'; '.join(f'{bar.label} {_spoken(bar.counts)}' for bar in group.bars)}."
            for panel in self.panels
            for group in panel.groups
        ]
        return f"Counts of {', '.join(self.parts)}. {' '.join(bars)}"


def _spoken(counts: Sequence[int]) -> str:
    return "-".join(map(str, counts))


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
    match chart:
        case Histogram():
            drawing = _bars(chart)
        case StackChart():
            drawing = _stacks(chart)
        case ForestChart():
            wide = drawn_stacked if chart.stacked else drawn_wide
            drawing = drawn_narrow(chart) if narrow else wide(chart)
        case TimeChart():
            drawing = drawn_narrow_time(chart) if narrow else drawn_wide_time(chart)
    name = f"{chart.name}-narrow" if narrow else chart.name
    edge, height = drawing.edge, drawing.height
    width = drawing.width + 2 * edge
    alone_only = f' xmlns="http://www.w3.org/2000/svg" color="{INK}"' if alone else ""
    head = [
        f'<svg{alone_only} class="{"narrow" if narrow else "wide"}" viewBox="{-edge} 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-labelledby="{name}-title {name}-desc" '
        f'font-family="{FONT}" font-size="13">',
        f'<title id="{name}-title">{safe(chart.title)}</title>',
        f'<desc id="{name}-desc">{safe(chart.description)}</desc>',
    ]
    if alone:
        head.append(f'<rect x="{-edge}" width="{width}" height="{height}" fill="{PAPER}"/>')
    return "\n".join([*head, *drawing.elements, "</svg>"]) + "\n"


def _bars(chart: Histogram) -> Drawing:
    left, right, tall = 190, 560, 44
    lines: list[str] = []
    most = max((count for row in chart.rows for count in row.counts), default=0)
    y = 8.0
    for row in chart.rows:
        base = y + tall + 16
        lines += label(left - 12, base - 6, row.label)
        lines.append(line(left, base, right, base))
        width = (right - left) / len(row.counts)
        for place, count in enumerate(row.counts):
            if count:
                high = max(2.0, tall * count / most)
                x = left + width * place
                lines.append(
                    f'<rect x="{px(x + 2)}" y="{px(base - high)}" width="{px(width - 4)}" height="{px(high)}" '
                    f'fill="{BLUE}"/>'
                )
                lines.append(text(x + width / 2, base - high - 3, str(count), anchor="middle", extra=SMALL))
        for place, note in enumerate(reversed(row.notes)):
            lines.append(text(right + 14, base - 4 - 15 * place, note, extra=SMALL))
        y = base
    for tick in range(6):
        x = left + (right - left) * tick / 5
        lines.append(line(x, y, x, y + 4))
        lines.append(text(x, y + 17, f"{tick / 5:.1f}", anchor="middle", extra=SMALL))
    return Drawing(lines, int(y + 26))


FILLS = (BLUE, SKY, YELLOW, VERMILLION, GREY)
HATCH = 8


def _block(part: int, x: float, y: float, width: float, height: float) -> str:
    """A colored block with its hatching. Drawn line by line, because printing SVG patterns makes huge images."""
    strokes = "".join(_hatching(part, x, y, width, height))
    block = (
        f'<rect x="{px(x)}" y="{px(y)}" width="{px(width)}" height="{px(height)}" fill="{FILLS[part]}" '
        'stroke="#000000" stroke-width="0.6"/>'
    )
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


def _stacks(chart: StackChart) -> Drawing:
    left, right, step = 132, 640, 20
    lines: list[str] = []
    x, y = 0.0, 4.0
    for place, part in enumerate(chart.parts):
        lines.append(_block(place, x, y, 16, 14))
        lines.append(text(x + 21, y + 11, part, extra=SMALL))
        x += 34 + 6.7 * len(part)
    y += 26
    for panel in chart.panels:
        y += 22
        lines.append(text(0, y, panel.title, extra=BOLD))
        for group in panel.groups:
            y += 24
            lines.append(text(0, y, cut(group.title, 90)))
            y += 6
            for bar in group.bars:
                lines.append(text(left - 10, y + 13, cut(bar.label, 18), anchor="end", extra=SMALL))
                lines += _stack(bar, left, right, y)
                y += step
        y += 8
    return Drawing(lines, int(y + 8))


def _stack(bar: Bar, left: int, right: int, y: float) -> Iterator[str]:
    total = sum(bar.counts)
    x = float(left)
    for place, count in enumerate(bar.counts):
        if count:
            width = (right - left) * count / total
            yield _block(place, x, y, width, THICK)
            if width >= 9 + 7 * len(str(count)):
                yield (
                    f'<text x="{px(x + width / 2)}" y="{px(y + 13)}" text-anchor="middle" font-size="11" '
                    'font-weight="bold" fill="#000000" stroke="#ffffff" stroke-width="3" paint-order="stroke">'
                    f"{count}</text>"
                )
            x += width
    yield text(right + 8, y + 13, f"n={total}", extra=SMALL)


PNG_WIDTH = 2 * (WIDTH + 2 * EDGE)
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
