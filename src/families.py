"""Which maker's family a model belongs to, so that no model judges its own kin.

Decided by the model's id first, because a gateway or a local server may serve anybody's model, and by the provider
second. An id nobody knows is a family of its own.
"""

from __future__ import annotations

import re

_BY_ID: tuple[tuple[str, str], ...] = (
    (r"claude", "anthropic"),
    (r"gemini|gemma|palm|learnlm", "google"),
    (r"grok", "xai"),
    (r"gpt|chatgpt|davinci|codex|(^|/)o\d", "openai"),
    (r"llama", "meta"),
    (r"mistral|mixtral|ministral|magistral", "mistral"),
    (r"qwen|qwq", "qwen"),
    (r"deepseek", "deepseek"),
    (r"(^|/)phi-?\d", "microsoft"),
    (r"command-|cohere", "cohere"),
    (r"smollm", "smollm"),
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
    """The family of `provider:model`, or of a bare model id as a provider reports it."""
    provider, colon, model = name.partition(":")
    if not colon:
        provider, model = "", name
    if provider in ("fake", "offline"):
        return provider
    for pattern, maker in _BY_ID:
        if re.search(pattern, model.lower()):
            return maker
    return _BY_PROVIDER.get(provider, model.lower())
