"""The parts of a report: sections, tables of typed cells, exhibits, charts. Markdown, HTML and CSV are made from it.

A cell has a type (a count, a mean with its interval, a difference) and is turned into text here, once, so that
renderings cannot disagree. `Words` are written by this project; all other text may come from anyone, and a rendering
must make it inert.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

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


@dataclass(frozen=True, slots=True)
class Words:
    """Text of this project: literals of this package, without markup."""

    text: str
    strong: bool = False
    whole: bool = False
    """Not broken over two lines, such as a range."""


@dataclass(frozen=True, slots=True)
class Text:
    """Text of others: names, titles, what a model or a judge wrote."""

    text: str
    code: bool = False
    """An id or a hash."""


@dataclass(frozen=True, slots=True)
class Count:
    value: int


@dataclass(frozen=True, slots=True)
class Of:
    """`3 of 10`."""

    count: int
    n: int


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean of scores with its interval."""

    estimate: Estimated


@dataclass(frozen=True, slots=True)
class Proportion:
    """A share with its interval."""

    share: AnyShare


@dataclass(frozen=True, slots=True)
class Part:
    """A share as a percentage of n, without an interval."""

    count: int
    n: int


@dataclass(frozen=True, slots=True)
class Gap:
    """A difference of two shares, in percentage points, with or without an interval."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    """Of the smaller sample; decides how many decimals are shown."""
    mark: str = ""
    """Behind the number, for a note."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number, with an interval if there is one."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Range:
    """The lowest and the highest that a share or a mean could be; a dash if nothing is missing."""

    low: float | None
    high: float | None
    in_percent: bool = False


@dataclass(frozen=True, slots=True)
class Money:
    amount: float | None


@dataclass(frozen=True, slots=True)
class Link:
    """An address from an answer key or the baseline; never from a reply."""

    address: str


class Piece(NamedTuple):
    text: str
    marked: bool


@dataclass(frozen=True, slots=True)
class Passage:
    """Part of a reply, with the relevant words marked."""

    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Linked:
    """A cell that leads to the evidence behind it: a page of this report, or a place on this page."""

    cell: Cell
    href: str
    """Relative, from `links.py`; an address of any other form is not made a link."""
    pages_only: bool = False
    """Whether only HTML shows it, because so many links would make a table in Markdown hard to read."""

    def address(self) -> str | None:
        return own_address(self.href)


def own_address(href: str) -> str | None:
    """An address of a file of the report, a page of a run in the workbench, or a place on the page; None for others."""
    return href if href and _OWN_ADDRESS.fullmatch(href) else None


Cell = Words | Text | Count | Of | Mean | Proportion | Part | Gap | Number | Range | Money | Link | Passage | Linked


def unlinked(cell: Cell) -> Cell:
    """The cell itself, without a link around it."""
    while isinstance(cell, Linked):
        cell = cell.cell
    return cell


def shown(cell: Cell) -> str:  # noqa: PLR0911, PLR0912 - one return for each kind of cell
    """A cell as text; a passage without its marks."""
    match cell:
        case Words() | Text():
            return cell.text
        case Count():
            return f"{cell.value:,}"
        case Of():
            return f"{cell.count:,} of {cell.n:,}" if cell.n else NOTHING
        case Mean():
            return estimate_text(cell.estimate)
        case Proportion():
            return share_text(cell.share)
        case Part():
            return f"{percent(cell.count / cell.n, cell.n)}% of {cell.n:,}" if cell.n else NOTHING
        case Gap():
            return _gap_text(cell)
        case Number():
            return _number_text(cell)
        case Range():
            return _range_text(cell)
        case Money():
            return money_text(cell.amount)
        case Link():
            return cell.address
        case Passage():
            return "".join(piece.text for piece in cell.pieces)
        case Linked():
            return shown(cell.cell)


def percent(share: float, n: int) -> str:
    """A share in percent, with one decimal if n is at least 100 and none otherwise."""
    return percent_text(share, 0 if n < 100 else 1)


def estimate_text(estimate: Estimated, *, two_lines: bool = False) -> str:
    """0.93 (0.78–1.00), or that there is no interval; on two lines, the value alone then."""
    if estimate.value is None:
        return NOTHING
    if estimate.low is None or estimate.high is None:
        return rounded(estimate.value) if two_lines else f"{rounded(estimate.value)} ({NO_INTERVAL})"
    interval = f"{rounded(estimate.low)}–{rounded(estimate.high)}"
    return f"{rounded(estimate.value)}\n{interval}" if two_lines else f"{rounded(estimate.value)} ({interval})"


def share_text(share: AnyShare) -> str:
    """40% (17–69%), or 40% (no interval), or a dash if there is nothing to count."""
    if share.value is None:
        return NOTHING
    n = size_of(share)
    if share.low is None or share.high is None:
        return f"{percent(share.value, n)}% ({NO_INTERVAL})"
    value, low, high = (percent(one, n) for one in (share.value, share.low, share.high))
    return f"{value}% ({low}–{high}%)"


def size_of(share: AnyShare) -> int:
    """How much is behind a share, which decides how many decimals are shown."""
    return int(share.effective or 0) if isinstance(share, Estimated | Bounded | ClusteredShare) else share.n


def _gap_text(gap: Gap) -> str:
    if gap.value is None:
        return NOTHING
    value = _signed(gap.value, gap.n)
    if gap.low is None or gap.high is None:
        return value
    return f"{value} ({_signed(gap.low, gap.n)} to {_signed(gap.high, gap.n)}){gap.mark}"


def _signed(value: float, n: int) -> str:
    text = percent(abs(value), n)
    return text if not float(text) else f"{'+' if value > 0 else '−'}{text}"


def _range_text(found: Range) -> str:
    if found.low is None or found.high is None:
        return NOTHING
    if found.in_percent:
        return f"{percent_text(found.low, 0)}–{percent_text(found.high, 0)}%"
    return f"{rounded(found.low)}–{rounded(found.high)}"


def _number_text(number: Number) -> str:
    if number.value is None:
        return NOTHING
    value = rounded(number.value).replace("-", "−")
    if number.low is None or number.high is None:
        return value
    low, high = (rounded(one).replace("-", "−") for one in (number.low, number.high))
    return f"{value} ({low} to {high})" if "−" in low + high else f"{value} ({low}–{high})"


Kind = Literal["text", "word", "count", "mean", "share", "other"]


@dataclass(frozen=True, slots=True)
class Column:
    heading: str
    """Text of this project."""
    kind: Kind = "count"
    """Decides the alignment, and into which columns a CSV file splits it."""
    key: str = ""
    """Its name in a CSV file."""
    where: Literal["everywhere", "csv"] = "everywhere"


class VisibleTable(NamedTuple):
    columns: tuple[Column, ...]
    rows: list[tuple[Cell, ...]]


@dataclass(frozen=True, slots=True)
class Table:
    caption: str
    """Text of this project."""
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def in_report(self) -> VisibleTable:
        """Columns and rows without those that only CSV files have."""
        kept = [place for place, column in enumerate(self.columns) if column.where == "everywhere"]
        columns = tuple(self.columns[place] for place in kept)
        return VisibleTable(columns, [tuple(row[place] for place in kept) for row in self.rows])


@dataclass(frozen=True, slots=True)
class Paragraph:
    parts: tuple[Cell, ...]
    kind: Literal["text", "answer", "caveat"] = "text"
    """An answer or a caveat of the first screen looks different from other text."""


@dataclass(frozen=True, slots=True)
class Bullets:
    items: tuple[tuple[Cell, ...], ...]
    notices: bool = False
    """Whether they are what a reader must know before the numbers."""


class Entry(NamedTuple):
    label: str
    """Text of this project."""
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Exhibit:
    """One case in full: a title and labeled entries."""

    title: tuple[Cell, ...]
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Texts to compare, such as two answers: in columns on a wide screen, one below the other on a phone."""

    title: tuple[Cell, ...]
    above: tuple[Cell, ...]
    """What both are about."""
    sides: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    chart: Chart
    beside: str
    """Where the same numbers are in a table."""


Block = Paragraph | Bullets | Table | Exhibit | SideBySide | Figure


@dataclass(frozen=True, slots=True)
class Section:
    title: tuple[Cell, ...]
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


@dataclass(frozen=True, slots=True)
class Contents:
    """A whole report."""

    title: tuple[Cell, ...]
    about: tuple[Cell, ...]
    """When, with what, and how much was asked: one line below the title."""
    first: tuple[Block, ...]
    """The answer, before all sections."""
    notices: tuple[tuple[Cell, ...], ...]
    """All of them; which are shown where is decided by `first` and `sections`."""
    sections: tuple[Section, ...]
    per_scenario: Table
    per_question: Table
    """Too long for a page; only in its CSV file."""

    def charts(self) -> list[Chart]:
        blocks = (*self.first, *_blocks(self.sections))
        return [block.chart for block in blocks if isinstance(block, Figure)]


def _blocks(sections: Sequence[Section]) -> Iterator[Block]:
    for section in sections:
        yield from section.blocks
        yield from _blocks(section.sections)


def words(text: str) -> tuple[Words]:
    """Text of this project as a sequence of cells."""
    return (Words(text),)


def say(*parts: str | Cell) -> tuple[Cell, ...]:
    """A sentence made of this project's text and of cells."""
    return tuple(Words(part) if isinstance(part, str) else part for part in parts)
