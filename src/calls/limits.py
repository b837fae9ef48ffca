"""How many calls a provider gets at once and per minute, and how long to wait before a retry.

Each provider has its own limiter, so that a throttled provider does not slow another. It starts at its maximum, halves
what it admits when the provider reports overload, and grows by one for every full round of answers (additive increase,
multiplicative decrease). A Retry-After closes it for that long. Users set ceilings for requests and tokens per minute.
Calls are admitted in order of arrival.

Retries wait exponentially with full jitter: anywhere between zero and a doubling ceiling, so that calls that failed
together do not retry together. The draw comes from the call's derived seed. A provider's own Retry-After is a minimum.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from ..schemas import CallOutcome

FIRST_CEILING_S = 0.5
LAST_CEILING_S = 60.0
MINUTE_S = 60.0
OVERLOADED = frozenset({503, 529})
"""Statuses that mean overload, other than 429."""


def backoff_s(attempt: int, seed: int, retry_after_s: float | None = None) -> float:
    """Seconds to wait after the given failed attempt (the first is 1)."""
    ceiling = min(LAST_CEILING_S, FIRST_CEILING_S * 2 ** (attempt - 1))
    drawn = random.Random(seed).uniform(0, ceiling)  # noqa: S311 - spreads retries; no secret depends on it
    asked = retry_after_s if retry_after_s is not None and 0 < retry_after_s < float("inf") else 0.0
    return drawn + asked


@dataclass(frozen=True)
class Ceilings:
    """The user's limits per minute for a provider; None is no limit."""

    requests: int | None = None
    tokens: int | None = None


class Allowance:
    """An amount per minute, refilled steadily. What exceeds it has to wait."""

    def __init__(self, per_minute: int | None, clock: Callable[[], float]) -> None:
        self._rate = (per_minute or 0) / MINUTE_S
        self._most = float(per_minute or 0)
        self._left = self._most
        self._clock = clock
        self._at = clock()

    def wait_s(self, amount: float) -> float:
        """Seconds until this amount is available. More than a minute's worth waits for a full minute's."""
        if not self._rate:
            return 0.0
        now = self._clock()
        self._left = min(self._most, self._left + (now - self._at) * self._rate)
        self._at = now
        return max(0.0, (min(amount, self._most) - self._left) / self._rate)

    def take(self, amount: float) -> None:
        self._left -= amount


class Limiter:
    """Admits calls to one provider."""

    def __init__(
        self, most: int, ceilings: Ceilings | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        ceilings = ceilings or Ceilings()
        self._most = float(most)
        self._clock = clock
        self.limit = float(most)
        """Calls admitted at once; whole calls only."""
        self.in_flight = 0
        self._waiting: deque[tuple[asyncio.Future[None], float]] = deque()
        self._requests = Allowance(ceilings.requests, clock)
        self._tokens = Allowance(ceilings.tokens, clock)
        self._closed_until = 0.0
        self._shrunk_at = float("-inf")
        self._open = False
        self._timer: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def slot(self, tokens: float) -> AsyncIterator[Slot]:
        """Hold a place while a call is made. Report its outcome to the slot before leaving."""
        await self._enter(tokens)
        slot = Slot(self, tokens, self._clock())
        try:
            yield slot
        finally:
            self.in_flight -= 1
            self._let_in()

    async def _enter(self, tokens: float) -> None:
        if not self._waiting and self._wait_s(tokens) == 0:
            self._take(tokens)
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((place, tokens))
        self._let_in()
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.in_flight -= 1
            self._let_in()
            raise

    def _take(self, tokens: float) -> None:
        self.in_flight += 1
        self._requests.take(1)
        self._tokens.take(tokens)

    def _wait_s(self, tokens: float) -> float:
        """0 if a call may start now, else when to look again; infinity if only a call that ends makes room."""
        if self._open:
            return 0.0
        if self.in_flight >= int(self.limit):
            return float("inf")
        return max(self._closed_until - self._clock(), self._requests.wait_s(1), self._tokens.wait_s(tokens), 0.0)

    def _let_in(self) -> None:
        while self._waiting:
            place, tokens = self._waiting[0]
            if not place.cancelled():
                wait = self._wait_s(tokens)
                if wait > 0:
                    self._look_again(wait)
                    return
                self._take(tokens)
                place.set_result(None)
            self._waiting.popleft()

    def _look_again(self, wait: float) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if wait != float("inf"):
            self._timer = asyncio.get_running_loop().call_later(wait + 0.001, self._let_in)

    def _answered(self, outcome: CallOutcome, status: int | None, retry_after_s: float | None, began: float) -> None:
        if retry_after_s:
            self._closed_until = max(self._closed_until, self._clock() + retry_after_s)
        if outcome == "rate_limited" or status in OVERLOADED:
            if began > self._shrunk_at:  # calls sent before the last cut say nothing about the rate since
                self.limit = max(1.0, min(self.limit, self.in_flight) / 2)
                self._shrunk_at = self._clock()
        elif outcome in ("ok", "refused", "blocked", "truncated", "empty"):
            self.limit = min(self._most, self.limit + 1 / self.limit)

    def open(self) -> None:
        """Admit every waiting call: the run is stopping, and each of them must notice."""
        self._open = True
        self._let_in()


@dataclass(frozen=True)
class Slot:
    """One call's place in the limiter."""

    limiter: Limiter
    tokens: float
    began: float

    def answered(
        self, outcome: CallOutcome, *, status: int | None = None, retry_after_s: float | None = None, used: int | None
    ) -> None:
        """Report the outcome: the limit grows or shrinks, and unused tokens are returned."""
        self.limiter._answered(outcome, status, retry_after_s, self.began)
        if used is not None:
            self.limiter._tokens.take(used - self.tokens)


class Limits:
    """The limiters of a run, by provider. A run has one key per provider."""

    def __init__(
        self, most: int, ceilings: dict[str, Ceilings] | None = None, in_flight: Mapping[str, int] | None = None
    ) -> None:
        """`most`: calls in flight at a provider that `in_flight` does not name."""
        self._most = most
        self._ceilings = ceilings or {}
        self._in_flight = in_flight or {}
        self._limiters: dict[str, Limiter] = {}

    def limiter(self, provider: str) -> Limiter:
        if provider not in self._limiters:
            most = self._in_flight.get(provider, self._most)
            self._limiters[provider] = Limiter(most, self._ceilings.get(provider))
        return self._limiters[provider]

    def open(self) -> None:
        for limiter in self._limiters.values():
            limiter.open()
