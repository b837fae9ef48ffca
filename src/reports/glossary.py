"""What the words of a report mean, for a reader without the guides. Each is explained where it is used first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..trials.terms import TERMS, Term, alphabetical
from .document import Block, Bullets, Cell, Exhibit, Figure, Paragraph, Section, Table, words

GLOSSARY = words("Glossary")


def first_uses(sections: Sequence[Section]) -> list[tuple[Term, ...]]:
    """For each section, the terms that it is the first to use."""
    left = list(TERMS)
    found: list[tuple[Term, ...]] = []
    for section in sections:
        text = "" if section.title == GLOSSARY else " ".join(_own_words(section))
        used = tuple(term for term in left if term.found_in(text))
        left = [term for term in left if term not in used]
        found.append(used)
    return found


def glossary_section() -> Section:
    """All terms, in the order of the alphabet."""
    items = tuple((Cell(term.name, "strong"), Cell(f": {term.meaning}")) for term in alphabetical())
    return Section(GLOSSARY, (Bullets(items),))


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
        case Figure():
            yield f"{block.chart.title} {block.beside}"


def _of_cells(cells: Sequence[Cell]) -> Iterator[str]:
    return (cell.text for cell in cells if cell.kind in ("words", "strong", "whole"))
