"""Pages as HTML: no script, nothing loaded from elsewhere, and a policy that allows neither.

All text is escaped after control and direction characters are removed. `shell` is the frame of every page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain, groupby

from ..findings.human_comparison import CounselorShare
from ..text.escape import plain
from ..trials.terms import Term
from .charts import NARROW_FORMS, Chart, ForestChart, svg
from .document import (
    NOTHING,
    Block,
    Bullets,
    Cell,
    Column,
    Contents,
    Exhibit,
    Figure,
    Link,
    Linked,
    Paragraph,
    Passage,
    Proportion,
    Section,
    SideBySide,
    Table,
    Text,
    Words,
    own_address,
    shown,
)
from .glossary import first_uses
from .links import INDEX, SAFE_ADDRESS, slug
from .page_style import STYLE, opening, policy

__all__ = ["STYLE", "NavigationLink", "blocks_html", "html", "line_html", "policy", "sections_html", "shell"]

OPEN_EXHIBITS = 3
"""Cases in a row that are shown open; a reader opens the rest."""
OPEN_ROWS = 40
"""Rows of the longest table that is shown open."""
_PUNCTUATION = re.compile(r"([:/_@-])(?=[A-Za-z0-9])")


@dataclass(frozen=True, slots=True)
class NavigationLink:
    text: str
    href: str
    """Of our own pages or places, see `document.own_address`."""
    part: str = ""
    """A heading shown before it."""


def shell(title: str, body: Iterable[str], *, navigation: Sequence[NavigationLink] = ()) -> str:
    """A whole page: its head, a navigation that stays in view, and a body of lines that are HTML already."""
    lines = [
        opening(_safe(title)),
        '<div class="page">' if navigation else "<div>",
        *(_navigation(navigation) if navigation else ()),
        '<main id="content" tabindex="-1">',
        *body,
        "</main>",
        "</div>",
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def _navigation(links: Sequence[NavigationLink]) -> Iterator[str]:
    yield '<nav class="sections" aria-label="Sections"><ul>'
    for link in links:
        if link.part:
            yield f'<li class="part">{_safe(link.part)}</li>'
        href = own_address(link.href)
        text = _safe(link.text)
        yield f'<li><a href="{escape(href, quote=True)}">{text}</a></li>' if href else f"<li>{text}</li>"
    yield "</ul></nav>"


def html(contents: Contents) -> str:
    """A whole report as one page."""
    body = [f"<h1>{_line(contents.title)}</h1>"]
    if contents.about:
        body.append(f'<p class="about">{_line(contents.about)}</p>')
    body += blocks_html(contents.first)
    body += sections_html(contents.sections)
    title = "".join(shown(cell) for cell in contents.title)
    return shell(title, body, navigation=navigation_of(contents.sections))


def navigation_of(sections: Sequence[Section]) -> list[NavigationLink]:
    """One link per section."""
    return [
        NavigationLink(section.short or _plain(section.title), f"#{_id(section, place)}", section.part)
        for place, section in enumerate(sections, 1)
    ]


def sections_html(sections: Sequence[Section]) -> Iterator[str]:
    """Sections as lines of HTML. A term is explained in the section that uses it first."""
    terms = first_uses(sections)
    for place, section in enumerate(sections, 1):
        yield from _section(section, 2, _id(section, place), terms[place - 1])


def blocks_html(blocks: Iterable[Block], level: int = 2) -> Iterator[str]:
    """Blocks as lines of HTML; `level` is that of a heading inside them."""
    for is_exhibit, group in groupby(blocks, lambda block: isinstance(block, Exhibit | SideBySide)):
        listed = list(group)
        if not is_exhibit or len(listed) <= OPEN_EXHIBITS + 1:
            yield from chain.from_iterable(_block(block, level) for block in listed)
            continue
        yield from chain.from_iterable(_block(block, level) for block in listed[:OPEN_EXHIBITS])
        more = (_block(block, level) for block in listed[OPEN_EXHIBITS:])
        yield from _folded(f"{len(listed) - OPEN_EXHIBITS} more cases", chain.from_iterable(more))


def _folded(summary: str, lines: Iterable[str]) -> Iterator[str]:
    """Lines that a reader opens; print shows them."""
    yield f'<details class="fold"><summary>{_safe(summary)}</summary>'
    yield from lines
    yield "</details>"


def line_html(cells: Sequence[Cell]) -> str:
    """Cells as HTML, one after the other."""
    return _line(cells)


def _plain(cells: Sequence[Cell]) -> str:
    return "".join(shown(cell) for cell in cells)


def _id(section: Section, place: int) -> str:
    return section.anchor or f"s-{place}-{slug(_plain(section.title))}"


def _section(section: Section, level: int, name: str, terms: Sequence[Term] = ()) -> Iterator[str]:
    heading = f'<h{level} id="{name}">{_line(section.title)}</h{level}>'
    yield f'<section aria-labelledby="{name}">'
    yield f'<details class="fold"><summary>{heading}</summary>' if section.folded else heading
    if terms:
        yield from _terms(terms)
    yield from blocks_html(section.blocks, level + 1)
    for place, part in enumerate(section.sections, 1):
        yield from _section(part, level + 1, part.anchor or f"{name}-{place}")
    yield "</details></section>" if section.folded else "</section>"


def _terms(terms: Sequence[Term]) -> Iterator[str]:
    names = ", ".join(_safe(term.name) for term in terms)
    yield f'<details class="terms"><summary>What these words mean: {names}</summary><dl>'
    yield from (f"<dt><dfn>{_safe(term.name)}</dfn></dt><dd>{_safe(term.meaning)}</dd>" for term in terms)
    yield "</dl></details>"


def _block(block: Block, level: int) -> Iterator[str]:
    match block:
        case Paragraph():
            kind = f' class="{block.kind}"' if block.kind != "text" else ""
            yield f"<p{kind}>{_line(block.parts)}</p>"
        case Bullets():
            yield '<ul class="notices">' if block.notices else "<ul>"
            yield from (f"<li>{_line(item)}</li>" for item in block.items)
            yield "</ul>"
        case Table() if len(block.rows) > OPEN_ROWS:
            yield from _folded(f"{block.caption} ({len(block.rows)} rows)", _table(block))
        case Table():
            yield from _table(block)
        case Exhibit():
            yield "<article>"
            yield f"<h{level}>{_line(block.title)}</h{level}>"
            yield "<dl>"
            for label, cells in block.entries:
                yield f"<dt>{_safe(label)}</dt><dd>{_line(cells)}</dd>"
            yield "</dl>"
            yield "</article>"
        case SideBySide():
            yield "<article>"
            yield f"<h{level}>{_line(block.title)}</h{level}>"
            yield f"<p>{_line(block.above)}</p>"
            yield '<dl class="sides">'
            for label, cells in block.sides:
                yield f"<div><dt>{_safe(label)}</dt><dd>{_line(cells)}</dd></div>"
            yield "</dl>"
            yield "</article>"
        case Figure():
            yield from _figure(block.chart, block.beside)


def _figure(chart: Chart, beside: str) -> Iterator[str]:
    title = _safe(chart.title)
    if isinstance(chart, NARROW_FORMS):
        yield f'<figure class="both{" forest" if not (isinstance(chart, ForestChart) and chart.stacked) else ""}">'
        yield svg(chart, alone=False).rstrip("\n")
        yield svg(chart, alone=False, narrow=True).rstrip("\n")
    else:
        yield "<figure>"
        yield f'<div class="box" role="region" aria-label="{title}, chart" tabindex="0">'
        yield svg(chart, alone=False).rstrip("\n")
        yield "</div>"
    yield f"<figcaption>{title}. {_safe(beside)}</figcaption>"
    yield "</figure>"


def _table(table: Table) -> Iterator[str]:
    columns, rows = table.in_report()
    caption = _safe(table.caption)
    if not rows:
        yield f"<p>{caption} (none)</p>"
        return
    yield f'<div class="box" role="region" aria-label="{caption}" tabindex="0">'
    yield '<table class="cards">'
    yield f"<caption><span>{caption}</span></caption>"
    heads = [f'<th scope="col"{_aligned(column.kind)}>{_safe(column.heading)}</th>' for column in columns]
    yield f"<thead><tr>{''.join(heads)}</tr></thead>"
    yield "<tbody>"
    labels = [f' data-label="{_safe(column.heading)}"' for column in columns]
    for whole, row in zip(table.rows, rows, strict=True):
        evidence = _evidence(whole)
        cells = [
            f"<td{_aligned(column.kind)}{label}>{_leading_to(evidence, column, cell)}</td>"
            for column, label, cell in zip(columns, labels, row, strict=True)
        ]
        if columns[0].kind == "text":
            cells[0] = f'<th scope="row">{_cell(row[0])}</th>'
        yield f"<tr>{''.join(cells)}</tr>"
    yield from ("</tbody>", "</table>", "</div>")


def _evidence(row: Sequence[Cell]) -> str | None:
    """Where the evidence behind a row is: that of its scenario or question, if it has one, or else of its target."""
    found = [href for cell in row if isinstance(cell, Linked) and (href := cell.address()) and href[0] != "#"]
    return next((href for href in found if not href.endswith(INDEX)), found[0] if found else None)


def _leading_to(evidence: str | None, column: Column, cell: Cell) -> str:
    """A cell; a number leads to the evidence of its row. The name of the row does too, so Tab stops only there."""
    if evidence is None or column.kind in ("text", "word") or isinstance(cell, Link | Linked) or shown(cell) == NOTHING:
        return _cell(cell)
    if isinstance(cell, Proportion) and isinstance(cell.share, CounselorShare):
        return _cell(cell)  # published counts, which are in a table of their own
    return f'<a class="number" tabindex="-1" href="{escape(evidence, quote=True)}">{_cell(cell)}</a>'


def _aligned(kind: str) -> str:
    return f' class="{kind}"' if kind in ("text", "word") else ""


def _line(cells: Sequence[Cell]) -> str:
    return "".join(_cell(cell) for cell in cells)


def _cell(cell: Cell) -> str:  # noqa: PLR0911 - one return for each kind of cell
    match cell:
        case Words():
            text = escape(cell.text, quote=True)
            text = f'<span class="whole">{text}</span>' if cell.whole else text
            return f"<strong>{text}</strong>" if cell.strong else text
        case Text():
            text = _safe(cell.text)
            long = ' class="long"' if len(text) > 40 else ""
            return f"<code{long}>{text}</code>" if cell.code else f"<bdi>{_breakable(text)}</bdi>"
        case Link():
            address = _safe(cell.address)
            if not SAFE_ADDRESS.fullmatch(cell.address):
                return address
            return f'<a href="{address}" rel="noopener noreferrer">{address}</a>'
        case Linked():
            href = cell.address()
            return f'<a href="{escape(href, quote=True)}">{_cell(cell.cell)}</a>' if href else _cell(cell.cell)
        case Passage():
            pieces = [f"<mark>{_kept(text)}</mark>" if marked else _kept(text) for text, marked in cell.pieces]
            return f"<bdi>“{''.join(pieces)}”</bdi>" if pieces else NOTHING
        case _:
            return escape(shown(cell), quote=True)


def _safe(text: str) -> str:
    return escape(plain(text), quote=True)


def _breakable(text: str) -> str:
    """Escaped text in which a long name may break after its punctuation, such as `provider:family/model-name`."""
    return _PUNCTUATION.sub(r"\1<wbr>", text) if " " not in text and len(text) > 14 else text


def _kept(text: str) -> str:
    """Escaped text, with a space at either end kept."""
    before, after = " " * (text[:1] == " "), " " * (text[-1:] == " " and len(text) > 1)
    return f"{before}{_safe(text)}{after}"
