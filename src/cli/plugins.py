"""`medicare-eval plugins`: what other installed packages add, and whether it can be used."""

from __future__ import annotations

import argparse
import json

from ..errors import ConfigError
from ..plugins import Listed, listing
from .tables import plain_table, wrapped


def plugins(arguments: argparse.Namespace) -> int:
    """Print every plugin with its package, version and state; exit code 3 if one cannot be used."""
    listed = listing()
    if arguments.json:
        print(json.dumps([_as_json(one) for one in listed], indent=2, ensure_ascii=False))
    else:
        print(_table(listed) if listed else "No plugins are installed. docs/plugins.md shows how to write one.")
    return ConfigError.exit_code if any(one.state == "unusable" for one in listed) else 0


def _as_json(one: Listed) -> dict[str, str]:
    plugin = one.plugin
    return {
        "kind": plugin.kind,
        "name": plugin.name,
        "package": plugin.package,
        "version": plugin.version,
        "entry_point": plugin.entry_point.value,
        "state": one.state,
        "note": one.note,
    }


def _table(listed: list[Listed]) -> str:
    columns = ("kind", "name", "package and entry point", "state")
    rows = [
        [
            one.plugin.kind,
            one.plugin.name,
            f"{one.plugin.package} {one.plugin.version}\n{one.plugin.entry_point.value}",
            one.note if one.state == "shadowed" else one.state,
        ]
        for one in listed
    ]
    problems = dict.fromkeys(one.note for one in listed if one.state == "unusable")
    return "\n".join([plain_table([(name, "left") for name in columns], rows), *map(wrapped, problems)])
