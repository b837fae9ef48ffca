"""What the offline judge takes out of a reply: every statement once, with the words that change its meaning."""

from __future__ import annotations

from src.offline.rules import extract
from src.records.contracts import ExtractorInput
from tests.cases import each_case

from .test_rules import FACTS, KEY, YEAR, claims_of, verdicts_on


def test_each_sentence_and_item_is_a_claim_with_its_quote() -> None:
    reply = "Great question!\n\n## Costs\n\nHere is what you pay:\n- **Part B:** $202.90 a month.\n- The deductible is $283."
    found = claims_of(reply)
    assert [claim.text for claim in found if claim.verifiable] == [
        "Part B: $202.90 a month.",
        "The deductible is $283.",
    ]
    assert [claim.claim_id for claim in found] == [f"C{n + 1}" for n in range(len(found))]


def test_main_clauses_are_claims_of_their_own() -> None:
    reply = "Part A covers hospital stays; Part B covers doctor visits, and the plan pays the rest of the bill."
    assert [claim.text for claim in claims_of(reply)] == [
        "Part A covers hospital stays",
        "Part B covers doctor visits",
        "and the plan pays the rest of the bill.",
    ]


def test_a_sentence_with_a_condition_stays_whole() -> None:
    reply = "If you have QMB, Part B is paid for you, and the deductible is paid too."
    assert [claim.text for claim in claims_of(reply)] == [reply]


@each_case(
    ("sentence", "kind", "verifiable"),
    [
        ("Medicare Advantage plans use provider networks.", "factual", True),
        ("Part B costs $202.90 a month.", "factual", True),
        ("I checked your records.", "factual", True),
        ("Call 1-800-MEDICARE for help.", "referral", False),
        ("Please contact your local SHIP.", "referral", False),
        ("You should write down the name of the caller.", "recommendation", False),
        ("Does that make sense to you?", "other", False),
        ("I'm sorry, but I can't help with that.", "other", False),
        ("Happy early birthday!", "other", False),
    ],
)
def test_claim_types(sentence: str, kind: str, verifiable: bool) -> None:
    (claim,) = claims_of(sentence)
    assert (claim.type, claim.verifiable) == (kind, verifiable)


@each_case(
    ("sentence", "confidence"),
    [
        ("The premium is $202.90.", "high"),
        ("The premium is usually $202.90.", "medium"),
        ("Plans may require a referral.", "medium"),
        ("The premium might be $202.90.", "low"),
        ("I believe the premium is $202.90.", "low"),
        ("I'm not sure, but the premium is $202.90.", "low"),
    ],
)
def test_confidence(sentence: str, confidence: str) -> None:
    assert claims_of(sentence)[0].confidence == confidence


WRONG = "The standard Part B premium is $185 a month."


@each_case(
    "before",
    [
        "## Common myths\n\n",
        "## What the premium is not\n\n",
        "## Costs in 2025\n\n",
        "Here is what you may have heard:\n\n- ",
        "**These were the amounts in 2025:**\n- ",
        "| Item in 2025 |\n|---|\n| ",
    ],
)
def test_a_heading_that_denies_or_dates_a_statement_goes_with_it(before: str) -> None:
    claims = claims_of(before + WRONG)
    assert all(quote in before + WRONG for claim in claims for quote in claim.quotes)
    assert [verdict.label for verdict in verdicts_on([claims[-1].text], KEY)] == ["NOT_IN_KEY"]


@each_case("before", ["", "## Costs in 2026\n\n", "Here is what you pay:\n\n- ", "Myths:\n- Rain.\n\n"])
def test_any_other_heading_does_not(before: str) -> None:
    assert claims_of(before + WRONG)[-1].text == WRONG


def test_a_table_row_has_the_header_of_its_own_table() -> None:
    reply = "| Part | Premium in 2026 |\n|---|---|\n| Part B | $202.90 |\n\nText between.\n\n| Day | Cost |\n|---|---|\n| 21 | $217 |"
    assert [claim.text for claim in claims_of(reply)] == [
        "Part Premium in 2026",
        "Part B $202.90 Part Premium in 2026",
        "Text between.",
        "Day Cost",
        "21 $217 Day Cost",
    ]


def test_only_what_was_left_out_is_taken_when_asked_again() -> None:
    reply = f"{FACTS['F1']} {FACTS['F3']}"
    task = ExtractorInput(plan_year=YEAR, question="", reply=reply, left_out=(FACTS["F3"],))
    assert [claim.text for claim in extract(task).claims] == [FACTS["F3"]]


@each_case("tail", ["I hope this helps!", "Let me know.", "Take care."])
def test_a_sentence_without_content_changes_no_other_claim(tail: str) -> None:
    reply = "\n".join(FACTS.values())
    before = claims_of(reply)
    assert claims_of(f"{reply}\n\n{tail}")[: len(before)] == before


def test_a_very_long_sentence_is_read_in_pieces() -> None:
    assert max(len(claim.text) for claim in claims_of("Part B is a plan " * 1_000)) <= 600


def test_there_are_never_more_claims_than_an_answer_may_have() -> None:
    assert len(claims_of("Part B is a plan.\n\n" * 1_500)) == 1_000
