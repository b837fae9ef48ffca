"""Statements that hold several assertions are found; one rule with its conditions is not mistaken for several."""

from __future__ import annotations

from src.planning.house_rules import compound
from src.planning.library import Library
from tests.cases import each_case

TABLE_ROWS = ("B-irmaa-t", "B-irmaa-separate-", "B-msp-1600-limit")
"""Rows of a table: the figures before the last say whom the row is for, and the last is the one assertion."""
ONE_RULE = {
    "B-dme-not-any-seller": "to buy from anyone and expect payment is one thing that does not work",
    "B-dual-medicare-pays-first": "the order of two payers is one fact: neither half says it alone",
    "B-negotiated-price-not-copay": "a contrast: the price is not the copay",
    "B-retiree-family-can-lose-coverage": "the spouse and dependents are one subject",
}
"""Statements that read as two by their verbs, and why each is one."""


@each_case(
    ("statement", "why"),
    [
        ("Part A has a deductible; Part B has one too.", "has a semicolon"),
        ("Part A has a deductible. Part B has one too.", "has several sentences"),
        ("Is it covered? It is.", "has several sentences"),
        ("Plan A costs $5 and Plan B costs $7 a month.", "states several amounts"),
        ("The share is 10% in the first year or 20% later.", "states several amounts"),
        ("In {{plan_year}} it is {{figure.part_b_premium}} or {{figure.part_b_deductible}}.", "states several amounts"),
        ("Part A is free for most people and Part B has a premium.", "joins two statements"),
        ("Medicare covers hospice, but the person must sign a statement.", "joins two statements"),
        ("Original Medicare has no yearly limit, whereas every Advantage plan must have one.", "joins two statements"),
    ],
)
def test_several_assertions_are_found(statement: str, why: str) -> None:
    assert compound(statement) == why


@each_case(
    "statement",
    [
        "Medicare Advantage plans have provider networks.",
        "In {{plan_year}} the Part B premium is {{figure.part_b_premium}} a month.",
        "During the period a person can join, switch or drop a plan.",
        "A person who is 65 and has a job may wait with Part B.",
        "If a person has both and is enrolled in QMB, the provider may not bill the person.",
        "The General Enrollment Period lasts from January 1 to March 31.",
        "The Part B penalty is 10% for each full 12 months.",
        "A person with income of $1,600 a month pays {{figure.part_b_premium}} a month.",
        "A person keeps the plan while the employer is large.",
        "The U.S. mail is not used.",
        "The cost is 5.5 times as high.",
    ],
)
def test_one_rule_with_its_conditions_is_no_second_assertion(statement: str) -> None:
    assert compound(statement) is None


def test_the_same_amount_said_twice_is_one_amount() -> None:
    assert compound("The copay is $35 a month, so two months of it are not $35.") is None


def test_no_fact_of_the_library_is_compound() -> None:
    found = {fact_id: why for fact_id, fact in Library().facts.items() if (why := compound(fact.statement))}
    rows = {fact_id for fact_id in found if fact_id.startswith(TABLE_ROWS)}
    assert {found[fact_id] for fact_id in rows} == {"states several amounts"}
    assert {fact_id: why for fact_id, why in found.items() if fact_id not in rows | ONE_RULE.keys()} == {}


@each_case("fact_id", sorted(ONE_RULE))
def test_an_exception_is_still_needed(fact_id: str) -> None:
    assert compound(Library().facts[fact_id].statement) == "joins two statements"
