"""`check_adapter`: runs every case against an adapter and says which failed."""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..adapters.base import Adapter, CallFailure, FailureOutcome, verbatim
from .server import Dialect, Response, Server
from .subject import AdapterProblem, Case, Http, NotApplicable, ScriptedServer, Subject, expect, failure_in
from .wire_cases import CONTRACT_CASES, WIRE_CASES


def check_adapter(
    factory: Callable[..., Adapter],
    *,
    dialect: Dialect | None = None,
    model: str = "checked:model-1",
    only: str = "",
    patience_s: float = 10.0,
) -> Report:
    """Check that an adapter keeps the contract of `Adapter`, and that it fails as it should.

    With a dialect, the adapter talks to a server that the kit starts on 127.0.0.1, and every case runs. Without one,
    only the cases run that need no server: this is for adapters that do not speak HTTP.

    Args:
        factory: with a dialect, called as `factory(base_url=..., api_key=...)`; without one, as `factory()`. It is
            called once per case and must open no connection by itself.
        dialect: the wire format of the adapter; `ChatCompletions()` if it is OpenAI's.
        model: the model that requests ask for, as `provider:model`.
        only: run only the cases whose name contains this text.
        patience_s: a call that hangs for so long is given up as failed. Calls that must succeed get half of it as
            their timeout.

    Returns:
        The report, with every case passed or skipped.

    Raises:
        AdapterCheckError: an AssertionError that lists every case that failed; its `report` has them all.

    Example:
        >>> from medicare_eval.testing import ChatCompletions, check_adapter
        >>> from medicare_eval.adapters.openai_adapter import CompatibleAdapter
        >>> report = check_adapter(CompatibleAdapter, dialect=ChatCompletions())
        >>> report.failed
        ()
    """
    key = f"check-key-{secrets.token_hex(12)}"
    with ExitStack() as stack:
        if dialect is None:
            subject = Subject(make=factory, model=model, api_key=key, patience_s=patience_s)
            cases: Sequence[Case] = CONTRACT_CASES
        else:
            server = stack.enter_context(ScriptedServer(dialect, longest_wait_s=3 * patience_s))

            def make_at(base_url: str) -> Adapter:
                return factory(base_url=base_url, api_key=key)

            http = Http(dialect, server, make_at)
            subject = Subject(
                make=lambda: make_at(server.address), model=model, api_key=key, patience_s=patience_s, http=http
            )
            cases = (*CONTRACT_CASES, *WIRE_CASES, *FAULT_CASES)
        chosen = [case for case in cases if only in case.name]
        if not chosen:
            raise ValueError(f"no case has {only!r} in its name")
        results = tuple(_result(case, subject) for case in chosen)
    report = Report(getattr(factory, "__name__", "adapter"), results)
    if report.failed:
        raise AdapterCheckError(report)
    return report


def _result(case: Case, subject: Subject) -> CaseResult:
    """Run one case in a thread of its own, so that it works inside a running event loop too."""
    results: list[CaseResult] = []
    if subject.http:
        subject.http.server.script()
    thread = threading.Thread(target=lambda: results.append(asyncio.run(_judged(case, subject))), name="adapter-check")
    thread.start()
    thread.join()
    return results[0] if results else CaseResult(case.name, "failed", "the case ended without a result")


async def _judged(case: Case, subject: Subject) -> CaseResult:
    try:
        await case.run(subject)
    except NotApplicable as reason:
        return CaseResult(case.name, "skipped", str(reason))
    except AdapterProblem as problem:
        return CaseResult(case.name, "failed", str(problem))
    except Exception as error:
        return CaseResult(case.name, "failed", f"{type(error).__name__}: {error}")
    return CaseResult(case.name, "passed")


# What a check of an adapter found.


@dataclass(frozen=True)
class CaseResult:
    name: str
    state: Literal["passed", "failed", "skipped"]
    note: str = ""
    """What went wrong, or why the case was skipped."""


@dataclass(frozen=True)
class Report:
    """One check of one adapter: every case with its result."""

    adapter: str
    cases: tuple[CaseResult, ...]

    @property
    def failed(self) -> tuple[CaseResult, ...]:
        return tuple(case for case in self.cases if case.state == "failed")

    def table(self) -> str:
        """All cases, one per line."""
        return "\n".join(_line(case) for case in self.cases)

    def __str__(self) -> str:
        lines = [f"{self.adapter}: {len(self.failed)} of {len(self.cases)} cases failed"]
        return "\n".join([*lines, *(_line(case) for case in self.failed)])


def _line(case: CaseResult) -> str:
    return f"{case.state:7}  {case.name}{f': {case.note}' if case.note else ''}"


class AdapterCheckError(AssertionError):
    """Some cases failed; `report` holds all of them."""

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report


# How an adapter must fail: the right class, one request per attempt, and the API key nowhere to be seen.

STATUSES: dict[int, tuple[FailureOutcome, ...]] = {
    **dict.fromkeys((302, 400, 422), ("permanent",)),
    **dict.fromkeys((401, 402, 403, 404), ("denied", "permanent")),
    **dict.fromkeys((408, 500, 502, 503, 504, 529), ("transient",)),
    429: ("rate_limited",),
}
"""`denied` stops the run. `permanent` is allowed in its place, for adapters whose provider uses a status otherwise."""
BAD_BODIES: dict[str, bytes] = {
    "JSON that ends early": b'{"answer": "Part',
    "an HTML page": b"<html><body><h1>Sign in</h1></body></html>",
    "null": b"null",
    "an empty object": b"{}",
    "a list": b"[]",
    "a number": b"5",
    "nothing": b"",
    "bytes that are not UTF-8": b"\xff\xfe{}",
    "100,000 nested lists": b"[" * 100_000,
}
RETRY_AFTER_S = 7.0
ERROR_PAGE = Response(status=502, body=b"<html><body><h1>Bad gateway</h1></body></html>", content_type="text/html")


def fault(
    name: str,
    outcomes: tuple[FailureOutcome, ...],
    respond: Callable[[Http], Response],
    retry_after_s: float | None = None,
) -> Case:
    """A response that is no answer, and what an adapter must make of it."""

    async def run(subject: Subject) -> None:
        await _check(subject, respond(subject.wire), outcomes, retry_after_s)

    return Case(name, run)


async def _check(
    subject: Subject, response: Response, outcomes: tuple[FailureOutcome, ...], retry_after_s: float | None
) -> None:
    """One attempt must end in such a failure; the server would answer a second attempt well."""
    server = subject.wire.server
    if outcomes == ("timeout",):
        result = await subject.result_in_little_time(response)
    else:
        server.script(response)
        result = await subject.result()
    expect(server.count == 1, f"{server.count} requests were sent for one call: adapters do not retry")
    failure = failure_in(result)
    expect(failure.outcome in outcomes, f"outcome is {failure.outcome!r} instead of {_either(outcomes)}")
    if response.fault is None:
        expect(failure.status == response.status, f"status is {failure.status} instead of {response.status}")
        expect(failure.received == verbatim(response.body), "received is not verbatim(body) of the response")
    expect(
        failure.retry_after_s == retry_after_s, f"retry_after_s is {failure.retry_after_s} instead of {retry_after_s}"
    )
    expect(failure.sent is not None, "sent is None although a request was sent")


def _either(outcomes: tuple[FailureOutcome, ...]) -> str:
    return " or ".join(map(repr, outcomes))


def _error(wire: Http, status: int, message: str, *, shown_as: int, **headers: str) -> Response:
    response = wire.dialect.response(wire.dialect.error(status, message), status=shown_as)
    return replace(response, headers=headers) if headers else response


def status_case(status: int, outcomes: tuple[FailureOutcome, ...]) -> Case:
    headers = {"location": "/elsewhere"} if status == 302 else {}
    return fault(
        f"HTTP {status} is {_either(outcomes)}",
        outcomes,
        lambda wire: _error(wire, status, "scripted error", shown_as=status, **headers),
    )


def body_case(name: str, body: bytes) -> Case:
    return fault(f"HTTP 200 with {name} is 'malformed'", ("malformed",), lambda wire: Response(body=body))


async def refused_connection(subject: Subject) -> None:
    async def never(received: object) -> Response:
        raise AssertionError("nothing is sent to this server")

    with Server(never) as server:
        closed = server.address
    failure = failure_in(await subject.result(adapter=subject.wire.make_at(closed)))
    expect(failure.outcome == "transient", f"outcome is {failure.outcome!r} instead of 'transient'")


async def cancelled(subject: Subject) -> None:
    server = subject.wire.server
    server.script(Response(fault="silence"))
    async with subject.opened() as adapter:
        task = asyncio.ensure_future(adapter.complete(subject.request(), timeout_s=subject.patience_s))
        for _ in range(1_000):
            if server.count or task.done():
                break
            await asyncio.sleep(subject.patience_s / 1_000)
        task.cancel()
        await asyncio.wait({task}, timeout=subject.patience_s)
        expect(task.done(), "a canceled call does not end")
        expect(task.cancelled(), "a canceled call ends with something other than CancelledError")


# The API key


@contextmanager
def _logged() -> Iterator[list[str]]:
    """All that is logged meanwhile, at any level."""
    lines: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    root, handler = logging.getLogger(), Collector(level=logging.DEBUG)
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        root.setLevel(before)
        root.removeHandler(handler)


def _check_hidden(subject: Subject, shown: dict[str, Any]) -> None:
    for place, value in shown.items():
        expect(subject.api_key not in f"{value!r} {value!s}", f"the API key is in {place}")


async def key_in_answer(subject: Subject) -> None:
    server = subject.wire.server
    server.script(server.ok(f"Your key is {subject.api_key}."))
    with _logged() as lines:
        reply = await subject.reply()
    _check_hidden(
        subject,
        {"text": reply.text, "sent": reply.sent, "received": reply.received, "the reply": reply, "the log": lines},
    )


async def key_in_error(subject: Subject) -> None:
    body = subject.wire.dialect.error(401, f"{subject.api_key} is not a valid key")
    subject.wire.server.script(subject.wire.dialect.response(body, status=401))
    with _logged() as lines:
        failure = failure_in(await subject.result())
    _check_failure_hidden(subject, failure, lines)


async def key_in_broken_connection(subject: Subject) -> None:
    subject.wire.server.script(*[Response(fault="reset")] * 10)  # also for an adapter that retries
    with _logged() as lines:
        failure = failure_in(await subject.result())
    _check_failure_hidden(subject, failure, lines)


def _check_failure_hidden(subject: Subject, failure: CallFailure, lines: list[str]) -> None:
    trace = "".join(traceback.format_exception(failure))
    _check_hidden(
        subject,
        {
            "the message": failure.message,
            "sent": failure.sent,
            "received": failure.received,
            "the CallFailure": vars(failure),
            "the traceback": trace,
            "the log": lines,
        },
    )


async def key_in_question(subject: Subject) -> None:
    subject.wire.server.script()
    reply = await subject.reply(subject.request(system=f"My key is {subject.api_key}."))
    _check_hidden(subject, {"sent": reply.sent})


async def key_in_repr(subject: Subject) -> None:
    async with subject.opened() as adapter:
        _check_hidden(subject, {"repr(adapter)": adapter})


FAULT_CASES = (
    *(status_case(status, outcomes) for status, outcomes in STATUSES.items()),
    fault(
        "HTTP 429: Retry-After is reported",
        ("rate_limited",),
        lambda wire: _error(wire, 429, "too many requests", shown_as=429, **{"retry-after": f"{RETRY_AFTER_S:g}"}),
        RETRY_AFTER_S,
    ),
    fault("HTTP 502 with an HTML page is 'transient'", ("transient",), lambda wire: ERROR_PAGE),
    fault(
        "HTTP 200 with an error in it is 'malformed'",
        ("malformed",),
        lambda wire: _error(wire, 500, "an error under status 200", shown_as=200),
    ),
    *(body_case(name, body) for name, body in BAD_BODIES.items()),
    fault("a server that never answers is 'timeout'", ("timeout",), lambda wire: Response(fault="silence")),
    fault(
        "a body that comes byte by byte is 'timeout'",
        ("timeout",),
        lambda wire: Response(body=b" " * 2_000 + wire.server.ok().body, fault="drip"),
    ),
    fault("a reset connection is 'transient'", ("transient",), lambda wire: Response(fault="reset")),
    fault(
        "a body that ends early is 'transient' or 'malformed'",
        ("transient", "malformed"),
        lambda wire: Response(body=wire.server.ok().body, fault="cut"),
    ),
    Case("a closed port is 'transient'", refused_connection),
    Case("a canceled call ends as canceled", cancelled),
    Case("the API key in an answer is not kept", key_in_answer),
    Case("the API key in an error is not kept", key_in_error),
    Case("the API key is not shown when a connection breaks", key_in_broken_connection),
    Case("the API key in a question is not kept", key_in_question),
    Case("the API key is not in repr(adapter)", key_in_repr),
)
