"""Make text that a model wrote safe to show on a terminal, in Markdown and in a spreadsheet."""

from __future__ import annotations

import unicodedata

_MARKS = {ord(mark): f"\\{mark}" for mark in "\\`*_{}[]()#+-!|~$"} | {ord(mark): f"&#{ord(mark)};" for mark in "<>&"}


def defused(cell: str) -> str:
    """Text that a spreadsheet shows instead of running it as a formula."""
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠") else cell


def plain(text: str) -> str:
    """Text on one line, without terminal escapes, invisible characters or changes of writing direction."""
    shown = " ".join(text.split())
    if shown.isprintable():  # then it has no control, format or surrogate characters
        return shown
    return "".join(char for char in shown if unicodedata.category(char) not in ("Cc", "Cf", "Cs"))


def plain_lines(text: str) -> str:
    """The same of text on several lines, with its line breaks and spaces kept."""
    return "".join(char for char in text if char == "\n" or unicodedata.category(char) not in ("Cc", "Cf", "Cs"))


def inert(text: str) -> str:
    """Text on one line that Markdown shows as it is, without markup."""
    shown = plain(text)
    return shown.translate(_MARKS).replace("://", "&#58;//").replace("www.", "www&#46;")
