"""What the target wrote is data: fenced in every message to a judge, which must also give back a canary.

The fence is a mark derived for this one call; where the fenced text happens to hold it, another is derived, so that no
text can close its own fence. The canary is a word the judge must copy into its answer. It stands outside the fence and
in no text of the target's, so an answer that the target dictated does not have it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from ..schemas import Record
from ..store.strict_json import encode, loads, sha256

WRITTEN_BY_TARGET = frozenset({"reply", "text", "quotes", "left_out"})
"""Fields of agents' inputs that hold the target's words, or a judge's rendering of them."""


@dataclass(frozen=True)
class Wrapped:
    text: str
    canary: str


@cache
def reply_schema(reply_type: type[Record]) -> dict[str, Any]:
    """The JSON Schema of a judge's answer: the record's own, with the canary."""
    schema = reply_type.model_json_schema()
    schema["properties"] = {"canary": {"title": "Canary", "type": "string"}, **schema["properties"]}
    schema["required"] = ["canary", *schema.get("required", [])]
    return schema


def wrap(payload: Record, seed: int) -> Wrapped:
    """An agent's input as it is sent: canary, fence, and the input with every text of the target's inside its fence."""
    document = payload.model_dump(mode="json")
    plain = encode(document).decode("utf-8")
    fence, canary = _mark("fence", seed, plain), _mark("canary", seed, plain)
    sent = {"canary": canary, "fence": fence, "input": _fenced(document, fence)}
    return Wrapped(encode(sent).decode("utf-8"), canary)


def _mark(what: str, seed: int, text: str) -> str:
    """A short word that does not stand in the text."""
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


def unwrap(text: str) -> tuple[str, str]:
    """The canary and the input as JSON without its fences: for judges made of code."""
    sent = loads(text)
    fence = sent["fence"]
    plain = encode(sent["input"]).decode("utf-8").replace(f"<<{fence}>>", "").replace(f"<</{fence}>>", "")
    return sent["canary"], plain
