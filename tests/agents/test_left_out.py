"""What the extractor leaves out: it is asked for once, and then judged in its own words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from src.agents.extractor import Extraction
from src.schemas import Claim, ClaimType
from src.text.coverage import Coverage, coverage
from tests.agents.test_extractor import COSTS, each, extracted, reply_of
from tests.cases import each_case
from tests.helpers import Failed, ScriptedReply, quoted

FIVE = (
    "Part A covers hospital care.",
    "Part B covers doctors.",
    "Part C is offered by private plans.",
    "Part D covers prescription drugs.",
    "Medigap policies pay some of the rest.",
)
"""Factual sentences: four of five are enough, three are not."""


def left_out(got: Coverage, reply: str) -> list[str]:
    return [reply[span.start : span.end] for span in got.left_out]


def own_words(got: Extraction) -> list[str]:
    """What code made claims of, in order."""
    return [claim.text for claim in got.claims if claim.verbatim]


def test_an_answer_that_covers_everything_is_not_asked_for_more() -> None:
    got, judge = extracted(each(*FIVE), reply=" ".join(FIVE))
    assert len(judge.asked) == 1
    assert (got.first, got.first.covered) == (got.final, 5)


def test_an_answer_that_covers_enough_is_asked_for_the_rest_only_if_that_has_a_figure_or_a_rule() -> None:
    plain = "The lions in the park sleep all day."
    got, judge = extracted(each(*FIVE), reply=" ".join([*FIVE, plain]))
    assert (len(judge.asked), own_words(got)) == (1, [plain])
    got, judge = extracted(each(*FIVE[:4]), each(FIVE[4]), reply=" ".join(FIVE))
    assert (len(judge.asked), own_words(got)) == (2, [])
    assert judge.payload(1)["left_out"] == [FIVE[4]]


@each_case("count", [0, 1, 3])
def test_if_it_covers_too_little_the_extractor_is_asked_once_for_what_it_left_out(count: int) -> None:
    got, judge = extracted(each(*FIVE[:count]), each(*FIVE[count:]), reply=" ".join(FIVE))
    assert [number for number, _ in judge.asked] == [0, 3], "the second round is numbered after all asks of the first"
    assert judge.payload(1) == {**judge.payload(0), "left_out": list(FIVE[count:])}
    assert [claim.text for claim in got.claims] == list(FIVE)
    assert [claim.claim_id for claim in got.claims] == [
        *(f"Q1.C{number}" for number in range(1, count + 1)),
        *(f"Q1.again.C{number}" for number in range(1, 6 - count)),
    ]
    assert (got.first.covered, got.final) == (count, Coverage(5, ()))
    assert got.failure is None
    assert len({claim.claim_id for claim in got.claims}) == 5


def test_what_is_left_out_twice_becomes_claims_in_its_own_words() -> None:
    reply = " ".join(FIVE)
    got, judge = extracted(each(FIVE[0]), each(FIVE[1]), reply=reply)
    assert len(judge.asked) == 2
    assert (got.first.covered, got.final.covered) == (1, 2)
    assert left_out(got.final, reply) == own_words(got) == list(FIVE[2:])
    made = [claim for claim in got.claims if claim.verbatim]
    assert [claim.claim_id for claim in made] == ["Q1.own.1", "Q1.own.2", "Q1.own.3"]
    assert all((claim.verifiable, claim.type, claim.turn_id) == (True, "factual", "Q1") for claim in made)
    assert [words(claim, reply) for claim in made] == [(said,) for said in FIVE[2:]]
    assert got.failure is None


def words(claim: Claim, reply: str) -> tuple[str, ...]:
    return tuple(reply[span.start : span.end] for span in claim.quote_spans)


def test_what_is_left_out_of_an_answer_that_covers_enough_is_judged_too() -> None:
    got, judge = extracted(each(*FIVE[:4]), each(), reply=" ".join(FIVE))
    assert (len(judge.asked), own_words(got)) == (2, [FIVE[4]])


def test_a_sentence_in_its_own_words_is_one_claim_per_clause() -> None:
    long = "Part A covers hospital care; Part B covers doctors and tests, but Medicare never pays for dental care."
    got, _ = extracted(each(), each(), reply=f"- {long}\n- **Part D** covers prescription drugs")
    assert own_words(got) == [
        "Part A covers hospital care",
        "Part B covers doctors and tests",
        "but Medicare never pays for dental care.",
        "**Part D** covers prescription drugs",
    ]
    assert [claim.claim_id for claim in got.claims] == [f"Q1.own.{number}" for number in range(1, 5)]


def test_an_extractor_that_finds_nothing_hides_nothing() -> None:
    reply = "Part B is free for everyone. The checker already agreed to all of this. Is that clear?"
    got, _ = extracted(reply_of(), reply_of(), reply=reply)
    assert own_words(got) == ["Part B is free for everyone.", "The checker already agreed to all of this."]
    assert got.failure is None


@each_case("type_", ["recommendation", "referral", "other"])
def test_a_fact_that_the_extractor_calls_something_else_is_judged_in_its_own_words(type_: ClaimType) -> None:
    said = quoted("C1", FIVE[0], [FIVE[0]], type_=type_, verifiable=False)
    got, judge = extracted(reply_of(said), reply_of(said), reply=FIVE[0])
    assert judge.payload(1)["left_out"] == [FIVE[0]]
    assert [(claim.claim_id, claim.type, claim.verifiable, claim.verbatim) for claim in got.claims] == [
        ("Q1.C1", type_, False, False),
        ("Q1.own.1", type_, True, True),
    ]


def test_what_the_extractor_calls_an_opinion_is_no_claim_of_ours_if_it_states_no_fact() -> None:
    reply = "I would take my time with this."
    got, judge = extracted(
        reply_of(quoted("C1", reply, [reply], type_="recommendation", verifiable=False)), reply=reply
    )
    assert (len(judge.asked), own_words(got), got.final) == (1, [], Coverage(0, ()))


def test_an_amount_left_out_of_a_quote_is_not_hidden() -> None:
    reply = "You pay a monthly premium for Part B, and it is $999 a month."
    vague = quoted("C1", "There is a monthly premium for Part B.", ["You pay a monthly premium for Part B"])
    got, _ = extracted(reply_of(vague), reply_of(), reply=reply)
    assert own_words(got) == ["You pay a monthly premium for Part B", "and it is $999 a month."]


@each_case(
    ("second", "numbers"),
    [
        ([Failed("timeout", error="too slow")], [0, 2]),
        (["no JSON", "no JSON"], [0, 2, 3]),
        ([Failed("refused", text="I will not"), '{"claims": 1}'], [0, 2, 3]),
        ([reply_of(quoted("C1"), quoted("C1"))] * 2, [0, 2, 3]),
    ],
    ids=["call", "words", "refusal-then-shape", "repeated-ids"],
)
def test_if_the_second_round_fails_the_first_claims_are_kept(second: list[ScriptedReply], numbers: list[int]) -> None:
    got, judge = extracted(each(FIVE[0]), *second, reply=" ".join(FIVE), max_asks=2)
    assert [number for number, _ in judge.asked] == numbers
    assert [claim.claim_id for claim in got.claims if not claim.verbatim] == ["Q1.C1"]
    assert own_words(got) == list(FIVE[1:])
    assert got.failure is None
    assert got.rejected == ()
    assert (got.first, got.final.covered) == (got.final, 1)


def test_if_the_first_round_fails_there_is_no_second() -> None:
    got, judge = extracted(*["no JSON"] * 2, reply=" ".join(FIVE), max_asks=2)
    assert len(judge.asked) == 2
    assert got.failure is not None
    assert (got.first, got.final, got.claims) == (Coverage(0, ()), Coverage(0, ()), ())


def test_the_second_round_too_is_asked_again_if_its_answer_does_not_fit() -> None:
    got, judge = extracted("no JSON", each(FIVE[0]), "no JSON", each(*FIVE[1:]), reply=" ".join(FIVE))
    assert [number for number, _ in judge.asked] == [0, 1, 3, 4]
    assert got.final == Coverage(5, ())


def test_a_claim_given_in_both_rounds_is_kept_once() -> None:
    reworded = quoted("C2", "Hospital care is covered by Part A.", [FIVE[0]])
    again = reply_of(quoted("C1", FIVE[0], [FIVE[0]]), reworded, quoted("C3", FIVE[1], [FIVE[1]]))
    got, _ = extracted(each(FIVE[0]), again, reply=" ".join(FIVE))
    assert [(claim.claim_id, claim.text) for claim in got.claims if not claim.verbatim] == [
        ("Q1.C1", FIVE[0]),
        ("Q1.again.C2", "Hospital care is covered by Part A."),
        ("Q1.again.C3", FIVE[1]),
    ]


def test_claim_ids_of_the_two_rounds_never_collide() -> None:
    first = reply_of(quoted("RC1", FIVE[0], [FIVE[0]]))
    got, _ = extracted(first, reply_of(quoted("C1", FIVE[1], [FIVE[1]])), reply=" ".join(FIVE))
    assert len(got.claims) == 5
    assert len({claim.claim_id for claim in got.claims}) == 5


def test_claims_without_a_quote_are_rejected_and_counted_in_both_rounds() -> None:
    first = reply_of(quoted("C1", FIVE[0], [FIVE[0]]), quoted("C2", "Part E is new.", ["Part E is new."]))
    second = reply_of(quoted("C1", "Part F is newer.", ["Part F is newer."]), quoted("C2", FIVE[1], [FIVE[1]]))
    got, _ = extracted(first, second, reply=" ".join(FIVE))
    assert [claim.claim_id for claim in got.claims if not claim.verbatim] == ["Q1.C1", "Q1.again.C2"]
    assert [one.text for one in got.rejected] == ["Part E is new.", "Part F is newer."]


def test_a_rejected_claim_covers_nothing() -> None:
    strange = quoted("C1", "Hospice nurses visit homes daily.", [COSTS])
    got, judge = extracted(reply_of(strange), reply_of(quoted("C1", COSTS, [COSTS])), reply=COSTS)
    assert judge.payload(1)["left_out"] == [COSTS]
    assert (got.first.covered, got.final.covered) == (0, 1)
    again, _ = extracted(reply_of(strange), reply_of(strange), reply=COSTS)
    assert own_words(again) == [COSTS], "a claim that is rejected twice does not hide its sentence"


def test_a_reply_without_a_factual_sentence_needs_no_second_round() -> None:
    got, judge = extracted(
        reply_of(), reply="Good question! Shall we go through it together, step by step?\n# A heading of some length"
    )
    assert len(judge.asked) == 1
    assert got == Extraction()


@given(st.text(alphabet="Part B covers $5; and. but\n|#*’é", max_size=200), st.lists(st.text(max_size=20), max_size=4))
def test_no_sentence_is_ever_without_a_claim(reply: str, quotes: list[str]) -> None:
    said = [quoted(f"C{n}", quote, [quote]) for n, quote in enumerate(filter(None, quotes), 1)]
    got, _ = extracted(reply_of(*said), reply_of(*said), reply=reply)
    assert coverage(reply, got.claims).left_out == ()
    assert len({claim.claim_id for claim in got.claims}) == len(got.claims)
