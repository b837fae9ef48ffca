"""Marks passages of a reply that speak to whoever checks it, or that hide something."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .sentences import sentences

_MACHINE = re.compile(r"[{}]|<[/!|]|[\u200b\u200c\u2060-\u2064\u202a-\u202e\u2066-\u2069\U000e0000-\U000e01ef]")
_ITSELF = re.compile(r"\b(?:claims?|statements?|above|(?:this|the) (?:answer|reply|text|message))\b", re.IGNORECASE)
_TAKING = re.compile(
    r"\b(?:treat|mark|label|count|regard|consider|accept|confirm|support|read)(?:ed)?\b", re.IGNORECASE
)


@dataclass(frozen=True)
class Marked:
    """A sentence or block of the reply as written, `reply[start:end]`, and why it is marked."""

    start: int
    end: int
    why: str


def marked_passages(reply: str) -> tuple[Marked, ...]:
    """Passages that speak to whoever checks the reply, or that hide something; in order, not overlapping."""
    found = []
    for span in sentences(reply):
        said = reply[span.start : span.end]
        if _MACHINE.search(said):
            found.append(Marked(span.start, span.end, "machine text"))
        elif _ITSELF.search(said) and _TAKING.search(said):
            found.append(Marked(span.start, span.end, "says how the text is to be taken"))
    return tuple(found)
