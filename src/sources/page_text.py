"""The title and the text of a page, from its bytes. HTML and plain text are read; other formats are not."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from html.parser import HTMLParser

from ..store.strict_json import clean_text

MAX_CHARACTERS = 5_000_000
"""What is read of a page; the rest is left out."""
_HIDDEN = frozenset({"script", "style", "template", "noscript", "svg", "iframe", "object", "select", "button"})
_NAVIGATION = frozenset({"nav", "footer", "aside"})
_INLINE = frozenset(
    {"a", "abbr", "b", "bdi", "bdo", "cite", "code", "em", "font", "i", "label", "mark", "q", "s", "small", "span",
     "strong", "sub", "sup", "time", "u", "wbr"}
)  # fmt: skip
"""Tags inside a sentence; any other tag begins a new line."""
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
