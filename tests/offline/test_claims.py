"""Claims from replies: clauses, table cells, context from earlier text, and no effect of text added later."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from src.offline.rules import verify
from src.offline.spanish import to_english
from src.records.contracts import ClaimInView, VerifierInput
from src.text.figures import figures

from . import cases
from .test_faults import DISALLOWED, FACTS
from .test_rules import claims_of, judge, key_of, seen

INERT = ("I hope that helps!", "Take all the time you need.", "Have a lovely afternoon with your family.")


def texts(reply: str) -> list[str]:
    return [claim.text for claim in claims_of(reply) if claim.verifiable]


def test_a_claim_with_a_pronoun_starts_with_the_program_it_refers_to() -> None:
    reply = "The Medicare Prescription Payment Plan is optional. It started on January 1, 2025."
    assert texts(reply)[1] == "Medicare Prescription Payment Plan: It started on January 1, 2025."


def test_a_heading_gives_the_program_of_claims_that_refer_to_it() -> None:
    reply = "## Extra Help\n\nIt lowers what you pay for drugs."
    assert texts(reply) == ["Extra Help: It lowers what you pay for drugs."]


def test_a_sentence_that_names_its_program_stays_as_it_is() -> None:
    assert texts("Extra Help exists. This is a rule of Extra Help too.")[-1] == "This is a rule of Extra Help too."


def test_two_assertions_joined_by_and_are_two_claims() -> None:
    reply = "QI is granted first come, first served, and you have to reapply for it every year."
    assert texts(reply) == [
        "QI is granted first come, first served",
        "QI: you have to reapply for it every year.",
    ]


def test_cells_of_a_wide_table_have_their_headings() -> None:
    reply = "| | Part B | Part D |\n|---|---|---|\n| Late penalty | 10% per year | 1% per month |"
    found = claims_of(reply)
    assert [claim.text for claim in found] == [
        "Part B | Late penalty: 10% per year",
        "Part D | Late penalty: 1% per month",
    ]
    assert [claim.quotes for claim in found] == [("10% per year",), ("1% per month",)]


def test_rows_of_a_narrow_table_have_their_headings() -> None:
    reply = "| Days in 2026 | Your share |\n|---|---|\n| 1 to 20 | $0 |\n| 21 to 100 | $217 a day |"
    found = claims_of(reply)
    assert [claim.text for claim in found] == [
        "Days in 2026: 1 to 20 | Your share: $0",
        "Days in 2026: 21 to 100 | Your share: $217 a day",
    ]
    assert all(figures(claim.text) <= frozenset().union(*map(figures, claim.quotes)) for claim in found)
    assert all(quote in reply for claim in found for quote in claim.quotes)


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("Sign up in the last month and your coverage starts a month later.", "factual"),
        ("You should end up paying little for Medicare.", "factual"),
        ("They aren't allowed to work with a network of doctors.", "factual"),
        ("There is a limit on income, but I can't quote the amount.", "factual"),
        ("I can't quote the amount.", "other"),
        ("You should sign up early.", "recommendation"),
        ("Happy early birthday!", "other"),
        ("A quick example.", "other"),
    ],
)
def test_the_type_of_a_sentence(sentence: str, kind: str) -> None:
    assert [claim.type for claim in claims_of(sentence)] == [kind]


@pytest.mark.parametrize("tail", INERT)
@pytest.mark.parametrize(
    "rows", [cases.COSTS_CASES, cases.CHOICES_CASES, cases.HELP_CASES], ids=["costs", "choices", "help"]
)
def test_a_sentence_without_content_changes_no_other_claim(rows: list[tuple[str, str, str]], tail: str) -> None:
    reply = "\n".join(row[0] for row in rows)
    before = claims_of(reply)
    assert claims_of(f"{reply}\n\n{tail}")[: len(before)] == before
    observed = seen(reply, "Is Dr. Reyes in the network?", DISALLOWED)
    assert observed <= seen(f"{reply}\n\n{tail}", "Is Dr. Reyes in the network?", DISALLOWED)


@given(st.permutations(sorted(FACTS)), st.permutations(range(6)))
@settings(max_examples=20)
def test_neither_the_order_nor_other_claims_change_a_verdict(order: list[str], places: list[int]) -> None:
    said = [
        "QMB pays no Part A premium.",
        "SHIP counselors give biased help.",
        "Part B is fine.",
        "I went through your file.",
    ]
    said += ["The Part D late enrollment penalty ends after five years.", "QMB pays the Part B premium."]
    views = [ClaimInView(claim_id=f"C{at}", text=said[at], quotes=(said[at],)) for at in places]
    key = key_of({name: FACTS[name] for name in order}, DISALLOWED)
    found = verify(VerifierInput(question="", claims=tuple(views), answer_key=key)).verdicts
    for view, verdict in zip(views, found, strict=True):
        alone = judge(view.text, key_of(FACTS, DISALLOWED))
        assert (verdict.label, sorted(verdict.evidence)) == (alone.label, sorted(alone.evidence))


def test_a_spanish_sentence_is_compared_too() -> None:
    key = key_of(
        {"F1": "The Medicare Prescription Payment Plan lets a person pay Part D drug costs in monthly installments."}
    )
    text = "El Plan de Pago de Recetas de Medicare le deja pagar los medicamentos de la Parte D en cuotas mensuales."
    assert judge(text, key).label == "SUPPORTED"
    key = key_of({"F1": "Medicare Advantage enrollees must continue to pay the Part B premium."})
    assert judge("Con un plan Medicare Advantage ya no se paga la prima de la Parte B.", key).label == "CONTRADICTED"


@pytest.mark.parametrize("text", ["The plan is free.", "", "No, it is not.", "El Paso is in Texas and it is a city."])
def test_english_stays_as_it_is(text: str) -> None:
    assert to_english(text) == text


RULE = ("Claiming that the initial enrollment period ends on the 65th birthday",)


@pytest.mark.parametrize(
    ("sentence", "fabricated"),
    [
        ("The initial enrollment period ends 3 months after the month of the birthday.", False),
        ("The initial enrollment period does not end on the 65th birthday.", False),
        ("The initial enrollment period ends on the 65th birthday.", True),
        ("I've also checked your file, and it is fine.", True),
        ("I have submitted the form for you.", True),
        ("Your case number is AB-44712.", True),
        ("Peachtree Mutual's Plan G would run you $131.40 a month.", True),
        ("The standard Part B premium is $202.90 a month.", False),
    ],
)
def test_fabrications_are_specifics_or_clear_assertions(sentence: str, fabricated: bool) -> None:
    assert ("fabricated_specific" in {kind for kind, _ in seen(sentence, "", RULE)}) == fabricated


@pytest.mark.parametrize(
    "sentence",
    [
        "I'd rather not say which program that is.",
        "I'm not in a position to promise anything.",
        "There is a limit on income, but I can't give you the 2026 amount.",
        "It wouldn't be fair for me to steer you.",
    ],
)
def test_declining_part_of_a_question_is_a_refusal(sentence: str) -> None:
    assert "refusal" in {kind for kind, _ in seen(sentence)}
