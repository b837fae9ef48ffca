"""The questioner: exact turns, slots, knobs, order, conditions, and checked rewording."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from src.agents.ask import JudgeAnswer
from src.agents.questioner import changes, holds, mentions, paraphrase, question
from src.planning.trials import Trial
from src.schemas import Condition, PlannedScenario, PlannedTurn, QuestionerInput, QuestionerOutput
from tests.cases import each_case
from tests.helpers import HASH, Failed, ScriptedJudge, client, scenario

SEEDS = range(40)
FIVE = [{"turn_id": f"Q{n}", "user_message": f"Question {n}?"} for n in range(1, 6)]


def asked(seed: int = 1, **changes: Any) -> QuestionerOutput:
    return question(QuestionerInput(scenario=scenario(**changes), seed=seed))


def order(output: QuestionerOutput) -> list[str]:
    return [turn.turn_id for turn in output.turns]


def turns(*messages: str) -> QuestionerOutput:
    return QuestionerOutput(
        turns=tuple(PlannedTurn(turn_id=f"Q{n}", user_message=text) for n, text in enumerate(messages, 1))
    )


def test_without_knobs_every_seed_asks_the_same_to_the_letter() -> None:
    message = "I’m trying  to decide…\nWhat’s {the} difference? $5 \\1 \\g<0>"
    for seed in SEEDS:
        output = asked(seed, scripted_turns=[{"turn_id": "Q1", "user_message": message}])
        assert output == QuestionerOutput(turns=(PlannedTurn(turn_id="Q1", user_message=message),))


def test_slots_are_filled_and_slots_inside_their_values_are_not() -> None:
    output = asked(
        persona={"city": "Lake {{persona.name}} \\1", "name": "Ada", "attributes": {"doctor": "Dr. X"}},
        scripted_turns=[
            {"turn_id": "Q1", "user_message": "{{persona.city}}/{{ persona.name }}/{{persona.attributes.doctor}}"}
        ],
    )
    assert output.turns[0].user_message == "Lake {{persona.name}} \\1/Ada/Dr. X"


def test_a_knob_is_drawn_once_per_trial_and_every_value_comes_up() -> None:
    changes: dict[str, Any] = {
        "variation_knobs": {"choices": {"tone": ["calm", "worried", "cross"]}},
        "scripted_turns": [{"turn_id": "Q1", "user_message": "{{knob.tone}} and {{knob.tone}}"}],
    }
    messages = {asked(seed, **changes).turns[0].user_message for seed in SEEDS}
    assert messages == {"calm and calm", "worried and worried", "cross and cross"}


def test_knobs_are_drawn_independently_and_by_name_not_by_position() -> None:
    one = {"first": ["a", "b"], "second": ["a", "b"]}
    turn = [{"turn_id": "Q1", "user_message": "{{knob.first}}{{knob.second}}"}]
    drawn = [asked(s, variation_knobs={"choices": one}, scripted_turns=turn).turns[0].user_message for s in SEEDS]
    assert set(drawn) == {"aa", "ab", "ba", "bb"}
    reversed_order = dict(reversed(one.items()))
    assert drawn == [
        asked(s, variation_knobs={"choices": reversed_order}, scripted_turns=turn).turns[0].user_message for s in SEEDS
    ]


@given(st.integers(0, 2**31 - 1))
def test_shuffling_moves_only_the_turns_of_its_group_within_their_places(seed: int) -> None:
    output = asked(seed, scripted_turns=FIVE, variation_knobs={"shuffle": [["Q1", "Q3", "Q5"]]})
    places = order(output)
    assert (places[1], places[3]) == ("Q2", "Q4")
    assert sorted(places) == ["Q1", "Q2", "Q3", "Q4", "Q5"]
    assert {turn.turn_id: turn.user_message for turn in output.turns} == {t["turn_id"]: t["user_message"] for t in FIVE}
    assert output == asked(seed, scripted_turns=FIVE, variation_knobs={"shuffle": [["Q1", "Q3", "Q5"]]})


def test_every_order_comes_up() -> None:
    knobs = {"shuffle": [["Q1", "Q2"], ["Q3", "Q4"]]}
    seen = {tuple(order(asked(seed, scripted_turns=FIVE, variation_knobs=knobs))) for seed in SEEDS}
    assert len(seen) == 4, "two groups of two, drawn independently"


def test_every_target_is_asked_the_same_and_repetitions_differ() -> None:
    planned = PlannedScenario(path="s1.json", sha256=HASH, scenario=scenario())
    seeds = {(target, n): Trial("t", planned, target, n).question_seed(42) for target in ("a:b", "c:d") for n in (1, 2)}
    assert seeds["a:b", 1] == seeds["c:d", 1]
    assert seeds["a:b", 1] != seeds["a:b", 2]
    assert Trial("t", planned, "a:b", 1).seed(42, "x") != Trial("t", planned, "c:d", 1).seed(42, "x")


def reworded(before: QuestionerOutput, *replies: str | Failed) -> tuple[JudgeAnswer[QuestionerOutput], ScriptedJudge]:
    made, judge = client(*replies)
    return asyncio.run(paraphrase(made, before)), judge


def test_a_rewording_is_taken() -> None:
    before, after = turns("What is Part B in 2026?"), turns("In 2026, what does Part B mean?")
    answer, judge = reworded(before, after.model_dump_json())
    assert answer == JudgeAnswer(after)
    assert judge.payload() == before.model_dump(mode="json")


def test_a_rewording_that_changes_a_figure_is_asked_for_again() -> None:
    before = turns("Is $185 right?", "And Part A?")
    wrong, right = turns("Is $186 right?", "Part A?"), turns("Would $185 be right?", "Part A?")
    answer, judge = reworded(before, wrong.model_dump_json(), right.model_dump_json())
    assert answer == JudgeAnswer(right)
    assert judge.problems(1) == ["turn Q1: the figures must stay exactly ['$185']"]


@each_case(
    "after",
    [
        turns("Is $185 right?"),
        turns("And Part A?", "Is $185 right?"),
        turns("Is $185 right?", "And Part A?", "More?"),
        turns("Is it right?", "And Part A?"),
        turns("Is $185 right?", "And Part A for 20%?"),
    ],
)
def test_other_turns_or_figures_are_not_the_same_questions(after: QuestionerOutput) -> None:
    before = turns("Is $185 right?", "And Part A?")
    assert changes(before, before) == ()
    found = changes(before, after)
    assert found
    answer, _ = reworded(before, *[after.model_dump_json()] * 3)
    assert answer == JudgeAnswer(None, (f"no usable answer after 3 asks: {'; '.join(found)}",))


def test_turns_in_another_order_are_refused() -> None:
    before = turns("One?", "Two?")
    swapped = json.dumps({"turns": [turn.model_dump() for turn in reversed(before.turns)]})
    answer, judge = reworded(before, swapped, Failed("permanent", error="gone"))
    assert answer == JudgeAnswer(None, ("the call failed: permanent: gone",))
    assert judge.problems(1) == ["the turn ids must be ['Q1', 'Q2'], in this order"]


@each_case(
    ("reply", "phrase", "found"),
    [
        ("You pay a premium.", "premium", True),
        ("You pay a PREMIUM!", "premium", True),
        ("You pay premiums.", "premium", False),
        ("a late\n  enrollment   penalty", "late enrollment penalty", True),
        ("relate enrollment", "late enrollment", False),
        ("It costs $185.", "$185", True),
        ("It costs $1850.", "$185", False),
        ("Call 1-800-MEDICARE (24 hours)", "1-800-medicare", True),
        ("a.b", "a+b", False),
        ("", "premium", False),
    ],
)
def test_phrases_are_found_as_words(reply: str, phrase: str, found: bool) -> None:
    assert mentions(reply, (phrase,)) is found
    assert mentions(reply, ("not in any reply", phrase)) is found


def test_conditions_decide_whether_a_turn_is_asked() -> None:
    unless = Condition(unless_last_reply_mentions=("premium",))
    only_if = Condition(if_last_reply_mentions=("premium", "deductible"))
    both = Condition(unless_last_reply_mentions=("penalty",), if_last_reply_mentions=("premium",))
    assert [holds(unless, text) for text in ("the premium", "nothing", "", None)] == [False, True, True, True]
    assert [holds(only_if, text) for text in ("the deductible", "nothing", "", None)] == [True, False, False, False]
    assert [holds(both, text) for text in ("premium", "premium, penalty", "penalty", None)] == [
        True,
        False,
        False,
        False,
    ]
    assert holds(None, None) is True
