"""What a searching model wants back in the next request: its own blocks of the reply, as the provider sent them.

Pure: it reads a recorded response, so that a replay makes the same request without any adapter.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from ..records.model_name import split_name
from ..schemas import CallRecord

PAUSED = "pause_turn"
"""Anthropic's stop reason for a reply that it wants to continue."""


def blocks_of(record: CallRecord) -> list[dict[str, Any]]:
    """The blocks of a reply in its provider's form; empty if the response has none, or none that can be sent."""
    if record.outcome not in ("ok", "truncated") or not isinstance(record.received, str):
        return []
    try:
        payload = json.loads(record.received)
        blocks = [block for block in _listed(split_name(record.model).provider, payload) if isinstance(block, dict)]
        msgspec.json.encode(blocks)
    except (ValueError, RecursionError, OverflowError):  # lone surrogates or numbers without limit, for example
        return []
    return blocks


def complete(blocks: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """The blocks of a whole reply without those that Anthropic refuses in a later turn.

    A reply that was cut off may end with a search that has no result, and a text may be empty.
    """
    answered = {block.get("tool_use_id") for block in blocks}
    return tuple(
        block
        for block in blocks
        if not (block.get("type") == "server_tool_use" and block.get("id") not in answered)
        and not (block.get("type") == "text" and block.get("text") == "")
    )


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
