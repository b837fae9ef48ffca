"""The study's points beside our own, what is not material, unsure answers, and fabricated details of full answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import ValidationError

from src.errors import InputError
from src.planning.rubrics import check_study_points, load_rubric
from src.schemas import (
    Claim,
    Confidence,
    Exchange,
    FinalClaim,
    GroupRule,
    Label,
    Observation,
    PlannedScenario,
    QuestionCode,
    QuoteSpan,
    Rubric,
    Scenario,
    Severity,
    TurnObservation,
)
from src.scoring.points import AskedConversation, missing_points
from src.scoring.study_codes import CodingInput, study_codes
from tests.cases import each_case
from tests.helpers import ROOT, fact_json, scenario

RUBRIC = load_rubric("v1").rubric
PRICE = "B-part-b-premium"
POINTS = ("B-any-provider", "B-extra-benefits")


@dataclass(frozen=True)
class Says:
    """A sentence of the reply and how it was judged."""

    facts: Sequence[str]
    label: Label | None = "SUPPORTED"
    severity: Severity = "none"
    confidence: Confidence = "high"
    text: str = "This much is so."
    labels_given: tuple[Label, ...] = ()
    verbatim: bool = False


def wrong(*facts: str, severity: Severity = "medium") -> Says:
    return Says(facts, "CONTRADICTED", severity)


def unsure(*facts: str) -> Says:
    return Says(facts, confidence="low")


def fact(fact_id: str, library: str | None = None, statement: str = "It is so.") -> dict[str, Any]:
    return {**fact_json(fact_id, statement), "library": library}


def asked(
    group: str, facts: Sequence[dict[str, Any]], points: Sequence[object] = (), partial: Sequence[str] = ()
) -> Scenario:
    turn = {
        "turn_id": "Q1",
        "user_message": "What then?",
        "question_group": group,
        "required_points": list(points),
        "partial_points": list(partial),
    }
    key = {"canonical_facts": list(facts), "required_points": [], "disallowed_claims": ["Promising a price"]}
    return scenario(scripted_turns=[turn], answer_key=key)


def planned(one: Scenario, *left_out: str) -> PlannedScenario:
    return PlannedScenario(path="s.json", sha256="0" * 64, scenario=one, left_out=left_out)


def coding(one: Scenario, rubric: Rubric, *said: Says, guesses: Sequence[int] = ()) -> CodingInput:
    """A reply of one sentence for each claim, then one more for each guess that nothing supports."""
    sentences = [f"{number}. {claim.text}" for number, claim in enumerate(said, 1)]
    guessed = [f"Guess {number} is a long one." for number in guesses]
    reply = " ".join([*sentences, *guessed])
    claims, final = [], []
    for number, (claim, text) in enumerate(zip(said, sentences, strict=True), 1):
        at = reply.index(text)
        claims.append(
            Claim(
                claim_id=f"Q1.C{number}",
                text=text,
                type="factual",
                confidence=claim.confidence,
                verifiable=True,
                quote_spans=(QuoteSpan(start=at, end=at + len(text)),),
                turn_id="Q1",
                verbatim=claim.verbatim,
            )
        )
        final.append(
            FinalClaim(
                claim_id=f"Q1.C{number}",
                turn_id="Q1",
                text=text,
                label=claim.label,
                evidence=tuple(claim.facts),
                severity=claim.severity,
                decided_by="unanimous" if claim.label else "unresolved",
                labels_given=claim.labels_given,
            )
        )
    exchange = Exchange(
        turn_id="Q1",
        question_group=one.scripted_turns[0].question_group,
        user_message="What then?",
        outcome="answered",
        reply=reply or "Well.",
        detail=None,
        served_model=None,
    )
    observations = [
        TurnObservation(turn_id="Q1", observation=Observation(kind="fabricated_specific", quote=quote))
        for quote in guessed
    ]
    return CodingInput(
        scenario=one,
        rubric=rubric,
        exchanges=[exchange],
        claims=claims,
        final=final,
        observations=observations,
        failures=(),
    )


def coded(one: Scenario, rubric: Rubric, *said: Says, guesses: Sequence[int] = ()) -> QuestionCode:
    (code,) = study_codes(coding(one, rubric, *said, guesses=guesses))
    return code


def with_rule(**fields: Any) -> Rubric:
    """The shipped rubric with one more group, `mine`."""
    rule = GroupRule.model_validate_json(json.dumps({"topic": "Mine", "needs": "All of it.", **fields}))
    return RUBRIC.model_copy(update={"groups": {**RUBRIC.groups, "mine": rule}})


def study_points(*any_of: Sequence[str]) -> list[dict[str, object]]:
    return [{"name": f"Point {number}", "any_of": list(ids)} for number, ids in enumerate(any_of, 1)]


TWO = with_rule(study_points=study_points(["B-any-provider", "B-most-providers"], ["B-extra-benefits"]))
KEY = [fact("F1", "B-any-provider"), fact("F2", "B-extra-benefits"), fact("F3", "B-referrals"), fact("F4", PRICE)]
MINE = asked("mine", KEY, points=["F1", "F3"])


# The study's points and our own


def test_a_group_with_study_points_is_coded_by_them_and_by_our_own_as_a_second_set() -> None:
    code = coded(MINE, TWO, Says(["F1"]), Says(["F2"]))
    assert code.own is not None
    assert (code.code, code.own.code) == ("accurate_complete", "accurate_incomplete")
    assert [point.point for point in code.points_met] == ["F1", "F2"]
    assert ([point.point for point in code.own.points_met], code.own.points_missed) == (["F1"], ("F3",))
    other = coded(MINE, TWO, Says(["F1"]), Says(["F3"]))
    assert other.own is not None
    assert (other.code, other.own.code, other.points_missed) == ("accurate_incomplete", "accurate_complete", ("F2",))
    assert other.reason == "1 of 2 points made; missing: Point 2."


def test_an_answer_with_our_points_alone_is_not_substantive_in_the_study() -> None:
    code = coded(MINE, TWO, Says(["F3"]))
    assert code.own is not None
    assert (code.code, code.own.code) == ("not_substantive", "accurate_incomplete")


def test_facts_of_the_key_alone_make_a_study_point() -> None:
    one = asked("mine", [*KEY[1:], fact("F8", "B-most-providers"), fact("F9", statement="B-any-provider")])
    assert coded(one, TWO, Says(["F2"]), Says(["F9"])).code == "accurate_incomplete"
    assert coded(one, TWO, Says(["F2"]), Says(["F8"])).code == "accurate_complete"


def test_a_study_point_needs_the_figures_of_its_fact_like_any_other() -> None:
    rubric = with_rule(study_points=study_points([PRICE]))
    one = asked("mine", [fact("F4", PRICE, "The Part B premium is $202.90 a month.")])
    assert coded(one, rubric, Says(["F4"], text="There is a premium.")).code == "not_substantive"
    assert coded(one, rubric, Says(["F4"], text="The premium is $202.90 a month.")).code == "accurate_complete"


def test_both_sets_are_held_to_the_same_errors() -> None:
    code = coded(MINE, TWO, Says(["F1"]), Says(["F2"]), Says(["F3"]), wrong("D1"))
    assert code.own is not None
    assert (code.code, code.own.code) == ("incorrect", "incorrect")
    unresolved = coded(MINE, TWO, Says(["F1"]), Says([], None))
    assert unresolved.own is not None
    assert (unresolved.code, unresolved.own.code) == ("incomplete_data", "incomplete_data")


def test_a_group_without_study_points_has_one_set_and_says_nothing_of_a_second() -> None:
    code = coded(asked("g1", KEY, points=["F1"]), RUBRIC, Says(["F1"]))
    assert code.own is None
    assert "own" not in json.loads(code.model_dump_json())


def test_completeness_goes_by_our_own_points() -> None:
    made = coding(MINE, TWO, Says(["F1"]), Says(["F2"]))
    talk = AskedConversation(made.scenario, made.rubric, made.exchanges, made.claims)
    assert missing_points(talk, made.final) == ("F3",)


# Partial answers


def test_a_partial_fact_of_the_study_makes_an_answer_incomplete_and_never_complete() -> None:
    rubric = with_rule(study_points=study_points(["B-any-provider"]), study_partial=["B-referrals", "B-not-in-key"])
    one = asked("mine", KEY, partial=["F4"])
    alone = coded(one, rubric, Says(["F3"]))
    assert (alone.code, [point.point for point in alone.partial_points_met]) == ("accurate_incomplete", ["F3"])
    assert coded(one, rubric, Says(["F4"])).code == "not_substantive", "our partial points are not the study's"
    without = with_rule(study_partial=["B-referrals"])
    both = asked("mine", KEY, points=["F1"], partial=["F4"])
    assert [coded(both, without, Says([name])).code for name in ("F3", "F4")] == ["accurate_incomplete"] * 2


# Materiality


def test_a_contradiction_that_does_not_bear_on_the_decision_is_minor() -> None:
    rubric = with_rule(study_points=study_points(["B-any-provider"]), not_material=[PRICE])
    code = coded(MINE, rubric, Says(["F1"]), wrong("F4"))
    assert (code.code, code.wrong, [one.why for one in code.minor]) == ("accurate_complete", (), ["not_material"])
    strict = with_rule(study_points=study_points(["B-any-provider"]))
    assert coded(MINE, strict, Says(["F1"]), wrong("F4")).code == "incorrect"


@each_case("cited", [("F4", "F3"), ("D1",), ("D1", "F4"), ("F3",)])
def test_a_contradiction_of_anything_else_as_well_is_material(cited: tuple[str, ...]) -> None:
    assert coded(MINE, with_rule(not_material=[PRICE]), wrong(*cited)).code == "incorrect"


@each_case("listed", ["F4", PRICE])
@each_case("cited", ["F4", PRICE])
def test_a_fact_that_is_not_material_goes_by_either_of_its_ids(listed: str, cited: str) -> None:
    code = coded(MINE, with_rule(not_material=[listed]), wrong(cited, severity="high"))
    expected = "incorrect" if (listed, cited) == ("F4", PRICE) else "not_substantive"
    assert code.code == expected, "a background fact is cited by its library id, and is no fact of the key"


def test_a_minor_error_of_low_severity_needs_no_other_reason() -> None:
    code = coded(MINE, with_rule(not_material=[PRICE]), wrong("F4", severity="low"))
    assert [one.why for one in code.minor] == [None]
    assert "why" not in code.minor[0].model_dump()


# Answers that sound unsure


@each_case(
    ("hedged", "code"),
    [
        ("counts", "accurate_complete"),
        ("accurate_incomplete", "accurate_incomplete"),
        ("not_substantive", "not_substantive"),
    ],
)
def test_the_rule_says_what_an_unsure_answer_gets(hedged: str, code: str) -> None:
    one = asked("mine", KEY, points=["F1", "F2"], partial=["F3"])
    rubric = with_rule(hedged=hedged)
    assert coded(one, rubric, unsure("F1"), unsure("F2")).code == code
    assert coded(one, rubric, unsure("F1"), Says(["F2"])).code == "accurate_complete", "one of them is said plainly"
    assert coded(one, rubric, unsure("F1"), Says(["F1"]), unsure("F2")).code == "accurate_complete"
    assert coded(one, rubric, unsure("F1")).code == ("not_substantive" if code == "not_substantive" else "accurate_incomplete")  # fmt: skip


def test_a_part_that_is_said_plainly_counts_beside_an_unsure_point() -> None:
    one = asked("mine", KEY, points=["F1"], partial=["F3"])
    rubric = with_rule(hedged="not_substantive")
    assert coded(one, rubric, unsure("F1"), Says(["F3"])).code == "accurate_incomplete"
    assert coded(one, rubric, unsure("F1"), unsure("F3")).code == "not_substantive"


@each_case(("group", "code"), [("g19", "accurate_incomplete"), ("g20", "not_substantive")])
def test_an_unsure_yes_in_the_shipped_groups(group: str, code: str) -> None:
    one = asked(group, KEY, points=["F1"])
    found = coded(one, RUBRIC, unsure("F1"))
    assert (found.code, found.reason) == (code, "1 of 1 point made, but only by claims that sound unsure.")
    assert coded(one, RUBRIC, Says(["F1"])).code == "accurate_complete"
    assert coded(one, RUBRIC, Says(["F1"], confidence="medium")).code == "accurate_complete"


# Fabricated details


@each_case(
    ("fabricated", "of_all", "of_some"),
    [
        ("noted", "accurate_complete", "accurate_incomplete"),
        ("incorrect_unless_complete", "accurate_complete", "incorrect"),
        ("incorrect", "incorrect", "incorrect"),
    ],
)
def test_what_a_fabricated_detail_does_to_a_full_and_to_a_partial_answer(
    fabricated: str, of_all: str, of_some: str
) -> None:
    one = asked("mine", KEY, points=["F1", "F2"])
    rubric = with_rule(fabricated=fabricated)
    full = coded(one, rubric, Says(["F1"]), Says(["F2"]), guesses=[1])
    assert (full.code, len(full.fabricated)) == (of_all, 1)
    assert coded(one, rubric, Says(["F1"]), guesses=[1]).code == of_some


def test_each_set_of_points_says_for_itself_whether_an_answer_with_a_guess_is_full() -> None:
    rubric = with_rule(study_points=study_points(["B-any-provider"]), fabricated="incorrect_unless_complete")
    code = coded(MINE, rubric, Says(["F1"]), guesses=[1])
    assert code.own is not None
    assert (code.code, code.own.code) == ("accurate_complete", "incorrect")


def test_where_a_full_answer_excuses_a_guess_an_open_claim_leaves_both_unknown() -> None:
    one = asked("mine", KEY, points=["F1"])
    open_claim = Says([], None)
    assert coded(one, with_rule(fabricated="incorrect_unless_complete"), open_claim, guesses=[1]).code == "incomplete_data"  # fmt: skip
    assert coded(one, with_rule(fabricated="incorrect"), open_claim, guesses=[1]).code == "incorrect"


# Checks


def test_a_study_point_that_no_fact_of_the_key_can_make_is_an_error() -> None:
    check_study_points(planned(MINE), TWO)
    with pytest.raises(InputError, match=r"group mine: the study's point 'Point 2' .*B-extra-benefits"):
        check_study_points(planned(asked("mine", [KEY[0]])), TWO)
    check_study_points(planned(asked("g1", [KEY[0]])), TWO)
    check_study_points(planned(asked("mine", [KEY[0]]), "B-extra-benefits"), TWO)  # left out for lack of a figure


def test_two_study_points_that_the_key_cannot_tell_apart_are_an_error() -> None:
    rubric = with_rule(study_points=study_points(["B-any-provider", "B-a"], ["B-any-provider", "B-b"]))
    with pytest.raises(InputError, match=r"'Point 2' cannot be told from 'Point 1'"):
        check_study_points(planned(MINE), rubric)
    check_study_points(planned(asked("mine", [*KEY, fact("F5", "B-b")])), rubric)


@each_case(
    "points",
    [
        [{"name": "One", "any_of": ["B-a"]}, {"name": "One", "any_of": ["B-b"]}],
        [{"name": "One", "any_of": ["B-a", "B-b"]}, {"name": "Two", "any_of": ["B-b", "B-a"]}],
        [{"name": "One", "any_of": []}],
    ],
)
def test_a_rule_keeps_its_study_points_apart(points: list[dict[str, object]]) -> None:
    with pytest.raises(ValidationError):
        with_rule(study_points=points)


# The shipped rubric


def library_ids() -> set[str]:
    files = sorted((ROOT / "facts" / "library").glob("*.json"))
    return {one["fact_id"] for path in files for one in json.loads(path.read_text(encoding="utf-8"))["facts"]}


def named_ids(rule: GroupRule) -> set[str]:
    return {*rule.not_material, *rule.study_partial, *(one for point in rule.study_points for one in point.any_of)}


def test_every_library_fact_that_the_rubric_names_is_in_the_library() -> None:
    named = {name for rule in RUBRIC.groups.values() for name in named_ids(rule)}
    assert named - library_ids() == set()
    assert named


def test_the_shipped_groups_have_as_many_study_points_as_the_study() -> None:
    counts = {name: len(rule.study_points) for name, rule in RUBRIC.groups.items() if rule.study_points}
    assert counts == {"g3": 12, "g8": 2, "g10": 14, "g11": 7}


def test_every_group_of_the_study_says_whether_it_is_the_studys() -> None:
    for rule in RUBRIC.groups.values():
        assert (rule.study_faithful is not None) == (rule.study_group is not None and rule.closed is None)


def key_of(rule: GroupRule, *more: str) -> list[dict[str, Any]]:
    """A key with one fact for each study point, and more facts by their library ids; they are F1, F2, ..."""
    ids = [point.any_of[0] for point in rule.study_points] + list(more)
    return [fact(f"F{number}", name) for number, name in enumerate(ids, 1)]


@each_case("group", ["g3", "g8", "g10", "g11"])
def test_an_answer_with_every_study_point_is_complete_and_one_less_is_not(group: str) -> None:
    rule = RUBRIC.groups[group]
    one = asked(group, key_of(rule))
    said = [Says([f"F{number}"]) for number in range(1, len(rule.study_points) + 1)]
    assert coded(one, RUBRIC, *said).code == "accurate_complete"
    assert coded(one, RUBRIC, *said[1:]).code == "accurate_incomplete"
    assert rule.study_points[0].name in coded(one, RUBRIC, *said[1:]).reason


def test_a_stale_premium_in_the_comparison_is_minor_and_an_error_that_decides_is_not() -> None:
    rule = RUBRIC.groups["g10"]
    price = next(one for one in rule.not_material if "premium" in one)
    one = asked("g10", key_of(rule, price, "B-medigap-not-sold-with-ma"))
    said = [Says([f"F{number}"]) for number in range(1, 15)]
    stale = coded(one, RUBRIC, *said, wrong("F15"))
    assert (stale.code, [minor.why for minor in stale.minor]) == ("accurate_complete", ["not_material"])
    assert coded(one, RUBRIC, *said, wrong("F16")).code == "incorrect"


def tied(*labels: Label) -> Says:
    """A claim on which two verifiers disagree and that nobody settled."""
    return Says((), None, labels_given=labels)


@each_case(
    ("said", "expected"),
    [
        # Both facts are told, so a claim that is supported or not in the key changes nothing.
        ((Says(["F1"]), Says(["F2"]), tied("SUPPORTED", "NOT_IN_KEY")), "accurate_complete"),
        ((Says(["F1"]), Says(["F2"]), tied("CONTRADICTED", "NOT_IN_KEY")), "incomplete_data"),
        ((Says(["F1"]), Says(["F2"]), tied("SUPPORTED", "CONTRADICTED")), "incomplete_data"),
        # The open claim may be the missing point.
        ((Says(["F1"]), tied("SUPPORTED", "NOT_IN_KEY")), "incomplete_data"),
        # A claim that too few verifiers judged could be anything.
        ((Says(["F1"]), Says(["F2"]), tied("SUPPORTED")), "incomplete_data"),
    ],
)
def test_an_open_claim_keeps_a_code_open_only_if_it_could_change_it(said: tuple[Says, ...], expected: str) -> None:
    one = asked("Q1", [fact("F1"), fact("F2")], ["F1", "F2"])
    (code,) = study_codes(coding(one, RUBRIC, *said))
    assert code.code == expected


@each_case(
    ("facts", "severity", "expected"),
    [
        (["F1"], "medium", "incorrect"),
        (["D1"], "medium", "incorrect"),
        (["B-elsewhere"], "medium", "accurate_complete"),
        (["B-elsewhere"], "high", "incorrect"),
        (["B-elsewhere", "F1"], "medium", "incorrect"),
    ],
)
def test_what_only_background_facts_contradict_counts_if_it_is_grave(
    facts: list[str], severity: Severity, expected: str
) -> None:
    one = asked("Q1", [fact("F1"), fact("F2")], ["F2"])
    (code,) = study_codes(coding(one, RUBRIC, Says(["F2"]), wrong(*facts, severity=severity)))
    assert code.code == expected
    assert bool(code.minor) == (expected != "incorrect")


def test_a_passage_taken_over_word_for_word_does_not_make_an_unsure_answer_sure() -> None:
    rule = RUBRIC.rule("g19").model_copy(update={"study_points": (), "study_partial": ()})
    rubric = RUBRIC.model_copy(update={"groups": {**RUBRIC.groups, "g19": rule}})
    one = asked("g19", [fact("F1")], ["F1"])
    (code,) = study_codes(coding(one, rubric, unsure("F1"), Says(["F1"], verbatim=True)))
    assert code.code == "accurate_incomplete"
    (code,) = study_codes(coding(one, rubric, unsure("F1"), Says(["F1"])))
    assert code.code == "accurate_complete"


@each_case("optional", [True, False])
def test_figures_that_are_only_a_condition_need_not_be_told(optional: bool) -> None:
    statement = "The plan of an employer with fewer than 20 employees may pay little without Part B."
    held = {**fact("F1", statement=statement), "figures_optional": optional}
    one = asked("Q1", [held], ["F1"])
    said = Says(["F1"], text="Your store's plan may pay next to nothing then.")
    (code,) = study_codes(coding(one, RUBRIC, said))
    assert code.code == ("accurate_complete" if optional else "not_substantive")
