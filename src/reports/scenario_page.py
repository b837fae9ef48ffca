"""The page of one scenario and target: its trials with their codes, and each question with every answer's code.

Which evidence pages a report has, and which trials are on which, follows from the rows alone; no result is read for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..schemas import QuestionCode, RunPlan
from ..scoring.definitions import CODE_HEADINGS, SCORE_HEADINGS
from ..text.count import counted
from ..trials.row import Row
from . import links
from .evidence_script import Script
from .evidence_shell import CODE_MARKS, Page, code_legend, code_mark, code_name, link, safe, score_text
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


@dataclass(frozen=True, slots=True)
class Coded:
    """A trial with the codes of its questions."""

    row: Row
    codes: tuple[QuestionCode, ...]


class CodeTotals:
    """How often each code, and each answer to a closed question, was given; by question group."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.by_group: dict[str, Counter[str]] = {}
        self.counted_as: dict[str, Counter[str]] = {}
        """How often an answer counts in estimates as another code than it has; by question group."""
        for row in rows:
            for group, value in (*row.codes, *row.answers):
                self.by_group.setdefault(group, Counter())[value] += 1
            given = dict(row.codes)
            for group, value in row.counted:
                if given[group] != value:
                    self.counted_as.setdefault(group, Counter())[value] += 1

    def total(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for counts in self.by_group.values():
            found.update(counts)
        return found


def counts_text(counts: Mapping[str, int]) -> str:
    """Codes that were given, with how often, as HTML."""
    shown = [f"{counts[code]:,} {CODE_HEADINGS[code]}" for code in CODE_HEADINGS if counts.get(code)]
    shown += [f"{number:,} {safe(value)}" for value, number in sorted(counts.items()) if value not in CODE_MARKS]
    return "; ".join(shown) or "no answer was coded"


def name_of(row: Row) -> str:
    """A trial within its scenario, as HTML."""
    return f"{safe(row.variant)}, {row.repetition}" if row.variant is not None else f"{row.repetition}"


def scenario_page(plan: ScenarioPagePlan, script: Script, rows: Sequence[Row], coded: Sequence[Coded]) -> Page:
    """The page; `rows` are all trials of the scenario, `coded` those on this page."""
    totals = CodeTotals(rows)
    groups = list(dict.fromkeys((*script.groups, *totals.by_group)))
    part = f", page {plan.number} of {plan.of}" if plan.of > 1 else ""
    way = (link("../../report.html", "Report"), link(links.INDEX, safe(plan.series.label)), safe(plan.scenario_id))
    body = [
        f"<h1>{safe(script.title)}</h1>",
        f'<p class="about">Scenario {safe(plan.scenario_id)}, answered by {safe(plan.series.label)}{part}. '
        f"{counted(len(rows), 'trial')}, {sum(row.outcome == 'scored' for row in rows):,} of them scored.</p>",
        *_pages(plan),
        code_legend(),
        *_trial_table(coded, [group for group in groups if group in totals.by_group]),
    ]
    cited: set[str] = set()
    for group in groups:
        body += _question(group, script, totals, coded)
        cited.update(fact for point in script.points_of(group) for fact in point.split("|"))
    body += script.sources(cited)
    body += _pages(plan)
    return Page(f"{plan.scenario_id}, {plan.series.label}", way, body)


def _pages(plan: ScenarioPagePlan) -> Iterator[str]:
    """Links to the other pages of the scenario."""
    if plan.of == 1:
        return
    near = range(max(1, plan.number - 3), min(plan.of, plan.number + 3) + 1)
    shown = []
    for number in sorted({1, *near, plan.of}):
        here = number == plan.number
        shown.append(f"<b>{number}</b>" if here else link(links.scenario_file(plan.scenario_id, number), str(number)))
    yield f'<p class="way">Pages: {" ".join(shown)}</p>'


def _trial_table(coded: Sequence[Coded], groups: Sequence[str]) -> Iterator[str]:
    if not coded:
        yield "<p>No trial of this scenario has run yet.</p>"
        return
    heads = [f'<th scope="col">{head}</th>' for head in ("trial", "outcome", *SCORE_HEADINGS.values())]
    heads += [f'<th scope="col">{link("#" + links.question_anchor(group), safe(group))}</th>' for group in groups]
    yield '<div class="box" role="region" aria-label="Trials" tabindex="0"><table class="wide">'
    yield "<caption><span>Trials (variant, repetition): outcome, scores, code of each question.</span></caption>"
    yield f"<thead><tr>{''.join(heads)}</tr></thead><tbody>"
    for one in coded:
        yield _trial_row(one, groups)
    yield "</tbody></table></div>"


def _trial_row(one: Coded, groups: Sequence[str]) -> str:
    row = one.row
    file = links.file_of_row(row)
    cells = [f'<th scope="row">{link(f"{file}#{links.trial_anchor(row.repetition)}", name_of(row))}</th>']
    cells.append(f'<td data-label="">{safe(row.outcome.replace("_", " "))}</td>')
    cells += [f'<td data-label="{head}">{score_text(row.score(name))}</td>' for name, head in SCORE_HEADINGS.items()]
    given = {code.question_group: code.code or code.answer for code in one.codes}
    for group in groups:
        value = given.get(group)
        mark = code_mark(value) if value else "–"
        shown = mark
        if group in given:
            href = f"{file}#{links.code_anchor(row.repetition, group)}"
            shown = f'<a class="code {mark}" href="{href}">{mark}</a>'
        cells.append(f'<td data-label="{safe(group)}">{shown}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def _question(group: str, script: Script, totals: CodeTotals, coded: Sequence[Coded]) -> Iterator[str]:
    """A question: its words, its counts over all trials, its points, and each answer on this page."""
    topic = script.topic(group)
    name = f"{safe(group)}: {topic}" if topic else safe(group)
    yield f'<section><h2 id="{links.question_anchor(group)}">{name}</h2>'
    yield from (f'<p class="say asked" dir="auto">{text}</p>' for text in script.questions(group))
    yield f"<p>All trials of this scenario: {counts_text(totals.by_group.get(group, {}))}.</p>"
    if counted := totals.counted_as.get(group):
        shown = [f"{number:,} count as {code_name(code)}" for code, number in sorted(counted.items())]
        yield f"<p>Of those with incomplete data, {', '.join(shown)}.</p>"
    points = [f"<li>{script.point(name)}</li>" for name in script.points_of(group)]
    if points:
        yield f'<p class="facts">A complete answer makes {"this point" if len(points) == 1 else "these points"}:</p>'
        yield f'<ul class="plainlist">{"".join(points)}</ul>'
    rows = [_answer(one, code) for one in coded for code in one.codes if code.question_group == group]
    if rows:
        yield '<div class="box"><table class="wide"><thead><tr><th scope="col">trial</th><th scope="col">code</th>'
        yield '<th scope="col" class="text">reason</th></tr></thead><tbody>'
        yield from rows
        yield "</tbody></table></div>"
    yield "</section>"


def _answer(one: Coded, code: QuestionCode) -> str:
    href = f"{links.file_of_row(one.row)}#{links.code_anchor(one.row.repetition, code.question_group)}"
    mark = code_mark(code.code or code.answer or "–")
    counted = dict(one.row.counted).get(code.question_group)
    note = f" Counts as {code_name(counted)}." if counted and counted != code.code else ""
    return (
        f'<tr><th scope="row">{link(href, name_of(one.row))}</th><td data-label=""><span class="code {mark}">{mark}'
        f'</span></td><td class="reason" data-label="">{safe(code.reason)}{note}</td></tr>'
    )
