"""The pages for readers as a web application. Run folders are only read; a reader's mark goes beside them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from functools import partial

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from ..errors import HarnessError
from ..records.run import Doubt
from ..reports.evidence_shell import safe
from ..reports.links import claim_anchor
from ..store.doubts import add_doubt, read_doubts
from .access import missing, missing_page, not_ours, note_in, read_form, token_of
from .frame import href_of, page, static_routes
from .run_folders import OpenRun, RunFolders
from .view_pages import (
    ANSWER,
    SeriesViews,
    answer_page,
    calls_page,
    doubt_page,
    evidence_page,
    runs_page,
    sections_page,
    trial_page,
)

FOLLOW_S = 1.0
LONGEST_NOTE = 1_000


class ViewApp:
    def __init__(self, folders: RunFolders) -> None:
        self._folders = folders
        self._views = SeriesViews(folders)

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/", self._runs),
                Route("/events", self._events),
                Route("/series/{series:str}", self._series),
                Route("/runs/{run:str}", self._to_answer),
                Route(f"/runs/{{run:str}}/{ANSWER}", self._answer),
                Route("/runs/{run:str}/evidence/{address:path}", self._evidence),
                Route("/runs/{run:str}/trials/{trial:path}", self._trial),
                Route("/runs/{run:str}/calls/{trial:path}", self._calls),
                Route("/runs/{run:str}/doubt/{trial:path}", self._doubt, methods=["GET", "POST"]),
                Route("/runs/{run:str}/{address:str}", self._sections),
                *static_routes(),
            ],
            exception_handlers={404: missing_page},
        )

    async def _runs(self, request: Request) -> Response:
        return await self._page(lambda: runs_page(self._folders.heads(), self._views.heads()))

    async def _series(self, request: Request) -> Response:
        return await self._page(partial(self._views.page, request.path_params["series"]))

    async def _to_answer(self, request: Request) -> Response:
        name = request.path_params["run"]
        return RedirectResponse(href_of(name, ANSWER), 303) if name in self._folders.folders() else missing()

    async def _answer(self, request: Request) -> Response:
        def make(run: OpenRun) -> str | None:
            head = self._folders.head(run.name)
            return answer_page(run, head, self._doubts(run)) if head else None

        return await self._of_run(request, make)

    async def _evidence(self, request: Request) -> Response:
        return await self._of_run(request, partial(evidence_page, address=request.path_params["address"]))

    async def _sections(self, request: Request) -> Response:
        return await self._of_run(request, partial(sections_page, address=request.path_params["address"]))

    async def _trial(self, request: Request) -> Response:
        wanted = request.path_params["trial"]
        return await self._of_run(request, lambda run: trial_page(run, wanted, self._doubts(run)))

    async def _calls(self, request: Request) -> Response:
        wanted, turn = request.path_params["trial"], request.query_params.get("turn", "")
        return await self._of_run(request, partial(calls_page, trial_id=wanted, turn=turn))

    async def _doubt(self, request: Request) -> Response:
        trial_id, claim_id = request.path_params["trial"], request.query_params.get("claim", "")

        def form(run: OpenRun, *, problem: str = "", note: str = "") -> str | None:
            marks = [one for one in self._doubts(run) if (one.trial_id, one.claim_id) == (trial_id, claim_id)]
            return doubt_page(run, trial_id, claim_id, token_of(request), marks=marks, problem=problem, note=note)

        shown = await self._of_run(request, form)
        if request.method != "POST" or shown.status_code != 200:
            return shown
        fields = await read_form(request)
        if fields is None:
            return not_ours()
        note = note_in(fields, "note")
        if not 0 < len(note) <= LONGEST_NOTE:
            problem = f"Say what is doubtful, in up to {LONGEST_NOTE:,} characters."
            return await self._of_run(request, partial(form, problem=problem, note=note), 422)

        def mark(run: OpenRun) -> str:
            run_id = run.found.manifest.run_id
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            add_doubt(
                run.folder.resolve().parent,
                Doubt(run_id=run_id, trial_id=trial_id, claim_id=claim_id, note=note, marked_at=now),
            )
            return ""

        marked = await self._of_run(request, mark)
        if marked.status_code != 200:
            return marked
        run = self._folders.open(request.path_params["run"])
        trial = run.trial(trial_id) if run else None
        place = f"#{claim_anchor(trial.repetition, claim_id)}" if trial else ""
        return RedirectResponse(href_of(request.path_params["run"], "trials", trial_id) + place, 303)

    def _doubts(self, run: OpenRun) -> list[Doubt]:
        return read_doubts(run.folder.resolve().parent, run.found.manifest.run_id)

    async def _of_run(self, request: Request, make: Callable[[OpenRun], str | None], status: int = 200) -> Response:
        def made() -> str | None:
            run = self._folders.open(request.path_params["run"])
            return make(run) if run else None

        return await self._page(made, status)

    async def _page(self, make: Callable[[], str | None], status: int = 200) -> Response:
        """A page; what is wrong with a run folder is said on it.

        It is made in the only thread, one after the other: then a large run is read by several processes.
        """
        try:
            made = make()
        except (HarnessError, OSError, ValueError, KeyError) as error:
            body = ["<h1>Cannot be shown</h1>", f"<p>{safe(str(error))}</p>", '<p><a href="/">All runs</a></p>']
            return HTMLResponse(page("Cannot be shown", body), 500)
        return HTMLResponse(made, status) if made is not None else missing()

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
