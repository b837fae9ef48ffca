"""Assisted collection: one question at a time for a chat app without an API, and its reply pasted back.

The state is one file in the folder, replaced after every reply, so that nothing is lost if the program is stopped or
killed. Replies are redacted before they are saved. The command line and the pages of the workbench use this class.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import get_args

from pydantic import ValidationError

from ...errors import InputError, StorageError
from ...records.transcript import (
    Collection,
    Conversation,
    ConversationKind,
    RecordedTurn,
    RedactionKind,
    SourceFile,
    UnfinishedConversation,
)
from ...storage import require_folder, storage_error, sync_folder, write_once
from ...store.conversations import COLLECTION, conversation_files, read_collection, read_conversation
from ...store.failpoints import Failpoints
from ...store.input_files import read_bytes
from ...store.run_files import encode_record
from ...store.strict_json import clean_text, sha256
from .assemble import find_redactions
from .codes import folded
from .redact import Redacted, RedactionRules, redact
from .redact_names import find_names
from .utterances import AskedScript, Holds, ScriptTurn, Utterance

UNFINISHED = ".unfinished.json"
LONGEST = 200_000
"""Characters of a reply."""
_PLACEHOLDER = re.compile(rf"\[({'|'.join(get_args(RedactionKind))}) (\d+)\]")


@dataclass(frozen=True)
class Unfinished:
    """A conversation in a folder that is not finished."""

    scenario_name: str
    system: str
    started: date
    turns: int


def unfinished(folder: Path) -> list[Unfinished]:
    """The unfinished conversations of a folder."""
    found = []
    for path in sorted(folder.glob(f".*{UNFINISHED}")) if folder.is_dir() else ():
        state = _read_state(path)
        name = path.name.removesuffix(UNFINISHED)[1:]
        asked = sum(turn.outcome != "not_asked" for turn in state.turns)
        found.append(Unfinished(name, state.system, state.started, asked))
    return found


class CollectSession:
    """A conversation that is being collected.

    `next_question()` gives what to paste into the chat app, `answer(text)` saves the reply at once, `undo()` takes the
    last reply back, and `finish()` writes the conversation.
    """

    def __init__(
        self,
        folder: Path,
        script: AskedScript,
        *,
        holds: Holds,
        today: date,
        system: str | None = None,
        kind: ConversationKind | None = None,
        names: Sequence[str] = (),
    ) -> None:
        """Open the unfinished conversation about this script in the folder, or begin a new one.

        Raises:
            InputError: the folder is something else, or the script was changed since the conversation was begun.
        """
        self.folder = folder
        self.script = script
        self._holds = holds
        self._names = names
        self._points = Failpoints.from_environment()
        self._collection: Collection = plan_collection(folder, kind=kind, system=system, today=today, fallback="chat")
        self.path = folder / f".{script.name}{UNFINISHED}"
        self._saved = self._on_disk()
        self.resumed = bool(self._saved)
        if self._saved:
            self._state = _read_state(self.path)
            self._forget_if_finished()
        if not self._saved:
            self._state = self._new(today)
        if self._state.script_sha256 != script.sha256():
            raise InputError(
                f"{self.path}: the questions of {script.name} were changed since this conversation was begun. Restore "
                "them, or delete the file to begin again."
            )
        self._skip_conditions()

    def _new(self, today: date) -> UnfinishedConversation:
        return UnfinishedConversation(
            conversation_id=f"c{secrets.token_hex(6)}",
            scenario_id=self.script.scenario_id,
            variant=self.script.variant,
            kind=self._collection.kind,
            system=self._collection.system,
            started=today,
            script_sha256=self.script.sha256(),
        )

    def _forget_if_finished(self) -> None:
        """The program was killed after the conversation was written, and before the unfinished file was removed."""
        name = f"{self.script.name}.{self._state.conversation_id}.json"
        if (self.folder / name).is_file():
            self.path.unlink(missing_ok=True)
            self._saved, self.resumed = b"", False

    @property
    def turns(self) -> tuple[RecordedTurn, ...]:
        """What is recorded so far, redacted."""
        return self._state.turns

    @property
    def system(self) -> str:
        return self._state.system

    def next_question(self) -> ScriptTurn | None:
        """The next question to paste, exactly as scripted; None at the end."""
        done = len(self._state.turns)
        return self.script.turns[done] if done < len(self.script.turns) else None

    def check(self, text: str) -> Redacted:
        """What would be redacted in a reply. Nothing is saved."""
        return self._redacted(text, ())

    def answer(self, text: str, *, keep: Sequence[int] = (), also: Sequence[str] = ()) -> RecordedTurn:
        """Save the reply to the next question.

        Args:
            text: the reply as pasted. It is redacted before it is saved.
            keep: numbers of findings (`check`) that are not personal.
            also: texts to redact as well.

        Raises:
            InputError: no question is open, or the reply is empty or too long.
            StorageError: it could not be saved; nothing changed.
        """
        question = self._open()
        if not text.strip():
            raise InputError("The reply is empty. If the app gave none, use no_reply.")
        if len(text) > LONGEST:
            raise InputError(f"The reply has {len(text):,} characters; the limit is {LONGEST:,}.")
        found = self._redacted(text, keep, also)
        reply = found.utterances[0].text
        self._add(
            RecordedTurn(turn_id=question.turn_id, outcome="answered", question=question.user_message, reply=reply),
            edited=bool(keep or also),
        )
        return next(turn for turn in reversed(self._state.turns) if turn.outcome == "answered")

    def no_reply(self) -> None:
        """The question was pasted, and the app gave no reply."""
        question = self._open()
        self._add(RecordedTurn(turn_id=question.turn_id, outcome="no_reply", question=question.user_message))

    def skip(self) -> None:
        """The question is not asked."""
        question = self._open()
        self._add(RecordedTurn(turn_id=question.turn_id, outcome="not_asked"))

    def undo(self) -> str | None:
        """Take the last reply back; the id of its turn, or None if there is nothing to take back."""
        turns = list(self._state.turns)
        while turns and self._left_out(len(turns) - 1, turns):
            turns.pop()
        if not turns:
            return None
        removed = turns.pop()
        self._save(self._state.model_copy(update={"turns": tuple(turns)}))
        return removed.turn_id

    def finish(self, *, redacted_by: str = "rules", early: bool = False) -> Path:
        """Write the conversation, and remove the unfinished file.

        Args:
            redacted_by: the pseudonym of the person who looked at the redactions.
            early: end before the last question; the others are not asked.

        Raises:
            InputError: questions are left, or nothing was answered.
        """
        left = self.script.turns[len(self._state.turns) :]
        if left and not early:
            raise InputError(f"{len(left)} questions are left, from {left[0].turn_id} on. Ask them, or skip them.")
        if all(turn.outcome == "not_asked" for turn in self._state.turns):
            raise InputError("No question was asked, so there is nothing to save.")
        rest = tuple(RecordedTurn(turn_id=turn.turn_id, outcome="not_asked") for turn in left)
        turns = (*self._state.turns, *rest)
        one = Conversation(
            conversation_id=self._state.conversation_id,
            scenario_id=self._state.scenario_id,
            variant=self._state.variant,
            kind=self._state.kind,
            collected=self._state.started,
            system=self._state.system,
            source=SourceFile(name="collected", sha256=sha256(encode_record(self._state)), format="collected"),
            turns=turns,
            redactions=find_redactions(turns, ()),
            redacted_by=redacted_by,
            edited=self._state.edited,
        )
        path = self.folder / one.file_name
        write_once(path, encode_record(one) + b"\n", self._points, "conversation")
        self._points.hit("collect.before_unlink")
        self.path.unlink(missing_ok=True)
        self._saved = b""
        return path

    def _open(self) -> ScriptTurn:
        question = self.next_question()
        if question is None:
            raise InputError("All questions are asked. Finish the conversation, or undo the last reply.")
        return question

    def _redacted(self, text: str, keep: Sequence[int], also: Sequence[str] = ()) -> Redacted:
        taken: dict[str, int] = {}
        for turn in self._state.turns:
            for kind, number in _PLACEHOLDER.findall(turn.reply or ""):
                taken[kind] = max(taken.get(kind, 0), int(number[:9]))
        rules = RedactionRules(names=self._names, keep=keep, also=also, fictional=self.script.fictional, taken=taken)
        return redact([Utterance("other", clean_text(text).strip())], rules)

    def _add(self, turn: RecordedTurn, *, edited: bool = False) -> None:
        state = self._state
        self._save(state.model_copy(update={"turns": (*state.turns, turn), "edited": state.edited or edited}))

    def _save(self, state: UnfinishedConversation) -> None:
        """On disk first: what this object says is never more than what is saved."""
        if self._on_disk() != self._saved:
            raise StorageError(f"{self.path} was changed by another program. Open the conversation again.")
        make_collection(self.folder, self._collection, self._points)
        data = encode_record(state) + b"\n"
        self._points.hit("collect.before_save")
        replace_file(self.path, data, self._points)
        self._state, self._saved = state, data
        self._skip_conditions()

    def _skip_conditions(self) -> None:
        """Record turns whose condition does not hold as not asked. It follows from the replies, so it is not saved."""
        turns = list(self._state.turns)
        while len(turns) < len(self.script.turns) and not self._applies(len(turns), turns):
            turns.append(RecordedTurn(turn_id=self.script.turns[len(turns)].turn_id, outcome="not_asked"))
        self._state = self._state.model_copy(update={"turns": tuple(turns)})

    def _applies(self, place: int, turns: Sequence[RecordedTurn]) -> bool:
        last = next((turn.reply for turn in reversed(turns[:place]) if turn.outcome != "not_asked"), None)
        return self._holds(self.script.turns[place].condition, last)

    def _left_out(self, place: int, turns: Sequence[RecordedTurn]) -> bool:
        """Whether a turn was not asked because of its condition."""
        return turns[place].outcome == "not_asked" and not self._applies(place, turns)

    def _on_disk(self) -> bytes:
        return read_bytes(self.path, 20_000_000) if self.path.is_file() else b""


def _read_state(path: Path) -> UnfinishedConversation:
    try:
        return UnfinishedConversation.model_validate_json(read_bytes(path, 20_000_000))
    except ValidationError:
        raise InputError(f"{path} is damaged. Restore it from a copy, or delete it to begin again.") from None


# Writing a folder of conversations: created if need be, each file written once, nothing overwritten.


def plan_collection(
    folder: Path, *, kind: ConversationKind | None, system: str | None, today: date, fallback: ConversationKind
) -> Collection:
    """The collection in a folder, or the one that will be made there. Nothing is written.

    Raises:
        InputError: the folder is something else, or was made for another kind or system.
    """
    if any(char.isspace() or not char.isprintable() for char in str(folder)) or len(str(folder)) > 180:
        raise InputError(f"--to {str(folder)[:80]!r}: use a short path without spaces; it becomes transcript:DIR.")
    require_folder(folder)
    if folder.is_dir() and (folder / COLLECTION).exists():
        found = read_collection(folder)
        if kind and kind != found.kind:
            raise InputError(f"{folder} holds conversations by {found.kind}, not {kind}. Use another folder with --to.")
        if system and system.strip() != found.system:
            raise InputError(f"{folder} holds conversations with {found.system!r}. Use another folder with --to.")
        return found
    if folder.is_dir() and any(not path.name.startswith(".") for path in folder.iterdir()):
        raise InputError(f"{folder} has other files in it. Give a new or empty folder with --to.")
    if not system or not system.strip():
        raise InputError("--system is missing: say what was spoken to, for example --system 'SHIP counselors'.")
    system = system.strip()
    if len(system) > 200 or not system.isprintable():
        raise InputError("--system: use up to 200 printable characters.")
    if find_names(folded(system)):
        raise InputError(f"--system {system!r} looks like a person's name. Name the service, not the person.")
    name = folder.resolve().name or "conversations"
    return Collection(name=name, kind=kind or fallback, system=system, created=today)


def refuse_repeated(folder: Path, conversations: Sequence[Conversation]) -> None:
    """Refuse a source file that was imported for the same scenario before, or is given twice."""
    seen: dict[tuple[str, str], str] = {}
    for path in conversation_files(folder) if folder.is_dir() else ():
        one = read_conversation(path)
        seen[one.scenario_name, one.source.sha256] = path.name
    for one in conversations:
        key = (one.scenario_name, one.source.sha256)
        if key in seen:
            raise InputError(f"{one.source.name} was already imported for {one.scenario_name}: it is {seen[key]}.")
        seen[key] = f"the same as {one.source.name}"


def save_all(folder: Path, collection: Collection, conversations: Sequence[Conversation]) -> list[Path]:
    """Write the collection, if it is new, and its conversations."""
    refuse_repeated(folder, conversations)
    points = Failpoints.from_environment()
    make_collection(folder, collection, points)
    paths = []
    for one in conversations:
        path = folder / one.file_name
        write_once(path, encode_record(one) + b"\n", points, "conversation")
        paths.append(path)
    return paths


def make_collection(folder: Path, collection: Collection, points: Failpoints) -> None:
    """Make the folder and its `collection.json`, unless they are there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        exists = (folder / COLLECTION).exists()
    except OSError as error:
        raise storage_error(folder, error) from None
    if not exists:
        write_once(folder / COLLECTION, encode_record(collection) + b"\n", points, "collection")


def replace_file(path: Path, data: bytes, points: Failpoints) -> None:
    """Replace a whole file durably: after a crash, it is the old one or the new one."""
    temporary = path.with_name(f"{path.name}.new")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        points.hit("collect.before_rename")
        temporary.replace(path)
        points.hit("collect.after_rename")
        sync_folder(path.parent)
    except OSError as error:
        raise storage_error(path, error) from None
