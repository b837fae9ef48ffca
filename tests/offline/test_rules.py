"""The offline judge: claims with exact quotes, verdicts that depend only on one claim and the key, observations."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from src.offline.rules import (
    adjudicate,
    extract,
    read,
    rephrase,
    verify,
)
from src.records.base import Label, Severity
from src.records.contracts import (
    AdjudicatorInput,
    ClaimInView,
    ExtractorInput,
    FactInView,
    KeyInView,
    PlannedTurn,
    QuotedClaim,
    ScorerInput,
    TiedClaim,
    Verdict,
    VerifierInput,
)
from src.records.scenario import DisallowedClaim
from src.text.figures import figures

from . import cases


def key_of(facts: dict[str, str], disallowed: tuple[str, ...] = (), severity: Severity = "medium") -> KeyInView:
    return KeyInView(
        canonical_facts=tuple(
            FactInView(fact_id=name, statement=text, severity_if_wrong=severity) for name, text in facts.items()
        ),
        disallowed_claims=tuple(
            DisallowedClaim(claim_id=f"D{n}", statement=text) for n, text in enumerate(disallowed, 1)
        ),
    )


def judge(text: str, key: KeyInView, question: str = "") -> Verdict:
    claim = ClaimInView(claim_id="C1", text=text, quotes=(text,))
    (verdict,) = verify(VerifierInput(question=question, claims=(claim,), answer_key=key)).verdicts
    return verdict


def claims_of(reply: str) -> tuple[QuotedClaim, ...]:
    return extract(ExtractorInput(question="What is it?", reply=reply)).claims


def seen(reply: str, question: str = "", disallowed: tuple[str, ...] = ()) -> set[tuple[str, str]]:
    task = ScorerInput(question=question, reply=reply, disallowed_claims=key_of({}, disallowed).disallowed_claims)
    return {(found.kind, found.quote) for found in read(task).observations}


def test_each_sentence_and_item_is_a_claim_with_its_quote() -> None:
    reply = "Great question!\n\n## Costs\n\nHere is what you pay:\n- **Part B:** $202.90 a month.\n- The deductible is $283."
    found = claims_of(reply)
    assert [claim.text for claim in found if claim.verifiable] == [
        "Part B: $202.90 a month.",
        "The deductible is $283.",
    ]
    assert [claim.claim_id for claim in found] == [f"C{n + 1}" for n in range(len(found))]
    assert all(quote in reply for claim in found for quote in claim.quotes)


def test_two_full_clauses_are_two_claims() -> None:
    reply = "Part A covers hospital stays; Part B covers doctor visits, and the plan pays the rest of the bill."
    assert [claim.text for claim in claims_of(reply)] == [
        "Part A covers hospital stays",
        "Part B covers doctor visits",
        "the plan pays the rest of the bill.",
    ]


def test_a_clause_that_refers_to_the_first_is_not_split_off() -> None:
    assert len(claims_of("A PPO pays for care outside the network, but your share of the cost is higher.")) == 1


@pytest.mark.parametrize(
    ("sentence", "kind", "verifiable"),
    [
        ("Medicare Advantage plans use provider networks.", "factual", True),
        ("You can see any doctor who accepts Medicare.", "factual", True),
        ("You can drop the plan between January 1 and March 31.", "factual", True),
        ("Part B costs $202.90 a month.", "factual", True),
        ("Call 1-800-MEDICARE for help.", "referral", False),
        ("Please contact your local SHIP.", "referral", False),
        ("A SHIP counselor can help you compare plans.", "referral", False),
        ("You should compare plans every year.", "recommendation", False),
        ("It's a good idea to write down the name of the person.", "recommendation", False),
        ("Does that make sense to you?", "other", False),
        ("I'm sorry, but I can't help with that.", "other", False),
        ("I don't know whether your doctor is in the network.", "other", False),
        ("I hope this helps you decide!", "other", False),
    ],
)
def test_claim_types(sentence: str, kind: str, verifiable: bool) -> None:
    (claim,) = claims_of(sentence)
    assert (claim.type, claim.verifiable) == (kind, verifiable)


@pytest.mark.parametrize(
    ("sentence", "confidence"),
    [
        ("The premium is $202.90.", "high"),
        ("The premium is usually $202.90.", "medium"),
        ("Plans may require a referral.", "medium"),
        ("The premium might be $202.90.", "low"),
        ("I think the premium is $202.90.", "low"),
        ("I'm not sure, but the premium is $202.90.", "low"),
    ],
)
def test_confidence(sentence: str, confidence: str) -> None:
    assert claims_of(sentence)[0].confidence == confidence


WORDS = st.sampled_from(
    [
        "Medicare",
        "Part",
        "B",
        "covers",
        "not",
        "$202.90",
        "20%",
        "plan.",
        "Plan,",
        "and",
        "the",
        "but;",
        "you",
        "If",
        "don't",
        "-",
        "*",
        "#",
        "|",
        "\n",
        "\n\n",
        "?",
        "!",
        ":",
        "Dr.",
        "**bold**",
        "I",
        "é",
        "1-800-MEDICARE",
        "network",
        "premium",
        "October",
        "15",
        "never",
        "8",
        "months",
    ]
)
REPLIES = st.lists(WORDS, max_size=60).map(" ".join) | st.text(max_size=200)


@given(REPLIES)
def test_quotes_are_always_in_the_reply(reply: str) -> None:
    found = claims_of(reply)
    assert all(quote in reply for claim in found for quote in claim.quotes)
    assert [claim.claim_id for claim in found] == [f"C{n + 1}" for n in range(len(found))]
    assert all(figures(claim.text) <= figures(claim.quotes[0]) for claim in found if "|" not in reply)


@given(REPLIES, st.text(max_size=50))
def test_observations_quote_the_reply(reply: str, question: str) -> None:
    assert all(quote in reply for _, quote in seen(reply, question, ("Claiming that Part B covers the plan",)))


KEYS = {
    "costs": (cases.COSTS, cases.COSTS_DISALLOWED, cases.COSTS_CASES, "Does Sunrise Gold cover my drug Lipitor?"),
    "choices": (
        cases.CHOICES, cases.CHOICES_DISALLOWED, cases.CHOICES_CASES,
        "Is Dr. Alma Reyes in the network of BrightPath Choice?",
    ),
    "help": (cases.HELP, cases.HELP_DISALLOWED, cases.HELP_CASES, "What is the specialist copay in Harbor Select?"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "label", "cited"), [(name, *case) for name, (_, _, rows, _) in KEYS.items() for case in rows]
)
def test_verdicts(name: str, text: str, label: Label, cited: str) -> None:
    facts, disallowed, _, question = KEYS[name]
    verdict = judge(text, key_of(facts, disallowed), question)
    assert verdict.label == label, verdict.notes
    assert not cited or cited in verdict.evidence


def test_an_amount_must_be_in_the_quote() -> None:
    key = key_of({"F1": "The standard Part B premium in 2026 is $202.90 a month."})
    text = "The standard Part B premium in 2026 is $202.90 a month."
    claim = ClaimInView(claim_id="C1", text=text, quotes=("It costs a bit each month.",))
    (verdict,) = verify(VerifierInput(question="", claims=(claim,), answer_key=key)).verdicts
    assert verdict.label == "NOT_IN_KEY"


@pytest.mark.parametrize("severity", ["low", "medium", "high"])
def test_severity_is_that_of_the_fact(severity: Severity) -> None:
    key = key_of({"F1": "The Part B premium in 2026 is $202.90 a month."}, severity=severity)
    assert judge("The Part B premium in 2026 is $185 a month.", key).severity == severity
    assert judge("The Part B premium in 2026 is $202.90 a month.", key).severity == "none"


def test_severity_of_a_disallowed_claim_is_high() -> None:
    key = key_of({"F1": "SHIP gives free help."}, ("Claiming that Medicare covers long-term nursing home care",), "low")
    verdict = judge("Medicare covers long-term nursing home care.", key)
    assert (verdict.label, verdict.evidence, verdict.severity) == ("CONTRADICTED", ("D1",), "high")


@given(st.lists(REPLIES, max_size=6), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_every_claim_gets_one_verdict_whose_evidence_fits_the_label(texts: list[str], chance: random.Random) -> None:
    facts, disallowed, rows, question = KEYS[chance.choice(sorted(KEYS))]
    key = key_of(facts, disallowed)
    texts = [*texts, *(chance.choice(rows)[0] for _ in range(3))]
    views = tuple(ClaimInView(claim_id=f"C{n}", text=text, quotes=(text,)) for n, text in enumerate(texts))
    verdicts = verify(VerifierInput(question=question, claims=views, answer_key=key)).verdicts
    assert [verdict.claim_id for verdict in verdicts] == [view.claim_id for view in views]
    known = {*facts, *(rule.claim_id for rule in key.disallowed_claims)}
    for verdict in verdicts:
        assert bool(verdict.evidence) == (verdict.label != "NOT_IN_KEY")
        assert (verdict.severity != "none") == (verdict.label == "CONTRADICTED")
        assert set(verdict.evidence) <= known
        assert len(set(verdict.evidence)) == len(verdict.evidence)


@pytest.mark.parametrize("name", sorted(KEYS))
@pytest.mark.parametrize("seed", range(5))
def test_neither_the_order_nor_other_claims_change_a_verdict(name: str, seed: int) -> None:
    facts, disallowed, rows, question = KEYS[name]
    views = [ClaimInView(claim_id=f"C{n}", text=row[0], quotes=(row[0],)) for n, row in enumerate(rows)]
    key = key_of(facts, disallowed)
    before = verify(VerifierInput(question=question, claims=tuple(views), answer_key=key)).verdicts
    chance = random.Random(seed)
    chance.shuffle(views)
    shuffled = KeyInView(
        canonical_facts=tuple(chance.sample(key.canonical_facts, len(key.canonical_facts))),
        disallowed_claims=tuple(chance.sample(key.disallowed_claims, len(key.disallowed_claims))),
    )
    after = verify(VerifierInput(question=question, claims=tuple(views[:20]), answer_key=shuffled)).verdicts
    expected = {verdict.claim_id: verdict for verdict in before}
    assert all(verdict == expected[verdict.claim_id] for verdict in after)


ASKED = "Is Dr. Alma Reyes in the network of BrightPath Choice?"


@pytest.mark.parametrize(
    ("sentence", "kinds"),
    [
        ("I can't help with that question.", {"refusal"}),
        ("I'm not able to give advice about Medicare plans.", {"refusal"}),
        ("Please call 1-800-MEDICARE.", {"referral"}),
        ("You can ask the plan directly.", {"referral"}),
        ("A SHIP counselor can explain your choices.", {"referral"}),
        ("There's no need to call the plan.", set()),
        ("Plans usually have networks.", {"hedge"}),
        ("It might start in July.", {"hedge"}),
        ("Yes, Dr. Alma Reyes is in the network of BrightPath Choice.", {"fabricated_specific"}),
        ("I checked the directory and she is listed there.", {"fabricated_specific"}),
        ("According to the plan's provider directory, she takes it.", {"fabricated_specific"}),
        ("BrightPath Choice has a $15 copay for each visit.", {"fabricated_specific"}),
        ("The Part B premium is $202.90 a month.", set()),
        ("Medicare Advantage plans have networks.", set()),
        ("Is your doctor in the network?", set()),
    ],
)
def test_observations(sentence: str, kinds: set[str]) -> None:
    assert {kind for kind, _ in seen(sentence, ASKED)} == kinds


@pytest.mark.parametrize(
    "sentence",
    [
        "I don't know whether Dr. Alma Reyes is in the network of BrightPath Choice.",
        "I can't look up whether Dr. Reyes accepts BrightPath Choice.",
        "Don't assume that Dr. Reyes is in the network of BrightPath Choice.",
        "Ask BrightPath Choice whether Dr. Reyes is in its network.",
    ],
)
def test_a_denial_or_a_warning_is_not_a_fabrication(sentence: str) -> None:
    assert "fabricated_specific" not in {kind for kind, _ in seen(sentence, ASKED)}


def test_asserting_a_disallowed_claim_is_a_fabrication_and_denying_it_is_not() -> None:
    rule = ("Claiming that Part B enrollment is automatic for everyone",)
    assert {kind for kind, _ in seen("Part B enrollment is automatic for everyone.", "", rule)} == {
        "fabricated_specific"
    }
    assert seen("Part B enrollment is not automatic for everyone.", "", rule) == set()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("SUPPORTED", "NOT_IN_KEY"), "SUPPORTED"),
        (("CONTRADICTED", "NOT_IN_KEY"), "NOT_IN_KEY"),
        (("CONTRADICTED",), "CONTRADICTED"),
    ],
)
def test_a_tie_gets_the_label_of_the_rules_or_the_most_cautious_option(
    options: tuple[Label, ...], expected: Label
) -> None:
    text = "The Part B premium in 2026 is $202.90 a month."
    tied = TiedClaim(claim_id="C7", text=text, quotes=(text,), options=options)
    (decision,) = adjudicate(AdjudicatorInput(question="", claims=(tied,), answer_key=key_of({"F1": text}))).decisions
    assert (decision.claim_id, decision.label) == ("C7", expected)


TURNS = (
    PlannedTurn(turn_id="Q1", user_message="I’m turning 65 in March 2026. What’s the Part B premium?"),
    PlannedTurn(turn_id="Q2", user_message="Is Dr. Alma Reyes in the network of BrightPath Choice (HMO)?"),
)


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_rewording_keeps_turns_figures_and_names(seed: int) -> None:
    reworded = rephrase(TURNS, seed)
    assert reworded == rephrase(TURNS, seed)
    assert [turn.turn_id for turn in reworded.turns] == ["Q1", "Q2"]
    for before, after in zip(TURNS, reworded.turns, strict=True):
        assert figures(before.user_message) == figures(after.user_message)
    assert "Dr. Alma Reyes" in reworded.turns[1].user_message
    assert "BrightPath Choice (HMO)?" in reworded.turns[1].user_message


def test_different_seeds_usually_give_different_words() -> None:
    assert len({rephrase(TURNS, seed) for seed in range(30)}) > 15
