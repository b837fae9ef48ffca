"""Claim extraction: quotes become spans, and what the target did not say is rejected and counted."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from src.agents.extractor import Extraction, anchor, extract
from src.schemas import ExtractorInput, ExtractorOutput, ExtractorReply, QuotedClaim
from tests.helpers import Failed, ScriptedJudge, quoted, seat

REPLY = "Part B costs $202.90 a month. It doesn’t cover **dental** care. Call 1-800-MEDICARE."


def reply_of(*claims: QuotedClaim) -> str:
    return ExtractorReply(claims=claims).model_dump_json()


def extracted(*replies: str | Failed, reply: str = REPLY) -> tuple[Extraction, ScriptedJudge]:
    made, judge = seat(*replies)
    return asyncio.run(extract(made, "Q1", ExtractorInput(question="What is Part B?", reply=reply))), judge


def anchored(*claims: QuotedClaim, reply: str = REPLY) -> Extraction:
    return anchor("Q1", reply, ExtractorReply(claims=claims))


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
    assert judge.payload() == {"question": "What is Part B?", "reply": REPLY}
    ExtractorOutput.model_validate_json(json.dumps({"claims": [c.model_dump(mode="json") for c in got.claims]}))


def test_a_quote_in_plain_typography_is_found_and_labelled() -> None:
    got = anchored(quoted("C1", "It does not cover dental care.", ["It doesn't cover dental care."]))
    (span,) = got.claims[0].quote_spans
    assert REPLY[span.start : span.end] == "It doesn’t cover **dental** care."
    assert span.match == "typographic"


def test_every_quote_gets_a_span_in_the_order_given() -> None:
    got = anchored(quoted("C1", "Dental care is not in Part B.", ["It doesn’t cover", "Part B"]))
    assert [REPLY[span.start : span.end] for span in got.claims[0].quote_spans] == ["It doesn’t cover", "Part B"]


def test_a_claim_with_a_quote_that_is_not_there_is_rejected_and_counted() -> None:
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


def test_claims_that_cannot_be_checked_are_kept_as_such() -> None:
    got = anchored(
        quoted("C1", "Call Medicare.", ["Call 1-800-MEDICARE"], type_="referral", verifiable=False),
    )
    assert [(claim.type, claim.verifiable) for claim in got.claims] == [("referral", False)]


def test_no_claims_is_an_answer() -> None:
    got, _ = extracted(reply_of(), reply="I cannot help with that.")
    assert got == Extraction()


def test_repeated_ids_are_sent_back_with_the_reason() -> None:
    twice = reply_of(quoted("C1", quotes=["Part B"]), quoted("C1", quotes=["Call"]), quoted("C2", quotes=["care"]))
    got, judge = extracted(twice, reply_of(quoted("C1", "It is Part B.", ["Part B"])))
    assert judge.problems(1) == ["claim ids ['C1'] stand more than once"]
    assert [number for number, _ in judge.asked] == [0, 1]
    assert [claim.claim_id for claim in got.claims] == ["Q1.C1"]


def test_nothing_of_a_refused_answer_is_kept() -> None:
    twice = reply_of(quoted("C1", "Old one.", ["Part B"]), quoted("C1", "Old two.", ["Call"]))
    got, _ = extracted(twice, reply_of(quoted("C9", "New.", ["Call"])))
    assert [claim.text for claim in got.claims] == ["New."]


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
    assert got.failure.startswith("no usable answer after 3 askings: ")


def test_a_failed_call_is_a_failure_and_no_empty_extraction() -> None:
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
