"""Answer keys: facts, the points that need them, and what no answer may claim (spec 5)."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from . import ids
from .base import FactId, Line, Record, Text, is_empty, is_false, is_none, no_repeats
from .facts import Address, ConfirmedBy, CostIfWrong, Month, PlanKind, PlanYear


class AnyOf(Record):
    """One required point that any one of several facts makes."""

    any_of: tuple[FactId, ...] = Field(min_length=2)


RequiredPoint = FactId | AnyOf


def point_name(point: RequiredPoint) -> str:
    """How a required point is written in results: F2, or F3|F4 for an any-of group."""
    return point if isinstance(point, str) else "|".join(point.any_of)


def point_facts(point: RequiredPoint) -> tuple[str, ...]:
    return (point,) if isinstance(point, str) else point.any_of


class Only(Record):
    """When a fact belongs to the key; empty: always."""

    plan_years: tuple[PlanYear, ...] = ()
    plan_kinds: tuple[PlanKind, ...] = ()


class CanonicalFact(Record):
    """One statement that answers are checked against, with its source.

    `{{plan_year}}`, `{{figure.NAME}}`, `{{plan.NAME}}`, `{{doctor.name}}` and `{{place.NAME}}` are filled when a run
    is planned. A fact that uses a figure is valid no longer than that figure.
    """

    fact_id: FactId
    statement: Text
    rationale: str = Field("", max_length=20_000)
    source: Line
    severity_if_wrong: Literal["low", "medium", "high"]
    address: Address | None = None
    locator: Line | None = None
    valid_from: date | None = None
    valid_until: date | None = None
    """The last day on which the statement is known to be true; None if no end is known."""
    confirmed_by: ConfirmedBy | None = None
    plan_year: PlanYear | None = None
    """Filled when a run is planned, for facts that differ by plan year."""
    tells: tuple[Line, ...] = ()
    """The figures of the statement that an answer must give to be credited. Empty: every amount in it."""
    only: Only = Only()
    library: Line | None = Field(default=None, exclude_if=is_none)
    """The id of the library fact that this is; None if it is written out in the scenario."""
    figures_optional: bool = Field(default=False, exclude_if=is_false)
    """Whether its point is made without any figure: those of the statement are only conditions, such as an age."""
    cost_if_wrong: CostIfWrong | None = Field(default=None, exclude_if=is_none)
    """What acting on the opposite costs; None if nobody worked it out."""
    not_published: Month | None = Field(default=None, exclude_if=is_none)
    """The month in which its figure is expected, if the statement says that it is not published yet."""

    @model_validator(mode="after")
    def _ends_after_it_begins(self) -> Self:
        if self.valid_from and self.valid_until and self.valid_until < self.valid_from:
            raise ValueError("valid_until is before valid_from")
        return self


LibraryFactId = Annotated[
    str, StringConstraints(pattern=r"^B-(?:\{\{state\}\}|[a-z0-9]+)(?:-[a-z0-9]+)*$", max_length=80)
]


class DisallowedClaim(Record):
    """A claim no answer may make, as judges see it: with an id that a verdict can cite."""

    claim_id: str
    statement: str


class AnswerKey(Record):
    canonical_facts: tuple[CanonicalFact, ...] = Field(max_length=500)
    """Facts that are written out. When a run is planned, the facts of the library join them."""
    library_facts: dict[FactId, LibraryFactId] = Field(default_factory=dict, max_length=500, exclude_if=is_empty)
    """Fact id in this key to the id of a library fact. `B-{{state}}-NAME` is a fact of the persona's own state."""
    required_points: tuple[RequiredPoint, ...] = Field(max_length=500)
    disallowed_claims: tuple[Line, ...] = Field((), max_length=500)

    def disallowed(self) -> tuple[DisallowedClaim, ...]:
        return tuple(
            DisallowedClaim(claim_id=ids.disallowed_id(n), statement=statement)
            for n, statement in enumerate(self.disallowed_claims, 1)
        )

    def fact_ids(self) -> frozenset[str]:
        return ids.fact_ids(self)

    def evidence_ids(self) -> frozenset[str]:
        return ids.evidence_ids(self)

    @model_validator(mode="after")
    def _names_each_fact_once(self) -> Self:
        if not self.canonical_facts and not self.library_facts:
            raise ValueError("canonical_facts or library_facts must hold at least one fact")
        no_repeats("answer_key fact_id", [*(fact.fact_id for fact in self.canonical_facts), *self.library_facts])
        return self
