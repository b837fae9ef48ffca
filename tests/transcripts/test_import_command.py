"""`import-transcripts` and `collect` as a person meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from src.cli import main
from src.cli.options import TRANSCRIPT_FORMATS
from src.inputs.transcripts.read_file import FORMATS as READABLE
from src.store.conversations import conversation_files, read_conversation
from tests.cases import each_case
from tests.runs import ONE, call
from tests.transcripts.sample import FORMATS

STUDY = "scenarios/v1/study/medicare_only.json"


def call_file(folder: Path, name: str = "call.txt") -> Path:
    path = folder / name
    path.write_bytes(FORMATS[name]())
    return path


def options(folder: Path) -> tuple[object, ...]:
    return ("--scenario", ONE, "--to", folder / "calls", "--plan-year", "2026")


def test_the_help_offers_the_formats_that_can_be_read() -> None:
    assert TRANSCRIPT_FORMATS == READABLE


def test_an_import_shows_what_it_found_and_saves_it(tmp_path: Path) -> None:
    code, out, err = call(
        "import-transcripts",
        call_file(tmp_path),
        *options(tmp_path),
        "--system",
        "SHIP counselors",
        "--by",
        "r1",
        "--yes",
    )
    assert code == 0, err
    assert "Caller: 'Caller', recognized by the scripted questions." in out
    assert "Q3                  not asked" in out
    assert "[PHONE 1]    6… (12 characters)  Q4, reply" in out
    assert "555-0142" not in out
    assert "1 figure in square brackets" in out
    assert out.splitlines()[-1] == (
        f"To judge what was said: medicare-eval run --scenario {ONE} --target transcript:{tmp_path / 'calls'}"
    )
    (path,) = conversation_files(tmp_path / "calls")
    found = read_conversation(path)
    assert (found.redacted_by, found.kind, found.system, found.edited) == ("r1", "phone", "SHIP counselors", False)
    assert "555-0142" not in path.read_text(encoding="utf-8")
    collection = json.loads((tmp_path / "calls" / "collection.json").read_text(encoding="utf-8"))
    assert (collection["name"], collection["system"]) == ("calls", "SHIP counselors")


def test_corrections_are_applied_and_recorded(tmp_path: Path) -> None:
    given = ("--system", "x", "--map", "Q3=2,Q1=none", "--keep", "1", "--redact", "trial right", "--yes")
    code, _, err = call("import-transcripts", call_file(tmp_path), *options(tmp_path), *given)
    assert code == 0, err
    found = read_conversation(conversation_files(tmp_path / "calls")[0])
    assert found.edited
    assert [turn.outcome for turn in found.turns] == ["not_asked", "answered", "answered", "answered"]
    assert "615-555-0142" in (found.turns[3].reply or "")
    assert "[REDACTED 1]" in (found.turns[1].reply or "")


def test_several_files_are_several_conversations(tmp_path: Path) -> None:
    files = [call_file(tmp_path, name) for name in ("call.txt", "call.vtt", "aws.json")]
    code, _, err = call("import-transcripts", *files, *options(tmp_path), "--system", "x", "--yes")
    assert code == 0, err
    assert len(conversation_files(tmp_path / "calls")) == 3


def test_a_second_import_of_the_same_file_is_refused(tmp_path: Path) -> None:
    given = ("import-transcripts", call_file(tmp_path), *options(tmp_path), "--system", "x", "--yes")
    assert call(*given)[0] == 0
    before = conversation_files(tmp_path / "calls")
    code, out, err = call(*given)
    assert (code, out) == (2, "")
    assert "was already imported for scenario_001" in err and err.count("\n") == 1
    assert conversation_files(tmp_path / "calls") == before


BAD: list[tuple[list[str], str]] = [
    ([], "--system is missing: say what was spoken to"),
    (["--system", "Linda Carter"], "looks like a person's name"),
    (["--system", "x", "--by", "Jane Doe"], "is not a pseudonym"),
    (["--system", "x", "--caller", "Bob"], "there is no speaker 'Bob'"),
    (["--system", "x", "--map", "Q9=1"], "has no turn 'Q9'"),
    (["--system", "x", "--keep", "9"], "--keep 9: there is no redaction with this number"),
    (["--system", "x", "--names", "nowhere.txt"], "nowhere.txt cannot be read"),
    (["--system", "x", "--format", "csv"], "a column for the speaker"),
    (["--system", "x", "--variant", "hmo"], "It has no variants: leave --variant out."),
    (["--system", "x", "--collected", "soon"], "'soon' is not a date"),
]


@each_case(("given", "says"), BAD, ids=[says for _, says in BAD])
def test_a_bad_option_gets_one_sentence_and_nothing_is_written(given: list[str], says: str, tmp_path: Path) -> None:
    code, out, err = call("import-transcripts", call_file(tmp_path), *options(tmp_path), *given, "--yes")
    assert (code, out) == (2, "")
    assert says in err and err.count("\n") == 1
    assert not (tmp_path / "calls").exists()


def test_one_bad_file_of_several_writes_nothing(tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_text("no labels", encoding="utf-8")
    code, _, err = call("import-transcripts", call_file(tmp_path), bad, *options(tmp_path), "--system", "x", "--yes")
    assert code == 2 and "bad.txt, line 1" in err
    assert not (tmp_path / "calls").exists()


def test_without_a_terminal_and_without_yes_nothing_is_saved(tmp_path: Path) -> None:
    code, out, err = call("import-transcripts", call_file(tmp_path), *options(tmp_path), "--system", "x")
    assert code == 2 and "No one is at the terminal" in err and "not asked" in out
    assert not (tmp_path / "calls").exists()


@each_case(("typed", "files"), [("y", 1), ("n", 0), ("", 0)])
def test_at_a_terminal_a_person_confirms(
    typed: str, files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _: typed)
    assert (
        main([str(one) for one in ("import-transcripts", call_file(tmp_path), *options(tmp_path), "--system", "x")])
        == 0
    )
    assert len(conversation_files(tmp_path / "calls")) == files


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    path = call_file(tmp_path)
    code, _, err = call("import-transcripts", path, "--scenario", ONE, "--to", tmp_path, "--system", "x", "--yes")
    assert code == 2 and "has other files in it" in err
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_named_as_a_target_is_refused(tmp_path: Path) -> None:
    given = ("import-transcripts", call_file(tmp_path), "--scenario", ONE, "--system", "x", "--yes")
    code, _, err = call(*given, "--to", tmp_path / "my calls")
    assert code == 2 and "use a short path without spaces" in err
    assert not (tmp_path / "my calls").exists()


def test_a_scenario_with_variants_needs_one(tmp_path: Path) -> None:
    given = ("import-transcripts", call_file(tmp_path), "--to", tmp_path / "calls", "--system", "x", "--yes")
    code, _, err = call(*given, "--scenario", STUDY)
    assert code == 2 and "Use --variant, one of hmo, ppo" in err


def test_a_reply_from_a_file_goes_to_the_next_question(tmp_path: Path) -> None:
    reply = tmp_path / "reply.txt"
    reply.write_text("Original Medicare has no network.", encoding="utf-8")
    given = ("collect", "--scenario", ONE, "--to", tmp_path / "chats", "--reply-file", reply)
    code, out, err = call(*given, "--system", "App")
    assert code == 4 and "Saved: Q1, 5 words." in out and "Q2 (2 of 4). Paste this into the app:" in out
    assert "1 of 4 questions done. To continue: medicare-eval collect" in err
    code, out, err = call("collect", "--status", "--to", tmp_path / "chats")
    assert code == 0 and "scenario_001 with App: 1 question asked" in out
    for _ in range(2):
        assert call(*given)[0] == 4
    assert call(*given, "--yes")[0] == 0
    assert len(conversation_files(tmp_path / "chats")) == 1
