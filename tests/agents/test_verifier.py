"""The verifier: one verdict per claim, evidence that fits the label, no credit for what only the key says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from src.agents.verifier import (
    Verification,
    in_view,
    verify,
    violations,
)
from src.schemas import (
    Claim,
    ClaimInView,
    KeyInView,
    QuoteSpan,
    Verdict,
    VerifierInput,
    VerifierOutput,
)
from tests.helpers import (
    Failed,
    ScriptedJudge,
    ScriptedReply,
    claim,
    client,
    fact_json,
    key_of,
    scenario,
    shown,
    verdict,
    verdicts_json,
)

KEY = key_of(scenario())
"""F1 without figures, F2 with $202.90, D1 and D2."""
THREE = tuple(shown(f"Q1.C{n}") for n in (1, 2, 3))


def verified(
    *replies: ScriptedReply, claims: Sequence[ClaimInView] = THREE, max_asks: int = 3, seed: int = 7
) -> tuple[Verification, ScriptedJudge]:
    made, judge = client(*replies, max_asks=max_asks, seed=seed)
    return asyncio.run(verify(made, "What is Part B?", tuple(claims), KEY)), judge


def test_one_verdict_per_claim_in_the_claims_order() -> None:
    given_ = [verdict("Q1.C3", "CONTRADICTED", ["D1"], "high"), verdict("Q1.C1"), verdict("Q1.C2", "NOT_IN_KEY")]
    got, judge = verified(verdicts_json(*given_))
    assert got == Verification((given_[1], given_[2], given_[0]), (), None)
    assert len(judge.asked) == 1
    VerifierOutput.model_validate_json(verdicts_json(*got.verdicts))


def test_the_judge_sees_the_key_but_not_what_is_required_or_why() -> None:
    _, judge = verified(verdicts_json(*(verdict(one.claim_id) for one in THREE)))
    payload = judge.payload()
    VerifierInput.model_validate_json(json.dumps(payload))
    assert payload["question"] == "What is Part B?"
    assert set(payload["answer_key"]) == {"canonical_facts", "disallowed_claims"}
    assert set(payload["answer_key"]["canonical_facts"][0]) == {"fact_id", "statement", "severity_if_wrong", "tells"}
    assert [one["claim_id"] for one in payload["answer_key"]["disallowed_claims"]] == ["D1", "D2"]
    assert set(payload["claims"][0]) == {"claim_id", "text", "quotes"}


def test_claims_are_shown_in_an_order_of_the_judges_own_seed() -> None:
    many = [shown(f"Q1.C{n}") for n in range(10)]
    reply = verdicts_json(*(verdict(one.claim_id) for one in many))

    def order(seed: int) -> list[str]:
        return [one["claim_id"] for one in verified(reply, claims=many, seed=seed)[1].payload()["claims"]]

    assert order(1) == order(1)
    assert order(1) != order(2)
    assert sorted(order(1)) == sorted(one.claim_id for one in many)


def test_the_view_of_a_claim_has_its_words_in_the_reply() -> None:
    reply = "Well: plans have networks. Always."
    spans = (QuoteSpan(start=6, end=25), QuoteSpan(start=27, end=33))
    made = Claim(**{**claim().model_dump(), "quote_spans": spans})
    assert in_view(made, reply).quotes == ("plans have networks", "Always")


def test_verdicts_that_pass_are_kept_and_only_the_rest_is_asked_for() -> None:
    first = verdicts_json(verdict("Q1.C1"), verdict("Q1.C2", "SUPPORTED", []))
    second = verdicts_json(verdict("Q1.C2", "NOT_IN_KEY"), verdict("Q1.C3", "CONTRADICTED"))
    got, judge = verified(first, second)
    assert [(one.claim_id, one.label) for one in got.verdicts] == [
        ("Q1.C1", "SUPPORTED"),
        ("Q1.C2", "NOT_IN_KEY"),
        ("Q1.C3", "CONTRADICTED"),
    ]
    assert (got.unjudged, got.failure) == ((), None)
    assert [number for number, _ in judge.asked] == [0, 1]
    assert judge.problems(1) == [
        "Q1.C2 is SUPPORTED, so it must cite at least one id",
        "Q1.C3 is missing from your answer",
    ]


def test_an_accepted_verdict_cannot_be_taken_back() -> None:
    first = verdicts_json(verdict("Q1.C1"), verdict("Q1.C2"))
    second = verdicts_json(verdict("Q1.C1", "CONTRADICTED"), verdict("Q1.C3"))
    got, _ = verified(first, second)
    assert [one.label for one in got.verdicts] == ["SUPPORTED"] * 3


def test_claims_left_when_all_asks_are_used_up_are_unjudged_and_get_no_verdict() -> None:
    good, bad = verdict("Q1.C2"), verdict("Q1.C1", "NOT_IN_KEY", ["F1"])
    got, judge = verified(verdicts_json(good, bad), verdicts_json(bad), max_asks=2)
    assert got.verdicts == (good,)
    assert got.unjudged == ("Q1.C1", "Q1.C3")
    assert got.failure is not None
    assert got.failure.startswith("no usable answer after 2 asks: Q1.C1 is NOT_IN_KEY, so it must cite nothing")
    assert len(judge.asked) == 2


def test_a_failed_call_leaves_what_was_accepted_before() -> None:
    got, _ = verified(verdicts_json(verdict("Q1.C1")), Failed("timeout", error="too slow"))
    assert [one.claim_id for one in got.verdicts] == ["Q1.C1"]
    assert got.unjudged == ("Q1.C2", "Q1.C3")
    assert got.failure == "the call failed: timeout: too slow"


@pytest.mark.parametrize("reply", [Failed("permanent"), "no JSON"], ids=["call", "shape"])
def test_a_judge_that_says_nothing_usable_judges_nothing(reply: ScriptedReply) -> None:
    got, _ = verified(reply, reply, reply)
    assert (got.verdicts, got.unjudged) == ((), ("Q1.C1", "Q1.C2", "Q1.C3"))
    assert got.failure


def test_a_claim_judged_twice_counts_as_not_judged() -> None:
    twice = verdicts_json(verdict("Q1.C1"), verdict("Q1.C1", "CONTRADICTED"), verdict("Q1.C2"), verdict("Q1.C3"))
    got, judge = verified(twice, verdicts_json(verdict("Q1.C1", "NOT_IN_KEY")))
    assert [one.label for one in got.verdicts] == ["NOT_IN_KEY", "SUPPORTED", "SUPPORTED"]
    assert judge.problems(1) == ["Q1.C1 is in your answer more than once"] * 2


def test_a_verdict_on_an_unknown_claim_is_reported_and_never_kept() -> None:
    everything = [verdict(one.claim_id) for one in THREE]
    unknown = verdict("Q9.C9" + "x" * 500)
    got, judge = verified(verdicts_json(*everything, unknown), verdicts_json(*everything))
    assert [one.claim_id for one in got.verdicts] == ["Q1.C1", "Q1.C2", "Q1.C3"]
    assert got.failure is None
    assert judge.problems(1) == [f"{unknown.claim_id[:80]} is not one of the claims"]


@pytest.mark.parametrize(
    "good",
    [
        verdict(),
        verdict(label="CONTRADICTED", evidence=["F1", "D2"], severity="low"),
        verdict(label="CONTRADICTED", evidence=["D1"], severity="high"),
        verdict(label="NOT_IN_KEY"),
    ],
)
def test_verdicts_that_keep_every_rule(good: Verdict) -> None:
    assert violations(good, shown(), KEY) == []


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (verdict(evidence=[]), "is SUPPORTED, so it must cite at least one id"),
        (verdict(label="CONTRADICTED", evidence=[]), "is CONTRADICTED, so it must cite at least one id"),
        (verdict(label="NOT_IN_KEY", evidence=["F1"]), "is NOT_IN_KEY, so it must cite nothing"),
        (verdict(evidence=["F9"]), "cites ['F9'], which are not ids in the answer key"),
        (verdict(evidence=["F1", "D3"]), "cites ['D3'], which are not ids in the answer key"),
        (verdict(evidence=["F1", "F1"]), "cites an id twice"),
        (verdict(evidence=["F1", "D1"]), "cites a disallowed claim, which cannot support anything"),
        (verdict(severity="low"), "needs severity low, medium or high if CONTRADICTED, and none otherwise"),
        (verdict(label="NOT_IN_KEY", severity="high"), "needs severity"),
        (verdict(label="CONTRADICTED", severity="none"), "needs severity"),
    ],
)
def test_verdicts_that_break_one_rule(bad: Verdict, said: str) -> None:
    found = violations(bad, shown(), KEY)
    assert len(found) == 1
    assert said in found[0]


def test_an_amount_that_only_the_key_states_is_not_credited() -> None:
    cites_f2 = verdict(evidence=["F2"])
    assert violations(cites_f2, shown("Q1.C1", "You pay a premium each month."), KEY) == [
        "cites F2, but the figures ['$202.90'] do not appear in the claim's quotes"
    ]
    assert violations(cites_f2, shown("Q1.C1", "You pay $185 each month."), KEY)
    assert violations(cites_f2, shown("Q1.C1", "You pay 202.90 dollars each month."), KEY) == []


def test_the_amount_must_be_in_the_quote_not_only_in_the_claims_own_text() -> None:
    view = ClaimInView(claim_id="Q1.C1", text="The premium is $202.90.", quotes=("there is a premium",))
    assert violations(verdict(evidence=["F2"]), view, KEY)


def key_with(statement: str, *tells: str) -> KeyInView:
    """A key whose F2 says this."""
    facts = [fact_json("F1"), {**fact_json("F2", statement), "tells": list(tells)}]
    return key_of(scenario(answer_key={"canonical_facts": facts, "required_points": []}))


def citing_f2(key: KeyInView, *quotes: str, question: str = "") -> list[str]:
    """What is wrong with citing F2 as support for these words."""
    view = ClaimInView(claim_id="Q1.C1", text=" ".join(quotes), quotes=quotes)
    return violations(verdict(evidence=["F2"]), view, key, question)


@pytest.mark.parametrize(
    ("quotes", "lacking"),
    [
        (["You pay 20% after the $283 deductible."], []),
        (["You pay 20%", "once you have met $283"], []),
        (["You pay twenty percent after 283 dollars."], []),
        (["You pay 20%."], ["$283"]),
        (["You pay $283 first."], ["20%"]),
        (["You pay 10% and $20."], ["$283", "20%"]),
        (["You pay a part after the deductible."], ["$283", "20%"]),
    ],
)
def test_all_amounts_of_a_fact_must_be_in_the_quotes(quotes: list[str], lacking: list[str]) -> None:
    expected = [f"cites F2, but the figures {lacking} do not appear in the claim's quotes"] if lacking else []
    assert citing_f2(key_with("You pay 20% after the $283 deductible."), *quotes) == expected


def test_a_fact_may_list_the_figures_that_are_required() -> None:
    key = key_with("You pay 20% after the $283 deductible, from January 1.", "20%")
    assert citing_f2(key, "You pay 20% then.") == []
    assert citing_f2(key, "You pay after the $283 deductible.") == [
        "cites F2, but the figures ['20%'] do not appear in the claim's quotes"
    ]
    dated = key_with("The fee of $15 is due on January 1 and on July 1.", "January 1", "July 1")
    assert citing_f2(dated, "The fee is due on 1 January and 7/1.") == []
    assert citing_f2(dated, "The fee of $15 is due on January 1.") == [
        "cites F2, but the figures ['07-01'] do not appear in the claim's quotes"
    ]


@pytest.mark.parametrize(
    ("quote", "fits"),
    [
        ("You have 7 months to enroll.", True),
        ("You enroll from October 15 on.", True),
        ("You enroll within 8 months.", False),
        ("You enroll when you turn 65, in 2026.", False),
        ("You can enroll.", False),
    ],
)
def test_of_other_figures_one_is_enough_but_neither_a_year_nor_65(quote: str, fits: bool) -> None:
    key = key_with("In 2026 you enroll in the 7 months around your birthday at 65, or from October 15.")
    found = citing_f2(key, quote)
    assert (found == []) is fits
    assert fits or found == ["cites F2, but none of its figures ['10-15', '7 months'] appears in the claim's quotes"]


def test_if_a_fact_has_amounts_its_other_figures_are_not_required() -> None:
    assert citing_f2(key_with("The deductible is $283 from January 1."), "There is a deductible of $283.") == []


def test_figures_that_the_question_states_are_not_required() -> None:
    key = key_with("With $1,600 a month you may get help with 20% of the bill.")
    assert citing_f2(key, "You may get help with 20% of it.") == [
        "cites F2, but the figures ['$1600'] do not appear in the claim's quotes"
    ]
    assert citing_f2(key, "You may get help with 20% of it.", question="I live on $1,600 a month.") == []
    only = key_with("With $1,600 a month you may get help.")
    assert citing_f2(only, "You may get help.", question="I live on $1,600 a month.") == []


@pytest.mark.parametrize(
    "quote",
    [
        "A flu shot costs nothing.",
        "A flu shot is FREE.",
        "There is no cost for the flu shot.",
        "There is no copay for the flu shot.",
        "There is no charge for a flu shot.",
        "You pay no coinsurance for a flu shot.",
        "The flu shot has a $0 copayment.",
        "You pay zero for a flu shot.",
        "La vacuna es gratis, no cuesta nada para usted ni para su familia.",
    ],
)
def test_words_for_no_cost_count_as_zero_dollars(quote: str) -> None:
    assert citing_f2(key_with("You pay $0 for a flu shot."), quote) == []


@pytest.mark.parametrize(
    "quote",
    ["You pay for a flu shot.", "You can freely choose where you get a flu shot.", "A flu shot costs $20."],
)
def test_other_words_do_not_count_as_zero_dollars(quote: str) -> None:
    assert citing_f2(key_with("You pay $0 for a flu shot."), quote) == [
        "cites F2, but the figures ['$0'] do not appear in the claim's quotes"
    ]


def test_words_for_no_cost_do_not_count_as_another_amount() -> None:
    assert citing_f2(key_with("You pay $5 for a flu shot."), "A flu shot is free.")


def test_a_fact_that_shares_no_word_with_the_quote_cannot_support_it() -> None:
    key = key_with("Hospice care is for the terminally ill.")
    assert citing_f2(key, "Plans have networks of doctors.") == [
        "cites F2, but the claim and its quotes share no word with it"
    ]
    assert citing_f2(key, "A hospice looks after you.") == []


def test_every_cited_fact_must_be_in_the_quotes() -> None:
    both = verdict(evidence=["F1", "F2"])
    assert violations(both, shown("Q1.C1", "Plans have networks."), KEY) == [
        "cites F2, but the figures ['$202.90'] do not appear in the claim's quotes"
    ]
    assert violations(both, shown("Q1.C1", "Plans have networks. The premium is $202.90."), KEY) == []


def test_a_contradiction_may_cite_an_amount_the_target_got_wrong() -> None:
    wrong = verdict(label="CONTRADICTED", evidence=["F2"], severity="high")
    assert violations(wrong, shown("Q1.C1", "You pay $185 each month."), KEY) == []


VERDICTS = st.builds(
    verdict,
    st.sampled_from(["Q1.C1", "Q1.C2", "Q1.C3", "Q9.C9"]),
    st.sampled_from(["SUPPORTED", "CONTRADICTED", "NOT_IN_KEY"]),
    st.lists(st.sampled_from(["F1", "F2", "F9", "D1", "D3"]), max_size=3),
    st.sampled_from(["none", "low", "medium", "high"]),
)


@given(st.lists(st.lists(VERDICTS, max_size=5), min_size=3, max_size=3))
def test_whatever_a_judge_says_every_claim_is_covered_once_and_by_the_rules(replies: list[list[Verdict]]) -> None:
    got, _ = verified(*(verdicts_json(*given_) for given_ in replies))
    judged = [one.claim_id for one in got.verdicts]
    assert sorted([*judged, *got.unjudged]) == ["Q1.C1", "Q1.C2", "Q1.C3"]
    assert judged == sorted(judged)
    for one in got.verdicts:
        assert violations(one, shown(one.claim_id), KEY) == []
    assert bool(got.failure) == bool(got.unjudged)
