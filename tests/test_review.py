"""Why a trial needs manual review: each reason alone, none, several, and what a run records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import src as me
from src.schemas import (
    Claim,
    Exchange,
    FinalClaim,
    Label,
    MarkedPassage,
    Observation,
    ObservationKind,
    RejectedClaim,
    ReviewReason,
    TurnObservation,
    TurnReading,
)
from src.scoring.review import review_reasons
from tests.cases import each_case
from tests.helpers import claim, final_claim
from tests.test_readings import SAID, fakes_say, scenario_file

LONG = "word " * 21
SHORT = "word " * 20


def exchange(reply: str = SHORT, turn_id: str = "Q1") -> Exchange:
    return Exchange(
        turn_id=turn_id,
        question_group=None,
        user_message="?",
        outcome="answered",
        reply=reply,
        detail=None,
        served_model=None,
    )


def reading(turn_id: str = "Q1", **fields: Any) -> TurnReading:
    return TurnReading(turn_id=turn_id, **{"how": "judges", "sentences": 10, "covered": 10, **fields})


def rejected(number: int) -> list[RejectedClaim]:
    return [RejectedClaim(turn_id="Q1", text="x", reason="its quote is not in the reply")] * number


def claims(number: int, turn_id: str = "Q1", *, verifiable: bool = True) -> list[Claim]:
    return [claim(f"{turn_id}.C{n}", verifiable=verifiable) for n in range(1, number + 1)]


def judged(*labels: Sequence[Label]) -> list[FinalClaim]:
    """One final claim for each pair of labels that two verifiers gave; the first is final."""
    return [final_claim(f"Q1.C{n}", pair[0], labels_given=tuple(pair)) for n, pair in enumerate(labels, 1)]


AGREED: tuple[Label, Label] = ("SUPPORTED", "SUPPORTED")
SPLIT: tuple[Label, Label] = ("SUPPORTED", "NOT_IN_KEY")


def observed(kind: ObservationKind, turn_id: str = "Q1") -> TurnObservation:
    return TurnObservation(turn_id=turn_id, observation=Observation(kind=kind, quote="x"))


def reasons(**changes: Any) -> tuple[ReviewReason, ...]:
    """Of a trial with one short reply, ten claims and two verifiers who agree on each, or with something changed."""
    fields: dict[str, Any] = {
        "exchanges": [exchange()],
        "readings": [reading()],
        "claims": claims(10),
        "rejected": [],
        "final": judged(*[AGREED] * 10),
        "observations": [],
    }
    return review_reasons(**{**fields, **changes})


def only(**changes: Any) -> ReviewReason:
    (reason,) = reasons(**changes)
    return reason


def test_a_trial_that_all_agree_on_needs_no_review() -> None:
    assert reasons() == ()
    assert reasons(claims=[], final=[], readings=[reading(sentences=0, covered=0)]) == ()


MARKED = (MarkedPassage(start=0, end=4, why="says how the text is to be taken"),)


def test_a_reply_that_addresses_the_judge() -> None:
    found = only(readings=[reading(), reading("Q2", marked=MARKED), reading("Q3", marked=MARKED * 2)])
    assert (found.kind, found.turn_ids, found.claim_ids) == ("judged_apart", ("Q2", "Q3"), ())
    assert found.detail == (
        "3 passages judged apart from the rest of the reply. The screen found: says how the text is to be taken."
    )


@each_case("nothing", [[], claims(2, verifiable=False)])
def test_a_long_reply_in_which_nothing_was_found_to_check(nothing: list[Claim]) -> None:
    found = only(exchanges=[exchange(LONG)], claims=nothing, final=[])
    assert (found.kind, found.turn_ids) == ("nothing_extracted", ("Q1",))
    assert found.detail == "The extractor found no checkable claim in a reply of more than 20 words."
    assert reasons(exchanges=[exchange(SHORT)], claims=nothing, final=[]) == (), "20 words are not long"


def test_a_claim_in_one_reply_does_not_excuse_another() -> None:
    both = [exchange(LONG, "Q1"), exchange(LONG, "Q2"), exchange(LONG, "Q3")]
    found = only(exchanges=both, readings=[reading("Q1"), reading("Q2"), reading("Q3")])
    assert (found.kind, found.turn_ids) == ("nothing_extracted", ("Q2", "Q3"))


@each_case(("kind", "excused"), [("refusal", True), ("referral", True), ("hedge", False)])
def test_a_reply_that_refuses_or_refers_may_be_empty_of_claims(kind: ObservationKind, excused: bool) -> None:
    found = reasons(exchanges=[exchange(LONG)], claims=[], final=[], observations=[observed(kind)])
    assert [one.kind for one in found] == ([] if excused else ["nothing_extracted"])


def test_a_reply_that_no_judge_read_is_not_one_in_which_nothing_was_found() -> None:
    assert reasons(exchanges=[exchange(LONG)], readings=[], claims=[], final=[]) == ()


def test_claims_that_cover_too_few_sentences() -> None:
    low = [reading("Q1", covered=7), reading("Q2", covered=8), reading("Q3", sentences=4, covered=3)]
    found = only(readings=low)
    assert (found.kind, found.turn_ids) == ("low_coverage", ("Q1", "Q3"))
    assert found.detail == "Claims cover only 10 of 14 factual sentences of these replies."
    assert reasons(readings=[reading(covered=8)]) == (), "eight of ten are enough"


def test_too_many_claims_without_a_quote() -> None:
    found = only(claims=claims(7), final=judged(*[AGREED] * 7), rejected=rejected(2))
    assert (found.kind, found.turn_ids) == ("rejected_claims", ("Q1",))
    assert found.detail == "2 of 9 extracted claims were rejected: their quotes do not support them."
    assert reasons(claims=claims(8), final=judged(*[AGREED] * 8), rejected=rejected(2)) == (), "a fifth is allowed"


def test_verifiers_that_disagree_on_too_many_claims() -> None:
    found = only(final=judged(*[AGREED] * 7, *[SPLIT] * 3))
    assert (found.kind, found.claim_ids) == ("judges_disagree", ("Q1.C8", "Q1.C9", "Q1.C10"))
    assert found.detail == "The verifiers disagree on 30% of the claims; more than 20% needs review."
    assert reasons(final=judged(*[AGREED] * 8, *[SPLIT] * 2)) == (), "a fifth is allowed"


@each_case(("left", "detail"), [(1, "1 claim has no final label."), (2, "2 claims have no final label.")])
def test_claims_left_without_a_label(left: int, detail: str) -> None:
    open_ = [final_claim(f"Q1.C{n}", None) for n in range(9, 9 + left)]
    found = only(final=[*judged(*[AGREED] * 8), *open_])
    assert (found.kind, found.detail) == ("open_claims", detail)
    assert found.claim_ids == tuple(one.claim_id for one in open_)


def test_several_reasons_are_all_given_in_a_fixed_order() -> None:
    found = reasons(
        exchanges=[exchange(LONG, "Q1"), exchange(LONG, "Q2"), exchange(LONG, "Q3")],
        readings=[reading("Q1", covered=1), reading("Q2", marked=MARKED), reading("Q3")],
        claims=claims(2),
        rejected=rejected(3),
        final=[*judged(SPLIT), final_claim("Q1.C2", None)],
    )
    assert [one.kind for one in found] == [
        "judged_apart",
        "nothing_extracted",
        "low_coverage",
        "rejected_claims",
        "judges_disagree",
        "open_claims",
    ]


def test_a_run_records_the_reasons_it_asks_for_review_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fakes_say(tmp_path / "fakes", SAID, monkeypatch)
    targets = [f"fake:{name}" for name in SAID]
    run = me.run(scenarios=[str(scenario_file(tmp_path))], targets=targets, out=tmp_path / "runs")
    found = {trial.target.model: trial for trial in run.trials()}
    for trial in found.values():
        assert trial.review_reasons is not None
        assert trial.needs_manual_review == bool(trial.review_reasons)
        assert trial.review_reasons == review_reasons(
            exchanges=trial.conversation,
            readings=trial.readings,
            claims=trial.claims,
            rejected=trial.rejected_claims,
            final=trial.final_claims,
            observations=trial.observations,
        )
    kinds = {name: [one.kind for one in trial.review_reasons or ()] for name, trial in found.items()}
    assert "judged_apart" in kinds["wrong"]
    assert (kinds["careful"], kinds["evasive"]) == ([], [])
