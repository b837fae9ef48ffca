"""What each model family accepts, as data: one row per family; the first pattern that matches the API id decides.

A parameter that a family does not accept is not sent, and is listed in `not_applied`, so that a report can say what was
requested and what took effect. Sources: the providers' documentation and the installed SDKs, read in November 2026.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ..records.target import Effort, SearchOptions
from .base import ModelRequest
from .web_search import SearchTool, taken

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


_LOW_TO_HIGH: frozenset[Effort] = frozenset({"low", "medium", "high"})
_OPENAI_SEARCH = SearchTool(
    api="responses",
    takes=frozenset({"max_searches", "allowed_domains", "country", "context_size"}),
    not_at=frozenset({"minimal"}),
)
# xAI's tool has no limit of searches and no location. Its lists have five sites at most.
_XAI_SEARCH = SearchTool(
    api="responses", takes=frozenset({"allowed_domains", "blocked_domains"}), most_domains=5, one_list=True
)
_CLAUDE_OPTIONS = frozenset({"max_searches", "allowed_domains", "blocked_domains", "country"})
_CLAUDE_SEARCH = SearchTool(api="messages", takes=_CLAUDE_OPTIONS, version="web_search_20260318", one_list=True)
# Models before 4.6 cannot call the tool from code, which later versions of it expect.
_CLAUDE_FIRST_SEARCH = SearchTool(api="messages", takes=_CLAUDE_OPTIONS, version="web_search_20250305", one_list=True)
# The SDK says of `exclude_domains`: not supported in the Gemini API.
_GEMINI_SEARCH = SearchTool(api="generate_content", takes=frozenset())
_GEMINI_FIRST_SEARCH = SearchTool(api="generate_content", takes=frozenset(), bills="requests")

_GPT = Capabilities(length_parameter="max_completion_tokens", schema="response_format", search=_OPENAI_SEARCH)
_GPT_WITHOUT_SEARCH = Capabilities(length_parameter="max_completion_tokens", schema="response_format")
_GPT_BEFORE_SCHEMAS = Capabilities(length_parameter="max_completion_tokens", schema="none")


def _gpt(*efforts: Effort, free_at_none: bool = False) -> Capabilities:
    return Capabilities(
        temperature="one",
        top_p="one",
        length_parameter="max_completion_tokens",
        schema="response_format",
        efforts=frozenset(efforts),
        free_at_none=free_at_none,
        search=_OPENAI_SEARCH,
    )


# The API version that anthropic 2.x sends refuses sampling parameters for every model.
_CLAUDE_SAMPLING_VERSION = "2023-06-01"
_CLAUDE_BEFORE_SEARCH = Capabilities(
    seed=False, length_parameter="max_tokens", schema="none", api_version=_CLAUDE_SAMPLING_VERSION
)
_CLAUDE_BEFORE_SCHEMAS = replace(_CLAUDE_BEFORE_SEARCH, search=_CLAUDE_FIRST_SEARCH)
_CLAUDE_SAMPLING = replace(_CLAUDE_BEFORE_SCHEMAS, schema="output_config")
_CLAUDE = Capabilities(
    temperature="none",
    top_p="none",
    seed=False,
    length_parameter="max_tokens",
    schema="output_config",
    efforts=frozenset({*_LOW_TO_HIGH, "xhigh"}),
    search=_CLAUDE_SEARCH,
)


def _gemini(*efforts: Effort, **more: Any) -> Capabilities:
    return Capabilities(
        length_parameter="max_output_tokens",
        schema="response_json_schema",
        efforts=frozenset(efforts),
        **{"search": _GEMINI_SEARCH, **more},
    )


# What Google's OpenAI-compatible address makes of the words: https://ai.google.dev/gemini-api/docs/openai
_BUDGETS: dict[Effort, int] = {"none": 0, "low": 1_024, "medium": 8_192, "high": 24_576}


def _grok(*efforts: Effort, search: SearchTool | None = _XAI_SEARCH) -> Capabilities:
    return Capabilities(
        length_parameter="max_tokens", schema="response_format", efforts=frozenset(efforts), search=search
    )


_CHAT = Capabilities(
    length_parameter="max_tokens",
    schema="response_format",
    list_lengths=True,
    # Which of them the model behind the server takes, only the server knows: it refuses or ignores the others.
    efforts=frozenset({"none", "minimal", "low", "medium", "high", "xhigh"}),
)

FAMILIES = (
    Family("openai", r"(?:ft:)?gpt-5(?:\.\d+)?-chat", _GPT),
    Family("openai", r"(?:ft:)?o\d", _gpt("low", "medium", "high")),
    Family("openai", r"(?:ft:)?gpt-5-pro", _gpt("high")),
    Family("openai", r"(?:ft:)?gpt-5(?![.\d])", _gpt("minimal", "low", "medium", "high")),
    # GPT-5.1 to 5.4 accept a temperature only at reasoning effort `none`.
    Family("openai", r"(?:ft:)?gpt-5\.1(?!\d)", _gpt("none", "low", "medium", "high", free_at_none=True)),
    Family("openai", r"(?:ft:)?gpt-5\.[2-4](?!\d)", _gpt("none", "low", "medium", "high", "xhigh", free_at_none=True)),
    Family("openai", r"(?:ft:)?gpt-(?:[5-9]|\d\d)", _gpt("none", "low", "medium", "high", "xhigh")),
    Family("openai", r"(?:ft:)?(?:gpt-3\.5|gpt-4-|gpt-4$|gpt-4o-2024-05-13|chatgpt-4o)", _GPT_BEFORE_SCHEMAS),
    Family("openai", r"(?:ft:)?gpt-4\.1-nano", _GPT_WITHOUT_SEARCH),
    Family("openai", r"", _GPT),
    Family("anthropic", r"claude-3-[57]", _CLAUDE_BEFORE_SCHEMAS),
    Family("anthropic", r"claude-(?:[123]|instant)", _CLAUDE_BEFORE_SEARCH),
    Family("anthropic", r"claude-(?:opus|sonnet)-4(?:-0|[-@]\d{8})?$", _CLAUDE_BEFORE_SCHEMAS),
    # Opus 4.5 takes an effort without thinking; its thinking takes a budget, which no effort names.
    Family("anthropic", r"claude-opus-4-5(?!\d)", replace(_CLAUDE_SAMPLING, efforts=_LOW_TO_HIGH)),
    Family(
        "anthropic",
        r"claude-(?:opus|sonnet)-4-6(?!\d)",
        replace(_CLAUDE_SAMPLING, efforts=_LOW_TO_HIGH, adaptive=True, search=_CLAUDE_SEARCH),
    ),
    Family("anthropic", r"claude-(?:opus|sonnet|haiku)-4-[1-6](?!\d)", _CLAUDE_SAMPLING),
    Family("anthropic", r"claude-(?:opus|sonnet|haiku)-4-", replace(_CLAUDE, adaptive=True)),
    # From here on models think unless told not to.
    Family("anthropic", r"", _CLAUDE),
    Family("google", r"gemini-1", _gemini(search=None)),
    Family("google", r"gemini-2\.0", _gemini(search=_GEMINI_FIRST_SEARCH)),
    Family(
        "google",
        r"gemini-2\.5-pro",
        _gemini("low", "medium", "high", budgets=_BUDGETS, search=_GEMINI_FIRST_SEARCH),  # it always thinks
    ),
    Family(
        "google",
        r"gemini-2",
        _gemini("none", "low", "medium", "high", budgets=_BUDGETS, search=_GEMINI_FIRST_SEARCH),
    ),
    Family("google", r"gemini-3-pro", _gemini("low", "high")),
    Family("google", r"gemini-3(?:\.[156])?-flash", _gemini("minimal", "low", "medium", "high")),
    Family("google", r"", _gemini("low", "medium", "high")),
    Family("xai", r"grok-3-mini", _grok("low", "high", search=None)),
    Family("xai", r"grok-[123](?!\d)", _grok(search=None)),
    Family("xai", r"grok-4\.3(?!\d)", _grok("none", "low", "medium", "high")),
    Family("xai", r"grok-4\.5(?!\d)", _grok("low", "medium", "high")),
    # `xhigh`: reported by users, https://github.com/chenyme/grok2api/pull/901
    Family("xai", r"grok-4\.6(?!\d)", _grok("low", "medium", "high", "xhigh")),
    Family("xai", r"grok-4(?:$|[^.]|\.[12])", _grok()),
    Family("xai", r"", _grok("low", "medium", "high")),
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
    effort: Effort | None
    search: SearchOptions | None
    """With the options that are sent."""
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
