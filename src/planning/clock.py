"""Which day it is, for keys and models that run out."""

from __future__ import annotations

import os
from datetime import date

from ..errors import ConfigError


def today() -> date:
    """Today; or, so that tests give the same in any year, the day MEDICARE_EVAL_TODAY names."""
    given = os.environ.get("MEDICARE_EVAL_TODAY")
    try:
        return date.fromisoformat(given) if given else date.today()
    except ValueError:
        raise ConfigError(f"MEDICARE_EVAL_TODAY: {given!r} is not a day; write it as 2026-11-16.") from None
