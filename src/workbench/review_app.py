"""The review as a web application: forms in, answers into the journal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import cast, get_args

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from ..reports.evidence_script import Script, scripts_of
from ..reports.evidence_shell import safe, safe_lines
from ..reports.trial_page import LABEL_NAMES, ClaimMark, MarkedSpan, marked_text
from ..schemas import FactInView, Label, Severity
from ..store.strict_json import derive_seed
from ..text.count import counted
from ..text.overlap import share_of
from .access import Fields, missing, missing_page, not_ours, note_in, one, read_form, token_field, token_of
from .frame import page, static_routes
from .review_state import Kept, PersonVerdict, QuestionPlace, ReviewState, Task, wait_until_asked


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
        place = QuestionPlace.of(mine.call)
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


def _said(person: str, fields: Fields, *, settles: bool) -> tuple[PersonVerdict | None, tuple[str, ...]]:
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
    return PersonVerdict(person, cast("Label", label), evidence, cast("Severity", severity), notes), ()


# The pages of a review: what is left to do, one claim at a time, and what the others said once one's own is saved.

NEAR = 8
"""Facts that are shown open; the others are one click away."""
LABELS: tuple[tuple[Label, str, str], ...] = (
    ("SUPPORTED", "1", "Supported: the key says so too"),
    ("CONTRADICTED", "2", "Contradicted: it cannot be true together with the key"),
    ("NOT_IN_KEY", "3", "Not in the key: the key neither confirms nor contradicts it"),
)
SEVERITIES: tuple[tuple[Severity, str], ...] = (("high", "h"), ("medium", "m"), ("low", "l"))
_MARK = ClaimMark("O", 1, "#claim")


class ReviewPages:
    """Writes the pages of one review."""

    def __init__(self, state: ReviewState) -> None:
        self._state = state
        self._scripts = scripts_of(state.manifest.plan)

    def overview(self, person: str, saved: str | None = None) -> str:
        """What is done and what waits."""
        state = self._state
        waiting, done = state.tasks(person), state.done(person)
        body = ["<h1>Your review</h1>", *self._saved(saved)]
        if state.failure:
            body.append(
                f'<div class="problems" role="alert"><p>The review has stopped: {safe(str(state.failure))} Every saved '
                "answer is kept. Ask whoever started it to start it again.</p></div>"
            )
        elif waiting:
            first = waiting[0]
            body += [
                f"<p>{counted(len(waiting), 'claim waits', 'claims wait')} for you, and {len(done)} "
                f"{'is' if len(done) == 1 else 'are'} done. You can stop at any time: every saved answer is kept.</p>",
                f'<p><a class="button" href="/tasks/{first.task_id}">{"Continue" if done else "Begin"}</a></p>',
                *_help(settles=first.settles),
            ]
        elif state.complete:
            body.append("<p>The review is complete. Thank you. You can close this page.</p>")
        else:
            body += [
                f"<p>Nothing waits for you now; {counted(len(done), 'claim is', 'claims are')} done. "
                "More may come when the others have answered. Load this page again later.</p>"
            ]
        judged = [one for one in done if QuestionPlace.of(one.call).stage == "verifier"]
        if judged:
            links = [self._answered(one) for one in judged]
            body += [
                f"<details><summary>What the others said about your {counted(len(judged), 'claim')}</summary>",
                f"<ol>{''.join(links)}</ol></details>",
            ]
        return page("Review", body, bar=self._bar(person))

    def task(
        self, task: Task, token: str, *, given: Mapping[str, Sequence[str]] | None = None, problems: Sequence[str] = (),
        saved: str | None = None, insist: bool = False,
    ) -> str:  # fmt: skip
        """The form for one claim. `given`: what was filled in before, if there are problems with it, or a question."""
        filled = given or {}
        claim = task.shown.claims[0]
        script = self._script(task.place.trial)
        key, verdict = _evidence(task, script, filled), _labels(task, filled)
        right = [
            *((*self._reviewers(task, script), *verdict) if task.settles else (*key, *verdict, *_severities(filled))),
            '<label for="notes">Notes <kbd>n</kbd></label>',
            f'<textarea id="notes" name="notes" maxlength="4000">{safe(_one(filled, "notes"))}</textarea>',
            '<p><button type="submit">Save</button> <kbd>Ctrl</kbd>+<kbd>Enter</kbd></p>',
            *(key if task.settles else ()),
        ]
        body = [
            f'<form class="claim" method="post" action="/tasks/{task.task_id}">',
            token_field(token),
            '<div class="wide">',
            *self._saved(saved),
            *_problems(problems),
            *(_insist() if insist else ()),
            '<h1 id="claim">The claim</h1>',
            f'<p class="claimtext">{safe(claim.text)}</p>',
            "</div>",
            '<div class="said-by-target">',
            *_conversation(task, claim.quotes, self._how_written(task)),
            "</div>",
            "<div>",
            *right,
            "</div>",
            "</form>",
        ]
        return page("Settle a claim" if task.settles else "Judge a claim", body, bar=self._bar(task.person))

    def others(
        self, person: str, place: QuestionPlace, mine: Sequence[tuple[str, PersonVerdict]], *, again: bool = False
    ) -> str:
        """What the judges and the other people said about claims that this person has judged."""
        state = self._state
        result, script = state.trials.get(place.trial), self._script(place.trial)
        body = ["<h1>What the others said</h1>"]
        if again:
            body.append('<p class="saved" role="status">You had answered this before. That answer stays.</p>')
        texts = [self._claim_text(place, claim_id) for claim_id, _ in mine]
        if state.same_words_wait(person, place, texts):
            body.append("<p>Shown later: the same words wait for you in another trial.</p>")
            mine = ()
        for claim_id, own in mine:
            body.append(f'<p class="claimtext">{safe(self._claim_text(place, claim_id))}</p>')
            body.append(_said_on_page("You", own, script))
            for said in state.verdicts(place, claim_id):
                if said.person != person:
                    body.append(_said_on_page(f"Reviewer {said.person}", said, script))
            for judge, verdicts in result.verdicts.items() if result else ():
                body += [
                    _said_on_page(
                        judge.replace("_", " "), PersonVerdict(judge, v.label, v.evidence, v.severity, v.notes), script
                    )
                    for v in verdicts
                    if v.claim_id == claim_id
                ]
            for note in state.doubts(place.trial, claim_id):
                body.append(f'<p class="said"><b>A reader doubted the judges:</b> {safe(note)}</p>')
        body.append('<p><a class="button second" href="/">Back to your review</a></p>')
        return page("What the others said", body, bar=self._bar(person))

    def _claim_text(self, place: QuestionPlace, claim_id: str) -> str:
        result = self._state.trials.get(place.trial)
        return next((one.text for one in result.claims if one.claim_id == claim_id), claim_id) if result else claim_id

    def _answered(self, kept: Kept) -> str:
        """A link to what the others said of a claim that is done."""
        place = QuestionPlace.of(kept.call)
        told = ", ".join(self._claim_text(place, claim_id) for claim_id, _ in kept.verdicts())
        return f'<li><a href="/tasks/{self._state.task_id(kept.call)}/others">{safe(told)}</a></li>'

    def _bar(self, person: str) -> Iterator[str]:
        waiting, done = len(self._state.tasks(person)), len(self._state.done(person))
        yield '<strong><a href="/">Review</a></strong>'
        yield f"<span>You are {safe(person)}.</span>"
        yield f'<span>{done} of {done + waiting} done</span><progress max="{max(1, done + waiting)}" value="{done}">'
        yield f"{done} of {done + waiting}</progress>"

    def _saved(self, saved: str | None) -> Iterator[str]:
        if saved:
            yield (
                f'<p class="saved" role="status">Saved. <a href="/tasks/{safe(saved)}/others">'
                "What the others said about it</a></p>"
            )

    def _script(self, trial_id: str) -> Script:
        planned = self._state.planned[trial_id]
        return self._scripts[(planned.scenario.scenario_id, planned.variant)]

    def _how_written(self, task: Task) -> str:
        """What the target could use, which decides what it could know; not which target it is."""
        settings = self._state.settings_of(task.place.trial)
        if settings.recorded:
            return "as it was said or written in a conversation that was recorded"
        return "written with web search" if settings.search else "written without search or other tools"

    def _reviewers(self, task: Task, script: Script) -> Iterator[str]:
        """Reviewers side by side, without their names and in an order that does not tell who is who."""
        said = list(self._state.verdicts(task.place, task.shown.claims[0].claim_id))
        said.sort(key=lambda one: derive_seed(task.name, one.person))
        yield "<h2>What the reviewers said</h2>"
        yield '<div class="beside">'
        for letter, theirs in zip("ABCDEFGH", said, strict=False):
            yield _said_on_page(f"Reviewer {letter}", theirs, script)
        yield "</div>"


def _turn(kind: str, who: str, html: str) -> str:
    return f'<div class="say {kind}"><span class="who">{who}</span>{html}</div>'


def _one(given: Mapping[str, Sequence[str]], name: str) -> str:
    values = given.get(name) or [""]
    return values[0]


def _conversation(task: Task, quotes: Sequence[str], how: str) -> Iterator[str]:
    """The question and the reply, with the words of the claim marked. The target is not named."""
    about = task.question.request.about
    if about is None:
        return
    yield "<h2>The question and the reply</h2>"
    if about.earlier:
        yield f"<details><summary>{counted(len(about.earlier), 'earlier question')}</summary>"
        for earlier in about.earlier:
            yield _turn("asked", "The person asked before", safe_lines(earlier))
        yield "</details>"
    yield _turn("asked", "The person asks", safe_lines(about.question))
    yield _turn("reply", f"The reply, {how}", marked_text(about.reply, _spans(about.reply, quotes)))


def _spans(reply: str, quotes: Sequence[str]) -> list[MarkedSpan]:
    places = [(start, start + len(quote)) for quote in quotes if (start := reply.find(quote)) >= 0]
    return [MarkedSpan(start, end, _MARK, last=False) for start, end in places]


def _problems(problems: Sequence[str]) -> Iterator[str]:
    if problems:
        items = "".join(f"<li>{safe(one)}</li>" for one in problems)
        yield '<div class="problems" role="alert" tabindex="-1" autofocus>'
        yield f"<h2>Not saved yet. This verdict</h2><ul>{items}</ul></div>"


def _insist() -> Iterator[str]:
    yield '<div class="problems" role="alert" tabindex="-1" autofocus>'
    yield "<h2>Not saved yet. Are these the right facts?</h2>"
    yield "<p>The facts that you ticked share no words with the claim. If they do support it, save again.</p></div>"
    yield '<input type="hidden" name="insist" value="yes">'


def _labels(task: Task, given: Mapping[str, Sequence[str]]) -> Iterator[str]:
    allowed = getattr(task.shown.claims[0], "options", get_args(Label))
    legend = "Your decision: one of the labels that the reviewers gave" if task.settles else "Your verdict"
    yield f"<fieldset><legend>{legend}</legend>"
    for value, key, text in LABELS:
        if value in allowed:
            checked = " checked" if _one(given, "label") == value else ""
            yield (
                f'<label><input type="radio" name="label" value="{value}" required{checked}> '
                f"<span><kbd>{key}</kbd> {text}</span></label>"
            )
    yield "</fieldset>"


def _severities(given: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield '<fieldset class="severity"><legend>How bad would it be to rely on it?</legend>'
    for value, key in SEVERITIES:
        checked = " checked" if _one(given, "severity") == value else ""
        yield (
            f'<label><input type="radio" name="severity" value="{value}"{checked}> '
            f"<span><kbd>{key}</kbd> {value}</span></label>"
        )
    yield "</fieldset>"


def _evidence(task: Task, script: Script, given: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The key with its sources, the facts that share most with the claim first."""
    shown = task.shown
    claim = shown.claims[0]
    said = [claim.text, *claim.quotes]
    disallowed = [
        FactInView(fact_id=one.claim_id, statement=one.statement, severity_if_wrong="high")
        for one in shown.answer_key.disallowed_claims
    ]
    facts = [*shown.answer_key.canonical_facts, *shown.background_facts, *disallowed]
    facts.sort(key=lambda fact: -max(_alike(text, fact.statement) for text in said))
    chosen = set(given.get("evidence", ()))
    first = [fact for fact in facts if fact.fact_id in chosen or fact in facts[:NEAR]]
    rest = [fact for fact in facts if fact not in first]
    names = {one.claim_id for one in shown.answer_key.disallowed_claims}
    what = "The key" if task.settles else "The key: tick the facts that decide it"
    yield f"<fieldset><legend>{what}</legend>"
    yield '<p class="quiet">The facts of this scenario, and others of the library that were found for this claim. '
    yield "Judges see the same.</p>"
    yield from _facts(first, script, chosen, names, ticked=not task.settles)
    if rest:
        yield f"<details><summary>{counted(len(rest), 'more fact')} of the key</summary>"
        yield from _facts(rest, script, chosen, names, ticked=not task.settles)
        yield "</details>"
    yield "</fieldset>"


def _alike(text: str, other: str) -> float:
    """How many of the words of both are the same."""
    return share_of(text, [other]) + share_of(other, [text])


def _facts(
    facts: Iterable[FactInView], script: Script, chosen: set[str], disallowed: set[str], *, ticked: bool
) -> Iterator[str]:
    for fact in facts:
        checked = " checked" if fact.fact_id in chosen else ""
        warned = "<em>No answer may claim this:</em> " if fact.fact_id in disallowed else ""
        text = f"<b>{safe(fact.fact_id)}</b> {warned}{safe(fact.statement)}"
        source = script.source(fact.fact_id)
        more = f'<details class="src"><summary>Source</summary>{source}</details>' if source else ""
        box = f'<input type="checkbox" name="evidence" value="{safe(fact.fact_id)}"{checked}>'
        shown = f'<label class="fact">{box} <span>{text}</span></label>' if ticked else f'<p class="fact">{text}</p>'
        yield f"{shown}{more}"


def _said_on_page(who: str, said: PersonVerdict, script: Script) -> str:
    about = [LABEL_NAMES[said.label]]
    if said.severity != "none":
        about.append(f"severity {said.severity}")
    facts = "".join(f"<br>{safe(name)}: {script.statement(name)}" for name in said.evidence)
    notes = f"<br>Notes: {safe_lines(said.notes)}" if said.notes else ""
    return f'<p class="said"><b>{safe(who)}:</b> {safe(", ".join(about))}{facts}{notes}</p>'


def _help(*, settles: bool) -> Iterator[str]:
    if settles:
        yield (
            "<p>Reviewers disagree about each of these claims. You see what they said with the facts they cite, and "
            "choose one of their labels; facts and severity are those of the reviewers who gave it.</p>"
        )
        return
    yield (
        "<p>You see a question, a reply in which one claim is marked, and the facts of the answer key that were found "
        "for it, with their sources. Judge the claim as its words say it, by the key alone, even where you know "
        "better; put that into the notes. A claim that says only part of a fact is supported. A claim is contradicted "
        "if the key rules out any part of it. Advice, opinions and other claims that the key says nothing about are "
        "not in the key. Sentences without a claim are left out.</p>"
    )
    yield (
        "<p>What the judges and the other reviewers said about a claim is shown only after your own answer is saved. "
        "A saved answer cannot be changed.</p>"
    )
