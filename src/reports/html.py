"""A report as one page of HTML: no script, nothing loaded from elsewhere, and a policy that allows neither.

The page is `templates/html/report.html.j2`; its parts are macros in `document.html.j2`, which other pages use, too.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path

from markupsafe import Markup

from ..findings.human_comparison import CounselorShare
from ..text.escape import plain
from ..trials.terms import TERMS, Term
from . import template
from .charts import NARROW_FORMS, Chart, ForestChart, svg
from .document import (
    NOTHING,
    Block,
    Bullets,
    Cell,
    ChartBlock,
    Column,
    Contents,
    Exhibit,
    Paragraph,
    Section,
    Table,
    own_address,
    shown,
)
from .links import INDEX, SAFE_ADDRESS, slug

GENERATOR = "medicare-eval"
"""The mark by which a page of ours is recognized."""
STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
OPEN_EXHIBITS = 3
"""Cases in a row that are shown open; a reader opens the rest."""
OPEN_ROWS = 40
"""Rows of the longest table that is shown open."""
_BREAK = re.compile(r"(?<=[:/_@-])(?=[A-Za-z0-9])")


def html(contents: Contents) -> str:
    """A whole report as one page."""
    return page("report", shown(contents.title), contents=contents)


def page(name: str, title: str, *, style: str = STYLE, **values: object) -> str:
    """A page of ours, with its style and its policy."""
    css = Markup(style)  # noqa: S704 - a file of this package
    return template.html(name, title=title, style=css, policy=policy(style), generator=GENERATOR, **values)


@cache
def policy(style: str = STYLE) -> str:
    """The content security policy of a page: nothing is loaded, run or sent, and only this style is applied."""
    digest = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii")
    return f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"


def contents_html(contents: Contents) -> Markup:
    return template.macro("document", "contents", contents)


def blocks_html(blocks: Sequence[Block]) -> Markup:
    return template.macro("document", "blocks", blocks)


def sections_html(sections: Sequence[Section]) -> Markup:
    """Sections as HTML. A term is explained in the section that uses it first."""
    return template.macro("document", "sections", sections)


def line_html(cells: Sequence[Cell]) -> Markup:
    return template.macro("document", "line", cells)


# What the templates ask of the parts of a document


def identity(section: Section, place: int) -> str:
    """The id of a section on the page."""
    return section.anchor or f"s-{place}-{slug(shown(section.title))}"


def folded(blocks: Sequence[Block]) -> Iterator[tuple[str, Sequence[Block]]]:
    """Blocks, and under which words a reader opens them: all but the first of many cases, and long tables."""
    for of_cases, group in groupby(blocks, lambda block: isinstance(block, Exhibit)):
        listed = list(group)
        if of_cases and len(listed) > OPEN_EXHIBITS + 1:
            yield "", listed[:OPEN_EXHIBITS]
            yield f"{len(listed) - OPEN_EXHIBITS} more cases", listed[OPEN_EXHIBITS:]
            continue
        for one in listed:
            long = isinstance(one, Table) and len(one.rows) > OPEN_ROWS
            yield f"{one.caption} ({len(one.rows)} rows)" if isinstance(one, Table) and long else "", [one]


def evidence(row: Sequence[Cell]) -> str | None:
    """Where the evidence behind a row is: that of its scenario or question, if it has one, or else of its target."""
    found = [href for cell in row if (href := cell.address) and href[0] != "#"]
    return next((href for href in found if not href.endswith(INDEX)), found[0] if found else None)


def leads(column: Column, cell: Cell) -> bool:
    """Whether a cell leads to the evidence of its row. The name of the row does too, so Tab stops only there."""
    if column.kind in ("text", "word") or cell.href or cell.kind == "link" or cell.text == NOTHING:
        return False
    return not isinstance(cell.source, CounselorShare)  # published counts, which are in a table of their own


def drawings(chart: Chart) -> list[Markup]:
    """A chart as it is drawn for a page: if it has a form for phones, in two forms."""
    forms = (False, True) if isinstance(chart, NARROW_FORMS) else (False,)
    return [Markup(svg(chart, alone=False, narrow=narrow).rstrip("\n")) for narrow in forms]  # noqa: S704 - ours


def breaks(name: str) -> list[str]:
    """The parts of a long name, which may break after its punctuation, such as `provider:family/model-name`."""
    return _BREAK.split(name) if " " not in name and len(name) > 14 else [name]


def kept(text: str) -> str:
    """Text of others in the middle of a line: on one line, with a space at either end kept."""
    before, after = " " * (text[:1] == " "), " " * (text[-1:] == " " and len(text) > 1)
    return f"{before}{plain(text)}{after}"


def first_uses(sections: Sequence[Section]) -> list[tuple[Term, ...]]:
    """For each section, the terms that it is the first to use. The glossary itself uses none."""
    left = list(TERMS)
    found: list[tuple[Term, ...]] = []
    for section in sections:
        text = "" if shown(section.title) == "Glossary" else " ".join(_own_words(section))
        used = tuple(term for term in left if term.found_in(text))
        left = [term for term in left if term not in used]
        found.append(used)
    return found


def _own_words(section: Section) -> Iterator[str]:
    """The text of this project in a section; what others wrote has no part in it."""
    yield from _of_cells(section.title)
    for block in section.blocks:
        yield from _of_block(block)
    for part in section.sections:
        yield from _own_words(part)


def _of_block(block: Block) -> Iterator[str]:
    match block:
        case Paragraph():
            yield from _of_cells(block.parts)
        case Bullets():
            for item in block.items:
                yield from _of_cells(item)
        case Table():
            yield block.caption
            yield from (column.heading for column in block.in_report().columns)
        case Exhibit():
            yield from (label for label, _ in block.entries)
        case ChartBlock():
            yield f"{block.chart.title} {block.beside}"


def _of_cells(cells: Sequence[Cell]) -> Iterator[str]:
    return (cell.text for cell in cells if cell.kind in ("words", "strong", "whole"))


template.environment("html").filters["kept"] = kept
template.environment("html").globals.update(
    breaks=breaks, drawings=drawings, evidence=evidence, first_uses=first_uses, folded=folded, identity=identity,
    is_forest=lambda chart: not (isinstance(chart, ForestChart) and chart.stacked), is_web=SAFE_ADDRESS.fullmatch,
    kind_of=lambda block: type(block).__name__.lower(), leads=leads, own_address=own_address, shown=shown,
)  # fmt: skip
