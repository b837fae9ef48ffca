"""Dollar formulas: arithmetic to the cent, rounding as Medicare rounds, and nothing else that Python could do."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from src.text.formula import dollars, fill, names_in
from tests.cases import each_case

VALUES = {"premium": Decimal("202.90"), "years": Decimal(10), "stated": Decimal("185")}


@each_case(
    ("formula", "amount"),
    [
        ("0", "0.00"),
        ("1 + 2 * 3", "7.00"),
        ("(1 + 2) * 3", "9.00"),
        ("-premium + 203", "0.10"),
        ("0.10 * 2 * premium * 12", "486.96"),
        ("dime(0.10 * 2 * premium) * 12", "487.20"),
        ("dime(0.10 * 2 * premium) * 12 * years", "4872.00"),
        ("abs(stated - premium) * 12", "214.80"),
        ("min(years, 4)", "4.00"),
        ("max(stated, premium, 1)", "202.90"),
        ("111325 / 365", "305.00"),
        ("10 / 3", "3.33"),
        ("0.005", "0.01"),
        ("0.1 + 0.2", "0.30"),
    ],
)
def test_amounts_are_exact_to_the_cent(formula: str, amount: str) -> None:
    assert str(dollars(formula, VALUES)) == amount


@each_case(("amount", "rounded"), [("20.29", "20.30"), ("20.25", "20.30"), ("20.24", "20.20"), ("9.3576", "9.40")])
def test_a_dime_rounds_to_the_nearest_ten_cents_and_half_a_dime_up(amount: str, rounded: str) -> None:
    assert str(dollars(f"dime({amount})")) == rounded


def test_names_are_those_that_need_a_value() -> None:
    assert names_in("dime(0.10 * premium) * years + min(stated, 1)") == {"premium", "years", "stated"}
    assert names_in("111325 / 365") == frozenset()


def test_a_formula_is_filled_name_by_name() -> None:
    values = {"part_b": Decimal("202.90"), "part": Decimal(1)}
    assert fill("dime(part_b * 2) + part * years", values) == "dime(202.90 * 2) + 1 * years"


@each_case(
    "formula",
    [
        "",
        " ",
        "1 +",
        "__import__('os').system('true')",
        "open('/etc/passwd')",
        "premium.real",
        "(1).__class__",
        "[1, 2]",
        "[x for x in y]",
        "lambda: 1",
        "2 ** 99999999",
        "7 // 2",
        "7 % 2",
        "1 if years else 2",
        "years == 1",
        "years and 1",
        "not years",
        "+1",
        "~1",
        "'1'",
        "b'1'",
        "f'{years}'",
        "True",
        "False",
        "None",
        "...",
        "1j",
        "1e999",
        "9999999999999999999999",
        "min()",
        "min(1)",
        "max(years)",
        "abs(1, 2)",
        "dime()",
        "dime(1, 2)",
        "min(1, 2, key=abs)",
        "min(*years)",
        "sum(1, 2)",
        "eval('1')",
        "min.real",
        "(x := 1)",
        "1; 2",
        "import os",
        "1\x002",
        "\ud800",
        "(" * 200 + "1" + ")" * 100,
        "-" * 299 + "x" * 2,
        "1 + " * 100_000 + "1",
        "(" * 100_000,
    ],
)
def test_what_is_no_formula_is_refused(formula: str) -> None:
    with pytest.raises(ValueError):
        names_in(formula)
    with pytest.raises(ValueError):
        dollars(formula, VALUES)


@each_case(
    ("formula", "reason"),
    [
        ("1 / 0", "division by zero"),
        ("1 / (premium - premium)", "division by zero"),
        ("unknown * 2", "unknown has no value"),
        ("min * 2", "min has no value"),
        ("1000000000 * 1000000000", "no amount of dollars"),
        ("dime(1000000000000 * 1000000000000 * 1000000000000)", "too large"),
    ],
)
def test_what_gives_no_amount_is_refused(formula: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        dollars(formula, VALUES)


def test_the_longest_nesting_that_fits_is_computed() -> None:
    assert dollars("-" * 298 + "1") == Decimal("1.00")


ARITHMETIC = st.text(alphabet="0123456789.+-*/() ,abdeimnsxyr", max_size=60)


@given(st.text(max_size=320) | ARITHMETIC)
def test_any_text_gives_an_amount_or_a_value_error(text: str) -> None:
    try:
        amount = dollars(text, VALUES)
    except ValueError:
        return
    assert amount == amount.quantize(Decimal("0.01"))
