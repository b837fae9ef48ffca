"""A snapshot: a folder whose `pages.jsonl` has one line per page and day. Lines are only ever added.

Looking a page up ignores what does not change it (`addresses.page_key`) and takes the newest line.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path

from ...errors import InputError, StorageError
from ...records.background import FactLibrary, StateFacts
from ...records.citation import FEDERAL, SnapshotPage
from ...records.facts import YearFacts
from ...store import locking
from ...store.input_files import read_bytes, read_user_file, record_in
from ...store.package_data import data_folder
from ...store.run_files import encode_record
from ...store.strict_json import sha256
from .addresses import classify, page_key

PAGES = "pages.jsonl"
MAX_BYTES = 500_000_000
BUNDLED = "v1"


@dataclass(frozen=True)
class Snapshot:
    """The pages of a snapshot, in the order of their lines.

    Example:
        >>> bundled_snapshot().find("medicare.gov/publications/11579-medicare-costs.pdf").status
        200
    """

    pages: tuple[SnapshotPage, ...]

    def find(self, url: str) -> SnapshotPage | None:
        """The newest line for an address: by the address that was asked for, or else by the one it led to."""
        key = page_key(url)
        return None if key is None else self._by_url.get(key) or self._by_final_url.get(key)

    def newest(self) -> tuple[SnapshotPage, ...]:
        """One line per page, by address."""
        return tuple(page for _, page in sorted(self._by_url.items()))

    @cached_property
    def _by_url(self) -> dict[str, SnapshotPage]:
        return _newest((page.url, page) for page in self.pages)

    @cached_property
    def _by_final_url(self) -> dict[str, SnapshotPage]:
        return _newest((page.final_url, page) for page in self.pages)


def _newest(pages: Iterable[tuple[str, SnapshotPage]]) -> dict[str, SnapshotPage]:
    found: dict[str, SnapshotPage] = {}
    for url, page in pages:
        key = page_key(url)
        if key is not None and page.fetched >= (found[key].fetched if key in found else date.min):
            found[key] = page
    return found


def bundled_snapshot() -> Snapshot:
    """The snapshot that comes with the program: statements of our fact bank, not copies of pages."""
    return load_snapshot(bundled_folder())


def bundled_folder() -> Path:
    return data_folder("sources") / BUNDLED


def load_snapshot(folder: Path) -> Snapshot:
    """Read a snapshot, strictly.

    Raises:
        InputError: there is none in this folder, or a line is not a page; the message names the line and the field.
    """
    path = folder / PAGES
    if not path.is_file():
        raise InputError(
            f"{folder} is not a snapshot: it has no {PAGES}. Make one with: medicare-eval sources snapshot"
        )
    lines = read_bytes(path, MAX_BYTES).split(b"\n")
    if lines[-1]:
        raise InputError(
            f"{path}, line {len(lines)}: the line is not complete. Delete it, and make the snapshot again."
        )
    return Snapshot(
        tuple(
            record_in(line, SnapshotPage, f"{path}, line {number}", advice="")
            for number, line in enumerate(lines[:-1], 1)
        )
    )


def page_line(page: SnapshotPage) -> bytes:
    return encode_record(page) + b"\n"


def append_pages(folder: Path, pages: Iterable[SnapshotPage]) -> None:
    """Add lines to a snapshot, which is made if it does not exist. What is there is checked first and never changed.

    Raises:
        InputError: the folder has a damaged snapshot.
        StorageError: the disk refused.
    """
    if (folder / PAGES).exists():
        load_snapshot(folder)
    path, data = folder / PAGES, b"".join(map(page_line, pages))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("ab", buffering=0) as file, locking.locked(file):
            size = os.fstat(file.fileno()).st_size
            if file.write(data) != len(data):
                file.truncate(size)
                raise StorageError(f"{path}: the disk is full. Nothing was added.")
            os.fsync(file.fileno())
    except OSError as error:
        raise StorageError(f"{path} cannot be written ({error.strerror}). Pages saved before are intact.") from None


# The bundled snapshot from the fact bank: `python -m src.inputs.sources.snapshot` writes sources/v1/pages.jsonl.
#
# A page of it has no copy of the page. Its text is what our facts say that cite the page, in our words, so it is a part
# of what the page says: enough to confirm a statement or to contradict it, never to say that the page lacks it.

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
