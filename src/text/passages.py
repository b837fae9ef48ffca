"""Passages of a text by their places."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class TextPassage(Protocol):
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


def cut(text: str, passages: Iterable[TextPassage]) -> str:
    """A text without some of its passages, which are in order."""
    kept, at = [], 0
    for passage in passages:
        kept.append(text[at : passage.start])
        at = passage.end
    return "".join([*kept, text[at:]])
