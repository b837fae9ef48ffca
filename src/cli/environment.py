"""`models` and `doctor`: what can be called from here."""

from __future__ import annotations

import argparse
import json

from ..adapters.models import MODELS
from ..adapters.registry import PROVIDERS
from ..planning.clock import today
from . import tables


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
