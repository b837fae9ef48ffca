"""Reporting checklists for a study of a language model's health advice, filled in with what a run knows.

Topics and item numbers are those of the published lists; their sub-items are not reproduced: ids and text are this
project's own. The items are in JSON files, one per list. What a run knows is written in `checklist_lines.md.j2`, a
template, and computed here; what it cannot know is marked `AUTHOR:`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import msgspec

from .. import storage
from ..errors import InputError
from ..findings.estimates import Estimated, estimate, key_coverage
from ..findings.judge_agreement import Judging, judging
from ..findings.read_run import Findings
from ..findings.rule_judge import offline_notices
from ..findings.sensitivity import stability
from ..records.preregistration import Registration
from ..schemas import CODES, TrialOutcome
from ..scoring.definitions import KEY_COVERAGE, MEASURES, READING_ORDER, SCORES, SHARES
from ..store.package_data import data_folder
from ..text.money import money_text
from ..text.rounded import percent
from ..trials.row import LABELS, OUTCOMES
from . import template
from .document import mean_text, share_text
from .methods import notices_text
from .run_section import key_facts, roles_of
from .score_section import OUTCOME_NAMES, knows_tampered
from .series import Runs, runs_of
from .table_one import table_one

ChecklistName = Literal["chart", "tripod-llm", "mi-clear-llm"]
CHECKLISTS: tuple[ChecklistName, ...] = get_args(ChecklistName)
ALL = "all"


class Item(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing to report."""

    item_id: str
    number: int
    """Of the published item on this topic."""
    topic: str
    report: str
    """What to report."""
    known: tuple[str, ...] = ()
    """What the run knows: lines, and after `@` the names of macros in `templates/text/checklist_lines.md.j2`."""
    ask: str = ""
    """What the author must add; empty if the run knows everything."""
    ask_if_registered: str = ""
    """Instead of `ask`, if the run was pre-registered."""


class Checklist(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    source: str
    main_items: dict[int, str]
    """Number of the published item to its topic."""
    items: tuple[Item, ...]


def file_name(name: ChecklistName) -> str:
    """The file that a report has the list in."""
    return f"{name.replace('-', '_')}_checklist.md"


def chosen_checklists(names: str | Sequence[str]) -> tuple[ChecklistName, ...]:
    """The lists that these names mean, each once; a name may be `all`, or several with commas between them."""
    given = [one.strip() for name in ([names] if isinstance(names, str) else names) for one in name.split(",")]
    for name in given:
        if name not in (*CHECKLISTS, ALL):
            known = ", ".join((*CHECKLISTS, ALL))
            raise InputError(f"{name!r} is not a checklist. Choose from {known}.")
    return tuple(name for name in CHECKLISTS if name in given or ALL in given)


@cache
def load_checklist(name: ChecklistName) -> Checklist:
    path = Path(__file__).with_name(f"checklist_{name.replace('-', '_')}.json")
    return msgspec.json.decode(path.read_bytes(), type=Checklist)


def checklists(
    names: Sequence[ChecklistName],
    findings: Findings,
    *,
    registration: Registration | None = None,
    measured: Judging | None = None,
) -> dict[ChecklistName, str]:
    """Checklists in Markdown, filled in from a run; what its author must add is marked `AUTHOR:`.

    Args:
        names: Which lists.
        findings: The run.
        registration: A pre-registration other than the one in the manifest.
        measured: What is known about the judges, if it was computed already.

    Returns:
        The text of each list.
    """
    runs = runs_of([findings], [measured or judging(findings)])
    values = _values(runs, registration or findings.manifest.registration)
    return {name: template.text("checklist", texts=load_checklist(name), **values) for name in names}


class _Target(NamedTuple):
    """The results of one model."""

    target: str
    planned: int
    outcomes: list[int]
    left: int
    """Trials that were not yet run."""
    estimates: list[str]
    units: int
    bounds: list[tuple[str, Estimated]]
    """Estimates that missing answers could change."""
    scored: int
    wrong: int
    """Scored trials in which a claim contradicts the key."""
    fabricated: int


def _values(runs: Runs, registration: Registration | None) -> dict[str, object]:
    """What the lines are filled with: one run, whose judges were measured, and numbers of it."""
    (run,) = runs.runs
    found, plan = run.found, run.found.manifest.plan
    scenarios = [planned.scenario for planned in plan.scenarios]
    files = {planned.path: planned.sha256 for planned in plan.scenarios}
    ends = [outcome for outcome in OUTCOMES if outcome != "tampered" or knows_tampered(found)]
    names = (storage.MANIFEST, storage.JOURNAL, storage.RESULTS, storage.SEAL)
    served = [
        (target, sorted(found.services[target].served)) for target in found.plan_targets if target in found.services
    ]
    return {
        "run": run,
        "found": found,
        "plan": plan,
        "measured": run.judging,
        "claims_judged": sum(one.claims for one in run.judging.agreements) if run.judging else 0,
        "kept": registration,
        "notices": notices_text(runs),
        "scenarios": scenarios,
        "turns": [turn for scenario in scenarios for turn in scenario.scripted_turns],
        "several": sum(len(scenario.scripted_turns) > 1 for scenario in scenarios),
        "spoken": sorted({str(scenario.persona.language) for scenario in scenarios if scenario.persona.language}),
        "files": files,
        "bundled": sum(digest in _bundled_hashes() for digest in files.values()),
        "facts": key_facts(plan),
        "codes": CODES,
        "checked": list(_checked_labels(run.judging)),
        "changed": [one for one in served if len(one[1]) > 1],
        "stable": [(one.target, stability(one.rows)) for one in runs.series],
        "ends": [OUTCOME_NAMES[outcome] for outcome in ends],
        "measures": [*(MEASURES[name].heading for name in READING_ORDER), KEY_COVERAGE.heading],
        "targets": [_target(found, target, ends) for target in found.plan_targets],
        "offline": list(offline_notices([found.manifest])),
        "parts": [(one, storage.file_sha256(found.folder / one)) for one in names if (found.folder / one).is_file()],
        "table_one": table_one(runs)[0],
        "roles_of": roles_of,
        "share_text": share_text,
        "money_text": money_text,
        "percent": percent,
    }


def _target(found: Findings, target: str, ends: Sequence[TrialOutcome]) -> _Target:
    rows, planned = found.of_target(target), found.planned // max(1, len(found.plan_targets))
    outcomes = Counter(row.outcome for row in rows)
    shares, scores = ([estimate(rows, one) for one in measures] for measures in (SHARES, SCORES))
    scored = [row for row in rows if row.outcome == "scored"]
    return _Target(
        target,
        planned,
        [outcomes[outcome] for outcome in ends],
        planned - len(rows),
        [*map(share_text, shares), *map(mean_text, scores), share_text(key_coverage(rows))],
        max(one.units for one in (*shares, *scores)),
        [
            (MEASURES[name].heading, one)
            for name, one in zip(SHARES, shares, strict=True)
            if one.missing and one.lowest is not None and one.highest is not None
        ],
        len(scored),
        sum(row.labels[LABELS.index("CONTRADICTED")] > 0 for row in scored),
        sum(row.fabricated for row in scored),
    )


def _checked_labels(measured: Judging | None) -> Iterator[tuple[str, int, int]]:
    """For each label: how often the judges of the judge check found it, of how many."""
    check = measured.check if measured else None
    if check and check.end_to_end:
        matrix = check.end_to_end.matrix()
        for label in LABELS:
            yield label, matrix.get((label, label), 0), sum(n for (gold, _), n in matrix.items() if gold == label)


@cache
def _bundled_hashes() -> frozenset[str]:
    return frozenset(storage.file_sha256(path) for path in data_folder("scenarios").rglob("*.json"))
