"""The pages for readers as a web application. Run folders are only read; a reader's mark goes beside them.

Its pages: series and runs, one run's answer with the matrix of targets and questions, every trial, and its calls.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from ..errors import HarnessError
from ..records.run import Doubt
from ..records.scenario import SLOT
from ..records.series import RunReference
from ..reports.document import shown as text_of
from ..reports.evidence_script import Script
from ..reports.evidence_shell import CODE_MARKS
from ..reports.failure_section import error_sections
from ..reports.first_section import TITLE, about, first_blocks
from ..reports.html import contents_html
from ..reports.links import claim_anchor
from ..reports.review_section import review_sections
from ..reports.sections import limits_section
from ..reports.template import macro
from ..reports.trial_page import TrialPage
from ..series.findings import SeriesFindings, read_findings
from ..series.folder import POINTS
from ..series.page import series_page
from ..store.doubts import add_doubt, read_doubts
from ..store.run_folder import SERIES
from ..trials.row import Row
from .access import note_in, read_form, token_of
from .frame import application, page, run_href, shown
from .run_folders import OpenRun, RunFolders

FOLLOW_S = 1.0
LONGEST_NOTE = 1_000
MOST_MARKS = 6
"""Answers of a target to a question that the matrix shows one by one; more are counted by code."""
LONGEST_QUESTION = 90
ANSWER, AGREEMENT, ERRORS = "report.html", "agreement.html", "errors.html"
"""The first is where evidence pages look for the report."""
Found = TypeVar("Found")
Answers = dict[str, list[tuple[Row, str]]]
"""By target: trials with their code of a question, or with their answer to it if it is closed."""


class ViewApp:
    """Pages are made in the only thread, one after the other: then a large run is read by several processes."""

    def __init__(self, folders: RunFolders) -> None:
        self._folders = folders
        self._series = SeriesPages(folders)

    def app(self) -> Starlette:
        routes = [
            Route("/", self._runs),
            Route("/events", self._events),
            Route("/series/{series:str}", self._of_series),
            Route("/runs/{run:str}", self._to_answer),
            Route(f"/runs/{{run:str}}/{ANSWER}", self._answer),
            Route("/runs/{run:str}/evidence/{address:path}", self._evidence),
            Route("/runs/{run:str}/trials/{trial:path}", self._trial),
            Route("/runs/{run:str}/calls/{trial:path}", self._calls),
            Route("/runs/{run:str}/doubt/{trial:path}", self._doubt, methods=["GET", "POST"]),
            Route("/runs/{run:str}/{address:str}", self._sections),
        ]
        return application(
            routes, exception_handlers=dict.fromkeys((HarnessError, OSError, ValueError, KeyError), _damaged)
        )

    async def _runs(self, request: Request) -> Response:
        return HTMLResponse(runs_page(self._folders))

    async def _of_series(self, request: Request) -> Response:
        return HTMLResponse(_there(self._series.page(request.path_params["series"])))

    async def _to_answer(self, request: Request) -> Response:
        name = request.path_params["run"]
        if name not in self._folders.folders():
            raise HTTPException(404)
        return RedirectResponse(run_href(name, ANSWER), 303)

    async def _answer(self, request: Request) -> Response:
        run = self._run(request)
        rows = run.found.rows
        scripts = {name: one for (name, _), one in reversed(run.scripts.items())}
        return shown(
            "answer", run=run, head=_there(self._folders.head(run.name)), doubts=_doubts(run), heading=TITLE,
            about=about(run.runs) if rows else (), first=first_blocks(run.runs, 0) if rows else (),
            matrix=_matrix(run), MOST_MARKS=MOST_MARKS, counts=_counts, question=_question, scripts=scripts,
            limits=limits_section().blocks,
        )  # fmt: skip

    async def _evidence(self, request: Request) -> Response:
        """A page of the report's evidence: of a target, a scenario, or several repetitions."""
        run = self._run(request)
        found = _there(run.evidence.page(request.path_params["address"]))
        return shown("view", run=run, title=found.title, made=found.body)

    async def _sections(self, request: Request) -> Response:
        run, address = self._run(request), request.path_params["address"]
        if address != ERRORS and not (address == AGREEMENT and run.reviews):
            raise HTTPException(404)
        found = error_sections(run.runs) if address == ERRORS else review_sections(run.runs)
        return shown("sections", run=run, listed=tuple(found), errors=address == ERRORS)

    async def _trial(self, request: Request) -> Response:
        return HTMLResponse(trial_page(self._run(request), request.path_params["trial"]))

    async def _calls(self, request: Request) -> Response:
        """The calls of a trial, or of one of its turns, as the journal has them."""
        run, trial_id, turn = self._run(request), request.path_params["trial"], request.query_params.get("turn", "")
        if trial_id not in run.found.places:
            raise HTTPException(404)
        calls = [
            one for line in run.calls(trial_id) if (one := _record(line)) and turn in ("", one["call"].split("|")[2])
        ]
        return shown("calls", run=run, trial_id=trial_id, turn=turn, calls=calls)

    async def _doubt(self, request: Request) -> Response:
        run, claim_id = self._run(request), request.query_params.get("claim", "")
        trial = _there(run.trial(request.path_params["trial"]))
        claim = _there(next((one for one in trial.final_claims if one.claim_id == claim_id), None))
        status, note = 200, ""
        if request.method == "POST":
            status, note = 422, note_in(await read_form(request), "note")
            if 0 < len(note) <= LONGEST_NOTE:
                now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                run_id, trial_id = run.found.manifest.run_id, trial.trial_id
                mark = Doubt(run_id=run_id, trial_id=trial_id, claim_id=claim_id, note=note, marked_at=now)
                add_doubt(run.folder.resolve().parent, mark)
                place = claim_anchor(trial.repetition, claim_id)
                return RedirectResponse(f"{run_href(run.name, 'trials', trial_id)}#{place}", 303)
        marks = [one for one in _doubts(run, trial.trial_id) if one.claim_id == claim_id]
        return shown(
            "doubt", status, run=run, trial_id=trial.trial_id, claim=claim, marks=marks, token=token_of(request),
            refused=status != 200, note=note, LONGEST_NOTE=LONGEST_NOTE,
        )  # fmt: skip

    def _run(self, request: Request) -> OpenRun:
        return _there(self._folders.open(request.path_params["run"]))

    async def _events(self, request: Request) -> Response:
        """How far the runs are, each time that it changes (Server-Sent Events)."""

        async def follow() -> AsyncIterator[str]:
            before = ""
            while not await request.is_disconnected():
                heads = self._folders.heads()
                now = json.dumps({one.name: {"state": one.state, "progress": one.progress} for one in heads})
                yield f"data: {now}\n\n" if now != before else ": still here\n\n"
                before = now
                await asyncio.sleep(FOLLOW_S)

        return StreamingResponse(follow(), media_type="text/event-stream")


async def _damaged(request: Request, error: Exception) -> Response:
    """What is wrong with a run folder is said on a page."""
    return shown("message", 500, about="damaged", why=str(error))


def _there(found: Found | None) -> Found:
    if found is None:
        raise HTTPException(404)
    return found


def _doubts(run: OpenRun, trial_id: str | None = None) -> list[Doubt]:
    """What readers marked, in the run or in one trial."""
    found = read_doubts(run.folder.resolve().parent, run.found.manifest.run_id)
    return [one for one in found if trial_id in (None, one.trial_id)]


def runs_page(folders: RunFolders) -> str:
    return page("runs", heads=folders.heads(), series={name: _read(one) for name, one in folders.series().items()})


def _matrix(run: OpenRun) -> dict[str, dict[str, Answers]]:
    """The answers to each question, by scenario and question group."""
    found: dict[str, dict[str, Answers]] = {scenario_id: {} for scenario_id, _ in run.scripts}
    for row in run.found.rows:
        for group, value in (*row.codes, *row.answers):
            answers = found.setdefault(row.scenario_id, {}).setdefault(group, {})
            answers.setdefault(row.target, []).append((row, value))
    return {scenario_id: groups for scenario_id, groups in found.items() if groups}


def _question(script: Script, group: str) -> str:
    """What a question is about, or else its first words."""
    if topic := script.topic(group):
        return topic
    words = SLOT.sub("…", next(script.questions(group), ""))
    return words if len(words) <= LONGEST_QUESTION else f"{words[:LONGEST_QUESTION].rpartition(' ')[0]} …"


def _counts(answers: Sequence[tuple[Row, str]]) -> list[tuple[str, int]]:
    """How often each code, or else each answer, was given."""
    order, counts = list(CODE_MARKS), Counter(value for _, value in answers)
    return sorted(counts.items(), key=lambda one: (order.index(one[0]) if one[0] in order else len(order), one[0]))


def _record(line: bytes) -> Any:
    """A call; None for the last line of a run that is being written."""
    try:
        return json.loads(line.decode("utf-8", "replace"))
    except ValueError:
        return None


def trial_page(run: OpenRun, trial_id: str) -> str:
    """A conversation with its claims marked, and everything behind them."""
    trial, doubts = _there(run.trial(trial_id)), _doubts(run, trial_id)
    script = run.scripts[(trial.scenario_id, trial.variant)]
    writer = TrialPage(
        script, behind=lambda of, claim: macro("workbench/parts", "behind", run, trial_id, claim, doubts)
    )
    told, names = writer.trial(trial), list(run.found.places)
    at = names.index(trial_id)
    return page(
        "trial", run=run, trial_id=trial_id, trial=trial, script=script, told=told, cited=writer.cited,
        before=names[max(0, at - 1) : at], after=names[at + 1 : at + 2],
    )  # fmt: skip


class SeriesPages:
    """Pages of series, made again only if a point was added or a run appeared."""

    def __init__(self, folders: RunFolders) -> None:
        self._folders = folders
        self._made: dict[str, tuple[tuple[object, ...], str]] = {}
        """By name: what a page was made from, and the page."""

    def page(self, name: str) -> str | None:
        """The page of a series; None if there is none of this name."""
        folder = self._folders.series().get(name)
        if folder is None:
            return None
        names = {run.resolve(): run_name for run_name, run in self._folders.folders().items()}
        key = (*_stamp(folder), *sorted(names.values()))
        if name not in self._made or self._made[name][0] != key:

            def address(run: RunReference) -> str | None:
                found = names.get((folder / run.folder).resolve())
                return run_href(found) if found else None

            made = series_page(read_findings(folder), address)
            html = page("view", title=text_of(made.title), made=contents_html(made), series_name=name)
            self._made[name] = key, html
        return self._made[name][1]


def _stamp(folder: Path) -> tuple[int, ...]:
    """Changes whenever a point is added."""
    found = [path.stat() for path in (folder / SERIES, folder / POINTS) if path.exists()]
    return tuple(part for one in found for part in (one.st_size, one.st_mtime_ns))


def _read(folder: Path) -> SeriesFindings | None:
    """A series; None if it is damaged."""
    try:
        return read_findings(folder)
    except (HarnessError, OSError, ValueError):
        return None
