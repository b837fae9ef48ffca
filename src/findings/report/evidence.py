"""Write the evidence pages of a report: for each target its scenarios, and every trial in full.

A run of any size is written page by page: no more than the trials of one scenario page are in memory. Where the
system can fork a process safely, the pages of a large run are shared out among processes; each page depends on its own
trials alone, so the bytes are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from pathlib import Path

from ... import storage
from ...errors import IntegrityError
from ...trials.row import Row
from ..analysis.processes import Piece
from . import links
from .evidence_index import study_page, target_page, top_page
from .evidence_pages import ScenarioPagePlan, TrialPagePlan, planned_pages, scenarios_of
from .evidence_script import Script, scripts_of
from .evidence_shell import Page, link, page_bytes, safe
from .report_folder import LIST
from .scenario_page import Coded, scenario_page
from .series import Run, Runs, Series
from .trial_page import LEGEND, TrialPage, decode

_MARKED = "These pages are derived from runs. medicare-eval report replaces this folder as a whole.\n"


def evidence_pages(runs: Runs, out: Path) -> Iterator[Piece]:
    """Write the pages above the scenarios into a new folder, and give the work of writing the others."""
    folder = out / links.FOLDER
    folder.mkdir()
    (folder / LIST).write_text(_MARKED, encoding="utf-8")
    evidence = Evidence(runs)
    for address, make in evidence.above_scenarios():
        path = folder / address
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(page_bytes(make()))
    for plan in evidence.plans:
        yield partial(evidence.write, plan, folder / plan.folder)


class Evidence:
    """The evidence pages of some runs, each made when it is wanted."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._scripts = {run: scripts_of(run.found.manifest.plan) for run in runs.runs}

    @cached_property
    def plans(self) -> tuple[ScenarioPagePlan, ...]:
        return tuple(planned_pages(self._runs))

    @cached_property
    def _rows(self) -> dict[Series, dict[str, list[Row]]]:
        return {series: scenarios_of(series) for series in self._runs.series}

    @cached_property
    def _makers(self) -> dict[str, Callable[[], Page]]:
        """Address to the work of making the page."""
        found = dict(self.above_scenarios())
        for plan in self.plans:
            place = links.folder_of(plan.series)
            found[f"{place}/{plan.file}"] = partial(self._scenario_page, plan)
            for trials in plan.trial_pages:
                found[f"{place}/{trials.file}"] = partial(self._trial_page, plan, trials)
        return found

    def page(self, address: str) -> Page | None:
        """The page with this address inside the evidence folder, if there is one."""
        make = self._makers.get(address)
        return make() if make else None

    def above_scenarios(self) -> Iterator[tuple[str, Callable[[], Page]]]:
        """The addresses of pages above the scenarios, and the work of making them."""
        yield links.INDEX, partial(top_page, self._runs)
        for series in self._runs.series:
            place, scripts = links.folder_of(series), self._scripts[series.run]
            yield f"{place}/{links.INDEX}", partial(target_page, series, scripts)
            yield f"{place}/{links.STUDY}", partial(study_page, series, scripts)

    def write(self, plan: ScenarioPagePlan, folder: Path) -> None:
        """Write a scenario page and the pages of its trials, and read each trial once."""
        coded: list[Coded] = []
        for trials in plan.trial_pages:
            (folder / trials.file).write_bytes(page_bytes(self._trial_page(plan, trials, coded)))
        (folder / plan.file).write_bytes(page_bytes(self._scenario_page(plan, coded)))

    def _trial_page(self, plan: ScenarioPagePlan, trials: TrialPagePlan, coded: list[Coded] | None = None) -> Page:
        lines = TrialPage(self._script(plan.series.run, trials))
        body = [*_head(plan, trials, lines.script)]
        found = plan.series.run.found.decoded((row.trial_id for row in trials.rows), decode)
        for row, trial in zip(trials.rows, found, strict=True):
            if coded is not None:
                coded.append(Coded(row, trial.study_codes))
            body.append(lines.trial(trial))
        body += lines.script.sources(lines.cited)
        return Page(_title(trials), _way(plan, trials), body)

    def _scenario_page(self, plan: ScenarioPagePlan, coded: list[Coded] | None = None) -> Page:
        if coded is None:
            rows = [row for trials in plan.trial_pages for row in trials.rows]
            found = plan.series.run.found.decoded((row.trial_id for row in rows), decode)
            coded = [Coded(row, trial.study_codes) for row, trial in zip(rows, found, strict=True)]
        scripts = self._scripts[plan.series.run].items()
        shared = next(script for (name, _), script in scripts if name == plan.scenario_id)
        return scenario_page(plan, shared, self._rows[plan.series][plan.scenario_id], coded)

    def _script(self, run: Run, trials: TrialPagePlan) -> Script:
        script = self._scripts[run].get(trials.script)
        if script is None:
            path = run.found.folder / storage.RESULTS
            raise IntegrityError(f"{path}: trial {trials.rows[0].trial_id} is of no scenario of the run's plan.")
        return script


def _title(trials: TrialPagePlan) -> str:
    scenario_id, variant = trials.script
    first, last = trials.rows[0].repetition, trials.rows[-1].repetition
    repeats = f"repetition {first}" if first == last else f"repetitions {first} to {last}"
    return f"{scenario_id}, {variant}, {repeats}" if variant is not None else f"{scenario_id}, {repeats}"


def _way(plan: ScenarioPagePlan, trials: TrialPagePlan) -> Iterator[str]:
    yield link("../../report.html", "Report")
    yield link(links.INDEX, safe(plan.series.label))
    yield link(plan.file, safe(plan.scenario_id))
    yield safe(_title(trials))


def _head(plan: ScenarioPagePlan, trials: TrialPagePlan, script: Script) -> Iterator[str]:
    yield f"<h1>{safe(script.title)}</h1>"
    yield f'<p class="about">{safe(_title(trials))}, answered by {safe(plan.series.label)}.</p>'
    near = [link(file, text) for file, text in ((trials.before, "earlier"), (trials.after, "later")) if file]
    if near:
        yield f'<p class="way">Repetitions: {" ".join(near)}</p>'
    if len(trials.rows) > 1:
        jumps = [link(f"#{links.trial_anchor(row.repetition)}", str(row.repetition)) for row in trials.rows]
        yield f'<p class="way">On this page: {" ".join(jumps)}</p>'
    yield LEGEND
