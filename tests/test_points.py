"""Whether an answer makes its required points: supported claims taken together, what a point needs, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from src.planning.rubrics import load_rubric
from src.schemas import Claim, Exchange, FinalClaim, Label, QuoteSpan, Rubric, Scenario, TurnOutcome
from src.scoring.points import AskedConversation, missing_points, owed_points, points_made
from src.scoring.study_codes import CodingInput, study_codes
from tests.cases import each_case
from tests.helpers import fact_json, scenario

RUBRIC = load_rubric("v1").rubric
BY_QUESTION = RUBRIC.model_copy(update={"points_from": "question"})
PREMIUM = "The standard Part B premium is $202.90 a month in 2026."
PERSONA = {"name": "Ada Inventado", "age": 67, "zip_code": "00000", "household_size": 1, "monthly_income": 1600}


@dataclass(frozen=True)
class Said:
    """A claim: its words in the reply to a turn, its label and what was cited for it."""

    quote: str
    evidence: Sequence[str] = ("F1",)
    turn: str = "Q1"
    label: Label | None = "SUPPORTED"


@dataclass(frozen=True)
class Judged:
    talk: AskedConversation
    final: list[FinalClaim]


def fact(fact_id: str, statement: str, *tells: str) -> dict[str, Any]:
    return {**fact_json(fact_id, statement), "tells": list(tells)}


def key(*facts: dict[str, Any], points: Sequence[Any] | None = None) -> dict[str, Any]:
    required = [one["fact_id"] for one in facts] if points is None else list(points)
    return {"canonical_facts": list(facts), "required_points": required}


def asking(turn_id: str, message: str = "What does it cost?", *points: Any, group: str | None = None) -> dict[str, Any]:
    named = {"question_group": group} if group else {}
    return {"turn_id": turn_id, "user_message": message, "required_points": list(points), **named}


def judged(one: Scenario, *said: Said, rubric: Rubric = RUBRIC, skipped: Sequence[str] = ()) -> Judged:
    """A conversation in which exactly this was said."""
    exchanges, claims, final = [], [], []
    for turn in one.scripted_turns:
        here = [claim for claim in said if claim.turn == turn.turn_id]
        reply = " ".join(claim.quote for claim in here)
        outcome: TurnOutcome = "skipped" if turn.turn_id in skipped else "answered"
        exchanges.append(
            Exchange(
                turn_id=turn.turn_id,
                question_group=turn.question_group,
                user_message=turn.user_message,
                outcome=outcome,
                reply=None if outcome == "skipped" else reply,
                detail=None,
                served_model=None,
            )
        )
        for number, claim in enumerate(here, 1):
            at = reply.index(claim.quote)
            claim_id = f"{turn.turn_id}.C{number}"
            claims.append(
                Claim(
                    claim_id=claim_id,
                    text="The claim's own text says $202.90, $283 and 20%, and does not count.",
                    type="factual",
                    confidence="high",
                    verifiable=True,
                    quote_spans=(QuoteSpan(start=at, end=at + len(claim.quote)),),
                    turn_id=turn.turn_id,
                )
            )
            final.append(
                FinalClaim(
                    claim_id=claim_id,
                    turn_id=turn.turn_id,
                    text="",
                    label=claim.label,
                    evidence=tuple(claim.evidence),
                    severity="none",
                    decided_by="unanimous",
                    labels_given=(),
                )
            )
    return Judged(AskedConversation(one, rubric, exchanges, claims), final)


def missing(one: Scenario, *said: Said, **more: Any) -> tuple[str, ...]:
    made = judged(one, *said, **more)
    return missing_points(made.talk, made.final)


def makes(statement: str, *quotes: str, tells: Sequence[str] = (), asked: str = "Tell me.") -> bool:
    """Whether supported claims with these quotes make the point of a fact."""
    one = scenario(
        answer_key=key(fact("F1", statement, *tells)), scripted_turns=[asking("Q1", asked, "F1")], persona=PERSONA
    )
    return missing(one, *(Said(quote) for quote in quotes)) == ()


def test_a_supported_claim_with_the_facts_amount_makes_its_point() -> None:
    assert makes(PREMIUM, "Part B costs $202.90 a month.")


def test_a_supported_claim_that_does_not_state_the_amount_makes_no_point() -> None:
    assert not makes(PREMIUM, "There is a standard premium for Part B.")
    assert not makes(PREMIUM, "The premium is $185 a month.")
    assert not makes(PREMIUM)


def test_two_claims_make_a_point_together() -> None:
    statement = "You pay 20% after the $283 deductible."
    assert not makes(statement, "You pay 20%.")
    assert not makes(statement, "The deductible is $283.")
    assert makes(statement, "You pay 20%.", "The deductible is $283.")


@each_case("label", ["CONTRADICTED", "NOT_IN_KEY", None])
def test_only_supported_claims_count(label: Label | None) -> None:
    one = scenario(answer_key=key(fact("F1", "You pay 20% after the $283 deductible.")))
    first, second = Said("You pay 20%."), Said("The deductible is $283.", label=label)
    assert missing(one, first, second) == ("F1",)
    assert missing(one, Said("You pay 20% after $283.", label=label)) == ("F1",)


def test_a_claim_that_cites_another_fact_adds_nothing() -> None:
    one = scenario(answer_key=key(fact("F1", "You pay 20% after the $283 deductible."), fact("F2", "It is $283.")))
    assert missing(one, Said("You pay 20%."), Said("The deductible is $283.", ["F2"])) == ("F1",)
    assert missing(one, Said("You pay 20%."), Said("The deductible is $283.", ["F2", "F1"])) == ()


def test_the_amount_must_be_in_the_quotes_not_in_the_extractors_own_text() -> None:
    found = judged(scenario(answer_key=key(fact("F1", PREMIUM))), Said("There is a premium."))
    assert "$202.90" in found.talk.claims[0].text
    assert missing_points(found.talk, found.final) == ("F1",)


def test_a_fact_without_figures_is_made_by_any_supported_claim_that_cites_it() -> None:
    assert makes("Medicare Advantage plans have networks.", "They use networks.")


def test_what_a_fact_tells_replaces_its_amounts() -> None:
    statement = "You pay 20% after the $283 deductible, from January 1."
    assert makes(statement, "You pay 20%.", tells=["20%"])
    assert not makes(statement, "The deductible is $283.", tells=["20%"])
    dated = "The fee of $15 is due on January 1 and on July 1."
    assert makes(dated, "It is due on 1 January and 7/1.", tells=["January 1", "July 1"])
    assert not makes(dated, "The fee of $15 is due on January 1.", tells=["January 1", "July 1"])


@each_case(
    ("quote", "made"),
    [
        ("You have 7 months.", True),
        ("You can enroll from October 15 on.", True),
        ("You have half a year and a month.", False),
        ("You enroll within 8 months.", False),
        ("You enroll when you turn 65, in 2026.", False),
        ("You can enroll.", False),
    ],
)
def test_without_amounts_one_duration_or_date_is_enough(quote: str, made: bool) -> None:
    statement = "In 2026 you enroll in the 7 months around your birthday at 65, or from October 15."
    assert makes(statement, quote) is made


def test_with_amounts_durations_and_dates_are_not_needed() -> None:
    assert makes("The deductible is $283 from January 1, for 12 months.", "There is a deductible of $283.")


@each_case(
    "statement",
    [
        "It began in 2026.",
        "Call 1-800-633-4227 for help.",
        "It starts when a person is 65 years old.",
        "A person on $1,600 a month may qualify.",
    ],
)
def test_years_phone_numbers_ages_and_a_persons_own_figures_are_never_needed(statement: str) -> None:
    assert makes(statement, "Yes, that is so.")
    assert not makes(statement), "but something must be said"


@each_case(
    ("statement", "figure"),
    [
        ("The penalty is 1% for each month.", "1%"),
        ("A vaccine costs $0.", "$0"),
        ("The fee is $67.", "$67"),
        ("The fee is $1.", "$1"),
    ],
)
def test_a_household_of_one_an_age_and_a_zip_code_waive_no_amount(statement: str, figure: str) -> None:
    assert not makes(statement, "There is something to say about it.")
    assert makes(statement, f"It is {figure}.")


def test_figures_of_the_question_are_not_needed() -> None:
    statement = "With $2,500 a month you may get help with 20% of the bill."
    assert not makes(statement, "You may get help with 20% of it.")
    assert makes(statement, "You may get help with 20% of it.", asked="I live on $2,500 a month.")
    assert not makes(statement, "You may get help.", asked="I live on $2,500 a month.")


def test_a_figure_counts_as_given_only_from_when_the_person_says_it() -> None:
    turns = [asking("Q1", "What does it cost?", "F1"), asking("Q2", "So it is $202.90?")]
    one = scenario(answer_key=key(fact("F1", PREMIUM)), scripted_turns=turns)
    vague = Said("There is a premium.")
    assert missing(one, vague, rubric=BY_QUESTION) == ("F1",), "it was asked about after the answer"
    later = scenario(answer_key=key(fact("F1", PREMIUM)), scripted_turns=turns[::-1])
    assert missing(later, vague, rubric=BY_QUESTION) == ()


def test_a_question_that_was_never_asked_gives_nothing() -> None:
    turns = [asking("Q0", "Is it $202.90?"), asking("Q1", "What does it cost?", "F1")]
    one = scenario(answer_key=key(fact("F1", PREMIUM)), scripted_turns=turns)
    assert missing(one, Said("There is a premium."), skipped=["Q0"]) == ("F1",)
    assert missing(one, Said("There is a premium.")) == ()


@each_case(
    ("statement", "quote"),
    [
        (PREMIUM, "That is $2,434.80 a year."),
        ("The cap is $2,400 a year.", "You pay $200 a month at most."),
        ("The window lasts 6 months.", "You have half a year."),
        ("The window lasts 12 months.", "You must do so within a year."),
        ("You pay 20%.", "You pay twenty percent."),
        (PREMIUM, "Part B costs ＄２０２.９０ each month."),
        (PREMIUM, "It is about $203 a month."),
        (PREMIUM, "It costs about $200 a month."),
        ("A flu shot costs $0.", "A flu shot is free."),
        ("A flu shot costs $0.", "There is no charge for it."),
    ],
)
def test_equal_quantities_make_the_point(statement: str, quote: str) -> None:
    assert makes(statement, quote)


@each_case(
    ("statement", "quote"),
    [
        (PREMIUM, "That is $2,434.80."),
        (PREMIUM, "It costs $200 a month."),
        ("The cap is $2,100.", "The cap is about $2,000."),
        ("A flu shot costs $5.", "A flu shot is free."),
        ("A flu shot costs $0.", "You can freely choose where to get it."),
        ("The window lasts 8 months.", "You have 8 weeks."),
    ],
)
def test_other_quantities_do_not_make_the_point(statement: str, quote: str) -> None:
    assert not makes(statement, quote)


def test_an_any_of_point_is_made_by_one_of_its_facts_alone() -> None:
    facts = fact("F1", "The fee is $5."), fact("F2", "The fee is $6 and 20%.")
    one = scenario(answer_key=key(*facts, points=[{"any_of": ["F1", "F2"]}]))
    assert missing(one) == ("F1|F2",)
    assert missing(one, Said("It is $5.")) == ()
    assert missing(one, Said("It is $6 and 20%.", ["F2"])) == ()
    assert missing(one, Said("It is $6.", ["F2"])) == ("F1|F2",)
    assert missing(one, Said("There is a fee."), Said("It is $6.", ["F2"])) == ("F1|F2",), "facts do not add up"


def test_a_background_fact_never_makes_a_point() -> None:
    one = scenario(answer_key=key(fact("F1", PREMIUM)))
    assert missing(one, Said("Part B costs $202.90 a month.", ["premium-part-b"])) == ("F1",)
    assert missing(one, Said("Part B costs $202.90 a month.", ["premium-part-b", "F1"])) == ()


TWO = scenario(
    answer_key=key(fact("F1", PREMIUM), fact("F2", "The deductible is $283.")),
    scripted_turns=[asking("Q1", "Premium?", "F1"), asking("Q2", "Deductible?", "F2")],
)
ELSEWHERE = (Said("It is $283.", ["F2"], "Q1"), Said("It is $202.90 a month.", ["F1"], "Q2"))


def test_completeness_takes_points_from_the_whole_conversation_if_the_rubric_says_so() -> None:
    assert RUBRIC.points_from == "conversation"
    assert missing(TWO, *ELSEWHERE) == ()
    assert missing(TWO, *ELSEWHERE, rubric=BY_QUESTION) == ("F1", "F2")


def test_claims_of_two_turns_make_a_point_together_only_over_the_conversation() -> None:
    both = fact("F1", "You pay 20% after the $283 deductible.")
    one = scenario(answer_key=key(both), scripted_turns=[asking("Q1", "Share?", "F1"), asking("Q2", "And?")])
    said = Said("You pay 20%."), Said("The deductible is $283.", turn="Q2")
    assert missing(one, *said) == ()
    assert missing(one, *said, rubric=BY_QUESTION) == ("F1",)


def test_the_turns_of_one_group_are_one_question() -> None:
    both = fact("F1", "You pay 20% after the $283 deductible.")
    turns = [asking("Q1", "Share?", "F1", group="g"), asking("Q2", "And?", group="g")]
    one = scenario(answer_key=key(both), scripted_turns=turns)
    said = Said("You pay 20%."), Said("The deductible is $283.", turn="Q2")
    assert missing(one, *said, rubric=BY_QUESTION) == ()


def test_a_point_of_no_question_may_be_made_anywhere() -> None:
    one = scenario(answer_key=key(fact("F1", PREMIUM)), scripted_turns=[asking("Q1"), asking("Q2")])
    assert missing(one, Said("It is $202.90.", turn="Q2"), rubric=BY_QUESTION) == ()


def test_a_point_of_two_questions_is_made_in_either() -> None:
    turns = [asking("Q1", "Premium?", "F1"), asking("Q2", "Premium again?", "F1")]
    one = scenario(answer_key=key(fact("F1", PREMIUM)), scripted_turns=turns)
    assert missing(one, Said("It is $202.90.", turn="Q2"), rubric=BY_QUESTION) == ()


def codes(*said: Said, rubric: Rubric = RUBRIC) -> dict[str, str | None]:
    made = judged(TWO, *said, rubric=rubric)
    coded = study_codes(
        CodingInput(
            scenario=TWO,
            rubric=rubric,
            exchanges=made.talk.exchanges,
            claims=made.talk.claims,
            final=made.final,
            observations=(),
            failures=(),
        )
    )
    return {code.question_group: code.code for code in coded}


def test_a_study_code_counts_the_question_unless_its_rule_says_conversation() -> None:
    assert codes(*ELSEWHERE) == {"Q1": "not_substantive", "Q2": "not_substantive"}
    anywhere = RUBRIC.default.model_copy(update={"points_from": "conversation"})
    assert codes(*ELSEWHERE, rubric=RUBRIC.model_copy(update={"default": anywhere})) == {
        "Q1": "accurate_complete",
        "Q2": "accurate_complete",
    }


def test_a_point_that_only_a_lookup_can_answer_is_not_owed() -> None:
    turns = [asking("Q1", "Doctor?", "F1", group="lookup-doctor"), asking("Q2", "Deductible?", "F2")]
    one = scenario(answer_key=key(fact("F1", PREMIUM), fact("F2", "The deductible is $283.")), scripted_turns=turns)
    assert owed_points(one, RUBRIC) == ("F2",)
    assert missing(one) == ("F2",)
    again = scenario(**{**one.model_dump(mode="json"), "scripted_turns": [*turns, asking("Q3", "And?", "F1")]})
    assert owed_points(again, RUBRIC) == ("F1", "F2"), "an ordinary question asks for it too"


def test_a_point_that_no_question_of_the_script_asks_for_is_not_owed() -> None:
    facts = [fact("F1", PREMIUM), fact("F2", "The deductible is $283."), fact("F3", "You pay 20%.")]
    one = scenario(answer_key=key(*facts), scripted_turns=[asking("Q1", "Premium?", "F1"), asking("Q2", "Hello?")])
    assert owed_points(one, RUBRIC) == ("F1",)
    assert missing(one, Said("It is $202.90.")) == ()
    whole = scenario(answer_key=key(*facts), scripted_turns=[asking("Q1", "Premium?"), asking("Q2", "And?")])
    assert owed_points(whole, RUBRIC) == ("F1", "F2", "F3"), "no question says what it asks for"


def test_a_point_of_a_question_that_was_not_asked_is_not_owed() -> None:
    made = judged(TWO, Said("It is $202.90."))
    ended = [*made.talk.exchanges[:1], made.talk.exchanges[1].model_copy(update={"outcome": "not_asked"})]
    for exchanges in (ended, ended[:1]):
        talk = AskedConversation(TWO, RUBRIC, exchanges, made.talk.claims)
        assert (talk.owed, missing_points(talk, made.final)) == (("F1",), ())


@each_case(
    ("condition", "owed"),
    [
        ({"unless_last_reply_mentions": ["deductible"]}, ("F1", "F2")),  # the reply has covered it
        ({"if_last_reply_mentions": ["deductible"]}, ("F1",)),
    ],
)
def test_a_point_of_a_turn_that_was_skipped_is_owed_if_an_earlier_reply_took_its_place(
    condition: dict[str, Any], owed: tuple[str, ...]
) -> None:
    turns = [asking("Q1", "Premium?", "F1"), {**asking("Q2", "Deductible?", "F2"), "condition": condition}]
    one = scenario(answer_key=TWO.answer_key.model_dump(mode="json"), scripted_turns=turns)
    assert judged(one, skipped=["Q2"]).talk.owed == owed


def test_a_made_point_names_every_claim_that_makes_it_and_no_other() -> None:
    facts = fact("F1", "You pay 20% after the $283 deductible."), fact("F2", "Plans have networks.")
    said = Said("You pay 20%."), Said("The deductible is $283.", ["F1", "F2"]), Said("Networks.", ["F2"])
    found = judged(scenario(answer_key=key(*facts)), *said)
    (made,) = points_made(found.talk, {"F1": ["F1"]}, found.final, ["Q1"])
    assert made.point == "F1"
    assert [(one.claim_id, one.quotes, one.evidence) for one in made.claims] == [
        ("Q1.C1", ("You pay 20%.",), ("F1",)),
        ("Q1.C2", ("The deductible is $283.",), ("F1", "F2")),
    ]


def test_a_fact_of_an_any_of_point_that_is_not_conveyed_lends_no_claims() -> None:
    facts = fact("F1", "The fee is $5."), fact("F2", "The fee is $6.")
    found = judged(scenario(answer_key=key(*facts)), Said("It is $5."), Said("There is a fee.", ["F2"]))
    (made,) = points_made(found.talk, {"F1|F2": ["F1", "F2"]}, found.final, ["Q1"])
    assert [one.claim_id for one in made.claims] == ["Q1.C1"]


QUOTES = st.sampled_from(["You pay 20%.", "It is $283.", "It is $202.90 a month.", "There is a fee.", "It is free."])
CLAIMS = st.lists(
    st.builds(
        Said,
        QUOTES,
        st.lists(st.sampled_from(["F1", "F2", "lib"]), min_size=1, max_size=2, unique=True),
        st.sampled_from(["Q1", "Q2"]),
        st.sampled_from(["SUPPORTED", "SUPPORTED", "CONTRADICTED", "NOT_IN_KEY", None]),
    ),
    max_size=6,
)


@given(CLAIMS, st.builds(Said, QUOTES, st.just(["F1"]), st.sampled_from(["Q1", "Q2"])))
def test_another_supported_claim_never_loses_a_point(said: list[Said], more: Said) -> None:
    for rubric in (RUBRIC, BY_QUESTION):
        before, after = missing(TWO, *said, rubric=rubric), missing(TWO, *said, more, rubric=rubric)
        assert set(after) <= set(before)


@given(CLAIMS)
def test_what_is_missing_over_the_conversation_is_missing_in_its_question(said: list[Said]) -> None:
    assert set(missing(TWO, *said)) <= set(missing(TWO, *said, rubric=BY_QUESTION))


@given(CLAIMS)
def test_claims_that_are_not_supported_change_nothing(said: list[Said]) -> None:
    supported = [one for one in said if one.label == "SUPPORTED"]
    assert missing(TWO, *said) == missing(TWO, *supported)
