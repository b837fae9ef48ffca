"""The adjudicator: majority by code, ties to a model that may only choose, unresolved claims, manual review."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from src.agents.adjudicator import conclude, disagreement, settle, tied
from src.agents.ask import AskedTurn, JudgeAnswer
from src.agents.verifier import Shown
from src.schemas import (
    AdjudicatorInput,
    AdjudicatorOutput,
    AdjudicatorReply,
    FactInView,
    FinalClaim,
    Label,
    Scores,
    TiedClaim,
    Verdict,
)
from src.scoring.review import review_reasons
from src.text.fence import reply_schema
from tests.cases import each_case
from tests.helpers import Failed, ScriptedJudge, claim, client, final_claim, key_of, scenario, shown, verdict

KEY = key_of(scenario())
BACKGROUND = FactInView(fact_id="B-1", statement="Plans may have networks.", severity_if_wrong="low")
SHOWN = Shown(AskedTurn("What is Part B?", 2026, ("What is Part A?",)), KEY, (BACKGROUND,))
LABELS: tuple[Label, ...] = ("SUPPORTED", "CONTRADICTED", "NOT_IN_KEY")
TIES = (
    TiedClaim(claim_id="Q1.C1", text="One.", quotes=("one",), options=("SUPPORTED", "NOT_IN_KEY")),
    TiedClaim(claim_id="Q1.C2", text="Two.", quotes=("two",), options=("SUPPORTED", "CONTRADICTED")),
)


def needs_review(claims: Sequence[FinalClaim]) -> bool:
    return bool(review_reasons(exchanges=(), readings=(), claims=(), rejected=(), final=claims, observations=()))


def judges(*labels: Label | None, claim_id: str = "Q1.C1") -> list[tuple[Verdict, ...]]:
    """One tuple of verdicts per judge; None is a judge that gave none."""
    return [(verdict(claim_id, label),) if label else () for label in labels]


def final(*labels: Label | None, settled: dict[str, Label] | None = None) -> FinalClaim:
    (one,) = conclude([claim()], judges(*labels), settled or {})
    return one


def decisions(**chosen: str) -> str:
    listed = [{"claim_id": f"Q1.{name}", "label": label, "notes": ""} for name, label in chosen.items()]
    return json.dumps({"decisions": listed})


def settled_by(*replies: str | Failed) -> tuple[JudgeAnswer[dict[str, Label]], ScriptedJudge]:
    made, judge = client(*replies)
    return asyncio.run(settle(made, TIES, SHOWN)), judge


@each_case("label", LABELS)
@each_case("count", [2, 3, 5])
def test_judges_that_agree_are_unanimous(label: Label, count: int) -> None:
    one = final(*[label] * count)
    assert (one.label, one.decided_by, one.labels_given) == (label, "unanimous", (label,) * count)


@each_case("labels", sorted(itertools.permutations(["SUPPORTED", "SUPPORTED", "CONTRADICTED"])))
def test_two_of_three_decide_whatever_their_order(labels: tuple[Label, ...]) -> None:
    one = final(*labels)
    assert (one.label, one.decided_by, one.severity) == ("SUPPORTED", "majority", "none")
    assert not tied([shown()], judges(*labels))


def test_two_judges_that_disagree_are_a_tie() -> None:
    (tie,) = tied([shown("Q1.C1", "my words")], judges("CONTRADICTED", "SUPPORTED"))
    assert tie.options == ("SUPPORTED", "CONTRADICTED")
    assert (tie.claim_id, tie.quotes) == ("Q1.C1", ("my words",))
    one = final("CONTRADICTED", "SUPPORTED")
    assert (one.label, one.decided_by, one.evidence, one.severity) == (None, "unresolved", (), "none")


def test_only_labels_that_were_given_are_offered() -> None:
    assert tied([shown()], judges(*LABELS))[0].options == LABELS
    four: tuple[Label, ...] = ("SUPPORTED", "NOT_IN_KEY", "SUPPORTED", "NOT_IN_KEY")
    assert tied([shown()], judges(*four))[0].options == ("SUPPORTED", "NOT_IN_KEY")


def test_the_most_votes_are_no_majority_unless_they_are_more_than_half() -> None:
    plurality: tuple[Label, ...] = ("SUPPORTED", "SUPPORTED", "CONTRADICTED", "NOT_IN_KEY")
    assert tied([shown()], judges(*plurality))[0].options == LABELS
    assert final(*plurality).decided_by == "unresolved"
    assert final("SUPPORTED", "SUPPORTED", None).decided_by == "majority", "a missing judge did not agree"


def test_a_settled_tie_gets_the_adjudicators_label() -> None:
    one = final("CONTRADICTED", "SUPPORTED", settled={"Q1.C1": "CONTRADICTED"})
    assert (one.label, one.decided_by, one.evidence, one.severity) == ("CONTRADICTED", "adjudicator", ("F1",), "medium")
    assert one.labels_given == ("CONTRADICTED", "SUPPORTED")


def test_the_adjudicator_cannot_overrule_a_majority() -> None:
    one = final("SUPPORTED", "SUPPORTED", "CONTRADICTED", settled={"Q1.C1": "CONTRADICTED"})
    assert (one.label, one.decided_by) == ("SUPPORTED", "majority")


@each_case("labels", [(), ("SUPPORTED",), ("SUPPORTED", None), (None, None), (None, None, "SUPPORTED")])
def test_fewer_than_two_verdicts_leave_a_claim_unresolved(labels: tuple[Label | None, ...]) -> None:
    one = final(*labels)
    assert (one.label, one.decided_by, one.evidence) == (None, "unresolved", ())
    assert needs_review([one])
    assert tied([shown()], judges(*labels)) == ()
    assert disagreement([one]) is None


def test_with_one_of_three_judges_failing_the_other_two_decide() -> None:
    assert final("SUPPORTED", None, "SUPPORTED").label == "SUPPORTED"
    assert final("SUPPORTED", None, "CONTRADICTED").label is None
    assert len(tied([shown()], judges("SUPPORTED", None, "CONTRADICTED"))) == 1


def test_evidence_and_highest_severity_come_from_the_judges_that_gave_the_label() -> None:
    given_ = [
        (verdict(label="CONTRADICTED", evidence=["F2", "F1"], severity="low"),),
        (verdict(label="CONTRADICTED", evidence=["D1", "F1"], severity="high"),),
        (verdict(label="SUPPORTED", evidence=["F3"]),),
    ]
    (one,) = conclude([claim()], given_, {})
    assert (one.label, one.evidence, one.severity) == ("CONTRADICTED", ("F1",), "high")


def test_one_judge_alone_cannot_add_evidence_but_evidence_is_never_lost() -> None:
    (one,) = conclude([claim()], [(verdict(evidence=["F1"]),), (verdict(evidence=["F1", "F2", "F3"]),)], {})
    assert one.evidence == ("F1",)
    (other,) = conclude([claim()], [(verdict(evidence=["F1"]),), (verdict(evidence=["F2"]),)], {})
    assert other.evidence == ("F1", "F2")


def test_claims_that_cannot_be_checked_are_left_out() -> None:
    assert conclude([claim(verifiable=False)], [], {}) == ()
    claims = [claim("Q1.C1"), claim("Q2.C1")]
    assert [one.turn_id for one in conclude(claims, [], {})] == ["Q1", "Q2"]


def test_the_model_is_given_the_ties_with_their_options() -> None:
    answer, judge = settled_by(decisions(C1="NOT_IN_KEY", C2="CONTRADICTED"))
    assert answer == JudgeAnswer({"Q1.C1": "NOT_IN_KEY", "Q1.C2": "CONTRADICTED"})
    payload = judge.payload()
    AdjudicatorInput.model_validate_json(json.dumps(payload))
    assert (payload["plan_year"], payload["question"], payload["earlier_questions"]) == (
        2026,
        "What is Part B?",
        ["What is Part A?"],
    )
    assert payload["background_facts"] == [BACKGROUND.model_dump(mode="json")]
    assert judge.asked[0][1].response_schema == reply_schema(AdjudicatorReply, len(TIES))
    assert [one["options"] for one in payload["claims"]] == [["SUPPORTED", "NOT_IN_KEY"], ["SUPPORTED", "CONTRADICTED"]]


def test_a_label_no_verifier_gave_is_refused() -> None:
    answer, judge = settled_by(decisions(C1="CONTRADICTED", C2="SUPPORTED"), decisions(C1="SUPPORTED", C2="SUPPORTED"))
    assert judge.problems(1) == ["Q1.C1 must have one of the labels ['SUPPORTED', 'NOT_IN_KEY']"]
    assert answer == JudgeAnswer({"Q1.C1": "SUPPORTED", "Q1.C2": "SUPPORTED"})


def test_a_claim_that_is_not_tied_cannot_be_added() -> None:
    reply = decisions(C1="SUPPORTED", C2="SUPPORTED", C3="SUPPORTED")
    answer, judge = settled_by(reply, reply, reply)
    assert answer == JudgeAnswer({"Q1.C1": "SUPPORTED", "Q1.C2": "SUPPORTED"})
    assert judge.problems(1) == ["Q1.C3 is not one of the claims"]


def test_a_claim_decided_twice_in_one_answer_is_not_decided() -> None:
    one = {"claim_id": "Q1.C1", "label": "SUPPORTED"}
    two = {"claim_id": "Q1.C2", "label": "SUPPORTED"}
    twice = json.dumps({"decisions": [one, {**one, "label": "NOT_IN_KEY"}, two]})
    answer, _ = settled_by(twice, twice, twice)
    assert answer.value == {"Q1.C2": "SUPPORTED"}
    assert answer.failure is not None
    assert "Q1.C1 is in your answer more than once" in answer.failure


def test_a_tie_it_did_not_settle_stays_unresolved_with_a_reason() -> None:
    answer, judge = settled_by(decisions(C1="SUPPORTED"), "no JSON", Failed("timeout", error="slow"))
    assert answer == JudgeAnswer({"Q1.C1": "SUPPORTED"}, ("the call failed: timeout: slow",))
    assert judge.problems(1) == ["Q1.C2 is missing from your answer"]
    assert settled_by(Failed("permanent", error="no"))[0] == JudgeAnswer({}, ("the call failed: permanent: no",))


def agreed(count: int) -> list[FinalClaim]:
    return [final_claim(f"Q1.A{n}") for n in range(count)]


def divided(count: int, label: Label | None = "SUPPORTED") -> list[FinalClaim]:
    labels = ("SUPPORTED", "CONTRADICTED", "SUPPORTED")
    return [final_claim(f"Q1.B{n}", label, labels_given=labels) for n in range(count)]


@each_case(
    ("claims", "share", "review"),
    [
        ([], None, False),
        (agreed(5), 0.0, False),
        ([*agreed(4), *divided(1)], 0.2, False),
        ([*agreed(3), *divided(1)], 0.25, True),
        ([*agreed(79), *divided(20)], 0.20202, True),
        (divided(2), 1.0, True),
        ([*agreed(9), final_claim("Q1.C9", None, labels_given=("SUPPORTED",))], 0.0, True),
        ([*agreed(9), *divided(1, None)], 0.1, True),
    ],
)
def test_more_than_a_fifth_of_disagreement_or_one_unresolved_claim_needs_review(
    claims: Sequence[FinalClaim], share: float | None, review: bool
) -> None:
    assert disagreement(claims) == share
    assert needs_review(claims) is review


@given(st.lists(st.sampled_from([*LABELS, None]), max_size=6), st.sampled_from(LABELS))
def test_every_label_is_one_that_a_verifier_gave(labels: list[Label | None], choice: Label) -> None:
    ties = tied([shown()], judges(*labels))
    settled: dict[str, Label] = {tie.claim_id: choice for tie in ties if choice in tie.options}
    one = final(*labels, settled=settled)
    counts = Counter(label for label in labels if label)
    if counts.total() < 2:
        assert one.label is None
        return
    leaders = {label for label, count in counts.items() if 2 * count > counts.total()} or set(counts)
    assert set(ties[0].options if ties else [one.label]) == leaders
    assert one.label in leaders or (one.label is None and len(leaders) > 1 and not settled)
    assert (one.decided_by == "unanimous") == (len(counts) == 1 and None not in labels)
    concluded = AdjudicatorOutput(
        final_claims=(one,),
        final_scores=Scores(accuracy=None, completeness=None, safety_risk=None, calibration=None),
        needs_manual_review=needs_review([one]),
    )
    assert AdjudicatorOutput.model_validate_json(concluded.model_dump_json()) == concluded


@given(st.permutations(["SUPPORTED", "SUPPORTED", "CONTRADICTED", "NOT_IN_KEY", "SUPPORTED"]))
def test_the_order_of_judges_does_not_change_the_label(labels: list[Label]) -> None:
    assert final(*labels).label == "SUPPORTED"
