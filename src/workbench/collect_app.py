"""Assisted collection as a web application: one form, whose replies go to the session, which saves them at once."""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from ..errors import HarnessError, InputError, StorageError
from ..inputs.transcripts.assemble import find_redactions
from ..inputs.transcripts.collect import LONGEST, CollectSession
from ..inputs.transcripts.redact import PersonalDetail
from ..inputs.transcripts.utterances import ScriptTurn
from ..records.transcript import RecordedTurn
from ..reports.evidence_shell import safe, safe_lines
from .access import Fields, missing_page, not_ours, note_in, one, read_form, token_field, token_of
from .frame import page, static_routes

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
        self._notice: LastAction | None = None
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
            return HTMLResponse(self._shown(token, RefusedForm(EARLIER, note_in(fields, "reply"))), 409)
        try:  # nothing is awaited from here on, so two forms cannot get in each other's way
            self._notice = self._done(fields)
        except HarnessError as error:
            why = RefusedForm(f"{error}{CONTINUE if isinstance(error, StorageError) else ''}")
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
        what = "not asked" if action == "skip" else "no reply"
        (self._session.skip if action == "skip" else self._session.no_reply)()
        return LastAction(f"Saved: {question.turn_id if question else ''}, {what}.")

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
        redacted = tuple(finding for finding in findings if finding.number not in keep)
        return LastAction(f"Saved: {turn.turn_id}.", turn.turn_id, redacted)

    def _undone(self) -> LastAction:
        removed, before = self._session.undo(), self._notice
        self._last_saved = None
        if removed is None:
            raise InputError("There is nothing to take back.")
        findings = before.findings if before and before.turn_id == removed else ()
        return LastAction(f"Taken back: {removed}.", removed, findings)


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


# The pages of assisted collection: the next question with a box for its reply, the check, and where the file is.

AROUND = 40
"""Characters that are shown on each side of a redaction."""
Given = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class LastAction:
    """What was done last. It has nothing personal: a finding is its placeholder and a hint."""

    text: str
    turn_id: str = ""
    findings: tuple[PersonalDetail, ...] = ()


@dataclass(frozen=True)
class RefusedForm:
    """Why a form was refused, and its reply if the page has no box for it."""

    text: str
    lost: str = ""


Told = LastAction | RefusedForm | None


class CollectPages:
    """Writes the pages of one conversation."""

    def __init__(self, session: CollectSession, *, redacted_by: str, to_judge: str) -> None:
        self._session = session
        self._redacted_by = redacted_by
        self._to_judge = to_judge

    def question(self, question: ScriptTurn, token: str, told: Told, given: Given) -> str:
        """The next question, and the form for its reply. `given`: what was filled in, if there is a problem with it."""
        place = f"Question {len(self._session.turns) + 1} of {len(self._session.script.turns)}"
        body = [
            *_told(told),
            f"<h1>{place}</h1>",
            '<div class="collect">',
            f'<label for="question">Paste this into the app ({safe(question.turn_id)})</label>',
            f'<textarea id="question" readonly rows="5">\n{_exact(question.user_message)}</textarea>',
            '<p><button type="button" class="second" data-copy="question" data-then="reply" data-key="c" hidden>Copy '
            '<kbd>c</kbd></button> <span role="status" id="copied"></span></p>',
            *self._form(token),
            '<label for="reply">The reply, as the app gave it</label>',
            f'<textarea id="reply" name="reply" rows="10">\n{_exact(_one(given, "reply"))}</textarea>',
            *_redaction_fields(given),
            '<p class="buttons"><button type="submit" name="action" value="save">Save</button> '
            "<span><kbd>Ctrl</kbd>+<kbd>Enter</kbd></span></p>",
            '<p class="buttons"><button type="submit" class="second" name="action" value="skip">Not asked</button>',
            '<button type="submit" class="second" name="action" value="no_reply">No reply</button>',
            *self._undo(),
            "</p></form></div>",
            *self._so_far(),
        ]
        return page(f"{place}: {self._session.system}", body, bar=self._bar())

    def check(self, token: str, told: Told) -> str:
        """After the last question: what is redacted, all replies, and the button that finishes."""
        by = f"checked by {self._redacted_by}" if self._redacted_by != "rules" else "found by rules, checked by no one"
        body = [
            *_told(told),
            "<h1>Check and finish</h1>",
            "<h2>What is redacted</h2>",
            *_redactions(self._session.turns),
            "<p>Rules miss things. Read the replies below. To change one, take it back and paste it again.</p>",
            f"<p>The file will say: redactions {safe(by)}. You are responsible for the consent of the "
            "people in the conversation.</p>",
            *self._form(token),
            '<p class="buttons"><button type="submit" name="action" value="finish">Finish</button>',
            *self._undo(),
            "</p></form>",
            *self._so_far(),
        ]
        return page(f"Check and finish: {self._session.system}", body, bar=self._bar())

    def finished(self, path: Path) -> str:
        body = [
            "<h1>Finished</h1>",
            f'<p class="saved" role="status">The conversation is in <code>{safe(str(path))}</code></p>',
            "<p>To judge it:</p>",
            f"<pre>{safe(self._to_judge)}</pre>",
            "<p>You can close this page and end the program with Ctrl-C. To collect another conversation, start the "
            "same command again.</p>",
        ]
        return page("Finished", body, bar=self._bar())

    def _form(self, token: str) -> Iterator[str]:
        yield '<form class="collect" method="post" action="/">'
        yield token_field(token)
        yield f'<input type="hidden" name="place" value="{len(self._session.turns)}">'

    def _undo(self) -> Iterator[str]:
        if self._session.turns:
            yield ('<button type="submit" class="second" name="action" value="undo">Undo the last reply</button>')

    def _bar(self) -> Iterator[str]:
        done, total = len(self._session.turns), len(self._session.script.turns)
        yield f"<strong>{safe(self._session.system)}</strong>"
        yield f"<span>{safe(self._session.script.name)}</span>"
        yield f"<span>{done} of {total} done</span>"
        yield f'<progress aria-label="Questions done" max="{total}" value="{done}">{done} of {total}</progress>'

    def _so_far(self) -> Iterator[str]:
        if not self._session.turns:
            return
        yield "<h2>Replies so far, as they are stored</h2>"
        for turn, scripted in zip(self._session.turns, self._session.script.turns, strict=False):
            yield f"<h3>{safe(turn.turn_id)}</h3>"
            yield f'<div class="say asked">{safe_lines(scripted.user_message)}</div>'
            if turn.outcome == "answered":
                yield f'<div class="say reply">{safe_lines(turn.reply or "")}</div>'
            else:
                yield f"<p>{'Not asked.' if turn.outcome == 'not_asked' else 'No reply.'}</p>"


def _words(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def _exact(text: str) -> str:
    """Text for a box from which it is copied or sent again, so nothing in it may change. A box shows no markup."""
    return html.escape(text)


def _one(given: Given, name: str) -> str:
    return (given.get(name) or [""])[0]


def _told(told: Told) -> Iterator[str]:
    if isinstance(told, RefusedForm):
        yield '<div class="problems" role="alert" tabindex="-1" autofocus>'
        yield f"<p><b>Not done.</b> {safe(told.text)}</p>"
        if told.lost:
            yield f'<details><summary>What the form contained</summary><div class="say">{safe_lines(told.lost)}</div>'
            yield "</details>"
        yield "</div>"
    elif told:
        yield f'<div class="saved" role="status"><p>{safe(told.text)}</p>'
        if told.findings:
            found = [f"<li>{one.number}: {safe(one.placeholder)}, was {safe(one.hint)}</li>" for one in told.findings]
            yield "<p>Redacted in it. If one is not personal, take the reply back, paste it again, and give the number "
            yield "under “Correct the redaction of this reply”.</p>"
            yield f"<ul>{''.join(found)}</ul>"
        yield "</div>"


def _redaction_fields(given: Given) -> Iterator[str]:
    keep, also = _one(given, "keep"), _one(given, "also")
    yield f"<details{' open' if keep or also else ''}><summary>Correct the redaction of this reply</summary>"
    yield '<label for="keep">Not personal: numbers of redactions that stay, for example 1, 3</label>'
    yield f'<p><input id="keep" name="keep" autocomplete="off" value="{safe(keep)}"></p>'
    yield '<label for="also">Redact these texts too, one per line</label>'
    yield f'<textarea id="also" name="also" rows="2">\n{_exact(also)}</textarea></details>'


def _redactions(turns: Sequence[RecordedTurn]) -> Iterator[str]:
    """Kind and place of each redaction. The words are gone already: they were never stored."""
    replies = {turn.turn_id: turn.reply or "" for turn in turns}
    found = [finding for finding in find_redactions(turns, ()) if finding.side == "reply"]
    if not found:
        yield "<p>Nothing personal was found.</p>"
        return
    yield "<ul>"
    for finding in found:
        reply = replies[finding.turn_id or ""]
        before, after = (
            _words(reply[max(0, finding.start - AROUND) : finding.start]),
            _words(reply[finding.end : finding.end + AROUND]),
        )
        cut = ("…" if finding.start > AROUND else ""), ("…" if finding.end + AROUND < len(reply) else "")
        yield (
            f"<li>{safe(finding.kind)} in the reply to {safe(finding.turn_id or '')}: "
            f"{cut[0]}{safe(before)}<b>{safe(finding.placeholder)}</b>{safe(after)}{cut[1]}</li>"
        )
    yield "</ul>"
