"""Write the evidence pages of a report: for each target its scenarios, and every trial in full.

A run of any size is written page by page: no more than the trials of one scenario page are in memory. Where the
system can fork a process safely, the pages of a large run are shared out among processes; each page depends on its own
trials alone, so the bytes are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ... import storage
from ...errors import IntegrityError
from ..analysis.processes import Piece
from ..analysis.read_run import Findings
from ..analysis.trial_row import Row
from . import links
from .evidence_fields import decode
from .evidence_index import study_page, target_page, top_page
from .evidence_pages import ScenarioPagePlan, TrialPagePlan, planned_pages, scenarios_of
from .evidence_script import Script, scripts_of
from .evidence_shell import link, page, safe
from .report_folder import LIST
from .scenario_page import Coded, scenario_page
from .series import Run, Runs
from .trial_page import LEGEND, TrialPage

_MARKED = "These pages are derived from runs. medicare-eval report replaces this folder as a whole.\n"


def evidence_pages(runs: Runs, out: Path) -> Iterator[Piece]:
    """Write the pages above the scenarios into a new folder, and give the work of writing the others."""
    folder = out / links.FOLDER
    folder.mkdir()
    (folder / LIST).write_text(_MARKED, encoding="utf-8")
    sources = {run: _Source.of(run) for run in runs.runs}
    (folder / links.INDEX).write_bytes(top_page(runs))
    for series in runs.series:
        mine = folder / links.folder_of(series)
        mine.mkdir()
        (mine / links.INDEX).write_bytes(target_page(series, sources[series.run].scripts))
        (mine / links.STUDY).write_bytes(study_page(series, sources[series.run].scripts))
    rows = {series: scenarios_of(series) for series in runs.series}
    for plan in planned_pages(runs):
        source = sources[plan.series.run]
        yield partial(source.write, plan, rows[plan.series][plan.scenario_id], folder / plan.folder)


@dataclass
class _Source:
    """The results of one run, to be read trial by trial."""

    found: Findings
    scripts: dict[tuple[str, str | None], Script]

    @classmethod
    def of(cls, run: Run) -> _Source:
        return cls(run.found, scripts_of(run.found.manifest.plan))

    def script(self, scenario_id: str) -> Script:
        """Any script of a scenario, for what all its variants share."""
        return next(script for (name, _), script in self.scripts.items() if name == scenario_id)

    def write(self, plan: ScenarioPagePlan, rows: Sequence[Row], folder: Path) -> None:
        """Write a scenario page and the pages of its trials."""
        coded: list[Coded] = []
        for trials in plan.trial_pages:
            lines = TrialPage(self._script(trials))
            body = [*_head(plan, trials, lines.script)]
            found = self.found.decoded((row.trial_id for row in trials.rows), decode)
            for row, trial in zip(trials.rows, found, strict=True):
                coded.append(Coded(row, tuple(trial.study_codes)))
                body.append(lines.trial(trial))
            body += lines.script.sources(lines.cited)
            (folder / trials.file).write_bytes(page(_title(trials), _way(plan, trials), body))
        made = scenario_page(plan, self.script(plan.scenario_id), rows, coded)
        (folder / plan.file).write_bytes(made)

    def _script(self, trials: TrialPagePlan) -> Script:
        script = self.scripts.get(trials.script)
        if script is None:
            path = self.found.folder / storage.RESULTS
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
