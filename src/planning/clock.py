"""Today's date, for keys and models that expire."""

from __future__ import annotations

import os
from datetime import date

from ..errors import ConfigError


def today() -> date:
    """Today, or the day that MEDICARE_EVAL_TODAY names, so that tests give the same result in any year."""
    given = os.environ.get("MEDICARE_EVAL_TODAY")
    try:
        return date.fromisoformat(given) if given else date.today()
    except ValueError:
        raise ConfigError(f"MEDICARE_EVAL_TODAY: {given!r} is not a date. Write it as 2026-11-16.") from None
