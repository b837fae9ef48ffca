"""Claim extraction: quotes become spans, and claims that the target did not make are rejected."""

from __future__ import annotations

import asyncio
import json

from hypothesis import given
from hypothesis import strategies as st

from src.agents.ask import AskedTurn, about
from src.agents.extractor import CHARACTERS_PER_CLAIM, FEWEST, Extraction, anchor, extract
from src.schemas import ClaimType, ExtractorOutput, ExtractorReply, Persona, QuotedClaim
from src.text.coverage import Coverage
from src.text.fence import reply_schema
from tests.cases import each_case
from tests.helpers import Failed, ScriptedJudge, ScriptedReply, client, quoted

REPLY = "Part B costs $202.90 a month. It doesn’t cover **dental** care. Call 1-800-MEDICARE."
"""Two sentences that say something: the first is factual, by its amount; the last is too short to need a claim."""
COSTS = "Part B costs $202.90 a month."
DENTAL = "It doesn’t cover **dental** care."
ASKED = AskedTurn("What is Part B?", 2026)


def reply_of(*claims: QuotedClaim) -> str:
    return ExtractorReply(claims=claims).model_dump_json()


def extracted(*replies: ScriptedReply, reply: str = REPLY, max_asks: int = 3) -> tuple[Extraction, ScriptedJudge]:
    made, judge = client(*replies, max_asks=max_asks)
    return asyncio.run(extract(made, "Q1", ASKED, reply)), judge


def anchored(*claims: QuotedClaim, reply: str = REPLY, asked: AskedTurn = ASKED) -> Extraction:
    return anchor("Q1", reply, ExtractorReply(claims=claims), asked)


def each(*sentences: str) -> str:
    """An extractor's answer with one claim for each of these sentences."""
    return reply_of(*(quoted(f"C{number}", said, [said]) for number, said in enumerate(sentences, 1)))


def test_claims_get_their_turn_and_their_places_in_the_reply() -> None:
    said = quoted("C1", "Part B costs $202.90 a month.", ["Part B costs $202.90 a month."])
    got, judge = extracted(reply_of(said), reply=COSTS)
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
    assert judge.payload() == {
        "plan_year": 2026,
        "earlier_questions": [],
        "question": "What is Part B?",
        "reply": COSTS,
        "left_out": [],
    }
    assert got.first == got.final == Coverage(1, ())
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
    good = quoted("C1", COSTS, [COSTS])
    dental = quoted("C4", "Dental care is not covered.", [DENTAL])
    bad = quoted("C2", "Part B covers dental care.", ["It does cover dental care."])
    half = quoted("C3", "Part B is costly.", ["Part B costs", "and is costly"])
    got, judge = extracted(reply_of(good, bad, half, dental))
    assert [claim.claim_id for claim in got.claims] == ["Q1.C1", "Q1.C4"]
    assert [(one.turn_id, one.text, one.reason) for one in got.rejected] == [
        ("Q1", "Part B covers dental care.", "a quote is not in the reply"),
        ("Q1", "Part B is costly.", "a quote is not in the reply"),
    ]
    assert len(judge.asked) == 1, "a claim that was not said is never repaired by asking again"


@each_case(
    ("text", "unquoted"),
    [
        ("Part B costs $185 a month.", "$185"),
        ("Part B costs 20% of income.", "20%"),
        ("Part B costs something from January 1.", "01-01"),
        ("Part B costs something for 7 months.", "7 months"),
        ("Part B costs something in 2024.", "2024"),
        ("Part B costs something in 2028.", "2028"),
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
    got = anchored(quoted("C1", "Call Medicare.", ["Call 1-800-MEDICARE"], type_="referral", verifiable=False))
    assert [(claim.type, claim.verifiable) for claim in got.claims] == [("referral", False)]


def test_an_answer_without_claims_is_valid() -> None:
    got, judge = extracted(reply_of(), reply="Of course. Shall we begin?")
    assert (got, len(judge.asked)) == (Extraction(), 1)


def test_repeated_ids_are_sent_back_with_the_reason() -> None:
    twice = reply_of(quoted("C1", quotes=["Part B"]), quoted("C1", quotes=["Call"]), quoted("C2", quotes=["care"]))
    got, judge = extracted(twice, reply_of(quoted("C1", REPLY, [REPLY])))
    assert judge.problems(1) == ["claim ids ['C1'] are used more than once"]
    assert [number for number, _ in judge.asked] == [0, 1]
    assert [claim.claim_id for claim in got.claims] == ["Q1.C1"]


def test_nothing_of_a_refused_answer_is_kept() -> None:
    twice = reply_of(quoted("C1", "Old one.", ["Part B"]), quoted("C1", "Old two.", ["Call"]))
    got, _ = extracted(twice, reply_of(quoted("C9", REPLY, [REPLY])))
    assert [claim.text for claim in got.claims] == [REPLY]


def test_a_claim_whose_words_are_not_in_its_quotes_is_rejected() -> None:
    got = anchored(quoted("C1", "Hospice nurses visit homes daily.", ["Part B costs $202.90 a month."]))
    assert got.claims == ()
    assert [one.reason for one in got.rejected] == ["the claim's words are not in its quotes"]


def test_a_claim_may_use_words_of_the_question() -> None:
    said = quoted("C1", "Hospice nurses visit homes daily.", ["Yes, they do"])
    asked = AskedTurn("Do hospice nurses visit homes daily?", 2026)
    got = anchored(said, reply="Yes, they do.", asked=asked)
    assert (len(got.claims), got.rejected) == (1, ())
    assert anchored(said, reply="Yes, they do.").claims == ()


MARIA = Persona.model_validate_json('{"name": "Maria", "age": 67, "monthly_income": 1600.0, "zip_code": "00000"}')


@each_case(
    ("text", "quote", "asked"),
    [
        ("Yes, Part B costs $202.90.", "Yes", AskedTurn("Does Part B cost $202.90?", 2026)),
        ("Yes, 12 people are too few.", "Yes, too few", AskedTurn("Is that enough?", 2026, ("We are 12 at work.",))),
        ("In 2026 Part B costs more.", "Part B costs more this year", ASKED),
        ("In 2025 Part B cost less.", "Part B cost less last year", ASKED),
        ("In 2027 Part B costs more.", "Part B costs more next year", ASKED),
        ("With $1,600 a month you may get help.", "you may get help", AskedTurn("Help?", 2026, (), about(MARIA))),
        ("A person who is 67 may get help.", "you may get help", AskedTurn("Help?", 2026, (), about(MARIA))),
        ("Two people with $3,200 may get help.", "you two may get help", AskedTurn("We each get $1,600.", 2026)),
    ],
)
def test_a_claim_may_state_figures_that_the_question_persona_or_plan_year_supplies(
    text: str, quote: str, asked: AskedTurn
) -> None:
    got = anchored(quoted("C1", text, [quote]), reply=f"{quote}.", asked=asked)
    assert ([claim.text for claim in got.claims], got.rejected) == ([text], ())


@each_case(
    ("text", "unquoted"),
    [
        ("Help pays $1,500 of it.", "$1500"),
        ("Help pays $67 of it.", "$67"),
        ("Help pays 67% of it.", "67%"),
        ("Help pays $0 of it.", "$0"),
        ("Help pays part of it for 67 months.", "67 months"),
        ("Help pays $2,027 of it.", "$2027"),
    ],
)
def test_a_persons_age_zip_code_and_plan_year_supply_no_amounts(text: str, unquoted: str) -> None:
    got = anchored(
        quoted("C1", text, ["Help pays of it"]),
        reply="Help pays of it.",
        asked=AskedTurn("Help?", 2026, (), about(MARIA)),
    )
    assert [one.reason for one in got.rejected] == [f"the claim's figures ['{unquoted}'] are not in its quotes"]


def test_a_quote_may_bring_a_condition_from_a_neighboring_sentence() -> None:
    reply = "This holds if you are under 65. You can wait 8 months."
    said = quoted("C1", "Under 65, a person can wait 8 months.", ["You can wait 8 months.", "if you are under 65"])
    got = anchored(said, reply=reply)
    assert [len(claim.quote_spans) for claim in got.claims] == [2]


@each_case(("type_", "checked"), [("factual", True), ("recommendation", True), ("referral", False)])
def test_the_extractor_cannot_exempt_an_amount_from_checking(type_: ClaimType, checked: bool) -> None:
    got = anchored(quoted("C1", COSTS, [COSTS], type_=type_, verifiable=False))
    assert [claim.verifiable for claim in got.claims] == [checked]


@each_case(("length", "longest"), [(1, FEWEST), (4_000, 4_000 // CHARACTERS_PER_CLAIM)])
def test_an_answer_may_have_as_many_claims_as_the_reply_can_hold(length: int, longest: int) -> None:
    _, judge = extracted(reply_of(), reply="x" * length)
    assert judge.asked[0][1].response_schema == reply_schema(ExtractorReply, longest)


def test_the_extractor_is_told_what_was_asked_before_and_for_which_year() -> None:
    made, judge = client(each(COSTS))
    asyncio.run(extract(made, "Q2", AskedTurn("And Part B?", 2026, ("What is Part A?",), ("Maria",)), COSTS))
    payload = judge.payload()
    assert (payload["plan_year"], payload["earlier_questions"]) == (2026, ["What is Part A?"])
    assert "Maria" not in json.dumps(payload), "the person's own data stays with code"


@each_case(
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


@each_case("text", ["La prima de la Parte B es de $202.90 al mes.", "The Part B premium is $202.90."])
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


@each_case(
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
