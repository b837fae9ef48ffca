"""Which maker's family a model belongs to, so that no model judges its own families.

Decided by the model's id first, because a gateway or a local server may serve anybody's model, and by the provider
second. An id nobody knows is a family of its own.
"""

from __future__ import annotations

import re

_BY_ID: tuple[tuple[str, str], ...] = (
    (r"claude", "anthropic"),
    (r"gemini|gemma|(^|/)palm-|learnlm", "google"),
    (r"grok", "xai"),
    (r"llama", "meta"),
    (r"mistral|mixtral|ministral|magistral", "mistral"),
    (r"qwen|qwq", "qwen"),
    (r"deepseek", "deepseek"),
    (r"(^|/)phi-?\d", "microsoft"),
    (r"command-|cohere", "cohere"),
    (r"smollm", "smollm"),
    (r"(^|[^a-z])gpt[-\d]|chatgpt|openai|davinci|codex|(^|[^a-z0-9])o\d", "openai"),
)
_BY_PROVIDER = {
    "openai": "openai",
    "anthropic": "anthropic",
    "google": "google",
    "xai": "xai",
    "fake": "fake",
    "offline": "offline",
}


def family(name: str) -> str:
    """The family of a `provider:model` as a user names it."""
    provider, _, model = name.partition(":")
    if provider in ("fake", "offline"):
        return provider
    return _maker(model) or _BY_PROVIDER.get(provider, model.lower())


def family_of_id(model_id: str) -> str:
    """The family of a bare model id, as a provider reports what it served; colons are part of it."""
    return _maker(model_id) or model_id.lower()


def _maker(model_id: str) -> str | None:
    for pattern, maker in _BY_ID:
        if re.search(pattern, model_id.lower()):
            return maker
    return None
