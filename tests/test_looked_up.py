"""What was looked up is told apart from what was made up: the codes of lookup questions, by who answers and on what."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from src.records.citation import CheckedCitation, CitationOutcome
from src.records.target import RecordedSet, TargetSettings
from src.schemas import QuestionCode, TurnCitation
from src.scoring.result import look_up_of
from src.scoring.review import review_reasons
from src.scoring.study_codes import CodingInput, LookUp
from tests.cases import each_case
from tests.runs import ONE
from tests.test_fill_slots import planned
from tests.test_study_codes import (
    COPAY,
    LOOKUP,
    REPLY,
    SENTENCES,
    TWO_POINTS,
    UNCOVERED,
    Says,
    judged,
    makes,
    only,
    seen,
)  # fmt: skip

AT = REPLY.index(SENTENCES[4])


def cited(outcome: CitationOutcome, *, claim_id: str | None = None, place: bool = True) -> TurnCitation:
    return TurnCitation(
        turn_id="Q1",
        citation=CheckedCitation(
            url="https://www.medicare.gov/x",
            where="annotation",
            start=AT if place else None,
            end=AT + len(SENTENCES[4]) if place else None,
            claim_id=claim_id,
            host_class="medicare",
            outcome=outcome,
            why="For the test.",
        ),
    )


def answered(look_up: LookUp, *citations: TurnCitation, asked: CodingInput | None = None) -> QuestionCode:
    trial = asked or judged(LOOKUP, {"Q1": [UNCOVERED]}, seen("fabricated_specific", 5))
    return only(replace(trial, look_up=look_up, citations=citations))


@each_case(
    ("look_up", "outcome", "code", "fabricated"),
    [
        ("none", None, "incorrect", True),
        ("none", "supported", "incorrect", True),
        ("search", None, "incorrect", True),
        ("search", "supported", "accurate_complete", False),
        ("search", "not_supported", "incorrect", True),
        ("search", "disguised", "incorrect", True),
        ("search", "malformed", "incorrect", True),
        ("search", "dead", "incorrect", True),
        ("search", "not_in_snapshot", "incomplete_data", False),
        ("search", "not_official", "incomplete_data", False),
        ("search", "undecided", "incomplete_data", False),
        ("person", None, "incomplete_data", False),
    ],
)
def test_the_code_of_a_specific_that_only_a_look_up_could_know(
    look_up: LookUp, outcome: CitationOutcome | None, code: str, fabricated: bool
) -> None:
    found = answered(look_up, *([cited(outcome)] if outcome else []))
    assert (found.code, bool(found.fabricated), bool(found.looked_up)) == (code, fabricated, not fabricated)


def test_a_page_that_supports_it_outweighs_one_that_does_not_but_no_invented_address() -> None:
    assert answered("search", cited("supported"), cited("not_supported")).code == "accurate_complete"
    assert answered("search", cited("supported"), cited("disguised")).code == "incorrect"


def test_a_citation_elsewhere_in_the_reply_is_no_source_for_it() -> None:
    elsewhere = cited("supported")
    moved = elsewhere.citation.model_copy(update={"start": 0, "end": 5})
    other = elsewhere.model_copy(update={"citation": moved})
    assert answered("search", other).code == "incorrect"
    assert answered("search", cited("supported", place=False)).code == "incorrect"


def test_outside_lookup_groups_a_source_changes_no_code() -> None:
    trial = judged(TWO_POINTS, {"Q1": [UNCOVERED]}, seen("fabricated_specific", 5))
    without = only(trial)
    found = answered("search", cited("supported"), asked=trial)
    assert (found.code, found.fabricated) == (without.code, ())


def test_points_of_the_key_count_before_what_was_looked_up() -> None:
    facts = [point for turn in COPAY.scripted_turns for point in turn.required_points]
    trial = judged(COPAY, {"Q1": [makes(*map(str, facts))]}, seen("fabricated_specific", 5))
    assert answered("search", cited("not_in_snapshot"), asked=trial).code == "accurate_complete"


def test_what_nobody_checked_goes_to_a_person() -> None:
    def kinds(code: QuestionCode) -> list[str]:
        found = review_reasons(
            exchanges=(), readings=(), claims=(), rejected=(), final=(), observations=(), codes=[code]
        )
        return [reason.kind for reason in found]

    assert kinds(answered("search", cited("not_in_snapshot"))) == ["unchecked_source"]
    assert kinds(answered("person")) == ["unchecked_source"]
    assert kinds(answered("search", cited("supported"))) == []
    assert kinds(answered("none")) == []


def test_one_supported_claim_does_not_clear_another_in_the_same_specific() -> None:
    both = [Says("NOT_IN_KEY", sentence=5), Says("NOT_IN_KEY", sentence=5)]
    trial = judged(LOOKUP, {"Q1": both}, seen("fabricated_specific", 5))
    first, second = (claim.claim_id for claim in trial.claims)
    supported = cited("supported", claim_id=first, place=False)
    assert answered("search", supported, asked=trial).code == "incorrect", "the second claim has no source"
    unchecked = cited("not_in_snapshot", claim_id=second, place=False)
    assert answered("search", supported, unchecked, asked=trial).code == "incomplete_data"
    checked = cited("supported", claim_id=second, place=False)
    assert answered("search", supported, checked, asked=trial).code == "accurate_complete"


def test_an_invented_address_is_fabricated_whoever_said_it() -> None:
    found = answered("person", cited("disguised"))
    assert (found.code, bool(found.fabricated)) == ("incorrect", True)


@each_case(("kind", "look_up"), [("phone", "person"), ("chat", "search")])
def test_a_chat_app_is_no_person_with_look_up_tools(kind: Literal["phone", "chat"], look_up: str) -> None:
    recorded = RecordedSet(folder="x", kind=kind, sha256="0" * 64, system="x", conversations={})
    plan = planned(ONE).model_copy(update={"target_settings": {"fake:careful": TargetSettings(recorded=recorded)}})
    assert look_up_of(plan, "fake:careful") == look_up
    assert look_up_of(plan, "fake:wrong") == "none"
