"""Read pages from the web: the only code of the project that does, and only for `sources snapshot`.

Redirects are followed by hand, so that every hop is counted and must be http or https. Proxies of the environment,
cookies and stored passwords are not used. A page is read whole or not at all.
"""

from __future__ import annotations

import http.client
import re
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from html.parser import HTMLParser
from urllib.parse import quote, urljoin
from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request, UnknownHandler

from ... import __version__
from ...records.citation import FEDERAL, MAX_ADDRESS, SnapshotPage
from ...store.strict_json import clean_text, sha256
from .addresses import classify
from .hosts import WORDS

MAX_BYTES = 20_000_000
MAX_REDIRECTS = 5
TIMEOUT_S = 30.0
TOTAL_FACTOR = 4
"""A whole page may take so many times the time of one wait."""
USER_AGENT = f"medicare-eval/{__version__} (snapshot of cited pages; AI Medicare Evaluation Harness)"
FETCHED = "the page itself"
HASH_ONLY = "the page itself; only its hash is kept, because it is not of the U.S. federal government"
NOT_READ = "the page itself; its text was not read, because the format is not HTML or plain text"
_REDIRECTS = (301, 302, 303, 307, 308)
_PIECE = 65_536


@dataclass(frozen=True)
class NotFetched:
    """A page that could not be read, and why."""

    url: str
    why: str


@dataclass(frozen=True)
class _Response:
    status: int
    url: str
    content_type: str
    data: bytes
    """As received."""
    encoding: str


class _PageError(Exception):
    """Why a page cannot be kept, in words for the user."""


def is_federal(url: str) -> bool:
    """Whether pages at this address are of the U.S. federal government, whose works are in the public domain."""
    return classify(url).host_class in FEDERAL


def fetch_page(
    url: str,
    today: date,
    *,
    timeout: float = TIMEOUT_S,
    limit: int = MAX_BYTES,
    keeps_text: Callable[[str], bool] = is_federal,
) -> SnapshotPage | NotFetched:
    """One page as it is now.

    Args:
        url: an address with http:// or https://.
        today: the date to record.
        timeout: seconds to wait for each answer of the server.
        limit: the largest page, in bytes.
        keeps_text: whether the text of a page at this address may be kept, or only its hash.

    Returns:
        The page. A page that the server says does not exist (404, 410) is one too. `NotFetched` for anything else:
        an error of the server or the network, too many redirects, a page that is too large.
    """
    try:
        response = _follow(url, timeout, limit)
        if response.status not in (404, 410) and not 200 <= response.status < 300:
            return NotFetched(url, f"the server answered with status {response.status}")
        return _page(url, response, today, limit, keeps_text)
    except _PageError as error:
        return NotFetched(url, str(error))
    except TimeoutError:
        return NotFetched(url, f"no answer within {timeout:g} seconds")
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        if isinstance(reason, TimeoutError):
            return NotFetched(url, f"no answer within {timeout:g} seconds")
        said = getattr(reason, "strerror", None) or str(reason)
        return NotFetched(url, " ".join(said.split())[:200].rstrip(".") or type(error).__name__)


def _page(url: str, got: _Response, today: date, limit: int, keeps_text: Callable[[str], bool]) -> SnapshotPage:
    missing = got.status in (404, 410)
    read = page_text(_decompressed(got, limit), got.content_type)
    kept = keeps_text(got.url) and not missing
    return SnapshotPage(
        url=url,
        final_url=got.url,
        fetched=today,
        status=got.status,
        content_type=got.content_type[:200],
        bytes=len(got.data),
        sha256=sha256(got.data),
        title=read.title,
        text=read.text if kept else None,
        origin=FETCHED if missing or (kept and read.text is not None) else NOT_READ if kept else HASH_ONLY,
    )


def _opener() -> OpenerDirector:
    opener = OpenerDirector()
    for handler in (ProxyHandler({}), UnknownHandler(), HTTPHandler(), HTTPSHandler()):
        opener.add_handler(handler)
    return opener


def _follow(url: str, timeout: float, limit: int) -> _Response:
    opener, deadline = _opener(), time.monotonic() + timeout * TOTAL_FACTOR
    for _ in range(MAX_REDIRECTS + 1):
        if not url.lower().startswith(("http://", "https://")) or len(url) > MAX_ADDRESS:
            raise _PageError("the page redirects to what is no web address")
        headers = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity", "Accept": "text/html, */*;q=0.5"}
        with opener.open(Request(url, headers=headers), timeout=timeout) as answer:  # noqa: S310 - checked above
            location = answer.headers.get("Location")
            if answer.status in _REDIRECTS and location:
                url = quote(urljoin(url, location.strip()).partition("#")[0], safe="%/:=&?~#+!$,;'@()*[]")
                continue
            return _Response(
                status=answer.status,
                url=url,
                content_type=" ".join(answer.headers.get("Content-Type", "").split()),
                data=_body(answer, limit, deadline),
                encoding=answer.headers.get("Content-Encoding", "").strip().lower(),
            )
    raise _PageError(f"more than {MAX_REDIRECTS} redirects")


def _body(answer: http.client.HTTPResponse, limit: int, deadline: float) -> bytes:
    pieces, size = [], 0
    while piece := answer.read1(_PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            raise _PageError(f"the page is larger than {limit:,} bytes")
        if time.monotonic() > deadline:
            raise _PageError("the page was sent too slowly")
    if answer.length:
        raise _PageError("the server ended the page before its end")
    return b"".join(pieces)


def _decompressed(got: _Response, limit: int) -> bytes:
    """A server may compress although it was asked not to."""
    if got.encoding in ("", "identity"):
        return got.data
    if got.encoding not in ("gzip", "x-gzip", "deflate"):
        raise _PageError(f"the page is compressed in a way that is not known ({got.encoding[:20]})")
    try:
        reader = zlib.decompressobj(zlib.MAX_WBITS | 32)
        data = reader.decompress(got.data, limit + 1)
    except zlib.error:
        raise _PageError("the page is compressed, and damaged") from None
    if len(data) > limit:
        raise _PageError(f"the page is larger than {limit:,} bytes")
    if not reader.eof:
        raise _PageError("the page is compressed, and damaged")
    return data


# The title and the text of a page, from its bytes. HTML and plain text are read; other formats are not.

MAX_CHARACTERS = 5_000_000
"""What is read of a page; the rest is left out."""
_HIDDEN = WORDS["hidden_tags"]
_NAVIGATION = frozenset({"nav", "footer", "aside"})
_INLINE = WORDS["inline_tags"]
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s{0,5}=\s{0,5}["']?([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_MARKUP_RUN = re.compile(r"<(?=[^<>]{0,4000}<)")
"""An opening bracket that is never closed before the next one: no tag. It is dropped, so that reading stays linear."""


@dataclass(frozen=True)
class PageText:
    title: str | None
    text: str | None
    """None if the format is not read."""


def page_text(data: bytes, content_type: str) -> PageText:
    """The title and the text of a page.

    Args:
        data: the bytes of the page, decompressed.
        content_type: as the server gives it, with or without a character set.
    """
    kind, _, rest = content_type.partition(";")
    named = re.search(r"charset=[\"']?([A-Za-z0-9_:.-]{1,40})", rest)
    kind = kind.strip().lower()
    if kind in ("text/html", "application/xhtml+xml"):
        sniffed = _CHARSET.search(data[:4096])
        encoding = named[1] if named else sniffed[1].decode("ascii") if sniffed else "utf-8"
        return _from_html(_decoded(data, encoding))
    if kind == "text/plain":
        return PageText(None, _tidy(_decoded(data, named[1] if named else "utf-8").splitlines()))
    return PageText(None, None)


def _decoded(data: bytes, encoding: str) -> str:
    try:
        text = data.decode(encoding, errors="replace")
    except (LookupError, UnicodeError):
        text = data.decode("utf-8", errors="replace")
    return _CONTROL.sub(" ", clean_text(text.removeprefix("\ufeff")))[:MAX_CHARACTERS]


def _from_html(source: str) -> PageText:
    reader = _Reader()
    with suppress(AssertionError):  # the parser's answer to some declarations; what was read before is kept
        reader.feed(_MARKUP_RUN.sub(" ", _without_comments(source).replace("<![", " ")))
        reader.close()
    title = " ".join("".join(reader.title).split())[:1_000]
    return PageText(title or None, _tidy("".join(reader.all_pieces()).splitlines()))


def _without_comments(source: str) -> str:
    """As a browser reads it: a comment that is never closed goes to the end."""
    kept, at = [], 0
    while (start := source.find("<!--", at)) >= 0:
        kept.append(source[at:start])
        end = source.find("-->", start + 4)
        at = end + 3 if end >= 0 else len(source)
    return "".join([*kept, source[at:]])


def _tidy(lines: list[str]) -> str:
    return "\n".join(line for line in (" ".join(one.split()) for one in lines) if line)


class _Reader(HTMLParser):
    """Collects the words of a page. Navigation is left out if it is closed; text after an open tag is kept."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title: list[str] = []
        self._pieces: list[str] = []
        self._navigation: list[str] = []
        self._open: dict[str, int] = {}
        self._in_title = False

    def all_pieces(self) -> list[str]:
        return self._pieces + self._navigation

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HIDDEN or tag in _NAVIGATION:
            self._open[tag] = self._open.get(tag, 0) + 1
        self._in_title = tag == "title" and not self.title
        if tag not in _INLINE:
            self._add("\n")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _INLINE:
            self._add("\n")

    def handle_endtag(self, tag: str) -> None:
        self._in_title = False
        if self._open.get(tag):
            self._open[tag] -= 1
            if not any(self._open.get(one) for one in _NAVIGATION):
                self._navigation.clear()
        if tag not in _INLINE:
            self._add("\n")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title.append(data)
        elif not any(self._open.get(tag) for tag in _HIDDEN):
            self._add(data)

    def _add(self, piece: str) -> None:
        in_navigation = any(self._open.get(tag) for tag in _NAVIGATION)
        (self._navigation if in_navigation else self._pieces).append(piece)
