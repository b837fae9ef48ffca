"""`models`, `doctor` and `plugins`: what can be called from here, and what other packages add."""

from __future__ import annotations

import argparse
import json

from ..adapters.models import MODELS
from ..adapters.registry import PROVIDERS
from ..errors import ConfigError
from ..planning.clock import today
from ..plugins import Listed, listing
from . import tables
from .tables import plain_table, wrapped


def models(arguments: argparse.Namespace) -> int:
    day = today()
    rows = [
        {
            "name": row.full_name,
            "api_id": row.api_id,
            "status": row.status_on(day),
            "since": row.since.isoformat() if row.since else None,
            "note": row.since_note,
            "successors": list(row.successors),
            "key": PROVIDERS[row.provider].key_variable,
            "key_is_set": PROVIDERS[row.provider].key_is_set(),
        }
        for row in MODELS
    ]
    print(json.dumps(rows, indent=2) if arguments.json else tables.model_table(rows))
    return 0


def doctor(arguments: argparse.Namespace) -> int:
    from . import doctor as checks  # a list of models needs none of its imports

    findings = checks.examine(reach=arguments.reach, out=arguments.out)
    print(json.dumps(checks.as_json(findings), indent=2) if arguments.json else checks.table(findings))
    return 3 if any(finding.state == "error" for finding in findings) else 0


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
    headings = ("kind", "name", "package and entry point", "state")
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
    return "\n".join([plain_table(headings, rows, "llll"), *map(wrapped, problems)])
