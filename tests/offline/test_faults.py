"""Faults that people found in the offline judge, with sentences like those that showed them. None is in a gold file."""

from __future__ import annotations

import pytest

from src.records.base import Label

from .test_rules import judge, key_of

FACTS = {
    "F1": "A person can sign up for Part B at any time while covered by a group health plan based on current employment.",
    "F2": "Medicare can cover a short stay for skilled care, which is not long-term care.",
    "F3": "A person can make one change during the Medicare Advantage Open Enrollment Period.",
    "F4": "For a person born on the first day of a month, the Initial Enrollment Period runs one month earlier.",
    "F5": "SHIP counselors give free and unbiased help.",
    "F6": "Original Medicare pays nothing for skilled nursing facility care after day 100 of a benefit period.",
    "F7": "The Medicare Prescription Payment Plan started in 2025.",
    "F8": "The telephone number of Social Security is 1-800-772-1213.",
    "F9": "A person who loses employer coverage has a guaranteed right to buy a Medigap policy.",
    "F10": "In 2026 a person pays a coinsurance of $217.00 a day for days 21 to 100 in a skilled nursing facility.",
    "F11": "A person pays $0 for days 1 to 20 in a skilled nursing facility.",
    "F12": "The Part D late enrollment penalty is lifelong.",
    "F13": "QMB pays Part A and Part B premiums.",
    "F14": "The federal SLMB income limit for one person is $1,616 a month in 2026.",
    "F15": "Fairmeadow HMO needs a referral for specialist visits.",
    "F16": "Most states let insurers use medical underwriting.",
    "F17": "The Part A hospital deductible in 2026 is $1,736 for each benefit period.",
    "F18": "A person can sign up for Part A and Part B through Social Security.",
    "F19": "The Part D coverage gap was removed on January 1, 2025.",
    "F20": "Moving out of the service area can give a person a Special Enrollment Period for Medicare Advantage plans.",
    "F22": "People with Extra Help may change drug plans once a month.",
    "F23": "Part B covers 80% of the approved amount, so the beneficiary pays 20%.",
    "F24": "Medicare Advantage plans must cover emergency care from any hospital in the United States.",
    "F25": "Medicare Advantage enrollees must continue to pay the Part B premium.",
    "F26": "In 2026 a Part D plan cannot have a deductible higher than $615.",
    "F27": "Losing other coverage can give a person a Special Enrollment Period for Part D plans.",
    "F21": "The Medicare Savings Program brings Extra Help automatically.",
}
DISALLOWED = (
    "Claiming that QMB is open to people of any income",
    "Claiming to have checked the person's file",
)
CASES: list[tuple[str, Label, str]] = [
    ("Many people like Fairmeadow HMO.", "NOT_IN_KEY", ""),
    ("Fairmeadow HMO has been around for years.", "NOT_IN_KEY", ""),
    ("Fairmeadow HMO does not need a referral for specialist visits.", "CONTRADICTED", "F15"),
    ("A person cannot sign up for Part B while covered by a group health plan.", "CONTRADICTED", "F1"),
    ("Medicare cannot cover a short stay for skilled care.", "CONTRADICTED", "F2"),
    ("Medicare can cover a short stay for skilled care.", "SUPPORTED", "F2"),
    ("Skilled care in a short stay is different from long-term care.", "SUPPORTED", "F2"),
    ("A person who loses employer coverage has no guaranteed right to buy a Medigap policy.", "CONTRADICTED", "F9"),
    (
        "You can make 6 changes during the Medicare Advantage Open Enrollment Period.",
        "CONTRADICTED",
        "F3",
    ),
    (
        "For someone born on the first of a month the Initial Enrollment Period runs one month later.",
        "CONTRADICTED",
        "F4",
    ),
    ("SHIP counselors give biased help.", "CONTRADICTED", "F5"),
    ("Original Medicare pays everything for skilled nursing facility care after day 100.", "CONTRADICTED", "F6"),
    ("After day 100, Original Medicare does not pay for skilled nursing facility care.", "SUPPORTED", "F6"),
    ("The Medicare Prescription Payment Plan started in 2019.", "CONTRADICTED", "F7"),
    ("The Social Security telephone number is 1-800-555-0199.", "CONTRADICTED", "F8"),
    ("The telephone number of Social Security is 1-800-772-1213.", "SUPPORTED", "F8"),
    ("There is a daily coinsurance for days 21 to 100 in a skilled nursing facility.", "NOT_IN_KEY", ""),
    ("Days 1 to 30 in a skilled nursing facility are free.", "CONTRADICTED", "F11"),
    ("Days 1 to 20 in a skilled nursing facility are free.", "SUPPORTED", "F11"),
    ("The ten days from day 21 in a skilled nursing facility cost 10 × $217 = $2,170 in 2026.", "SUPPORTED", "F10"),
    ("The Part D late enrollment penalty ends after five years.", "CONTRADICTED", "F12"),
    ("QMB pays the Part B premium but not the Part A premium.", "CONTRADICTED", "F13"),
    ("QMB pays the Part B premium.", "SUPPORTED", "F13"),
    ("QMB pays no Part A premium and no Part B premium.", "CONTRADICTED", "F13"),
    ("With $1,500 a month one person is over the SLMB limit.", "CONTRADICTED", "F14"),
    ("A person with $1,700 a month qualifies for SLMB.", "CONTRADICTED", "F14"),
    ("Every state without exception lets insurers use medical underwriting.", "CONTRADICTED", "F16"),
    ("The Part A deductible of $1,736 is charged once a year.", "CONTRADICTED", "F17"),
    ("You can enroll in Part B through Social Security.", "SUPPORTED", "F18"),
    ("In the Part D coverage gap you pay more.", "CONTRADICTED", "F19"),
    ("The Part D coverage gap was removed on January 1, 2023.", "CONTRADICTED", "F19"),
    ("Every move gives a Special Enrollment Period for Medicare Advantage plans.", "NOT_IN_KEY", ""),
    (
        "The Medicare Savings Program brings Extra Help after a separate application.",
        "CONTRADICTED",
        "F21",
    ),
    ("People with Extra Help may change drug plans twice a month.", "CONTRADICTED", "F22"),
    ("You pay 80% of the approved amount and Part B covers 20%.", "CONTRADICTED", "F23"),
    ("Medicare Advantage plans only cover emergency care from network hospitals.", "CONTRADICTED", "F24"),
    ("If you join Medicare Advantage you no longer pay the Part B premium.", "CONTRADICTED", "F25"),
    ("In 2026 a Part D plan can have a deductible higher than $615.", "CONTRADICTED", "F26"),
    ("Moving can give a person a Special Enrollment Period for Part D plans.", "NOT_IN_KEY", ""),
    ("QMB pays the Part A premium instead of the Part B premium.", "CONTRADICTED", "F13"),
    ("QMB is open to people of any income.", "CONTRADICTED", "D1"),
    ("QMB is not open to people of any income.", "NOT_IN_KEY", ""),
    ("I went through your file and all is in order.", "CONTRADICTED", "D2"),
    ("I have not checked your file.", "NOT_IN_KEY", ""),
]


@pytest.mark.parametrize(("text", "label", "cited"), CASES)
def test_verdicts_on_sentences_that_once_went_wrong(text: str, label: Label, cited: str) -> None:
    verdict = judge(text, key_of(FACTS, DISALLOWED), "How does it work?")
    assert verdict.label == label, verdict
    assert not cited or cited in verdict.evidence
