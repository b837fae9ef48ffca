"""How model families search the web, as data, and what adapters share to read what was searched.

Search results are written by strangers: they are data. Only addresses, titles, queries and cited words are kept apart
from the verbatim response, and judges see none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import msgspec

from ..records.model_name import split_name
from ..records.target import Effort, SearchOptions, WebCitation
from ..schemas import CallRecord
from ..store.strict_json import clean_text, loads_foreign

OPTIONS = ("max_searches", "allowed_domains", "blocked_domains", "country", "context_size")
LONGEST_URL = 10_000
LONGEST_QUOTE = 2_000
"""Of a title, a query or cited words; the verbatim response has the rest."""


@dataclass(frozen=True, kw_only=True)
class SearchTool:
    """How a family searches."""

    api: Literal["responses", "messages", "generate_content"]
    """OpenAI and xAI search in their Responses API only, which takes no seed."""
    takes: frozenset[str]
    """The options that are sent; all others are listed as not applied."""
    version: str = "web_search"
    """The type of the tool."""
    most_domains: int | None = None
    """A longer list is refused by the provider, so it is not sent."""
    one_list: bool = False
    """Whether only one of `allowed_domains` and `blocked_domains` is accepted."""
    not_at: frozenset[Effort] = frozenset()
    """Efforts at which the family does not search."""
    bills: Literal["searches", "requests"] = "searches"
    """What is paid for: each search, or each request that searched."""


class TakenOptions(NamedTuple):
    options: SearchOptions
    """Those that are sent."""
    not_applied: tuple[str, ...]


def taken(tool: SearchTool, asked: SearchOptions) -> TakenOptions:
    """The options that a family takes, and the names of the others."""
    refused = [
        name
        for name in OPTIONS
        if getattr(asked, name) and (name not in tool.takes or _too_long(getattr(asked, name), tool.most_domains))
    ]
    if tool.one_list and asked.allowed_domains and asked.blocked_domains and "allowed_domains" not in refused:
        refused = [name for name in OPTIONS if name in (*refused, "blocked_domains")]
    plain = SearchOptions()
    kept = asked.model_copy(update={name: getattr(plain, name) for name in refused})
    return TakenOptions(kept, tuple(f"search.{name}" for name in refused))


def _too_long(value: Any, most: int | None) -> bool:
    return most is not None and isinstance(value, tuple) and len(value) > most


class ReplySpan(NamedTuple):
    """A part of the reply, in characters."""

    start: int
    end: int


def citation(
    url: Any, *, title: Any = None, cited_text: Any = None, span: ReplySpan | None = None
) -> WebCitation | None:
    """A source as a provider attached it; None if it has no address."""
    cleaned = clean_text(url) if isinstance(url, str) and len(url) <= LONGEST_URL else ""
    if not cleaned:
        return None
    return WebCitation(
        url=cleaned,
        title=short(title),
        cited_text=short(cited_text),
        start=span.start if span else None,
        end=span.end if span else None,
    )


def span_in(start: Any, end: Any, length: int, *, at: int = 0) -> ReplySpan | None:
    """A place in a piece of text that is itself at `at` in the reply; None if it is not inside the piece."""
    if type(start) is not int or type(end) is not int or not 0 <= start <= end <= length:
        return None
    return ReplySpan(at + start, at + end)


def short(text: Any) -> str | None:
    """A text that a stranger may have written, cleaned for storage and cut."""
    return clean_text(text)[:LONGEST_QUOTE] if isinstance(text, str) and text else None


def texts(values: Iterable[Any], *, longest: int = LONGEST_QUOTE) -> tuple[str, ...]:
    """The nonempty strings among the values, each once, in order."""
    cleaned = (clean_text(value)[:longest] for value in values if isinstance(value, str) and value)
    return tuple(dict.fromkeys(cleaned))


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; empty if it is no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


# What a searching model wants back in the next request: its own blocks of the reply, as the provider sent them.
#
# Pure: it reads a recorded response, so that a replay makes the same request without any adapter.

PAUSED = "pause_turn"
"""Anthropic's stop reason for a reply that it wants to continue."""


def blocks_of(record: CallRecord) -> list[dict[str, Any]]:
    """The blocks of a reply in its provider's form; empty if the response has none, or none that can be sent."""
    if record.outcome not in ("ok", "truncated") or not isinstance(record.received, str):
        return []
    try:
        payload = loads_foreign(record.received)
        blocks = [block for block in _listed(split_name(record.model).provider, payload) if isinstance(block, dict)]
        msgspec.json.encode(blocks)
    except (ValueError, OverflowError):  # lone surrogates or numbers without limit, for example
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
