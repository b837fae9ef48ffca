"""What each model family accepts, as data: one row per family; the first pattern that matches the API id decides.

A parameter that a family does not accept is not sent, and is listed in `not_applied`, so that a report can say what was
requested and what took effect. Sources: the providers' documentation and the installed SDKs, read in November 2026.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from typing import Any, Literal

from .base import ModelRequest

Sampling = Literal["any", "one", "none"]
"""Any value is accepted, only the value 1 is, or the parameter itself is refused."""
LengthParameter = Literal["max_completion_tokens", "max_tokens", "max_output_tokens"]
KEPT_SCHEMAS = 256
MOST_ITEMS = 200
"""A longer list is sent without its length: llama.cpp makes a grammar rule of every entry and refuses 2,000."""
SchemaMechanism = Literal["response_format", "output_config", "response_json_schema", "none"]
"""`none`: only the prompt asks for JSON."""


class UnfitSchema(ValueError):  # noqa: N818 - it is about a schema, not an error of the program
    """A response schema that no strict mechanism accepts."""


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What one family accepts."""

    temperature: Sampling = "any"
    top_p: Sampling = "any"
    seed: bool = True
    length_parameter: LengthParameter
    schema: SchemaMechanism
    list_lengths: bool = False
    """Whether a schema keeps the lengths of its lists, which are sized to the reply. Claude refuses them, Gemini
    refuses long ones, and for OpenAI a schema that differs between calls keeps their common start from being cached.
    A small model on a local server needs them: it may otherwise never end a list."""
    api_version: str | None = None
    """The version header with which the family accepts what this row says; None for the SDK's default."""


@dataclass(frozen=True)
class Family:
    """A row of the table."""

    provider: str
    pattern: str
    """Matched from the start of the API id."""
    takes: Capabilities


_GPT = Capabilities(length_parameter="max_completion_tokens", schema="response_format")
_GPT_BEFORE_SCHEMAS = Capabilities(length_parameter="max_completion_tokens", schema="none")
_GPT_REASONING = Capabilities(
    temperature="one", top_p="one", length_parameter="max_completion_tokens", schema="response_format"
)
# The API version that anthropic 2.x sends refuses sampling parameters for every model.
_CLAUDE_SAMPLING_VERSION = "2023-06-01"
_CLAUDE_BEFORE_SCHEMAS = Capabilities(
    seed=False, length_parameter="max_tokens", schema="none", api_version=_CLAUDE_SAMPLING_VERSION
)
_CLAUDE_SAMPLING = Capabilities(
    seed=False, length_parameter="max_tokens", schema="output_config", api_version=_CLAUDE_SAMPLING_VERSION
)
_CLAUDE = Capabilities(
    temperature="none", top_p="none", seed=False, length_parameter="max_tokens", schema="output_config"
)
_GEMINI = Capabilities(length_parameter="max_output_tokens", schema="response_json_schema")
_GROK = Capabilities(length_parameter="max_tokens", schema="response_format")
_CHAT = Capabilities(length_parameter="max_tokens", schema="response_format", list_lengths=True)

FAMILIES = (
    Family("openai", r"(?:ft:)?gpt-5(?:\.\d+)?-chat", _GPT),
    # GPT-5.1 to 5.4 accept a temperature only at reasoning effort `none`; the effort stays at the provider's default.
    Family("openai", r"(?:ft:)?(?:o\d|gpt-(?:[5-9]|\d\d))", _GPT_REASONING),
    Family("openai", r"(?:ft:)?(?:gpt-3\.5|gpt-4-|gpt-4$|gpt-4o-2024-05-13|chatgpt-4o)", _GPT_BEFORE_SCHEMAS),
    Family("openai", r"", _GPT),
    Family("anthropic", r"claude-(?:[123]|instant)", _CLAUDE_BEFORE_SCHEMAS),
    Family("anthropic", r"claude-(?:opus|sonnet)-4(?:-0|[-@]\d{8})?$", _CLAUDE_BEFORE_SCHEMAS),
    Family("anthropic", r"claude-(?:opus|sonnet|haiku)-4-[1-6](?!\d)", _CLAUDE_SAMPLING),
    Family("anthropic", r"", _CLAUDE),
    Family("google", r"", _GEMINI),
    Family("xai", r"", _GROK),
    Family("compatible", r"", _CHAT),
)


def capabilities(provider: str, model: str) -> Capabilities:
    """What `model` (an API id) of `provider` accepts; a provider not in the table counts as OpenAI-compatible."""
    for family in FAMILIES:
        if family.provider == provider and re.match(family.pattern, model):
            return family.takes
    return _CHAT


@dataclass(frozen=True, kw_only=True)
class Call:
    """A request adapted to its model: what is sent, and what is not."""

    request: ModelRequest
    model: str
    """The API id."""
    takes: Capabilities
    temperature: float | None
    seed: int | None
    schema: dict[str, Any] | None
    """The response schema in the form that strict mechanisms accept."""
    not_applied: tuple[str, ...]


@dataclass(frozen=True)
class _Made:
    original: dict[str, Any]
    """Kept, so that its `id` is not reused."""
    strict: dict[str, Any]


class StrictSchemas:
    """Strict copies of the schemas that a run used last."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, bool], _Made] = {}

    def of(self, schema: dict[str, Any], *, list_lengths: bool) -> dict[str, Any]:
        """Looked up by identity: reading a schema takes as long as copying it."""
        key = (id(schema), list_lengths)
        if key not in self._made:
            if len(self._made) == KEPT_SCHEMAS:
                del self._made[next(iter(self._made))]
            self._made[key] = _Made(schema, strict_schema(schema, list_lengths=list_lengths))
        return self._made[key].strict


def fitted(provider: str, request: ModelRequest, schemas: StrictSchemas | None = None) -> Call:
    """Adapt a request's parameters to its model; raises `UnfitSchema`."""
    strict = (schemas or StrictSchemas()).of
    model = request.sent_as
    takes = capabilities(provider, model)
    asked, schema = request.temperature, request.response_schema
    refused = {
        "temperature": asked is not None
        and not (takes.temperature == "any" or (takes.temperature == "one" and asked == 1)),
        "seed": not takes.seed,
        "response_schema": schema is not None and takes.schema == "none",
    }
    return Call(
        request=request,
        model=model,
        takes=takes,
        temperature=None if refused["temperature"] else asked,
        seed=None if refused["seed"] else request.seed,
        schema=(
            None if schema is None or refused["response_schema"] else strict(schema, list_lengths=takes.list_lengths)
        ),
        not_applied=tuple(name for name, is_refused in refused.items() if is_refused),
    )


_LIMITS = frozenset(
    {
        *("default", "examples", "format", "pattern", "minLength", "maxLength", "multipleOf", "discriminator"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
    }
)
"""Keywords that some provider refuses. Agents validate every reply against the full schema anyway."""
_BY_NAME = frozenset({"properties", "$defs", "definitions"})
"""Keywords whose value maps names to schemas; the names are not keywords."""


def strict_schema(schema: dict[str, Any], *, list_lengths: bool = False) -> dict[str, Any]:
    """A copy of a JSON Schema that every provider's strict mechanism accepts.

    Objects are closed and require all their properties, defaults and limits are removed, `oneOf` becomes `anyOf`, and a
    `$ref` has no siblings. A schema that allows arbitrary keys cannot be made strict and raises `UnfitSchema`. With
    `list_lengths` the lists of the outer object keep their lengths; those inside them would multiply in a grammar.
    """
    strict = _strict(copy.deepcopy(schema))
    assert isinstance(strict, dict)
    for name, part in schema.get("properties", {}).items() if list_lengths else ():
        if part.get("type") == "array" and part.get("maxItems", 0) <= MOST_ITEMS:
            strict["properties"][name] |= {key: part[key] for key in ("minItems", "maxItems") if key in part}
    return strict


def _strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return {key: node[key] if key == "$ref" else _named(node[key]) for key in node if key in ("$ref", "$defs")}
    kept: dict[str, Any] = {}
    for key, value in node.items():
        if key in _BY_NAME:
            kept[key] = _named(value)
        elif key in ("enum", "const", "required", "title", "description", "type"):
            kept[key] = value
        elif key not in _LIMITS and key != "additionalProperties":
            kept["anyOf" if key == "oneOf" else key] = _strict(value)
    if node.get("type") == "object" or "properties" in node:
        if node.get("additionalProperties") not in (None, False) or not node.get("properties"):
            raise UnfitSchema("every object in a response schema must have named properties and no others")
        kept["additionalProperties"] = False
        kept["required"] = list(node["properties"])
    return kept


def _named(schemas: dict[str, Any]) -> dict[str, Any]:
    return {name: _strict(schema) for name, schema in schemas.items()}
