"""The review as a web application: forms in, answers into the journal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast, get_args

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from ..findings.report.evidence_shell import safe
from ..schemas import Label, Severity
from .forms import Fields, missing, missing_page, not_ours, note_in, one, read_form, token_of
from .frame import page
from .review_pages import ReviewPages
from .review_state import Place, ReviewState, Said, Task, wait_until_asked
from .static_files import static_routes


class ReviewApp:
    """The pages of one review, for the people who take part in it."""

    def __init__(self, state: ReviewState) -> None:
        self._state = state
        self._pages = ReviewPages(state)

    def routes(self) -> list[Route]:
        return [
            Route("/", self._overview),
            Route("/tasks/{task:str}", self._task, methods=["GET", "POST"]),
            Route("/tasks/{task:str}/others", self._others),
            *static_routes(),
        ]

    def app(self) -> Starlette:
        return Starlette(routes=self.routes(), lifespan=self._running, exception_handlers={404: missing_page})

    @asynccontextmanager
    async def _running(self, app: Starlette) -> AsyncIterator[None]:
        """The run goes on while pages are served, and stops when they are not."""
        running = asyncio.create_task(self._state.run())
        await wait_until_asked(self._state, running)
        if self._state.failure:
            raise self._state.failure  # so that the program ends, and says why
        self._state.on_ready()
        try:
            yield
        finally:
            self._state.left = self._state.people.waiting()
            self._state.stop.ask("The review was stopped.")
            await running

    async def _overview(self, request: Request) -> Response:
        return HTMLResponse(self._pages.overview(request.scope["person"], request.query_params.get("saved")))

    async def _task(self, request: Request) -> Response:
        person, wanted = request.scope["person"], request.path_params["task"]
        task = self._state.task(person, wanted)
        if task is None:
            if self._state.answered(person, wanted):
                return RedirectResponse(f"/tasks/{wanted}/others{'?again=1' if request.method == 'POST' else ''}", 303)
            return _not_yours()
        token = token_of(request)
        if request.method != "POST":
            return HTMLResponse(self._pages.task(task, token, saved=request.query_params.get("saved")))
        fields = await read_form(request)
        if fields is None:
            return not_ours()
        return await self._answered(task, token, fields)

    async def _answered(self, task: Task, token: str, fields: Fields) -> Response:
        said, problems = _said(task.person, fields, settles=task.settles)
        problems += task.problems(said) if said and not problems else ()
        if said is None or problems:
            return HTMLResponse(self._pages.task(task, token, given=fields, problems=problems), 422)
        if one(fields, "insist") != "yes" and task.off_topic(said):
            return HTMLResponse(self._pages.task(task, token, given=fields, insist=True), 422)
        if not await self._state.save(task, said):
            return self._not_saved(task)
        following = self._state.tasks(task.person)
        where = f"/tasks/{following[0].task_id}" if following else "/"
        return RedirectResponse(f"{where}?saved={task.task_id}", 303)

    def _not_saved(self, task: Task) -> Response:
        if self._state.answered(task.person, task.task_id):
            return RedirectResponse(f"/tasks/{task.task_id}/others?again=1", 303)
        why = str(self._state.failure or "the review was stopped.")
        return HTMLResponse(page("Not saved", ["<h1>Not saved</h1>", f"<p>{safe(why)}</p>"]), 503)

    async def _others(self, request: Request) -> Response:
        person, wanted = request.scope["person"], request.path_params["task"]
        mine = self._state.answered(person, wanted)
        if mine is None:
            return missing()
        place = Place.of(mine.call)
        if place.stage != "verifier":
            return RedirectResponse("/", 303)
        said, again = list(mine.verdicts()), "again" in request.query_params
        return HTMLResponse(self._pages.others(person, place, said, again=again))


def _not_yours() -> Response:
    body = [
        "<h1>Not one of your claims</h1>",
        "<p>If the link of another person was opened in this browser, open your own link again. What you typed is "
        'still there if you go back. <a href="/">Your review</a></p>',
    ]
    return HTMLResponse(page("Not one of your claims", body), 404)


def _said(person: str, fields: Fields, *, settles: bool) -> tuple[Said | None, tuple[str, ...]]:
    """What a form says, and what is missing in it."""
    label, severity = one(fields, "label"), one(fields, "severity") or "none"
    if label not in get_args(Label):
        return None, ("needs a label: choose one of the three.",)
    if severity not in get_args(Severity):
        return None, ("has a severity that does not exist.",)
    if label != "CONTRADICTED" or settles:
        severity = "none"
    evidence = tuple(dict.fromkeys(fields.get("evidence", ())))
    notes = note_in(fields, "notes")
    if len(notes) > 4_000:
        return None, ("has notes longer than 4,000 characters.",)
    return Said(person, cast("Label", label), evidence, cast("Severity", severity), notes), ()
