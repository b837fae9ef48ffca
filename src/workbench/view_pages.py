"""The pages for readers: runs, one run's answer, the matrix of targets and questions, and every trial."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..errors import HarnessError
from ..records.run import Doubt
from ..records.scenario import SLOT
from ..records.series import RunReference
from ..reports import links
from ..reports.document import Contents, shown
from ..reports.evidence_script import Script
from ..reports.evidence_shell import CODE_MARKS, claim_legend, code_legend, code_mark, code_name, safe, safe_lines
from ..reports.failure_section import error_sections
from ..reports.first_section import TITLE, about, first_blocks
from ..reports.html import blocks_html, contents_html, line_html, sections_html
from ..reports.review_section import review_sections
from ..reports.sections import limits_section
from ..reports.trial_page import LABEL_NAMES, TrialPage
from ..schemas import FinalClaim, TrialResult
from ..series.findings import read_findings
from ..series.folder import POINTS
from ..series.page import series_page
from ..store.run_folder import SERIES
from ..text.count import counted
from ..trials.row import Row
from .access import token_field
from .frame import href_of, page, series_href, way
from .run_folders import OpenRun, RunFolders, RunHead

STATES = {
    "complete": "complete",
    "running": "running",
    "stopped": "not complete",
    "damaged": "damaged: verify says what is wrong",
}
MOST_MARKS = 6
"""Answers of a target to a question that the matrix shows one by one; more are counted by code."""
LONGEST_QUESTION = 90
ANSWER, AGREEMENT, ERRORS = "report.html", "agreement.html", "errors.html"
"""The first is where evidence pages look for the report."""


def _run_bar(run: OpenRun, *steps: tuple[str, str]) -> Iterator[str]:
    series = ((run.series_name, series_href(run.series_name)),) if run.series_name is not None else ()
    return way(*series, (run.name, href_of(run.name, ANSWER)), *steps)


def runs_page(heads: Sequence[RunHead], series: Sequence[SeriesHead] = ()) -> str:
    title = "Series and runs" if series else "Runs"
    body = [f"<h1>{title}</h1>"]
    if series:
        body.append('<h2 id="series">Series</h2>')
        body += _list("Series", ("series", "last point", "verdict", "points"), map(_series_row, series))
    if heads:
        body += ['<h2 id="runs">Runs</h2>'] if series else []
        body += _list("Runs", ("run", "state", "progress", "targets", "judges"), map(_run_row, heads))
    elif not series:
        body.append("<p>There is no run in this folder yet. Try: <code>medicare-eval demo</code></p>")
    return page(title, body, bar=way())


def _list(name: str, columns: Sequence[str], rows: Iterable[str]) -> Iterator[str]:
    yield f'<div class="box" role="region" aria-label="{name}" tabindex="0"><table class="wide runs">'
    heads = (f'<th scope="col">{one}</th>' for one in columns)
    yield f"<thead><tr>{''.join(heads)}</tr></thead><tbody>"
    yield from rows
    yield "</tbody></table></div>"


def _series_row(one: SeriesHead) -> str:
    name = f'<br><span class="quiet">{safe(one.name)}</span>' if one.title != one.name else ""
    return (
        f'<tr><th scope="row"><a href="{series_href(one.name)}">{safe(one.title)}</a>{name}</th>'
        f'<td class="text" data-label="last point">{safe(one.period)}</td>'
        f'<td class="text" data-label="verdict">{safe(one.verdict)}</td>'
        f'<td class="text" data-label="points">{one.points:,}</td></tr>'
    )


def _run_row(one: RunHead) -> str:
    what = "people judge a part of" if one.by_people else "judges again:"
    review = f'<br><span class="quiet">{what} {safe(one.reviews)}</span>' if one.reviews else ""
    return (
        f'<tr><th scope="row"><a href="{href_of(one.name, ANSWER)}">{safe(one.name)}</a>{review}</th>'
        f'<td class="text" data-label="state">{STATES[one.state]}</td>'
        f'<td class="text" data-label="progress">{_progress(one)}</td>'
        f'<td class="text" data-label="targets">{safe(", ".join(one.targets))}</td>'
        f'<td class="text" data-label="judges">{safe(", ".join(one.judges))}</td></tr>'
    )


def _progress(one: RunHead) -> str:
    """How far a run is; the script keeps it up to date while the run goes on."""
    live = f' class="live" data-run="{safe(one.name)}"' if one.state == "running" else ""
    return f"<span{live}>{one.progress}</span>"


def answer_page(run: OpenRun, one: RunHead, doubts: Sequence[Doubt]) -> str:
    """The answer first, then the matrix, and where to go on."""
    body = [f"<h1>{TITLE}</h1>"]
    if run.found.rows:
        body.append(f'<p class="about">{line_html(about(run.runs))}</p>')
    if one.state != "complete":
        go_on = (
            "" if one.state == "running" else f" To continue: <code>medicare-eval resume {safe(str(run.folder))}</code>"
        )
        body.append(f'<p class="caveat" role="status">{STATES[one.state].capitalize()}: {_progress(one)}.{go_on}</p>')
    if run.found.rows:
        body.append(blocks_html(first_blocks(run.runs, 0)))
        body.append(f'<p class="way">{" &nbsp; ".join(_further(run))}</p>')
        body += _matrix(run)
    body += _doubted(run, doubts)
    body += ['<h2 id="limits">Limits</h2>', blocks_html(limits_section().blocks)]
    return page(one.name, body, bar=_run_bar(run))


def _further(run: OpenRun) -> Iterator[str]:
    name = run.name
    yield f'<a href="{href_of(name, links.FOLDER, links.INDEX)}">Evidence by target</a>'
    yield f'<a href="{href_of(name, ERRORS)}">Failed calls</a>'
    if run.reviews:
        yield f'<a href="{href_of(name, AGREEMENT)}">Agreement of people and judges</a>'
    yield f"<span>All tables: <code>medicare-eval report {safe(str(run.folder))}</code></span>"


def _doubted(run: OpenRun, doubts: Sequence[Doubt]) -> Iterator[str]:
    if not doubts:
        return
    name = run.name
    yield f'<h2 id="doubts">Marked as doubtful</h2><p>{counted(len(doubts), "mark")} of readers. Nothing in the run '
    yield "has changed. To have people judge these trials again: "
    yield f"<code>medicare-eval review start {safe(str(run.folder))} --reviewers r1,r2 --only doubtful</code></p><ul>"
    for one in doubts:
        to = href_of(name, "trials", one.trial_id)
        yield f'<li><a href="{to}">{safe(one.trial_id)}</a>, {safe(one.claim_id)}: {safe(one.note)}</li>'
    yield "</ul>"


def _matrix(run: OpenRun) -> Iterator[str]:
    """Targets and questions. The code of every answer leads to its trial; where there are many, counts do to a list."""
    cells: dict[tuple[str, str], dict[str, list[tuple[Row, str]]]] = {}
    for row in run.found.rows:
        for group, value in (*row.codes, *row.answers):
            cells.setdefault((row.scenario_id, group), {}).setdefault(row.target, []).append((row, value))
    if not cells:
        return
    columns = "".join(f'<th scope="col">{safe(target)}</th>' for target in run.series)
    yield '<h2 id="matrix">Targets and questions</h2>'
    yield code_legend()
    yield '<div class="box" role="region" aria-label="Targets and questions" tabindex="0"><table class="wide matrix">'
    yield f'<thead><tr><th scope="col">question</th>{columns}</tr></thead>'
    order = {name: place for place, (name, _) in enumerate(run.scripts)}
    before = None
    for (scenario_id, group), by_target in sorted(cells.items(), key=lambda one: order.get(one[0][0], len(order))):
        script = next((one for (name, _), one in run.scripts.items() if name == scenario_id), None)
        if scenario_id != before:
            yield "</tbody>" if before else ""
            title = f": {safe(script.title)}" if script else ""
            span = len(run.series) + 1
            yield f'<tbody><tr><th class="part" scope="rowgroup" colspan="{span}">{safe(scenario_id)}{title}</th></tr>'
            before = scenario_id
        topic = _question(script, group) if script else ""
        tds = [f'<td data-label="{safe(target)}">{_cell(run, group, by_target.get(target, ()))}</td>'
               for target in run.series]  # fmt: skip
        yield f'<tr><th scope="row">{safe(group)} <span class="quiet">{topic}</span></th>{"".join(tds)}</tr>'
    yield "</tbody></table></div>"


def _question(script: Script, group: str) -> str:
    """What a question is about, or else its first words, as HTML."""
    if topic := script.topic(group):
        return topic
    words = SLOT.sub("…", next(iter(script.questions(group)), ""))
    return words if len(words) <= LONGEST_QUESTION else f"{words[:LONGEST_QUESTION].rpartition(' ')[0]} …"


def _cell(run: OpenRun, group: str, answers: Sequence[tuple[Row, str]]) -> str:
    name = run.name
    if len(answers) <= MOST_MARKS:
        return " ".join(_answer(name, group, row, value) for row, value in answers)
    series = run.series[answers[0][0].target]
    to = href_of(name, *links.of_scenario(series, answers[0][0].scenario_id).split("/"))
    to = f"{to}#{links.question_anchor(group)}"
    counts = Counter(value for _, value in answers)
    shown = sorted(counts, key=lambda value: (list(CODE_MARKS).index(value) if value in CODE_MARKS else 9, value))
    return " ".join(
        f'<a class="code {code_mark(value)}" href="{to}" title="{code_name(value)}">{counts[value]:,} '
        f"{code_mark(value)}</a>"
        for value in shown
    )


def _answer(run: str, group: str, row: Row, value: str) -> str:
    mark = code_mark(value)
    variant = f"{safe(row.variant)}, " if row.variant is not None else ""
    to = f"{href_of(run, 'trials', row.trial_id)}#{links.code_anchor(row.repetition, group)}"
    told = f"{code_name(value)}, {variant}repetition {row.repetition}"
    return f'<a class="code {mark}" href="{to}" title="{told}">{mark}</a>'


def evidence_page(run: OpenRun, address: str) -> str | None:
    """A page of the report's evidence: of a target, a scenario, or several repetitions."""
    made = run.evidence.page(address)
    return page(made.title, [made.body], bar=_run_bar(run)) if made else None


def trial_page(run: OpenRun, trial_id: str, doubts: Sequence[Doubt]) -> str | None:
    """A conversation with its claims marked, and everything behind them; None if the run has no such trial."""
    trial = run.trial(trial_id)
    if trial is None:
        return None
    script = run.scripts[(trial.scenario_id, trial.variant)]
    name = run.name
    here, calls = href_of(name, "trials", trial_id), href_of(name, "calls", trial_id)
    marked: dict[str, list[Doubt]] = {}
    for one in doubts:
        if one.trial_id == trial_id:
            marked.setdefault(one.claim_id, []).append(one)

    def behind(of: TrialResult, claim: FinalClaim) -> str:
        notes = "".join(f"<p>Marked as doubtful: {safe(one.note)}</p>" for one in marked.get(claim.claim_id, ()))
        to = f"{href_of(name, 'doubt', trial_id)}?claim={quote(claim.claim_id, safe='')}"
        doubt = f'<a href="{to}">Mark as doubtful</a>'
        raw = f'<a href="{calls}?turn={quote(claim.turn_id, safe="")}">Raw calls</a>'
        return f"{notes}<p>{raw} &nbsp; {doubt}</p>"

    writer = TrialPage(script, behind=behind)
    told = writer.trial(trial)
    near = _near(run, trial_id)
    body = [
        f"<h1>{safe(script.title)}</h1>",
        f'<p class="about">{safe(trial_id)}, answered by {safe(trial.target.name)}.</p>',
        f'<p class="way">{near} <a href="{calls}">All calls of this trial</a></p>',
        claim_legend(),
        told,
        script.sources(writer.cited),
        *_rest_of_key(script, writer.cited),
    ]
    return page(trial_id, body, bar=_run_bar(run, (trial_id, here)))


def _rest_of_key(script: Script, cited: set[str]) -> Iterator[str]:
    """The facts of the scenario's key that nothing on the page cites."""
    rest = [one.fact_id for one in script.scenario.answer_key.canonical_facts if one.fact_id not in cited]
    if rest:
        yield f"<details><summary>{counted(len(rest), 'more fact')} of the key</summary><ul>"
        yield from (f"<li><b>{safe(name)}</b> {script.statement(name)} {script.source(name)}</li>" for name in rest)
        yield "</ul></details>"


def _near(run: OpenRun, trial_id: str) -> str:
    """Links to the trials before and after this one."""
    names = list(run.found.places)
    at = names.index(trial_id)
    shown = []
    for place, word, key in ((at - 1, "Previous trial", "k"), (at + 1, "Next trial", "j")):
        if 0 <= place < len(names):
            to = href_of(run.name, "trials", names[place])
            shown.append(f'<a href="{to}" data-key="{key}">{word}</a> <kbd>{key}</kbd> &nbsp;')
    return " ".join(shown)


def calls_page(run: OpenRun, trial_id: str, turn: str) -> str | None:
    """The raw calls of a trial, or of one of its turns, as the journal has them."""
    if trial_id not in run.found.places:
        return None
    calls = [record for line in run.calls(trial_id) if (record := _record(line))]
    if turn:
        calls = [one for one in calls if one["call"].split("|")[2] == turn]
    here = href_of(run.name, "trials", trial_id)
    body = [
        f"<h1>Calls of {safe(trial_id)}{f', turn {safe(turn)}' if turn else ''}</h1>",
        f"<p>{counted(len(calls), 'attempt')}, as the journal has them.</p>",
    ]
    for record in calls:
        told = f"{_call_name(record['call'])}: {record['model']}, {record['outcome']}"
        text = json.dumps(record, indent=2, ensure_ascii=False)
        body.append(f"<details><summary>{safe(told)}</summary><pre>{safe_lines(text)}</pre></details>")
    return page(f"Calls of {trial_id}", body, bar=_run_bar(run, (trial_id, here)))


def _record(line: bytes) -> Any:
    """A call; None for the last line of a run that is being written."""
    try:
        return json.loads(line.decode("utf-8", "replace"))
    except ValueError:
        return None


def _call_name(call: str) -> str:
    """`verifier 2 (c3), turn Q1, attempt 1` for `...|verifier|Q1|2.c3|0|1`."""
    _, stage, turn, judge, *_, attempt = call.split("|")
    number, _, part = judge.partition(".")
    who = f"{stage} {number}" if number not in ("", "0") else stage
    return f"{who}{f' ({part})' if part else ''}, turn {turn}, attempt {attempt}"


def doubt_page(
    run: OpenRun, trial_id: str, claim_id: str, token: str, *, marks: Sequence[Doubt], problem: str = "", note: str = ""
) -> str | None:
    """The form to mark a verdict as doubtful."""
    trial = run.trial(trial_id)
    claim = next((one for one in trial.final_claims if one.claim_id == claim_id), None) if trial else None
    if claim is None:
        return None
    here = href_of(run.name, "trials", trial_id)
    body = [
        "<h1>Mark a verdict as doubtful</h1>",
        f'<p class="claimtext">{safe(claim.text)}</p>',
        f"<p>The judges' label: {LABEL_NAMES[claim.label]}. Your mark changes nothing in the run. It is kept beside "
        "it, and the next review of this run asks people about this trial.</p>",
        *(f"<p>Marked before: {safe(one.note)}</p>" for one in marks),
        *([f'<div class="problems" role="alert"><p>{safe(problem)}</p></div>'] if problem else ()),
        '<form class="note" method="post">',
        token_field(token),
        '<label for="note">What is doubtful about it?</label>',
        f'<textarea id="note" name="note" maxlength="1000" required>{safe(note)}</textarea>',
        f'<p><button type="submit">Mark</button> <a class="button second" href="{here}">Back</a></p>',
        "</form>",
    ]
    return page("Mark a verdict as doubtful", body, bar=_run_bar(run, (trial_id, here)))


def sections_page(run: OpenRun, address: str) -> str | None:
    """Parts of the report that have a page of their own."""
    if address == AGREEMENT and run.reviews:
        return _sections(run, "Agreement of people and judges", [sections_html(tuple(review_sections(run.runs)))])
    if address == ERRORS:
        nothing = "<p>No call ended without a usable answer.</p>"
        return _sections(run, "Failed calls", [sections_html(error_sections(run.runs)) or nothing])
    return None


def _sections(run: OpenRun, title: str, lines: Iterable[str]) -> str:
    return page(title, [f"<h1>{title}</h1>", *lines], bar=_run_bar(run))


# Series in the workbench: what the list shows of each, and the page of one, with links to its runs and trials.


@dataclass(frozen=True)
class SeriesHead:
    """What the list of series shows."""

    name: str
    """Of its folder."""
    title: str
    period: str
    """Of the last point."""
    verdict: str
    points: int


@dataclass(frozen=True)
class _Made:
    """A page, and what it was made from."""

    key: tuple[object, ...]
    html: str


class SeriesViews:
    """Pages of series, made again only if a point was added or a run appeared."""

    def __init__(self, folders: RunFolders) -> None:
        self._folders = folders
        self._made: dict[str, _Made] = {}

    def heads(self) -> list[SeriesHead]:
        return [_head(name, folder) for name, folder in self._folders.series().items()]

    def page(self, name: str) -> str | None:
        """The page of a series; None if there is none of this name."""
        folder = self._folders.series().get(name)
        if folder is None:
            return None
        names = {run.resolve(): run_name for run_name, run in self._folders.folders().items()}
        key = (*_stamp(folder), *sorted(names.values()))
        known = self._made.get(name)
        if known is None or known.key != key:

            def address(run: RunReference) -> str | None:
                found = names.get((folder / run.folder).resolve())
                return href_of(found) if found else None

            made = series_page(read_findings(folder), address)
            known = self._made[name] = _Made(key, _framed(name, made))
        return known.html


def _framed(name: str, made: Contents) -> str:
    return page(shown(made.title), [contents_html(made)], bar=way((name, series_href(name))))


def _stamp(folder: Path) -> tuple[int, ...]:
    """Changes whenever a point is added."""
    found = [path.stat() for path in (folder / SERIES, folder / POINTS) if path.exists()]
    return tuple(part for one in found for part in (one.st_size, one.st_mtime_ns))


def _head(name: str, folder: Path) -> SeriesHead:
    try:
        found = read_findings(folder)
    except (HarnessError, OSError, ValueError):
        return SeriesHead(name, name, "", "damaged: verify says what is wrong", 0)
    verdict = found.verdict if found.points else "no point yet"
    return SeriesHead(name, found.series.title, found.last_period or "", verdict, len(found.points))
