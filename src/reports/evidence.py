"""Write the evidence pages of a report: for each target its scenarios, and every trial in full.

A run of any size is written page by page: no more than the trials of one scenario page are in memory. Where the
system can fork a process safely, the pages of a large run are shared out among processes; each page depends on its own
trials alone, so the bytes are the same. The pages above the scenarios have all targets, one target, and its groups of
the published study. Which pages a report has, and which trials are on which, follows from the rows alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

from .. import storage
from ..errors import IntegrityError
from ..findings.estimates import claims_behind, estimate
from ..findings.human_comparison import STUDY_SCENARIOS
from ..findings.processes import Piece
from ..schemas import QuestionCode
from ..scoring.definitions import CODE_HEADINGS, MEASURES, SCORE_HEADINGS, SHARES
from ..text.rounded import rounded
from ..trials.row import Row
from . import links, template
from .evidence_script import Script, scripts_of
from .evidence_shell import CODE_MARKS, Page, page_bytes, score_text
from .report_folder import LIST
from .series import ReportedRun, ReportedTarget, Runs
from .trial_page import TrialPage, decode

Scripts = Mapping[tuple[str, str | None], Script]
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

    @property
    def title(self) -> str:
        first, last = self.rows[0].repetition, self.rows[-1].repetition
        repeats = f"repetition {first}" if first == last else f"repetitions {first} to {last}"
        return ", ".join(part for part in (*self.script, repeats) if part is not None)


@dataclass(frozen=True, slots=True, eq=False)
class ScenarioPagePlan:
    """A page of a scenario with the pages of its trials; all are written in one go."""

    series: ReportedTarget
    scenario_id: str
    rows: Sequence[Row]
    """All trials of the scenario."""
    number: int
    of: int
    trial_pages: tuple[TrialPagePlan, ...]

    @property
    def file(self) -> str:
        return links.scenario_file(self.scenario_id, self.number)


def scenarios_of(series: ReportedTarget) -> dict[str, list[Row]]:
    """The trials of each scenario: scenarios in the order of the plan, trials by variant and repetition."""
    scripts = series.run.found.manifest.plan.scenarios
    order = {(one.scenario.scenario_id, one.variant): place for place, one in enumerate(scripts)}
    found: dict[str, list[Row]] = {scenario_id: [] for scenario_id, _ in order}
    for row in series.rows:
        found.setdefault(row.scenario_id, []).append(row)
    for rows in found.values():
        rows.sort(key=lambda row: (order.get((row.scenario_id, row.variant), len(order)), row.repetition))
    return found


def _trial_pages(rows: list[Row]) -> Iterator[TrialPagePlan]:
    by_file: dict[str, list[Row]] = {}
    for row in rows:
        by_file.setdefault(links.file_of_row(row), []).append(row)
    files = list(by_file)
    for before, (file, mine), after in zip(["", *files], by_file.items(), [*files[1:], ""], strict=False):
        near = [one if one and by_file[one][0].variant == mine[0].variant else None for one in (before, after)]
        yield TrialPagePlan(file, tuple(mine), *near)


def _parts(pages: list[TrialPagePlan]) -> Iterator[tuple[TrialPagePlan, ...]]:
    """Whole trial pages, as many as fit on one scenario page."""
    part: list[TrialPagePlan] = []
    for page in pages:
        if part and sum(len(one.rows) for one in part) + len(page.rows) > TRIALS_OF_A_SCENARIO_PAGE:
            yield tuple(part)
            part = []
        part.append(page)
    yield tuple(part)


@dataclass(frozen=True, slots=True)
class Coded:
    """A trial with the codes of its questions."""

    row: Row
    codes: Mapping[str, QuestionCode]
    """By question group."""

    @property
    def file(self) -> str:
        return links.file_of_row(self.row)

    @property
    def name(self) -> str:
        """Within its scenario."""
        variant, repetition = self.row.variant, self.row.repetition
        return f"{variant}, {repetition}" if variant is not None else f"{repetition}"


def _coded(row: Row, codes: Sequence[QuestionCode]) -> Coded:
    return Coded(row, {code.question_group: code for code in codes})


def code_counts(rows: Sequence[Row]) -> dict[str, Counter[str]]:
    """How often each code, and each answer to a closed question, was given; by question group."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        for group, value in (*row.codes, *row.answers):
            found.setdefault(group, Counter())[value] += 1
    return found


def _counted_otherwise(rows: Sequence[Row]) -> dict[str, Counter[str]]:
    """How often an answer counts in estimates as another code than it has; by question group."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        given = dict(row.codes)
        for group, value in row.counted:
            if given[group] != value:
                found.setdefault(group, Counter())[value] += 1
    return found


def counts_text(counts: Mapping[str, int]) -> str:
    """Codes that were given, with how often."""
    shown = [f"{counts[code]:,} {CODE_HEADINGS[code]}" for code in CODE_HEADINGS if counts.get(code)]
    shown += [f"{number:,} {value}" for value, number in sorted(counts.items()) if value not in CODE_MARKS]
    return "; ".join(shown) or "no answer was coded"


template.environment("html").globals["counts_text"] = counts_text


def _page(title: str, part: str, *values: object) -> Page:
    return Page(title, template.macro("evidence_pages", part, *values))


def scenario_page(plan: ScenarioPagePlan, script: Script, coded: Sequence[Coded]) -> Page:
    """A scenario: its trials with their codes, and each question with every answer's code."""
    counts, otherwise = code_counts(plan.rows), _counted_otherwise(plan.rows)
    groups = list(dict.fromkeys((*script.groups, *counts)))
    cited = {fact for group in groups for point in script.points_of(group) for fact in point.split("|")}
    title = f"{plan.scenario_id}, {plan.series.label}"
    return _page(title, "scenario", plan, script, coded, groups, counts, otherwise, cited)


class _Line(NamedTuple):
    """A line of the table of a target's scenarios."""

    scenario_id: str | None
    """None for all of them."""
    title: str
    cells: dict[str, str]
    """By heading."""


def target_page(series: ReportedTarget, scripts: Scripts) -> Page:
    """One target: its scenarios with scores and codes."""
    titles = {scenario_id: script.title for (scenario_id, _), script in scripts.items()}
    lines = [_Line(name, titles.get(name, ""), dict(_cells(rows))) for name, rows in scenarios_of(series).items()]
    if len(lines) > 1:
        lines.append(_Line(None, "", dict(_cells(series.rows))))
    complete, wrong = (estimate(series.rows, code) for code in SHARES)
    return _page(series.label, "target", series, complete, wrong, lines)


def _cells(rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    yield "trials", f"{len(rows):,}"
    scored = [row for row in rows if row.outcome == "scored"]
    yield "scored", f"{len(scored):,}"
    claims = claims_behind(scored)
    yield "claims", f"{claims.judged:,}"
    yield "open", f"{claims.open:,}"
    for name, head in SCORE_HEADINGS.items():
        one = estimate(rows, name)
        yield head, score_text(one.value) if one.value is None else f"{score_text(one.value)}, n={one.answers:,}"
    codes = sum(code_counts(rows).values(), Counter[str]())
    for code, mark in CODE_MARKS.items():
        yield mark, f"{codes[code]:,}"
    # Different questions, and how many of them were answered so, on average over repeats and variants.
    shares = {MEASURES[code].word: estimate(rows, code) for code in SHARES}
    yield "questions", f"{next(iter(shares.values())).questions:,}"
    for head, one in shares.items():
        yield head, "–" if one.value is None else rounded(one.value * one.questions, 1)


class _StudyGroup(NamedTuple):
    number: int
    topic: str
    total: Counter[str]
    scripts: list[tuple[Script, str, Counter[str]]]
    """With the question group of each script, and its codes."""


def study_page(series: ReportedTarget, scripts: Scripts) -> Page:
    """The question groups of the published study: their codes in each script."""
    by_script: dict[tuple[str, str | None], list[Row]] = {}
    for row in series.rows:
        by_script.setdefault((row.scenario_id, row.variant), []).append(row)
    groups: dict[int, _StudyGroup] = {}
    for key, script in scripts.items():
        counts = code_counts(by_script.get(key, ()))
        for name in script.groups if key[0] in STUDY_SCENARIOS else ():
            rule = script.rule(name)
            if number := rule.study_group:
                group = groups.setdefault(number, _StudyGroup(number, rule.topic, Counter(), []))
                group.scripts.append((script, name, counts.get(name, Counter())))
                group.total.update(group.scripts[-1][2])
    primary = series.beside_counselors.primary
    shares = [(primary.outcomes[code].target.value, MEASURES[code].caption.lower()) for code in SHARES if primary]
    in_order = [groups[number] for number in sorted(groups)]
    return _page(f"Study groups, {series.label}", "study", series, primary, shares, in_order)


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
        yield partial(evidence.write, plan, folder / links.folder_of(plan.series))


class Evidence:
    """The evidence pages of some runs, each made when it is wanted."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._scripts = {run: scripts_of(run.found.manifest.plan) for run in runs.runs}

    @cached_property
    def plans(self) -> list[ScenarioPagePlan]:
        """Every scenario page of every target. A scenario without trials has one empty page."""
        found = []
        for series in self._runs.series:
            for scenario_id, rows in scenarios_of(series).items():
                parts = list(_parts(list(_trial_pages(rows))))
                found += [
                    ScenarioPagePlan(series, scenario_id, rows, number, len(parts), part)
                    for number, part in enumerate(parts, 1)
                ]
        return found

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
        yield links.INDEX, partial(_page, "Evidence", "top", self._runs.series)
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
        page = TrialPage(self._script(plan.series.run, trials))
        shown = []
        found = plan.series.run.found.decoded((row.trial_id for row in trials.rows), decode)
        for row, trial in zip(trials.rows, found, strict=True):
            if coded is not None:
                coded.append(_coded(row, trial.study_codes))
            shown.append(page.trial(trial))
        return _page(trials.title, "trials", plan, trials, page.script, shown, page.cited)

    def _scenario_page(self, plan: ScenarioPagePlan, coded: list[Coded] | None = None) -> Page:
        if coded is None:
            rows = [row for trials in plan.trial_pages for row in trials.rows]
            found = plan.series.run.found.decoded((row.trial_id for row in rows), decode)
            coded = [_coded(row, trial.study_codes) for row, trial in zip(rows, found, strict=True)]
        scripts = self._scripts[plan.series.run].items()
        shared = next(script for (name, _), script in scripts if name == plan.scenario_id)
        return scenario_page(plan, shared, coded)

    def _script(self, run: ReportedRun, trials: TrialPagePlan) -> Script:
        script = self._scripts[run].get(trials.script)
        if script is None:
            path = run.found.folder / storage.RESULTS
            raise IntegrityError(f"{path}: trial {trials.rows[0].trial_id} is of no scenario of the run's plan.")
        return script
