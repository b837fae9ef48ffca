"""Inspect's own reader gets from a log what the run holds: right counts, and an explanation beside every score."""

from __future__ import annotations

import math
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from src.exports import inspect_log
from src.exports.export import export
from src.exports.inspect_log import COMPLETE, LISTED, NO_WORDS, ScenarioWords, explained
from src.findings.estimates import estimate
from src.findings.read_run import gather
from src.records.contracts import FinalClaim, Scores
from src.schemas import Exchange, QuestionCode, ReviewReason, TrialResult, TurnOutcome
from src.scoring.definitions import SCORES

from ..helpers import plan, result, scenario
from .made_runs import (
    HOSTILE,
    OUTCOMES,
    costly,
    hostile,
    nothing_to_check,
    of_outcome,
    one_of_each,
    planned,
    rich,
    write_run,
)
from .report_run import code as coded_question
from .report_run import study_scenario

SHOWN = (COMPLETE, *SCORES)


def module(name: str) -> Any:
    return import_module(name)


def logs_of(results: list[TrialResult], folder: Path, made: Any = None) -> list[Any]:
    """The logs of an export, as Inspect reads them."""
    log = module("inspect_ai.log")
    files = export(write_run(folder / "run", results, made or planned()), folder / "out", ["inspect"])
    return [log.read_eval_log(str(path), resolve_attachments=True) for path in files if path.suffix == ".eval"]


def named(one: TrialResult, scenario_id: str) -> TrialResult:
    return one.model_copy(update={"scenario_id": scenario_id})


# What is said of a score (no package of Inspect's is needed for these)


def test_every_score_of_every_outcome_is_explained() -> None:
    for one in [*one_of_each(), rich()]:
        for name in SHOWN:
            found = explained(one, name, NO_WORDS)
            assert found.why.strip(), (one.outcome, name)
            assert (found.value is None) is bool(found.missing)


def test_accuracy_says_how_many_claims_agree_and_which_do_not() -> None:
    found = explained(rich(), "accuracy", NO_WORDS)
    assert found.answer == "1 of 2 claims"
    assert found.why.startswith(
        "1 claim agrees with the answer key, and 1 contradicts it; 0 more are not in the key and the judges left 1 open."
    )
    assert "- “Plans have networks.” (severity high). The key: F1; F2; F3" in found.why


def test_facts_are_told_in_words() -> None:
    words = ScenarioWords.of(costly(), {})
    why = explained(rich(), "accuracy", words).why
    assert "The key: The premium is $202.90 a month." in why
    missed = explained(rich(), "completeness", words)
    assert missed.answer == "2 missed"
    assert "Missed:\n\n- The premium is $202.90 a month.\n- The premium is $202.90 a month. / F4" in missed.why


def test_a_missing_score_says_why_in_a_sentence() -> None:
    for outcome in OUTCOMES[1:]:
        found = explained(of_outcome(outcome, 1), "accuracy", NO_WORDS)
        assert (found.value, found.missing) == (None, outcome)
        assert found.why.startswith("No score: ")
    assert explained(nothing_to_check(1), "accuracy", NO_WORDS).missing == "nothing_to_check"
    undecided = rich().model_copy(
        update={"final_scores": Scores(accuracy=0.5, completeness=None, safety_risk=None, calibration=None)}
    )
    assert explained(undecided, "safety_risk", NO_WORDS).missing == "unresolved"


def test_a_refused_trial_counts_as_the_rule_for_missing_data_says() -> None:
    refused = of_outcome("refused", 1)
    for name in ("completeness", "safety_risk"):
        found = explained(refused, name, NO_WORDS)
        assert found.value == 0
        assert found.why == "Counted as 0: the target declined every question."
    assert explained(refused, "calibration", NO_WORDS).missing == "refused"


def code(group: str, given: Any, turn_id: str = "Q1") -> QuestionCode:
    return QuestionCode(
        question_group=group, turn_ids=(turn_id,), code=given, answer=None, reason="Because.", lookup_dependent=False,
        points_met=(), points_missed=(), partial_points_met=(), wrong=(), minor=(), fabricated=(),
    )  # fmt: skip


def asked(turn_id: str, outcome: TurnOutcome) -> Exchange:
    said = "Yes." if outcome == "answered" else None
    return Exchange(
        turn_id=turn_id, question_group=None, user_message="?", outcome=outcome, reply=said, detail=None, served_model=None
    )  # fmt: skip


def test_the_share_of_complete_answers_leaves_out_what_is_missing() -> None:
    one = result().model_copy(
        update={
            "conversation": (asked("Q1", "answered"), asked("Q2", "blocked"), asked("Q3", "timeout")),
            "study_codes": (
                code("a", "accurate_complete"), code("b", "incorrect"), code("c", "incomplete_data", "Q2"),
                code("d", "incomplete_data", "Q3"), code("e", None),
            ),
        }
    )  # fmt: skip
    found = explained(one, COMPLETE, NO_WORDS)
    assert (found.value, found.answer) == (1 / 3, "1 of 3 questions")
    assert "- c: not substantive. Because." in found.why
    assert "- d: left out, a call to the target still failed after all retries" in found.why
    assert "- e" not in found.why
    lost = one.model_copy(update={"study_codes": (code("d", "incomplete_data", "Q3"),)})
    assert explained(lost, COMPLETE, NO_WORDS).missing == "failed"


def test_long_lists_are_cut_and_say_so() -> None:
    claim = rich().final_claims[1]
    many: tuple[FinalClaim, ...] = tuple(
        claim.model_copy(update={"claim_id": f"Q1.C{n}", "text": f"wrong\n- {n} {'x' * 999 if n == 1 else ''}"})
        for n in range(1, 15)
    )
    why = explained(rich().model_copy(update={"final_claims": many}), "safety_risk", NO_WORDS).why
    assert why.count("\n- ") == LISTED + 1
    assert why.endswith("- and 4 more")
    assert max(map(len, why.splitlines())) < 310 and "x…" in why


# What Inspect reads


@pytest.mark.slow
def test_a_log_counts_scenarios_epochs_and_errors_as_inspect_does(tmp_path: Path) -> None:
    made = plan(
        scenarios=[scenario(scenario_id="s1"), scenario(scenario_id="s2")], targets=("fake:careful", "openai:gpt-x"), repeats=3
    )  # fmt: skip
    results = [
        named(one, name)
        for name in ("s1", "s2")
        for one in (rich(1), rich(1, target="openai:gpt-x"), rich(2), rich(2, target="openai:gpt-x"),
                    of_outcome("failed", 3), rich(3, target="openai:gpt-x"))
    ]  # fmt: skip
    first, second = logs_of(results, tmp_path, made)
    for one, completed in ((first, 4), (second, 6)):
        assert (one.eval.dataset.samples, one.eval.config.epochs) == (2, 3)
        assert one.eval.dataset.sample_ids == ["s1", "s2"]
        assert (one.results.total_samples, one.results.completed_samples) == (6, completed)
        assert len(one.samples) == 6
        assert [score.name for score in one.results.scores] == [score.name for score in one.eval.scorers] == [*SHOWN]
        for sample in one.samples:
            assert all(score.explanation for score in sample.scores.values())
    assert first.eval.task_id != second.eval.task_id, "logs of one task id are shown as retries of one another"
    assert first.eval.headline_metric.score == COMPLETE


@pytest.mark.slow
def test_a_log_is_cut_between_scenarios_so_each_has_its_own_right_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect_log, "LOG_SAMPLES", 7)
    made = plan(scenarios=[scenario(scenario_id=f"s{n}") for n in range(1, 6)], targets=("fake:careful",), repeats=3)
    logs = logs_of([named(rich(n), f"s{s}") for s in range(1, 6) for n in (1, 2, 3)], tmp_path, made)
    assert [one.eval.dataset.sample_ids for one in logs] == [["s1", "s2"], ["s3", "s4"], ["s5"]]
    for one in logs:
        assert one.eval.config.epochs == 3
        assert one.results.total_samples == one.results.completed_samples == len(one.samples)
        assert one.results.total_samples == one.eval.dataset.samples * one.eval.config.epochs
    assert len({one.eval.task_id for one in logs}) == len({one.eval.eval_id for one in logs}) == 3


@pytest.mark.slow
def test_means_are_those_of_the_report(tmp_path: Path) -> None:
    def trial(name: str, variant: str, repetition: int, accuracy: float | None, *codes: Any) -> TrialResult:
        scores = Scores(accuracy=accuracy, completeness=0.25 * repetition, safety_risk=0.0, calibration=None)
        given = tuple(code(f"g{n}", one) for n, one in enumerate(codes, 1))
        one = result(scenario_id=name, repetition=repetition, scores=scores)
        return one.model_copy(update={"variant": variant, "study_codes": given})

    done, wrong, lost = "accurate_complete", "incorrect", "incomplete_data"
    made = plan(
        scenarios=[scenario(scenario_id="s1"), scenario(scenario_id="s2")], targets=("fake:careful",), repeats=3
    )
    results = [
        trial("s1", "a", 1, 1.0, done, wrong, wrong), trial("s1", "a", 2, None, done, done, lost),
        trial("s1", "b", 1, 0.2, wrong, wrong, done), trial("s1", "b", 2, 0.1, wrong, wrong, lost),
        trial("s2", "a", 1, 0.0, done), trial("s2", "a", 2, 0.5, wrong),
        of_outcome("refused", 3).model_copy(update={"scenario_id": "s2", "variant": "a"}),
    ]  # fmt: skip
    (one,) = logs_of(results, tmp_path, made)
    rows = gather(tmp_path / "run").rows
    for score in one.results.scores:
        ours = estimate(rows, score.name).value
        found = {name: metric.value for name, metric in score.metrics.items()}
        assert found == ({} if ours is None else {"mean": pytest.approx(ours, abs=1e-12)}), score.name
    by_name = {score.name: score for score in one.results.scores}
    assert by_name["accuracy"].metrics["mean"].value == pytest.approx(((1 + 0.15) / 2 + 0.25) / 2)
    assert by_name[COMPLETE].metrics["mean"].value == pytest.approx((1 / 2 + 1 / 4 + 1 / 2 + 1 / 2) / 4)
    assert (by_name["accuracy"].scored_samples, by_name["accuracy"].unscored_samples) == (5, 2)


@pytest.mark.slow
def test_closed_questions_are_in_no_mean(tmp_path: Path) -> None:
    turns = [{"turn_id": f"Q{g}", "user_message": "Hm?", "question_group": f"g{g}"} for g in (1, 2)]
    made = plan(scenarios=[study_scenario(scripted_turns=turns)], targets=("fake:careful",))
    one = result(scenario_id="medicare_only").model_copy(
        update={"study_codes": (coded_question("g1", "accurate_complete"), coded_question("g2", "incomplete_data"))}
    )
    (log,) = logs_of([one], tmp_path, made)
    share = estimate(gather(tmp_path / "run").rows, COMPLETE)
    mean = next(score for score in log.results.scores if score.name == COMPLETE).metrics["mean"].value
    assert mean == share.value == 1.0
    assert "g2" not in log.samples[0].scores[COMPLETE].explanation


@pytest.mark.slow
def test_targets_with_like_names_have_logs_of_their_own(tmp_path: Path) -> None:
    names = ("compatible:org/model-a", "compatible:org-model.a")
    made = plan(scenarios=[scenario(scenario_id="s1")], targets=names)
    logs = logs_of([result(target=name) for name in names], tmp_path, made)
    assert {log.eval.model for log in logs} == {"compatible/org/model-a", "compatible/org-model.a"}


@pytest.mark.slow
def test_inspect_reads_back_transcripts_scores_claims_and_verdicts(tmp_path: Path) -> None:
    log = module("inspect_ai.log")
    results = [rich(1), rich(2), rich(1, target="openai:gpt-x"), nothing_to_check(3), of_outcome("failed", 4)]
    files = export(write_run(tmp_path / "run", results, planned()), tmp_path / "out", ["inspect"])
    logs = [log.read_eval_log(str(path)) for path in files if path.suffix == ".eval"]
    assert [one.eval.model for one in logs] == ["fake/careful", "openai/gpt-x"]
    assert [len(one.samples) for one in logs] == [4, 1]
    assert len(log.list_eval_logs(str(tmp_path / "out" / "inspect"))) == 2
    first = logs[0].samples[0]
    assert (first.id, first.epoch) == ("s1", 1)
    assert [(message.role, message.text) for message in first.messages] == [
        ("user", "Plans have networks."), ("assistant", "Plans have networks."),
    ]  # fmt: skip
    assert first.scores["accuracy"].value == 1 / 3
    assert first.target == ["The premium is $202.90 a month."]
    listed = first.metadata["rows"]
    claim = listed["claim"][1]
    assert (claim["label"], claim["quotes"]) == ("CONTRADICTED", "Plans have networks.")
    said = {(one["claim_id"], one["judge"]): one["label"] for one in listed["verdict"] if "label" in one}
    assert said[claim["claim_id"], "judge_2"] == "CONTRADICTED"
    assert listed["question"][0]["code"] == "incorrect"
    assert (first.metadata["outcome"], first.metadata["claims"]) == ("scored", len(listed["claim"]))
    assert not {"reply", "user_message", "trial_id"} & listed["turn"][0].keys()
    empty, broken = logs[0].samples[2:]
    assert math.isnan(empty.scores["accuracy"].value)
    assert empty.scores["accuracy"].reason == "nothing_to_check"
    assert broken.scores["accuracy"].reason == "failed"
    assert broken.error.message.startswith("a call to the target still failed")
    by_name = {score.name: score for score in logs[0].results.scores}
    assert (by_name["accuracy"].scored_samples, by_name["accuracy"].unscored_samples) == (2, 2)
    assert by_name["accuracy"].metrics["mean"].value == pytest.approx(1 / 3)


@pytest.mark.slow
def test_inspect_keeps_hostile_text_and_a_log_is_cut_where_it_grows_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = module("inspect_ai.log")
    monkeypatch.setattr(inspect_log, "LOG_SAMPLES", 8)
    files = export(write_run(tmp_path / "run", hostile(), planned()), tmp_path / "out", ["inspect"])
    logs = [path for path in files if path.suffix == ".eval" and "careful" in path.name]
    assert len(logs) == 3
    assert all(zipfile.is_zipfile(path) for path in logs)
    samples = [sample for path in logs for sample in log.read_eval_log(str(path), resolve_attachments=True).samples]
    assert [sample.messages[1].text for sample in samples] == [text or "x" for text in HOSTILE]


@pytest.mark.slow
def test_inspect_logs_are_written_when_much_text_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = module("inspect_ai.log")
    monkeypatch.setattr(inspect_log, "LOG_CHARACTERS", 100_000)
    results = [rich(n, "y" * 9_000, target) for n in range(1, 5) for target in ("fake:careful", "openai:gpt-x")]
    files = export(write_run(tmp_path / "run", results, planned()), tmp_path / "out", ["inspect"])
    logs = [log.read_eval_log(str(path)) for path in files if path.suffix == ".eval"]
    assert len(logs) > 2
    held = [(one.eval.model, sample.epoch) for one in logs for sample in one.samples]
    assert sorted(held) == [(model, n) for model in ("fake/careful", "openai/gpt-x") for n in range(1, 5)]


@pytest.mark.slow
def test_inspect_samples_carry_the_recorded_reasons(tmp_path: Path) -> None:
    log = module("inspect_ai.log")
    reason = ReviewReason(kind="open_claims", detail="1 claim has no final label.", claim_ids=("Q1.C4",))
    results = [
        rich(1).model_copy(update={"needs_manual_review": True, "review_reasons": (reason,)}),
        rich(2).model_copy(update={"review_reasons": None}),
    ]
    files = export(write_run(tmp_path / "run", results, planned()), tmp_path / "out", ["inspect"])
    (path, *_) = [file for file in files if "careful" in file.name]
    first, second = log.read_eval_log(str(path)).samples
    assert (first.metadata["review_reasons"], first.metadata["review_details"]) == (reason.kind, reason.detail)
    assert "review_reasons" not in second.metadata
