"""What providers cache of a prompt that starts like an earlier one, as data, and how a judge's call helps them.

The first pattern that matches the API id decides. No call relies on it: what was read from a cache and written to one
is in each call's usage. Sources: the providers' documentation and the installed SDKs, read in November 2026.

The reply schema is a part of the prefix: OpenAI documents it, and users of Claude have measured it. So a schema must
not change between calls that should share a cache; see `Capabilities.list_lengths`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ..store.strict_json import sha256
from .base import Message, ModelRequest

CacheMechanism = Literal["cache_control", "breakpoints", "key", "conversation_id", "prefix"]
"""How a call says what to cache.

`cache_control`, `breakpoints`: the blocks at whose end the prefix ends are marked, in Anthropic's and in OpenAI's way.
`key`, `conversation_id`: equal prefixes are cached without marks; a key sends calls that share one to the same server.
`prefix`: equal prefixes are cached, and there is nothing to say.
"""


@dataclass(frozen=True)
class CacheRule:
    """A row of the table."""

    provider: str
    pattern: str
    """Matched from the start of the API id."""
    how: CacheMechanism | None
    """None: nothing is cached."""
    shortest: int
    """Tokens of the shortest prefix that is cached."""


RULES = (
    # From here on OpenAI charges for writing, and without marks it writes each call's own part, which nobody reads.
    CacheRule("openai", r"(?:ft:)?gpt-(?:5\.(?:[6-9]|\d\d)|[6-9]|\d\d)", "breakpoints", 1_024),
    CacheRule("openai", r"(?:ft:)?(?:gpt-3\.5|gpt-4-|gpt-4$|chatgpt-4o)", None, 0),
    CacheRule("openai", r"", "key", 1_024),
    CacheRule("anthropic", r"claude-(?:opus-4-[56]|haiku-4)(?!\d)", "cache_control", 4_096),
    # Sonnet 4.6: documented as 1,024, measured by users as 2,048.
    CacheRule("anthropic", r"claude-(?:opus-4-7|sonnet-4-6|3-haiku|3-5-haiku)(?!\d)", "cache_control", 2_048),
    CacheRule("anthropic", r"claude-opus-5(?!-?\d)", "cache_control", 512),
    CacheRule("anthropic", r"", "cache_control", 1_024),
    CacheRule("google", r"gemini-(?:1|2\.0)", None, 0),
    CacheRule("google", r"gemini-2\.5", "prefix", 2_048),
    CacheRule("google", r"", "prefix", 4_096),
    # Not documented; cached in blocks of 128.
    CacheRule("xai", r"", "conversation_id", 128),
)


def cache_rule(provider: str, model: str) -> CacheRule | None:
    """The row of a model by its API id; None if it caches nothing, or nothing is known about it."""
    for rule in RULES:
        if rule.provider == provider and re.match(rule.pattern, model):
            return rule if rule.how else None
    return None


def rule_for(provider: str, request: ModelRequest, model: str) -> CacheRule | None:
    """The same for one call: None also for a target, which is called as people call it."""
    return cache_rule(provider, model) if request.may_be_cached else None


def cache_key(request: ModelRequest) -> str:
    """Equal for calls that start alike."""
    first = request.messages[0]
    return sha256(f"{request.system or ''}\n{first.content[: first.stable]}")[:32]


@dataclass(frozen=True)
class TextPart:
    text: str
    stable: bool
    """Whether the prefix that may be cached ends with this part."""


def text_parts(message: Message) -> list[TextPart]:
    """A message cut where its stable start ends. There is no blank part: providers refuse them."""
    start, rest = message.content[: message.stable], message.content[message.stable :]
    if not start.strip():
        return [TextPart(message.content, stable=False)]
    if not rest.strip():
        return [TextPart(message.content, stable=True)]
    return [TextPart(start, stable=True), TextPart(rest, stable=False)]
