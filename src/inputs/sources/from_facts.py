"""The bundled snapshot from the fact bank: `python -m src.inputs.sources.from_facts` writes sources/v1/pages.jsonl.

A page of it has no copy of the page. Its text is what our facts say that cite the page, in our words, so it is a part
of what the page says: enough to confirm a statement or to contradict it, never to say that the page lacks it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from ...records.background import FactLibrary, StateFacts
from ...records.citation import FEDERAL, SnapshotPage
from ...records.facts import YearFacts
from ...store.input_files import read_user_file
from ...store.package_data import data_folder
from ...store.strict_json import sha256
from .addresses import classify, page_key
from .snapshot import BUNDLED, PAGES, page_line

ORIGIN = "statements of our fact bank, not a copy of the page"
PAGE_COUNT = 16


@dataclass(frozen=True)
class CitedFact:
    """A statement of the fact bank and the address that it cites."""

    address: str
    statement: str
    source: str
    primary: bool
    """Whether someone read it on that page."""
    compiled: date


def facts_of_bank(folder: Path | None = None) -> Iterator[CitedFact]:
    """Every statement and figure of the fact bank that cites an address, in the order of the files.

    Raises:
        InputError: a file is not valid.
    """
    root = folder or data_folder("facts")
    for path in sorted(root.glob("*.json")):
        yield from _figures(read_user_file(path, YearFacts).record)
    for path in sorted((root / "library").glob("*.json")):
        yield from _statements(read_user_file(path, FactLibrary).record)
    for path in sorted((root / "states").glob("*.json")):
        yield from _statements(read_user_file(path, StateFacts).record)


def _figures(year: YearFacts) -> Iterator[CitedFact]:
    for figure in year.figures.values():
        text = f"For {year.plan_year}: {figure.what}: {figure.value}." if figure.value else ""
        yield CitedFact(figure.address, text, figure.source, figure.confirmed_by == "primary", year.compiled)


def _statements(library: FactLibrary) -> Iterator[CitedFact]:
    for fact in library.facts:
        if fact.address:
            text = "" if "{{" in fact.statement else fact.statement  # a figure of the year is stated by its own line
            yield CitedFact(fact.address, text, fact.source, fact.confirmed_by == "primary", library.compiled)


def pages_from_facts(facts: Iterator[CitedFact]) -> list[SnapshotPage]:
    """The federal pages that most facts were read on, by address."""
    usable = [
        fact for fact in facts if fact.primary and fact.statement and classify(fact.address).host_class in FEDERAL
    ]
    counts = Counter(page_key(fact.address) for fact in usable)
    chosen = sorted(counts, key=lambda key: (-counts[key], key or ""))[:PAGE_COUNT]
    return [_page([fact for fact in usable if page_key(fact.address) == key]) for key in sorted(filter(None, chosen))]


def _page(facts: list[CitedFact]) -> SnapshotPage:
    text = "\n".join(dict.fromkeys(fact.statement for fact in facts))
    sources = Counter(fact.source for fact in facts)
    return SnapshotPage(
        url=facts[0].address,
        final_url=facts[0].address,
        fetched=max(fact.compiled for fact in facts),
        status=200,
        content_type="text/plain",
        bytes=len(text.encode("utf-8")),
        sha256=sha256(text),
        title=max(sources, key=lambda source: (sources[source], source)),
        text=text,
        origin=ORIGIN,
        whole=False,
    )


def bundled_lines(facts_folder: Path | None = None) -> bytes:
    return b"".join(map(page_line, pages_from_facts(facts_of_bank(facts_folder))))


if __name__ == "__main__":
    target = Path(__file__).resolve().parents[3] / "sources" / BUNDLED / PAGES
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(bundled_lines())
