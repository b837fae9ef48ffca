"""What a set of scenarios contains: one row per scenario, per fact, or per source. Nothing is printed here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Literal

from ...errors import InputError, StorageError
from ...planning.fill_facts import background_for
from ...planning.fill_slots import is_coming, out_of_date
from ...planning.library import Library
from ...planning.scenario_files import ScenarioFile
from ...schemas import BackgroundFact, CanonicalFact, ConfirmedBy, PlannedScenario
from ...store.package_data import data_folder

CONFIRMED: tuple[ConfirmedBy, ...] = ("primary", "secondary", "derived")


@dataclass(frozen=True)
class ScenarioRow:
    """One scenario, with the key of a plan year. The field names are those of `--json`."""

    scenario_id: str
    title: str
    themes: tuple[str, ...]
    variants: tuple[str, ...]
    styles: tuple[str, ...]
    turns: int
    groups: tuple[str, ...]
    study_groups: tuple[str, ...]
    plan_years: tuple[int, ...]
    facts: int
    primary: int
    secondary: int
    derived: int
    status: Literal["current", "coming", "expired"]
    unpublished: int
    """Points that are left out because their figures are not known."""
    path: str

    def confirmed(self, how: ConfirmedBy) -> int:
        return {"primary": self.primary, "secondary": self.secondary, "derived": self.derived}[how]


@dataclass(frozen=True)
class FactRow:
    """One fact of one scenario, with its slots filled."""

    scenario_id: str
    fact: CanonicalFact


@dataclass
class SourceRow:
    """One source address and the facts that rely on it."""

    address: str | None
    titles: list[str] = field(default_factory=list)
    facts: dict[str, list[str]] = field(default_factory=dict)
    """Scenario id to fact ids; a fact that follows the plan year is written F10(2026)."""


def current_year(library: Library, today: date) -> int:
    """This year, or the latest year that has figures."""
    return today.year if today.year in library.years else max(library.years)


def current_facts(file: ScenarioFile, library: Library, today: date) -> dict[str, CanonicalFact]:
    """The facts of every variant for the current plan year, by id."""
    return _by_id(file.planned(current_year(library, today), library))


def list_scenarios(
    files: Iterable[ScenarioFile], library: Library, today: date, year: int | None = None
) -> list[ScenarioRow]:
    """Every scenario with its key for a plan year, or for the current one."""
    chosen = year or current_year(library, today)
    library.year(chosen)  # an unknown year is an error even where no scenario needs its figures
    return [_row(file, library, today, chosen) for file in files]


def list_library(library: Library, today: date, year: int | None = None) -> list[BackgroundFact]:
    """Every fact of the library and of all states that can be used for a plan year."""
    chosen = year or current_year(library, today)
    library.year(chosen)  # as above
    states = {state for fact in library.facts.values() for state in fact.states}
    return list(background_for(chosen, library, states).facts)


def list_facts(files: Iterable[ScenarioFile], library: Library, year: int | None = None) -> list[FactRow]:
    """Every fact once; without a year, once for each plan year in which its statement differs."""
    return list(_each_fact(files, library, year))


def list_sources(files: Iterable[ScenarioFile], library: Library, year: int | None = None) -> list[SourceRow]:
    """Every source address, sorted; facts without an address come first, under None."""
    rows: dict[str, SourceRow] = {}
    for one in _each_fact(files, library, year):
        fact = one.fact
        row = rows.setdefault(fact.address or "", SourceRow(fact.address))
        if fact.source not in row.titles:
            row.titles.append(fact.source)
        shown = f"{fact.fact_id}({fact.plan_year})" if fact.plan_year else fact.fact_id
        ids = row.facts.setdefault(one.scenario_id, [])
        if shown not in ids:
            ids.append(shown)
    return [rows[address] for address in sorted(rows)]


def _row(file: ScenarioFile, library: Library, today: date, year: int) -> ScenarioRow:
    scenario = file.scenario
    planned = file.planned(year, library)
    facts = _by_id(planned)
    count = Counter(fact.confirmed_by for fact in facts.values())
    expired = any(out_of_date(one.scenario, year, today) for one in planned)
    return ScenarioRow(
        scenario_id=scenario.scenario_id,
        title=scenario.title,
        themes=tuple(scenario.themes),
        variants=tuple(variant.variant_id for variant in scenario.variants),
        styles=_unique(v.style for v in scenario.variants) or (scenario.style or "plain",),
        turns=len(scenario.scripted_turns),
        groups=_unique(turn.group for turn in scenario.scripted_turns),
        study_groups=_unique(turn.question_group for turn in scenario.scripted_turns),
        plan_years=_plan_years(file, library),
        facts=len(facts),
        primary=count["primary"],
        secondary=count["secondary"],
        derived=count["derived"],
        status="expired" if expired else "coming" if is_coming(year, today) else "current",
        unpublished=len({(lost.turn_id, lost.point) for one in planned for lost in one.unpublished if lost.turn_id}),
        path=file.name,
    )


def _unique(names: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))


def _by_id(planned: Sequence[PlannedScenario]) -> dict[str, CanonicalFact]:
    return {fact.fact_id: fact for one in planned for fact in one.scenario.answer_key.canonical_facts}


def _plan_years(file: ScenarioFile, library: Library) -> tuple[int, ...]:
    """The plan years whose figures can fill the scenario."""
    found = []
    for year in file.years(library):
        try:
            file.planned(year, library)
        except InputError:
            continue
        found.append(year)
    return tuple(found)


def _each_fact(files: Iterable[ScenarioFile], library: Library, year: int | None) -> Iterator[FactRow]:
    seen: set[tuple[str, str, str]] = set()
    for file in files:
        for chosen in (year,) if year else _plan_years(file, library):
            for planned in file.planned(chosen, library):
                for fact in planned.scenario.answer_key.canonical_facts:
                    key = (file.scenario.scenario_id, fact.fact_id, fact.statement)
                    if key not in seen:
                        seen.add(key)
                        yield FactRow(file.scenario.scenario_id, fact)


def write_skeleton(scenario_id: str, path: Path) -> None:
    """Write the skeleton, a commented scenario, to a new file. An existing file is never overwritten."""
    if path.exists():
        raise InputError(f"{path} already exists and will not be overwritten. Choose another file with `out`.")
    template = (data_folder("scenarios") / "skeleton.txt").read_text(encoding="utf-8")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(template.replace("SCENARIO_ID", scenario_id))
    except OSError as error:
        raise StorageError(f"{path}: write failed ({error.strerror}). Choose another file with `out`.") from None
