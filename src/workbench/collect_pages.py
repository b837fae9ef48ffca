"""The pages of assisted collection: the next question with a box for its reply, the check, and where the file is."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..findings.report.evidence_shell import safe, safe_lines
from ..records.transcript import RecordedTurn
from ..transcripts.assemble import find_redactions
from ..transcripts.collect import CollectSession
from ..transcripts.redact import Finding
from ..transcripts.script import ScriptTurn
from .forms import token_field
from .frame import page

AROUND = 40
"""Characters that are shown on each side of a redaction."""
Given = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Notice:
    """What was done last. It has nothing personal: a finding is its placeholder and a hint."""

    text: str
    turn_id: str = ""
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Problem:
    """Why a form was refused, and its reply if the page has no box for it."""

    text: str
    lost: str = ""


Told = Notice | Problem | None


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
    if isinstance(told, Problem):
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
    found = [one for one in find_redactions(turns, ()) if one.side == "reply"]
    if not found:
        yield "<p>Nothing personal was found.</p>"
        return
    yield "<ul>"
    for one in found:
        reply = replies[one.turn_id or ""]
        before, after = _words(reply[max(0, one.start - AROUND) : one.start]), _words(reply[one.end : one.end + AROUND])
        cut = ("…" if one.start > AROUND else ""), ("…" if one.end + AROUND < len(reply) else "")
        yield (
            f"<li>{safe(one.kind)} in the reply to {safe(one.turn_id or '')}: "
            f"{cut[0]}{safe(before)}<b>{safe(one.placeholder)}</b>{safe(after)}{cut[1]}</li>"
        )
    yield "</ul>"
