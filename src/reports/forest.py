"""Forest plots: estimates with their intervals, one row for each, in panels side by side or, on a phone, stacked.

What AI assistants and what people achieved differ in shape as well as in color. A row without an interval shows its dot
and says why. All charts are drawn with the sizes, colors, texts and lines at the
top; the same input gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Literal, NamedTuple

from ..text.escape import plain

WIDTH, EDGE = 720, 12
INK, PAPER = "#1b1b1b", "#ffffff"
BLUE, SKY, VERMILLION, YELLOW, GREY = "#0072B2", "#56B4E9", "#D55E00", "#F0E442", "#B8B8B8"
FONT = "system-ui, 'DejaVu Sans', 'Liberation Sans', Arial, sans-serif"
BOLD = ' font-weight="bold"'
SMALL = ' font-size="11"'
FAINT = ' stroke-opacity="0.25"'


class Drawing(NamedTuple):
    elements: list[str]
    height: int
    width: int = WIDTH
    edge: int = EDGE
    """Empty space at the left and the right."""


def safe(text: str) -> str:
    return escape(plain(text), quote=True)


def px(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def cut(text: str, most: int) -> str:
    shown = plain(text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def squeezed(text: str, most: int) -> str:
    """Cut after a third: the start of a model's name is its provider, and the end tells it from others."""
    shown = plain(text)
    head = most // 3
    return shown if len(shown) <= most else f"{shown[: head - 1]}…{shown[-(most - head) :]}"


def text(x: float, y: float, content: str, *, anchor: str = "start", extra: str = "") -> str:
    place = f'x="{px(x)}" y="{px(y)}" text-anchor="{anchor}"'
    return f'<text {place} fill="currentColor"{extra}>{safe(content)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, extra: str = "") -> str:
    ends = f'x1="{px(x1)}" y1="{px(y1)}" x2="{px(x2)}" y2="{px(y2)}"'
    return f'<line {ends} stroke="currentColor"{extra}/>'


def label(x: float, y: float, name: str) -> Iterator[str]:
    """The label of a row: a target, and below it the run if there are several."""
    target, _, run = name.partition("\n")
    yield text(x, y - 6 if run else y, squeezed(target, 23), anchor="end")
    if run:
        yield text(x, y + 7, squeezed(run, 27), anchor="end", extra=SMALL)


WIDE, NARROW = 976, 356
NAMES = 204
"""Width of the names of rows beside wide panels."""
VALUES = 128
"""Width of the numbers beside a panel."""
BETWEEN = 20
STEP, TALL_STEP, TITLE = 21, 30, 27
"""Height of a row, of a row whose name takes two lines, and of a group's title with the space above it."""
Who = Literal["ai", "people"]
_FILL: dict[Who, str] = {"ai": BLUE, "people": VERMILLION}


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    text: str


@dataclass(frozen=True, slots=True)
class ForestPanel:
    """One quantity: its scale, and a line that estimates are compared with, if there is one."""

    title: str
    ticks: tuple[Tick, ...]
    """The first and the last are the ends of the scale; at least two."""
    reference: float | None = None

    def share(self, value: float) -> float:
        """Where a value is between the ends of the scale, from 0 to 1."""
        low, high = self.ticks[0].at, self.ticks[-1].at
        return min(1.0, max(0.0, (value - low) / (high - low)))


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
class ForestGroup:
    title: str
    """Empty if there is only one group."""
    rows: tuple[ForestRow, ...]


@dataclass(frozen=True, slots=True)
class ForestChart:
    name: str
    title: str
    panels: tuple[ForestPanel, ...]
    groups: tuple[ForestGroup, ...]
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


def drawn_wide(chart: ForestChart) -> Drawing:
    """Panels side by side, with the names on the left."""
    count = len(chart.panels)
    each = (WIDE - NAMES - BETWEEN * (count - 1)) / count
    lefts = [NAMES + place * (each + BETWEEN) for place in range(count)]
    plots = [_Plot(panel, left, left + each - VALUES) for panel, left in zip(chart.panels, lefts, strict=True)]
    elements = [text(plot.left, 16, plot.panel.title, extra=BOLD) for plot in plots]
    y = 22.0
    top = y + 4
    for group in chart.groups:
        if group.title:
            y += TITLE
            elements.append(text(0, y - 5, group.title, extra=f"{SMALL}{BOLD}"))
        for row in group.rows:
            step = TALL_STEP if "\n" in row.label else STEP
            middle = y + step / 2
            elements += _name(0, middle + 4, row.label)
            for plot, mark in zip(plots, row.marks, strict=True):
                elements += (*_mark(plot, mark, row.who, middle), *_value(mark, plot.right + 12, middle + 4))
            y += step
    scales = [element for plot in plots for element in _scale(plot, top, y + 4)]
    return Drawing([*scales, *elements], int(y + 26), WIDE, 0)


def drawn_stacked(chart: ForestChart) -> Drawing:
    """Panels one below the other, with the names on the left; for one group."""
    rows = [row for group in chart.groups for row in group.rows]
    step = 34 if any("\n" in row.label for row in rows) else 24
    elements: list[str] = []
    y = 8.0
    for place, panel in enumerate(chart.panels):
        plot = _Plot(panel, 190, 560)
        y += 18
        elements.append(text(0, y, panel.title, extra=BOLD))
        top = y + 8
        bottom = top + step * len(rows)
        elements += _scale(plot, top, bottom, FAINT)
        for number, row in enumerate(rows):
            middle = top + step * (number + 0.5)
            elements += (*label(plot.left - 12, middle + 4, row.label), *_mark(plot, row.marks[place], row.who, middle))
            elements.append(text(plot.right + 14, middle + 4, row.marks[place].text))
        y = bottom + 26
    return Drawing(elements, int(y))


def drawn_narrow(chart: ForestChart) -> Drawing:
    """Panels one below the other, with each name above its row."""
    elements: list[str] = []
    scales: list[str] = []
    y = 0.0
    for place, panel in enumerate(chart.panels):
        plot = _Plot(panel, 14, NARROW - VALUES)
        elements.append(text(0, y + 18, panel.title, extra=BOLD))
        y = top = y + 24
        for group in chart.groups:
            if group.title:
                y += TITLE
                elements.append(text(0, y - 4, group.title, extra=f"{SMALL}{BOLD}"))
            for row in group.rows:
                mark = row.marks[place]
                elements.append(text(0, y + 14, squeezed(row.label.replace("\n", ", "), 46), extra=SMALL))
                elements += (*_mark(plot, mark, row.who, y + 26), *_value(mark, plot.right + 12, y + 30))
                y += 36
        scales += _scale(plot, top, y + 4)
        y += 30
    return Drawing([*scales, *elements], int(y), NARROW, 0)


def _name(x: float, y: float, label: str) -> Iterator[str]:
    name, _, run = label.partition("\n")
    yield text(x, y - 6 if run else y, squeezed(name, 25))
    if run:
        yield text(x, y + 7, squeezed(run, 36), extra=' font-size="10"')


def _value(mark: Mark, x: float, y: float) -> Iterator[str]:
    yield text(x, y, mark.text)
    if mark.note:
        yield text(x + 6 + 8.5 * len(mark.text), y, mark.note, extra=' font-size="10"')


@dataclass(frozen=True, slots=True)
class _Plot:
    """A panel's scale on the drawing."""

    panel: ForestPanel
    left: float
    right: float

    def at(self, value: float) -> float:
        return self.left + (self.right - self.left) * self.panel.share(value)


def _scale(plot: _Plot, top: float, bottom: float, look: str = ' stroke-opacity="0.15"') -> Iterator[str]:
    for tick in plot.panel.ticks:
        x = plot.at(tick.at)
        yield line(x, top, x, bottom, look)
        yield text(x, bottom + 14, tick.text, anchor="middle", extra=SMALL)
    if plot.panel.reference is not None:
        x = plot.at(plot.panel.reference)
        yield line(x, top, x, bottom, ' stroke-dasharray="4 3"')


def _mark(plot: _Plot, mark: Mark, who: Who, y: float) -> Iterator[str]:
    fill = _FILL[who]
    if mark.low is not None and mark.high is not None:
        ends = f'x1="{px(plot.at(mark.low))}" y1="{px(y)}" x2="{px(plot.at(mark.high))}" y2="{px(y)}"'
        yield f'<line {ends} class="reach {who}" stroke="{fill}" stroke-width="3" stroke-linecap="round"/>'
    if mark.value is None:
        return
    x = plot.at(mark.value)
    look = f'class="{who}" fill="{fill}" stroke="{PAPER}" stroke-width="1.5"'
    if who == "ai":
        yield f'<circle cx="{px(x)}" cy="{px(y)}" r="6" {look}/>'
    else:
        yield f'<path d="M{px(x - 7)} {px(y)}l7 -7l7 7l-7 7Z" {look}/>'
