"""Which evidence pages a report has, and which trials are on which: nothing here reads a result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...schemas import RunPlan
from ...trials.row import Row
from . import links
from .series import Runs, Series

TRIALS_OF_A_SCENARIO_PAGE = 200


@dataclass(frozen=True, slots=True)
class TrialPagePlan:
    """Some repetitions of one script."""

    file: str
    rows: tuple[Row, ...]
    before: str | None
    """The page with earlier repetitions."""
    after: str | None

    @property
    def script(self) -> tuple[str, str | None]:
        return self.rows[0].scenario_id, self.rows[0].variant


@dataclass(frozen=True, slots=True, eq=False)
class ScenarioPagePlan:
    """A page of a scenario with the pages of its trials; all are written in one go."""

    series: Series
    scenario_id: str
    number: int
    of: int
    trial_pages: tuple[TrialPagePlan, ...]

    @property
    def file(self) -> str:
        return links.scenario_file(self.scenario_id, self.number)

    @property
    def folder(self) -> Path:
        return Path(links.folder_of(self.series))


def scenarios_of(series: Series) -> dict[str, list[Row]]:
    """The trials of each scenario: scenarios in the order of the plan, trials by variant and repetition."""
    order = _script_order(series.run.found.manifest.plan)
    found: dict[str, list[Row]] = {scenario_id: [] for scenario_id, _ in order}
    for row in series.rows:
        found.setdefault(row.scenario_id, []).append(row)
    for rows in found.values():
        rows.sort(key=lambda row: (order.get((row.scenario_id, row.variant), len(order)), row.repetition))
    return found


def _script_order(plan: RunPlan) -> dict[tuple[str, str | None], int]:
    return {(one.scenario.scenario_id, one.variant): place for place, one in enumerate(plan.scenarios)}


def planned_pages(runs: Runs) -> Iterator[ScenarioPagePlan]:
    """Every scenario page of every target. A scenario without trials has one empty page."""
    for series in runs.series:
        for scenario_id, rows in scenarios_of(series).items():
            parts = list(_parts(_trial_pages(rows)))
            for number, part in enumerate(parts, 1):
                yield ScenarioPagePlan(series, scenario_id, number, len(parts), part)


def _trial_pages(rows: list[Row]) -> list[TrialPagePlan]:
    by_file: dict[str, list[Row]] = {}
    for row in rows:
        by_file.setdefault(links.file_of_row(row), []).append(row)
    files = list(by_file)
    pages = []
    for place, (file, mine) in enumerate(by_file.items()):
        before = files[place - 1] if place and _same_script(by_file[files[place - 1]], mine) else None
        following = files[place + 1] if place + 1 < len(files) else None
        after = following if following and _same_script(by_file[following], mine) else None
        pages.append(TrialPagePlan(file, tuple(mine), before, after))
    return pages


def _same_script(first: list[Row], second: list[Row]) -> bool:
    return first[0].variant == second[0].variant


def _parts(pages: list[TrialPagePlan]) -> Iterator[tuple[TrialPagePlan, ...]]:
    """Whole trial pages, as many as fit on one scenario page."""
    part: list[TrialPagePlan] = []
    for page in pages:
        if part and sum(len(one.rows) for one in part) + len(page.rows) > TRIALS_OF_A_SCENARIO_PAGE:
            yield tuple(part)
            part = []
        part.append(page)
    yield tuple(part)
