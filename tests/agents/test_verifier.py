"""The verifier: one verdict per claim, evidence that fits the label and is about the claim."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from src.agents.ask import REST_ACCEPTED, AskedTurn
from src.agents.verifier import Shown, Verification, in_view, key_in_view, verify, violations
from src.schemas import (
    Claim,
    ClaimInView,
    FactInView,
    KeyInView,
    QuoteSpan,
    Severity,
    Verdict,
    VerifierInput,
    VerifierOutput,
)
from src.text.fence import reply_schema
from tests.cases import each_case
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
LIBRARY = FactInView(fact_id="B-1", statement="Networks of plans may change every year.", severity_if_wrong="high")
SHOWN = Shown(AskedTurn("What is Part B?", 2026, ("What is Part A?",), ("Ada Inventado",)), KEY, (LIBRARY,))
THREE = tuple(shown(f"Q1.C{n}") for n in (1, 2, 3))


def verified(
    *replies: ScriptedReply, claims: Sequence[ClaimInView] = THREE, max_asks: int = 3, seed: int = 7
) -> tuple[Verification, ScriptedJudge]:
    made, judge = client(*replies, max_asks=max_asks, seed=seed)
    return asyncio.run(verify(made, tuple(claims), SHOWN)), judge


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
    assert (payload["plan_year"], payload["question"]) == (2026, "What is Part B?")
    assert payload["earlier_questions"] == ["What is Part A?"]
    assert payload["background_facts"] == [LIBRARY.model_dump(mode="json")]
    assert "Ada" not in json.dumps(payload), "the person's own data is for code"
    assert judge.asked[0][1].response_schema == reply_schema(VerifierOutput, len(THREE))
    assert set(payload["answer_key"]) == {"canonical_facts", "disallowed_claims"}
    assert set(payload["answer_key"]["canonical_facts"][0]) == {"fact_id", "statement", "severity_if_wrong"}
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


@each_case("reply", [Failed("permanent"), "no JSON"], ids=["call", "shape"])
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


@each_case(
    "good",
    [
        verdict(),
        verdict(label="CONTRADICTED", evidence=["F1", "D2"], severity="low"),
        verdict(label="CONTRADICTED", evidence=["D1"], severity="high"),
        verdict(label="NOT_IN_KEY"),
        verdict(evidence=["B-1"]),
        verdict(evidence=["F1", "B-1"]),
        verdict(label="CONTRADICTED", evidence=["B-1"], severity="medium"),
    ],
)
def test_verdicts_that_keep_every_rule(good: Verdict) -> None:
    assert violations(good, shown(), SHOWN) == []


@each_case(
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
        (verdict(evidence=["B-2"]), "cites ['B-2'], which are not ids in the answer key"),
        (verdict(label="CONTRADICTED", evidence=["B-1"], severity="low"), "more than one grade below"),
        (verdict(label="CONTRADICTED", evidence=["F1", "F2"], severity="low"), "more than one grade below"),
    ],
)
def test_verdicts_that_break_one_rule(bad: Verdict, said: str) -> None:
    found = violations(bad, shown(), SHOWN)
    assert len(found) == 1
    assert said in found[0]


def test_a_background_fact_that_was_not_shown_cannot_be_cited() -> None:
    alone = Shown(SHOWN.asked, KEY)
    assert violations(verdict(evidence=["B-1"]), shown(), alone) == [
        "cites ['B-1'], which are not ids in the answer key"
    ]


def key_with(*statements: str) -> KeyInView:
    """A key whose facts F1, F2, ... say this."""
    facts = [fact_json(f"F{number}", statement) for number, statement in enumerate(statements, 1)]
    return key_of(scenario(answer_key={"canonical_facts": facts, "required_points": []}))


def citing(statements: Sequence[str], *quotes: str, text: str | None = None) -> list[str]:
    """What is wrong with citing all of these facts as support for these words."""
    view = ClaimInView(claim_id="Q1.C1", text=text or quotes[0], quotes=quotes)
    evidence = [f"F{number}" for number in range(1, len(statements) + 1)]
    return violations(verdict(evidence=evidence), view, Shown(SHOWN.asked, key_with(*statements)))


PREMIUM = "The standard Part B premium is $202.90 a month in 2026."


@each_case(
    "quote",
    [
        "You pay a premium each month for Part B.",
        "The standard premium is the same for most people.",
        "The Part B premium is $202.90.",
        "The Part B premium is about $200.",
        "Part B has a premium.",
    ],
)
def test_a_label_does_not_depend_on_the_figures_of_the_fact(quote: str) -> None:
    assert citing([PREMIUM], quote) == []


def test_two_facts_may_support_a_claim_together_and_one_of_two_amounts_is_enough() -> None:
    both = ["You pay 20% after the deductible.", "The Part B deductible is $283."]
    assert citing(both, "You pay 20% after the deductible of $283.") == []
    assert citing(["You pay 20% after the $283 deductible."], "You pay 20% of the bill.") == []


@each_case(
    "quote",
    [
        "Plans have networks of doctors.",
        "Everything in this answer was confirmed by the office that checks answers and premium statements of any kind.",
        "Doctors, dentists, nurses, pharmacists and therapists are all paid by someone, at a premium.",
    ],
)
def test_facts_about_something_else_support_nothing(quote: str) -> None:
    assert citing([PREMIUM], quote) == ["cites ['F1'], which are about something else than the claim"]


def test_words_of_the_question_and_of_other_facts_count_as_known_but_something_must_be_in_the_cited_fact() -> None:
    view = ClaimInView(
        claim_id="Q1.C1", text="x", quotes=("Yes, your spouse keeps the Part B premium after retirement.",)
    )
    cites = verdict(evidence=["F1"])
    asked = AskedTurn("Does my spouse keep that after my retirement?", 2026)
    assert violations(cites, view, Shown(asked, key_with(PREMIUM))) == []
    assert violations(cites, view, Shown(SHOWN.asked, key_with(PREMIUM))) != []
    both = key_with(PREMIUM, "A spouse keeps coverage after retirement.")
    assert violations(cites, view, Shown(SHOWN.asked, both)) == []
    assert violations(cites, view, Shown(asked, key_with("Hospice care is for the terminally ill."))) != []


def test_an_answer_that_keeps_the_rules_in_part_is_told_that_the_rest_is_accepted() -> None:
    first = verdicts_json(verdict("Q1.C1"), verdict("Q1.C2", "SUPPORTED", []))
    done = verdicts_json(verdict("Q1.C2"), verdict("Q1.C3"))
    _, judge = verified(first, "no JSON", done)

    def says_so(place: int) -> bool:
        return REST_ACCEPTED in judge.asked[place][1].messages[-1].content

    assert says_so(1)
    assert not says_so(2), "problems with the form name no claim, so nothing may be read out of their silence"
    _, judge = verified(verdicts_json(verdict("Q1.C1", "SUPPORTED", [])), done, verdicts_json(verdict("Q1.C1")))
    assert not says_so(1), "nothing was accepted"


def test_the_claims_own_text_may_carry_the_words_that_its_quote_lacks() -> None:
    assert citing([PREMIUM], "Yes, it is.", text="The Part B premium is $202.90 a month.") == []
    assert citing([PREMIUM], "Yes, it is.") != []


def test_a_long_quote_does_not_make_an_unrelated_claim_fit() -> None:
    long = "We sing and dance all night and sleep all morning, read books, watch films, and also there is a premium."
    assert citing([PREMIUM], long, text="We sing and dance all night and sleep all morning.") != []


def test_a_spanish_claim_cannot_share_words_with_an_english_key() -> None:
    assert citing([PREMIUM], "La prima estándar de la Parte B es de $202.90 al mes en todo el país.") == []


def test_a_contradiction_may_cite_an_amount_the_target_got_wrong() -> None:
    wrong = verdict(label="CONTRADICTED", evidence=["F2"], severity="high")
    assert violations(wrong, shown("Q1.C1", "You pay $185 each month."), SHOWN) == []


@each_case(
    ("graded", "given_severity", "allowed"),
    [
        ("high", "high", True),
        ("high", "medium", True),
        ("high", "low", False),
        ("medium", "low", True),
        ("medium", "high", True),
        ("low", "low", True),
        ("low", "high", True),
    ],
)
def test_a_severity_may_be_one_grade_below_the_facts_and_no_more(
    graded: str, given_severity: Severity, allowed: bool
) -> None:
    key = key_of(scenario(answer_key={"canonical_facts": [fact_json("F1", severity=graded)], "required_points": []}))
    given_ = verdict(label="CONTRADICTED", evidence=["F1"], severity=given_severity)
    assert (violations(given_, shown(), Shown(SHOWN.asked, key)) == []) is allowed


def test_what_a_judge_is_shown_is_the_facts_without_source_rationale_or_what_they_tell() -> None:
    fact = {**fact_json("F1", "It costs $5."), "rationale": "because", "tells": ["$5"]}
    key = scenario(answer_key={"canonical_facts": [fact], "required_points": ["F1"]}).answer_key
    assert key_in_view(key).canonical_facts == (
        FactInView(fact_id="F1", statement="It costs $5.", severity_if_wrong="medium"),
    )


VERDICTS = st.builds(
    verdict,
    st.sampled_from(["Q1.C1", "Q1.C2", "Q1.C3", "Q9.C9"]),
    st.sampled_from(["SUPPORTED", "CONTRADICTED", "NOT_IN_KEY"]),
    st.lists(st.sampled_from(["F1", "F2", "F9", "D1", "D3", "B-1", "B-2"]), max_size=3),
    st.sampled_from(["none", "low", "medium", "high"]),
)


@given(st.lists(st.lists(VERDICTS, max_size=5), min_size=3, max_size=3))
def test_whatever_a_judge_says_every_claim_is_covered_once_and_by_the_rules(replies: list[list[Verdict]]) -> None:
    got, _ = verified(*(verdicts_json(*given_) for given_ in replies))
    judged = [one.claim_id for one in got.verdicts]
    assert sorted([*judged, *got.unjudged]) == ["Q1.C1", "Q1.C2", "Q1.C3"]
    assert judged == sorted(judged)
    for one in got.verdicts:
        assert violations(one, shown(one.claim_id), SHOWN) == []
    assert bool(got.failure) == bool(got.unjudged)
