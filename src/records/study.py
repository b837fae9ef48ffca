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


def option(meaning: str, metavar: str = "", /, *, flag: str = "", unset: str = "", **field: Any) -> Any:
    """A field that a flag sets too.

    It is declared here and nowhere else: the flag, `--help`, study files, keywords of the Python API, what errors call
    it, and docs/study_file.md take name, type, default, limits and meaning from here. After a change: `make schemas`,
    because `--help` reads the schema, which needs no Pydantic.

    Args:
        meaning: a sentence without its end.
        metavar: what the help shows for a value. FILE and DIR are paths, which in a study file are relative to it.
        flag: unless it is the name with dashes.
        unset: what happens without a value, where the default does not say it.
        field: default and limits, as of `pydantic.Field`.
    """
    said = {"metavar": metavar, "flag": flag, "unset": unset}
    extra: dict[str, Any] = {"option": {name: text for name, text in said.items() if text}}
    return Field(description=meaning, json_schema_extra=extra, **field)


class JudgeOptions(Record):
    """Who judges, and how often."""

    model_config = ConfigDict(strict=False)

    judges: tuple[ModelSettings, ...] = option(
        "a judge model; verifiers cycle through them",
        "P:M",
        flag="--judge-model",
        unset="chosen for the targets",
        default=(),
    )
    reader: str | None = option(
        "splits replies into claims and reads their tone", "P:M", flag="--reader-model",
        unset="the first judge that is no person", default=None,
    )  # fmt: skip
    verifiers: int = option("number of verifiers, at least 2", "N", flag="--judges", default=2, ge=2, le=25)
    adjudicator: str | None = option(
        "settles ties; never of a verifier's family; `none` leaves them open for a person", "P:M",
        flag="--adjudicator-model", unset="a third family, else none", default=None,
    )  # fmt: skip
    judge_repeats: int = option(
        "re-judge a sample of trials K more times to measure judge noise", "K", default=0, ge=0, le=20
    )
    judge_sample: float = option(
        "fraction of trials to re-judge with --judge-repeats", "FRACTION", default=0.25, gt=0, le=1
    )
    judge_max_tokens: int = option("longest answer of a judge", "N", default=16_000, ge=1, le=1_000_000)
    isolation: Isolation = option(
        "claims per verifier call: one; one for replies the screen marks and an audit sample; or all of a reply",
        default="flagged",
    )
    allow_retired: bool = option("allow models their provider has retired", default=False)


class ExecutionOptions(Record):
    """How a run is carried out. None of it can change a result."""

    model_config = ConfigDict(strict=False)

    concurrency: int | None = option(
        "trials at a time", "N", unset="8, or as many as calls in flight", default=None, ge=1, le=10_000
    )
    calls_in_flight: Rate | dict[str, Rate] | None = option(
        "calls at a time, for each provider or for one, for example 64 or openai=64", "[P=]N", flag="--in-flight",
        unset="eight for every trial", default=None,
    )  # fmt: skip
    max_cost: float | None = option("stop before the run's calls could cost more", "USD", default=None, gt=0, lt=1e9)
    requests_per_minute: dict[str, Rate] = option(
        "requests per minute for a provider, for example openai=500", "P=N", flag="--rpm", default_factory=dict
    )
    tokens_per_minute: dict[str, Rate] = option(
        "tokens per minute for a provider, for example openai=200000", "P=N", flag="--tpm", default_factory=dict
    )
    max_outage: float | None = option(
        "seconds that a model may give no answer before the run stops; until then its calls wait", "S", unset="1800",
        default=None, gt=0, le=604_800,
    )  # fmt: skip
    no_probe: bool = option("do not ask every model for a word before the first trial", default=False)
    processes: int | None = option(
        "processes at a time", "N", unset="1; with Ray, one for each of its CPUs", default=None, ge=1, le=256
    )
    engine: Literal["local", "ray"] = option(
        "where the processes run: on this machine, or on a Ray cluster", default="local"
    )
    ray_address: str | None = option(
        "the Ray cluster", "A", unset="RAY_ADDRESS, or a new one on this machine", default=None, min_length=1,
        max_length=300,
    )  # fmt: skip
    batch: BatchMode | None = option(
        "send judges' calls in batches, which cost less and take up to a day", unset="none, or as the run began",
        default=None,
    )  # fmt: skip
    batch_wait: float | None = option(
        "minutes to wait for batches before the run stops, to be resumed later", "MIN",
        unset="until they end", default=None, ge=0, le=100_000,
    )  # fmt: skip


class RegistrationText(Record):
    """What a pre-registration says in words."""

    model_config = ConfigDict(strict=False)

    primary_outcome: Words = option("the outcome that decides the study", "TEXT")
    tests: tuple[Words, ...] = option("a planned test", "TEXT", flag="--test", default=())
    notes: str = option("anything else to register", "TEXT", default="", max_length=20_000)


class Study(ExecutionOptions, JudgeOptions):
    """Everything that decides a run, and how it is carried out. Paths in a study file are relative to that file."""

    model_config = ConfigDict(
        json_schema_extra={
            "parts": {"judges": list(JudgeOptions.model_fields), "execution": list(ExecutionOptions.model_fields)}
        }
    )

    format: Literal[1] = Field(default=1, description="version of this file format; a later release may add another")
    title: Line | None = Field(default=None, description="for your own use")
    scenarios: tuple[str, ...] = option("file, folder, glob or pack:NAME", "PATH", flag="--scenario", min_length=1)
    targets: tuple[TargetOptions, ...] = option(
        "provider:model, with settings if wanted (P:M,search,effort=low,system=FILE)", "P:M", flag="--target",
        min_length=1,
    )  # fmt: skip
    repeats: int = option("trials per scenario and target", "N", default=1, ge=1, le=10_000)
    seed: int = option("seed of every random draw in the run", "N", default=42, ge=0, le=2**63 - 1)
    temperature: float = option("temperature of targets, 0 to 2", "T", default=0.0, ge=0, le=2)
    max_tokens: int = option("longest target reply", "N", default=2_048, ge=1, le=1_000_000)
    plan_year: int | None = option(
        "Medicare plan year to fill answer keys for", "YEAR", unset="this year", default=None, ge=2000, le=2100
    )
    allow_expired: bool = option("use answer keys outside their dates; every report says so", default=False)
    strict: bool = option("refuse scenarios that break a house rule (see `validate`)", default=False)
    variants: tuple[str, ...] = option(
        "only this variant of a scenario", "NAME", flag="--variant", unset="all", default=()
    )
    paraphrase: bool = option("let a model reword the questions of scenarios that allow it", default=False)
    questioner: str | None = option(
        "the model that rewords, with --paraphrase", "P:M", flag="--questioner-model", default=None
    )
    wording: str | None = option("JSON file of other words for some turns; reports name the file", "FILE", default=None)
    facts: str | None = option(
        "JSON file of plan-year figures; adds to or overrides the bundled ones", "FILE", default=None
    )
    invented_plans: str | None = option(
        "JSON file of invented insurance plans, doctors and places to use instead of the bundled one", "FILE",
        default=None,
    )  # fmt: skip
    sources: str | None = option(
        "folder of pages to check citations against (see `sources snapshot`)", "DIR",
        unset="the bundled one, if a target searches", default=None,
    )  # fmt: skip
    max_attempts: int = option("attempts per call", "N", default=5, ge=1, le=50)
    timeout: float = option("seconds per attempt", "S", default=120.0, gt=0, le=3_600)
    out: str = option("where the run folder goes", "DIR", default="runs")
    prices: str | None = option("JSON price table; adds to or overrides the built-in prices", "FILE", default=None)
    registration: RegistrationText | None = Field(
        default=None, description="for `freeze`: what the pre-registration says in words"
    )
