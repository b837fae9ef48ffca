"""The name of a model, `provider:model`: its parts, and the model family it belongs to.

No model may judge its own family. The family is decided by the model's id first, because a gateway or a local server
may serve any company's model, and by the provider second. An unknown id is a family of its own.
"""

from __future__ import annotations

import re
from typing import NamedTuple

PROVIDER_ALIASES = {"grok": "xai"}
"""Other names that users may write for a provider."""


class ModelName(NamedTuple):
    provider: str
    model: str


def split_name(name: str) -> ModelName:
    """`openai:gpt-4.1` -> provider "openai", model "gpt-4.1". Colons after the first belong to the model."""
    provider, _, model = name.partition(":")
    return ModelName(provider, model)


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
    provider, model = split_name(name)
    if provider in ("fake", "offline"):
        return provider
    return _company(model) or _BY_PROVIDER.get(provider, model.lower())


def family_of_id(model_id: str) -> str:
    """The family of a bare model id, as a provider reports what it served; colons are part of it."""
    return _company(model_id) or model_id.lower()


def _company(model_id: str) -> str | None:
    for pattern, company in _BY_ID:
        if re.search(pattern, model_id.lower()):
            return company
    return None
