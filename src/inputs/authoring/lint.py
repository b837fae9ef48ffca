"""Problems that a schema cannot find in a scenario: what stops a run, and which of our house rules it breaks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from ...errors import InputError
from ...planning.house_rules import BrokenRule, house_rules, load_rubric_of
from ...planning.library import Library
from ...planning.rubrics import check_study_points
from ...planning.scenario_files import ScenarioFile, expand, read_scenario
from ...schemas import PlannedScenario
from .catalog import current_year


@dataclass
class Linted:
    """What was found in some files, as one sentence each."""

    errors: list[str] = field(default_factory=list)
    """What stops a run, or makes one pointless."""
    warnings: list[str] = field(default_factory=list)
    """House rules that are broken; with `--strict`, these are errors too."""


def lint_files(patterns: Sequence[str], library: Library, today: date) -> Linted:
    """Every problem of every file; a file that cannot be read is one error."""
    found = Linted()
    for path in expand(list(patterns)):
        try:
            problems = lint(read_scenario(path), library, today)
        except InputError as error:
            found.errors.append(str(error))
            continue
        for problem in problems:
            (found.errors if problem.error else found.warnings).append(f"{path.as_posix()}: {problem}")
    return found


def lint(file: ScenarioFile, library: Library, today: date) -> list[BrokenRule]:
    """Every problem of one scenario file."""
    planned, unresolved = _filled_in(file, library, today)
    key = file.scenario.answer_key
    places = {fact.fact_id: f"answer_key.canonical_facts[{n}]" for n, fact in enumerate(key.canonical_facts)}
    places |= {fact_id: f"answer_key.library_facts.{fact_id}" for fact_id in key.library_facts}
    expired = dict.fromkeys(problem for one in planned for problem in _dates(one, places, today))
    return [*unresolved, *expired, *house_rules(file, current_year(library, today), library)]


def _filled_in(
    file: ScenarioFile, library: Library, today: date
) -> tuple[tuple[PlannedScenario, ...], list[BrokenRule]]:
    """Every variant for the current plan year, and what is missing for any plan year that the scenario covers."""
    found: dict[str, list[int]] = {}
    ready: tuple[PlannedScenario, ...] = ()
    years = file.years(library)
    for year in years:
        try:
            planned = file.planned(year, library)
            rubric = load_rubric_of(file)
            for one in planned:
                check_study_points(one, rubric)
        except InputError as error:
            text = str(error).removeprefix(f"{file.path}: ").rstrip(".")
            found.setdefault(text, []).append(year)
        else:
            ready = planned if year == current_year(library, today) else ready
    return ready, [
        BrokenRule(None, text if len(failed) == len(years) else f"{text} (plan year {failed[0]})", error=True)
        for text, failed in found.items()
    ]


def _dates(planned: PlannedScenario, places: Mapping[str, str], today: date) -> Iterator[BrokenRule]:
    for fact in planned.scenario.answer_key.canonical_facts:
        where = places[fact.fact_id]
        if fact.valid_until and fact.valid_until < today:
            what = f"{fact.fact_id} expired on {fact.valid_until}"
            yield BrokenRule(where, f"{what}; confirm it again, or add the new plan year's figures", error=True)
        if fact.valid_from and fact.valid_from > today:
            yield BrokenRule(where, f"{fact.fact_id} is not valid until {fact.valid_from}", error=True)
