"""What reports call the outcomes of citations."""

from __future__ import annotations

OUTCOME_NAMES = {
    "supported": "supported",
    "not_supported": "not supported",
    "not_in_snapshot": "page not in snapshot",
    "not_official": "not official",
    "disguised": "disguised",
    "malformed": "malformed",
    "dead": "no such page",
    "undecided": "undecided",
}
