"""`run --dry-run`: the study in full, and what it would take."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from ..calls.estimate import estimate
from ..planning.prices import price_table
from ..planning.study_file import as_document, as_toml, completed
from ..planning.trials import planned_calls
from ..records.study import Study
from ..schemas import RunPlan
from ..store.strict_json import fingerprint
from ..text.count import counted
from . import tables

BATCH_NOTE = (
    "Judges' calls go into batches, where their provider has them, and are estimated at batch prices. What of them",
    "is read from a cache is not promised there. Batches take up to a day; a run needs three or more rounds of them.",
)


def show_plan(study: Study, plan: RunPlan, *, as_json: bool) -> int:
    whole = completed(study, plan)
    prices = price_table(Path(study.prices) if study.prices else None)
    batch = study.batch == "judges"
    rows = estimate(plan, prices, api_id_of=lambda name: plan.api_ids[name], batch=batch)
    calls = planned_calls(plan)
    calls["total"] = sum(calls.values())
    if as_json:
        document = {
            "trials": plan.trial_count,
            "scenarios": [planned.name for planned in plan.scenarios],
            "targets": list(plan.targets),
            "verifiers": list(plan.verifiers),
            "adjudicator": plan.adjudicator,
            "repeats": plan.repeats,
            "seed": plan.seed,
            "calls": calls,
            "estimate": [asdict(row) for row in rows],
            "plan_sha256": fingerprint(plan.model_dump(mode="json")),
            "study": as_document(whole),
        }
        print(json.dumps(document, indent=2, ensure_ascii=False))
        return 0
    sizes = {"scenario": len(plan.scenarios), "target": len(plan.targets), "repeat": plan.repeats}
    print("# The study in full. Save this as a .toml file here and run it with: medicare-eval run FILE")
    print(as_toml(whole))
    _comment(
        f"{counted(plan.trial_count, 'trial')}: {' x '.join(counted(n, what) for what, n in sizes.items())}",
        f"  scenarios   {', '.join(planned.name for planned in plan.scenarios)}",
        f"  targets     {', '.join(plan.targets)}",
        f"  verifiers   {', '.join(plan.verifiers)}",
        f"  adjudicator {plan.adjudicator or 'none: ties stay open for a person'}",
        f"  isolation   {plan.isolation}",
        *_year_notes(plan),
        "Calls (minimum: no retries, no re-asks, no ties):",
        *(f"  {role:<12}{count:>8,}" for role, count in calls.items()),
        *tables.estimate_table(rows).splitlines(),
        *(BATCH_NOTE if batch else ()),
        "No call was made and nothing was written.",
    )
    return 0


def _year_notes(plan: RunPlan) -> list[str]:
    """What the plan year means for the keys."""
    notes = [f"  plan year   {plan.plan_year}" + (" (coming)" if plan.coming else "")]
    if plan.points_left_out:
        left_out = counted(plan.points_left_out, "point")
        notes.append(f"  left out    {left_out} of questions: figures not published, or not in the file of figures")
    return notes


def _comment(*lines: str) -> None:
    """As comments, so that all of the output is a study file."""
    for line in lines:
        print(f"# {line}".rstrip())
