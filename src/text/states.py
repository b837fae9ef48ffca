"""The states, the District of Columbia and the territories, by name and postal code."""

from __future__ import annotations

from pathlib import Path

_ROWS = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
STATES = frozenset(text.casefold() for name, _, code in (row.rpartition(" ") for row in _ROWS) for text in (name, code))
"""In small letters, as `str.casefold` writes them."""
