"""Amounts of US dollars as text."""

from __future__ import annotations


def money_text(amount: float | None) -> str:
    """`$1,234.50`; four decimals below a dollar, because single calls cost fractions of a cent; `unknown` for None."""
    if amount is None:
        return "unknown"
    return f"${amount:,.4f}" if 0 < amount < 1 else f"${amount:,.2f}"
