"""Reporting checklists for a study of a language model's health advice, filled in with what a run knows.

Topics and item numbers are those of the published lists; their sub-items are not reproduced: ids and text are this
project's own. All text is in JSON files, one per list, and lines that several lists share are in checklist_lines.json.
Functions below compute the values for their {placeholders}, as Markdown. What a run cannot know is marked `AUTHOR:`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, get_args

import msgspec

from .. import storage
from ..errors import InputError
from ..findings.cost import CallTimes
from ..findings.judge_agreement import Judging, judging
from ..findings.read_run import Findings, software_version
from ..findings.rule_judge import offline_notices
from ..records.preregistration import Registration
from ..schemas import CODES, PlannedScenario, RunPlan
from ..store.package_data import data_folder
from ..text.count import counted
from ..text.escape import inert
from .checklist_results import Value, judge_facts, markdown_table, result_facts, spending_lines, stability_facts, was
from .markdown import notice_lines
from .methods import AUTHOR
from .notices import notices_of
from .run_section import confirmed_text, key_facts, parameters_text, roles_of
from .series import Run, Runs, runs_of
from .table_one import markdown_lines, table_one


def facts_of(runs: Runs, registration: Registration | None) -> dict[str, Value]:
    """The values for one run, whose judges were measured."""
    (run,) = runs.runs
    found = run.found
    return (
        _run_facts(found)
        | _model_facts(run)
        | _question_facts(found)
        | _independence_facts(found.manifest.plan)
        | _key_facts(found.manifest.plan)
        | judge_facts(run)
        | result_facts(found)
        | stability_facts(runs.series)
        | _registration_facts(registration)
        | {"table_one": "\n".join(markdown_lines(table_one(runs)[0])) + "\n"}
    )


def _run_facts(found: Findings) -> dict[str, Value]:
    manifest, plan = found.manifest, found.manifest.plan
    done = len(found.rows)
    transcripts = manifest.transcripts
    names = (storage.MANIFEST, storage.JOURNAL, storage.RESULTS, storage.SEAL)
    return {
        "author": AUTHOR,
        "version": inert(software_version(manifest) or "(version not recorded)"),
        "versions": ", ".join(f"{inert(name)} {inert(version)}" for name, version in manifest.versions.items()),
        "run_id": inert(manifest.run_id),
        "created": inert(manifest.created),
        "transcripts": f"{inert(transcripts.run_id)} (manifest sha256 `{transcripts.manifest_sha256}`)"
        if transcripts
        else None,
        "offline_notice": next(map(inert, offline_notices([manifest])), None),
        "planned": counted(found.planned, "trial"),
        "done": str(done),
        "repeats": "once" if plan.repeats == 1 else counted(plan.repeats, "time"),
        "models": counted(len(plan.targets), "model"),
        "size": f"{counted(len(plan.scenarios), 'conversation')} × {counted(len(plan.targets), 'model')} × "
        f"{counted(plan.repeats, 'repeat')}",
        "plan_sha256": manifest.plan_sha256,
        "head": found.head,
        "sealed": "sealed" if found.sealed else "not sealed: the run is not complete",
        "files": [
            f"{name}: sha256 `{storage.file_sha256(found.folder / name)}`"
            for name in names
            if (found.folder / name).is_file()
        ],
    }


def _model_facts(run: Run) -> dict[str, Value]:
    found, plan = run.found, run.found.manifest.plan
    times = run.calls.times
    of_targets = CallTimes.spanning([times[target] for target in plan.targets if target in times])
    left_out = [
        f"{inert(name)}: {inert(', '.join(sorted(service.not_applied)))}"
        for name, service in found.services.items()
        if service.not_applied
    ]
    return {
        "models_table": _models_table(found),
        "days_by_model": [f"{inert(name)}: {_days(one)}" for name, one in times.items()],
        "days_of_targets": (f"from {days}" if " to " in (days := _days(of_targets)) else f"on {days}")
        if of_targets
        else None,
        "target_parameters": parameters_text(plan.target_parameters),
        "judge_parameters": parameters_text(plan.judge_parameters),
        "own_parameters": [f"{inert(name)}: {parameters_text(own)}" for name, own in plan.model_parameters.items()],
        "not_applied": "; ".join(left_out) or "none",
        "seed": str(plan.seed),
        "max_attempts": str(plan.policy.max_attempts),
        "deadline": f"{plan.policy.deadline_s:g}",
        "max_asks": str(plan.policy.max_asks),
        "spending": spending_lines(run.calls.spending),
        "several_versions": _several_versions(found),
        "prompt_files": [f"{role}: `{prompt.sha256}`" for role, prompt in plan.prompts.items()],
    }


def _several_versions(found: Findings) -> str | None:
    """The targets whose version changed during the run."""
    changed = [
        f"{inert(target)} ({inert(', '.join(sorted(service.served)))})"
        for target in found.plan_targets
        if (service := found.services.get(target)) and len(service.served) > 1
    ]
    return f"More than one version answered during the run: {'; '.join(changed)}" if changed else None


def _models_table(found: Findings) -> str:
    rows = []
    for name, service in found.services.items():
        roles = ", ".join("under test" if role == "target" else role for role in roles_of(found.manifest.plan, name))
        served = ", ".join(inert(one) for one in sorted(service.served)) or "not stated"
        same = "**no**" if service.differs else service.as_requested
        not_applied = inert(", ".join(sorted(service.not_applied))) or "none"
        rows.append([inert(name), roles, inert(service.called), served, same, not_applied])
    return markdown_table(
        ["model", "role", "called as", "served by", "as requested", "parameters not applied"], rows, numbers=False
    )


def _question_facts(found: Findings) -> dict[str, Value]:
    plan = found.manifest.plan
    scenarios = [planned.scenario for planned in plan.scenarios]
    turns = [turn for scenario in scenarios for turn in scenario.scripted_turns]
    study_groups = found.study_groups
    conditional = sum(turn.condition is not None for turn in turns)
    several = sum(len(scenario.scripted_turns) > 1 for scenario in scenarios)
    languages = {str(scenario.persona.language) for scenario in scenarios if scenario.persona.language}
    wording = "the scenarios' own wording"
    if plan.wording:
        wording = f"the wording of {inert(plan.wording.title)} (sha256 `{plan.wording.sha256}`), otherwise {wording}"
    return {
        "wording": wording,
        "questioner": inert(plan.questioner) if plan.questioner else None,
        "conversations": counted(len(scenarios), "conversation"),
        "turns": counted(len(turns), "turn"),
        "study_groups": counted(study_groups, "question group") if study_groups else None,
        "scenario_files": [f"{inert(planned.name)}: `{planned.sha256}`" for planned in plan.scenarios],
        "several_questions": f"{several} of {len(scenarios)}",
        "conditional_turns": f"{counted(conditional, 'turn')} {was(conditional)}" if conditional else None,
        "languages": inert(", ".join(sorted(map(str, languages)))) if languages else None,
    }


def _independence_facts(plan: RunPlan) -> dict[str, Value]:
    """When the questions are set, and whether their files are public: those of the bundled bank are."""
    dates = sorted(planned.scenario.effective_date for planned in plan.scenarios)
    files = {planned.path: planned for planned in plan.scenarios}
    bundled = sum(map(_is_bundled, files.values()))
    own = len(files) - bundled
    total = counted(len(files), "scenario file")
    return {
        "effective_dates": str(dates[0]) if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}",
        "bundled": f"{bundled} of {total} {_is(bundled)}" if bundled else None,
        "own_files": f"{own} of {total} {_is(own)}" if own else None,
    }


@cache
def _bundled_hashes() -> frozenset[str]:
    return frozenset(storage.file_sha256(path) for path in data_folder("scenarios").rglob("*.json"))


def _is_bundled(planned: PlannedScenario) -> bool:
    return planned.sha256 in _bundled_hashes()


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _key_facts(plan: RunPlan) -> dict[str, Value]:
    facts = key_facts(plan)
    return {
        "facts": counted(len(facts), "fact"),
        "plan_year": str(plan.plan_year),
        "confirmed": confirmed_text(facts),
        "sources": counted(len({fact.source for fact in facts}), "source"),
        "expired": [inert(reason) for reason in plan.expired],
        "references": counted(len(plan.references), "file") + " of figures, facts and invented plans"
        if plan.references
        else None,
        "codes": ", ".join(code.replace("_", " ") for code in CODES),
        "rubric_files": [f"{inert(name)}, sha256 `{rubric.sha256}`" for name, rubric in plan.rubrics.items()],
    }


def _registration_facts(kept: Registration | None) -> dict[str, Value]:
    return {
        "primary_outcome": inert(kept.primary_outcome) if kept else None,
        "planned_tests": [inert(test) for test in kept.tests] if kept else None,
        "registration": registration_lines(kept)
        if kept
        else ["- This run was started without a pre-registration (`medicare-eval freeze`)."],
    }


def registration_lines(kept: Registration) -> list[str]:
    """What the checklist says about a pre-registration, in Markdown."""
    lines = [
        f"- Pre-registration of {inert(kept.created)}, sha256 `{kept.sha256}`",
        f"- Primary outcome: {inert(kept.primary_outcome)}",
        *(f"- Planned test: {inert(test)}" for test in kept.tests),
    ]
    if kept.notes:
        lines.append(f"- Notes: {inert(kept.notes)}")
    if not kept.deviations:
        return [*lines, "- Deviations from the pre-registration: none"]
    return [
        *lines,
        f"- **Deviations from the pre-registration: {len(kept.deviations)}**",
        *(f"  - {inert(deviation)}" for deviation in kept.deviations),
    ]


def _days(times: CallTimes) -> str:
    first, last = times.first[:10], times.last[:10]
    return first if first == last else f"{first} to {last}"


ChecklistName = Literal["chart", "tripod-llm", "mi-clear-llm"]
CHECKLISTS: tuple[ChecklistName, ...] = get_args(ChecklistName)
ALL = "all"
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_SHARED = "@"


class Item(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing to report."""

    item_id: str
    number: int
    """Of the published item on this topic."""
    topic: str
    report: str
    """What to report."""
    known: tuple[str, ...] = ()
    """What the run knows, as lines with {placeholders}; `@name` stands for shared lines."""
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
def shared_lines() -> dict[str, tuple[str, ...]]:
    return msgspec.json.decode(_text_file("lines").read_bytes(), type=dict[str, tuple[str, ...]])


@cache
def load_checklist(name: ChecklistName) -> Checklist:
    """A list, with shared lines in place."""
    read = msgspec.json.decode(_text_file(name.replace("-", "_")).read_bytes(), type=Checklist)
    items = tuple(msgspec.structs.replace(item, known=tuple(_lines(item.known))) for item in read.items)
    return msgspec.structs.replace(read, items=items)


def _text_file(name: str) -> Path:
    return Path(__file__).with_name(f"checklist_{name}.json")


def _lines(known: Sequence[str]) -> Iterator[str]:
    for line in known:
        if line.startswith(_SHARED):
            yield from shared_lines()[line.removeprefix(_SHARED)]
        else:
            yield line


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
    registered = registration or findings.manifest.registration
    facts = facts_of(runs, registered)
    notices = "\n".join(notice_lines(one.cells for one in notices_of(runs)))
    return {name: _text(load_checklist(name), facts, notices, registered=bool(registered)) for name in names}


def _text(texts: Checklist, facts: Mapping[str, Value], notices: str, *, registered: bool) -> str:
    head = [f"# Reporting checklist ({texts.name}): run {{run_id}}", texts.source, *shared_lines()["intro"]]
    blocks = [*fill(head, facts), notices]
    number = 0
    for item in texts.items:
        if item.number != number:
            number = item.number
            blocks.append(f"## {texts.name} item {number}: {texts.main_items[number]}")
        ask = item.ask_if_registered if registered and item.ask_if_registered else item.ask
        lines = [*fill(item.known, facts), *([f"- {AUTHOR} {ask}"] if ask else [])]
        blocks += [f"### {item.item_id} {item.topic}", f"*{item.report}*", "\n".join(lines).rstrip("\n")]
    return "\n\n".join(filter(None, blocks)) + "\n"


def fill(lines: Sequence[str], facts: Mapping[str, Value]) -> Iterator[str]:
    """Lines with their placeholders replaced.

    A line is left out if one of its values is None, and repeated for each entry if one of its values is a list.
    """
    for line in lines:
        names = _PLACEHOLDER.findall(line)
        lists = [name for name in names if isinstance(facts[name], list)]
        for entry in facts[lists[0]] or () if lists else [""]:
            values = {name: entry if name in lists else facts[name] for name in names}
            if None not in values.values():
                yield _filled(line, values)


def _filled(line: str, values: Mapping[str, Value]) -> str:
    return _PLACEHOLDER.sub(lambda found: str(values[found[1]]), line)
