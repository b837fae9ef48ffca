"""How long to wait before trying a failed call again.

Exponential with full jitter: anywhere between nothing and twice the last ceiling, so that many calls that failed
together do not come back together. The draw comes from the call's derived seed. A provider's own Retry-After is a
floor: we never come back sooner than it asked.
"""

from __future__ import annotations

import random

FIRST_CEILING_S = 0.5
LAST_CEILING_S = 60.0


def backoff_s(attempt: int, seed: int, retry_after_s: float | None = None) -> float:
    """Seconds to wait after the given failed attempt (the first is 1)."""
    ceiling = min(LAST_CEILING_S, FIRST_CEILING_S * 2 ** (attempt - 1))
    drawn = random.Random(seed).uniform(0, ceiling)  # noqa: S311 - spreads retries; no secret depends on it
    return drawn + (retry_after_s or 0.0)
