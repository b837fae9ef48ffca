"""The review as a web application: forms in, answers into the journal.

Its pages: what is left to do, one claim at a time, and what the others said once one's own answer is saved.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import cast, get_args

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ..reports.evidence_script import Script, scripts_of
from ..reports.trial_page import ClaimMark, MarkedSpan, marked_text
from ..schemas import FactInView, Label, Severity, Verdict
from ..store.strict_json import derive_seed
from ..text.overlap import share_of
from .access import Fields, note_in, one, read_form, token_of
from .frame import application, shown
from .review_state import ReviewState, Task, wait_until_asked

NEAR = 8
"""Facts that are shown open; the others are one click away."""
_MARK = ClaimMark("O", 1, "#claim")


class ReviewApp:
    """The pages of one review, for the people who take part in it."""

    def __init__(self, state: ReviewState) -> None:
        self._state = state
        self._scripts = scripts_of(state.manifest.plan)

    def app(self) -> Starlette:
        routes = [
            Route("/", self._home),
            Route("/tasks/{task:str}", self._task, methods=["GET", "POST"]),
            Route("/tasks/{task:str}/others", self._others),
        ]
        return application(routes, lifespan=self._running)

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

    async def _home(self, request: Request) -> Response:
        judged = [kept for kept in self._state.done(request.scope["person"]) if kept.place.stage == "verifier"]
        return self._shown("review_home", request, saved=request.query_params.get("saved"), judged=judged)

    async def _task(self, request: Request) -> Response:
        person, wanted = request.scope["person"], request.path_params["task"]
        task = self._state.task(person, wanted)
        if task is None:
            if self._state.answered(person, wanted):
                return RedirectResponse(f"/tasks/{wanted}/others{'?again=1' if request.method == 'POST' else ''}", 303)
            return shown("message", 404, about="not yours")
        if request.method != "POST":
            return self._form(request, task)
        return await self._answered(request, task, await read_form(request))

    async def _answered(self, request: Request, task: Task, fields: Fields) -> Response:
        said = _said(fields, task)
        problems = [said] if isinstance(said, str) else task.problems(said)
        if isinstance(said, str) or problems:
            return self._form(request, task, fields, problems=problems)
        if one(fields, "insist") != "yes" and task.off_topic(said):
            return self._form(request, task, fields, insist=True)
        if await self._state.save(task, said):
            following = self._state.tasks(task.person)
            where = f"/tasks/{following[0].task_id}" if following else "/"
            return RedirectResponse(f"{where}?saved={task.task_id}", 303)
        if self._state.answered(task.person, task.task_id):
            return RedirectResponse(f"/tasks/{task.task_id}/others?again=1", 303)
        return shown("message", 503, about="not saved", why=str(self._state.failure or ""))

    async def _others(self, request: Request) -> Response:
        person, state = request.scope["person"], self._state
        kept = state.answered(person, request.path_params["task"])
        if kept is None:
            raise HTTPException(404)
        if kept.place.stage != "verifier":
            return RedirectResponse("/", 303)
        texts = [state.claim_text(kept.place, own.claim_id) for own in kept.verdicts()]
        result = state.trials.get(kept.place.trial)
        return self._shown(
            "review_others", request, kept=kept, script=self._script(kept.place.trial), again="again" in
            request.query_params, later=state.same_words_wait(person, kept.place, texts),
            judges=result.verdicts if result else {},
        )  # fmt: skip

    def _form(
        self, request: Request, task: Task, given: Fields | None = None, *, problems: Sequence[str] = (),
        insist: bool = False,
    ) -> Response:  # fmt: skip
        """The form for one claim. `given`: what was filled in before, if there are problems with it, or a question."""
        about, place = task.question.request.about, task.place
        facts = _facts(task)
        chosen = (given or {}).get("evidence", ())
        near = [fact for fact in facts if fact.fact_id in chosen or fact in facts[:NEAR]]
        said = list(self._state.verdicts(place, task.claim.claim_id)) if task.settles else []
        said.sort(key=lambda by: derive_seed(task.name, by[0]))  # an order that does not tell who is who
        return self._shown(
            "review_task", request, 200 if given is None else 422, task=task, script=self._script(place.trial),
            token=token_of(request), given=given or {}, problems=problems, insist=insist, near=near,
            rest=[fact for fact in facts if fact not in near],
            verdicts=[verdict for _, verdict in said], about=about, settings=self._state.settings_of(place.trial),
            reply=marked_text(about.reply, _spans(about.reply, task.claim.quotes)) if about else "",
            saved=None if given is not None else request.query_params.get("saved"),
        )  # fmt: skip

    def _shown(self, name: str, request: Request, status: int = 200, **values: object) -> Response:
        person, state = request.scope["person"], self._state
        return shown(
            name, status, person=person, state=state, waiting=state.tasks(person), done=state.done(person), **values
        )

    def _script(self, trial_id: str) -> Script:
        planned = self._state.planned[trial_id]
        return self._scripts[(planned.scenario.scenario_id, planned.variant)]


def _said(fields: Fields, task: Task) -> Verdict | str:
    """What a form says, or the field that is wrong."""
    label, severity, notes = one(fields, "label"), one(fields, "severity") or "none", note_in(fields, "notes")
    if label not in get_args(Label):
        return "label"
    if severity not in get_args(Severity):
        return "severity"
    if len(notes) > 4_000:
        return "notes"
    return Verdict(
        claim_id=task.claim.claim_id,
        label=cast("Label", label),
        evidence=tuple(dict.fromkeys(fields.get("evidence", ()))),
        severity=cast("Severity", severity) if label == "CONTRADICTED" and not task.settles else "none",
        notes=notes,
    )


def _spans(reply: str, quotes: Sequence[str]) -> list[MarkedSpan]:
    places = [(start, start + len(quote)) for quote in quotes if (start := reply.find(quote)) >= 0]
    return [MarkedSpan(start, end, _MARK, last=False) for start, end in places]


def _facts(task: Task) -> list[FactInView]:
    """The key, the facts that share most with the claim first."""
    shown = task.shown
    said = [task.claim.text, *task.claim.quotes]
    disallowed = [
        FactInView(fact_id=one.claim_id, statement=one.statement, severity_if_wrong="high")
        for one in shown.answer_key.disallowed_claims
    ]
    facts = [*shown.answer_key.canonical_facts, *shown.background_facts, *disallowed]
    return sorted(facts, key=lambda fact: -max(_alike(text, fact.statement) for text in said))


def _alike(text: str, other: str) -> float:
    """How many of the words of both are the same."""
    return share_of(text, [other]) + share_of(other, [text])
