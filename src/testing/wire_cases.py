"""What an adapter must send, and what it must read from each kind of answer."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

from ..adapters.base import CallFailure, Message, ModelReply, ReplyOutcome, verbatim
from ..schemas import Usage
from ..store.strict_json import encode
from .server import Dialect, Received, Response, Said
from .subject import (
    ANSWER,
    QUESTION,
    SERVED_MODEL,
    SHORT_TIMEOUT_S,
    AdapterProblem,
    Case,
    NotApplicable,
    Subject,
    expect,
)

# What every adapter must do, with or without HTTP.

CALLS_AT_ONCE = 8


def storable(value: Any) -> bool:
    """Whether the journal can hold a value."""
    try:
        encode(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


async def well_formed(subject: Subject) -> None:
    reply = await subject.reply()
    expect(reply.outcome in get_args(ReplyOutcome), f"outcome {reply.outcome!r} is not one of {get_args(ReplyOutcome)}")
    expect(isinstance(reply.text, str), "text is not a string")
    expect(isinstance(reply.usage, Usage), "usage is not a Usage record")
    for name in ("stop_reason", "served_model", "fingerprint", "request_id"):
        expect(isinstance(getattr(reply, name), str | None), f"{name} is neither a string nor None")
    names = reply.not_applied
    expect(isinstance(names, tuple) and all(isinstance(name, str) for name in names), "not_applied is no tuple of str")
    expect(storable(reply.sent), "sent cannot be written as JSON")
    expect(storable(reply.received), "received cannot be written as JSON")
    expect(reply.received is not None, "received is None: the raw response must be kept")


async def calls_at_once(subject: Subject) -> None:
    questions = [f"question-{number:02}" for number in range(CALLS_AT_ONCE)]
    requests = [subject.request(messages=(Message("user", question),)) for question in questions]
    async with subject.opened() as adapter:
        results = await asyncio.gather(*(subject.attempt(adapter, request) for request in requests))
    for question, result in zip(questions, results, strict=True):
        if isinstance(result, CallFailure):
            raise AdapterProblem(f"one of {CALLS_AT_ONCE} calls at once failed: {result.message}")
        expect(question in json.dumps(result.sent), "a call returned what another call sent")


async def short_timeout(subject: Subject) -> None:
    async with subject.opened() as adapter:
        result = await subject.attempt(adapter, subject.request(), SHORT_TIMEOUT_S / 100)
    if isinstance(result, CallFailure):
        expect(result.outcome == "timeout", f"a call out of time failed with {result.outcome!r} instead of 'timeout'")


async def unknown_model(subject: Subject) -> None:
    request = replace(subject.request(), model=f"{subject.model}-unknown")
    async with subject.opened() as adapter:
        result = await subject.attempt(adapter, request)
    expect(isinstance(result, ModelReply) or bool(result.message), "the CallFailure has no message")


async def several_calls(subject: Subject) -> None:
    async with subject.opened() as adapter:
        for _ in range(3):
            result = await subject.attempt(adapter, subject.request())
            if isinstance(result, CallFailure):
                raise AdapterProblem(f"a later call of the same adapter failed: {result.message}")


async def closes_twice(subject: Subject) -> None:
    async with subject.opened() as adapter:
        await subject.attempt(adapter, subject.request())
        await adapter.aclose()


async def closes_unused(subject: Subject) -> None:
    async with subject.opened():
        pass


CONTRACT_CASES = (
    Case("a reply is a well-formed ModelReply", well_formed),
    Case("one adapter serves one call after another", several_calls),
    Case("calls at once keep to themselves", calls_at_once),
    Case("a call out of time is a reply or a timeout", short_timeout),
    Case("an unknown model raises nothing but CallFailure", unknown_model),
    Case("aclose can be called twice", closes_twice),
    Case("an unused adapter can be closed", closes_unused),
)


SYSTEM = "system-prompt-of-the-check"
HINT = "hint-that-is-never-sent"
PARAMETERS: dict[str, tuple[Any, str]] = {
    "temperature": (0.25, "0.25"),
    "max_tokens": (7_351, "7351"),
    "seed": (81_723, "81723"),
    "response_schema": (
        {
            "title": "Reply",
            "type": "object",
            "properties": {"part_of_the_check": {"type": "string"}},
            "required": ["part_of_the_check"],
            "additionalProperties": False,
        },
        "part_of_the_check",
    ),
}
"""Parameters of a request, each with the text by which it is found in what was sent."""


def last_body(subject: Subject) -> str:
    expect(subject.wire.server.count > 0, "nothing was sent to base_url")
    return subject.wire.server.received[-1].body.decode("utf-8", "replace")


async def text_of_answer(subject: Subject) -> None:
    subject.wire.server.script()
    reply = await subject.reply()
    expect(reply.outcome == "ok", f"outcome is {reply.outcome!r} instead of 'ok'")
    expect(reply.text == ANSWER, f"text is {reply.text[:80]!r} instead of {ANSWER!r}")


async def body_kept(subject: Subject) -> None:
    response = subject.wire.server.ok()
    subject.wire.server.script(response)
    reply = await subject.reply()
    expect(reply.received == verbatim(response.body), "received is not verbatim(body) of the response")


async def request_kept(subject: Subject) -> None:
    subject.wire.server.script()
    reply = await subject.reply()
    try:
        body = json.loads(last_body(subject))
    except ValueError:
        expect(QUESTION in json.dumps(reply.sent), "sent does not hold the question")
    else:
        expect(reply.sent == body, "sent is not the JSON body of the request")


async def model_reported(subject: Subject) -> None:
    if not subject.wire.dialect.reports_model:
        raise NotApplicable("the dialect names no model")
    subject.wire.server.script()
    served = (await subject.reply()).served_model
    expect(served == SERVED_MODEL, f"served_model is {served!r} although the answer names {SERVED_MODEL!r}")


async def usage_reported(subject: Subject) -> None:
    if not subject.wire.dialect.reports_usage:
        raise NotApplicable("the dialect gives no token counts")
    said = Said(text=ANSWER, model=SERVED_MODEL)
    subject.wire.server.script()
    usage = (await subject.reply()).usage
    wanted = Usage(input_tokens=said.input_tokens, output_tokens=said.output_tokens)
    found = Usage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
    expect(found == wanted, f"usage is {found.input_tokens} in, {found.output_tokens} out instead of 11 in, 7 out")


def special(name: str, outcome: ReplyOutcome, speak: Callable[[Dialect, Said], Any], *, text: str | None) -> Case:
    """An answer of a special kind; `text` None: whatever the adapter reads is fine."""

    async def run(subject: Subject) -> None:
        said = speak(subject.wire.dialect, Said(text="" if outcome == "empty" else ANSWER, model=SERVED_MODEL))
        if said is None:
            raise NotApplicable(f"the dialect has no way to say {outcome!r}")
        subject.wire.server.script(subject.wire.dialect.response(said))
        reply = await subject.reply()
        expect(reply.outcome == outcome, f"outcome is {reply.outcome!r} instead of {outcome!r}")
        expect(text is None or reply.text.strip() == text, f"text is {reply.text[:80]!r} instead of {text!r}")

    return Case(name, run)


async def unstorable_text(subject: Subject) -> None:
    subject.wire.server.script(subject.wire.server.ok("cut off \ud83d"))
    reply = await subject.reply()
    try:
        reply.text.encode("utf-8")
    except UnicodeEncodeError:
        raise AdapterProblem(
            "text holds half a surrogate pair, which no file can store: use strict_json.clean_text"
        ) from None


async def turns_in_order(subject: Subject) -> None:
    turns = (Message("user", "turn-number-1"), Message("assistant", "turn-number-2"), Message("user", "turn-number-3"))
    subject.wire.server.script()
    await subject.reply(subject.request(system=SYSTEM, messages=turns))
    body = last_body(subject)
    found = re.findall(r"turn-number-\d", body)
    expect(found == [turn.content for turn in turns], f"the turns sent are {found}")
    expect(SYSTEM in body, "the system prompt was not sent")


async def stable_start_sent(subject: Subject) -> None:
    """An adapter may cut a message where its stable start ends; it must not lose or repeat a part."""
    subject.wire.server.script()
    await subject.reply(subject.request(messages=(Message("user", "stable-start-1 own-part-2", 15),)))
    body = last_body(subject)
    found = re.findall(r"stable-start-1|own-part-2", body)
    expect(found == ["stable-start-1", "own-part-2"], f"of a message with a stable start, the parts sent are {found}")


async def parameters_sent(subject: Subject) -> None:
    subject.wire.server.script()
    reply = await subject.reply(subject.request(**{name: value for name, (value, _) in PARAMETERS.items()}))
    body = last_body(subject)
    for name, (_, mark) in PARAMETERS.items():
        expect(
            (mark in body) != (name in reply.not_applied),
            f"{name} must be either sent or listed in not_applied, and not both",
        )


async def hint_not_sent(subject: Subject) -> None:
    subject.wire.server.script()
    await subject.reply(subject.request(hint=HINT, prompt_sha256="a" * 64))
    body = last_body(subject)
    expect(HINT not in body and "a" * 64 not in body, "hint or prompt_sha256 was sent; both are for the record only")


async def no_mixing(subject: Subject) -> None:
    """All calls are in flight before the first is answered, and the answers come in reverse order."""
    server, arrived, all_here = subject.wire.server, list[str](), asyncio.Event()
    patient = True

    async def answer(received: Received) -> Response:
        nonlocal patient
        question = re.search(rb"question-\d\d", received.body)
        text = question[0].decode() if question else "no question"
        arrived.append(text)
        place = len(arrived)
        if place == CALLS_AT_ONCE:
            all_here.set()
        try:
            await asyncio.wait_for(all_here.wait(), subject.patience_s / 4 if patient else 0)
        except TimeoutError:
            patient = False
        await asyncio.sleep(0.005 * (CALLS_AT_ONCE - place))
        return server.ok(f"answer to {text}")

    server.script(rule=answer)
    questions = [f"question-{number:02}" for number in range(CALLS_AT_ONCE)]
    requests = [subject.request(messages=(Message("user", question),)) for question in questions]
    async with subject.opened() as adapter:
        results = await asyncio.gather(*(subject.attempt(adapter, request) for request in requests))
    expect(patient, f"{CALLS_AT_ONCE} calls do not run at the same time: the adapter blocks the event loop or queues")
    for question, result in zip(questions, results, strict=True):
        if isinstance(result, CallFailure):
            raise AdapterProblem(f"one of {CALLS_AT_ONCE} calls at once failed: {result.message}")
        expect(result.text == f"answer to {question}", f"the reply to {question!r} is {result.text[:40]!r}")
        expect(question in json.dumps(result.sent), f"sent of {question!r} belongs to another call")
        expect(question in json.dumps(result.received), f"received of {question!r} belongs to another call")


WIRE_CASES = (
    Case("an answer: its text is returned", text_of_answer),
    Case("an answer: the body is kept verbatim", body_kept),
    Case("an answer: what was sent is kept", request_kept),
    Case("an answer: the model that gave it is reported", model_reported),
    Case("an answer: token usage is reported", usage_reported),
    special("an empty answer is 'empty'", "empty", lambda dialect, said: dialect.ok(said), text=""),
    special("a cut-off answer is 'truncated'", "truncated", lambda dialect, said: dialect.truncated(said), text=ANSWER),
    special("a refusal is 'refused'", "refused", lambda dialect, said: dialect.refused(said), text=None),
    special("a filtered answer is 'blocked'", "blocked", lambda dialect, said: dialect.blocked(said), text=None),
    Case("an answer with half a surrogate pair can be stored", unstorable_text),
    Case("a request: system prompt and turns are sent in order", turns_in_order),
    Case("a request: a message with a stable start is sent whole", stable_start_sent),
    Case("a request: each parameter is sent or listed in not_applied", parameters_sent),
    Case("a request: hint and prompt hash are not sent", hint_not_sent),
    Case("calls at once get their own answers", no_mixing),
)
