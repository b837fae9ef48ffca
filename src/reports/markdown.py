"""The report as Markdown: readable as plain text, and nothing that a model wrote acts as markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ..text.escape import inert
from .document import NOTHING, Block, Bullets, Cell, ChartBlock, Contents, Exhibit, Paragraph, Section, Table

OPEN, CLOSE = "⟦", "⟧"
"""Around marked words; in the reply itself these characters become plain brackets."""
_SAFE_ADDRESS = re.compile(r"https?://[A-Za-z0-9./_~%?=&#:+,;@-]+")
_CODE = re.compile(r"[A-Za-z0-9.@_:-]+")


def markdown(contents: Contents) -> str:
    lines = [f"# {_line(contents.title)}", ""]
    if contents.about:
        lines += [_line(contents.about), ""]
    for block in contents.first:
        lines += [*_block(block), ""]
    for section in contents.sections:
        lines += _section(section, 2)
    return "\n".join(lines).rstrip("\n") + "\n"


def notice_lines(notices: Iterable[Sequence[Cell]]) -> list[str]:
    """Notices as a block quote, one paragraph each."""
    return [line for notice in notices for line in (f"> **{_line(notice)}**", ">")][:-1]


def _section(section: Section, level: int) -> Iterator[str]:
    yield from (f"{'#' * level} {_line(section.title)}", "")
    for block in section.blocks:
        yield from _block(block)
        yield ""
    for part in section.sections:
        yield from _section(part, level + 1)


def _block(block: Block) -> Iterator[str]:
    match block:
        case Paragraph():
            yield _line(block.parts)
        case Bullets() if block.notices:
            yield from notice_lines(block.items)
        case Bullets():
            yield from (f"- {_line(item)}" for item in block.items)
        case Table():
            yield from _table(block.in_report())
        case Exhibit():
            yield f"- {_line(block.title)}"
            if block.above is not None:
                yield f"  - {_line(block.above)}"
            yield from (f"  - {label}: {_line(cells)}" for label, cells in block.entries)
        case ChartBlock():
            yield f"![{_inert(block.chart.title)}](charts/{block.chart.name}.svg)"
            yield from ("", block.beside)


def _table(table: Table) -> Iterator[str]:
    yield from (table.caption, "")
    if not table.rows:
        yield "(none)"
        return
    yield _row([column.heading for column in table.columns])
    yield _row(["---" if column.kind in ("text", "word") else "---:" for column in table.columns])
    for row in table.rows:
        yield _row([_cell(cell) for cell in row])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _line(cells: Sequence[Cell]) -> str:
    return "".join(_cell(cell) for cell in cells)


def _cell(cell: Cell) -> str:
    href = None if cell.pages_only else cell.address
    return f"[{_unlinked(cell)}]({href})" if href else _unlinked(cell)


def _unlinked(cell: Cell) -> str:  # noqa: PLR0911 - one return for each kind of cell
    match cell.kind:
        case "words" | "whole" | "number":
            return cell.text
        case "strong":
            return f"**{cell.text}**"
        case "code" if _CODE.fullmatch(cell.text):
            return f"`{cell.text}`"
        case "link" if _SAFE_ADDRESS.fullmatch(cell.text):
            return f"<{cell.text}>"
        case "passage":
            return f"“{_line(cell.parts)}”" if cell.parts else NOTHING
        case "line":
            return _line(cell.parts)
        case "marked":
            return f"{OPEN}{_inert(cell.text)}{CLOSE}"
        case _:
            return _inert(cell.text)


def _inert(text: str) -> str:
    """Inert text that cannot contain marks, with a space at either end kept: `inert` strips both."""
    before, after = " " * (text[:1] == " "), " " * (text[-1:] == " " and len(text) > 1)
    return f"{before}{inert(text.replace(OPEN, '[').replace(CLOSE, ']'))}{after}"
