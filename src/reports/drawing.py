"""Rows by panels, each panel with its scale: how every chart is laid out, and the shapes that are drawn in it as SVG.

Panels are side by side or one below the other, and names of rows at the left or, on a phone, above. A chart says what
is drawn of a row at the scale of a panel. The same input gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import inf
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from ..text.escape import plain

INK, PAPER = "#1b1b1b", "#ffffff"
BLUE, SKY, VERMILLION, YELLOW, GREY = "#0072B2", "#56B4E9", "#D55E00", "#F0E442", "#B8B8B8"
FONT = "system-ui, 'DejaVu Sans', 'Liberation Sans', Arial, sans-serif"
BOLD, SMALL, SMALLEST = ' font-weight="bold"', ' font-size="11"', ' font-size="10"'
FAINT, DASHED = ' stroke-opacity="0.15"', ' stroke-dasharray="4 3"'
HALO = f' class="halo" stroke="{PAPER}" stroke-width="4" paint-order="stroke"'
WIDTH, WIDE, NARROW = 744, 976, 356
BETWEEN = 20
"""Room between panels."""
Who = Literal["ai", "people"]


class Labeled(Protocol):
    @property
    def label(self) -> str:
        """A name, and on a second line the run if there are several."""


Row = TypeVar("Row", bound=Labeled)


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    text: str


class Scale(NamedTuple):
    """Values from `low` to `high`, drawn from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * min(1.0, max(0.0, share))


@dataclass(frozen=True, slots=True)
class Panel:
    """One quantity: its scale, and a line that estimates are compared with, if there is one."""

    title: str
    ticks: tuple[Tick, ...]
    """As many are labeled as there is room for, with the last one."""
    reference: float | None = None
    ends: tuple[float, float] | None = None
    """Of the scale, if other than the first and the last tick."""

    def scale(self, start: float, end: float) -> Scale:
        low, high = self.ends or (self.ticks[0].at, self.ticks[-1].at)
        return Scale(low, high, start, end)


@dataclass(frozen=True, slots=True)
class Group(Generic[Row]):
    title: str
    """Empty if there is only one group."""
    rows: tuple[Row, ...]


class Size(NamedTuple):
    width: int
    row: int
    """Height of a row."""
    names: int = 204
    """Room at the left of the panels."""
    values: int = 128
    """Room at the right of each panel."""
    beside: bool = False
    """Whether panels are side by side."""
    above: str = ""
    """How names are written above their rows; empty if they are at the left."""


class Drawing(NamedTuple):
    elements: list[str]
    height: int
    width: int


Draw = Callable[[Row, int, Scale, float], Iterable[str]]
"""Draws a row in the panel of a number, at its scale, with the middle of the row at a height."""


def drawn(
    panels: Sequence[Panel], groups: Sequence[Group[Row]], size: Size, draw: Draw[Row], y: float = 0.0
) -> Drawing:
    """Panels side by side, or one below the other, from a height on."""
    scales: list[str] = []
    elements: list[str] = []
    everywhere = list(enumerate(panels))
    for shown in [everywhere] if size.beside else [[one] for one in everywhere]:
        each = (size.width - size.names + BETWEEN) / len(shown)
        starts = [size.names + each * place for place in range(len(shown))]
        plots = [
            (place, panel, panel.scale(start, start + each - BETWEEN - size.values))
            for start, (place, panel) in zip(starts, shown, strict=True)
        ]
        titled = [(scale.start if size.beside else 0, panel.title) for _, panel, scale in plots if panel.title]
        elements += [text(x, y + 16, title, extra=BOLD) for x, title in titled]
        y += 22 if titled else 4
        top = y + 4
        for group in groups:
            if group.title:
                y += 27
                elements.append(text(0, y - 5, group.title, extra=f"{SMALL}{BOLD}"))
            for row in group.rows:
                height = size.row + (9 if "\n" in row.label and not size.above else 0)
                middle = y + height / 2 + (8 if size.above else 0)
                elements += _name(row.label, y if size.above else middle, size.above)
                for place, _, scale in plots:
                    elements += draw(row, place, scale, middle)
                y += height
        for _, panel, scale in plots:
            scales += _ticks(panel, scale, top, y + 4)
        y += 26 if shown[0][1].ticks else 8
    return Drawing([*scales, *elements], int(y), size.width)


def _name(label: str, y: float, above: str) -> Iterator[str]:
    name, _, run = label.partition("\n")
    if above:
        yield text(0, y + 14, squeezed(f"{name}, {run}" if run else name, 46), extra=above)
        return
    yield text(0, y - 2 if run else y + 4, squeezed(name, 25))
    if run:
        yield text(0, y + 11, squeezed(run, 36), extra=SMALLEST)


def _ticks(panel: Panel, scale: Scale, top: float, bottom: float) -> Iterator[str]:
    taken = inf
    for tick in reversed(panel.ticks):
        x = scale.at(tick.at)
        yield line(x, top, x, bottom, FAINT)
        if taken - x >= 6 * len(tick.text) + 4:
            taken = x
            yield text(x, bottom + 14, tick.text, anchor="middle", extra=SMALL)
    if panel.reference is not None:
        x = scale.at(panel.reference)
        yield line(x, top, x, bottom, DASHED)


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


def shape(tag: str, look: str, **places: float) -> str:
    sized = "".join(f'{name}="{px(value)}" ' for name, value in places.items())
    return f"<{tag} {sized}{look}/>"


def text(x: float, y: float, content: str, *, anchor: str = "start", extra: str = "") -> str:
    place = f'x="{px(x)}" y="{px(y)}" text-anchor="{anchor}"'
    return f'<text {place} fill="currentColor"{extra}>{safe(content)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, extra: str = "") -> str:
    return shape("line", f'stroke="currentColor"{extra}', x1=x1, y1=y1, x2=x2, y2=y2)


def point(x: float, y: float, who: Who, ends: Sequence[float] = (), radius: float = 6) -> Iterator[str]:
    """A circle for AI assistants, a diamond for people, and their interval, from x and y to x and y, if it is known."""
    color = BLUE if who == "ai" else VERMILLION
    if ends:
        look = f'class="reach {who}" stroke="{color}" stroke-width="{px(radius / 2)}" stroke-linecap="round"'
        yield shape("line", look, **dict(zip(("x1", "y1", "x2", "y2"), ends, strict=True)))
    look = f'class="{who}" fill="{color}" stroke="{PAPER}" stroke-width="{px(radius / 4)}"'
    if who == "ai":
        yield shape("circle", look, cx=x, cy=y, r=radius)
    else:
        yield f'<path d="M{px(x - 7)} {px(y)}l7 -7l7 7l-7 7Z" {look}/>'
