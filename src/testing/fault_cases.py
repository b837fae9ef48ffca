"""How an adapter must fail: the right class, one request per attempt, and the API key nowhere to be seen."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ..adapters.base import CallFailure, FailureOutcome, verbatim
from .server import Response, Server
from .subject import Case, Subject, expect, failure_in

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


@dataclass(frozen=True, kw_only=True)
class _Fault:
    """A response that is no answer, and what an adapter must make of it."""

    response: Response
    outcomes: tuple[FailureOutcome, ...]
    retry_after_s: float | None = None


async def _check(subject: Subject, fault: _Fault) -> CallFailure:
    """The failure that one attempt ends in; the server would answer a second attempt well."""
    server = subject.wire.server
    if fault.outcomes == ("timeout",):
        result = await subject.result_in_little_time(fault.response)
    else:
        server.script(fault.response)
        result = await subject.result()
    expect(server.count == 1, f"{server.count} requests were sent for one call: adapters do not retry")
    failure = failure_in(result)
    allowed = " or ".join(map(repr, fault.outcomes))
    expect(failure.outcome in fault.outcomes, f"outcome is {failure.outcome!r} instead of {allowed}")
    if fault.response.fault is None:
        wanted = fault.response.status
        expect(failure.status == wanted, f"status is {failure.status} instead of {wanted}")
        expect(failure.received == verbatim(fault.response.body), "received is not verbatim(body) of the response")
    expect(
        failure.retry_after_s == fault.retry_after_s,
        f"retry_after_s is {failure.retry_after_s} instead of {fault.retry_after_s}",
    )
    expect(failure.sent is not None, "sent is None although a request was sent")
    return failure


def status_case(status: int, outcomes: tuple[FailureOutcome, ...]) -> Case:
    async def run(subject: Subject) -> None:
        body = subject.wire.dialect.error(status, "scripted error")
        response = subject.wire.dialect.response(body, status=status)
        if status == 302:
            response = replace(response, headers={"location": "/elsewhere"})
        await _check(subject, _Fault(response=response, outcomes=outcomes))

    return Case(f"HTTP {status} is {' or '.join(map(repr, outcomes))}", run)


async def retry_after(subject: Subject) -> None:
    response = subject.wire.dialect.response(subject.wire.dialect.error(429, "too many requests"), status=429)
    asked = replace(response, headers={"retry-after": f"{RETRY_AFTER_S:g}"})
    await _check(subject, _Fault(response=asked, outcomes=("rate_limited",), retry_after_s=RETRY_AFTER_S))


async def error_page(subject: Subject) -> None:
    page = Response(status=502, body=b"<html><body><h1>Bad gateway</h1></body></html>", content_type="text/html")
    await _check(subject, _Fault(response=page, outcomes=("transient",)))


async def error_with_status_200(subject: Subject) -> None:
    response = subject.wire.dialect.response(subject.wire.dialect.error(500, "an error under status 200"))
    await _check(subject, _Fault(response=response, outcomes=("malformed",)))


def body_case(name: str, body: bytes) -> Case:
    async def run(subject: Subject) -> None:
        await _check(subject, _Fault(response=Response(body=body), outcomes=("malformed",)))

    return Case(f"HTTP 200 with {name} is 'malformed'", run)


async def silence(subject: Subject) -> None:
    await _check(subject, _Fault(response=Response(fault="silence"), outcomes=("timeout",)))


async def drip(subject: Subject) -> None:
    body = b" " * 2_000 + subject.wire.server.ok().body
    await _check(subject, _Fault(response=Response(body=body, fault="drip"), outcomes=("timeout",)))


async def reset(subject: Subject) -> None:
    await _check(subject, _Fault(response=Response(fault="reset"), outcomes=("transient",)))


async def cut(subject: Subject) -> None:
    body = subject.wire.server.ok().body
    await _check(subject, _Fault(response=Response(body=body, fault="cut"), outcomes=("transient", "malformed")))


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
    Case("HTTP 429: Retry-After is reported", retry_after),
    Case("HTTP 502 with an HTML page is 'transient'", error_page),
    Case("HTTP 200 with an error in it is 'malformed'", error_with_status_200),
    *(body_case(name, body) for name, body in BAD_BODIES.items()),
    Case("a server that never answers is 'timeout'", silence),
    Case("a body that comes byte by byte is 'timeout'", drip),
    Case("a reset connection is 'transient'", reset),
    Case("a body that ends early is 'transient' or 'malformed'", cut),
    Case("a closed port is 'transient'", refused_connection),
    Case("a canceled call ends as canceled", cancelled),
    Case("the API key in an answer is not kept", key_in_answer),
    Case("the API key in an error is not kept", key_in_error),
    Case("the API key is not shown when a connection breaks", key_in_broken_connection),
    Case("the API key in a question is not kept", key_in_question),
    Case("the API key is not in repr(adapter)", key_in_repr),
)
