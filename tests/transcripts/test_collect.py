"""Assisted collection: every reply is saved at once, and nothing is lost or doubled by a kill at any point."""

from __future__ import annotations

import signal
import subprocess
from datetime import date
from pathlib import Path

import pytest

from src.agents.questioner import holds
from src.errors import InputError, StorageError
from src.inputs.transcripts.collect import CollectSession, unfinished
from src.inputs.transcripts.utterances import AskedScript, ScriptTurn
from src.records.scenario import Condition
from src.store.conversations import RecordedConversations, conversation_files, read_conversation
from tests.cases import each_case
from tests.runs import ONE, ROOT, command, environment
from tests.transcripts.sample import script

DAY = date(2026, 11, 16)
GENERIC = Condition(unless_last_reply_mentions=("generic",))
CONDITIONAL = AskedScript(
    "drugs", None, (ScriptTurn("Q1", "Is the brand covered?"), ScriptTurn("Q2", "And the generic?", GENERIC), ScriptTurn("Q3", "Thanks. Price?"))
)  # fmt: skip


def open_session(folder: Path, what: AskedScript | None = None, system: str | None = "Chat app X") -> CollectSession:
    return CollectSession(folder, what or script(), holds=holds, today=DAY, system=system)


def asked(session: CollectSession) -> str | None:
    question = session.next_question()
    return question.turn_id if question else None


def test_a_conversation_is_collected_and_can_be_judged(tmp_path: Path) -> None:
    session = open_session(tmp_path / "chats")
    assert not (tmp_path / "chats").exists()
    for reply in ("One.", "Two.", "Call me at 615-555-0142.", "Four."):
        assert session.next_question() is not None
        session.answer(reply)
    assert asked(session) is None
    path = session.finish(redacted_by="r1")
    found = read_conversation(path)
    assert [turn.reply for turn in found.turns] == ["One.", "Two.", "Call me at [PHONE 1].", "Four."]
    assert (found.redacted_by, found.kind, found.system, found.collected) == ("r1", "chat", "Chat app X", DAY)
    assert [one.turn_id for one in found.redactions] == ["Q3"]
    assert unfinished(tmp_path / "chats") == []
    assert len(RecordedConversations(tmp_path / "chats").conversations("scenario_001")) == 1


def test_what_was_answered_is_there_after_a_new_start(tmp_path: Path) -> None:
    open_session(tmp_path).answer("One.")
    session = open_session(tmp_path, system=None)
    assert session.resumed and asked(session) == "Q2"
    assert [(one.scenario_name, one.turns) for one in unfinished(tmp_path)] == [("scenario_001", 1)]


def test_nothing_personal_is_in_the_unfinished_file(tmp_path: Path) -> None:
    session = open_session(tmp_path)
    session.answer("My number is 615-555-0142.")
    session.answer("It is 615-555-0199, Open Enrollment ends December 7.")
    text = session.path.read_text(encoding="utf-8")
    assert "555" not in text and "[PHONE 1]" in text and "[PHONE 2]" in text and "December 7" in text


def test_a_wrong_finding_can_be_kept(tmp_path: Path) -> None:
    session = open_session(tmp_path)
    assert [one.kind for one in session.check("Call 615-555-0142.").findings] == ["PHONE"]
    assert session.answer("Call 615-555-0142.", keep=[1]).reply == "Call 615-555-0142."


def test_conditions_are_honored_and_undone_with_their_reply(tmp_path: Path) -> None:
    session = open_session(tmp_path, CONDITIONAL)
    session.answer("Yes, and the generic too.")
    assert asked(session) == "Q3"
    assert session.undo() == "Q1"
    session.answer("Yes.")
    assert asked(session) == "Q2"
    session.skip()
    session.no_reply()
    assert [turn.outcome for turn in read_conversation(session.finish()).turns] == ["answered", "not_asked", "no_reply"]


def test_undo_is_saved(tmp_path: Path) -> None:
    session = open_session(tmp_path)
    assert session.undo() is None
    session.answer("One.")
    session.answer("Two.")
    assert session.undo() == "Q2"
    assert asked(open_session(tmp_path)) == "Q2"


@each_case(("reply", "says"), [("  ", "is empty"), ("x" * 200_001, "the limit is 200,000")])
def test_a_bad_reply_is_not_saved(reply: str, says: str, tmp_path: Path) -> None:
    session = open_session(tmp_path)
    with pytest.raises(InputError, match=says):
        session.answer(reply)
    assert list(tmp_path.iterdir()) == []


def test_a_conversation_that_is_not_complete_is_not_finished_by_accident(tmp_path: Path) -> None:
    session = open_session(tmp_path)
    with pytest.raises(InputError, match="4 questions are left"):
        session.finish()
    session.answer("One.")
    found = read_conversation(session.finish(early=True))
    assert [turn.outcome for turn in found.turns] == ["answered", "not_asked", "not_asked", "not_asked"]


def test_two_programs_do_not_overwrite_each_other(tmp_path: Path) -> None:
    one, two = open_session(tmp_path), open_session(tmp_path)
    one.answer("One.")
    with pytest.raises(StorageError, match="changed by another program"):
        two.answer("Other.")
    assert open_session(tmp_path).turns[0].reply == "One."


def test_a_changed_script_and_another_system_are_noticed(tmp_path: Path) -> None:
    open_session(tmp_path, CONDITIONAL).answer("Yes.")
    changed = AskedScript("drugs", None, (ScriptTurn("Q1", "Is it?"), *CONDITIONAL.turns[1:]))
    with pytest.raises(InputError, match="were changed since"):
        open_session(tmp_path, changed)
    with pytest.raises(InputError, match="holds conversations with 'Chat app X'"):
        open_session(tmp_path, CONDITIONAL, system="Other app")
    (tmp_path / ".drugs.unfinished.json").write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match="is damaged"):
        open_session(tmp_path, CONDITIONAL)


PLACES = [
    "collection.before_link:1", "collection.after_link:1", "collect.before_save:1", "collect.before_rename:1",
    "collect.after_rename:1", "collect.before_save:3", "collect.before_rename:3", "collect.after_rename:3",
    "conversation.before_link:1", "conversation.after_link:1", "collect.before_unlink:1",
]  # fmt: skip


FAST = {"collect.after_rename:3", "conversation.after_link:1"}


@pytest.mark.parametrize(
    "place", [place if place in FAST else pytest.param(place, marks=pytest.mark.slow) for place in PLACES]
)
def test_a_kill_at_any_point_loses_at_most_the_reply_being_pasted(place: str, tmp_path: Path) -> None:
    """Killed, then run again with the rest of the replies until it is done: one conversation, each reply once."""
    replies = ["Reply one.", "Reply two.", "Reply three.", "Reply four."]
    arguments = ("collect", "--scenario", ONE, "--to", tmp_path / "d", "--system", "Chat app X", "--yes")
    run = _collect(arguments, replies, {"MEDICARE_EVAL_FAILPOINT": place})
    assert run.returncode == -signal.SIGKILL, run.stderr
    confirmed = run.stdout.count("Saved: Q")
    saved = conversation_files(tmp_path / "d")
    if not saved:
        session = open_session(tmp_path / "d")
        done = [turn.reply for turn in session.turns]
        assert done == replies[: len(done)]
        assert len(done) >= confirmed
        again = _collect(arguments, replies[len(done) :], {})
        assert again.returncode == 0, again.stderr
        saved = conversation_files(tmp_path / "d")
    assert len(saved) == 1
    assert [turn.reply for turn in read_conversation(saved[0]).turns] == replies
    assert open_session(tmp_path / "d").turns == ()
    assert unfinished(tmp_path / "d") == []


def _collect(
    arguments: tuple[object, ...], replies: list[str], extra: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), cwd=ROOT, env=environment(extra), capture_output=True, text=True, timeout=600,
        input="".join(f"{reply}\n.\n" for reply in replies),
    )  # fmt: skip
