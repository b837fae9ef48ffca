"""Commands for people who write scenarios: check them, list them, show what they rest on, start a new one."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from ..authoring.lint import PLACEHOLDER, lint
from ..errors import InputError, StorageError
from ..planning.clock import today
from ..planning.fill_slots import Library, out_of_date
from ..planning.scenario_files import (
    ScenarioFile,
    expand,
    read_scenario,
    read_scenarios,
)
from ..schemas import CanonicalFact, ConfirmedBy, PlannedScenario
from ..scoring.study_codes import group_of
from ..store.package_data import data_folder
from . import tables

CONFIRMED: tuple[ConfirmedBy, ...] = ("primary", "secondary", "derived")


def validate(arguments: argparse.Namespace) -> int:
    library = Library(arguments.facts, arguments.plan_file)
    findings: list[str] = []
    for path in expand(arguments.scenario):
        try:
            found = lint(read_scenario(path), library, today())
        except InputError as error:
            findings.append(str(error))
        else:
            findings += map(str, found)
    if findings:
        raise InputError("\nmedicare-eval: ".join(findings))
    files = read_scenarios(arguments.scenario)
    for file in files:
        facts = {f.fact_id: f for p in _planned(file, library) for f in p.scenario.answer_key.canonical_facts}
        points = len(file.scenario.all_required_points())
        print(
            f"{file.path}: ok: {file.scenario.scenario_id}, {len(file.scenario.scripted_turns)} turns, "
            f"{len(facts)} facts, {points} required points"
        )
        for how in CONFIRMED[1:]:
            ids = [fact_id for fact_id, fact in facts.items() if fact.confirmed_by == how]
            if ids:
                print(f"    {how:<9} {' '.join(ids)}")
    print(f"{len(files)} scenario{'' if len(files) == 1 else 's'} valid. Listed: facts not read in the source itself.")
    return 0


def _planned(file: ScenarioFile, library: Library, year: int | None = None) -> tuple[PlannedScenario, ...]:
    years = library.years
    chosen = year or (today().year if today().year in years else max(years))
    return file.planned(chosen, library)


def scenarios(arguments: argparse.Namespace) -> int:
    library = Library()
    files = read_scenarios(arguments.scenario or [str(data_folder("scenarios"))])
    if arguments.what == "list":
        return _print(_listed(files, library), _list_table, as_json=arguments.json)
    year = arguments.plan_year
    if arguments.what == "facts":
        return _print(_facts(files, library, year), _fact_text, as_json=arguments.json)
    return _print(_sources(files, library, year), _source_text, as_json=arguments.json)


Rows = list[dict[str, Any]]


def _print(rows: Rows, show: Any, *, as_json: bool) -> int:
    print(json.dumps(rows, indent=2, ensure_ascii=False, default=str) if as_json else show(rows))
    return 0


def _listed(files: Sequence[ScenarioFile], library: Library) -> Rows:
    rows = []
    for file in files:
        one = file.scenario
        current = _planned(file, library)
        facts = {f.fact_id: f for p in current for f in p.scenario.answer_key.canonical_facts}
        rows.append(
            {
                "scenario_id": one.scenario_id,
                "title": one.title,
                "themes": list(one.themes),
                "variants": [variant.variant_id for variant in one.variants],
                "styles": list(dict.fromkeys(v.style for v in one.variants if v.style)) or [one.style or "plain"],
                "turns": len(one.scripted_turns),
                "groups": list(dict.fromkeys(group_of(turn) for turn in one.scripted_turns)),
                "study_groups": list(dict.fromkeys(t.question_group for t in one.scripted_turns if t.question_group)),
                "plan_years": _years(file, library),
                "facts": len(facts),
                **_confirmed(facts.values()),
                "status": _status(current, library, today()),
                "path": file.path.as_posix(),
            }
        )
    return rows


def _confirmed(facts: Iterable[CanonicalFact]) -> dict[str, int]:
    count = Counter(fact.confirmed_by for fact in facts)
    return {how: count[how] for how in CONFIRMED}


def _years(file: ScenarioFile, library: Library) -> list[int]:
    found = []
    for year in file.years(library):
        try:
            file.planned(year, library)
        except InputError:
            continue
        found.append(year)
    return found


def _status(planned: Sequence[PlannedScenario], library: Library, day: date) -> str:
    year = day.year if day.year in library.years else max(library.years)
    return "expired" if any(out_of_date(one.scenario, year, day) for one in planned) else "current"


def _list_table(rows: Rows) -> str:
    columns: tables.Columns = [
        ("scenario", "left"), ("variants", "right"), ("groups", "right"), ("years", "right"), ("turns", "right"),
        ("facts", "right"), ("P/S/D", "right"), ("status", "right"),
    ]  # fmt: skip
    cells = [
        [
            f"{row['scenario_id']}\n  {', '.join(row['themes']) or row['title']}",
            str(len(row["variants"]) or 1),
            str(len(row["groups"])),
            _span(row["plan_years"]),
            str(row["turns"]),
            str(row["facts"]),
            "/".join(str(row[how]) for how in CONFIRMED),
            row["status"],
        ]
        for row in rows
    ]
    total = Counter({how: sum(row[how] for row in rows) for how in CONFIRMED})
    how_many = "1 scenario" if len(rows) == 1 else f"{len(rows)} scenarios"
    caption = (
        f"{how_many}. P/S/D: facts read in the primary source ({total['primary']}), in a secondary one "
        f"that cites it ({total['secondary']}), derived by arithmetic ({total['derived']})."
    )
    return tables.plain_table(columns, cells, caption=caption)


def _span(years: Sequence[int]) -> str:
    return f"{years[0]}-{years[-1]}" if len(years) > 1 else " ".join(map(str, years)) or "none"


def _each_fact(
    files: Sequence[ScenarioFile], library: Library, year: int | None
) -> list[tuple[str, CanonicalFact, int | None]]:
    """Every fact of every scenario, once, as the plan year asked for (or each there is) makes it."""
    found: dict[tuple[str, str, str], tuple[str, CanonicalFact, int | None]] = {}
    for file in files:
        for chosen in [year] if year else _years(file, library):
            for planned in file.planned(chosen, library):
                for fact in planned.scenario.answer_key.canonical_facts:
                    name = file.scenario.scenario_id
                    found.setdefault((name, fact.fact_id, fact.statement), (name, fact, fact.plan_year))
    return list(found.values())


def _facts(files: Sequence[ScenarioFile], library: Library, year: int | None) -> Rows:
    return [
        {"scenario_id": name, **fact.model_dump(mode="json", exclude={"only"})}
        for name, fact, _ in _each_fact(files, library, year)
    ]


def _fact_text(rows: Rows) -> str:
    lines = []
    for row in rows:
        window = f"from {row['valid_from']}" + (f" to {row['valid_until']}" if row["valid_until"] else "")
        lines.append(f"{row['scenario_id']} {row['fact_id']}: {row['statement']}")
        lines.append(f"    {row['confirmed_by']}, {window}; {row['source']}, {row['locator'] or 'no locator'}")
    return "\n".join(lines)


def _sources(files: Sequence[ScenarioFile], library: Library, year: int | None) -> Rows:
    """Every source address of the bank, with the facts that rest on it."""
    by_address: dict[str, dict[str, Any]] = {}
    for name, fact, plan_year in _each_fact(files, library, year):
        row = by_address.setdefault(fact.address or "", {"address": fact.address, "titles": [], "facts": {}})
        if fact.source not in row["titles"]:
            row["titles"].append(fact.source)
        shown = f"{fact.fact_id}({plan_year})" if plan_year else fact.fact_id
        row["facts"].setdefault(name, [])
        if shown not in row["facts"][name]:
            row["facts"][name].append(shown)
    return [by_address[address] for address in sorted(by_address)]


def _source_text(rows: Rows) -> str:
    lines = []
    for row in rows:
        count = sum(map(len, row["facts"].values()))
        lines.append(f"{row['address'] or '(no address on record)'}  [{count}]")
        lines += [f"    {title}" for title in row["titles"]]
        lines += [f"      {name}: {' '.join(ids)}" for name, ids in row["facts"].items()]
    addresses = sum(bool(row["address"]) for row in rows)
    return "\n".join([*lines, f"{addresses} addresses."])


def new_scenario(arguments: argparse.Namespace) -> int:
    path: Path = arguments.out or Path(f"{arguments.scenario_id}.json")
    template = (data_folder("scenarios") / "skeleton.txt").read_text(encoding="utf-8")
    if path.exists():
        raise InputError(f"{path}: exists already and is not overwritten; choose another --out.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(template.replace("SCENARIO_ID", arguments.scenario_id))
    except OSError as error:
        raise StorageError(f"{path}: cannot be written ({error.strerror}); choose another --out.") from None
    print(path)
    print(f"Write your text wherever it says {PLACEHOLDER}, then check it: medicare-eval validate {path}")
    return 0
