"""Figures: the same token for every spelling, no invented figures, and no text that raises an error."""

from __future__ import annotations

import os
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from src.text.figures import figures, find_figures, fold, is_amount, kind, telling
from tests.cases import each_case


@each_case(
    ("text", "expected"),
    [
        ("$2,000", {"$2000"}),
        ("2,000 dollars", {"$2000"}),
        ("US$ 2000.00", {"$2000"}),
        ("two thousand dollars", {"$2000"}),
        ("**$202.90** a month", {"$202.90"}),
        ("$202.9", {"$202.90"}),
        ("$\u00a02\u202f000", {"$2000"}),
        ("\\$35", {"$35"}),
        ("$109k", {"$109000"}),
        ("$1.5 million", {"$1500000"}),
        ("fifty cents", {"$0.50"}),
        ("20%", {"20%"}),
        ("20 percent", {"20%"}),
        ("twenty per cent", {"20%"}),
        ("**20**%", {"20%"}),
        ("10 to 20 percent", {"10%", "20%"}),
        ("between 10 and 20%", {"10%", "20%"}),
        ("7 months", {"7 months"}),
        ("a seven-month window", {"7 months"}),
        ("an eight\u2011month period", {"8 months"}),
        ("12 full months", {"12 months"}),
        ("63 or more days in a row", {"63 days"}),
        ("2-3 months", {"2 months", "3 months"}),
        ("one month later", {"1 month"}),
        ("October 15", {"10-15"}),
        ("15 Oct", {"10-15"}),
        ("Oct. 15th", {"10-15"}),
        ("the 15th of October", {"10-15"}),
        ("October 15 to December 7", {"10-15", "12-07"}),
        ("Jan 1–Mar 31", {"01-01", "03-31"}),
        ("January 1 - 31", {"01-01", "01-31"}),
        ("October 15, 2026", {"10-15", "2026"}),
        ("10/15/2026", {"10-15", "2026"}),
        ("2026-10-15", {"10-15", "2026"}),
        ("in 2026", {"2026"}),
        ("$35-$40", {"$35", "$40"}),
        ("$35–40", {"$35", "$40"}),
        ("days 21-100", {"n21", "n100"}),
        ("age 65", {"n65"}),
        ("65 years old", {"n65"}),
        ("a 65-year-old", {"n65"}),
        ("twenty-five people", {"n25"}),
        ("ninety-nine", {"n99"}),
        ("20+ employees", {"n20"}),
        ("ZIP 10001", {"n10001"}),
        ("1-800-MEDICARE", {"tel:18006334227"}),
        ("1-800-633-4227", {"tel:18006334227"}),
        ("(800) 633-4227", {"tel:18006334227"}),
        ("800.633.4227", {"tel:18006334227"}),
        ("1-800-MEDICARE (1-800-633-4227)", {"tel:18006334227"}),
        ("no one said one thing, and a plan is one of them", set()),
        ("the first and the second year", set()),
        ("your 65th birthday", set()),
        ("a 401(k) or 401k", set()),
        ("1. Call\n2. Wait", set()),
        ("vitamin B12", set()),
        ("you may march on", set()),
        ("\uff12\uff10\uff05 of \uff04\uff12\uff0c\uff10\uff10\uff10", {"20%", "$2000"}),
        ("half a year", {"0.5 years"}),
        ("a half-year", {"0.5 years"}),
        ("half of the cost", set()),
        ("one and a half years", {"1.5 years"}),
        ("a year and a half", {"1.5 years"}),
        ("two years and a half", {"2.5 years"}),
        ("1½ years", {"1.5 years"}),
        ("1 1/2 years", {"1.5 years"}),
        ("a dozen employees", {"n12"}),
        ("two dozen", {"n24"}),
        ("3 dozen", {"n36"}),
        ("dozens of plans", set()),
        ("a couple of months", {"2 months"}),
        ("a couple of things for a couple", set()),
        ("veinticinco por ciento", {"25%"}),
        ("treinta y cinco dólares", {"$35"}),
        ("dieciséis días", {"16 days"}),
        ("un año y medio", {"1.5 years"}),
        ("del 15 de octubre al 7 de diciembre", {"10-15", "12-07"}),
        ("once a year", set()),
        ("m² and 5²", {"n5"}),
        ("from when you turn 65 to three months after", {"n65", "3 months"}),
        ("", set()),
    ],
)
def test_a_figure_has_the_same_token_in_every_spelling(text: str, expected: set[str]) -> None:
    assert figures(text) == expected


@each_case(
    ("token", "expected", "amount"),
    [
        ("$35", "money", True),
        ("20%", "percent", True),
        ("7 months", "month", False),
        ("1 month", "month", False),
        ("10-15", "date", False),
        ("2026", "year", False),
        ("n65", "number", False),
        ("tel:18006334227", "phone", False),
    ],
)
def test_the_kind_of_a_figure(token: str, expected: str, amount: bool) -> None:
    assert kind(token) == expected
    assert is_amount(token) is amount


def test_years_and_the_age_of_65_tell_nothing_but_a_number_of_years_does() -> None:
    assert telling(["2026", "n65", "5 years", "$35", "n20"]) == {"5 years", "$35", "n20"}


@given(st.text())
def test_every_figure_of_any_text_has_a_kind(text: str) -> None:
    assert all(token and kind(token) for token in figures(text))


@given(st.text(alphabet="0123456789$%,.-/ ()abcdefgmonthsdayJanuaryOct*\n'", max_size=300))
def test_positions_are_inside_the_text_and_folding_keeps_its_length(text: str) -> None:
    assert len(fold(text)) == len(text)
    assert all(0 <= figure.start < figure.end <= len(text) for figure in find_figures(text))


@given(st.integers(min_value=0, max_value=10**9))
def test_commas_and_zero_cents_do_not_change_an_amount(amount: int) -> None:
    assert figures(f"${amount:,}") == figures(f"${amount}.00") == {f"${amount}"}


def test_the_hash_seed_and_locale_do_not_matter() -> None:
    code = "from src.text.figures import find_figures as f; print([x.token for x in f('$35-$40, 20%, Oct 15, two months')])"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": locale},
            capture_output=True,
            check=True,
        ).stdout
        for seed, locale in (("1", "C"), ("2", "C.UTF-8"))
    }
    assert outputs == {b"['$35', '$40', '20%', '10-15', '2 months']\n"}
