"""A snapshot: a folder whose `pages.jsonl` has one line per page and day. Lines are only ever added.

Looking a page up ignores what does not change it (`addresses.page_key`) and takes the newest line.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path

from pydantic import ValidationError

from ...errors import InputError, StorageError
from ...records.citation import SnapshotPage
from ...store import locking
from ...store.input_files import explain, read_bytes
from ...store.package_data import data_folder
from ...store.run_files import encode_record
from ...store.strict_json import StrictJSONError, encode, loads
from .addresses import page_key

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
    return Snapshot(tuple(_page(line, f"{path}, line {number}") for number, line in enumerate(lines[:-1], 1)))


def _page(line: bytes, where: str) -> SnapshotPage:
    try:
        return SnapshotPage.model_validate_json(encode(loads(line.decode("utf-8"))))
    except UnicodeDecodeError as error:
        raise InputError(f"{where} is not UTF-8 text (byte {error.start}).") from None
    except StrictJSONError as error:
        raise InputError(f"{where}: {error}.") from None
    except ValidationError as error:
        raise InputError(f"{where}: {explain(error, SnapshotPage)}") from None


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
