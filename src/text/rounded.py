"""Numbers as text: rounded half up, and never "-0.00"."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from math import isfinite


def rounded(value: float, digits: int = 2) -> str:
    """`0.13` for 0.125 and `0.00` for -0.001. Python's own formatting gives 0.12 and -0.00."""
    return _text(Decimal(repr(float(value))), digits) if isfinite(value) else str(value)


def percent(share: float, digits: int = 0) -> str:
    """A share in percent, without the sign: `13` for 2 of 16."""
    return _text(Decimal(repr(float(share))) * 100, digits) if isfinite(share) else str(share)


def signed(value: float, digits: int = 2) -> str:
    """A difference: `+0.13`, `-0.05`, and `0.00` without a sign."""
    text = rounded(value, digits)
    return f"+{text}" if value > 0 and float(text) else text


def _text(exact: Decimal, digits: int) -> str:
    """`repr` gives the shortest decimal that is this float, so 29 of 200 is exactly 14.5%, as a reader computes it."""
    text = str(exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))
    return text.removeprefix("-") if not float(text) else text
