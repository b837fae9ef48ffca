"""Which suite a case is in: the fast one without a mark, else `slow` (CI, after the fast one) or `nightly`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def sample(cases: Iterable[Any], kept: Collection[Any], rest: pytest.MarkDecorator = pytest.mark.nightly) -> list[Any]:
    """Parameters of a test: `kept` stay in the suite of the test, and all others are in `rest`. A tuple is several."""
    every = list(cases)
    assert all(one in every for one in kept), "a case that is kept is none of the cases"
    return [
        pytest.param(*(one if isinstance(one, tuple) else (one,)), marks=() if one in kept else rest) for one in every
    ]
