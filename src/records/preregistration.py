"""A study written down before any answer was seen."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from .base import FactId, Ident, Line, ModelName, Record, Sha256, is_empty, is_none
from .facts import PlanYear
from .run import CallParameters, CallPolicy, Isolation, Registration, Role, TargetJudges
from .target import TargetSettings

__all__ = ["Preregistration", "RegisteredPrompt", "RegisteredScenario", "Registration"]


class RegisteredScenario(Record):
    """A scenario, or one variant of it, by hashes: of its file, and of its filled questions and key."""

    name: str
    file_sha256: Sha256
    turns: dict[Ident, Sha256]
    """By turn: its words, its question group and when it is asked."""
    facts: dict[FactId, Sha256]
    """By fact of the key."""
    points_sha256: Sha256
    """Of required and partial points and background, of the key and of each turn."""
    disallowed_sha256: Sha256
    rest_sha256: Sha256
    """Of everything else: persona, knobs, order of the turns, rubric, title."""


class RegisteredPrompt(Record):
    file_sha256: Sha256
    text_sha256: Sha256
    """Of the prompt as it is sent."""


class Preregistration(Record):
    """A study's plan before it is run: everything that decides its results, and what will be concluded from them."""

    format: Literal[1, 2] = 2
    created: str
    primary_outcome: Line
    tests: tuple[Line, ...]
    """Every test that is planned, in words."""
    notes: str = Field(max_length=20_000)
    trials: int = Field(ge=1)
    plan_sha256: Sha256
    """Fingerprint of the whole plan except the paths of its files."""
    scenarios: tuple[RegisteredScenario, ...] = Field(min_length=1)
    plan_year: PlanYear
    references: dict[str, Sha256]
    """Hashes of the files of figures and invented plans that filled the keys."""
    wording_sha256: Sha256 | None
    """Of the file whose words replaced ours; None if the wording is ours."""
    sources_sha256: Sha256 | None = Field(default=None, exclude_if=is_none)
    """Of the pages against which citations are checked; None if only the form of addresses is."""
    rubrics: dict[str, Sha256]
    expired: tuple[str, ...]
    targets: tuple[ModelName, ...]
    verifiers: tuple[ModelName, ...]
    extractor: ModelName
    scorer: ModelName
    adjudicator: ModelName | None
    judges_by_target: dict[ModelName, TargetJudges] = Field(default_factory=dict, exclude_if=is_empty)
    """Who judges each target, if not all targets have the same judges."""
    questioner: ModelName | None
    api_ids: dict[ModelName, str]
    repeats: int
    judge_repeats: int
    judge_sample: float
    isolation: Isolation = Field(default="reply", exclude_if=lambda value: value == "reply")
    audit_sample: float = Field(default=0.0, exclude_if=lambda value: value == 0)
    seed: int
    target_parameters: CallParameters
    judge_parameters: CallParameters
    model_parameters: dict[ModelName, CallParameters] = Field(default_factory=dict, exclude_if=is_empty)
    target_settings: dict[ModelName, TargetSettings] = Field(default_factory=dict, exclude_if=is_empty)
    policy: CallPolicy
    prompts: dict[Role, RegisteredPrompt]
    study: dict[str, Any] | None = Field(default=None, exclude_if=is_none)
    """The whole study, as a study file would say it, so that `run --registered` needs nothing else. Paths are relative
    to the file. None in files that release 0.1 wrote."""
