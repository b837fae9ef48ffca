"""Which day it is, for keys and models that run out."""

from __future__ import annotations

import os
from datetime import date


def today() -> date:
    """Today; or, so that tests give the same in any year, the day MEDICARE_EVAL_TODAY names."""
    given = os.environ.get("MEDICARE_EVAL_TODAY")
    return date.fromisoformat(given) if given else date.today()
