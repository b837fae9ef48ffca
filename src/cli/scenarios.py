"""`validate`, `scenarios` and `new-scenario`: what they print. The work is done in `authoring`."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..inputs.authoring.catalog import (
    CONFIRMED,
    FactRow,
    ScenarioRow,
    SourceRow,
    current_facts,
    list_facts,
    list_library,
    list_scenarios,
    list_sources,
    write_skeleton,
)
from ..inputs.authoring.lint import lint_files
from ..inputs.authoring.spreadsheet_import import import_workbook, write_imported
from ..inputs.authoring.spreadsheet_write import write_workbook
from ..planning.clock import today
from ..planning.house_rules import PLACEHOLDER
from ..planning.library import Library
from ..planning.scenario_files import ScenarioFile, read_scenarios
from ..records.background import BackgroundFact
from ..records.study import Study
from ..store.package_data import data_folder
from ..text.count import counted
from . import tables


def validate(arguments: argparse.Namespace) -> int:
    library = Library(arguments.facts, arguments.invented_plans)
    found = lint_files(arguments.scenario, library, today())
    problems = [*found.errors, *found.warnings] if arguments.strict else found.errors
    if not arguments.strict:
        for warning in found.warnings:
            print(f"medicare-eval: warning: {warning}", file=sys.stderr)
    if problems:
        raise InputError("\nmedicare-eval: ".join(problems))
    files = read_scenarios(arguments.scenario)
    unconfirmed = False
    for file in files:
        lines = _valid_lines(file, library)
        unconfirmed = unconfirmed or len(lines) > 1
        print("\n".join(lines))
    note = " The facts listed were not confirmed in the primary source." if unconfirmed else ""
    warned = f", {counted(len(found.warnings), 'warning')}" if found.warnings else ""
    print(f"{counted(len(files), 'scenario')} valid{warned}.{note}")
    return 0


def house_rule_notice(study: Study) -> str | None:
    """How many house rules the scenarios of a study break, and which command lists them; None if they break none."""
    count = 0
    with suppress(InputError):  # the plan refuses it, and says where the field was set
        facts, plans = (Path(path) if path else None for path in (study.facts, study.invented_plans))
        library = Library(facts, plans)
        count = len(lint_files(study.scenarios, library, today()).warnings)
    if not count:
        return None
    files = {"--facts": study.facts, "--invented-plans": study.invented_plans}
    flags = [part for flag, path in files.items() if path for part in (flag, path)]
    listed = shlex.join([*study.scenarios, *flags])
    return f"{counted(count, 'warning')} about the scenarios. To list them: medicare-eval validate {listed}"


def _valid_lines(file: ScenarioFile, library: Library) -> list[str]:
    """One line for the file, then its facts that were not confirmed in the primary source."""
    facts = current_facts(file, library, today())
    scenario = file.scenario
    counts = (
        counted(len(scenario.scripted_turns), "turn"),
        counted(len(facts), "fact"),
        counted(len(scenario.all_required_points()), "required point"),
    )
    lines = [f"{file.name}: ok: {scenario.scenario_id}, {', '.join(counts)}"]
    for how in CONFIRMED[1:]:
        ids = [fact_id for fact_id, fact in facts.items() if fact.confirmed_by == how]
        if ids:
            lines.append(f"    {how:<9} {' '.join(ids)}")
    return lines


def show_scenarios(arguments: argparse.Namespace) -> int:
    listed = list_scenarios(_files(arguments), _library(arguments), today(), arguments.plan_year)
    print(_as_json([asdict(row) for row in listed]) if arguments.json else _list_table(listed))
    return 0


def show_facts(arguments: argparse.Namespace) -> int:
    facts = list_facts(_files(arguments), _library(arguments), arguments.plan_year)
    rows = [{"scenario_id": row.scenario_id, **row.fact.model_dump(mode="json", exclude={"only"})} for row in facts]
    print(_as_json(rows) if arguments.json else _fact_text(facts))
    return 0


def show_sources(arguments: argparse.Namespace) -> int:
    sources = list_sources(_files(arguments), _library(arguments), arguments.plan_year)
    print(_as_json([asdict(row) for row in sources]) if arguments.json else _source_text(sources))
    return 0


def show_library(arguments: argparse.Namespace) -> int:
    held = list_library(_library(arguments), today(), arguments.plan_year)
    print(_as_json([fact.model_dump(mode="json") for fact in held]) if arguments.json else _library_text(held))
    return 0


def _files(arguments: argparse.Namespace) -> tuple[ScenarioFile, ...]:
    return read_scenarios(arguments.scenario or [str(data_folder("scenarios"))])


def _library(arguments: argparse.Namespace) -> Library:
    return Library(arguments.facts, arguments.invented_plans)


def export(arguments: argparse.Namespace) -> int:
    if arguments.out.suffix.lower() != ".xlsx":
        raise InputError(f"--out: {arguments.out} must end in .xlsx, so that a spreadsheet program opens it.")
    files = _files(arguments)
    write_workbook([file.scenario for file in files], _library(arguments).facts, arguments.out)
    print(arguments.out)
    print(
        f"{counted(len(files), 'scenario')} written. Edit the workbook, then turn it into scenario files: "
        f"medicare-eval scenarios import {shlex.quote(str(arguments.out))} --out FOLDER"
    )
    return 0


def import_scenarios(arguments: argparse.Namespace) -> int:
    found = import_workbook(arguments.workbook, arguments.out, _library(arguments), today())
    if found.errors:
        raise InputError("\nmedicare-eval: ".join([*found.errors, "Nothing was written."]))
    paths = write_imported(found)
    for warning in found.warnings:
        print(f"medicare-eval: warning: {warning}", file=sys.stderr)
    print("\n".join(map(str, paths)))
    warned = f", {counted(len(found.warnings), 'warning')}" if found.warnings else ""
    print(
        f"{counted(len(paths), 'scenario')} written{warned}. "
        f"To check them again: medicare-eval validate {shlex.quote(str(arguments.out))}"
    )
    return 0


def _as_json(rows: Sequence[dict[str, Any]]) -> str:
    return json.dumps(rows, indent=2, ensure_ascii=False)


def _list_table(rows: Sequence[ScenarioRow]) -> str:
    left_out = any(row.unpublished for row in rows)
    numbers = ("variants", "years", "turns", "facts:\nP/S/D", *(["left\nout"] if left_out else []), "status")
    cells = [
        [
            f"{row.scenario_id}\n({_about(row)})",
            str(len(row.variants) or 1),
            _span(row.plan_years),
            str(row.turns),
            "/".join(str(row.confirmed(how)) for how in CONFIRMED),
            *([str(row.unpublished or "")] if left_out else []),
            row.status,
        ]
        for row in rows
    ]
    primary, secondary, derived = (sum(row.confirmed(how) for row in rows) for how in CONFIRMED)
    caption = (
        f"{counted(len(rows), 'scenario')}. P/S/D: facts confirmed in the primary source ({primary}), in a secondary "
        f"source that cites it ({secondary}), or derived by arithmetic ({derived})."
    )
    if left_out:
        caption += " Points left out rest on figures that are not published, or not known here."
    return tables.plain_table(("scenario", *numbers), cells, caption=caption)


def _about(row: ScenarioRow) -> str:
    """The themes, or the title if they only repeat the id."""
    return ", ".join(theme for theme in row.themes if theme != row.scenario_id) or row.title


def _span(years: Sequence[int]) -> str:
    return f"{years[0]}-{years[-1]}" if len(years) > 1 else " ".join(map(str, years)) or "none"


def _fact_text(rows: Sequence[FactRow]) -> str:
    lines = []
    for row in rows:
        fact = row.fact
        window = f"from {fact.valid_from}" + (f" to {fact.valid_until}" if fact.valid_until else "")
        lines.append(f"{row.scenario_id} {fact.fact_id}: {fact.statement}")
        confirmed = fact.confirmed_by or "not confirmed"
        lines.append(f"    {confirmed}, {window}; {fact.source}, {fact.locator or 'no locator'}")
    return "\n".join(lines)


def _library_text(facts: Sequence[BackgroundFact]) -> str:
    lines = []
    for fact in facts:
        where = f" ({', '.join(fact.states)})" if fact.states else ""
        lines.append(f"{fact.fact_id}{where}: {fact.statement}")
        lines.append(f"    {fact.confirmed_by}, {fact.severity_if_wrong} if wrong; {fact.source}, {fact.locator}")
    counts = [f"{sum(fact.confirmed_by == how for fact in facts):,} {how}" for how in CONFIRMED]
    return "\n".join([*lines, f"{counted(len(facts), 'fact')}: {', '.join(counts)}."])


def _source_text(rows: Sequence[SourceRow]) -> str:
    lines = []
    for row in rows:
        lines.append(f"{row.address or '(no address recorded)'}  [{sum(map(len, row.facts.values()))}]")
        lines += [f"    {title}" for title in row.titles]
        lines += [f"      {name}: {' '.join(ids)}" for name, ids in row.facts.items()]
    addresses = sum(bool(row.address) for row in rows)
    return "\n".join([*lines, f"{counted(addresses, 'address', 'addresses')}."])


def new_scenario(arguments: argparse.Namespace) -> int:
    path: Path = arguments.out or Path(f"{arguments.scenario_id}.json")
    write_skeleton(arguments.scenario_id, path)
    print(path)
    print(f"Replace every text that says {PLACEHOLDER}, then check the file: medicare-eval validate {path}")
    return 0
