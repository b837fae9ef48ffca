"""Providers by name: which file serves each, which variable holds its key, which extra installs its SDK.

The rows are in `providers.json`. The file behind one is imported only when a run names the provider. Other packages may
add providers (see `plugins`): their entry point is called with no arguments and returns an `Adapter`.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from importlib import import_module, util
from pathlib import Path
from typing import TYPE_CHECKING

from .. import plugins
from ..errors import ConfigError, InputError
from ..records.model_name import PROVIDER_ALIASES, split_name
from .addresses import Endpoint, endpoint, proxy_for

if TYPE_CHECKING:  # a list of providers needs no records, which take long to import
    from .base import Adapter, Batches


def missing_sdk(extra: str) -> str:
    """How to install an SDK that is missing, in words that work in a checkout, a wheel and a notebook.

    The SDK itself is named, never this project: no public index has a distribution of its name that is ours.
    """
    return f"The SDK for {extra} is not installed; run: python -m pip install '{REQUIREMENTS.get(extra, extra)}'"


@dataclass(frozen=True)
class Provider:
    name: str
    module: str
    class_name: str
    sdk: str | None = None
    """The package that must be importable."""
    extra: str | None = None
    requirement: str = ""
    """What the extra installs, as in pyproject.toml."""
    key_variable: str | None = None
    key_required: bool = True
    base_url_variable: str | None = None
    version_variable: str | None = None
    """Names the version of the API, where the SDK writes it into the address."""
    batches: str | None = None
    """The class of its batch API, in the same file."""
    default_judge: str | None = None
    """The model that judges by default when another provider's model is the target."""

    @property
    def needs_key(self) -> bool:
        return self.key_variable is not None and self.key_required

    def settings(self) -> dict[str, str | None]:
        """What its adapter is made with, besides the key."""
        given = {"base_url": self.base_url_variable, "api_version": self.version_variable}
        return {name: os.environ.get(variable) or None for name, variable in given.items() if variable}

    def endpoint(self) -> Endpoint:
        """Where it is called; `ConfigError` if a variable has no usable address or version."""
        given = self.settings()
        variable = self.base_url_variable or ""
        return endpoint(self.name, given.get("base_url"), api_version=given.get("api_version"), variable=variable)

    def key_is_set(self) -> bool:
        return bool(self.key_variable and os.environ.get(self.key_variable))


PROVIDERS = {
    row["name"]: Provider(**row)
    for row in json.loads(Path(__file__).with_name("providers.json").read_text(encoding="utf-8"))
}
"""Their order is the documented order in which default judges are chosen."""
REQUIREMENTS = {row.extra: row.requirement for row in PROVIDERS.values() if row.extra}


def canonical_name(name: str) -> str:
    """`grok:grok-2` -> `xai:grok-2`; raises `InputError` for what is not a `provider:model` we know."""
    provider, model = split_name(name)
    if not model or any(char.isspace() or not char.isprintable() for char in name) or len(name) > 200:
        raise InputError(f"{name[:80]!r}: expected provider:model, for example openai:gpt-4.1 or fake:careful.")
    try:
        return f"{canonical_provider(provider)}:{model}"
    except InputError as error:
        raise InputError(f"{name!r}: {error}") from None


def canonical_provider(name: str) -> str:
    """`grok` -> `xai`; raises `InputError` for a provider that is neither built in nor installed."""
    provider = PROVIDER_ALIASES.get(name, name)
    if provider not in PROVIDERS:
        installed = plugins.installed("adapter")
        if provider not in installed:
            known = ", ".join([*PROVIDERS, *PROVIDER_ALIASES, *installed])
            raise InputError(f"there is no provider {provider!r}. Use one of {known}.")
    return provider


def check_usable(name: str) -> None:
    """Fail now, before anything is spent, if a provider's SDK, key or model is missing."""
    check_settings(name)
    check_exists(name)


def check_exists(name: str) -> None:
    """Refuse a model that its adapter knows not to exist. Adapters that need a key are not asked."""
    from .base import ChecksModels

    provider, model = split_name(name)
    row = PROVIDERS.get(provider)
    if row is None or row.key_variable is None:
        adapter = make_adapter(provider)
        if isinstance(adapter, ChecksModels):
            adapter.check(model)


def check_settings(name: str) -> None:
    """Refuse a model whose provider has no key, address or SDK here."""
    provider = PROVIDERS.get(split_name(name).provider)
    if provider:
        _check_settings(name, provider)


def _check_settings(name: str, provider: Provider) -> None:
    if provider.needs_key and not provider.key_is_set():
        raise ConfigError(f"{name}: no key; set the environment variable {provider.key_variable}.")
    if provider.name == "compatible" and not os.environ.get("COMPATIBLE_BASE_URL"):
        raise ConfigError(f"{name}: no address; set COMPATIBLE_BASE_URL, for example http://127.0.0.1:8000/v1.")
    if provider.base_url_variable:
        try:
            proxy_for(provider.endpoint().base_url)
        except ConfigError as error:
            raise ConfigError(f"{name}: {error}") from None
    if provider.sdk and not _importable(provider.sdk):
        raise ConfigError(f"{name}: {missing_sdk(provider.extra or provider.name)}.")


def _importable(module: str) -> bool:
    try:
        return util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def make_adapter(provider_name: str) -> Adapter:
    """Import a provider's file, or a plugin, and make its adapter."""
    provider = PROVIDERS.get(provider_name)
    if provider is None:
        return _make_plugin(plugins.installed("adapter")[provider_name])
    factory = getattr(import_module(f".{provider.module}", __package__), provider.class_name)
    if provider.key_variable is None:
        return factory()  # type: ignore[no-any-return]
    key = os.environ.get(provider.key_variable, "")
    return factory(api_key=key, **provider.settings())  # type: ignore[no-any-return]


def make_batches(provider_name: str, adapter: Adapter) -> Batches | None:
    """The batch API of a provider, through its adapter; None if it has none."""
    provider = PROVIDERS.get(provider_name)
    if provider is None:
        from .base import HasBatches

        return adapter.batches() if isinstance(adapter, HasBatches) else None
    if provider.batches is None:
        return None
    made: Batches = getattr(import_module(f".{provider.module}", __package__), provider.batches)(adapter)
    return made


def _make_plugin(plugin: plugins.Plugin) -> Adapter:
    adapter: Adapter = plugin.make()
    if not (callable(getattr(adapter, "complete", None)) and callable(getattr(adapter, "aclose", None))):
        made = type(adapter).__name__
        raise ConfigError(f"The {plugin} made an object of type {made}, which has no complete() and aclose().")
    return adapter
