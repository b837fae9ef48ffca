"""Write the evidence pages of a report: for each target its scenarios, and every trial in full.

A run of any size is written page by page: no more than the trials of one scenario page are in memory. Where the
system can fork a process safely, the pages of a large run are shared out among processes; each page depends on its own
trials alone, so the bytes are the same. The pages above the scenarios have all targets, one target, and its groups of
the published study.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path

from .. import storage
from ..errors import IntegrityError
from ..findings.estimates import estimate
from ..findings.human_comparison import STUDY_SCENARIOS, ComparedGroups
from ..findings.processes import Piece
from ..scoring.definitions import MEASURES, SCORE_HEADINGS, SHARES
from ..text.count import counted
from ..text.rounded import percent, rounded
from ..trials.row import Row
from . import links
from .evidence_script import Script, scripts_of
from .evidence_shell import CODE_MARKS, Page, code_legend, link, page_bytes, safe, score_text
from .report_folder import LIST
from .scenario_page import (
    Coded,
    CodeTotals,
    ScenarioPagePlan,
    TrialPagePlan,
    counts_text,
    planned_pages,
    scenario_page,
    scenarios_of,
)
from .series import Run, Runs, Series
from .trial_page import LEGEND, TrialPage, decode

QUESTION_HEADS = ("questions", *(MEASURES[name].word for name in SHARES))
"""Different questions, and how many of them were answered so, on average over repeats and variants."""
Scripts = Mapping[tuple[str, str | None], Script]


def top_page(runs: Runs) -> Page:
    """All targets of the report."""
    items = [
        f"<li>{link(f'{links.folder_of(series)}/{links.INDEX}', safe(series.label))}: {len(series.rows):,} trials</li>"
        for series in runs.series
    ]
    body = [
        "<h1>Evidence</h1>",
        "<p>Every number of the report rests on trials. Choose a target, a scenario and a trial to read the "
        "conversation, the claims, the verdicts and the facts behind them.</p>",
        f"<ul>{''.join(items)}</ul>",
    ]
    return Page("Evidence", (link("../report.html", "Report"), "Evidence"), body)


def target_page(series: Series, scripts: Scripts) -> Page:
    """One target: its scenarios with scores and codes."""
    scenarios = scenarios_of(series)
    titles = {scenario_id: script.title for (scenario_id, _), script in scripts.items()}
    way = (link("../../report.html", "Report"), link("../index.html", "Evidence"), safe(series.label))
    body = [
        f"<h1>{safe(series.label)}</h1>",
        f'<p class="about">{len(series.rows):,} trials in run {safe(series.run.name)}. '
        f"{link(links.STUDY, 'Question groups of the published study')}.</p>",
        _headline(series.rows),
        code_legend(),
        '<div class="box" role="region" aria-label="Scenarios" tabindex="0"><table class="wide">',
        "<caption><span>Scenarios: trials, mean scores, codes of answers, and different questions.</span></caption>",
        f"<thead><tr>{''.join(_heads())}</tr></thead><tbody>",
        *(
            _scenario_row(_scenario_name(scenario_id, titles.get(scenario_id, "")), rows)
            for scenario_id, rows in scenarios.items()
        ),
        *([_scenario_row("all", series.rows)] if len(scenarios) > 1 else ()),
        "</tbody></table></div>",
    ]
    return Page(series.label, way, body)


def _headline(rows: Sequence[Row]) -> str:
    """How the shares on the first screen of the report come about."""
    complete, wrong = (estimate(rows, code) for code in SHARES)
    if complete.value is None or wrong.value is None:
        return "<p>No answer of this target has a code that counts.</p>"
    counts = (
        f"{rounded(one.value * one.questions, 1)} of {counted(one.questions, 'question')} {how} "
        f"({percent(one.value)} of 100)"
        for one, how in ((complete, "accurately and completely"), (wrong, "wrongly"))
        if one.value is not None
    )
    return (
        "<p>Every different question counts once: its answers are averaged over repeats, then over variants. So this "
        f"target answered {' and '.join(counts)}.</p>"
    )


def _heads() -> Iterator[str]:
    for head in ("scenario", "trials", "scored", *SCORE_HEADINGS.values(), *CODE_MARKS.values(), *QUESTION_HEADS):
        yield f'<th scope="col">{head}</th>'


def _scenario_name(scenario_id: str, title: str) -> str:
    return f'{link(links.scenario_file(scenario_id), safe(scenario_id))}<br><span class="quiet">{safe(title)}</span>'


def _scenario_row(name: str, rows: Sequence[Row]) -> str:
    codes = CodeTotals(rows).total()
    cells = [f'<th scope="row">{name}</th>']
    cells.append(f'<td data-label="trials">{len(rows):,}</td>')
    cells.append(f'<td data-label="scored">{sum(row.outcome == "scored" for row in rows):,}</td>')
    for name_of, head in SCORE_HEADINGS.items():
        cells.append(f'<td data-label="{head}">{score_text(estimate(rows, name_of).value)}</td>')
    cells += [f'<td data-label="{mark}">{codes[code]:,}</td>' for code, mark in CODE_MARKS.items()]
    shares = [estimate(rows, code) for code in SHARES]
    cells.append(f'<td data-label="{QUESTION_HEADS[0]}">{shares[0].questions:,}</td>')
    for head, one in zip(QUESTION_HEADS[1:], shares, strict=True):
        shown = "–" if one.value is None else rounded(one.value * one.questions, 1)
        cells.append(f'<td data-label="{head}">{shown}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def study_page(series: Series, scripts: Scripts) -> Page:
    """The question groups of the published study: their codes in each script."""
    asked: dict[int, list[tuple[Script, str]]] = {}
    for (scenario_id, _), script in scripts.items():
        for group in script.groups if scenario_id in STUDY_SCENARIOS else ():
            if number := script.rule(group).study_group:
                asked.setdefault(number, []).append((script, group))
    way = (link("../../report.html", "Report"), link(links.INDEX, safe(series.label)), "Study groups")
    body = [
        "<h1>Question groups of the published study</h1>",
        f'<p class="about">Answers of {safe(series.label)}, by script.</p>',
        *([_together(series.beside_counselors.primary)] if series.beside_counselors.primary else ()),
    ]
    by_script: dict[tuple[str, str | None], list[Row]] = {}
    for row in series.rows:
        by_script.setdefault((row.scenario_id, row.variant), []).append(row)
    for number in sorted(asked):
        body += _group(number, asked[number], by_script)
    if not asked:
        body.append("<p>No question of the published study was asked in this run.</p>")
    return Page(f"Study groups, {series.label}", way, body)


def _together(primary: ComparedGroups) -> str:
    """The groups that are compared like for like, as the report has them."""
    told = []
    for code in SHARES:
        how = MEASURES[code].caption.lower()
        target = primary.outcomes[code].target
        if target.value is not None:
            told.append(f"{percent(target.value)} of 100 answers are {how}")
    if not told:
        return ""
    numbers = ", ".join(map(str, primary.numbers))
    return f"<p>Groups {numbers} are compared like for like with counselors. Together, {' and '.join(told)}.</p>"


def _group(
    number: int, asked: Sequence[tuple[Script, str]], by_script: Mapping[tuple[str, str | None], Sequence[Row]]
) -> Iterator[str]:
    script, group = asked[0]
    total: Counter[str] = Counter()
    items = []
    for one, name in asked:
        key = (one.scenario.scenario_id, one.planned.variant)
        counts = CodeTotals(by_script.get(key, ())).by_group.get(name, Counter())
        total.update(counts)
        href = f"{links.scenario_file(key[0])}#{links.question_anchor(name)}"
        items.append(f"<li>{link(href, safe(one.planned.name))}: {counts_text(counts)}</li>")
    yield f'<section><h2 id="{links.group_anchor(number)}">{number} {safe(script.rule(group).topic)}</h2>'
    yield f"<p>{counts_text(total)}.</p>"
    yield f'<ul class="plainlist">{"".join(items)}</ul></section>'


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
