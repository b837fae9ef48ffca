"""A run's money: `--max-cost` asked before every attempt, and told what it cost after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..adapters.base import ModelRequest
from ..schemas import CallHead, CallRecord, Price
from .prices import Budget, charge, worst_case


class RunBudget:
    """Sets aside the most a call may cost before it is made. Every model it is asked about must have a price."""

    def __init__(self, limit: float, prices: Mapping[str, Price], spent: Iterable[CallHead]) -> None:
        """`spent`: the attempts that the journal already holds; a resumed run goes on with the same budget."""
        self._prices = prices
        self.budget = Budget(limit)
        for head in spent:
            self.settle(0.0, head)

    @property
    def has_reserved(self) -> bool:
        return self.budget.reserved > 0

    def reserve(self, request: ModelRequest) -> float | None:
        most = worst_case(self._prices[request.model], request.characters, request.max_tokens)
        return most if self.budget.reserve(most) else None

    def settle(self, reserved: float, record: CallRecord | CallHead) -> None:
        price = self._prices[record.model]
        most = worst_case(price, record.input_characters, record.max_tokens)
        self.budget.settle(reserved, charge(record.outcome, record.status, record.usage, price, most))
