"""What a run prints when it ends or stops."""

from __future__ import annotations

import json

from .. import reporting, storage
from ..reading import Run
from . import tables


def print_summary(run: Run, *, as_json: bool) -> reporting.Summary:
    """Print it, and return it for the exit code."""
    summary = run.summary()
    spending = summary.found.calls.spending
    seal = storage.read_seal(run.path, run.manifest)
    if as_json:
        document = {
            "run": str(run.path),
            "head": seal.results_head if seal else None,
            "sealed": seal is not None,
            **reporting.summary_json(summary),
            "errors": [vars(error) for error in summary.errors],
            "costs": [vars(row) for row in spending],
            "prices_as_of": run.manifest.prices_as_of,
        }
        print(json.dumps(document, indent=2, ensure_ascii=False))
        return summary
    print(tables.summary_table(summary))
    if any(tally.codes for tally in summary.by_target.values()):
        print(f"\n{tables.code_table(summary)}")
    print(tables.wrapped(tables.cost_text(spending, run.manifest.prices_as_of)))
    if summary.errors:
        print(f"\n{tables.error_text(summary.errors)}")
    for notice in reporting.notices(summary):
        print(f"\n{tables.wrapped(notice)}")
    print("\nWritten:")
    for name in (storage.MANIFEST, storage.JOURNAL, storage.RESULTS, storage.SEAL):
        if (run.path / name).exists():
            print(f"  {run.path / name}")
    if seal:
        print("Results hash (save this somewhere else; check it later with")
        print("`medicare-eval verify RUN --expect HASH`):")
        print(f"  {seal.results_head}")
    return summary
