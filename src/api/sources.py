"""Addresses that answers cite: keep a snapshot of pages, list it, and check a text against it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from ..errors import InputError
from ..inputs.sources.addresses import classify, page_key
from ..inputs.sources.check import Statement, SupportRequest, check_citation
from ..inputs.sources.fetch import MAX_BYTES, TIMEOUT_S, NotFetched, fetch_page, is_federal
from ..inputs.sources.finding import NamedSource, find_citations, find_named_sources
from ..inputs.sources.snapshot import Snapshot, append_pages, bundled_snapshot, facts_of_bank, load_snapshot
from ..planning.clock import today
from ..records.citation import CheckedCitation, Citation, HostClass, SnapshotPage
from ..store.run_folder import PathLike, as_path
from ..text.sentences import sentences


@dataclass(frozen=True)
class Snapshotted:
    """What `snapshot_pages` did."""

    pages: tuple[SnapshotPage, ...]
    """The lines that were added."""
    failed: tuple[NotFetched, ...]


@dataclass(frozen=True)
class ListedPage:
    """One page of a snapshot. The field names are those of `--json`."""

    url: str
    final_url: str
    fetched: date
    status: int
    host_class: HostClass
    bytes: int
    has_text: bool
    origin: str


@dataclass(frozen=True)
class AddressWithoutPage:
    """An address that facts of the bank cite and the snapshot does not have."""

    address: str
    host_class: HostClass
    facts: int


@dataclass(frozen=True)
class SourceList:
    pages: tuple[ListedPage, ...]
    lacking: tuple[AddressWithoutPage, ...]
    """Those that most facts cite come first."""


@dataclass(frozen=True)
class CheckedText:
    citations: tuple[CheckedCitation, ...]
    named: tuple[NamedSource, ...]


def open_snapshot(path: PathLike | None = None) -> Snapshot:
    """A snapshot folder, or the bundled snapshot.

    Args:
        path: the folder; None for the bundled one.

    Returns:
        The snapshot.

    Raises:
        InputError: the folder has no snapshot, or a line of it is wrong.

    Example:
        >>> len(open_snapshot().pages)
        16
    """
    return bundled_snapshot() if path is None else load_snapshot(as_path(path))


def snapshot_pages(
    urls: Sequence[str],
    to: PathLike,
    *,
    timeout: float = TIMEOUT_S,
    limit: int = MAX_BYTES,
    keeps_text: Callable[[str], bool] = is_federal,
    on_done: Callable[[SnapshotPage | NotFetched], None] = lambda one: None,
) -> Snapshotted:
    """Read pages from the web and add them to a snapshot. Each page is saved as soon as it is read.

    Args:
        urls: addresses; https:// is added where a scheme is missing.
        to: the folder of the snapshot. Lines in it are kept; a page that it has gets a newer line.
        timeout: seconds to wait for each answer of a server.
        limit: the largest page, in bytes.
        keeps_text: whether the text of a page may be kept; by default, for pages of the federal government.
        on_done: called after each page.

    Returns:
        The pages added, and those that could not be read.

    Raises:
        InputError: an address is malformed or disguised, or the folder has a damaged snapshot. Nothing was read.
        StorageError: the folder cannot be written.

    Example:
        >>> snapshot_pages(["medicare-gov.com/x"], "snapshot")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        src.errors.InputError: medicare-gov.com/x is disguised: medicare-gov imitates a .gov name, ...
    """
    wanted = list(dict.fromkeys(_with_scheme(url) for url in urls))
    folder: Path = as_path(to)
    append_pages(folder, ())
    pages: list[SnapshotPage] = []
    failed: list[NotFetched] = []
    for url in wanted:
        got = fetch_page(url, today(), timeout=timeout, limit=limit, keeps_text=keeps_text)
        if isinstance(got, SnapshotPage):
            append_pages(folder, (got,))
            pages.append(got)
        else:
            failed.append(got)
        on_done(got)
    return Snapshotted(tuple(pages), tuple(failed))


def _with_scheme(url: str) -> str:
    address = classify(url)
    if address.host_class in ("malformed", "disguised"):
        raise InputError(f"{url[:200]} is {address.host_class}: {address.why}")
    return url if url.lower().startswith(("http://", "https://")) else f"https://{url}"


def list_sources(snapshot: PathLike | None = None) -> SourceList:
    """The pages of a snapshot, and the addresses of the fact bank that have none in it.

    Args:
        snapshot: the folder; None for the bundled snapshot.

    Returns:
        Pages by address, and addresses without a page by the number of facts.

    Raises:
        InputError: the folder has no snapshot, or a line of it is wrong.

    Example:
        >>> list_sources().pages[0].host_class
        'cms'
    """
    held = open_snapshot(snapshot)
    counts: dict[str, int] = {}
    shown: dict[str, str] = {}
    for fact in facts_of_bank():
        key = page_key(fact.address) or fact.address
        counts[key] = counts.get(key, 0) + 1
        shown.setdefault(key, fact.address)
    lacking = [key for key in sorted(counts, key=lambda key: (-counts[key], key)) if not held.find(shown[key])]
    return SourceList(
        tuple(_listed(page) for page in held.newest()),
        tuple(AddressWithoutPage(shown[key], classify(shown[key]).host_class, counts[key]) for key in lacking),
    )


def _listed(page: SnapshotPage) -> ListedPage:
    return ListedPage(
        page.url,
        page.final_url,
        page.fetched,
        page.status,
        classify(page.final_url).host_class,
        page.bytes,
        page.text is not None,
        page.origin,
    )


def check_text(text: str, snapshot: PathLike | None = None) -> CheckedText:
    """Check every address in a text as far as code can. Whether a page supports a statement takes a judge.

    Args:
        text: an answer.
        snapshot: the folder; None for the bundled snapshot.

    Returns:
        Each address with its class, outcome and reason, in order, and the sources named without an address.

    Raises:
        InputError: the folder has no snapshot, or a line of it is wrong.

    Example:
        >>> check_text("See medicare.gov.example.com/costs").citations[0].outcome
        'disguised'
    """
    held = open_snapshot(snapshot)
    return CheckedText(
        tuple(_by_code(text, citation, held) for citation in find_citations(text)), find_named_sources(text)
    )


def _by_code(text: str, citation: Citation, held: Snapshot) -> CheckedCitation:
    found = check_citation(Statement(_sentence(text, citation)), citation, held)
    if not isinstance(found, SupportRequest):
        return found
    plain = check_citation(None, citation, held)
    assert isinstance(plain, CheckedCitation)
    missing = sum(not one.on_page for one in found.figures)
    figures = f"{len(found.figures) - missing} of {len(found.figures)} figures of the sentence are in it"
    what = "The snapshot has the page" if found.page.whole else "The snapshot has statements from the page"
    said = f"{what}; {figures}." if found.figures else f"{what}."
    return plain.model_copy(
        update={"figures": found.figures, "why": f"{said} Whether it supports the text takes a judge."}
    )


def _sentence(text: str, citation: Citation) -> str:
    """The sentence in which an address is, without the address."""
    start, end = citation.start or 0, citation.end or len(text)
    span = next((one for one in sentences(text) if one.start < end and start < one.end), None)
    if span is None:
        return text[start:end]
    return (
        f"{text[span.start : max(start, span.start)]} {text[min(end, span.end) : span.end]}".strip() or text[start:end]
    )
