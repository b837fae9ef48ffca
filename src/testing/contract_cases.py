"""What every adapter must do, with or without HTTP."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any, get_args

from ..adapters.base import CallFailure, Message, ModelReply, ReplyOutcome
from ..schemas import Usage
from ..store.strict_json import encode
from .subject import SHORT_TIMEOUT_S, Case, Problem, Subject, expect

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
            raise Problem(f"one of {CALLS_AT_ONCE} calls at once failed: {result.message}")
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
                raise Problem(f"a later call of the same adapter failed: {result.message}")


async def closes_twice(subject: Subject) -> None:
    async with subject.opened() as adapter:
        await subject.attempt(adapter, subject.request())
        await adapter.aclose()


async def closes_unused(subject: Subject) -> None:
    async with subject.opened():
        pass


CASES = (
    Case("a reply is a well-formed ModelReply", well_formed),
    Case("one adapter serves one call after another", several_calls),
    Case("calls at once keep to themselves", calls_at_once),
    Case("a call out of time is a reply or a timeout", short_timeout),
    Case("an unknown model raises nothing but CallFailure", unknown_model),
    Case("aclose can be called twice", closes_twice),
    Case("an unused adapter can be closed", closes_unused),
)
