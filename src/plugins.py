"""Plugins: adapters, scenario packs and exporters that other installed packages bring, found by entry points.

Nothing is read when this module is imported, and no plugin is imported before it is used. A built-in name always wins
over a plugin of the same name; two plugins of one kind with the same name are an error. docs/plugins.md is the
tutorial.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from .errors import ConfigError, HarnessError, InputError

if TYPE_CHECKING:
    from importlib import metadata

Kind = Literal["adapter", "pack", "exporter"]
GROUPS: dict[Kind, str] = {
    "adapter": "medicare_eval.adapters",
    "pack": "medicare_eval.scenarios",
    "exporter": "medicare_eval.exporters",
}
BUILT_IN: dict[Kind, frozenset[str]] = {
    "adapter": frozenset(
        {"fake", "offline", "human", "transcript", "anthropic", "openai", "google", "xai", "grok", "compatible"}
    ),
    "pack": frozenset(),
    "exporter": frozenset({"csv", "jsonl", "parquet", "dta", "sav", "inspect"}),
}
"""Names that no plugin can take. A test compares them with the tables of providers and of export formats."""
PACK_PREFIX = "pack:"
INSTALLED_AS = "medicare_eval"


@dataclass(frozen=True)
class Plugin:
    """One entry point of one installed package."""

    kind: Kind
    name: str
    package: str
    version: str
    entry_point: metadata.EntryPoint

    @property
    def shadowed(self) -> bool:
        """Whether a built-in of the same name is used instead."""
        return self.name in BUILT_IN[self.kind]

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r} of package {self.package} {self.version}"

    def load(self) -> Any:
        """Import what the entry point names; any failure becomes one `ConfigError`."""
        try:
            loaded = self.entry_point.load()
        except Exception as error:
            raise self._unusable(
                f"could not be loaded ({_shown(error)}). Reinstall or uninstall the package."
            ) from None
        self._check_same_package()
        return loaded

    def make(self, *arguments: object) -> Any:
        """Load the plugin and call what was loaded; errors of this project pass through as they are."""
        factory = self.load()
        if not callable(factory):
            raise self._unusable(f"cannot be called: {self.entry_point.value} is of type {type(factory).__name__}.")
        try:
            return factory(*arguments)
        except HarnessError:
            raise
        except Exception as error:
            raise self._unusable(f"failed to start ({_shown(error)}).") from None

    def folder(self) -> Path:
        """The folder of a scenario pack: the path that the entry point names, or what its function returns."""
        found = self.load()
        found = self.make() if callable(found) else found
        if not isinstance(found, str | os.PathLike) or not Path(found).is_dir():
            raise self._unusable(f"gives no folder of scenario files but {str(found)[:200]!r}.")
        return Path(found)

    def _unusable(self, problem: str) -> ConfigError:
        return ConfigError(f"The {self} {problem}")

    def _check_same_package(self) -> None:
        """Refuse a plugin built on another copy of this project: its errors would not be recognized as ours."""
        ours = __name__.partition(".")[0]
        module = sys.modules.get(self.entry_point.module)
        if ours == INSTALLED_AS or module is None:
            return
        names = (
            value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            for value in vars(module).values()
        )
        if any(isinstance(name, str) and name.partition(".")[0] == INSTALLED_AS for name in names):
            raise self._unusable("works only with the installed command: use `medicare-eval`.")


def _shown(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


def found(kind: Kind) -> list[Plugin]:
    """Every entry point of a kind, usable or not, sorted by name and package."""
    from importlib import metadata  # takes as long to import as all else that a list of models needs

    points = metadata.entry_points(group=GROUPS[kind])
    plugins = [
        Plugin(
            kind,
            point.name,
            point.dist.name if point.dist else "(unknown package)",
            point.dist.version if point.dist else "(unknown version)",
            point,
        )
        for point in points
    ]
    return sorted(plugins, key=lambda plugin: (plugin.name, plugin.package, plugin.entry_point.value))


def clashes(plugins: Iterable[Plugin]) -> dict[str, list[Plugin]]:
    """The plugins that share a name, by that name. Built-in names do not count: no plugin is used for those."""
    by_name: dict[str, list[Plugin]] = {}
    for plugin in plugins:
        if not plugin.shadowed:
            by_name.setdefault(plugin.name, []).append(plugin)
    return {name: same for name, same in by_name.items() if len(same) > 1}


def installed(kind: Kind) -> dict[str, Plugin]:
    """The usable plugins of a kind by name, without those a built-in shadows.

    Raises:
        ConfigError: two plugins have the same name.
    """
    plugins = found(kind)
    for same in clashes(plugins).values():
        raise clash_error(same)
    return {plugin.name: plugin for plugin in plugins if not plugin.shadowed}


def clash_error(same: list[Plugin]) -> ConfigError:
    first = same[0]
    packages = " and ".join(f"{plugin.package} {plugin.version} ({plugin.entry_point.value})" for plugin in same)
    return ConfigError(f"More than one {first.kind} plugin is named {first.name!r}: {packages}. Uninstall all but one.")


def pack_folder(name: str) -> Path:
    """The folder of the scenario pack `name`."""
    packs = installed("pack")
    if name not in packs:
        known = ", ".join(PACK_PREFIX + one for one in packs) or "none is installed"
        raise InputError(f"{PACK_PREFIX}{name[:80]}: no such scenario pack. Available: {known}.")
    return packs[name].folder()


def used_by(providers: Iterable[str], scenarios: Iterable[str]) -> dict[str, str]:
    """What a manifest records: `kind:name` -> `package version` of every plugin that a run uses.

    Args:
        providers: the part before the colon of every model the run calls; built-in ones are left out.
        scenarios: the scenarios as the user gave them; only those of the form `pack:NAME` matter.
    """
    packs = {given.removeprefix(PACK_PREFIX) for given in scenarios if given.startswith(PACK_PREFIX)}
    wanted: list[tuple[Kind, set[str]]] = [("adapter", set(providers) - BUILT_IN["adapter"]), ("pack", packs)]
    return {
        f"{kind}:{name}": f"{plugin.package} {plugin.version}"
        for kind, names in wanted
        if names
        for name, plugin in installed(kind).items()
        if name in names
    }


@dataclass(frozen=True)
class Listed:
    """A plugin and whether it can be used."""

    plugin: Plugin
    state: Literal["usable", "shadowed", "unusable"]
    note: str
    """Why it is not used; empty if it is usable."""


def listing() -> list[Listed]:
    """Every installed plugin. Each one is loaded, to see whether that works."""
    listed = []
    for kind in GROUPS:
        plugins = found(kind)
        clashing = clashes(plugins)
        listed += [_listed(plugin, clashing.get(plugin.name)) for plugin in plugins]
    return listed


def _listed(plugin: Plugin, same: list[Plugin] | None) -> Listed:
    if plugin.shadowed:
        return Listed(plugin, "shadowed", "shadowed by a built-in")
    try:
        if same:
            raise clash_error(same)
        _ = plugin.folder() if plugin.kind == "pack" else plugin.load()
    except HarnessError as error:
        return Listed(plugin, "unusable", str(error))
    return Listed(plugin, "usable", "")
