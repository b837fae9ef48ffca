"""Sections of a report from templates that are written much like Markdown.

    ## A title                          a section; more #: inside it; `{part=Details, folded}` may follow
    Text over some lines,               a paragraph; `!answer` or `!caveat` at its start changes its look
    with **strong** words
    - an item                           a list; `>` in place of `-` makes each item a notice
    Table: A caption.                   a table; its columns are `heading`, `heading: kind` or `heading: kind key`
    | target: text | answers |
    | {{ name }} | {{ n }} |
    === A title                         a case, with entries below it; `above:` makes them columns to compare
    Asked: {{ question }}

What is put in with `{{ }}` stays apart from these signs: a cell or a line of cells is kept as it is, a string becomes
text of others, a whole number a count. In a table, a line of cells (or of columns) fills as many columns. A block
alone in a line becomes part of the document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args

from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from ..text.count import counted
from . import links, template
from .document import (
    Block,
    Bullets,
    Cell,
    Column,
    Contents,
    Exhibit,
    Line,
    Paragraph,
    Section,
    Table,
    code_cell,
    count_cell,
    gap_cell,
    link_cell,
    linked,
    mean_cell,
    money_cell,
    number_cell,
    of_cell,
    part_cell,
    passage_cell,
    percent,
    range_cell,
    share_cell,
    text_cell,
    words,
)

_MARK = re.compile("\ue000(\\d+)\ue001")
_STRONG = re.compile(r"\*\*(.+?)\*\*")
_HEADING = re.compile(r"(#+) (.*?)(?: \{([^{}]*)\})?")
_PLACES = "a template's values"
"""The name under which a template being filled has the list of what was put in; no template can use it."""


def section(name: str, part: str = "", **values: object) -> Section:
    """The one section that a template makes, or one of its macros."""
    (made,) = sections(name, part, **values)
    return made


def sections(name: str, part: str = "", **values: object) -> tuple[Section, ...]:
    blocks, made = _read(name, values, part)
    assert not blocks, f"the template {name} has text before its first title"
    return made


def contents(name: str, **values: object) -> Contents:
    """A whole page: its title, a line about it, what comes before all sections, and the sections."""
    whole = section(name, "", **values)
    about, *first = whole.blocks
    assert isinstance(about, Paragraph), f"the template {name} does not begin with a line about the page"
    return Contents(whole.title, about.parts, tuple(first), whole.sections)


def blocks(name: str, part: str = "", **values: object) -> tuple[Block, ...]:
    """The blocks of a template without a title, or of one of its macros."""
    found, made = _read(name, values, part)
    assert not made, f"the template {name} has a title"
    return found


def table(name: str, part: str, **values: object) -> Table:
    """The table that a macro of a template makes."""
    (made,) = blocks(name, part, **values)
    assert isinstance(made, Table)
    return made


def line(name: str, part: str, *arguments: object, **values: object) -> Line:
    """The line that a macro of a template makes of its arguments."""
    text, given = _filled(name, values, part, *arguments)
    return _line(" ".join(text.split()), given)


def _read(name: str, values: dict[str, object], part: str = "") -> tuple[tuple[Block, ...], tuple[Section, ...]]:
    return _Reader(*_filled(name, values, part)).document()


def _filled(name: str, values: dict[str, object], part: str = "", *arguments: object) -> tuple[str, list[object]]:
    """A template or one of its macros with marks, and what they are for."""
    given: list[object] = []
    found, values = template.named("sections", name), {**values, _PLACES: given}
    return str(getattr(found.make_module(values), part)(*arguments) if part else found.render(values)), given


@pass_context
def _put_in(context: Context, value: object) -> Markup:
    """A mark in place of a value, which is read as a cell later. What a macro made has marks already."""
    if isinstance(value, Markup):
        return value
    given = context[_PLACES]
    given.append(value)
    return Markup(f"\ue000{len(given) - 1}\ue001")  # noqa: S704 - no text of others is in it


@pass_context
def _verbatim(context: Context, text: str) -> Markup:
    """Paragraphs of a template as text in which no term is explained, because it means something else there."""
    whole = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip()))
    return Markup("").join(_put_in(context, _text(_line(part, context[_PLACES]))) + "\n\n" for part in whole)


template.environment("sections").finalize = _put_in
template.environment("sections").filters.update(
    code=code_cell, counted=lambda n, *names: Cell(counted(n, *names)),
    linked=lambda value, to: linked(as_cells(value)[0], to), percent=lambda found, n: Cell(f"{percent(found, n)}%"),
    strong=lambda text: Cell(str(text), "strong"), whole=lambda text: Cell(str(text), "whole"),
    verbatim=_verbatim, words=lambda text: Cell(str(text)),
)  # fmt: skip
template.environment("sections").globals.update(
    columns=lambda headings, kind="count": [Column(heading, kind) for heading in headings], gap=gap_cell,
    link=link_cell, linked=linked, links=links, mean=mean_cell, money=money_cell, number=number_cell, of=of_cell,
    part=part_cell, passage=passage_cell, share=share_cell, span=range_cell,
)  # fmt: skip


class _Reader:
    def __init__(self, text: str, given: Sequence[object]) -> None:
        self._lines = [*(line.strip() for line in text.split("\n")), ""]
        self._given = given
        self._at = 0

    def document(self) -> tuple[tuple[Block, ...], tuple[Section, ...]]:
        """Blocks before the first title, and the sections."""
        return tuple(self._blocks()), tuple(self._sections(0))

    @property
    def _now(self) -> str | None:
        while self._at < len(self._lines) and not self._lines[self._at]:
            self._at += 1
        return self._lines[self._at] if self._at < len(self._lines) else None

    def _sections(self, above: int) -> Iterator[Section]:
        while (now := self._now) and (found := _HEADING.fullmatch(now)) and len(found[1]) > above:
            self._at += 1
            given = (option.partition("=")[::2] for option in (found[3] or "").split(", ") if option)
            options: dict[str, Any] = {name: _text(_line(text, self._given)) or True for name, text in given}
            inner = tuple(self._blocks())
            yield Section(_line(found[2], self._given), inner, tuple(self._sections(len(found[1]))), **options)

    def _blocks(self) -> Iterator[Block]:
        while (now := self._now) and not _HEADING.fullmatch(now):
            if (mark := _MARK.fullmatch(now)) and (found := _alone(self._given[int(mark[1])])) is not None:
                self._at += 1
                yield from found
            elif now.startswith("Table: "):
                yield self._table()
            elif now.startswith("=== "):
                yield self._exhibit()
            elif now.startswith(("- ", "> ")):
                yield Bullets(tuple(self._items(now[:2])), notices=now[0] == ">")
            else:
                text = " ".join(self._paragraph())
                kind: Literal["text", "answer", "caveat"] = "text"
                if text.startswith(("!answer ", "!caveat ")):
                    kind, text = ("answer" if text[1] == "a" else "caveat"), text[8:]
                yield Paragraph(_line(text, self._given), kind)

    def _paragraph(self) -> Iterator[str]:
        """Lines up to an empty one."""
        while self._lines[self._at]:
            yield self._lines[self._at]
            self._at += 1

    def _items(self, sign: str) -> Iterator[Line]:
        items: list[list[str]] = []
        for text in self._paragraph():
            if text.startswith(sign):
                items.append([text.removeprefix(sign)])
            else:
                items[-1].append(text)
        return (_line(" ".join(item), self._given) for item in items)

    def _table(self) -> Table:
        caption, heads, *rows = self._paragraph()
        columns = [column for head in _fields(heads) for column in self._columns(head)]
        made = tuple(tuple(cell for field in _fields(row) for cell in self._cells(field)) for row in rows)
        return Table(_text(_line(caption.removeprefix("Table: "), self._given)), tuple(columns), made)

    def _columns(self, head: str) -> Iterator[Column]:
        mark = _MARK.fullmatch(head)
        value = self._given[int(mark[1])] if mark else None
        if isinstance(value, Column):
            yield value
        elif (
            isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(one, Column) for one in value)
        ):
            yield from value
        else:
            heading, _, rest = head.partition(": ")
            kind, _, key = rest.partition(" ")
            yield Column(_text(_line(heading, self._given)), kind or "count", key)  # type: ignore[arg-type]

    def _cells(self, field: str) -> Line:
        """The cells of one field: as many as were put in, if it is one mark, or else one."""
        found = _line(field, self._given) if field else words("")
        if len(found) == 1 or _MARK.fullmatch(field):
            return found
        return (Cell(_text(found), "line", parts=found),)

    def _exhibit(self) -> Exhibit:
        title, *entries = self._paragraph()
        made, above = [], None
        for entry in entries:
            label, _, cells = entry.partition(": ")
            if label == "above":
                above = _line(cells, self._given)
            else:
                made.append((_text(_line(label, self._given)), _line(cells, self._given)))
        return Exhibit(_line(title.removeprefix("=== "), self._given), tuple(made), above)


def _fields(row: str) -> list[str]:
    return [field.strip() for field in row.strip("|").split(" | ")]


def _alone(value: object) -> tuple[Block, ...] | None:
    """Blocks, if a value is some."""
    if isinstance(value, get_args(Block)):
        return (value,)
    if isinstance(value, list | tuple) and all(isinstance(one, get_args(Block)) for one in value):
        return tuple(value)
    return None


def _text(cells: Line) -> str:
    return "".join(cell.text for cell in cells)


def _line(source: str, given: Sequence[object]) -> Line:
    cells: list[Cell] = []
    for place, part in enumerate(_MARK.split(source)):
        if place % 2:
            cells += as_cells(given[int(part)])
        elif part:
            cells += (
                Cell(text, "strong" if strong % 2 else "words")
                for strong, text in enumerate(_STRONG.split(part))
                if text
            )
    return tuple(cells)


def as_cells(value: Any) -> Line:
    """What was put in, as cells."""
    match value:
        case Cell():
            return (value,)
        case str():
            return (text_cell(value),)
        case int():
            return (count_cell(value),)
        case _:
            return tuple(cell for one in value for cell in as_cells(one))
