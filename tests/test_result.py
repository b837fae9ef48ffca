"""From judgments to a result: what a judge's failure does, and does not do, to a score."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from src.planning.plan import make_plan
from src.planning.study_file import make_study
from src.planning.trials import Trial, trials
from src.records.model_name import is_version_of
from src.schemas import (
    CallRecord,
    Claim,
    Exchange,
    LeftOpen,
    MarkedPassage,
    QuoteSpan,
    RejectedClaim,
    RunPlan,
    Scores,
    TrialResult,
    TurnOutcome,
    TurnReading,
    Usage,
    Verdict,
)
from src.scoring.result import TurnJudgment, as_requested, assemble, failed
from src.text.sentences import Excerpt, Span
from tests.cases import each_case
from tests.helpers import scenario_json

REPLY = "Plans have networks. The premium is $202.90."
CLAIMS = (
    Claim(claim_id="Q1.C1", text="Plans have networks.", type="factual", confidence="high", verifiable=True, quote_spans=(QuoteSpan(start=0, end=20),), turn_id="Q1"),
    Claim(claim_id="Q1.C2", text="The premium is $202.90.", type="factual", confidence="high", verifiable=True, quote_spans=(QuoteSpan(start=21, end=44),), turn_id="Q1"),
)  # fmt: skip


@pytest.fixture
def planned(tmp_path: Path) -> tuple[RunPlan, Trial]:
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(scenario_json(scenario_id="scenario_001")), encoding="utf-8")
    plan = make_plan(make_study({"scenarios": [str(path)], "targets": ["fake:careful"]}))
    return plan, trials(plan)[0]


def exchange(outcome: TurnOutcome = "answered", reply: str | None = REPLY) -> Exchange:
    return Exchange(
        turn_id="Q1",
        question_group=None,
        user_message="?",
        outcome=outcome,
        reply=reply,
        detail=None,
        served_model=None,
    )


def verdict(claim: int, label: str = "SUPPORTED") -> Verdict:
    severity = "high" if label == "CONTRADICTED" else "none"
    return Verdict.model_validate_json(
        json.dumps({"claim_id": f"Q1.C{claim}", "label": label, "evidence": [f"F{claim}"], "severity": severity})
    )


def judged(first: list[Verdict], second: list[Verdict]) -> TurnJudgment:
    return TurnJudgment("Q1", claims=CLAIMS, verdicts=[tuple(first), tuple(second)])


def result(planned: tuple[RunPlan, Trial], judgment: TurnJudgment, *exchanges: Exchange) -> TrialResult:
    return assemble(*planned, exchanges or (exchange(),), [], [judgment])


def test_two_judges_who_did_their_work_give_a_score(planned: tuple[RunPlan, Trial]) -> None:
    found = result(planned, judged([verdict(1), verdict(2)], [verdict(1), verdict(2)]))
    assert found.outcome == "scored"
    assert found.final_scores is not None
    assert found.final_scores.completeness == 1.0
    assert found.needs_manual_review is False


def test_a_verifier_that_failed_altogether_leaves_no_score(planned: tuple[RunPlan, Trial]) -> None:
    judgment = judged([verdict(1, "CONTRADICTED"), verdict(2)], [])
    judgment.failures.append(failed("verifier", "Q1", 2, (), "timed out"))
    found = result(planned, judgment)
    assert found.outcome == "judge_failure"
    assert found.final_scores is None
    assert found.scores_by_judge == {}
    assert found.missing_required_points == ()
    assert [claim.label for claim in found.final_claims] == [None, None]


def test_a_claim_without_a_verdict_is_not_held_against_the_target(planned: tuple[RunPlan, Trial]) -> None:
    judgment = judged([verdict(1), verdict(2)], [verdict(1)])
    judgment.failures.append(failed("verifier", "Q1", 2, ("Q1.C2",), "credits what is not quoted"))
    found = result(planned, judgment)
    assert found.outcome == "scored"
    assert found.final_scores is not None
    assert found.final_scores.accuracy == 1.0
    assert found.final_scores.completeness == 0.75, "one verifier says that it makes its point, the other says nothing"
    assert found.final_scores.safety_risk == 0
    assert found.left_open is not None
    assert (found.left_open.claims, found.left_open.unjudged) == (1, 0)
    assert (found.left_open.lowest.completeness, found.left_open.highest.completeness) == (0.5, 1)
    assert found.missing_required_points == (), "the open claim may make the point that seems missing"
    assert "omission" not in found.error_categories
    assert found.needs_manual_review is True
    assert found.scores_by_judge["judge_1"].scores.completeness == 1.0


def test_an_extractor_whose_quotes_are_not_there_sends_the_trial_to_a_person(planned: tuple[RunPlan, Trial]) -> None:
    judgment = judged([verdict(1), verdict(2)], [verdict(1), verdict(2)])
    judgment.rejected = (RejectedClaim(turn_id="Q1", text="x", reason="a quote is not in the reply"),)
    assert result(planned, judgment).needs_manual_review is True


def test_a_label_stands_although_its_claim_does_not_make_the_point(planned: tuple[RunPlan, Trial]) -> None:
    """F2 needs $202.90, and the quote of the claim that cites it does not state it."""
    short = CLAIMS[1].model_copy(update={"quote_spans": (QuoteSpan(start=21, end=35),)})
    judgment = TurnJudgment("Q1", claims=(CLAIMS[0], short), verdicts=[(verdict(1), verdict(2))] * 2)
    found = result(planned, judgment)
    assert [claim.label for claim in found.final_claims] == ["SUPPORTED", "SUPPORTED"]
    assert found.final_scores is not None
    assert (found.final_scores.accuracy, found.final_scores.completeness) == (1.0, 0.5)
    assert found.missing_required_points == ("F2",)
    assert found.error_categories == ("omission",)
    assert {one.scores.completeness for one in found.scores_by_judge.values()} == {0.5}


def test_a_tie_that_nobody_settles_stays_open_for_a_person(planned: tuple[RunPlan, Trial]) -> None:
    assert planned[0].adjudicator is None
    judgment = judged([verdict(1), verdict(2)], [verdict(1), verdict(2, "CONTRADICTED")])
    found = result(planned, judgment)
    assert [(one.label, one.decided_by) for one in found.final_claims] == [
        ("SUPPORTED", "unanimous"),
        (None, "unresolved"),
    ]
    assert found.judged_by.adjudicator is None
    assert found.outcome == "scored"
    assert found.final_scores is not None
    assert found.final_scores == Scores(accuracy=0.75, completeness=0.75, safety_risk=0.3, calibration=0.7725)
    assert found.left_open == LeftOpen(
        claims=1,
        lowest=Scores(accuracy=0.5, completeness=0.5, safety_risk=0, calibration=0.5475),
        highest=Scores(accuracy=1, completeness=1, safety_risk=0.6, calibration=0.9975),
    )
    assert found.review_reasons is not None
    assert {reason.kind for reason in found.review_reasons} == {"judges_disagree", "open_claims"}
    judgment.settled = {"Q1.C2": "CONTRADICTED"}
    settled = result(planned, judgment)
    assert [one.decided_by for one in settled.final_claims] == ["unanimous", "adjudicator"]
    assert settled.final_scores is not None
    assert settled.final_scores.safety_risk == 0.6


# Replies that the screen marks, and the audit sample


def marked(label: str | None = "SUPPORTED") -> TurnJudgment:
    """A reply whose second sentence is marked, and its claim labeled so; None: it is not marked."""
    judgment = judged([verdict(1), verdict(2, label or "SUPPORTED")], [verdict(1), verdict(2, label or "SUPPORTED")])
    passages = (MarkedPassage(start=21, end=44, why="machine text"),) if label else ()
    judgment.reading = TurnReading(turn_id="Q1", how="judges", marked=passages)
    return judgment


def test_a_marked_reply_is_scored_with_and_without_the_claims_of_the_passage(planned: tuple[RunPlan, Trial]) -> None:
    found = result(planned, marked())
    plain = result(planned, marked(None))
    assert found.outcome == plain.outcome == "scored"
    assert found.final_scores == plain.final_scores, "a mark alone changes no score"
    assert (found.claims, found.study_codes) == (plain.claims, plain.study_codes)
    assert plain.without_marked is None
    rest = found.without_marked
    assert rest is not None
    assert rest.final_scores is not None
    assert found.final_scores is not None
    assert (found.final_scores.completeness, rest.final_scores.completeness) == (1.0, 0.5)
    assert (rest.left_out, rest.claims, rest.final_claims) == (("Q1.C2",), (), ())
    assert found.review_reasons is not None
    (reason,) = found.review_reasons
    assert (reason.kind, reason.turn_ids) == ("judged_apart", ("Q1",))
    assert reason.detail == "1 passage judged apart from the rest of the reply. The screen found: machine text."


def test_what_a_marked_passage_says_counts_as_what_it_is(planned: tuple[RunPlan, Trial]) -> None:
    found = result(planned, marked("CONTRADICTED"))
    assert found.without_marked is not None
    assert found.without_marked.final_scores is not None
    assert found.final_scores is not None
    assert (found.final_scores.safety_risk, found.without_marked.final_scores.safety_risk) == (0.6, 0.0)
    assert (found.final_scores.accuracy, found.without_marked.final_scores.accuracy) == (0.5, 1.0)


def test_an_assertion_that_only_a_marked_passage_makes_first_counts_without_it_too(
    planned: tuple[RunPlan, Trial],
) -> None:
    judgment = marked()
    again = CLAIMS[1].model_copy(update={"claim_id": "Q1.C3", "same_as": "Q1.C2", "quote_spans": CLAIMS[0].quote_spans})
    judgment.claims = (*judgment.claims, again)
    found = result(planned, judgment)
    assert found.final_scores == result(planned, marked(None)).final_scores, "it counts once"
    assert [one.claim_id for one in found.final_claims] == ["Q1.C1", "Q1.C2"]
    assert found.without_marked is not None
    assert found.without_marked.final_scores is not None
    assert found.without_marked.final_scores.completeness == 0.5, "its quote states no amount"
    assert found.without_marked.final_scores.accuracy == 1.0


def test_a_trial_without_a_score_has_none_without_the_passage_either(planned: tuple[RunPlan, Trial]) -> None:
    judgment = marked()
    judgment.failures.append(failed("scorer", "Q1", 0, (), "timed out"))
    found = result(planned, judgment)
    assert (found.outcome, found.without_marked) == ("judge_failure", None)
    assert found.needs_manual_review


@each_case(
    ("places", "left"), [((), "0123456789"), (((0, 3),), "3456789"), (((2, 4), (7, 10)), "01456"), (((0, 10),), "")]
)
def test_parts_of_an_excerpt_are_found_in_the_whole(places: tuple[tuple[int, int], ...], left: str) -> None:
    whole = "0123456789"
    passages = [Span(start, end) for start, end in places]
    rest, taken = Excerpt.without(whole, passages), Excerpt.of(whole, passages)
    assert rest.text == left
    for excerpt in (rest, taken):
        for at, char in enumerate(excerpt.text):
            assert [whole[start:end] for start, end in excerpt.in_whole(at, at + 1)] == ([char] if char != "\n" else [])
    assert "".join(whole[start:end] for start, end in rest.in_whole(0, len(rest.text))) == left


def test_what_judges_say_in_shared_calls_is_recorded_and_never_counts(planned: tuple[RunPlan, Trial]) -> None:
    judgment = judged([verdict(1), verdict(2)], [verdict(1), verdict(2)])
    plain = result(planned, judgment)
    assert plain.shared_verdicts == {}
    judgment.shared = [(verdict(1, "CONTRADICTED"), verdict(2)), (verdict(1), verdict(2))]
    found = result(planned, judgment)
    assert found.shared_verdicts == {"judge_1": judgment.shared[0], "judge_2": judgment.shared[1]}
    assert found.model_copy(update={"shared_verdicts": {}}) == plain


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        (["answered", "refused"], "scored"),
        (["refused", "refused"], "refused"),
        (["answered", "blocked"], "blocked"),
        (["answered", "truncated"], "truncated"),
        (["empty", "answered"], "empty"),
        (["answered", "timeout", "not_asked"], "failed"),
        (["malformed"], "failed"),
        (["answered", "skipped"], "scored"),
    ],
)
def test_outcomes(planned: tuple[RunPlan, Trial], outcomes: list[TurnOutcome], expected: str) -> None:
    judgment = judged([verdict(1), verdict(2)], [verdict(1), verdict(2)])
    found = result(planned, judgment, *(exchange(outcome) for outcome in outcomes))
    assert found.outcome == expected
    assert (found.final_scores is not None) == (expected == "scored")
    assert found.flags.refusal == ("refused" in outcomes)


def test_a_questioner_that_failed_is_an_outcome_of_its_own(planned: tuple[RunPlan, Trial]) -> None:
    found = assemble(*planned, [], [], [], questioner_failure="changed a figure")
    assert found.outcome == "questioner_failure"
    assert found.judge_failures[0].stage == "questioner"


def test_judge_services_do_not_depend_on_which_call_came_back_first(planned: tuple[RunPlan, Trial]) -> None:
    def record(served: str, number: int) -> CallRecord:
        return CallRecord(
            call=f"t|verifier|Q1|{number}|0|1", request_sha256="a" * 64, prompt_sha256=None, model="offline:rules", outcome="ok", final=True,
            status=None, usage=Usage(), input_characters=1, max_tokens=1, served_model=served, fingerprint=None,
            request_id=None, stop_reason=None, not_applied=("seed",), started="", latency_ms=1.0, error=None, text="{}",
            sent=None, received=None,
        )  # fmt: skip

    services = []
    for order in ((1, 2), (2, 1)):
        judgment = judged([verdict(1), verdict(2)], [verdict(1), verdict(2)])
        judgment.records = [record(f"rules-{number}", number) for number in order]
        services.append(result(planned, judgment).judge_services)
    assert services[0] == services[1]
    assert services[0][0].served_models == ("rules-1", "rules-2")
    assert services[0][0].not_applied == ("seed",)


@each_case(
    ("served", "called", "same"),
    [
        ("gpt-4.1-2025-04-14", "gpt-4.1-2025-04-14", True),
        ("gpt-4.1-2025-04-14", "gpt-4.1", True),
        ("claude-sonnet-4-6@20260101", "claude-sonnet-4-6", True),
        ("models/gemini-3.8-flash", "gemini-3.8-flash", True),
        ("gpt-4.1-mini-2025-04-14", "gpt-4.1", False),
        ("grok-4.6", "grok-4.3", False),
        ("claude-opus-5-5", "claude-opus-5", False),
        ("grok-4-1", "grok-4", False),
        ("gpt-4x1", "gpt-4.1", False),
    ],
)
def test_versions_of_an_id(served: str, called: str, same: bool) -> None:
    assert is_version_of(served, called) is same
    assert as_requested([served], called) is same
    assert as_requested([], called) is None
