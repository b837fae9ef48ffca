"""Numbers of things as text."""

from __future__ import annotations


def counted(number: int, what: str, plural: str = "") -> str:
    """`1 trial`, `2 trials`, `1,046 calls`; `plural` is needed where adding an s is wrong."""
    return f"{number:,} {what if number == 1 else plural or f'{what}s'}"
