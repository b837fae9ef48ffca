"""What a server answers when asked for its list of models: a free request that shows whether address and key work."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .base import FailureOutcome
from .classify import error_body

WITHOUT_LIST = (403, 404, 405, 501)
"""Statuses that may mean only that there is no list: at some gateways, and for keys with few rights."""


@dataclass(frozen=True, kw_only=True)
class Listing:
    """The answer to one request for the list of models; after a refusal of the list, also to an empty chat request."""

    status: int | None = None
    """None where there was no answer; `problem` says why."""
    outcome: FailureOutcome | None = None
    """None where the server answered with success."""
    problem: str = ""
    models: int | None = None
    """How many there are; None where the answer is no such list."""
    date: str | None = None
    """The server's clock, as its header has it."""
    chat: Listing | None = None

    def with_chat(self, chat: Listing) -> Listing:
        return replace(self, chat=chat)


def read_listing(status: int, headers: Mapping[str, str], body: bytes) -> Listing:
    """The meaning of an answer to either request."""
    try:
        payload: Any = json.loads(body)
    except (ValueError, RecursionError):
        payload = None
    fields: dict[str, Any] = payload if isinstance(payload, dict) else {}
    if not 200 <= status < 300:
        outcome = error_body(status, fields).outcome
        return Listing(status=status, outcome=outcome, date=headers.get("date"))
    models = fields.get("data", fields.get("models"))
    count = len(models) if isinstance(models, list) else None
    return Listing(status=status, models=count, date=headers.get("date"))
