"""What the target wrote is data: it is fenced in every message to a judge, and the judge must return a canary.

The fence is a mark derived for one call. If the fenced text happens to contain it, another one is derived, so no text
can close its own fence. The canary is a word that the judge must copy into its answer. It is outside the fence and in
none of the target's text, so an answer that the target dictated does not have it.

What is equal for all calls of a scenario (the answer key) comes first in a message, so that a provider can cache it;
canary, fence and the claims or reply follow.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

from pydantic_core import to_json

from ..schemas import Record
from ..store.strict_json import encode, loads, sha256

WRITTEN_BY_TARGET = frozenset({"reply", "text", "quotes", "left_out"})
"""Fields of agents' inputs that contain the target's words, or a judge's version of them."""
SHARED = {"answer_key", "disallowed_claims"}
"""Fields of agents' inputs that are equal for all calls of a role and scenario."""


@dataclass(frozen=True)
class Wrapped:
    text: str
    canary: str
    stable: int
    """How many leading characters are equal for all calls of this role and scenario."""


@cache
def _schema(reply_type: type[Record]) -> dict[str, Any]:
    schema = reply_type.model_json_schema()
    schema["properties"] = {"canary": {"title": "Canary", "type": "string"}, **schema["properties"]}
    schema["required"] = ["canary", *schema.get("required", [])]
    return schema


@lru_cache(maxsize=256)
def reply_schema(reply_type: type[Record], longest: int | None = None) -> dict[str, Any]:
    """The JSON Schema of a judge's answer: that of the record, plus the canary.

    `longest` limits the answer's list to what can be right, so that a decoder that follows the schema cannot run on.
    """
    schema = deepcopy(_schema(reply_type))
    if longest is not None:
        for field in schema["properties"].values():
            if field.get("type") == "array":
                field["maxItems"] = min(longest, field.get("maxItems", longest))
    return schema


def wrap(payload: Record, seed: int) -> Wrapped:
    """An agent's input as it is sent: what the scenario's calls share, canary, fence, and the input fenced."""
    # The serializer's own JSON: without floats, as here, it is what `encode` gives, several times faster.
    shared = payload.model_dump_json(include=SHARED)
    rest = payload.model_dump(mode="json", exclude=SHARED)
    first = "{" if shared == "{}" else f'{{"shared":{shared},'
    plain = f"{shared}\n{payload.model_dump_json(exclude=SHARED)}"
    fence, canary = _mark("fence", seed, plain), _mark("canary", seed, plain)
    last = to_json({"canary": canary, "fence": fence, "input": _fenced(rest, fence)}).decode("utf-8")
    return Wrapped(first + last[1:], canary, len(first) if first != "{" else 0)


def _mark(what: str, seed: int, text: str) -> str:
    """A short word that does not occur in the text."""
    number = 0
    while (mark := sha256(f"{what}|{seed}|{number}")[:12]) in text:
        number += 1
    return mark


def _fenced(value: Any, fence: str, written: bool = False) -> Any:
    if isinstance(value, str):
        return f"<<{fence}>>{value}<</{fence}>>" if written else value
    if isinstance(value, list):
        return [_fenced(inner, fence, written) for inner in value]
    if isinstance(value, dict):
        return {name: _fenced(inner, fence, name in WRITTEN_BY_TARGET) for name, inner in value.items()}
    return value


class Unwrapped(NamedTuple):
    canary: str
    input: str
    """As JSON, without fences."""


def unwrap(text: str) -> Unwrapped:
    """Undo `wrap`, for judges that are code."""
    sent = loads(text)
    fence = sent["fence"]
    whole = {**sent.get("shared", {}), **sent["input"]}
    plain = encode(whole).decode("utf-8").replace(f"<<{fence}>>", "").replace(f"<</{fence}>>", "")
    return Unwrapped(sent["canary"], plain)
