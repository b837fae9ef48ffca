"""The parts of a report: sections, tables, exhibits, charts and their cells. Markdown, HTML and CSV are made from it.

A cell is formatted here, once, so that renderings cannot disagree. Cells of the kinds `words`, `strong` and `whole` are
written by this project; the text of every other kind may come from anyone, and a rendering must make it inert.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ..findings.estimates import Estimated
from ..findings.human_comparison import CounselorShare
from ..stats.bounded import Bounded
from ..stats.clustered import ClusteredShare
from ..stats.intervals import Share
from ..text.money import money_text
from ..text.rounded import percent as percent_text
from ..text.rounded import rounded
from .charts import Chart

NOTHING = "–"
NO_INTERVAL = "no interval"
_OWN_PAGE = (
    r"(?:\.\./){0,4}(?:[A-Za-z0-9_-][A-Za-z0-9._-]*/){0,4}[A-Za-z0-9_-][A-Za-z0-9._-]*\.(?:html|md|csv|svg|json|txt)"
)
_IN_WORKBENCH = r"/runs(?:/(?!\.)(?:[A-Za-z0-9._~-]|%(?!2E)[0-9A-F]{2})+)+"
"""A page of a run in the workbench, its parts quoted: nothing in it leaves that run."""
_OWN_ADDRESS = re.compile(rf"(?:{_OWN_PAGE}|{_IN_WORKBENCH})?(?:#[A-Za-z0-9._-]+)?")

AnyShare = Share | ClusteredShare | Estimated | CounselorShare | Bounded
CellKind = Literal["words", "strong", "whole", "text", "code", "number", "link", "passage", "marked", "line"]


@dataclass(frozen=True, slots=True)
class Cell:
    """A piece of a line, or a cell of a table."""

    text: str
    kind: CellKind = "words"
    """Ours: `words`; `strong`; `whole`, which is not broken over two lines. Of others: `text`; `code`, an id or a hash;
    `link`, an address from an answer key or the baseline, never from a reply; `passage`, part of a reply, with the
    relevant words `marked`. A `number` is formatted by a function below. A `line` is several cells."""
    source: AnyShare | int | None = None
    """What a CSV file has of a number: a share or a mean becomes several columns."""
    parts: tuple[Cell, ...] = ()
    """Of a passage or a line."""
    href: str = ""
    """The evidence behind it: a page of this report, or a place on this page. Relative, from `links.py`."""
    pages_only: bool = False
    """Whether only HTML shows the link, because so many would make a table in Markdown hard to read."""

    @property
    def address(self) -> str | None:
        """Where it leads; an address of any other form is not made a link."""
        return own_address(self.href)


Line = tuple[Cell, ...]
Entry = tuple[str, Line]
"""A label of this project, and what is said under it."""


def own_address(href: str) -> str | None:
    """An address of a file of the report, a page of a run in the workbench, or a place on the page; None for others."""
    return href if href and _OWN_ADDRESS.fullmatch(href) else None


def words(text: str) -> Line:
    """Text of this project as a line."""
    return (Cell(text),)


def say(*parts: str | Cell) -> Line:
    """A line of this project's text and of cells."""
    return tuple(Cell(part) if isinstance(part, str) else part for part in parts)


def text_cell(of_others: str) -> Cell:
    """Names, titles, what a model or a judge wrote."""
    return Cell(of_others, "text")


def code_cell(of_others: str) -> Cell:
    """An id or a hash."""
    return Cell(of_others, "code")


def link_cell(address: str) -> Cell:
    return Cell(address, "link")


def linked(cell: Cell, href: str, *, pages_only: bool = False) -> Cell:
    return replace(cell, href=href, pages_only=pages_only)


def passage_cell(pieces: Iterable[tuple[str, bool]]) -> Cell:
    """Part of a reply: its pieces, and whether each is marked."""
    parts = tuple(Cell(piece, "marked" if marked else "text") for piece, marked in pieces)
    return Cell("".join(part.text for part in parts), "passage", parts=parts)


def count_cell(value: int) -> Cell:
    return Cell(f"{value:,}", "number", value)


def of_cell(found: int, n: int) -> Cell:
    """`3 of 10`."""
    return Cell(f"{found:,} of {n:,}" if n else NOTHING, "number")


def part_cell(found: int, n: int) -> Cell:
    """A share as a percentage of n, without an interval."""
    return Cell(f"{percent(found / n, n)}% of {n:,}" if n else NOTHING, "number")


def mean_cell(estimate: Estimated) -> Cell:
    """A mean of scores with its interval and of how many trials it is."""
    return Cell(mean_text(estimate), "number", estimate)


def share_cell(found: AnyShare) -> Cell:
    """A share with its interval."""
    return Cell(share_text(found), "number", found)


def money_cell(amount: float | None) -> Cell:
    return Cell(money_text(amount), "number")


def number_cell(value: float | None, low: float | None = None, high: float | None = None) -> Cell:
    """A number, with an interval if there is one."""
    if value is None:
        return Cell(NOTHING, "number")
    shown, *ends = (rounded(one).replace("-", "−") for one in (value, low, high) if one is not None)
    if len(ends) < 2:
        return Cell(shown, "number")
    return Cell(f"{shown} ({(' to ' if '−' in ''.join(ends) else '–').join(ends)})", "number")


def range_cell(low: float | None, high: float | None, *, in_percent: bool = False) -> Cell:
    return Cell(range_text(low, high, in_percent=in_percent), "number")


def range_text(low: float | None, high: float | None, *, in_percent: bool = False) -> str:
    """The lowest and the highest that a share or a mean could be; a dash if nothing is missing or open."""
    if low is None or high is None:
        return NOTHING
    return "–".join((percent_text(low), f"{percent_text(high)}%") if in_percent else (rounded(low), rounded(high)))


def gap_cell(value: float | None, low: float | None, high: float | None, n: int, mark: str = "") -> Cell:
    """A difference of two shares, in percentage points, with or without an interval.

    `n`, of the smaller sample, decides how many decimals are shown; `mark` is written behind the number, for a note.
    """
    if value is None:
        return Cell(NOTHING, "number")
    if low is None or high is None:
        return Cell(_points(value, n), "number")
    return Cell(f"{_points(value, n)} ({_points(low, n)} to {_points(high, n)}){mark}", "number")


def _points(value: float, n: int) -> str:
    shown = percent(abs(value), n)
    return shown if not float(shown) else f"{'+' if value > 0 else '−'}{shown}"


def shown(cells: Cell | Sequence[Cell]) -> str:
    """Cells as text; a passage without its marks."""
    return cells.text if isinstance(cells, Cell) else "".join(cell.text for cell in cells)


def percent(found: float, n: int) -> str:
    """A share in percent, with one decimal if n is at least 100 and none otherwise."""
    return percent_text(found, 0 if n < 100 else 1)


def estimate_text(estimate: Estimated, *, two_lines: bool = False) -> str:
    """0.93 (0.78–1.00), or that there is no interval; on two lines, the value alone then."""
    if estimate.value is None:
        return NOTHING
    if estimate.low is None or estimate.high is None:
        return rounded(estimate.value) if two_lines else f"{rounded(estimate.value)} ({NO_INTERVAL})"
    interval = f"{rounded(estimate.low)}–{rounded(estimate.high)}"
    return f"{rounded(estimate.value)}\n{interval}" if two_lines else f"{rounded(estimate.value)} ({interval})"


def mean_text(estimate: Estimated) -> str:
    """0.93 (0.78–1.00), n=24."""
    return estimate_text(estimate) if estimate.value is None else f"{estimate_text(estimate)}, n={estimate.answers:,}"


def share_text(found: AnyShare) -> str:
    """40% (17–69%), or 40% (no interval), or a dash if there is nothing to count."""
    if found.value is None:
        return NOTHING
    n = size_of(found)
    if found.low is None or found.high is None:
        return f"{percent(found.value, n)}% ({NO_INTERVAL})"
    value, low, high = (percent(one, n) for one in (found.value, found.low, found.high))
    return f"{value}% ({low}–{high}%)"


def size_of(found: AnyShare) -> int:
    """How much is behind a share, which decides how many decimals are shown."""
    return int(found.effective or 0) if isinstance(found, Estimated | Bounded | ClusteredShare) else found.n


ColumnKind = Literal["text", "word", "count", "mean", "share", "other"]


@dataclass(frozen=True, slots=True)
class Column:
    heading: str
    """Text of this project."""
    kind: ColumnKind = "count"
    """Decides the alignment, and into which columns a CSV file splits it."""
    key: str = ""
    """Its name in a CSV file."""
    csv_only: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    caption: str
    """Text of this project."""
    columns: tuple[Column, ...]
    rows: tuple[Line, ...]

    def in_report(self) -> Table:
        """Without the columns that only CSV files have."""
        kept = [place for place, column in enumerate(self.columns) if not column.csv_only]
        rows = tuple(tuple(row[place] for place in kept) for row in self.rows)
        return Table(self.caption, tuple(self.columns[place] for place in kept), rows)


@dataclass(frozen=True, slots=True)
class Paragraph:
    parts: Line
    kind: Literal["text", "answer", "caveat"] = "text"
    """An answer or a caveat of the first screen looks different from other text."""


@dataclass(frozen=True, slots=True)
class Bullets:
    items: tuple[Line, ...]
    notices: bool = False
    """Whether they are what a reader must know before the numbers."""


@dataclass(frozen=True, slots=True)
class Exhibit:
    """One case in full: a title and entries, each with a label of this project."""

    title: Line
    entries: tuple[Entry, ...]
    above: Line | None = None
    """If the entries are to be compared, such as two answers: what both are about. A wide screen has columns."""


@dataclass(frozen=True, slots=True)
class ChartBlock:
    chart: Chart
    beside: str
    """Where the same numbers are in a table."""


Block = Paragraph | Bullets | Table | Exhibit | ChartBlock


@dataclass(frozen=True, slots=True)
class Section:
    title: Line
    blocks: tuple[Block, ...] = ()
    sections: tuple[Section, ...] = ()
    short: str = ""
    """Its name in the navigation, if not the title. Text of this project."""
    part: str = ""
    """A heading in the navigation that begins with this section."""
    anchor: str = ""
    """Its id on the page, if others link to it."""
    folded: bool = False
    """Closed on a page until the reader opens it; open in print. Only for a section inside another."""

    def all_blocks(self) -> Iterator[Block]:
        yield from self.blocks
        for section in self.sections:
            yield from section.all_blocks()


@dataclass(frozen=True, slots=True)
class Contents:
    """A whole report."""

    title: Line
    about: Line
    """When, with what, and how much was asked: one line below the title."""
    first: tuple[Block, ...]
    """The answer, before all sections."""
    sections: tuple[Section, ...]
    notices: tuple[Line, ...] = ()
    """All of them; which are shown where is decided by `first` and `sections`."""

    def charts(self) -> list[Chart]:
        blocks = (*self.first, *(block for section in self.sections for block in section.all_blocks()))
        return [block.chart for block in blocks if isinstance(block, ChartBlock)]
