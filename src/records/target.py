"""Settings of one target: its system prompt, how much it reasons, whether it searches, and recorded conversations."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from .base import Ident, Line, Record, Sha256, is_empty, is_none

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]
REASONING_ROOM: dict[Effort, int] = {
    "none": 0,
    "minimal": 2_000,
    "low": 8_000,
    "medium": 16_000,
    "high": 32_000,
    "xhigh": 64_000,
}
"""Tokens that a target may spend on reasoning, on top of its longest reply, if the study does not say."""
MOST_SEARCHES = 5
"""Searches in one reply, at most, where the study does not say. A provider that takes no limit may search more."""
Kind = Literal["bare", "prompt", "search", "prompt_and_search", "recorded"]
"""What a target is; targets of different kinds are never pooled."""
KIND_NAMES: dict[Kind, str] = {
    "bare": "bare model",
    "prompt": "system prompt",
    "search": "search",
    "prompt_and_search": "system prompt and search",
    "recorded": "recorded conversations",
}
Domain = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+(\.[a-z0-9-]+)+$", max_length=253)]


class SystemPrompt(Record):
    file: Line
    """The name of its file, without the folder."""
    sha256: Sha256
    text: str = Field(min_length=1, max_length=200_000)


class SearchOptions(Record):
    """How a target may search the web. What its provider does not take is recorded as not applied."""

    max_searches: int = Field(default=MOST_SEARCHES, ge=1, le=100)
    """In one reply."""
    allowed_domains: tuple[Domain, ...] = Field(default=(), exclude_if=is_empty)
    """Only these sites."""
    blocked_domains: tuple[Domain, ...] = Field(default=(), exclude_if=is_empty)
    country: Annotated[str, StringConstraints(pattern=r"^[A-Z]{2}$")] | None = Field(default=None, exclude_if=is_none)
    """Where the person is, as a two-letter code."""
    context_size: Literal["low", "medium", "high"] | None = Field(default=None, exclude_if=is_none)
    """How much of the pages found the model reads."""


class RecordedSet(Record):
    """Conversations that were recorded elsewhere, on the phone or in an app."""

    folder: str
    kind: Literal["phone", "chat"]
    sha256: Sha256
    """Of the files of all conversations."""
    system: Line
    """Who or what answered."""
    conversations: dict[str, tuple[Ident, ...]]
    """By scenario, or variant of one."""


class TargetSettings(Record):
    """What sets a target apart from the bare model."""

    system_prompt: SystemPrompt | None = Field(default=None, exclude_if=is_none)
    reasoning_effort: Effort | None = Field(default=None, exclude_if=is_none)
    reasoning_tokens: int = Field(default=0, ge=0, le=1_000_000, exclude_if=lambda value: value == 0)
    """Room for reasoning, on top of the longest reply."""
    search: SearchOptions | None = Field(default=None, exclude_if=is_none)
    recorded: RecordedSet | None = Field(default=None, exclude_if=is_none)

    @property
    def kind(self) -> Kind:
        if self.recorded:
            return "recorded"
        if self.search:
            return "prompt_and_search" if self.system_prompt else "search"
        return "prompt" if self.system_prompt else "bare"


class WebCitation(Record):
    """A source that a provider attached to a reply."""

    url: str = Field(min_length=1, max_length=20_000)
    title: str | None = Field(default=None, exclude_if=is_none)
    cited_text: str | None = Field(default=None, exclude_if=is_none)
    """What the provider says it took from the page."""
    start: int | None = Field(default=None, ge=0, exclude_if=is_none)
    end: int | None = Field(default=None, ge=0, exclude_if=is_none)
    """The part of the reply that it backs, in characters."""


class WebSearch(Record):
    """What a target searched for one reply."""

    searches: int = Field(default=0, ge=0)
    """As they are billed."""
    queries: tuple[str, ...] = Field(default=(), exclude_if=is_empty)
    found: tuple[str, ...] = Field(default=(), exclude_if=is_empty)
    """Addresses of the pages found, as far as the provider names them."""
    citations: tuple[WebCitation, ...] = Field(default=(), exclude_if=is_empty)
    errors: tuple[str, ...] = Field(default=(), exclude_if=is_empty)
    """Searches that failed, in the provider's words."""
