"""The same plan, seed and replies give the same bytes, whatever else differs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import src as me
from src import storage
from tests.cases import each_case
from tests.runs import THREE, call, make_run, newest, process

STUDY = ("--scenario", THREE, "--target", "fake:careful", "--target", "fake:wrong", "--repeats", "2")


def results(run: Path) -> bytes:
    return (run / storage.RESULTS).read_bytes()


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return results(make_run(tmp_path_factory.mktemp("reference"), *STUDY))


@each_case("concurrency", ["1", "32"])
def test_concurrency_changes_no_byte(concurrency: str, tmp_path: Path, reference: bytes) -> None:
    assert results(make_run(tmp_path, *STUDY, "--concurrency", concurrency)) == reference


@pytest.mark.parametrize(
    "env",
    [
        {"PYTHONHASHSEED": "12345", "TZ": "Pacific/Auckland", "LANG": "C", "LC_ALL": "C"},
        pytest.param({"PYTHONHASHSEED": "0"}, marks=pytest.mark.slow),
        pytest.param(
            {"TZ": "America/New_York", "LANG": "C.UTF-8", "PYTHONUTF8": "0", "LC_ALL": "POSIX"}, marks=pytest.mark.slow
        ),
    ],
)
def test_hash_seed_time_zone_and_locale_change_no_byte(env: dict[str, str], tmp_path: Path, reference: bytes) -> None:
    finished = process("run", *STUDY, "--out", tmp_path, "--quiet", env=env)
    assert finished.returncode == 0, finished.stderr
    assert results(newest(tmp_path)) == reference


def trials_of(data: bytes) -> dict[str, dict[str, Any]]:
    lines = [json.loads(line) for line in data.splitlines()]
    return {line["trial_id"]: {name: value for name, value in line.items() if name != "chain"} for line in lines}


def audited(trial: dict[str, Any]) -> list[str]:
    """The replies that were verified both ways."""
    return [one["turn_id"] for one in trial["readings"] if one.get("verified") == "both_ways"]


def without_verification(trial: dict[str, Any]) -> dict[str, Any]:
    """A trial without the record of which claims shared a call."""
    readings = [{name: value for name, value in one.items() if name != "verified"} for one in trial["readings"]]
    return {name: value for name, value in trial.items() if name != "shared_verdicts"} | {"readings": readings}


def test_another_seed_changes_only_what_the_knobs_allow_and_which_replies_are_audited(
    tmp_path: Path, reference: bytes
) -> None:
    before, after = trials_of(reference), trials_of(results(make_run(tmp_path, *STUDY, "--seed", "7")))
    assert before.keys() == after.keys()
    for trial_id in before:
        if not trial_id.startswith("scenario_002"):  # the only one with choices and shuffled turns
            assert without_verification(before[trial_id]) == without_verification(after[trial_id])
    drawn = [{(name, turn) for name, trial in trials.items() for turn in audited(trial)} for trials in (before, after)]
    assert drawn[0]
    assert drawn[0] != drawn[1]
    asked = [
        [(turn["turn_id"], turn["user_message"]) for turn in trials[trial_id]["conversation"]]
        for trials in (before, after)
        for trial_id in trials
        if trial_id.startswith("scenario_002.fake-wrong")
    ]
    assert len({json.dumps(turns) for turns in asked}) > 1
    assert len({json.dumps(sorted(turn_id for turn_id, _ in turns)) for turns in asked}) == 1


def with_claims(trial: dict[str, Any]) -> set[str]:
    """The replies that have a claim for verifiers."""
    return {claim["turn_id"] for claim in trial["claims"] if claim["verifiable"]}


@pytest.mark.slow
@each_case("isolation", ["claim", "reply"])
def test_isolation_changes_calls_and_not_what_a_judge_of_single_claims_says(
    isolation: str, tmp_path: Path, reference: bytes
) -> None:
    run = make_run(tmp_path, *STUDY, "--isolation", isolation)
    flagged, other = trials_of(reference), trials_of(results(run))
    assert [*map(without_verification, flagged.values())] == [*map(without_verification, other.values())]
    shared = "shared_verdicts"
    assert any(shared in trial for trial in flagged.values())
    assert not any(shared in trial for trial in other.values())
    verifier = [one.call for one in me.open_run(run).calls() if "|verifier|" in one.call]
    claims = sum(
        claim["verifiable"] and "same_as" not in claim for trial in other.values() for claim in trial["claims"]
    )
    replies = sum(len(with_claims(trial)) for trial in other.values())
    assert len(verifier) == 2 * (claims if isolation == "claim" else replies)
    assert len(set(verifier)) == len(verifier)


def test_every_target_is_asked_the_same_questions(reference: bytes) -> None:
    trials = trials_of(reference)
    for repetition in (1, 2):
        careful = trials[f"scenario_002.fake-careful.r{repetition}"]["conversation"]
        wrong = trials[f"scenario_002.fake-wrong.r{repetition}"]["conversation"]
        assert [turn["user_message"] for turn in careful] == [turn["user_message"] for turn in wrong]


def test_results_contain_no_date_and_no_path(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    text = results(run).decode()
    assert run.name[:8] not in text
    assert str(tmp_path) not in text


def test_json_summary_is_machine_readable(tmp_path: Path) -> None:
    code, out, err = call("run", *STUDY, "--out", tmp_path, "--json")
    assert code == 0
    summary = json.loads(out)
    assert summary["done"] == summary["planned"] == 12
    assert summary["targets"]["fake:careful"]["scores"]["accuracy"]["n"] == 6
    events = [json.loads(line) for line in err.splitlines()]
    assert [event["event"] for event in events] == ["start", "end"]
    assert events[-1]["trials_done"] == 12
