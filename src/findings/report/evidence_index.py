"""The evidence pages above the scenarios: all targets, one target, and its groups of the published study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from ..analysis.human_comparison import STUDY_SCENARIOS
from ..analysis.trial_row import Row
from . import links
from .evidence_pages import scenarios_of
from .evidence_script import Script
from .evidence_shell import CODE_MARKS, code_legend, link, page, safe, score_text
from .scenario_page import SCORE_HEADS, CodeTotals, counts_text
from .series import Runs, Series

Scripts = Mapping[tuple[str, str | None], Script]


def top_page(runs: Runs) -> bytes:
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
    return page("Evidence", (link("../report.html", "Report"), "Evidence"), body)


def target_page(series: Series, scripts: Scripts) -> bytes:
    """One target: its scenarios with scores and codes."""
    scenarios = scenarios_of(series)
    titles = {scenario_id: script.title for (scenario_id, _), script in scripts.items()}
    way = (link("../../report.html", "Report"), link("../index.html", "Evidence"), safe(series.label))
    body = [
        f"<h1>{safe(series.label)}</h1>",
        f'<p class="about">{len(series.rows):,} trials in run {safe(series.run.name)}. '
        f"{link(links.STUDY, 'Question groups of the published study')}.</p>",
        code_legend(),
        '<div class="box" role="region" aria-label="Scenarios" tabindex="0"><table class="wide">',
        "<caption><span>Scenarios: trials, mean scores of scored trials, and codes of all answers.</span></caption>",
        f"<thead><tr>{''.join(_heads())}</tr></thead><tbody>",
        *(_scenario_row(scenario_id, titles.get(scenario_id, ""), rows) for scenario_id, rows in scenarios.items()),
        "</tbody></table></div>",
    ]
    return page(series.label, way, body)


def _heads() -> Iterator[str]:
    for head in ("scenario", "trials", "scored", *SCORE_HEADS, *CODE_MARKS.values()):
        yield f'<th scope="col">{head}</th>'


def _scenario_row(scenario_id: str, title: str, rows: Sequence[Row]) -> str:
    codes = CodeTotals(rows).total()
    name = f'{link(links.scenario_file(scenario_id), safe(scenario_id))}<br><span class="quiet">{safe(title)}</span>'
    cells = [f'<th scope="row">{name}</th>']
    cells.append(f'<td data-label="trials">{len(rows):,}</td>')
    cells.append(f'<td data-label="scored">{sum(row.outcome == "scored" for row in rows):,}</td>')
    for place, head in enumerate(SCORE_HEADS):
        values = [score for row in rows if (score := row.scores[place]) is not None]
        cells.append(f'<td data-label="{head}">{score_text(fmean(values) if values else None)}</td>')
    cells += [f'<td data-label="{mark}">{codes[code]:,}</td>' for code, mark in CODE_MARKS.items()]
    return f"<tr>{''.join(cells)}</tr>"


def study_page(series: Series, scripts: Scripts) -> bytes:
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
    ]
    by_script: dict[tuple[str, str | None], list[Row]] = {}
    for row in series.rows:
        by_script.setdefault((row.scenario_id, row.variant), []).append(row)
    for number in sorted(asked):
        body += _group(number, asked[number], by_script)
    if not asked:
        body.append("<p>No question of the published study was asked in this run.</p>")
    return page(f"Study groups, {series.label}", way, body)


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
