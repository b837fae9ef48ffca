"""What a model wrote, made inert: on a terminal, in Markdown, in a spreadsheet."""

from __future__ import annotations

import unicodedata

_MARKS = {ord(mark): f"\\{mark}" for mark in "\\`*_{}[]()#+-!|~$"} | {ord(mark): f"&#{ord(mark)};" for mark in "<>&"}


def defused(cell: str) -> str:
    """Text that a spreadsheet shows and does not run."""
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠") else cell


def plain(text: str) -> str:
    """Text on one line without terminal escapes, invisible characters or changes of direction."""
    shown = " ".join(text.split())
    if shown.isprintable():  # no control, format or surrogate character is
        return shown
    return "".join(char for char in shown if unicodedata.category(char) not in ("Cc", "Cf", "Cs"))


def inert(text: str) -> str:
    """Text that Markdown shows as it is: no markup, no terminal escapes, no direction tricks, one line."""
    shown = plain(text)
    return shown.translate(_MARKS).replace("://", "&#58;//").replace("www.", "www&#46;")
