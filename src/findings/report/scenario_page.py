"""The page of one scenario and target: its trials with their codes, and each question with every answer's code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...schemas import QuestionCode
from ...scoring.definitions import CODE_HEADINGS, MEASURES, SCORES
from ...text.count import counted
from ...trials.row import Row
from . import links
from .evidence_pages import ScenarioPagePlan
from .evidence_script import Script
from .evidence_shell import CODE_MARKS, Page, code_legend, code_mark, code_name, link, safe, score_text

SCORE_HEADS = tuple(MEASURES[name].heading for name in SCORES)


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
    heads = [f'<th scope="col">{head}</th>' for head in ("trial", "outcome", *SCORE_HEADS)]
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
    cells += [
        f'<td data-label="{head}">{score_text(score)}</td>' for head, score in zip(SCORE_HEADS, row.scores, strict=True)
    ]
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
