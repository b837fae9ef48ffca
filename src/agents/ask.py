"""Asking a judge for JSON until it fits the contract, a stated number of times.

The schema is sent along in the provider's own way; a server that refuses it is asked once more without. What a judge
answers is checked three times in any case: for the canary it was given (see `fencing`), by the record's schema, and by
the agent's own rules (`accept`). Problems are told to the judge in words and it is asked again; each asking is a call
of its own in the journal. When the askings are used up the judge has failed, which is an outcome and never a verdict.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from ..adapters.base import Message, ModelRequest
from ..schemas import CallParameters, CallRecord, Record
from ..store.strict_json import (
    StrictJSONError,
    derive_seed,
    encode,
    loads,
)
from ..text.fence import reply_schema, wrap

T = TypeVar("T", bound=Record)
MAX_REPLY_CHARS = 2_000_000
SCHEMA_REFUSED = frozenset({400, 422})
"""Statuses by which a server may be refusing the response schema."""


@dataclass(frozen=True, kw_only=True)
class JudgeClient:
    """One judge in one role, ready to be asked."""

    model: str
    system: str
    prompt_sha256: str | None = None
    api_id: str = ""
    seed: int
    parameters: CallParameters
    max_asks: int
    call: Callable[[int, ModelRequest], Awaitable[CallRecord]]
    """Makes the call numbered so (0 is the first asking) and returns what came of it."""


async def ask(
    client: JudgeClient, payload: Record, reply_type: type[T], accept: Callable[[T], list[str]], *, first: int = 0
) -> str | None:
    """Ask until `accept` finds no problem. Returns None then, or the last reason why the judge failed.

    `first` numbers the first asking, for a client that is asked more than one thing.
    """
    wrapped = wrap(payload, derive_seed(client.seed, "fence", first))
    question = Message("user", wrapped.text)
    messages: tuple[Message, ...] = (question,)
    schema: dict[str, Any] | None = reply_schema(reply_type)
    reason = ""
    for number in range(first, first + client.max_asks):
        record = await client.call(
            number,
            ModelRequest(
                model=client.model,
                api_id=client.api_id,
                system=client.system,
                prompt_sha256=client.prompt_sha256,
                messages=messages,
                temperature=client.parameters.temperature,
                max_tokens=client.parameters.max_tokens,
                seed=derive_seed(client.seed, number),
                response_schema=schema,
            ),
        )
        if record.outcome == "ok" and record.text is not None:
            problems = _problems(record.text, reply_type, accept, wrapped.canary)
        elif record.text is None and schema and record.status in SCHEMA_REFUSED:
            schema = None  # a server that takes no schema may still answer in JSON: the prompt asks for it too
            reason = f"the call failed: {record.outcome}: {record.error}"
            continue
        elif record.text is None:
            return f"the call failed: {record.outcome}: {record.error}"
        else:
            problems = [f"your answer was {record.outcome}, not JSON"]
        if not problems:
            return None
        reason = "; ".join(problems)
        again = encode({"problems": problems, "instruction": "Answer again with JSON that mends these problems."})
        answer = Message("assistant", record.text or "(no answer)")
        messages = (question, answer, Message("user", again.decode("utf-8")))
    return f"no usable answer after {client.max_asks} askings: {reason}"


def _problems(text: str, reply_type: type[T], accept: Callable[[T], list[str]], canary: str) -> list[str]:
    try:
        return accept(parse(text, reply_type, canary))
    except StrictJSONError as error:
        return [f"the answer is {error}"]
    except ValidationError as error:
        return [f"{'.'.join(str(part) for part in e['loc']) or 'answer'}: {e['msg']}" for e in error.errors()[:5]]


def parse(text: str, reply_type: type[T], canary: str) -> T:
    """Read a judge's answer: one JSON object, bare or in a code fence, valid to the letter, with its canary."""
    if len(text) > MAX_REPLY_CHARS:
        raise StrictJSONError(f"longer than {MAX_REPLY_CHARS} characters")
    body = text.strip()
    if body.startswith("```") and body.endswith("```") and len(body) > 6:
        body = body[3:-3].removeprefix("json").strip()
    document = loads(body)
    if isinstance(document, dict) and document.pop("canary", None) != canary:
        raise StrictJSONError("without the canary of this message; copy its value into the field of that name")
    return reply_type.model_validate_json(encode(document))
