"""The adapter under test, and what every case does with it: make it, call it, see what came of the call."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from ..adapters.base import Adapter, CallFailure, Message, ModelReply, ModelRequest
from .server import Dialect, Received, Response, Said, Server

QUESTION = "Is Part B free of charge?"
ANSWER = "No. Part B has a monthly premium."
SERVED_MODEL = "served-model-7"
SHORT_TIMEOUT_S = 0.5
Result = ModelReply | CallFailure


class AdapterProblem(Exception):  # noqa: N818 - a finding about the adapter, not an error of the kit
    """What an adapter did wrong, in one sentence."""


class NotApplicable(Exception):  # noqa: N818 - see above
    """Why a case says nothing about this adapter."""


class ScriptedServer(Server):
    """A provider's server: gives the answers set for a case, then ordinary ones in the adapter's wire format."""

    def __init__(self, dialect: Dialect, *, longest_wait_s: float) -> None:
        super().__init__(self._respond, longest_wait_s=longest_wait_s)
        self._dialect = dialect
        self._next: deque[Response] = deque()
        self._rule: Callable[[Received], Awaitable[Response]] | None = None

    def script(self, *responses: Response, rule: Callable[[Received], Awaitable[Response]] | None = None) -> None:
        """Forget what happened before; answer with `responses` first, or each request by `rule`."""
        self.forget()
        self._next = deque(responses)
        self._rule = rule

    def ok(self, text: str = ANSWER) -> Response:
        return self._dialect.response(self._dialect.ok(Said(text=text, model=SERVED_MODEL)))

    async def _respond(self, received: Received) -> Response:
        if self._rule is not None:
            return await self._rule(received)
        return self._next.popleft() if self._next else self.ok()


@dataclass(frozen=True, kw_only=True)
class Subject:
    """An adapter's factory with all that the cases need. `http` is None for an adapter without HTTP."""

    make: Callable[[], Adapter]
    model: str
    api_key: str
    patience_s: float
    """How long a call may hang before the case is given up as failed."""
    http: Http | None = None

    @property
    def wire(self) -> Http:
        assert self.http is not None, "a case that needs HTTP runs only with it"
        return self.http

    def request(self, **changes: Any) -> ModelRequest:
        plain = ModelRequest(model=self.model, messages=(Message("user", QUESTION),), max_tokens=300, seed=42)
        return replace(plain, **changes)

    @asynccontextmanager
    async def opened(self, adapter: Adapter | None = None) -> AsyncIterator[Adapter]:
        """A new adapter, or the one given, closed in the end."""
        adapter = adapter or self.make()
        try:
            yield adapter
        finally:
            await adapter.aclose()

    async def attempt(self, adapter: Adapter, request: ModelRequest, timeout_s: float | None = None) -> Result:
        """One call: the reply or the failure. Anything else is a problem."""
        limit = self.patience_s / 2 if timeout_s is None else timeout_s
        task = asyncio.ensure_future(adapter.complete(request, timeout_s=limit))
        done, _ = await asyncio.wait({task}, timeout=self.patience_s)
        if not done:
            task.cancel()
            await asyncio.wait({task}, timeout=1)
            raise AdapterProblem(f"the call did not return in {self.patience_s:g} s, with timeout_s={limit:g}")
        error = task.exception()
        if isinstance(error, CallFailure):
            return error
        if error is not None:
            raise AdapterProblem(f"raised {type(error).__name__} instead of CallFailure")
        if not isinstance(task.result(), ModelReply):
            raise AdapterProblem(f"returned {type(task.result()).__name__} instead of ModelReply")
        return task.result()

    async def result(self, request: ModelRequest | None = None, adapter: Adapter | None = None) -> Result:
        """What one call comes to, with a new adapter or the one given."""
        async with self.opened(adapter) as made:
            return await self.attempt(made, request or self.request())

    async def result_in_little_time(self, response: Response) -> Result:
        """The same with little time. An earlier call opens the connection, so that this one need not."""
        async with self.opened() as adapter:
            await self.attempt(adapter, self.request())
            self.wire.server.script(response)
            return await self.attempt(adapter, self.request(), SHORT_TIMEOUT_S)

    async def reply(self, request: ModelRequest | None = None) -> ModelReply:
        """The reply to one call; a failure is a problem."""
        result = await self.result(request)
        if isinstance(result, CallFailure):
            raise AdapterProblem(
                f"raised CallFailure({result.outcome!r}) instead of returning a reply: {result.message}"
            )
        return result


def failure_in(result: Result) -> CallFailure:
    """The failure that a call came to; a reply is a problem."""
    if isinstance(result, ModelReply):
        raise AdapterProblem(f"returned a reply ({result.outcome!r}) instead of raising CallFailure")
    return result


@dataclass(frozen=True)
class Http:
    """The wire format of an adapter and the server that speaks it."""

    dialect: Dialect
    server: ScriptedServer
    make_at: Callable[[str], Adapter]
    """Makes the adapter for another address."""


@dataclass(frozen=True)
class Case:
    name: str
    run: Callable[[Subject], Awaitable[None]]


def expect(condition: bool, problem: str) -> None:
    if not condition:
        raise AdapterProblem(problem)
