"""A study: everything a user can say about a run, in a file or by flags."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, GetJsonSchemaHandler, StringConstraints, field_validator, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from .base import Line, Record
from .run import BatchMode, Isolation
from .target import Effort, SearchOptions

Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1_000)]

Rate = Annotated[int, Field(ge=1)]
"""A number of calls or tokens."""


class ModelSettings(Record):
    """One judge or target. A plain string `provider:model` means the same with no settings of its own."""

    model_config = ConfigDict(strict=False)

    model: str = Field(min_length=1, max_length=200)
    temperature: float | Literal["none"] | None = None
    """None: the study's `temperature` for a target, 0 for a judge. `none`: the provider's default."""
    max_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    """None: the study's `max_tokens` for a target, its `judge_max_tokens` for a judge."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return cls._read(value) if isinstance(value, str) else value

    @classmethod
    def _read(cls, text: str) -> dict[str, Any]:
        return {"model": text}

    @field_validator("temperature", mode="before")
    @classmethod
    def _temperature(cls, value: Any) -> Any:
        if value is None or value == "none":
            return value
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 2:
            raise ValueError("a temperature is a number from 0 to 2, or none")
        return float(value)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"description": "provider:model", "type": "string"}, handler(schema)]}


_SHORT = {"system": "system_prompt", "effort": "reasoning_effort"}
"""Shorter names of settings, for the command line."""
_SEARCH = ("max_searches", "allowed_domains", "blocked_domains", "country", "context_size")
_LISTS = ("allowed_domains", "blocked_domains")
_NUMBERS = ("temperature", "max_tokens", "reasoning_tokens", "max_searches")


def target_from_text(text: str) -> dict[str, Any]:
    """`openai:gpt-5.5,search,effort=low` -> the fields that a study file would have; raises `ValueError`."""
    model, *settings = (part.strip() for part in text.split(","))
    found: dict[str, Any] = {"model": model}
    search: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = (part.strip() for part in setting.partition("="))
        name = _SHORT.get(name, name)
        if name == "search" and value in ("", "on", "off"):
            found["search"] = value != "off"
            continue
        if name not in (*TargetOptions.model_fields, *_SEARCH) or name in ("model", "search") or not (equals and value):
            known = "name, system, temperature, max_tokens, effort, reasoning_tokens, search, " + ", ".join(_SEARCH)
            raise ValueError(f"{setting!r} is not a setting of a target. Write NAME=VALUE, with one of {known}")
        (search if name in _SEARCH else found)[name] = _value(name, value)
    if search and found.get("search") is not False:
        found["search"] = search
    return found


def _value(name: str, value: str) -> Any:
    if name in _LISTS:
        return tuple(part for part in value.split("+") if part)
    if name in _NUMBERS and value != "none":
        try:
            return float(value) if name == "temperature" else int(value)
        except ValueError:
            raise ValueError(f"{name}={value}: a number is needed") from None
    return value


class TargetOptions(ModelSettings):
    """One target. As text: `provider:model`, or `provider:model,search,effort=low,system=advisor.txt`."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$")] | None = None
    """What its settings are called in reports. None: made from the settings."""
    system_prompt: str | None = Field(default=None, min_length=1, max_length=1_000)
    """A file."""
    reasoning_effort: Effort | None = None
    reasoning_tokens: int | None = Field(default=None, ge=0, le=1_000_000)
    """Room for reasoning on top of `max_tokens`. None: by `reasoning_effort`."""
    search: bool | SearchOptions | None = None
    """Whether the target may search the web, and how."""

    @classmethod
    def _read(cls, text: str) -> dict[str, Any]:
        return target_from_text(text)

    @field_validator("search", mode="before")
    @classmethod
    def _lists_of_sites(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: tuple(one) if isinstance(one, list) else one for name, one in value.items()}


class JudgeOptions(Record):
    """Who judges, and how often."""

    model_config = ConfigDict(strict=False)

    judges: tuple[ModelSettings, ...] = ()
    """Judge models. Empty: defaults that fit the targets."""
    reader: str | None = None
    """The model that splits replies into claims and reads their tone. None: the first judge that is no person."""
    verifiers: int = Field(default=2, ge=2, le=25)
    """Independent verifiers per reply; they cycle through the judge models."""
    adjudicator: str | None = None
    """The model that settles ties, of another family than the verifiers. None: a third model family where there is one.
    `none`: ties stay open for a person."""
    judge_repeats: int = Field(default=0, ge=0, le=20)
    """Times each verifier judges a sample of trials again, to measure its noise."""
    judge_sample: float = Field(default=0.25, gt=0, le=1)
    """Fraction of trials in that sample."""
    judge_max_tokens: int = Field(default=16_000, ge=1, le=1_000_000)
    """Longest answer of judges that have no limit of their own."""
    isolation: Isolation = "flagged"
    """How many claims a verifier sees in one call: `claim`, `flagged` or `reply`."""
    allow_retired: bool = False


class ExecutionOptions(Record):
    """How a run is carried out. None of it can change a result."""

    model_config = ConfigDict(strict=False)

    concurrency: int | None = Field(default=None, ge=1, le=10_000)
    """Trials at a time. None: 8, or as many as there may be calls in flight."""
    calls_in_flight: Rate | dict[str, Rate] | None = None
    """Calls at a time, for each provider or by provider. None: eight for every trial."""
    max_cost: float | None = Field(default=None, gt=0, lt=1e9)
    """US dollars. The run stops before its calls could cost more."""
    requests_per_minute: dict[str, Rate] = Field(default_factory=dict)
    """By provider."""
    tokens_per_minute: dict[str, Rate] = Field(default_factory=dict)
    """By provider."""
    max_outage: float | None = Field(default=None, gt=0, le=604_800)
    """Seconds that a model may give no answer before the run stops. None: 1,800."""
    no_probe: bool = False
    """Do not ask every model whether it answers before the first trial."""
    processes: int | None = Field(default=None, ge=1, le=256)
    """Processes at a time. None: one; with Ray, one for each CPU of the cluster."""
    engine: Literal["local", "ray"] = "local"
    """What runs them: this machine, or a Ray cluster."""
    ray_address: str | None = Field(default=None, min_length=1, max_length=300)
    """The Ray cluster. None: the one in RAY_ADDRESS, or a new one on this machine."""
    batch: BatchMode | None = None
    """`judges`: calls to judges go into batches, where their provider has them. None: `none`, or as the run began."""
    batch_wait: float | None = Field(default=None, ge=0, le=100_000)
    """Minutes to wait for batches, with nothing else to do, before the run stops. None: until they end."""


class RegistrationText(Record):
    """What a pre-registration says in words."""

    model_config = ConfigDict(strict=False)

    primary_outcome: Words
    tests: tuple[Words, ...] = ()
    notes: str = Field(default="", max_length=20_000)


class Study(ExecutionOptions, JudgeOptions):
    """Everything that decides a run, and how it is carried out. Paths in a study file are relative to that file."""

    format: Literal[1] = 1
    title: Line | None = None
    scenarios: tuple[str, ...] = Field(min_length=1)
    """Files, folders, globs, or `pack:NAME` of an installed scenario pack."""
    targets: tuple[TargetOptions, ...] = Field(min_length=1)
    repeats: int = Field(default=1, ge=1, le=10_000)
    seed: int = Field(default=42, ge=0, le=2**63 - 1)
    temperature: float = Field(default=0.0, ge=0, le=2)
    """Of targets that have none of their own."""
    max_tokens: int = Field(default=2_048, ge=1, le=1_000_000)
    """Longest reply of targets that have no limit of their own."""
    plan_year: int | None = Field(default=None, ge=2000, le=2100)
    """Medicare plan year of the answer keys. None: the current year."""
    allow_expired: bool = False
    strict: bool = False
    """Refuse scenarios that break a house rule, which are otherwise warnings."""
    variants: tuple[str, ...] = ()
    """Only these variants. Empty: all."""
    paraphrase: bool = False
    questioner: str | None = None
    """The model that rewords questions, with `paraphrase`."""
    wording: str | None = None
    """A file of other words for some turns."""
    facts: str | None = None
    """A file of plan-year figures that adds to or overrides the bundled ones."""
    invented_plans: str | None = None
    """A file of invented insurance plans, doctors and places to use instead of the bundled one."""
    sources: str | None = None
    """A folder of pages (`medicare-eval sources snapshot`) against which citations are checked. None: the bundled one
    if a target searches; otherwise only the form of addresses is checked."""
    max_attempts: int = Field(default=5, ge=1, le=50)
    timeout: float = Field(default=120.0, gt=0, le=3_600)
    """Seconds per attempt at a call."""
    out: str = "runs"
    """The folder that gets the run folder."""
    prices: str | None = None
    """A price table that adds to or overrides the built-in prices."""
    registration: RegistrationText | None = None
    """For `freeze`: what the pre-registration says in words."""
