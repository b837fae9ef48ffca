"""Records of a run folder as msgspec structs, made from the published JSON Schemas in `schemas/`.

A struct has the fields of its record. It is made in a fraction of the time that Pydantic needs to be imported, and
msgspec checks a line while it decodes it. What it accepts, the record accepts too, except for rules of records that no
schema can state: those of lines are checked in `audit`, those of the manifest are not. If a struct does not
accept something, only the record can tell whether and why that is wrong.
"""

from __future__ import annotations

import json
from datetime import date
from functools import cache, reduce
from operator import or_
from typing import Annotated, Any, Literal

import msgspec

from .package_data import data_folder

MAX_DEPTH = 100
"""Levels of free JSON that a struct accepts. Pydantic accepts about 200, msgspec any number."""
_REFUSED = (msgspec.MsgspecError, ValueError, RecursionError)
_FREE = {"CallRecord": ("sent", "received"), "Manifest": ("study",)}
"""Fields that may hold any JSON."""
_SIMPLE: dict[str | None, Any] = {
    None: Any, "null": type(None), "boolean": bool, "integer": int, "number": float, "string": str,
}  # fmt: skip
_LIMITS = {
    "minLength": "min_length", "maxLength": "max_length", "minItems": "min_length", "maxItems": "max_length",
    "minProperties": "min_length", "maxProperties": "max_length", "minimum": "ge", "maximum": "le",
    "exclusiveMinimum": "gt", "exclusiveMaximum": "lt",
}  # fmt: skip
"""Keywords of JSON Schema and what msgspec calls them."""
_KNOWN = {
    "$defs", "$ref", "additionalProperties", "anyOf", "const", "default", "description", "enum", "format", "items",
    "pattern", "patternProperties", "properties", "propertyNames", "required", "title", "type", *_LIMITS,
}  # fmt: skip
_NO_PUNCTUATION = (r"[^\s\p{P}]", r"[^\W_]")
"""A class that `re` does not know, and one for it that has fewer characters: letters and digits."""

Schema = dict[str, Any]


def read_line(kind: str, payload: bytes) -> Any:
    """The struct of a line, with the defaults of fields that are absent; None if only its record can tell."""
    try:
        found = _decoder(kind).decode(payload)
    except _REFUSED:
        return None
    return None if _is_deep(kind, found) else found


def read_note(payload: bytes) -> Any:
    """The same for a line of the journal that says what kind of note it is."""
    try:
        kind = _NOTES.get(_note_decoder.decode(payload).note)
    except _REFUSED:
        return None
    return read_line(kind, payload) if kind else None


def read_file(kind: str, data: bytes) -> Any:
    """The struct of a manifest or seal, if its fields are written as these bytes; None if only its record can tell.

    Fields that are absent are `msgspec.UNSET`, which is false. The format is never absent.
    """
    try:
        found = _decoder(kind, exact=True).decode(data)
        same = msgspec.json.encode(found) + b"\n" == data
    except _REFUSED:
        return None
    return found if same and found.format and not _is_deep(kind, found) else None


def sorted_json(value: Any) -> bytes:
    """What `strict_json.fingerprint` hashes, except that msgspec may write a number in another way."""
    return msgspec.json.encode(value, order="sorted")


class _Note(msgspec.Struct):
    note: str


_note_decoder = msgspec.json.Decoder(_Note)
_NOTES = {
    "limits": "LimitsNote", "batch_intent": "BatchIntent", "batch_created": "BatchCreated",
    "batch_ended": "BatchEnded",
}  # fmt: skip


def _is_deep(kind: str, found: Any) -> bool:
    level = [getattr(found, name) for name in _FREE.get(kind, ())]
    for _ in range(MAX_DEPTH):
        if not level:
            return False
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return True


@cache
def _decoder(kind: str, exact: bool = False) -> msgspec.json.Decoder[Any]:
    path = data_folder("schemas") / f"{kind}.schema.json"
    schema: Schema = json.loads(path.read_bytes())
    if kind == "ResultLine":  # the chain value is no longer in the payload
        del schema["properties"]["chain"]
        schema["required"].remove("chain")
    return msgspec.json.Decoder(_Types(schema, exact).top())


class _Types:
    """The types of one schema. A keyword that is not known here is an error, so that none is left out by mistake."""

    def __init__(self, schema: Schema, exact: bool) -> None:
        self._schema = schema
        self._exact = exact
        self._made: dict[str, Any] = {}
        self._open: list[str] = []

    def top(self) -> Any:
        return self._type(self._schema)

    def _type(self, schema: Schema) -> Any:
        if unknown := schema.keys() - _KNOWN:
            raise KeyError(f"JSON Schema keywords without a type: {', '.join(sorted(unknown))}")
        if "$ref" in schema:
            return self._named(schema["$ref"].removeprefix("#/$defs/"))
        if "anyOf" in schema:
            return reduce(or_, (self._type(one) for one in schema["anyOf"]))
        if "const" in schema or "enum" in schema:
            return Literal.__getitem__(tuple(schema.get("enum", (schema.get("const"),))))
        if "properties" in schema:
            return self._struct(schema)
        limits = {_LIMITS[name]: value for name, value in schema.items() if name in _LIMITS}
        if "pattern" in schema:
            limits["pattern"] = _pattern(schema["pattern"])
        made = self._plain(schema)
        return Annotated[made, msgspec.Meta(**limits)] if limits else made

    def _plain(self, schema: Schema) -> Any:
        kind = schema.get("type")
        if kind == "object":
            return self._mapping(schema)
        if kind == "array":
            return tuple.__class_getitem__((self._type(schema["items"]), ...))
        if "format" in schema:
            return {"date": date}[schema["format"]]
        return _SIMPLE[kind]

    def _mapping(self, schema: Schema) -> Any:
        """Where a schema says how some keys look, the record allows no others."""
        key: Any = str
        values = schema.get("additionalProperties", True)
        if "patternProperties" in schema:
            ((pattern, values),) = schema["patternProperties"].items()
            key = Annotated[str, msgspec.Meta(pattern=_pattern(pattern))]
        elif "propertyNames" in schema:
            key = self._type(schema["propertyNames"])
        return dict.__class_getitem__((key, Any if values is True else self._type(values)))

    def _named(self, name: str) -> Any:
        """A record in itself may contain itself once more, and no further."""
        if self._open.count(name) == 2:
            return type(None)
        if name not in self._made or name in self._open:
            self._open.append(name)
            self._made[name] = self._type(self._schema["$defs"][name])
            self._open.pop()
        return self._made[name]

    def _struct(self, schema: Schema) -> type[msgspec.Struct]:
        required = set(schema.get("required", ()))
        fields: list[Any] = []
        for name, one in schema["properties"].items():
            kind = self._type(one)
            if name in required:
                fields.append((name, kind))
            elif self._exact:
                fields.append((name, kind | msgspec.UnsetType, msgspec.UNSET))
            else:
                fields.append((name, kind, _default(one)))
        closed = schema.get("additionalProperties") is False
        return msgspec.defstruct(schema["title"], fields, kw_only=True, forbid_unknown_fields=closed, gc=False)


def _default(schema: Schema) -> Any:
    """The value of a field that is absent. A schema says none where the record makes a new dictionary."""
    if "default" not in schema and schema.get("type") == "object":
        return {}
    value = schema["default"]
    return tuple(value) if isinstance(value, list) else value


def _pattern(pattern: str) -> str:
    """The same pattern for `re`, where `$` would also allow a line break after the end."""
    made = pattern.replace(*_NO_PUNCTUATION).replace("$", r"\Z")
    if r"\p" in made or r"\\Z" in made:
        raise KeyError(f"pattern without a counterpart: {pattern}")
    return made
