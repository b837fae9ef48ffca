"""The budget of a run (`--max-cost`): asked before every attempt, settled after it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Protocol

from ..schemas import CallHead, CallRecord, Price
from .prices import charge, worst_case

PASSES_MAX_COST = "The next call could pass `max_cost`, so a higher one is needed."

_PARTS = 10**12
"""A budget counts in whole parts of a dollar: sums of floats drift, and a limit must not."""


class Budget:
    """What may be spent, what has been, and what calls in flight may still cost. For one event loop: it never waits.

    As long as no call costs more than was reserved for it, spent and reserved together never pass the limit. If one
    does, its real cost is counted, and no further call is granted.
    """

    def __init__(self, limit: float | None) -> None:
        self._limit = None if limit is None else _parts(limit)
        self._spent = 0
        self._reserved = 0

    @property
    def spent(self) -> float:
        return self._spent / _PARTS

    @property
    def reserved(self) -> float:
        return self._reserved / _PARTS

    def reserve(self, amount: float) -> bool:
        """Set an amount aside before a call; False, and nothing set aside, where it could pass the limit."""
        parts = _parts(amount)
        if self._limit is not None and self._spent + self._reserved + parts > self._limit:
            return False
        self._reserved += parts
        return True

    def settle(self, reserved: float, actual: float) -> None:
        """Put what a call cost in the place of what was reserved for it.

        A call that the journal already holds is settled with nothing reserved.
        """
        held, paid = _parts(reserved), _parts(actual)
        if held > self._reserved:
            raise ValueError("more is settled than was reserved")
        self._reserved -= held
        self._spent += paid


def _parts(amount: float) -> int:
    if not isfinite(amount) or amount < 0:
        raise ValueError(f"an amount of money is a number from 0, not {amount}")
    return round(amount * _PARTS)


class CallSize(Protocol):
    """What decides the most that a call may cost."""

    @property
    def model(self) -> str: ...

    @property
    def characters(self) -> int: ...

    @property
    def max_tokens(self) -> int: ...

    @property
    def most_searches(self) -> int: ...


class RunBudget:
    """Reserves the most a call may cost before it is made. Every model of the run must have a price."""

    def __init__(
        self,
        limit: float,
        prices: Mapping[str, Price],
        spent: Iterable[CallHead],
        most_searches: Mapping[str, int] | None = None,
    ) -> None:
        """`spent`: the attempts already in the journal; a resumed run continues with the same budget.

        `most_searches`: of one call of each model that searches, for an attempt that brought no reply to count.
        """
        self._prices = prices
        self._most_searches = most_searches or {}
        self._settled = asyncio.Event()
        self._open = False
        self.budget = Budget(limit)
        for head in spent:
            self.settle(0.0, head)

    async def reserve(self, request: CallSize) -> float | None:
        """Set aside the most a call may cost. While calls in flight hold too much, wait until one of them is settled.

        None: the call could pass the limit even then, or the run is stopping.
        """
        price, searches = self._prices[request.model], request.most_searches
        most = worst_case(price, request.characters, request.max_tokens, searches=searches)
        while not self.budget.reserve(most):
            if self._open or not self.budget.reserved:
                return None
            self._settled.clear()
            await self._settled.wait()
        return most

    def reserve_in_batch(self, request: CallSize) -> float | None:
        """Set aside the most a call may cost in a batch, without waiting; None: it could pass the limit."""
        most = worst_case(self._prices[request.model], request.characters, request.max_tokens, batch=True)
        return most if self.budget.reserve(most) else None

    def settle(self, reserved: float, record: CallRecord | CallHead) -> None:
        price, batch = self._prices[record.model], record.batch is not None
        searches = self._most_searches.get(record.model, 0)
        most = reserved or worst_case(price, record.input_characters, record.max_tokens, searches=searches, batch=batch)
        made = record.search.searches if record.search else 0
        paid = charge(record.outcome, record.status, record.usage, price, most, searches=made, batch=batch)
        self.budget.settle(reserved, paid)
        self._settled.set()

    def drop(self, reserved: float, *, paid: float = 0.0) -> None:
        """Nobody will settle this amount with a record: the call was not made, or its process has ended."""
        self.budget.settle(reserved, paid)
        self._settled.set()

    def open(self) -> None:
        """Answer all who wait: the run is stopping."""
        self._open = True
        self._settled.set()
