"""The one way to write JSON and to read it, and everything derived from hashing it.

Written JSON is compact UTF-8 with keys in the order of the record's schema, so the same record gives the same bytes.
Reading is strict: it refuses duplicate keys, NaN, and numbers or nesting without limit, all of which `json` accepts.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

MAX_DEPTH = 100
MAX_DIGITS = 400
_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{\]}]', re.DOTALL)
"""A bracket, or a whole string, which may contain some."""


class StrictJSONError(ValueError):
    """The text is not JSON that this project accepts; the message says why."""


def encode(value: Any) -> bytes:
    """The bytes of a JSON value: compact, UTF-8, insertion order, no NaN."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8")


def sha256(data: bytes | str) -> str:
    return hashlib.sha256(data.encode("utf-8") if isinstance(data, str) else data).hexdigest()


def fingerprint(value: Any) -> str:
    """A hash that does not depend on the order of keys."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=True)
    return sha256(text)


def derive_seed(*parts: object) -> int:
    """A seed for one use, derived from the run's seed and the use. It has 31 bits, so that every provider takes it."""
    joined = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(joined.encode("utf-8")).digest()[:4], "big") & 0x7FFFFFFF


def clean_text(text: str) -> str:
    """Text that can always be stored: lone surrogates, which UTF-8 cannot encode, become U+FFFD."""
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def loads_foreign(body: bytes | str) -> Any:
    """Parse JSON that a provider wrote, which need not be strict, or raise `ValueError`.

    The depth is looked at first. `json` would stop only at the end of the stack, where every other piece of code fails
    too, such as a finalizer that runs at that moment.
    """
    text = body if isinstance(body, str) else body.decode(json.detect_encoding(body), "surrogatepass")
    _check_depth(text)
    return json.loads(text)


def loads(text: str) -> Any:
    """Parse strict JSON or raise `StrictJSONError`."""
    _check_depth(text)
    try:
        value = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_int=_bounded_int, parse_float=_finite
        )
    except StrictJSONError:
        raise
    except json.JSONDecodeError as error:
        raise StrictJSONError(f"invalid JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    except (ValueError, RecursionError) as error:
        raise StrictJSONError(f"invalid JSON: {error}") from None
    if _SURROGATE_ESCAPE.search(text) or _SURROGATE.search(text):
        for string in _strings(value):
            if _SURROGATE.search(string):
                raise StrictJSONError("invalid JSON: a lone surrogate escape (\\ud800 to \\udfff) is not text")
    return value


def _check_depth(text: str) -> None:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for found in _BRACKET.finditer(text):
        if found[0] in ("[", "{"):
            depth += 1
            if depth > MAX_DEPTH:
                raise StrictJSONError(f"invalid JSON: nested deeper than {MAX_DEPTH} levels")
        elif found[0] in ("]", "}"):
            depth -= 1


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise StrictJSONError(f"invalid JSON: the key {twice[:80]!r} appears twice in one object")
    return found


def _no_constant(name: str) -> Any:
    raise StrictJSONError(f"invalid JSON: {name} is not a JSON number")


def _bounded_int(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise StrictJSONError(f"invalid JSON: a number has {len(digits)} digits; the limit is {MAX_DIGITS}")
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits) if len(digits) <= MAX_DIGITS else float("inf")
    if value in (float("inf"), float("-inf")):
        raise StrictJSONError("invalid JSON: a number is too large")
    return value


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _strings(item)
