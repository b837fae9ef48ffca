"""Study codes: each step of the rule, what can never change a code, and the shipped rubric against the study."""

from __future__ import annotations

import csv
import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st

from src.planning.rubrics import load_rubric
from src.planning.scenario_files import read_scenarios
from src.schemas import (
    Claim,
    Exchange,
    FinalClaim,
    JudgeFailure,
    Label,
    Observation,
    ObservationKind,
    QuestionCode,
    QuoteSpan,
    Rubric,
    Scenario,
    Severity,
    Stage,
    StudyCode,
    TurnObservation,
    TurnOutcome,
    point_name,
)
from src.scoring.points import owed_points
from src.scoring.result import failed
from src.scoring.study_codes import CodingInput, closed_answer, study_codes
from tests.cases import each_case
from tests.helpers import ROOT, fact_json, scenario

RUBRIC = load_rubric("v1").rubric
SENTENCES = tuple(f"Sentence number {n} stands here." for n in range(1, 10))
REPLY = " ".join(SENTENCES)
FACTS = tuple(f"F{n}" for n in range(1, 8))
RANK = {"incorrect": 0, "not_substantive": 0, "accurate_incomplete": 1, "accurate_complete": 2}


@dataclass(frozen=True)
class Says:
    """A claim with its verdict; it quotes the sentence of that number."""

    label: Label | None = "SUPPORTED"
    evidence: tuple[str, ...] = ()
    severity: Severity = "none"
    sentence: int = 1


def makes(*facts: str, sentence: int = 1) -> Says:
    return Says("SUPPORTED", facts, sentence=sentence)


def wrong(severity: Severity = "medium", *facts: str, sentence: int = 1) -> Says:
    return Says("CONTRADICTED", facts or ("F7",), severity, sentence)


OPEN_CLAIM = Says(None)
UNCOVERED = Says("NOT_IN_KEY")


def seen(kind: ObservationKind, sentence: int = 1, turn_id: str = "Q1") -> TurnObservation:
    return TurnObservation(turn_id=turn_id, observation=Observation(kind=kind, quote=SENTENCES[sentence - 1]))


def turn(
    turn_id: str = "Q1",
    group: str | None = None,
    points: Sequence[object] = (),
    partial: Sequence[str] = (),
    **more: Any,
) -> dict[str, Any]:
    return {
        "turn_id": turn_id,
        "user_message": "What then?",
        "question_group": group,
        "required_points": list(points),
        "partial_points": list(partial),
        **more,
    }


def asking(*turns: dict[str, Any], required: Sequence[object] = ()) -> Scenario:
    key = {
        "canonical_facts": [fact_json(fact) for fact in FACTS],
        "required_points": list(required),
        "disallowed_claims": ["Promising a price"],
    }
    return scenario(scripted_turns=list(turns), answer_key=key)


def judged(
    asked: Scenario,
    says: Mapping[str, Sequence[Says]] | None = None,
    *observed: TurnObservation,
    outcomes: Mapping[str, TurnOutcome] | None = None,
    failures: Sequence[JudgeFailure] = (),
    replies: Mapping[str, str] | None = None,
    rubric: Rubric = RUBRIC,
) -> CodingInput:
    """A trial in which every turn got the same nine sentences for a reply, unless told otherwise."""
    happened: dict[str, TurnOutcome] = {one.turn_id: "answered" for one in asked.scripted_turns}
    happened.update(outcomes or {})
    exchanges = [
        Exchange(
            turn_id=one.turn_id,
            question_group=one.question_group,
            user_message="What then?",
            outcome=happened[one.turn_id],
            reply=(replies or {}).get(one.turn_id, REPLY) if happened[one.turn_id] == "answered" else None,
            detail=None,
            served_model=None,
        )
        for one in asked.scripted_turns
    ]
    claims, final = [], []
    for turn_id, said in (says or {}).items():
        for number, one in enumerate(said, 1):
            claim, concluded = claimed(f"{turn_id}.C{number}", turn_id, one)
            claims.append(claim)
            final.append(concluded)
    return CodingInput(
        scenario=asked,
        rubric=rubric,
        exchanges=exchanges,
        claims=claims,
        final=final,
        observations=observed,
        failures=failures,
    )


def claimed(claim_id: str, turn_id: str, one: Says) -> tuple[Claim, FinalClaim]:
    text = SENTENCES[one.sentence - 1]
    start = REPLY.index(text)
    claim = Claim(
        claim_id=claim_id,
        text=text,
        type="factual",
        confidence="high",
        verifiable=True,
        quote_spans=(QuoteSpan(start=start, end=start + len(text)),),
        turn_id=turn_id,
    )
    concluded = FinalClaim(
        claim_id=claim_id,
        turn_id=turn_id,
        text=text,
        label=one.label,
        evidence=one.evidence,
        severity=one.severity,
        decided_by="unanimous" if one.label else "unresolved",
        labels_given=(),
    )
    return claim, concluded


def only(trial: CodingInput) -> QuestionCode:
    (code,) = study_codes(trial)
    return code


def by_group(trial: CodingInput) -> dict[str, QuestionCode]:
    return {code.question_group: code for code in study_codes(trial)}


def with_rule(group: str, **changes: Any) -> Rubric:
    rule = RUBRIC.rule(group).model_copy(update=changes)
    return RUBRIC.model_copy(update={"groups": {**RUBRIC.groups, group: rule}})


TWO_POINTS = asking(turn(points=["F1", "F2"]))
BOTH_MADE = [makes("F1", sentence=1), makes("F2", sentence=2)]
NETWORK = asking(turn(group="g14", points=["F1"], partial=["F2"]))
COPAY = asking(turn(group="g17", points=["F1"], partial=["F2"]))
STRICT = {group: with_rule(group, fabricated="incorrect") for group in ("g17", "g20")}
"""Rules under which a fabricated specific makes even a full answer incorrect."""
LOOKUP = asking(turn(group="lookup-doctor"))
STATIN = asking(
    turn("Q14", "g20", ["F1"]), turn("Q14b", "g20", ["F2"], condition={"unless_last_reply_mentions": ["generic"]})
)


# 1. A turn that was not answered, or a judge that failed


@each_case("outcome", sorted(set(get_args(TurnOutcome)) - {"answered", "refused", "skipped"}))
def test_a_turn_without_an_answer_cannot_be_coded(outcome: TurnOutcome) -> None:
    code = only(judged(TWO_POINTS, outcomes={"Q1": outcome}))
    assert code.code == "incomplete_data"
    assert code.reason == f"Not answered: Q1 {outcome.replace('_', ' ')}."
    assert code.points_missed == ("F1", "F2")


def test_one_failed_turn_leaves_its_whole_group_without_a_code() -> None:
    trial = judged(STATIN, {"Q14": BOTH_MADE}, outcomes={"Q14b": "timeout"})
    assert only(trial).code == "incomplete_data"


def test_a_failed_turn_outweighs_even_a_material_contradiction() -> None:
    trial = judged(STATIN, {"Q14": [wrong("high")]}, outcomes={"Q14b": "timeout"})
    code = only(trial)
    assert code.code == "incomplete_data"
    assert [backing.claim_id for backing in code.wrong] == ["Q14.C1"]


@each_case("stage", ["extractor", "verifier", "scorer", "adjudicator"])
def test_a_judge_that_failed_on_the_turn_leaves_no_code(stage: Stage) -> None:
    code = only(judged(TWO_POINTS, {"Q1": BOTH_MADE}, failures=[failed(stage, "Q1", 1, (), "timed out")]))
    assert (code.code, code.reason) == ("incomplete_data", f"The {stage} failed on Q1.")


def test_a_judge_that_failed_elsewhere_or_on_single_claims_does_not_matter() -> None:
    failures = [failed("verifier", "Q9", 1, (), "timed out"), failed("verifier", "Q1", 1, ("Q1.C1",), "no verdict")]
    assert only(judged(TWO_POINTS, {"Q1": BOTH_MADE}, failures=failures)).code == "accurate_complete"


def test_a_questioner_that_failed_leaves_every_group_without_a_code() -> None:
    asked = asking(turn("Q1", None, ["F1"]), turn("Q2", "g14", ["F2"]), turn("Q3", "g2"))
    trial = replace(judged(asked, failures=[failed("questioner", "-", 0, (), "changed a figure")]), exchanges=())
    codes = by_group(trial)
    assert list(codes) == ["Q1", "g14", "g2"]
    assert {code.code for code in codes.values()} == {"incomplete_data"}
    assert {code.answer for code in codes.values()} == {None}
    assert codes["g14"].reason == "Not answered: Q2 not asked."


def test_a_failure_of_no_turn_is_one_of_every_turn() -> None:
    code = only(judged(TWO_POINTS, {"Q1": BOTH_MADE}, failures=[failed("questioner", "-", 0, (), "changed a figure")]))
    assert (code.code, code.reason) == ("incomplete_data", "The questioner failed on -.")


# 2. Material contradictions


@each_case(("severity", "code"), [("low", "accurate_complete"), ("medium", "incorrect"), ("high", "incorrect")])
def test_a_wrong_detail_counts_from_medium_on(severity: Severity, code: StudyCode) -> None:
    found = only(judged(TWO_POINTS, {"Q1": [*BOTH_MADE, wrong(severity, "F3")]}))
    assert found.code == code
    assert [backing.claim_id for backing in (found.minor if severity == "low" else found.wrong)] == ["Q1.C3"]
    assert bool(found.wrong) != bool(found.minor)


@each_case(
    ("floor", "incorrect"), [("low", {"low", "medium", "high"}), ("medium", {"medium", "high"}), ("high", {"high"})]
)
def test_the_rule_says_how_grave_a_contradiction_must_be(floor: str, incorrect: set[str]) -> None:
    rubric = with_rule("g1", material_from=floor)
    asked = asking(turn(group="g1", points=["F1"]))
    severities: list[Severity] = ["low", "medium", "high"]
    found = {s for s in severities if only(judged(asked, {"Q1": [wrong(s)]}, rubric=rubric)).code == "incorrect"}
    assert found == incorrect


def test_low_contradictions_do_not_add_up() -> None:
    assert only(judged(TWO_POINTS, {"Q1": [*BOTH_MADE, *[wrong("low")] * 9]})).code == "accurate_complete"


def test_the_reason_of_an_incorrect_answer_cites_what_it_goes_against() -> None:
    code = only(judged(TWO_POINTS, {"Q1": [makes("F1"), wrong("high", "D1", "F3"), wrong("medium", "F3")]}))
    assert (code.code, code.reason) == ("incorrect", "2 claims materially wrong against D1, F3.")
    assert code.wrong[0].quotes == (SENTENCES[0],)
    assert [point.point for point in code.points_met] == ["F1"]


# 3. Fabricated specifics


@each_case(
    ("claim", "code"),
    [
        (makes("F1", sentence=3), "accurate_complete"),
        (makes("F7", sentence=3), "not_substantive"),
        (makes("F1", sentence=4), "incorrect"),
        (Says("NOT_IN_KEY", sentence=3), "incorrect"),
        (wrong("low", sentence=3), "incorrect"),
        (Says(None, sentence=3), "incorrect"),
    ],
)
def test_only_a_supported_claim_of_the_same_words_bears_a_specific_out(claim: Says, code: StudyCode) -> None:
    found = only(judged(COPAY, {"Q1": [claim]}, seen("fabricated_specific", 3), rubric=STRICT["g17"]))
    assert found.code == code
    assert found.fabricated == (() if code != "incorrect" else (SENTENCES[2],))


def test_a_specific_is_borne_out_only_if_the_greater_part_of_its_words_is() -> None:
    quote = f"{SENTENCES[2]} {SENTENCES[3]}"
    observed = TurnObservation(turn_id="Q1", observation=Observation(kind="fabricated_specific", quote=quote))
    half, both = [makes("F1", sentence=4)], [makes("F1", sentence=3), makes("F1", sentence=4)]
    assert only(judged(COPAY, {"Q1": half}, observed, rubric=STRICT["g17"])).code == "incorrect"
    assert only(judged(COPAY, {"Q1": both}, observed, rubric=STRICT["g17"])).code == "accurate_complete"
    assert only(judged(COPAY, {"Q1": half}, observed)).fabricated == (quote,)
    assert only(judged(COPAY, {"Q1": both}, observed)).fabricated == ()


def test_the_same_words_in_another_reply_bear_nothing_out() -> None:
    said = {"Q14b": [makes("F1", "F2", sentence=3)]}
    trial = judged(STATIN, said, seen("fabricated_specific", 3, "Q14"), rubric=STRICT["g20"])
    assert only(trial).code == "incorrect"


def test_outside_look_up_groups_a_fabricated_specific_is_only_noted() -> None:
    code = only(judged(TWO_POINTS, {"Q1": BOTH_MADE}, seen("fabricated_specific", 5)))
    assert (code.code, code.fabricated) == ("accurate_complete", (SENTENCES[4],))


@each_case("kind", ["refusal", "referral", "hedge"])
def test_no_other_observation_is_a_fabrication(kind: ObservationKind) -> None:
    code = only(judged(COPAY, {"Q1": [makes("F1")]}, seen(kind, 5)))
    assert (code.code, code.fabricated) == ("accurate_complete", ())


# 4. Claims the judges left open


def test_an_unresolved_claim_leaves_even_a_complete_answer_without_a_code() -> None:
    code = only(judged(TWO_POINTS, {"Q1": [*BOTH_MADE, OPEN_CLAIM]}))
    assert (code.code, code.reason) == ("incomplete_data", "The judges left Q1.C3 unresolved.")
    assert code.points_missed == ()


def test_a_material_contradiction_wins_over_an_unresolved_claim_and_a_minor_one_does_not() -> None:
    assert only(judged(TWO_POINTS, {"Q1": [OPEN_CLAIM, wrong("medium")]})).code == "incorrect"
    assert only(judged(TWO_POINTS, {"Q1": [OPEN_CLAIM, wrong("low")]})).code == "incomplete_data"


def test_a_fabricated_specific_wins_over_an_unresolved_claim_where_it_is_always_wrong() -> None:
    trial = judged(COPAY, {"Q1": [OPEN_CLAIM]}, seen("fabricated_specific", 5))
    assert only(replace(trial, rubric=STRICT["g17"])).code == "incorrect"
    assert only(trial).code == "incomplete_data", "the open claim may be the one that answers the question"


# 5 and 6. Points


def test_all_points_make_an_answer_complete_and_some_incomplete() -> None:
    complete = only(judged(TWO_POINTS, {"Q1": BOTH_MADE}))
    assert (complete.code, complete.reason) == ("accurate_complete", "All 2 points made, nothing materially wrong.")
    some = only(judged(TWO_POINTS, {"Q1": BOTH_MADE[:1]}))
    assert (some.code, some.reason) == ("accurate_incomplete", "1 of 2 points made; missing: F2.")
    assert [point.point for point in some.points_met] == ["F1"]
    assert some.points_met[0].claims[0].quotes == (SENTENCES[0],)


def test_one_claim_can_make_two_points() -> None:
    assert only(judged(TWO_POINTS, {"Q1": [makes("F1", "F2")]})).code == "accurate_complete"


@each_case("label", ["CONTRADICTED", "NOT_IN_KEY"])
def test_only_supported_claims_make_points(label: Label) -> None:
    said = Says(label, ("F1", "F2"), "low" if label == "CONTRADICTED" else "none")
    assert only(judged(TWO_POINTS, {"Q1": [said]})).code == "not_substantive"


@each_case("facts", [("F3",), ("F4",), ("F3", "F4")])
def test_any_fact_of_an_any_of_makes_the_one_point(facts: tuple[str, ...]) -> None:
    asked = asking(turn(points=["F1", {"any_of": ["F3", "F4"]}]))
    code = only(judged(asked, {"Q1": [makes("F1"), *map(makes, facts)]}))
    assert code.code == "accurate_complete"
    assert [(point.point, len(point.claims)) for point in code.points_met] == [("F1", 1), ("F3|F4", len(facts))]


def amounts(said: str, *cited: tuple[str, str]) -> CodingInput:
    """One answer to a question that needs two amounts (F1), as claims that are supported and cite F1 or F7."""
    key = {
        "canonical_facts": [fact_json("F1", "Part A costs $1,736 a stay, and Part B costs $202.90 a month."), fact_json("F7")],
        "required_points": [],
        "disallowed_claims": [],
    }  # fmt: skip
    asked = scenario(scripted_turns=[turn(points=["F1"])], answer_key=key)
    base = judged(asked, {"Q1": [makes(fact) for fact, _ in cited]}, replies={"Q1": said})
    spans = [QuoteSpan(start=said.index(quote), end=said.index(quote) + len(quote)) for _, quote in cited]
    claims = [claim.model_copy(update={"quote_spans": (span,)}) for claim, span in zip(base.claims, spans, strict=True)]
    return replace(base, claims=claims)


@each_case(
    ("said", "cited", "code"),
    [
        ("A stay is $1,736. Part B is $202.90.", [("F1", "A stay is $1,736."), ("F1", "Part B is $202.90.")], True),
        ("A stay is $1,736. Part B is $202.90.", [("F1", "A stay is $1,736.")], False),
        ("A stay is $1,736. Part B is $202.90.", [("F1", "A stay is $1,736."), ("F7", "Part B is $202.90.")], False),
        ("Part B is $2,434.80 a year, a stay $1,736.", [("F1", "Part B is $2,434.80 a year, a stay $1,736.")], True),
        ("You pay something for each.", [("F1", "You pay something for each.")], False),
    ],
)
def test_a_point_is_made_by_what_its_claims_say_together(said: str, cited: list[tuple[str, str]], code: bool) -> None:
    found = only(amounts(said, *cited))
    assert found.code == ("accurate_complete" if code else "not_substantive")
    assert found.points_missed == (() if code else ("F1",))
    backing = {backing.claim_id for point in found.points_met for backing in point.claims}
    assert backing == ({f"Q1.C{n}" for n in range(1, len(cited) + 1)} if code else set())


def test_points_of_a_group_are_made_in_its_own_turns_unless_its_rule_says_the_conversation() -> None:
    asked = asking(turn("Q1", "g1", ["F1"]), turn("Q2", "other", ["F2"]))
    said = {"Q1": [makes("F7")], "Q2": [makes("F1"), makes("F2")]}
    assert by_group(judged(asked, said))["g1"].code == "not_substantive"
    anywhere = with_rule("g1", points_from="conversation")
    codes = by_group(judged(asked, said, rubric=anywhere))
    assert (codes["g1"].code, codes["g1"].points_met[0].claims[0].claim_id) == ("accurate_complete", "Q2.C1")
    assert codes["other"].code == "accurate_complete"
    of_scores = RUBRIC.model_copy(update={"points_from": "question"})
    assert by_group(judged(asked, said, rubric=of_scores)) == by_group(judged(asked, said)), "that is of completeness"


def test_a_rubric_without_study_codes_gives_none() -> None:
    bare = load_rubric("v0.1").rubric
    assert not bare.study_codes
    trial = judged(asking(turn(group="g1", points=["F1"])), {"Q1": [makes("F1")]})
    assert study_codes(trial)
    assert study_codes(replace(trial, rubric=bare)) == ()


def test_a_partial_point_alone_is_incomplete_and_adds_nothing_to_a_complete_answer() -> None:
    alone = only(judged(COPAY, {"Q1": [makes("F2")]}))
    assert alone.code == "accurate_incomplete"
    assert alone.reason == "0 of 1 point made, and F2, which alone is not enough; missing: F1."
    assert ([point.point for point in alone.partial_points_met], alone.points_missed) == (["F2"], ("F1",))
    assert only(judged(COPAY, {"Q1": [makes("F1"), makes("F2")]})).code == "accurate_complete"


def test_a_group_with_partial_points_alone_is_never_complete() -> None:
    code = only(judged(asking(turn(group="g1", partial=["F2"])), {"Q1": [makes("F2")]}))
    assert (code.code, code.points_met, code.points_missed) == ("accurate_incomplete", (), ())


def test_where_there_is_no_incomplete_level_a_part_is_not_substantive() -> None:
    part = only(judged(NETWORK, {"Q1": [makes("F2")]}))
    assert part.code == "not_substantive"
    assert part.reason.endswith("and this question has no incomplete level.")
    assert only(judged(asking(turn(group="g14", points=["F1", "F2"])), {"Q1": [makes("F1")]})).code == "not_substantive"
    assert only(judged(NETWORK, {"Q1": [makes("F1")]})).code == "accurate_complete"
    assert only(judged(NETWORK, {"Q1": [wrong("high", "F1")]})).code == "incorrect"


# 7 and 8. No point made


@each_case("kind", ["refusal", "referral"])
def test_pointing_elsewhere_alone_is_not_substantive_in_the_study(kind: ObservationKind) -> None:
    for asked in (TWO_POINTS, COPAY, NETWORK):
        code = only(judged(asked, {"Q1": [UNCOVERED]}, seen(kind)))
        assert code.code == "not_substantive"
        assert code.reason == "Makes no point; declines, says it cannot know, or refers elsewhere."


def test_a_refused_turn_is_not_substantive() -> None:
    code = only(judged(TWO_POINTS, outcomes={"Q1": "refused"}))
    assert code.code == "not_substantive"
    assert code.reason == "Declined to answer."


def test_a_refused_turn_does_not_undo_the_points_of_another_of_its_group() -> None:
    trial = judged(STATIN, {"Q14": [makes("F1")]}, outcomes={"Q14b": "refused"})
    assert only(trial).code == "accurate_incomplete"


def test_an_answer_without_any_substance_is_not_substantive() -> None:
    for said in ([], [UNCOVERED], [makes("F7")], [wrong("low")]):
        code = only(judged(TWO_POINTS, {"Q1": said}, seen("hedge")))
        assert (code.code, code.reason) == ("not_substantive", "Makes no point of the key.")


@each_case(
    ("kind", "code"),
    [("referral", "accurate_complete"), ("refusal", "accurate_complete"), ("hedge", "accurate_complete")],
)
def test_where_nothing_can_be_known_saying_so_is_the_whole_answer(kind: ObservationKind, code: StudyCode) -> None:
    found = only(judged(LOOKUP, None, seen(kind)))
    assert (found.question_group, found.lookup_dependent, found.code) == ("lookup-doctor", True, code)


def test_a_specific_stated_where_nothing_can_be_known_is_incorrect_even_with_a_referral() -> None:
    trial = judged(LOOKUP, None, seen("fabricated_specific", 2), seen("referral", 3))
    assert only(trial).code == "incorrect"


def test_a_group_takes_its_own_rule_then_that_of_the_name_before_its_dash_then_the_default() -> None:
    assert RUBRIC.rule("g14") is RUBRIC.groups["g14"]
    assert RUBRIC.rule("lookup-doctor") is RUBRIC.rule("lookup-my-case") is RUBRIC.groups["lookup"]
    assert RUBRIC.rule("lookups") is RUBRIC.rule("Q1") is RUBRIC.rule("doctor-lookup") is RUBRIC.default


# Groups


def test_a_skipped_follow_up_leaves_its_point_to_the_first_reply() -> None:
    skipped: dict[str, TurnOutcome] = {"Q14b": "skipped"}
    both = only(judged(STATIN, {"Q14": BOTH_MADE}, outcomes=skipped))
    assert (both.code, both.turn_ids) == ("accurate_complete", ("Q14", "Q14b"))
    one = only(judged(STATIN, {"Q14": BOTH_MADE[:1]}, outcomes=skipped))
    assert (one.code, one.points_missed) == ("accurate_incomplete", ("F2",))


def test_points_of_a_group_may_be_made_in_any_of_its_turns() -> None:
    assert only(judged(STATIN, {"Q14": [makes("F2")], "Q14b": [makes("F1")]})).code == "accurate_complete"
    assert only(judged(STATIN, {"Q14": BOTH_MADE, "Q14b": [wrong("medium")]})).code == "incorrect"


def test_a_group_of_which_every_turn_was_skipped_has_no_code() -> None:
    asked = asking(turn("Q1", None, ["F1"]), turn("Q2", "g20", ["F2"], condition={"if_last_reply_mentions": ["x"]}))
    assert list(by_group(judged(asked, outcomes={"Q2": "skipped"}))) == ["Q1"]


def test_codes_follow_the_script_and_leave_out_turns_that_ask_for_nothing() -> None:
    asked = asking(
        turn("OPEN"), turn("Q9", "g9", ["F1"]), turn("Q1", "g1", ["F2"]), turn("Q2", None, ["F3"]), turn("X")
    )
    assert list(by_group(judged(asked))) == ["g9", "g1", "Q2"]


def test_a_turn_in_no_group_is_coded_under_its_own_id() -> None:
    code = only(judged(asking(turn("Q7", None, ["F1"])), {"Q7": [makes("F1")]}))
    assert (code.question_group, code.turn_ids, code.code) == ("Q7", ("Q7",), "accurate_complete")


# Closed questions


@each_case(
    ("reply", "answer"),
    [
        ("Yes, she can.", "yes"),
        ("No.", "no"),
        ("No, I’m sorry, yes would be a lie.", "no"),
        ("I'm not sure.", "unsure"),
        ("I’m not sure, but yes, perhaps.", "unsure"),
        ("I am unsure.", "unsure"),
        ("I don’t know.", "unsure"),
        ("It depends on the office.", "unsure"),
        ("No problem, yes.", "yes"),
        ("NO PROBLEM!", "yes"),
        ("No trouble at all.", "yes"),
        ("Sure, happy to.", "yes"),
        ("Sí, claro.", "yes"),
        ("¡Sí!", "yes"),
        ("Por supuesto, puedo ayudarle.", "yes"),
        ("Con gusto.", "yes"),
        ("No, lo siento, solo en inglés.", "no"),
        ("I can’t do that.", "no"),
        ("I cannot, I'm afraid.", "no"),
        ("I can answer in Spanish.", "yes"),
        ("It is English only, yes.", "no"),
        ("Help is not available in Spanish.", "no"),
        ("Help is available in **Spanish**.", "yes"),
        ("Yesterday I noted a nonsense assurance.", "unsure"),
        ("The casino has a piano.", "unsure"),
        ("", "unsure"),
    ],
)
def test_closed_answers(reply: str, answer: str) -> None:
    scale = RUBRIC.groups["g2"].closed
    assert scale is not None
    assert closed_answer(reply, scale) == answer
    code = only(judged(asking(turn(group="g2")), replies={"Q1": reply}))
    assert (code.code, code.answer) == (None, answer)
    assert code.reason == f"Recorded as {answer}; outside the four levels."


def test_a_closed_question_without_an_answer_has_neither_answer_nor_level() -> None:
    asked = asking(turn(group="g2"))
    code = only(judged(asked, outcomes={"Q1": "empty"}))
    assert (code.code, code.answer) == ("incomplete_data", None)
    code = only(judged(asked, failures=[failed("extractor", "Q1", 0, (), "timed out")]))
    assert (code.code, code.answer) == ("incomplete_data", None)


def test_a_closed_question_is_not_touched_by_what_else_is_claimed() -> None:
    code = only(judged(asking(turn(group="g2")), {"Q1": [wrong("high")]}, replies={"Q1": f"Yes. {REPLY}"}))
    assert (code.code, code.answer, code.wrong) == (None, "yes", ())


def test_a_closed_question_that_is_refused_is_unsure() -> None:
    assert only(judged(asking(turn(group="g2")), outcomes={"Q1": "refused"})).answer == "unsure"


# What can never change a code

GROUPS = st.sampled_from(["plain", "g1", "g14", "g20", "lookup-doctor"])
SENTENCE = st.integers(1, len(SENTENCES))
EVIDENCE = st.lists(st.sampled_from(FACTS), min_size=1, max_size=3, unique=True).map(tuple)
SUPPORTED = st.builds(Says, st.just("SUPPORTED"), EVIDENCE, st.just("none"), SENTENCE)
LOW = st.builds(Says, st.just("CONTRADICTED"), EVIDENCE, st.just("low"), SENTENCE)
MATERIAL = st.builds(Says, st.just("CONTRADICTED"), EVIDENCE, st.sampled_from(["medium", "high"]), SENTENCE)
NOT_COVERED = st.builds(Says, st.just("NOT_IN_KEY"), st.just(()), st.just("none"), SENTENCE)
UNRESOLVED = st.builds(Says, st.none(), st.just(()), st.just("none"), SENTENCE)
ANY = st.lists(SUPPORTED | LOW | MATERIAL | NOT_COVERED | UNRESOLVED, max_size=6)
HARMLESS = st.lists(SUPPORTED | LOW | NOT_COVERED, max_size=6)
SEEN = st.lists(st.builds(seen, st.sampled_from(get_args(ObservationKind)), SENTENCE, st.sampled_from(["A1", "A2"])))
EVASIVE = st.lists(st.builds(seen, st.sampled_from(["refusal", "referral", "hedge"]), SENTENCE, st.just("A1")))
OUTCOMES = st.fixed_dictionaries({"A2": st.sampled_from(["answered", "refused", "skipped", "timeout"])})


def two_turns(group: str) -> Scenario:
    """A group of two turns, between two turns of another."""
    return asking(
        turn("B1", "other", ["F1", "F6"]),
        turn("A1", group, ["F1", {"any_of": ["F3", "F4"]}], ["F5"]),
        turn("A2", group, ["F2"], condition={"unless_last_reply_mentions": ["x"]}),
        turn("B2", "other", ["F2"]),
    )


def said_in(
    first: Sequence[Says], second: Sequence[Says], outcomes: Mapping[str, TurnOutcome]
) -> dict[str, list[Says]]:
    return {"A1": [*first], "A2": [*second] if outcomes["A2"] == "answered" else []}


def heard(observed: Sequence[TurnObservation], outcomes: Mapping[str, TurnOutcome]) -> list[TurnObservation]:
    return [one for one in observed if outcomes.get(one.turn_id, "answered") == "answered"]


def without_order(record: Any) -> Any:
    """A dumped record with its lists sorted, and its sentences as bags of words."""
    if isinstance(record, dict):
        return {
            name: sorted(re.findall(r"[^\s,;]+", value.rstrip("."))) if name == "reason" else without_order(value)
            for name, value in record.items()
        }
    return sorted(map(without_order, record), key=json.dumps) if isinstance(record, list) else record


@given(GROUPS, ANY, ANY, SEEN, OUTCOMES, st.randoms(use_true_random=False))
def test_the_order_of_claims_and_observations_never_matters(
    group: str,
    first: list[Says],
    second: list[Says],
    observed: list[TurnObservation],
    outcomes: dict[str, TurnOutcome],
    source: random.Random,
) -> None:
    trial = judged(two_turns(group), said_in(first, second, outcomes), *heard(observed, outcomes), outcomes=outcomes)
    mixed = {name: list(getattr(trial, name)) for name in ("claims", "final", "observations")}
    for listed in mixed.values():
        source.shuffle(listed)
    before, after = study_codes(trial), study_codes(replace(trial, **mixed))  # type: ignore[arg-type]
    assert [code.code for code in before] == [code.code for code in after]
    assert [without_order(code.model_dump(mode="json")) for code in before] == [
        without_order(code.model_dump(mode="json")) for code in after
    ]


@given(GROUPS, ANY, ANY, MATERIAL, SEEN, OUTCOMES)
def test_a_material_contradiction_never_leaves_an_answer_right(
    group: str,
    first: list[Says],
    second: list[Says],
    gross: Says,
    observed: list[TurnObservation],
    outcomes: dict[str, TurnOutcome],
) -> None:
    said = said_in([*first, gross], second, outcomes)
    code = by_group(judged(two_turns(group), said, *heard(observed, outcomes), outcomes=outcomes))[group]
    assert code.code == ("incomplete_data" if outcomes["A2"] == "timeout" else "incorrect")


@given(st.sampled_from(["plain", "g1", "g14", "g20"]), HARMLESS, st.sampled_from(FACTS), SENTENCE, EVASIVE)
def test_making_another_point_never_makes_a_code_worse(
    group: str, said: list[Says], fact: str, sentence: int, observed: list[TurnObservation]
) -> None:
    before, after = (
        by_group(judged(two_turns(group), {"A1": claims}, *observed))[group]
        for claims in (said, [*said, makes(fact, sentence=sentence)])
    )
    assert before.code is not None
    assert after.code is not None
    assert RANK[after.code] >= RANK[before.code]
    assert set(after.points_missed) <= set(before.points_missed)


@given(GROUPS, ANY, ANY, SEEN, OUTCOMES, ANY, ANY, st.sampled_from(["answered", "refused", "timeout"]))
def test_what_is_said_elsewhere_never_changes_a_code(
    group: str,
    first: list[Says],
    second: list[Says],
    observed: list[TurnObservation],
    outcomes: dict[str, TurnOutcome],
    before_it: list[Says],
    after_it: list[Says],
    elsewhere: TurnOutcome,
) -> None:
    said, seen_here = said_in(first, second, outcomes), heard(observed, outcomes)
    alone = by_group(judged(two_turns(group), said, *seen_here, outcomes=outcomes))[group]
    crowded = judged(
        two_turns(group),
        {"B1": before_it, **said, "B2": after_it if elsewhere == "answered" else []},
        seen("fabricated_specific", 1, "B1"),
        *seen_here,
        seen("refusal", 2, "B1"),
        outcomes={**outcomes, "B2": elsewhere},
        failures=[failed("verifier", "B1", 1, (), "timed out")],
    )
    assert by_group(crowded)[group] == alone


@given(GROUPS, ANY, ANY, SEEN, OUTCOMES)
def test_points_met_and_missed_are_always_the_points_of_the_group(
    group: str, first: list[Says], second: list[Says], observed: list[TurnObservation], outcomes: dict[str, TurnOutcome]
) -> None:
    trial = judged(two_turns(group), said_in(first, second, outcomes), *heard(observed, outcomes), outcomes=outcomes)
    code = by_group(trial)[group]
    assert sorted([*(point.point for point in code.points_met), *code.points_missed]) == ["F1", "F2", "F3|F4"]
    assert code.code != "accurate_incomplete" or group != "g14"
    assert code.code != "accurate_complete" or not code.points_missed or group == "lookup-doctor"


# Points owed


def test_points_that_only_look_up_groups_ask_for_are_not_owed() -> None:
    asked = asking(
        turn("Q1", None, ["F1"]),
        turn("Q2", "g15", ["F1", "F2"]),
        turn("Q3", "lookup-doctor", ["F3"]),
        turn("Q4", "g1", [{"any_of": ["F3", "F4"]}]),
        required=["F1", "F2", "F3", "F5"],
    )
    assert [point_name(point) for point in owed_points(asked, RUBRIC)] == ["F1", "F3|F4"]


def test_without_look_up_groups_every_point_that_a_question_asks_for_is_owed() -> None:
    asked = asking(turn("Q1", "g1", ["F1"]), turn("Q2", None, ["F2"]), required=["F3"])
    assert asked.all_required_points() == ("F3", "F1", "F2")
    assert owed_points(asked, RUBRIC) == ("F1", "F2")


@given(st.lists(st.tuples(GROUPS, st.lists(st.sampled_from(FACTS), max_size=3, unique=True)), min_size=1, max_size=5))
def test_what_a_plain_group_asks_for_is_always_owed(asked_for: list[tuple[str, list[str]]]) -> None:
    asked = asking(*(turn(f"Q{n}", group, points) for n, (group, points) in enumerate(asked_for, 1)))
    plain = {point for group, points in asked_for for point in points if group in ("plain", "g1")}
    assert set(map(point_name, owed_points(asked, RUBRIC))) == plain


# The shipped rubric and the study


def baseline() -> dict[str, tuple[str, bool]]:
    """Group to scenario and lookup flag, as the published counts have them."""
    with (ROOT / "baseline" / "ship_2025.csv").open(encoding="utf-8", newline="") as file:
        return {f"g{row['group']}": (row["scenario"], row["lookup_dependent"] == "yes") for row in csv.DictReader(file)}


def test_the_rubric_has_every_group_of_the_study_with_its_scenario_and_look_up_flag() -> None:
    scored = {
        name: (rule.scenario, rule.lookup_dependent)
        for name, rule in RUBRIC.groups.items()
        if rule.study_group is not None and rule.closed is None
    }
    assert set(scored) == {f"g{number}" for number in (1, *range(3, 21))}
    assert scored == baseline()
    assert all(rule.study_group == int(name[1:]) for name, rule in RUBRIC.groups.items() if rule.study_group)


def test_only_the_network_question_has_no_incomplete_level() -> None:
    assert [name for name, rule in RUBRIC.groups.items() if not rule.incomplete_level] == ["g14"]
    assert RUBRIC.default.incomplete_level


def test_only_the_question_on_spanish_is_closed() -> None:
    assert [name for name, rule in RUBRIC.groups.items() if rule.closed] == ["g2"]


def test_in_the_study_a_referral_is_not_substantive_and_look_up_groups_count_fabrications() -> None:
    for name, rule in RUBRIC.groups.items():
        assert rule.material_from == "medium"
        strict = "incorrect" if name == "lookup" else "incorrect_unless_complete"
        assert rule.fabricated == (strict if rule.lookup_dependent else "noted")
        assert (rule.referral_alone == "accurate_complete") == (name == "lookup")


def test_each_study_scenario_asks_for_exactly_the_groups_the_rubric_gives_it() -> None:
    for file in read_scenarios([str(ROOT / "scenarios" / "v1" / "study")]):
        own = file.scenario.scenario_id
        asked = {one.question_group for one in file.scenario.scripted_turns if one.question_group}
        assert asked == {
            name for name, rule in RUBRIC.groups.items() if rule.study_group and rule.scenario in ("both", own)
        }


def test_no_shipped_question_for_which_a_referral_is_complete_has_points() -> None:
    for file in read_scenarios([str(ROOT / "scenarios" / "v1")]):
        for one in file.scenario.scripted_turns:
            if one.question_group and RUBRIC.rule(one.question_group).referral_alone == "accurate_complete":
                assert (one.required_points, one.partial_points) == ((), ())
