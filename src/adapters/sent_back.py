"""What a searching model wants back in the next request: its own blocks of the reply, as the provider sent them.

Pure: it reads a recorded response, so that a replay makes the same request without any adapter.
"""

from __future__ import annotations

import json
from typing import Any

from ..records.model_name import split_name
from ..schemas import CallRecord

PAUSED = "pause_turn"
"""Anthropic's stop reason for a reply that it wants to continue."""


def blocks_of(record: CallRecord) -> list[dict[str, Any]]:
    """The blocks of a reply in its provider's form; empty if the response has none."""
    if record.outcome not in ("ok", "truncated") or not isinstance(record.received, str):
        return []
    try:
        payload = json.loads(record.received)
    except ValueError:
        return []
    return [block for block in _listed(split_name(record.model).provider, payload) if isinstance(block, dict)]


def _listed(provider: str, payload: Any) -> list[Any]:
    if not isinstance(payload, dict):
        return []
    if provider == "anthropic":
        found = payload.get("content")
    elif provider == "google":
        candidates = payload.get("candidates")
        first = candidates[0] if isinstance(candidates, list) and candidates else None
        content = first.get("content") if isinstance(first, dict) else None
        found = content.get("parts") if isinstance(content, dict) else None
    else:
        found = payload.get("output")
    return found if isinstance(found, list) else []
