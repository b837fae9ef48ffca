"""One study of four kinds of targets: a bare model, one with a system prompt, one that searches, and recorded calls."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import src as me
from src.records.model_name import family, family_of_id
from src.storage import read_manifest
from tests.cases import each_case
from tests.loopback import Loopback, Received, Scripted
from tests.runs import ONE, call, newest, replays, resumes, verifies
from tests.test_search_runs import is_target, searched, without_network
from tests.test_wire_runs import SENTINEL, redirect

QUESTIONS = [turn["user_message"] for turn in json.loads(Path(ONE).read_text(encoding="utf-8"))["scripted_turns"]]
SAID = (
    "A Medicare Advantage plan can have a network of doctors. I am on the phone with you now and I read it to you.",
    "With Original Medicare you can see any doctor who takes Medicare.",
    "I would have to look that up for your county.",
    "Call me back if anything is unclear, and ask the plan itself as well.",
)


def recorded(folder: Path, calls: int, *, asked: int = 4) -> Path:
    """A folder of phone calls in which the first questions of the script are asked."""
    for number in range(calls):
        lines = [f"Counselor: Hello, this is call {number + 1}. How can I help?"]
        for question, answer in zip(QUESTIONS[:asked], SAID, strict=False):
            lines += [f"Caller: {question}", f"Counselor: {answer}"]
        path = folder.parent / f"call{number + 1}.txt"
        path.write_text("\n".join(lines), encoding="utf-8")
        code, _, err = call(
            "import-transcripts", path, "--scenario", ONE, "--to", folder, "--system", "SHIP counselors", "--yes"
        )
        assert code == 0, err
    return folder


def answer(request: Received) -> Scripted:
    return searched("openai", request) if is_target(request) else Scripted(text=SAID[1])


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run of the study; afterward there is neither key nor network."""
    monkeypatch.setenv("OPENAI_API_KEY", SENTINEL)
    prompt = tmp_path / "advisor.txt"
    prompt.write_text("You advise people on Medicare. Say what you do not know.\n", encoding="utf-8")
    calls = recorded(tmp_path / "calls", 2, asked=3)
    targets = ["openai:gpt-5.5", f"openai:gpt-5.5,system={prompt}", "openai:gpt-5.5,search", f"transcript:{calls}"]
    with Loopback(answer) as server:
        redirect(monkeypatch, server)
        words = [word for target in targets for word in ("--target", target)]
        code, _, err = call(
            "run", "--scenario", ONE, *words, "--judge-model", "offline:rules", "--no-probe", "--quiet",
            "--out", tmp_path / "runs",
        )  # fmt: skip
    assert code == 0, err
    without_network(monkeypatch)
    return newest(tmp_path / "runs")


def test_four_kinds_of_targets_are_four_rows_of_one_report(made: Path, tmp_path: Path) -> None:
    plan = read_manifest(made).plan
    names = ("openai:gpt-5.5", "openai:gpt-5.5#advisor", "openai:gpt-5.5#search")
    assert plan.targets[:3] == names
    assert plan.targets[3] == "transcript:calls"
    assert [plan.trials_of(target) for target in plan.targets] == [1, 1, 1, 2]
    verifies(made)
    replays(made)
    code, _, err = call("report", made, "--out", tmp_path / "report")
    assert code == 0, err
    report = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    for kind in ("bare model", "system prompt", "search", "recorded conversations"):
        assert f"| {kind} |" in report
    assert "never pooled" in report
    assert "Say what you do not know." in report
    assert "2 conversations with SHIP counselors" in report
    assert "Sources that the targets cite" in report
    with (tmp_path / "report" / "per_scenario.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["target"] for row in rows} == set(plan.targets)
    assert SENTINEL not in report


def test_a_question_that_was_not_asked_is_missing_and_its_points_are_not_owed(made: Path) -> None:
    results = [json.loads(line) for line in (made / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    spoken = [one for one in results if one["target"]["provider"] == "transcript"]
    assert [one["outcome"] for one in spoken] == ["scored", "scored"]
    assert [turn["outcome"] for turn in spoken[0]["conversation"]] == ["answered", "answered", "answered", "not_asked"]
    bare = next(one for one in results if one["target"]["name"] == "openai:gpt-5.5")
    only_in_the_last_question = {"F2", "F4|F43"}
    assert only_in_the_last_question <= set(bare["missing_required_points"])
    assert not only_in_the_last_question & set(spoken[0]["missing_required_points"])
    codes = {code["question_group"]: code for code in spoken[0]["study_codes"]}
    assert [code["code"] for code in codes.values() if "Q4" in code["turn_ids"]] == ["incomplete_data"]


def test_a_searching_target_cites_and_a_bare_one_does_not(made: Path) -> None:
    results = [json.loads(line) for line in (made / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    cited = {one["target"]["name"]: one.get("citations", []) for one in results}
    assert cited["openai:gpt-5.5"] == []
    found = cited["openai:gpt-5.5#search"]
    assert found
    assert {one["citation"]["host_class"] for one in found} == {"medicare"}
    assert {one["citation"]["outcome"] for one in found} <= {"not_in_snapshot", "undecided", "supported"}


def test_recorded_calls_are_divided_among_shards_and_resumed_like_any_target(tmp_path: Path) -> None:
    calls = recorded(tmp_path / "calls", 3)
    words = ("--scenario", ONE, "--target", "fake:careful", "--target", f"transcript:{calls}", "--quiet")
    for index in (1, 2, 3):
        code, _, err = call(
            "run", *words, "--judge-model", "offline:rules", "--shard", f"{index}/3", "--out", tmp_path / f"s{index}"
        )
        assert code == 0, err
    shards = [newest(tmp_path / f"s{index}") for index in (1, 2, 3)]
    code, _, err = call("merge", *shards, "--to", tmp_path / "merged")
    assert code == 0, err
    code, _, err = call("run", *words, "--judge-model", "offline:rules", "--out", tmp_path / "whole")
    assert code == 0, err
    whole = newest(tmp_path / "whole")
    merged = tmp_path / "merged"
    merged = merged if (merged / "results.jsonl").exists() else newest(merged)
    assert (merged / "results.jsonl").read_bytes() == (whole / "results.jsonl").read_bytes()
    verifies(merged)
    replays(merged)
    resumes(whole)


def test_a_folder_that_was_changed_or_is_gone_stops_a_run_and_nothing_is_recorded_as_an_answer(tmp_path: Path) -> None:
    calls = recorded(tmp_path / "calls", 1)
    words = ("--scenario", ONE, "--target", f"transcript:{calls}", "--judge-model", "offline:rules", "--quiet")
    code, _, err = call("run", *words, "--out", tmp_path / "runs")
    assert code == 0, err
    run = newest(tmp_path / "runs")
    for name in ("seal.json", "results.jsonl", "calls.jsonl"):  # as if it had been stopped before its first call
        (run / name).unlink()
    kept = calls / "collection.json"
    text = kept.read_text(encoding="utf-8")
    kept.write_text(text.replace("SHIP counselors", "SHIP volunteers"), encoding="utf-8")
    code, _, err = call("resume", run)
    assert (code, "was changed since this run was planned" in err) == (2, True)
    kept.write_text(text, encoding="utf-8")
    moved = calls.rename(tmp_path / "moved")
    code, _, err = call("resume", run)
    assert code == 2
    assert str(calls) in err
    moved.rename(calls)
    resumes(run)
    verifies(run)


def test_a_recorded_target_has_the_same_name_and_plan_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(tmp_path / "calls", 1)
    monkeypatch.chdir(tmp_path)
    words = ("--scenario", Path(ONE).resolve(), "--target", "transcript:calls", "--judge-model", "offline:rules")
    code, _, err = call("freeze", *words, "--primary-outcome", "accuracy", "--to", "registered.json")
    assert code == 0, err
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    code, _, err = call("run", "--registered", tmp_path / "registered.json", "--quiet")
    assert code == 0, err
    (result,) = newest(tmp_path / "elsewhere" / "runs").joinpath("results.jsonl").read_text("utf-8").splitlines()
    assert json.loads(result)["target"]["name"] == "transcript:calls"
    one = next((tmp_path / "calls").glob("scenario*"))
    one.write_text(one.read_text(encoding="utf-8").replace("any doctor", "every doctor"), encoding="utf-8")
    code, _, err = call("run", "--registered", tmp_path / "registered.json", "--quiet")
    assert code == 2
    assert "its recorded conversations changed" in err


@each_case("system", ["Claude app", "Gemini app", "ChatGPT", "Grok"])
def test_default_judges_are_not_of_the_family_that_answered_in_an_app(
    system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI", "ANTHROPIC", "GEMINI", "XAI"):
        monkeypatch.setenv(f"{name}_API_KEY", SENTINEL)
    chat = tmp_path / "chat.txt"
    chat.write_text(
        "".join(f"You said:\n{q}\nAssistant said:\n{a}\n" for q, a in zip(QUESTIONS, SAID, strict=True)), "utf-8"
    )
    words = ("--scenario", ONE, "--to", tmp_path / "app", "--kind", "chat", "--system", system, "--yes")
    code, _, err = call("import-transcripts", chat, *words)
    assert code == 0, err
    plan = me.plan(scenarios=[str(ONE)], targets=[f"transcript:{tmp_path / 'app'}"])
    judges = {family(judge) for judge in (*plan.verifiers, plan.adjudicator or "")}
    assert family_of_id(system) not in judges
    assert plan.settings_of(plan.targets[0]).recorded.kind == "chat"  # type: ignore[union-attr]
