"""`transcript:DIR` answers with the recorded words."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import src as me
from src.adapters.base import CallFailure, Message, ModelReply, ModelRequest
from src.adapters.registry import make_adapter
from src.errors import InputError
from src.store.conversations import RecordedConversations
from tests.runs import ONE, call
from tests.transcripts.sample import FORMATS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = []
    for name in ("call.txt", "call.vtt"):
        (tmp_path / name).write_bytes(FORMATS[name]())
        files.append(tmp_path / name)
    code, _, err = call(
        "import-transcripts",
        *files,
        "--scenario",
        ONE,
        "--to",
        tmp_path / "calls",
        "--system",
        "SHIP counselors",
        "--plan-year",
        "2026",
        "--yes",
    )
    assert code == 0, err
    return tmp_path / "calls"


def answer(folder: Path, hint: str) -> ModelReply:
    request = ModelRequest(
        model="transcript:x", messages=(Message("user", "x"),), max_tokens=1, seed=1, hint=hint, folder=str(folder)
    )
    return asyncio.run(make_adapter("transcript").complete(request, timeout_s=1))


def test_a_turn_gets_the_words_that_were_said_to_it(folder: Path) -> None:
    reply = answer(folder, "scenario_001/Q2#1")
    assert (reply.outcome, reply.stop_reason, reply.served_model) == ("ok", "stop", "SHIP counselors")
    assert reply.text.startswith("You have a trial right")
    assert reply.received["turn_id"] == "Q2" and reply.received["reply"] == reply.text
    assert reply.sent["hint"] == "scenario_001/Q2#1" and reply.sent["file"].startswith("scenario_001.c")


def test_a_question_that_was_not_asked_has_no_answer(folder: Path) -> None:
    reply = answer(folder, "scenario_001/Q3#2")
    assert (reply.outcome, reply.text, reply.stop_reason) == ("ok", "", "not_asked")


@pytest.mark.parametrize(
    "hint",
    [
        "scenario_001/Q2#3",
        "scenario_001/Q2#0",
        "scenario_001/Q2",
        "scenario_002/Q1#1",
        "scenario_001/Q9#1",
        "",
        "#",
        "scenario_001/Q2#٣",
    ],
)
def test_a_conversation_that_does_not_exist_stops_a_run_and_is_no_answer(hint: str, folder: Path) -> None:
    with pytest.raises(CallFailure) as caught:
        answer(folder, hint)
    assert caught.value.outcome == "denied"


def test_the_hash_is_over_every_file(folder: Path) -> None:
    found = RecordedConversations(folder)
    ids = [one.conversation_id for one in found.conversations("scenario_001")]
    assert ids == sorted(ids) and len(ids) == 2
    before = found.sha256()
    path = folder / found.conversations("scenario_001")[0].file_name
    path.write_bytes(path.read_bytes().replace(b"trial right", b"trial sight"))
    assert RecordedConversations(folder).sha256() != before


def planned(folder: Path) -> me.RunPlan:
    return me.plan(scenarios=[str(ONE)], targets=[f"transcript:{folder}"], judges=["offline:rules"])


def test_a_folder_that_is_none_is_refused_before_a_run(folder: Path, tmp_path: Path) -> None:
    assert planned(folder).targets == (f"transcript:{folder.name}",)
    for path, says in ((tmp_path / "nowhere", "is not a folder"), (tmp_path, "has no collection.json")):
        with pytest.raises(InputError, match=says):
            planned(path)
    for path in folder.glob("scenario*"):
        path.unlink()
    with pytest.raises(InputError, match="has no conversations yet"):
        planned(folder)


def test_a_damaged_file_is_named(folder: Path) -> None:
    path = next(folder.glob("scenario*"))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(CallFailure, match=path.name):
        answer(folder, "scenario_001/Q2#1")
