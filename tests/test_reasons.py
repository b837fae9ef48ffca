"""A run that fails says why: on the terminal, in JSON, in the report and by its exit code. Real SDKs, on loopback."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import src as me
from src.reading import Run
from tests.loopback import Loopback, Received, Scripted
from tests.runs import ONE, call, newest, verifies
from tests.test_wire_runs import SENTINEL, redirect, said, sensible

TARGET, JUDGE = "openai:gpt-4.1", "anthropic:claude-sonnet-4-6"
QUESTION_LENGTH = 60
"""Questions of the scenario are longer; a message that only asks whether a model answers is not."""
Answers = Callable[[Received], Scripted]


def is_judge(request: Received) -> bool:
    return bool(said(request)[0])


def is_question(request: Received) -> bool:
    return not is_judge(request) and len(said(request)[1]) > QUESTION_LENGTH


def rejecting() -> Answers:
    """A target that rejects every question, each time with another id, and repeats the key."""
    numbers = count(1)

    def answers(request: Received) -> Scripted:
        if not is_question(request):
            return sensible(request)
        message = f"Flagged, \x1b[31mreq_{next(numbers)}a7b8c9d0 <b>{request.key}</b> | see [x](http://x.example)"
        return Scripted(status=400, raw=json.dumps({"error": {"message": message}}).encode())

    return answers


def nonsense(request: Received) -> Scripted:
    """Judges that chat instead of judging."""
    return Scripted(text="I would rather chat.") if is_judge(request) else sensible(request)


def one_in_three() -> Answers:
    """Every third request meets a server that is down for a moment."""
    numbers = count(1)

    def answers(request: Received) -> Scripted:
        down = next(numbers) % 3 == 0
        return Scripted(status=500, headers={"retry-after": "0"}) if down else sensible(request)

    return answers


def run(
    monkeypatch: pytest.MonkeyPatch, out: Path, answers: Answers, *options: object, judge: str = JUDGE
) -> tuple[int, str, str]:
    with Loopback(answers) as server:
        redirect(monkeypatch, server)
        arguments = ("--scenario", ONE, "--target", TARGET, "--judge-model", judge, "--out", out, "--quiet")
        return call("run", *arguments, *options)


def everything_in(folder: Path) -> str:
    return "".join(path.read_text(encoding="utf-8", errors="replace") for path in folder.rglob("*") if path.is_file())


def test_a_run_in_which_every_trial_fails_is_exit_4_and_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = run(monkeypatch, tmp_path, rejecting(), "--repeats", 3)
    folder = newest(tmp_path)
    assert code == 4
    assert err.startswith(f"medicare-eval: {folder}: Nothing was scored (3 trials: 3 failed). Most frequent reason, 3 ")
    assert "HTTP 400: Flagged" in err and err.endswith(". Correct the cause, then start a new run.\n")
    table = out.partition("Why calls failed:\n")[2].partition("\n\n")[0].splitlines()
    assert table[2].split()[:5] == ["3", "0", "target", f"{TARGET}:", "request"]
    assert max(map(len, table)) <= 80
    assert "\x1b" not in out + err and SENTINEL not in out + err
    verifies(folder)
    assert call("report", folder).code == 0
    written = everything_in(folder)
    assert SENTINEL not in written
    for name in ("report.md", "report.html", "errors.csv"):
        text = (folder / "report" / name).read_text(encoding="utf-8")
        assert "HTTP 400: Flagged" in text
        assert "\x1b" not in text
        assert "<b>" not in text or name == "errors.csv"


def test_the_reasons_are_in_the_json_and_in_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, out, _ = run(monkeypatch, tmp_path, rejecting(), "--json", "--repeats", 3)
    assert code == 4
    (error,) = json.loads(out)["errors"]
    shown: dict[str, Any] = {name: value for name, value in error.items() if name not in ("message", "example")}
    assert shown == {
        "role": "target", "model": TARGET, "outcome": "permanent", "status": 400, "attempts": 3, "lost": 3,
    }  # fmt: skip
    run_ = Run(newest(tmp_path))
    assert [vars(one) for one in run_.errors()] == [error]
    assert any(record.call == error["example"] for record in run_.calls())


def test_judges_that_answer_nonsense_are_the_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, out, err = run(monkeypatch, tmp_path, nonsense)
    folder = newest(tmp_path)
    assert code == 4
    assert "Nothing was scored (1 trial: 1 not judged)" in err
    assert "no usable answer after 3 asks: invalid JSON" in err
    assert err.endswith(f"judge the replies again: medicare-eval rejudge {folder}\n")
    assert f"extractor {JUDGE}: answers not usable." in out
    arguments = ("rejudge", folder, "--judge-model", "offline:rules", "--out", tmp_path / "again", "--quiet")
    again, _, complaint = call(*arguments)
    assert again == 0, complaint


def test_a_rejudging_and_a_resumed_run_without_scores_are_exit_4_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert run(monkeypatch, tmp_path / "first", sensible, judge="offline:rules")[0] == 0
    with Loopback(nonsense) as server:
        redirect(monkeypatch, server)
        first = newest(tmp_path / "first")
        code, _, err = call("rejudge", first, "--judge-model", JUDGE, "--out", tmp_path / "again", "--quiet")
    assert (code, "Nothing was scored" in err) == (4, True)
    code, _, err = call("resume", newest(tmp_path / "again"), "--quiet")
    assert (code, "Nothing was scored" in err, "complete already" in err) == (4, True, True)


def test_a_run_in_which_the_target_refuses_everything_has_results(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refusing(request: Received) -> Scripted:
        return Scripted(reply="refusal", text="I cannot help.") if is_question(request) else sensible(request)

    code, out, err = run(monkeypatch, tmp_path, refusing)
    assert code == 0, err
    assert [trial.outcome for trial in Run(newest(tmp_path)).trials()] == ["refused"]
    assert "Why calls failed" not in out and "Nothing was scored" not in out + err


def test_a_run_in_which_every_reply_is_cut_off_has_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def cut(request: Received) -> Scripted:
        return Scripted(reply="truncated") if is_question(request) else sensible(request)

    code, _, err = run(monkeypatch, tmp_path, cut)
    assert code == 4
    assert "(1 trial: 1 cut off)" in err
    assert "cut off at the length limit: stop reason: length." in err


@pytest.mark.slow
def test_attempts_that_were_repeated_are_shown_and_lose_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code, out, err = run(monkeypatch, tmp_path, one_in_three(), "--json")
    assert code == 0, err
    errors = json.loads(out)["errors"]
    failed = [record for record in Run(newest(tmp_path)).calls() if record.outcome != "ok"]
    assert sum(error["attempts"] for error in errors) == len(failed) > 3
    assert {error["lost"] for error in errors} == {0}


def test_the_api_returns_a_run_without_scores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with Loopback(rejecting()) as server:
        redirect(monkeypatch, server)
        made = me.run(scenarios=[ONE], targets=[TARGET], judges=["offline:rules"], out=str(tmp_path))
    assert made.complete
    assert [(error.outcome, error.lost) for error in made.errors()] == [("permanent", 1)]
