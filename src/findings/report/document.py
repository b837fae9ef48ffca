"""What a report consists of: sections, tables of typed cells, exhibits, charts. Markdown, HTML and CSV are made of it.

A cell knows what it is (a count, a mean with its interval, a difference), and is put into words here, once, so that no
two renderings can disagree. `Words` are this project's own; everything else that is text may be anyone's, and a
rendering must make it inert.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ...stats.intervals import Estimate, Share
from .charts import Chart

NOTHING = "–"


@dataclass(frozen=True, slots=True)
class Words:
    """This project's own words: literals of this package, without markup."""

    text: str
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """Anyone's words: names, titles, what a model or a judge wrote."""

    text: str
    code: bool = False
    """An id or a hash."""


@dataclass(frozen=True, slots=True)
class Count:
    value: int


@dataclass(frozen=True, slots=True)
class Of:
    """So many of so many."""

    count: int
    n: int


@dataclass(frozen=True, slots=True)
class Mean:
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Proportion:
    """A share with its interval."""

    share: Share


@dataclass(frozen=True, slots=True)
class Part:
    """A share as a percentage of n, without an interval."""

    count: int
    n: int


@dataclass(frozen=True, slots=True)
class Gap:
    """A difference of two shares, in percentage points; without an interval where none is meant."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    """Of the smaller side: it decides how many places are shown."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number with an interval, if there is one."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Money:
    amount: float | None


@dataclass(frozen=True, slots=True)
class Link:
    """An address from an answer key or the baseline; never from a reply."""

    address: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a reply, with the words that matter marked."""

    pieces: tuple[tuple[str, bool], ...]


Cell = Words | Text | Count | Of | Mean | Proportion | Part | Gap | Number | Money | Link | Passage


def shown(cell: Cell) -> str:  # noqa: PLR0911 - one return for each kind of cell
    """A cell in words; a passage without its marks."""
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
        case Money():
            return dollars(cell.amount)
        case Link():
            return cell.address
        case Passage():
            return "".join(text for text, _ in cell.pieces)


def percent(share: float, n: int) -> str:
    """A share in percent, with no more places than n supports, and none below a hundred."""
    return f"{100 * share:.{0 if n < 100 else 1}f}"


def estimate_text(estimate: Estimate) -> str:
    """0.93 (0.78–1.00); where the spread is not known, the number of values instead of an interval."""
    if estimate.mean is None:
        return NOTHING
    interval = f"n={estimate.n}" if estimate.low is None else f"{estimate.low:.2f}–{estimate.high:.2f}"
    return f"{estimate.mean:.2f} ({interval})"


def share_text(share: Share) -> str:
    """40% (17–69%), or a dash where there is nothing."""
    if share.value is None or share.low is None or share.high is None:
        return NOTHING
    value, low, high = (percent(one, share.n) for one in (share.value, share.low, share.high))
    return f"{value}% ({low}–{high}%)"


def _gap_text(gap: Gap) -> str:
    if gap.value is None:
        return NOTHING
    value = _signed(gap.value, gap.n)
    if gap.low is None or gap.high is None:
        return value
    return f"{value} ({_signed(gap.low, gap.n)} to {_signed(gap.high, gap.n)})"


def _signed(value: float, n: int) -> str:
    text = percent(abs(value), n)
    return text if not float(text) else f"{'+' if value > 0 else '−'}{text}"


def _number_text(number: Number) -> str:
    if number.value is None:
        return NOTHING
    value = f"{number.value:.2f}".replace("-", "−")
    if number.low is None or number.high is None:
        return value
    low, high = (f"{one:.2f}".replace("-", "−") for one in (number.low, number.high))
    return f"{value} ({low} to {high})" if "−" in low + high else f"{value} ({low}–{high})"


def dollars(amount: float | None) -> str:
    return "unknown" if amount is None else f"${amount:,.4f}" if 0 < amount < 1 else f"${amount:,.2f}"


Kind = Literal["text", "word", "count", "mean", "share", "other"]


@dataclass(frozen=True, slots=True)
class Column:
    heading: str
    """Our own words."""
    kind: Kind = "count"
    """Decides how it is aligned, and into which columns a CSV file spreads it."""
    key: str = ""
    """Its name in a CSV file."""
    where: Literal["everywhere", "csv"] = "everywhere"


@dataclass(frozen=True, slots=True)
class Table:
    caption: str
    """Our own words."""
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def in_report(self) -> tuple[tuple[Column, ...], list[tuple[Cell, ...]]]:
        """Columns and rows as a reader sees them: without what only files need."""
        kept = [place for place, column in enumerate(self.columns) if column.where == "everywhere"]
        return tuple(self.columns[place] for place in kept), [tuple(row[p] for p in kept) for row in self.rows]


@dataclass(frozen=True, slots=True)
class Paragraph:
    parts: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Bullets:
    items: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Exhibit:
    """One case, shown: a name and labeled entries."""

    title: tuple[Cell, ...]
    entries: tuple[tuple[str, tuple[Cell, ...]], ...]
    """Label, in our words, and what stands there."""


@dataclass(frozen=True, slots=True)
class Figure:
    chart: Chart
    beside: str
    """Where the same numbers stand as a table."""


Block = Paragraph | Bullets | Table | Exhibit | Figure


@dataclass(frozen=True, slots=True)
class Section:
    title: tuple[Cell, ...]
    blocks: tuple[Block, ...] = ()
    sections: tuple[Section, ...] = ()


@dataclass(frozen=True, slots=True)
class Contents:
    """A whole report."""

    title: tuple[Cell, ...]
    notices: tuple[tuple[Cell, ...], ...]
    sections: tuple[Section, ...]
    per_scenario: Table
    per_question: Table
    """Too long for a page: for its CSV file alone."""

    def charts(self) -> list[Chart]:
        return [block.chart for block in _blocks(self.sections) if isinstance(block, Figure)]


def _blocks(sections: Sequence[Section]) -> Iterator[Block]:
    for section in sections:
        yield from section.blocks
        yield from _blocks(section.sections)


def words(text: str) -> tuple[Words]:
    """A run of our own words, where a sequence of cells is wanted."""
    return (Words(text),)


def say(*parts: str | Cell) -> tuple[Cell, ...]:
    """A sentence of our own words and of cells."""
    return tuple(Words(part) if isinstance(part, str) else part for part in parts)
