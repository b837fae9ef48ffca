"""Claim extraction: quotes become spans, claims that the target did not make are rejected, and omissions are asked for."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from src.agents.extractor import Extraction, anchor, extract
from src.schemas import (
    ExtractorInput,
    ExtractorOutput,
    ExtractorReply,
    QuotedClaim,
)
from src.text.coverage import Coverage
from tests.helpers import Failed, ScriptedJudge, ScriptedReply, client, quoted

REPLY = "Part B costs $202.90 a month. It doesn’t cover **dental** care. Call 1-800-MEDICARE."
"""Only its first sentence is factual: it has an amount of money."""
COSTS = "Part B costs $202.90 a month."
FIVE = (
    "Part A covers hospital care.",
    "Part B covers doctors.",
    "Part C is offered by private plans.",
    "Part D covers prescription drugs.",
    "Medigap policies pay some of the rest.",
)
"""Factual sentences: four of five are enough, three are not."""


def reply_of(*claims: QuotedClaim) -> str:
    return ExtractorReply(claims=claims).model_dump_json()


def extracted(*replies: ScriptedReply, reply: str = REPLY, max_asks: int = 3) -> tuple[Extraction, ScriptedJudge]:
    made, judge = client(*replies, max_asks=max_asks)
    return asyncio.run(extract(made, "Q1", ExtractorInput(question="What is Part B?", reply=reply))), judge


def anchored(*claims: QuotedClaim, reply: str = REPLY) -> Extraction:
    return anchor("Q1", reply, ExtractorReply(claims=claims))


def each(*sentences: str) -> str:
    """An extractor's answer with one claim for each of these sentences."""
    return reply_of(*(quoted(f"C{number}", said, [said]) for number, said in enumerate(sentences, 1)))


def test_claims_get_their_turn_and_their_places_in_the_reply() -> None:
    said = quoted("C1", "Part B costs $202.90 a month.", ["Part B costs $202.90 a month."])
    got, judge = extracted(reply_of(said))
    assert got.failure is None
    assert got.rejected == ()
    assert [claim.model_dump() for claim in got.claims] == [
        {
            "claim_id": "Q1.C1",
            "text": "Part B costs $202.90 a month.",
            "type": "factual",
            "confidence": "high",
            "verifiable": True,
            "quote_spans": ({"start": 0, "end": 29, "match": "exact"},),
            "turn_id": "Q1",
        }
    ]
    assert judge.payload() == {"question": "What is Part B?", "reply": REPLY, "left_out": []}
    assert got.first == got.final == Coverage(1, 1, ())
    ExtractorOutput.model_validate_json(json.dumps({"claims": [c.model_dump(mode="json") for c in got.claims]}))


def test_a_quote_in_plain_typography_is_found_and_marked() -> None:
    got = anchored(quoted("C1", "It does not cover dental care.", ["It doesn't cover dental care."]))
    (span,) = got.claims[0].quote_spans
    assert REPLY[span.start : span.end] == "It doesn’t cover **dental** care."
    assert span.match == "typographic"


def test_every_quote_gets_a_span_in_the_order_given() -> None:
    got = anchored(quoted("C1", "Dental care is not in Part B.", ["It doesn’t cover", "Part B"]))
    assert [REPLY[span.start : span.end] for span in got.claims[0].quote_spans] == ["It doesn’t cover", "Part B"]


def test_a_claim_with_a_quote_that_is_not_in_the_reply_is_rejected_and_counted() -> None:
    good = quoted("C1", "Part B costs something.", ["Part B costs"])
    bad = quoted("C2", "Part B covers dental care.", ["It does cover dental care."])
    half = quoted("C3", "Part B is costly.", ["Part B costs", "and is costly"])
    got, judge = extracted(reply_of(good, bad, half))
    assert [claim.claim_id for claim in got.claims] == ["Q1.C1"]
    assert [(one.turn_id, one.text, one.reason) for one in got.rejected] == [
        ("Q1", "Part B covers dental care.", "a quote is not in the reply"),
        ("Q1", "Part B is costly.", "a quote is not in the reply"),
    ]
    assert len(judge.asked) == 1, "a claim that was not said is never repaired by asking again"


@pytest.mark.parametrize(
    ("text", "unquoted"),
    [
        ("Part B costs $185 a month.", "$185"),
        ("Part B costs 20% of income.", "20%"),
        ("Part B costs something from January 1.", "01-01"),
        ("Part B costs something for 7 months.", "7 months"),
        ("Part B costs something in 2026.", "2026"),
    ],
)
def test_a_claim_may_not_say_a_figure_its_quotes_do_not(text: str, unquoted: str) -> None:
    got = anchored(quoted("C1", text, ["Part B costs"]))
    assert got.claims == ()
    assert got.rejected[0].reason == f"the claim's figures ['{unquoted}'] are not in its quotes"


def test_a_figure_elsewhere_in_the_reply_does_not_count_as_quoted() -> None:
    got = anchored(quoted("C1", "The fee is $202.90.", ["a month"]))
    assert [one.reason for one in got.rejected] == ["the claim's figures ['$202.90'] are not in its quotes"]


def test_the_same_figure_in_another_spelling_is_the_same_figure() -> None:
    got = anchored(quoted("C1", "Part B costs 202.90 dollars.", ["costs $202.90"]))
    assert len(got.claims) == 1


def test_a_claim_may_say_less_than_its_quote() -> None:
    assert len(anchored(quoted("C1", "Part B has a cost.", ["Part B costs $202.90"])).claims) == 1


def test_unverifiable_claims_are_kept_and_marked() -> None:
    got = anchored(
        quoted("C1", "Call Medicare.", ["Call 1-800-MEDICARE"], type_="referral", verifiable=False),
    )
    assert [(claim.type, claim.verifiable) for claim in got.claims] == [("referral", False)]


def test_an_answer_without_claims_is_valid() -> None:
    got, _ = extracted(reply_of(), reply="I cannot help with that.")
    assert got == Extraction()


def test_repeated_ids_are_sent_back_with_the_reason() -> None:
    twice = reply_of(quoted("C1", quotes=["Part B"]), quoted("C1", quotes=["Call"]), quoted("C2", quotes=["care"]))
    got, judge = extracted(twice, reply_of(quoted("C1", "It is Part B.", ["Part B"])))
    assert judge.problems(1) == ["claim ids ['C1'] are used more than once"]
    assert [number for number, _ in judge.asked] == [0, 1]
    assert [claim.claim_id for claim in got.claims] == ["Q1.C1"]


def test_nothing_of_a_refused_answer_is_kept() -> None:
    twice = reply_of(quoted("C1", "Old one.", ["Part B"]), quoted("C1", "Old two.", ["Call"]))
    got, _ = extracted(twice, reply_of(quoted("C9", "Part B costs something.", ["Part B costs"])))
    assert [claim.text for claim in got.claims] == ["Part B costs something."]


def test_a_claim_whose_words_are_not_in_its_quotes_is_rejected() -> None:
    got = anchored(quoted("C1", "Hospice nurses visit homes daily.", ["Part B costs $202.90 a month."]))
    assert got.claims == ()
    assert [one.reason for one in got.rejected] == ["the claim's words are not in its quotes"]


def test_a_claim_may_use_words_of_the_question() -> None:
    said = quoted("C1", "Hospice nurses visit homes daily.", ["Yes, they do"])
    reply = ExtractorReply(claims=(said,))
    got = anchor("Q1", "Yes, they do.", reply, "Do hospice nurses visit homes daily?")
    assert (len(got.claims), got.rejected) == (1, ())
    assert anchor("Q1", "Yes, they do.", reply, "What is Part B?").claims == ()


def test_a_figure_of_the_question_does_not_count_as_quoted() -> None:
    said = ExtractorReply(claims=(quoted("C1", "Yes, Part B costs $202.90.", ["Yes"]),))
    got = anchor("Q1", "Yes.", said, "Does Part B cost $202.90?")
    assert [one.reason for one in got.rejected] == ["the claim's figures ['$202.90'] are not in its quotes"]


@pytest.mark.parametrize("count", [4, 5])
def test_an_answer_that_covers_enough_is_not_asked_for_more(count: int) -> None:
    got, judge = extracted(each(*FIVE[:count]), reply=" ".join(FIVE))
    assert len(judge.asked) == 1
    assert got.first == got.final == Coverage(5, count, FIVE[count:])


@pytest.mark.parametrize("count", [0, 1, 3])
def test_if_it_covers_too_little_the_extractor_is_asked_once_for_what_it_left_out(count: int) -> None:
    got, judge = extracted(each(*FIVE[:count]), each(*FIVE[count:]), reply=" ".join(FIVE))
    assert [number for number, _ in judge.asked] == [0, 3], "the second round is numbered after all asks of the first"
    assert judge.payload(1) == {"question": "What is Part B?", "reply": " ".join(FIVE), "left_out": list(FIVE[count:])}
    assert [claim.text for claim in got.claims] == list(FIVE)
    assert [claim.claim_id for claim in got.claims] == [
        *(f"Q1.C{number}" for number in range(1, count + 1)),
        *(f"Q1.again.C{number}" for number in range(1, 6 - count)),
    ]
    assert (got.first, got.final) == (Coverage(5, count, FIVE[count:]), Coverage(5, 5, ()))
    assert got.failure is None
    assert len({claim.claim_id for claim in got.claims}) == 5


def test_what_is_left_out_twice_stays_left_out_and_is_counted() -> None:
    got, judge = extracted(each(FIVE[0]), each(FIVE[1]), reply=" ".join(FIVE))
    assert len(judge.asked) == 2
    assert (got.first, got.final) == (Coverage(5, 1, FIVE[1:]), Coverage(5, 2, FIVE[2:]))
    assert got.failure is None


@pytest.mark.parametrize(
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
    assert [claim.claim_id for claim in got.claims] == ["Q1.C1"]
    assert got.failure is None
    assert got.rejected == ()
    assert got.first == got.final == Coverage(5, 1, FIVE[1:])


def test_if_the_first_round_fails_there_is_no_second() -> None:
    got, judge = extracted(*["no JSON"] * 2, reply=" ".join(FIVE), max_asks=2)
    assert len(judge.asked) == 2
    assert got.failure is not None
    assert (got.first, got.final) == (Coverage(0, 0, ()), Coverage(0, 0, ()))


def test_the_second_round_too_is_asked_again_if_its_answer_does_not_fit() -> None:
    got, judge = extracted("no JSON", each(FIVE[0]), "no JSON", each(*FIVE[1:]), reply=" ".join(FIVE))
    assert [number for number, _ in judge.asked] == [0, 1, 3, 4]
    assert got.final == Coverage(5, 5, ())


def test_a_claim_given_in_both_rounds_is_kept_once() -> None:
    reworded = quoted("C2", "Hospital care is covered by Part A.", [FIVE[0]])
    again = reply_of(quoted("C1", FIVE[0], [FIVE[0]]), reworded, quoted("C3", FIVE[1], [FIVE[1]]))
    got, _ = extracted(each(FIVE[0]), again, reply=" ".join(FIVE))
    assert [(claim.claim_id, claim.text) for claim in got.claims] == [
        ("Q1.C1", FIVE[0]),
        ("Q1.again.C2", "Hospital care is covered by Part A."),
        ("Q1.again.C3", FIVE[1]),
    ]


def test_claim_ids_of_the_two_rounds_never_collide() -> None:
    first = reply_of(quoted("RC1", FIVE[0], [FIVE[0]]))
    got, _ = extracted(first, reply_of(quoted("C1", FIVE[1], [FIVE[1]])), reply=" ".join(FIVE))
    assert len(got.claims) == 2
    assert len({claim.claim_id for claim in got.claims}) == 2


def test_claims_without_a_quote_are_rejected_and_counted_in_both_rounds() -> None:
    first = reply_of(quoted("C1", FIVE[0], [FIVE[0]]), quoted("C2", "Part E is new.", ["Part E is new."]))
    second = reply_of(quoted("C1", "Part F is newer.", ["Part F is newer."]), quoted("C2", FIVE[1], [FIVE[1]]))
    got, _ = extracted(first, second, reply=" ".join(FIVE))
    assert [claim.claim_id for claim in got.claims] == ["Q1.C1", "Q1.again.C2"]
    assert [one.text for one in got.rejected] == ["Part E is new.", "Part F is newer."]


def test_a_rejected_claim_covers_nothing() -> None:
    strange = quoted("C1", "Hospice nurses visit homes daily.", [COSTS])
    got, judge = extracted(reply_of(strange), reply_of(quoted("C1", COSTS, [COSTS])))
    assert judge.payload(1)["left_out"] == [COSTS]
    assert (got.first, got.final) == (Coverage(1, 0, (COSTS,)), Coverage(1, 1, ()))


def test_an_unverifiable_claim_covers_its_sentence_too() -> None:
    got, judge = extracted(reply_of(quoted("C1", COSTS, [COSTS], verifiable=False)))
    assert len(judge.asked) == 1
    assert got.final == Coverage(1, 1, ())


def test_a_reply_without_a_factual_sentence_needs_no_second_round() -> None:
    got, judge = extracted(reply_of(), reply="Good question! Shall we go through it together, step by step?")
    assert len(judge.asked) == 1
    assert got == Extraction()


@pytest.mark.parametrize(
    ("reply", "quote", "place", "match"),
    [
        ("| Part | Cost |\n|---|---|\n| Part B premium | $202.90 |\n", "| Part B premium | $202.90 |", None, "exact"),
        ("| Part | Cost |\n|---|---|\n| Part B premium | $202.90 |\n", "Part B premium | $202.90", None, "exact"),
        (
            "| Part | Cost |\n|---|---|\n| **Part B** premium | `$202.90` |\n",
            "Part B premium | '$202.90'",
            "Part B** premium | `$202.90`",
            "typographic",
        ),
        ("The\u00a0Part\u00a0B premium is $202.90.", "The Part B premium is $202.90.", None, "typographic"),
        ("The Part B premium is\u202f$202.90.", "The Part B premium is $202.90.", None, "typographic"),
        ("The “Part B” premium is $202.90.", 'The "Part B" premium is $202.90.', None, "typographic"),
        ("The Part B premium’s $202.90.", "The Part B premium's $202.90.", None, "typographic"),
        ("💡 The Part B premium is $202.90 💵!", "💡 The Part B premium is $202.90 💵", None, "exact"),
        ("💡 The **Part B** premium is $202.90 💵!", "The Part B premium is $202.90", None, "typographic"),
        ("👩🏽‍⚕️ The Part B premium is $202.90.", "The Part B premium is $202.90.", None, "exact"),
        ("* The Part B premium –\n  it’s $202.90", "The Part B premium - it's $202.90", None, "typographic"),
        (
            "La prima de la Parte B (Part B premium) es de $202.90 al mes.",
            "Parte B (Part B premium) es de $202.90",
            None,
            "exact",
        ),
    ],
)
def test_quotes_are_found_in_tables_lists_and_typographic_text(
    reply: str, quote: str, place: str | None, match: str
) -> None:
    got = anchored(quoted("C1", "The Part B premium is $202.90.", [quote]), reply=reply)
    assert got.rejected == ()
    (span,) = got.claims[0].quote_spans
    assert span.match == match
    found = reply[span.start : span.end]
    assert found == (place or found)
    if match == "exact":
        assert found == quote
    assert "202.90" in found
    assert found[0].isalnum() or found[0] == quote[0]


@pytest.mark.parametrize("text", ["La prima de la Parte B es de $202.90 al mes.", "The Part B premium is $202.90."])
def test_a_spanish_reply_is_anchored_whatever_language_the_claim_is_in(text: str) -> None:
    reply = "Claro que sí. La prima estándar de la Parte B es de $202.90 al mes en todo el país."
    quote = "La prima estándar de la Parte B es de $202.90 al mes"
    got, judge = extracted(reply_of(quoted("C1", text, [quote])), reply=reply)
    assert got.rejected == ()
    assert reply[got.claims[0].quote_spans[0].start :].startswith(quote)
    assert got.final.left_out == ()
    assert len(judge.asked) == 1


def test_typographic_quotes_are_marked_differently_from_exact_ones() -> None:
    reply = "Part B’s premium is $202.90. The Part B deductible is $283."
    got = anchored(
        quoted("C1", "The Part B premium is $202.90.", ["Part B's premium is $202.90."]),
        quoted("C2", "The Part B deductible is $283.", ["The Part B deductible", "is $283"]),
        reply=reply,
    )
    assert [[span.match for span in claim.quote_spans] for claim in got.claims] == [["typographic"], ["exact", "exact"]]


@pytest.mark.parametrize(
    "bad",
    [
        '{"claims": [{"claim_id": "C1"}]}',
        reply_of(quoted()).replace('"quotes"', '"quote_spans"'),
        reply_of(quoted()).replace('["Plans have networks."]', "[]"),
        reply_of(quoted()).replace('"factual"', '"opinion"'),
        reply_of(quoted()).replace('"C1"', '"C 1|x"'),
        "Sure! Here are the claims:",
    ],
)
def test_a_judge_that_never_fits_the_contract_has_failed(bad: str) -> None:
    got, judge = extracted(bad, bad, bad)
    assert len(judge.asked) == 3
    assert (got.claims, got.rejected) == ((), ())
    assert got.failure is not None
    assert got.failure.startswith("no usable answer after 3 asks: ")


def test_a_failed_call_is_a_failure_not_an_empty_extraction() -> None:
    got, judge = extracted(Failed("timeout", error="too slow"))
    assert got == Extraction(failure="the call failed: timeout: too slow")
    assert len(judge.asked) == 1


@given(st.lists(st.tuples(st.text(min_size=1, max_size=30), st.text(min_size=1, max_size=30)), max_size=8), st.text())
def test_every_claim_is_either_anchored_or_rejected(said: list[tuple[str, str]], reply: str) -> None:
    claims = [quoted(f"C{n}", text, [quote]) for n, (text, quote) in enumerate(said)]
    got = anchored(*claims, reply=reply)
    assert len(got.claims) + len(got.rejected) == len(claims)
    for claim in got.claims:
        for span in claim.quote_spans:
            assert 0 <= span.start < span.end <= len(reply)
