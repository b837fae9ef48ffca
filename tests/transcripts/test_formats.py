"""Every format gives the same turns, and a bad file gets one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from src.errors import InputError
from src.inputs.transcripts.assemble import ImportOptions, draft
from src.inputs.transcripts.read_file import read_data, read_transcript
from src.records.transcript import Conversation
from tests.cases import each_case
from tests.transcripts.sample import FORMATS, REPLIES, docx, script


def imported(path: Path, data: bytes) -> Conversation:
    path.write_bytes(data)
    return draft(read_transcript(path), script(), ImportOptions(system="x"), "phone").conversation


def one_line(text: str | None) -> str | None:
    return " ".join(text.split()) if text else None


@each_case("name", FORMATS)
def test_every_format_gives_the_same_turns(name: str, tmp_path: Path) -> None:
    found = imported(tmp_path / name, FORMATS[name]())
    replies = {turn.turn_id: one_line(turn.reply) for turn in found.turns}
    if name == "plain_whisper.json":  # no speakers: what the caller says besides the questions cannot be told apart
        replies["Q1"] = (replies["Q1"] or "").replace("Okay, I see. ", "")
    assert replies == REPLIES
    assert [turn.outcome for turn in found.turns] == ["answered", "answered", "not_asked", "answered"]


def test_formats_are_recognized() -> None:
    found = {name: read_data(make(), name, None, Path(name).suffix).source.format for name, make in FORMATS.items()}
    assert found == {
        "call.txt": "text", "call.csv": "csv", "call.vtt": "vtt", "call.srt": "srt", "call.docx": "docx",
        "whisper.json": "whisper", "plain_whisper.json": "whisper", "aws.json": "aws", "chat.txt": "chat",
        "messages.json": "chat",
    }  # fmt: skip


@each_case("name", ["whisper.json", "aws.json"])
def test_words_with_low_confidence_point_into_the_stored_reply(name: str, tmp_path: Path) -> None:
    turn = imported(tmp_path / name, FORMATS[name]()).turns[1]
    assert turn.reply and turn.confidence and 0.8 < turn.confidence < 1
    assert [turn.reply[word.start : word.end] for word in turn.words_with_low_confidence] == ["trial"]


def test_an_added_figure_can_be_cut_out_again(tmp_path: Path) -> None:
    turn = imported(tmp_path / "call.txt", FORMATS["call.txt"]()).turns[0]
    assert turn.reply and [one.figure for one in turn.added_figures] == ["$202.90"]
    one = turn.added_figures[0]
    assert turn.reply[one.start : one.end] == " [$202.90]"
    assert "ninety cents a month" in turn.reply[: one.start] + turn.reply[one.end :]


def test_redactions_point_at_their_placeholders(tmp_path: Path) -> None:
    found = imported(tmp_path / "call.txt", FORMATS["call.txt"]())
    turns = {turn.turn_id: turn for turn in found.turns}
    assert [(one.kind, one.turn_id, one.side) for one in found.redactions] == [("PHONE", "Q4", "reply")]
    one = found.redactions[0]
    assert (turns["Q4"].reply or "")[one.start : one.end] == one.placeholder == "[PHONE 1]"


def test_a_file_that_names_a_person_is_not_named(tmp_path: Path) -> None:
    found = imported(tmp_path / "call_with_Jane_Doe.txt", FORMATS["call.txt"]())
    assert found.source.name == "(redacted).txt"


@each_case(
    ("text", "speaker", "said"),
    [
        ("Caller: Hi\nSHIP counselor: Hello\nthere\nCaller: Bye\nSHIP counselor: Bye", "SHIP counselor", "Hello there"),
        ("[00:01:02] Agent: Hi\n[00:01:04] Client: a\n[00:01:05] Agent: b\n[00:01:06] Client: c", "Agent", "Hi"),
        ("**You:** Hi\n**Bot:** - one\n- two\n**You:** ok\n**Bot:** fine", "Bot", "- one\n- two"),
        ("## User\nHi\n\n## Assistant\n**Part B:** costs\n\n- a\n- b\n\n## User\nok\n## Assistant\nfine", "Assistant", "**Part B:** costs\n\n- a\n- b"),
        ("You\nHi\n\nAssistant\nPart A: no premium\nPart B: $202.90\n\nYou\nok\nAssistant\nx", "Assistant", "Part A: no premium\nPart B: $202.90"),
        ("You: Hi\nAssistant: Part A: free\nPart B: $202.90\nYou: ok\nAssistant: Part B: yes", "Assistant", "Part A: free Part B: $202.90"),
        ("speaker;utterance\nA;Hi\nB;\"x; y\"\n", "B", "x; y"),
        ("Who,Message,When\nA,Hi,1\nB,yo,2\n", "B", "yo"),
        ("WEBVTT\n\nNOTE x\n\n1\n00:01.000 --> 00:02.000 align:start\n<v.loud Ann Lee>Hi &amp; <i>bye</i>\n\n00:03.000 --> 00:04.000\nBob: yo", "Ann Lee", "Hi & bye"),
    ],
)  # fmt: skip
def test_speakers_are_found(text: str, speaker: str, said: str) -> None:
    found = read_data(text.encode(), "x").utterances
    assert next(one.text for one in found if one.speaker == speaker) == said


BOMB = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><x>&b;</x>'


@each_case(
    ("name", "data", "says"),
    [
        ("a.txt", b"", "no speaker labels"),
        ("a.txt", b"just words\nwithout labels", "line 1: no speaker labels were found"),
        ("a.txt", b"Caller: hi\nAgent: \xff\xfe", "line 2: not UTF-8 text"),
        ("a.txt", b"Caller: \x00\x01", "line 1: not a text file"),
        ("a.csv", b"a,b\n1,2", "a column for the speaker"),
        ("a.csv", b"speaker,text\n", "nothing is said"),
        ("a.json", b"{", "invalid JSON"),
        ("a.json", b'{"a": 1}', "not that of Whisper"),
        ("a.json", b"[" * 200, "nested deeper"),
        ("a.json", b'{"results": {}}', "neither items nor audio_segments"),
        ("a.vtt", b"WEBVTT\n\nhello", "no cue with times"),
        ("a.docx", b"PK\x03\x04nonsense", "not a valid Word document"),
        ("a.docx", docx(BOMB), "declares a document type"),
        ("a.docx", docx("<x>"), "not a valid Word document"),
        ("a.docx", docx("<a>" * 300 + "</a>" * 300), "nested deeper"),
    ],
)  # fmt: skip
def test_a_bad_file_gets_one_sentence_that_names_it(name: str, data: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        read_transcript(path)
    assert says in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("src.inputs.transcripts.read_file.MOST_BYTES", 1_000)
    (tmp_path / "a.docx").write_bytes(docx(f"<a>{' ' * 5_000}</a>"))
    with pytest.raises(InputError, match="unpacks to more than 1,000 bytes"):
        read_transcript(tmp_path / "a.docx")


def test_a_format_that_is_given_is_used(tmp_path: Path) -> None:
    path = tmp_path / "call.json"
    path.write_text(json.dumps([{"role": "a", "content": "x"}, {"role": "b", "content": "y"}]), encoding="utf-8")
    with pytest.raises(InputError, match="not that of whisper"):
        read_transcript(path, "whisper")
    assert read_transcript(path, "chat").source.format == "chat"
