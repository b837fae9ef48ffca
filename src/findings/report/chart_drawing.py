"""What all charts are drawn with: sizes, colors, text and lines of SVG. The same input gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from ...text.escape import plain

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
