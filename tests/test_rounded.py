"""Numbers as text: halves are rounded up, as readers do, and zero has no sign."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from src.text.rounded import percent, rounded, signed
from tests.cases import each_case


@each_case(
    ("count", "n", "digits", "expected"),
    [
        (2, 16, 0, "13"),
        (1, 8, 0, "13"),
        (29, 200, 0, "15"),
        (57, 200, 0, "29"),
        (1, 16, 1, "6.3"),
        (1, 3, 0, "33"),
        (0, 7, 0, "0"),
        (7, 7, 1, "100.0"),
        (1, 1000, 0, "0"),
    ],
)
def test_percentages_round_halves_up(count: int, n: int, digits: int, expected: str) -> None:
    assert percent(count / n, digits) == expected


@each_case(
    ("value", "digits", "expected"),
    [(0.125, 2, "0.13"), (-0.125, 2, "-0.13"), (-0.001, 2, "0.00"), (-0.0, 2, "0.00"), (2.5, 0, "3"), (-0.4, 0, "0")],
)
def test_numbers_round_halves_away_from_zero_and_zero_has_no_sign(value: float, digits: int, expected: str) -> None:
    assert rounded(value, digits) == expected


def test_differences_have_a_sign_unless_they_are_zero() -> None:
    assert [signed(one) for one in (0.125, -0.125, 0.0, -0.0, 0.004, -0.004)] == [
        "+0.13", "-0.13", "0.00", "0.00", "0.00", "0.00",
    ]  # fmt: skip


def test_a_number_without_end_is_no_error() -> None:
    assert (rounded(float("inf")), percent(float("nan"))) == ("inf", "nan")


@given(st.floats(-1000, 1000), st.integers(0, 4))
def test_no_number_is_further_off_than_half_of_its_last_digit(value: float, digits: int) -> None:
    text = rounded(value, digits)
    assert abs(float(text) - value) <= 0.5 * 10**-digits + 1e-9
    assert not text.startswith("-") or float(text) < 0
