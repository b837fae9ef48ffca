"""What evidence pages share: their frame, the marks of codes, and text of others as HTML."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup, escape

from ..schemas import LeftOpen, Scores
from ..scoring.definitions import CODE_HEADINGS, SCORE_HEADINGS
from ..text.count import counted
from ..text.escape import plain
from ..text.rounded import percent, rounded
from . import links, template
from .document import range_text
from .html import STYLE
from .html import page as page_of

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
PAGE_STYLE = Path(__file__).with_name("evidence.css").read_text(encoding="utf-8")


class Page(NamedTuple):
    title: str
    """Plain text."""
    body: Markup
    """It begins with links back to the report."""


def page_bytes(page: Page) -> bytes:
    """A whole page, as a report has it on disk."""
    return page_of("evidence", page.title, style=STYLE + PAGE_STYLE, body=page.body).encode("utf-8", "replace")


def safe(text: str) -> Markup:
    """Text of others on one line, as HTML: for an element, or an attribute in double quotes."""
    return escape(text if text.isprintable() else plain(text))


def safe_lines(text: str) -> Markup:
    """Text of others with its line breaks and spaces, as HTML; at most one empty line in a row."""
    return escape(visible_lines(text))


def visible_lines(text: str) -> str:
    """The same, not escaped."""
    if not text.isprintable():
        lines = text.replace("\r\n", "\n").replace("\t", "    ").split("\n")
        text = "\n".join(line if line.isprintable() else _visible(line) for line in lines)
        if "\n\n\n" in text:
            text = _EMPTY_LINES.sub("\n\n", text)
    return text


def _visible(line: str) -> str:
    return "".join(char for char in line if unicodedata.category(char) not in _HIDDEN)


def score_text(score: float | None) -> str:
    return "–" if score is None else rounded(score)


def scores_text(scores: Scores, left_open: LeftOpen | None = None) -> str:
    """Each score, with its range if claims are open, and how many are."""

    def text(name: str) -> str:
        if left_open is None:
            return score_text(getattr(scores, name))
        ends = (getattr(one, name) for one in (left_open.lowest, left_open.highest))
        return f"{score_text(getattr(scores, name))} ({range_text(*ends)})"

    listed = ", ".join(f"{heading} {text(name)}" for name, heading in SCORE_HEADINGS.items())
    return listed if left_open is None else f"{listed}; {counted(left_open.claims, 'open claim')}"


template.environment("html").filters.update(
    code_mark=lambda code: CODE_MARKS.get(code, code), comma=", ".join, lines=safe_lines, safe_line=safe
)
template.environment("html").globals.update(
    CODE_MARKS=CODE_MARKS, SCORE_HEADINGS=SCORE_HEADINGS, code_name=lambda code: CODE_HEADINGS.get(code, code),
    counted=counted, links=links, percent=percent, rounded=rounded, score_text=score_text, scores_text=scores_text,
)  # fmt: skip
