"""Whole runs in each isolation: which calls are made, what the audit sample records, and that replay gives the same."""

from __future__ import annotations

from pathlib import Path

import pytest

import src as me
from src.schemas import TrialResult
from tests.cases import each_case
from tests.runs import newest
from tests.test_readings import MARKED, NETWORKS, NOTE, PREMIUM, assert_replayed, assert_verified, calls, fakes_say, run

BOTH = f"{NETWORKS} {PREMIUM}"
SAID = {"careful": {"Q1": BOTH, "Q2": PREMIUM, "Q3": BOTH}, "wrong": {"Q1": f"{BOTH} {NOTE}", "Q2": MARKED, "Q3": BOTH}}
REPEATS = 8


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same study in each isolation, and `flagged` a second time."""
    made = {}
    with pytest.MonkeyPatch.context() as patch:
        fakes_say(tmp_path_factory.mktemp("fakes"), SAID, patch)
        for name, isolation in {"claim": "claim", "flagged": "flagged", "again": "flagged", "reply": "reply"}.items():
            folder = tmp_path_factory.mktemp(name)
            targets = ("--target", "fake:careful", "--target", "fake:wrong", "--repeats", REPEATS)
            run(folder, *targets, "--isolation", isolation, "--judge-repeats", 1, "--judge-sample", 0.5)
            made[name] = newest(folder / "runs")
    return made


def trials(folder: Path) -> list[TrialResult]:
    return list(me.open_run(folder).trials())


def parts(folder: Path, stage: str = "verifier") -> set[str]:
    """The parts of calls of first verdicts, without those about the rest of a marked reply."""
    named = [record.call.split("|") for record in calls(folder)]
    judges = [judge.partition(".") for _, one, _, judge, *_ in named if one == stage]
    return {part for number, _, part in judges if int(number) < 1_000 and not part.startswith("w")}


@pytest.mark.slow
def test_the_isolation_is_in_the_ids_of_the_calls(runs: dict[str, Path]) -> None:
    assert parts(runs["reply"]) == {""}
    assert parts(runs["claim"]) == {"c1", "c2"}
    assert parts(runs["flagged"]) == {"c1", "c2", "s1"}


@each_case("name", ["claim", "flagged", "reply"])
def test_no_call_id_is_used_twice_and_replay_gives_every_byte_again(runs: dict[str, Path], name: str) -> None:
    made = [record.call for record in calls(runs[name])]
    assert len(set(made)) == len(made)
    assert_verified(runs[name], 2 * REPEATS)
    assert_replayed(runs[name], 2 * REPEATS)


def test_the_same_study_makes_the_same_calls_and_results(runs: dict[str, Path]) -> None:
    once, again = (
        {record.call: (record.request_sha256, record.text) for record in calls(runs[name])}
        for name in ("flagged", "again")
    )
    assert once == again
    assert [one.model_dump() for one in trials(runs["flagged"])] == [one.model_dump() for one in trials(runs["again"])]


def test_marked_passages_are_verified_claim_by_claim_and_all_else_in_shared_calls(runs: dict[str, Path]) -> None:
    for one in trials(runs["flagged"]):
        for reading in one.readings:
            assert reading.verified in {None, "both_ways", "each_claim"}
            assert bool(reading.marked) == (one.target.model == "wrong" and reading.turn_id != "Q3")


def test_the_audit_sample_is_recorded_with_both_kinds_of_verdicts(runs: dict[str, Path]) -> None:
    audited = {
        (one.trial_id, reading.turn_id): one
        for one in trials(runs["flagged"])
        for reading in one.readings
        if reading.verified == "both_ways"
    }
    assert 0 < len(audited) < 3 * REPEATS
    for one in trials(runs["flagged"]):
        turns = {turn for trial_id, turn in audited if trial_id == one.trial_id}
        shared = {turn for turn in turns if sum(claim.turn_id == turn for claim in one.claims) > 1}
        assert set(one.shared_verdicts) == ({"judge_1", "judge_2"} if turns else set())
        for verdicts in one.shared_verdicts.values():
            assert {verdict.claim_id.partition(".")[0] for verdict in verdicts} == shared
    assert all(one.shared_verdicts == {} for name in ("claim", "reply") for one in trials(runs[name]))


def test_labels_do_not_depend_on_isolation_with_judges_that_judge_by_rule(runs: dict[str, Path]) -> None:
    labels = [
        {(trial.trial_id, one.claim_id): one.label for trial in trials(runs[name]) for one in trial.final_claims}
        for name in ("claim", "flagged", "reply")
    ]
    assert labels[0] == labels[1] == labels[2]
    assert set(labels[0].values()) >= {"SUPPORTED"}


def test_repeats_are_recorded_for_every_claim_of_sampled_trials(runs: dict[str, Path]) -> None:
    sampled = [one for one in trials(runs["flagged"]) if one.repeat_verdicts]
    assert 0 < len(sampled) < 2 * REPEATS
    for one in sampled:
        checked = {claim.claim_id for claim in one.claims if claim.verifiable and claim.same_as is None}
        for repeats in one.repeat_verdicts.values():
            assert [{verdict.claim_id for verdict in verdicts} for verdicts in repeats] == [checked]
