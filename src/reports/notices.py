"""What a reader must know about the runs of a report before the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from ..findings.read_run import why_apart
from ..findings.review import is_review
from ..findings.rule_judge import offline_notices, one_model_notices
from ..records.target import KIND_NAMES
from . import read_sections
from .document import Bullets, Line, say, text_cell
from .failure_section import nothing_scored
from .run_section import SHORT_HASH, kinds_of
from .series import ReportedRun, Runs


@dataclass(frozen=True)
class Notice:
    cells: Line
    urgent: bool = False
    """Something is not as planned, so it is on the first screen."""


def notices_of(runs: Runs) -> Iterator[Notice]:
    """All notices; one that does not hold for all runs names its runs."""
    if not runs.runs:
        yield Notice(read_sections.line("notices", "no_run"), urgent=True)
    for one, two in combinations(runs.runs, 2):
        shared = [target for target in one.found.plan_targets if target in two.found.plan_targets]
        if shared:
            why = why_apart(one.found, two.found)
            yield Notice(read_sections.line("notices", "apart", one=one, two=two, shared=shared, why=why), urgent=True)
    by_notice: dict[Notice, list[str]] = {}
    for run in runs.runs:
        for notice in _of_run(run):
            by_notice.setdefault(notice, []).append(run.name)
    for notice, names in by_notice.items():
        which = "" if len(names) == len(runs.runs) else ", ".join(names)
        yield replace(notice, cells=(*say(text_cell(which), ": "), *notice.cells)) if which else notice


def _of_run(run: ReportedRun) -> Iterator[Notice]:
    found, plan = run.found, run.found.manifest.plan
    marked = {target: sum(row.marked for row in found.of_target(target)) for target in found.plan_targets}
    blocks = read_sections.blocks(
        "notices",
        "of_run",
        found=found,
        plan=plan,
        one_model=one_model_notices(plan),
        offline=offline_notices([found.manifest]),
        kinds=[KIND_NAMES[kind] for kind in kinds_of(plan)],
        search=any(plan.settings_of(target).search for target in plan.targets),
        turns="; ".join(f"{name} {', '.join(ids)}" for name, ids in plan.wording.turns.items()) if plan.wording else "",
        short_hash=SHORT_HASH,
        marked={target: n for target, n in marked.items() if n},
        review=is_review(found.manifest),
        why_nothing_scored=nothing_scored(found) if found.nothing_scored else (),
    )
    for block in blocks:
        assert isinstance(block, Bullets)
        yield from (Notice(cells, urgent=block.notices) for cells in block.items)
