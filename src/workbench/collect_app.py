"""Assisted collection as a web application: one form, whose replies go to the session, which saves them at once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ..errors import HarnessError, InputError, StorageError
from ..inputs.transcripts.assemble import find_redactions
from ..inputs.transcripts.collect import LONGEST, CollectSession
from ..inputs.transcripts.redact import PersonalDetail
from ..records.transcript import RecordedTurn, Redaction
from .access import Fields, note_in, one, read_form, token_of
from .frame import application, shown

LARGEST_REPLY_FORM = 12 * LONGEST + 20_000
"""Bytes: a character of a form may take twelve. Longer replies up to this size are refused with their reason."""
AROUND = 40
"""Characters that are shown on each side of a redaction."""


@dataclass(frozen=True)
class LastAction:
    """What was done last. It has nothing personal: a finding is its placeholder and a hint."""

    what: str
    """The button."""
    turn_id: str
    findings: tuple[PersonalDetail, ...] = ()


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
        self._to_judge = to_judge
        self._on_finish = on_finish
        self._notice: LastAction | None = None
        self._last_saved: tuple[int, bytes] | None = None
        """Place and hash of the reply that was saved last, so that a form that is sent twice does no harm."""
        self.written: Path | None = None

    def app(self) -> Starlette:
        return application([Route("/", self._page, methods=["GET", "POST"])])

    async def _page(self, request: Request) -> Response:
        if request.method != "POST":
            return self._shown(request)
        fields = await read_form(request, LARGEST_REPLY_FORM)
        if self.written or self._sent_again(fields):
            return RedirectResponse("/", 303)
        if _place(fields) != len(self._session.turns):  # its reply may belong to another question
            return self._shown(request, 409, late=note_in(fields, "reply"))
        try:  # nothing is awaited from here on, so two forms cannot get in each other's way
            self._notice = self._done(fields)
        except HarnessError as error:
            status = 422 if isinstance(error, InputError) else 503
            return self._shown(request, status, given=fields, why=error)
        return RedirectResponse("/", 303)

    def _shown(
        self, request: Request, status: int = 200, *, given: Fields | None = None, why: HarnessError | None = None,
        late: str | None = None,
    ) -> Response:  # fmt: skip
        """`why`: the reason that a form was refused. `late`: the reply in a form of an earlier page."""
        question = self._session.next_question()
        return shown(
            "collect", status, session=self._session, token=token_of(request), written=self.written, question=question,
            given=given or {}, why=why, late=late, stopped=isinstance(why, StorageError), notice=self._notice,
            redactions=() if question else list(_redactions(self._session.turns)), redacted_by=self._redacted_by,
            to_judge=self._to_judge,
        )  # fmt: skip

    def _sent_again(self, fields: Fields) -> bool:
        return self._last_saved == (_place(fields), _hash(fields)) and _place(fields) < len(self._session.turns)

    def _done(self, fields: Fields) -> LastAction | None:
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
        (self._session.skip if action == "skip" else self._session.no_reply)()
        return LastAction(action, question.turn_id if question else "")

    def _saved(self, fields: Fields) -> LastAction:
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
        return LastAction("save", turn.turn_id, tuple(found for found in findings if found.number not in keep))

    def _undone(self) -> LastAction:
        removed, before = self._session.undo(), self._notice
        self._last_saved = None
        if removed is None:
            raise InputError("There is nothing to take back.")
        return LastAction("undo", removed, before.findings if before and before.turn_id == removed else ())


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


def _redactions(turns: tuple[RecordedTurn, ...]) -> Iterator[tuple[Redaction, str, str]]:
    """Each redaction in a reply, with the text before and after it."""
    replies = {turn.turn_id: turn.reply or "" for turn in turns}
    for finding in find_redactions(turns, ()):
        if finding.side == "reply":
            reply, start, end = replies[finding.turn_id or ""], finding.start, finding.end
            before = f"{'…' if start > AROUND else ''}{reply[max(0, start - AROUND) : start]}"
            after = f"{reply[end : end + AROUND]}{'…' if end + AROUND < len(reply) else ''}"
            yield finding, re.sub(r"\s+", " ", before), re.sub(r"\s+", " ", after)
