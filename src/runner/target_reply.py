"""A target's reply that may have come in several parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..adapters.web_search import PAUSED
from ..records.target import WebCitation, WebSearch
from ..schemas import CallOutcome, CallRecord, Usage

MOST_PARTS = 6
"""A reply that is still paused after this many is cut off."""
UNASKED = "not_asked"
"""The stop reason of recorded conversations in which a question was not asked."""


@dataclass(frozen=True)
class TargetReply:
    record: CallRecord
    """The whole reply."""
    blocks: tuple[dict[str, Any], ...]
    """In the provider's form, as it wants them back."""


def joined(parts: Sequence[CallRecord]) -> CallRecord:
    """The parts of a reply as one record: the last, with the words, searches and tokens of all."""
    last = parts[-1]
    if len(parts) == 1 and last.stop_reason != PAUSED:
        return last
    # If the last part brought no reply, there is no reply: its words so far are in the journal.
    text = None if last.text is None else "".join(part.text or "" for part in parts)
    return last.model_copy(
        update={
            "outcome": _outcome(last, text or ""),
            "text": text,
            "search": _searches(parts),
            "usage": Usage(**{name: _total(parts, name) for name in Usage.model_fields}),
            "not_applied": tuple(dict.fromkeys(name for part in parts for name in part.not_applied)),
        }
    )


def _outcome(last: CallRecord, text: str) -> CallOutcome:
    if last.stop_reason == PAUSED:
        return "truncated"
    return "ok" if last.outcome == "empty" and text.strip() else last.outcome


def _total(parts: Sequence[CallRecord], name: str) -> int | None:
    counts = [getattr(part.usage, name) for part in parts]
    return None if None in counts else sum(counts)


def _searches(parts: Sequence[CallRecord]) -> WebSearch | None:
    found = [part.search for part in parts if part.search]
    if not found:
        return None
    return WebSearch(
        searches=sum(one.searches for one in found),
        queries=_all(found, lambda one: one.queries),
        found=tuple(dict.fromkeys(_all(found, lambda one: one.found))),
        citations=tuple(_moved(parts)),
        errors=_all(found, lambda one: one.errors),
    )


def _all(found: Sequence[WebSearch], listed: Callable[[WebSearch], tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(text for one in found for text in listed(one))


def _moved(parts: Sequence[CallRecord]) -> Iterator[WebCitation]:
    """Citations of all parts, at their places in the whole reply."""
    before = 0
    for part in parts:
        for one in part.search.citations if part.search else ():
            at = {name: place + before for name in ("start", "end") if (place := getattr(one, name)) is not None}
            yield one.model_copy(update=at)
        before += len(part.text or "")
