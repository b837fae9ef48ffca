"""Amounts spoken in words get their figure; what is ambiguous gets none."""

from __future__ import annotations

from src.text.spoken_numbers import spoken_amounts
from tests.cases import each_case


@each_case(
    ("text", "figures"),
    [
        ("two hundred two dollars and ninety cents", ["$202.90"]),
        ("The premium is two hundred two ninety a month.", ["$202.90"]),
        ("the premium is two oh two ninety", ["$202.90"]),
        ("It is two hundred two ninety.", []),
        ("the deductible is two eighty three this year", ["$283"]),
        ("nine thousand two hundred fifty dollars", ["$9,250"]),
        ("twenty-one hundred dollars a year", ["$2,100"]),
        ("the premium is a hundred eighty five a month", ["$185"]),
        ("the premium in twenty twenty six", []),
        ("the deductible is seventeen thirty six", []),
        ("one thousand seven hundred thirty six dollars", ["$1,736"]),
        ("you pay for one hundred days", []),
        ("you pay twenty percent", []),
        ("you pay for days sixty one through ninety four hundred dollars a day", []),
        ("thirty eight dollars and ninety nine cents, then thirty five dollars", ["$38.99", "$35"]),
        ("", []),
    ],
)  # fmt: skip
def test_spoken_amounts(text: str, figures: list[str]) -> None:
    assert [one.figure for one in spoken_amounts(text)] == figures


def test_the_place_of_an_amount_is_its_words() -> None:
    text = "So the premium is two hundred two ninety a month."
    one = spoken_amounts(text)[0]
    assert text[one.start : one.end] == "two hundred two ninety"
