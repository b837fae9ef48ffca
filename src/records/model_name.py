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


SETTINGS_MARK = "#"
"""Between a model and the settings that make a target of it: `openai:gpt-5.5#search`."""


def bare_name(name: str) -> str:
    """`openai:gpt-5.5#search` -> `openai:gpt-5.5`."""
    return name.partition(SETTINGS_MARK)[0]


def split_name(name: str) -> ModelName:
    """`openai:gpt-4.1` -> provider "openai", model "gpt-4.1", without what names settings.

    Colons after the first belong to the model.
    """
    provider, _, model = bare_name(name).partition(":")
    return ModelName(provider, model)


def is_person(name: str) -> bool:
    """Whether `human:r1` or the like answers."""
    return split_name(name).provider == "human"


_PSEUDONYM = re.compile(r"[a-z][a-z0-9-]{0,29}")
PSEUDONYMS = "Use up to 30 small letters, digits and hyphens, such as r1."


def is_pseudonym(name: str) -> bool:
    return bool(_PSEUDONYM.fullmatch(name))


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
_OF_ONE_FAMILY = frozenset({"openai", "anthropic", "google", "xai", "fake", "offline"})
"""Providers that serve models of their own family alone, whatever the models' names are."""


def family(name: str) -> str:
    """The family of a `provider:model` as a user names it."""
    provider, model = split_name(name)
    if provider in ("fake", "offline"):
        return provider
    if is_person(name):
        return name  # a person is of no model's family
    return _company(model) or (provider if provider in _OF_ONE_FAMILY else model.lower())


def family_of_id(model_id: str) -> str:
    """The family of a bare model id, as a provider reports what it served; colons are part of it."""
    return _company(model_id) or model_id.lower()


def is_version_of(served: str, api_id: str) -> bool:
    """Whether a served id is the id called, or that id followed by a date or build number."""
    served, api_id = served.removeprefix("models/"), api_id.removeprefix("models/")
    dated = rf"{re.escape(api_id)}[-@](?:\d{{3,4}}|\d{{8}}|\d{{4}}-\d{{2}}-\d{{2}})"
    return served == api_id or re.fullmatch(dated, served) is not None


def names_another(name: str, served: str) -> bool:
    """Whether a served id that is not the one requested names a known model.

    A gateway or a local server may report any name, such as that of a file. So an unknown id accuses nobody. Nor does
    one of the same company at a `compatible` server, which may write the name of a model in its own way.
    """
    provider, model = split_name(name)
    company = _company(served.rpartition("/")[2])
    if provider in _OF_ONE_FAMILY:
        return company is not None
    return None not in (company, _company(model)) and company != _company(model)


def _company(model_id: str) -> str | None:
    for pattern, company in _BY_ID:
        if re.search(pattern, model_id.lower()):
            return company
    return None
