"""The frame, the style and the text functions of evidence pages.

Pages are written as strings, because there can be many. All text of others goes through `safe` or `safe_lines`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, cast

from markupsafe import Markup

from ..schemas import Scores, StudyCode
from ..scoring.definitions import CODE_HEADINGS, SCORE_HEADINGS
from ..text.escape import plain
from ..text.rounded import rounded
from .html import STYLE
from .html import page as page_of
from .links import SAFE_ADDRESS

_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Control and format characters, surrogates, and separators of lines and paragraphs."""
_EMPTY_LINES = re.compile(r"\n[ \n]*\n\n")
CODE_MARKS = {
    "accurate_complete": "AC",
    "accurate_incomplete": "AI",
    "not_substantive": "NS",
    "incorrect": "IN",
    "incomplete_data": "ID",
}
LABEL_MARKS = {"SUPPORTED": "S", "CONTRADICTED": "C", "NOT_IN_KEY": "N", None: "O"}
"""Label to its class; the mark of `N` is shown as a question mark."""
PAGE_STYLE = Path(__file__).with_name("evidence.css").read_text(encoding="utf-8")
_STYLE = STYLE + PAGE_STYLE


class Page(NamedTuple):
    title: str
    """Plain text."""
    way: Iterable[str]
    """Links back to the report, as HTML."""
    body: Iterable[str]
    """Lines of HTML."""


def page_bytes(page: Page) -> bytes:
    """A whole page, as a report has it on disk."""
    body = Markup("\n".join((way_html(page), *page.body)))  # noqa: S704 - its parts are escaped
    return page_of("evidence", page.title, style=_STYLE, body=body).encode("utf-8", "replace")


def way_html(page: Page) -> str:
    return f'<p class="way">{" / ".join(page.way)}</p>'


def safe(text: str) -> str:
    """Text of others on one line, as HTML: for an element, or an attribute in double quotes."""
    if not text.isprintable():
        text = plain(text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def safe_lines(text: str) -> str:
    """Text of others with its line breaks and spaces, as HTML; at most one empty line in a row."""
    if not text.isprintable():
        lines = text.replace("\r\n", "\n").replace("\t", "    ").split("\n")
        text = "\n".join(line if line.isprintable() else _visible(line) for line in lines)
        if "\n\n\n" in text:
            text = _EMPTY_LINES.sub("\n\n", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def _visible(line: str) -> str:
    return "".join(char for char in line if unicodedata.category(char) not in _HIDDEN)


def link(href: str, text: str) -> str:
    """A link to a page of ours; `text` is HTML."""
    return f'<a href="{href}">{text}</a>'


def web_link(address: str) -> str:
    """A link to a source; an address of another form is shown as text."""
    shown = safe(address)
    return f'<a href="{shown}" rel="noopener noreferrer">{shown}</a>' if SAFE_ADDRESS.fullmatch(address) else shown


def code_mark(code: str) -> str:
    """The mark of a study code, or of an answer to a closed question."""
    return CODE_MARKS.get(code) or safe(code)


def code_name(code: str) -> str:
    """A study code in words, as HTML."""
    return CODE_HEADINGS.get(cast(StudyCode, code)) or safe(code)


def code_legend() -> str:
    marks = [f'<span class="code {mark}">{mark}</span> {code_name(code)}' for code, mark in CODE_MARKS.items()]
    return f'<p class="legend">{" &nbsp; ".join(marks)}</p>'


def score_text(score: float | None) -> str:
    return "–" if score is None else rounded(score)


def scores_text(scores: Scores) -> str:
    return ", ".join(f"{heading} {score_text(getattr(scores, name))}" for name, heading in SCORE_HEADINGS.items())
