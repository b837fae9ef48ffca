"""What each model family accepts, by the rows of `families.toml`; the first pattern that matches the API id decides.

A parameter that a family does not accept is not sent, and is listed in `not_applied`, so that a report can say what was
requested and what took effect.
"""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from ..records.target import Effort, SearchOptions
from ..store.strict_json import sha256
from .base import Message, ModelRequest
from .web_search import SearchTool, taken

T = TypeVar("T")
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
    seed: bool = True
    length_parameter: LengthParameter
    schema: SchemaMechanism
    list_lengths: bool = False
    """Whether a schema keeps the lengths of its lists, which are sized to the reply. Claude refuses them, Gemini
    refuses long ones, and for OpenAI a schema that differs between calls keeps their common start from being cached.
    A small model on a local server needs them: it may otherwise never end a list."""
    api_version: str | None = None
    """The version header with which the family accepts what this row says; None for the SDK's default."""
    efforts: frozenset[Effort] = frozenset()
    """How much reasoning can be asked for. Another value is not changed to the nearest one: it is not sent."""
    budgets: dict[Effort, int] = field(default_factory=dict, hash=False)
    """Tokens of reasoning that mean each effort, for a family that takes a number and no word."""
    adaptive: bool = False
    """Whether reasoning is off until it is turned on. With it, a temperature other than 1 is refused."""
    free_at_none: bool = False
    """Whether any temperature is accepted at effort `none`."""
    search: SearchTool | None = None
    """How the family searches the web; None: it does not."""


@dataclass(frozen=True)
class Family:
    """A row of the table."""

    provider: str
    pattern: str
    """Matched from the start of the API id."""
    takes: Capabilities


_TABLES = tomllib.loads(Path(__file__).with_name("families.toml").read_text(encoding="utf-8"))


def _families() -> Iterator[Family]:
    searches = {name: _record(SearchTool, row) for name, row in _TABLES["searches"].items()}
    for provider, rows in _TABLES["families"].items():
        for row in rows:
            takes = {**_TABLES["kinds"][row.pop("kind")], **row}
            pattern, search = takes.pop("pattern"), searches.get(takes.pop("search", ""))
            yield Family(provider, pattern, _record(Capabilities, {**takes, "search": search}))


def _record(kind: type[T], row: dict[str, Any]) -> T:
    return kind(**{name: frozenset(value) if isinstance(value, list) else value for name, value in row.items()})


FAMILIES = tuple(_families())
_CHAT = FAMILIES[-1].takes


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
    effort: Effort | None
    search: SearchOptions | None
    """With the options that are sent."""
    not_applied: tuple[str, ...]


class StrictSchemas:
    """Strict copies of the schemas that a run used last."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, bool], tuple[dict[str, Any], dict[str, Any]]] = {}
        """The original too, so that its `id` is not reused."""

    def of(self, schema: dict[str, Any], *, list_lengths: bool) -> dict[str, Any]:
        """Looked up by identity: reading a schema takes as long as copying it."""
        key = (id(schema), list_lengths)
        if key not in self._made:
            if len(self._made) == KEPT_SCHEMAS:
                del self._made[next(iter(self._made))]
            self._made[key] = (schema, strict_schema(schema, list_lengths=list_lengths))
        return self._made[key][1]


def fitted(provider: str, request: ModelRequest, schemas: StrictSchemas | None = None) -> Call:
    """Adapt a request's parameters to its model; raises `UnfitSchema`."""
    strict = (schemas or StrictSchemas()).of
    model = request.sent_as
    takes = capabilities(provider, model)
    schema, tool = request.response_schema, takes.search if request.search else None
    effort = request.effort if request.effort in takes.efforts else None
    if tool and effort in tool.not_at:
        effort = None
    search = taken(tool, request.search) if tool and request.search else None
    refused = {
        "temperature": request.temperature is not None and not _accepted(takes, request.temperature, effort),
        "seed": not takes.seed or (tool is not None and tool.api == "responses"),
        "response_schema": schema is not None and takes.schema == "none",
        "effort": effort != request.effort,
        "search": request.search is not None and tool is None,
    }
    return Call(
        request=request,
        model=model,
        takes=takes,
        temperature=None if refused["temperature"] else request.temperature,
        seed=None if refused["seed"] else request.seed,
        schema=(
            None if schema is None or refused["response_schema"] else strict(schema, list_lengths=takes.list_lengths)
        ),
        effort=effort,
        search=search.options if search else None,
        not_applied=(
            *(name for name, is_refused in refused.items() if is_refused),
            *(search.not_applied if search else ()),
        ),
    )


def _accepted(takes: Capabilities, temperature: float, effort: Effort | None) -> bool:
    """Whether a temperature is accepted with this effort."""
    if effort == "none" and takes.free_at_none:
        return True
    if takes.temperature == "any":
        return temperature == 1 or not (effort and takes.adaptive)
    return takes.temperature == "one" and temperature == 1


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


# What providers cache of a prompt that starts like an earlier one, and how a judge's call helps them.

CacheMechanism = Literal["cache_control", "breakpoints", "key", "conversation_id", "prefix"]
"""How a call says what to cache.

`cache_control`, `breakpoints`: the blocks at whose end the prefix ends are marked, in Anthropic's and in OpenAI's way.
`key`, `conversation_id`: equal prefixes are cached without marks; a key sends calls that share one to the same server.
`prefix`: equal prefixes are cached, and there is nothing to say.
"""


@dataclass(frozen=True)
class CacheRule:
    """A row of the table."""

    provider: str
    pattern: str
    """Matched from the start of the API id."""
    how: CacheMechanism | None = None
    """None: nothing is cached."""
    shortest: int = 0
    """Tokens of the shortest prefix that is cached."""


RULES = tuple(CacheRule(provider, **row) for provider, rows in _TABLES["caches"].items() for row in rows)


def cache_rule(provider: str, model: str) -> CacheRule | None:
    """The row of a model by its API id; None if it caches nothing, or nothing is known about it."""
    for rule in RULES:
        if rule.provider == provider and re.match(rule.pattern, model):
            return rule if rule.how else None
    return None


def rule_for(provider: str, request: ModelRequest, model: str) -> CacheRule | None:
    """The same for one call: None also for a target, which is called as people call it."""
    return cache_rule(provider, model) if request.may_be_cached else None


def cache_key(request: ModelRequest) -> str:
    """Equal for calls that start alike."""
    first = request.messages[0]
    return sha256(f"{request.system or ''}\n{first.content[: first.stable]}")[:32]


@dataclass(frozen=True)
class TextPart:
    text: str
    stable: bool
    """Whether the prefix that may be cached ends with this part."""


def text_parts(message: Message) -> list[TextPart]:
    """A message cut where its stable start ends. There is no blank part: providers refuse them."""
    start, rest = message.content[: message.stable], message.content[message.stable :]
    if not start.strip():
        return [TextPart(message.content, stable=False)]
    if not rest.strip():
        return [TextPart(message.content, stable=True)]
    return [TextPart(start, stable=True), TextPart(rest, stable=False)]
