"""Amounts of US dollars as text."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal


def money_text(amount: float | None) -> str:
    """`$1,234.50`; four decimals below a dollar, because single calls cost fractions of a cent; `unknown` for None."""
    if amount is None:
        return "unknown"
    return f"${amount:,.4f}" if 0 < amount < 1 else f"${amount:,.2f}"


def dollars_text(amount: float | Decimal) -> str:
    """What a person could lose: `$365.40`, and `$1,000` where there are no cents."""
    exact = Decimal(str(amount)).quantize(Decimal("0.01"), ROUND_HALF_UP)
    return f"${exact:,.0f}" if exact == exact.to_integral_value() else f"${exact:,}"
