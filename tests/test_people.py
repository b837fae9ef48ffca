"""People as judges: a review is a run whose judges answer in a form."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from src import storage
from src.adapters.local_adapters import ROLE_OF_SCHEMA
from src.api.reviews import start_review
from src.api.runs import resume_with_people
from src.calls.people import People, WaitingCall
from src.calls.stop import Stop
from src.errors import IncompleteRun
from src.text.fence import unwrap
from tests.runs import ONE, call, newest, replays, verifies


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("judged")
    code, _, err = call(
        "run", "--scenario", ONE, "--target", "fake:careful", "--target", "fake:wrong", "--out", out, "--quiet"
    )
    assert code == 0, err
    return newest(out)


def test_a_run_with_people_goes_as_far_as_it_can_and_says_who_is_asked(tmp_path: Path) -> None:
    judges = ["--judge-model", "human:r1", "--judge-model", "human:r2", "--reader-model", "offline:rules"]
    code, _, err = call("run", "--scenario", ONE, "--target", "fake:careful", *judges, "--out", tmp_path, "--quiet")
    assert code == 4, err
    assert "questions wait for r1, and " in err
    run = newest(tmp_path)
    assert f"To continue: medicare-eval review continue {run}" in err
    verdicts = [record.call for record in storage.read_calls(run, storage.read_manifest(run))]
    assert any("|extractor|" in name for name in verdicts)
    assert not any("|verifier|" in name for name in verdicts)


def test_a_review_has_the_flagged_trials_and_a_recorded_sample(judged: Path, tmp_path: Path) -> None:
    review = start_review(judged, reviewers=["r1", "r2"], adjudicator="r3", sample=1, out=tmp_path)
    manifest = storage.read_manifest(review.path)
    assert manifest.transcripts is not None
    selected = manifest.transcripts.selected
    assert selected is not None
    assert (len(selected.chosen), len(selected.sampled)) == (review.chosen, review.sampled)
    assert manifest.trial_count == review.chosen + review.sampled
    assert manifest.plan.verifiers == ("human:r1", "human:r2")
    assert manifest.plan.adjudicator == "human:r3"


def opinion(question: WaitingCall) -> str:
    """What a person with the rules of `offline:rules` says; r2 disagrees about claims with odd numbers."""
    sent = unwrap(question.request.messages[0].content)
    input_type, answer = ROLE_OF_SCHEMA[str((question.request.response_schema or {})["title"])]
    found = answer(input_type.model_validate_json(sent.input)).model_dump(mode="json")
    for verdict in found.get("verdicts", []):
        if question.person == "r2" and verdict["claim_id"][-1] in "13579":
            verdict.update(label="NOT_IN_KEY", evidence=[], severity="none", notes="r2 is strict")
    return json.dumps({"canary": sent.canary, **found})


async def answered(folder: Path, *, most: int | None = None) -> int:
    """Carry a review out with people who answer at once, or until so many answers; how many were given."""
    people, stop = People(attended=True), Stop()
    running = asyncio.create_task(resume_with_people(folder, people, {}, stop=stop))
    given = 0
    while not running.done():
        await asyncio.sleep(0.01)
        for question in list(people.questions.values()):
            if given == most:
                stop.ask("enough for today")
                break
            said = opinion(question)
            assert question.request.check is not None
            assert question.request.check(said) == ()
            assert question.request.check(said.replace('"SUPPORTED"', '"NOT_IN_KEY"')) != () or "SUPPORTED" not in said
            if not question.answer.done():
                question.answer.set_result(said)
                given += 1
    try:
        await running
    except IncompleteRun:
        assert most is not None
    return given


def test_a_review_is_a_run_like_any_other(judged: Path, tmp_path: Path) -> None:
    review = start_review(judged, reviewers=["r1", "r2"], adjudicator="r3", sample=2, out=tmp_path)
    asked = asyncio.run(answered(review.path))
    assert asked > 10
    verifies(review.path)
    replays(review.path)
    records = list(storage.read_calls(review.path, storage.read_manifest(review.path)))
    assert {record.served_model for record in records if record.model.startswith("human:")} == {"r1", "r2", "r3"}
    code, _, err = call("compare", judged, review.path)
    assert code == 0, err
    code, _, err = call("report", review.path, "--out", tmp_path / "report")
    assert code == 0, err


def test_a_review_that_is_stopped_asks_only_what_was_not_answered(judged: Path, tmp_path: Path) -> None:
    one = start_review(judged, reviewers=["r1", "r2"], adjudicator="r3", sample=2, out=tmp_path / "a")
    whole = asyncio.run(answered(one.path))
    other = start_review(judged, reviewers=["r1", "r2"], adjudicator="r3", sample=2, out=tmp_path / "b")
    first = asyncio.run(answered(other.path, most=7))
    assert first == 7
    assert first + asyncio.run(answered(other.path)) == whole
    results = [(path.path / storage.RESULTS).read_bytes() for path in (one, other)]
    assert results[0] == results[1]
    verifies(other.path)
    replays(other.path)


def test_work_is_divided_among_more_than_two_people(judged: Path, tmp_path: Path) -> None:
    review = start_review(judged, reviewers=["r1", "r2", "r3"], split=True, sample=2, out=tmp_path)
    asyncio.run(answered(review.path))
    records = [r for r in storage.read_calls(review.path, storage.read_manifest(review.path)) if "|verifier|" in r.call]
    by_claim: dict[str, set[str | None]] = {}
    for record in records:
        trial, _, turn, judge, *_ = record.call.split("|")
        by_claim.setdefault(f"{trial}|{turn}|{judge.partition('.')[2]}", set()).add(record.served_model)
    assert by_claim
    assert all(len(people) == 2 for people in by_claim.values())
    verifies(review.path)


def test_people_and_a_model_judge_an_ordinary_run_together(tmp_path: Path) -> None:
    judges = ["--judge-model", "human:r1", "--judge-model", "offline:rules"]
    code, _, err = call("run", "--scenario", ONE, "--target", "fake:partial", *judges, "--out", tmp_path, "--quiet")
    assert code == 4, err
    run = newest(tmp_path)
    assert asyncio.run(answered(run)) > 0
    verifies(run)
    replays(run)
    found = storage.read_manifest(run).plan
    assert found.verifiers == ("human:r1", "offline:rules")
    assert found.extractor == found.scorer == "offline:rules"
