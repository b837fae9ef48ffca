"""Assisted collection as a web application: one form, whose replies go to the session, which saves them at once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from ..errors import HarnessError, InputError, StorageError
from ..transcripts.collect import LONGEST, CollectSession
from .collect_pages import CollectPages, Notice, Problem, Told
from .forms import Fields, missing_page, not_ours, note_in, one, read_form, token_of
from .static_files import static_routes

LARGEST_REPLY_FORM = 12 * LONGEST + 20_000
"""Bytes: a character of a form may take twelve. Longer replies up to this size are refused with their reason."""
EARLIER = "This form is from an earlier page, and the conversation has moved on since. Nothing was changed."
CONTINUE = " Every saved reply is kept. End the program with Ctrl-C and start it again to continue."


class CollectApp:
    """The page of one conversation that is being collected."""

    def __init__(
        self,
        session: CollectSession,
        *,
        redacted_by: str,
        to_judge: str,
        on_finish: Callable[[Path], None] = lambda path: None,
    ) -> None:
        """`to_judge`: the command that judges the conversation. `on_finish` is called with the file of it."""
        self._session = session
        self._redacted_by = redacted_by
        self._on_finish = on_finish
        self._pages = CollectPages(session, redacted_by=redacted_by, to_judge=to_judge)
        self._notice: Notice | None = None
        self._last_saved: tuple[int, bytes] | None = None
        """Place and hash of the reply that was saved last, so that a form that is sent twice does no harm."""
        self.written: Path | None = None

    def app(self) -> Starlette:
        routes = [Route("/", self._page, methods=["GET", "POST"]), *static_routes()]
        return Starlette(routes=routes, exception_handlers={404: missing_page})

    async def _page(self, request: Request) -> Response:
        token = token_of(request)
        if request.method != "POST":
            return HTMLResponse(self._shown(token, self._notice))
        fields = await read_form(request, LARGEST_REPLY_FORM)
        if fields is None:
            return not_ours()
        if self.written or self._sent_again(fields):
            return RedirectResponse("/", 303)
        if _place(fields) != len(self._session.turns):  # its reply may belong to another question
            return HTMLResponse(self._shown(token, Problem(EARLIER, note_in(fields, "reply"))), 409)
        try:  # nothing is awaited from here on, so two forms cannot get in each other's way
            self._notice = self._done(fields)
        except HarnessError as error:
            why = Problem(f"{error}{CONTINUE if isinstance(error, StorageError) else ''}")
            return HTMLResponse(self._shown(token, why, fields), 422 if isinstance(error, InputError) else 503)
        return RedirectResponse("/", 303)

    def _shown(self, token: str, told: Told, given: Fields | None = None) -> str:
        if self.written:
            return self._pages.finished(self.written)
        question = self._session.next_question()
        if question is None:
            return self._pages.check(token, told)
        return self._pages.question(question, token, told, given or {})

    def _sent_again(self, fields: Fields) -> bool:
        return self._last_saved == (_place(fields), _hash(fields)) and _place(fields) < len(self._session.turns)

    def _done(self, fields: Fields) -> Notice | None:
        """Do what the pressed button says. A form without one is a reply: Ctrl+Enter."""
        action = one(fields, "action") or "save"
        if action not in ("save", "skip", "no_reply", "undo", "finish"):
            raise InputError("This page has no such button.")
        if action == "save":
            return self._saved(fields)
        if note_in(fields, "reply"):
            raise InputError("There is a reply in the box. Save it, or empty the box first.")
        if action == "finish":
            self.written = self._session.finish(redacted_by=self._redacted_by)
            self._on_finish(self.written)
            return None
        if action == "undo":
            return self._undone()
        question = self._session.next_question()
        what = "not asked" if action == "skip" else "no reply"
        (self._session.skip if action == "skip" else self._session.no_reply)()
        return Notice(f"Saved: {question.turn_id if question else ''}, {what}.")

    def _saved(self, fields: Fields) -> Notice:
        place, reply = _place(fields), note_in(fields, "reply")
        if not reply:
            raise InputError("The reply is empty. If the app gave none, use the button No reply.")
        if len(reply) > LONGEST:  # before it is searched
            raise InputError(f"The reply has {len(reply):,} characters; the limit is {LONGEST:,}.")
        findings = self._session.check(reply).findings
        keep = _numbers(one(fields, "keep"))
        for number in keep:
            if number not in {finding.number for finding in findings}:
                raise InputError(f"Not personal: this reply has no redaction with the number {number}.")
        also = [line.strip() for line in note_in(fields, "also").splitlines() if line.strip()]
        turn = self._session.answer(reply, keep=keep, also=also)
        self._last_saved = place, _hash(fields)
        redacted = tuple(finding for finding in findings if finding.number not in keep)
        return Notice(f"Saved: {turn.turn_id}.", turn.turn_id, redacted)

    def _undone(self) -> Notice:
        removed, before = self._session.undo(), self._notice
        self._last_saved = None
        if removed is None:
            raise InputError("There is nothing to take back.")
        findings = before.findings if before and before.turn_id == removed else ()
        return Notice(f"Taken back: {removed}.", removed, findings)


def _place(fields: Fields) -> int:
    """How many turns were done when the page of this form was made."""
    text = one(fields, "place")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else -1


def _hash(fields: Fields) -> bytes:
    return hashlib.sha256(note_in(fields, "reply").encode()).digest() if one(fields, "action") in ("", "save") else b""


def _numbers(text: str) -> list[int]:
    words = text.replace(",", " ").split()
    if not all(word.isascii() and word.isdigit() and len(word) < 6 for word in words):
        raise InputError("Not personal: give numbers, for example 1, 3.")
    return [int(word) for word in words]
