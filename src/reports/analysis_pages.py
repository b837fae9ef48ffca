"""Pages of `compare`, `drift` and `sensitivity`: the answer first, then a chart, tables, methods and notices.

They have the frame and the look of the report. `write_page` never replaces a file that is not such a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ..stats.comparison import Difference
from ..text.rounded import percent
from .analysis_sentences import interval_text, point_range
from .document import NOTHING, Block, Bullets, Cell, Contents, Paragraph, Section, Table, shown, text_cell, words
from .forest import ForestPanel, Mark, Tick
from .html import GENERATOR, html
from .report_folder import require_own, write_own

SENTENCES = 6
"""Sentences on the first screen."""
MISSING_COLUMN = "with missing answers at the ends, points"
CHART_ROWS = 24
_MARK = f'<meta name="generator" content="{GENERATOR}">'
_STEPS = (0.05, 0.1, 0.2, 0.25, 0.5, 1.0)
"""Ends of the scale of differences."""


def require_page(path: Path) -> None:
    """Refuse a place that a page cannot be written to, before anything is computed. Errors as of `require_own`."""
    require_own(path, _MARK, "page")


def write_page(page: Contents, path: Path) -> Path:
    """Write a page to a file; only an earlier page of ours is replaced. Errors as of `require_own`."""
    require_page(path)
    return write_own(path, html(page))


def answers(sentences: Sequence[tuple[Cell, ...]], where: str) -> list[Block]:
    """Sentences of the first screen; if there are more, how many, and where they are."""
    blocks: list[Block] = [Paragraph(one, "answer") for one in sentences[:SENTENCES]]
    if len(sentences) > SENTENCES:
        blocks.append(Paragraph(words(f"{SENTENCES} of {len(sentences)} shown; {where}.")))
    return blocks


def caveat(names: Iterable[str], notices: Sequence[str]) -> Paragraph:
    """Whether it is a demonstration, and that it is no advice."""
    cells: list[Cell] = []
    if any(name.startswith("fake:") for name in names):
        cells.append(Cell("A demonstration, not a result: fake targets return canned text. ", "strong"))
    cells.append(Cell("For research only, not advice. Judges make mistakes too"))
    cells.append(Cell("; see the notices below." if notices else "."))
    return Paragraph(tuple(cells), "caveat")


def methods_section(texts: Iterable[str]) -> Section:
    """The texts may name targets."""
    return Section(words("Methods"), tuple(Paragraph((text_cell(text),)) for text in texts))


def notice_sections(notices: Sequence[str]) -> tuple[Section, ...]:
    if not notices:
        return ()
    return (Section(words("Notices"), (Bullets(tuple((text_cell(one),) for one in notices), notices=True),)),)


def difference_panel(title: str, found: Iterable[Difference]) -> ForestPanel:
    """A scale in points that is as long to the left as to the right, with a line at no difference."""
    ends = [abs(end) for one in found for end in (one.mean, one.low, one.high) if end is not None]
    reach = next((step for step in _STEPS if step >= max(ends, default=0.0)), 1.0)
    ticks = tuple(Tick(part * reach, signed_points(part * reach)) for part in (-1.0, -0.5, 0.0, 0.5, 1.0))
    return ForestPanel(title, ticks, reference=0.0)


def difference_mark(found: Difference) -> Mark:
    if found.mean is None:
        return Mark(None, None, None, "nothing to compare")
    value = signed_points(found.mean)
    if found.low is None or found.high is None:
        return Mark(found.mean, None, None, value, interval_text(found).split(",")[0])
    # A comma takes less room than a word.
    span = point_range(found.low, found.high).replace(" to ", ", ")
    return Mark(found.mean, found.low, found.high, f"{value} ({span})")


def signed_points(value: float) -> str:
    """`+8`, `−3`, `0`; with a decimal if a whole number would hide it."""
    text = percent(abs(value), 1 if 0 < abs(value) < 0.0095 or abs(value) == 0.025 else 0)
    if not float(text):
        return "0"
    return f"{'+' if value > 0 else '−'}{text}"


def without_empty(table: Table, heading: str) -> Table:
    """The table without the column of this heading, if all of its cells are empty."""
    place = [column.heading for column in table.columns].index(heading)
    if any(shown(row[place]) != NOTHING for row in table.rows):
        return table
    rows = tuple((*row[:place], *row[place + 1 :]) for row in table.rows)
    return Table(table.caption, (*table.columns[:place], *table.columns[place + 1 :]), rows)


def p_text(value: float | None) -> str:
    return NOTHING if value is None else "<0.001" if value < 0.0005 else f"{value:.3f}"
