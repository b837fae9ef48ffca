"""The library of facts: what holds for everyone with Medicare, or for everyone in a state, kept once.

A scenario's key refers to the facts that its questions ask for. All others are background facts: the judges of every
scenario may be shown them, they decide labels, and they are never a required point.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, WithJsonSchema, field_validator, model_validator

from .base import Line, Record, is_empty, is_false, is_none
from .facts import Address, ConfirmedBy, CostIfWrong, Month, PlanYear
from .scenario import SLOT

_BACKGROUND_ID = re.compile(r"^B-[a-z0-9]+(?:-[a-z0-9]+)*$")
_MAX_ID = 64


def _is_background_id(name: str) -> str:
    if len(name) > _MAX_ID or not _BACKGROUND_ID.fullmatch(name):
        raise ValueError(
            f"{name[:80]!r} is not the id of a background fact; use B- and then up to {_MAX_ID - 2} small letters, "
            "digits and hyphens, for example B-part-b-premium"
        )
    return name


BackgroundId = Annotated[
    str,
    AfterValidator(_is_background_id),
    WithJsonSchema({"type": "string", "pattern": _BACKGROUND_ID.pattern, "maxLength": _MAX_ID}),
]
"""B- and a name. A scenario's own facts are F1, F2, ... and its disallowed claims D1, D2, ..."""


StateCode = Annotated[str, StringConstraints(pattern=r"^[A-Z]{2}$")]


class BackgroundFact(Record):
    """One assertion with at most one figure, with its source.

    `{{plan_year}}` and `{{figure.NAME}}` are filled when a run is planned. There are no other slots: what depends on
    a person, a plan or a place belongs in a scenario's own key.
    """

    fact_id: BackgroundId
    statement: Line
    other_words: str = Field(default="", max_length=1_000, exclude_if=is_empty)
    """Words that people use for it and that the statement does not have. Only the search for facts reads them."""
    severity_if_wrong: Literal["low", "medium", "high"]
    source: Line
    address: Address | None = None
    locator: Line | None = None
    """Where in the source: a page, a section, a row. Address and locator may be left out of a statement that uses a
    figure: they are then the figure's own, of the plan year."""
    valid_from: date
    valid_until: date | None = None
    """The last day on which the statement is known to be true; None if no end is known."""
    confirmed_by: ConfirmedBy
    themes: tuple[Line, ...] = Field(min_length=1)
    plan_years: tuple[PlanYear, ...] = ()
    """The plan years for which the statement may be used. Empty: all."""
    rationale: str = Field("", max_length=4_000)
    """Why it is so, and for a derived fact the calculation."""
    tells: tuple[Line, ...] = Field(default=(), exclude_if=is_empty)
    """As in a scenario's own facts, for scenarios that refer to this one."""
    figures_optional: bool = Field(default=False, exclude_if=is_false)
    """Whether its point is made without any figure: those of the statement are only conditions, such as an age."""
    cost_if_wrong: CostIfWrong | None = Field(default=None, exclude_if=is_none)
    """What acting on the opposite costs; None if nobody worked it out."""
    not_published: Month | None = Field(default=None, exclude_if=is_none)
    """The month in which its figure is expected, if the statement says that it is not published yet."""
    states: tuple[StateCode, ...] = Field(default=(), exclude_if=is_empty)
    """The states in which it holds, as `facts/states/` has it. Empty: everywhere."""

    @field_validator("statement", "rationale")
    @classmethod
    def _has_known_slots(cls, text: str) -> str:
        for slot in SLOT.findall(text):
            if slot != "plan_year" and not slot.startswith("figure."):
                raise ValueError(f"unknown slot {{{{{slot}}}}}; use {{{{plan_year}}}} or {{{{figure.NAME}}}}")
        if "{{" in SLOT.sub("", text) or "}}" in SLOT.sub("", text):
            raise ValueError("unbalanced {{ or }}")
        return text

    @model_validator(mode="after")
    def _can_be_looked_up(self) -> Self:
        uses_figure = any(slot.startswith("figure.") for slot in SLOT.findall(self.statement))
        if not uses_figure and not (self.address and self.locator):
            raise ValueError("address and locator are required, except in a statement that uses {{figure.NAME}}")
        return self

    @model_validator(mode="after")
    def _ends_after_it_begins(self) -> Self:
        if self.valid_until and self.valid_until < self.valid_from:
            raise ValueError("valid_until is before valid_from")
        return self


class FactLibrary(Record):
    """`facts/library/<theme>.json`: the facts of one theme."""

    compiled: date
    """When the facts were last read in their sources."""
    facts: tuple[BackgroundFact, ...] = Field(min_length=1, max_length=2_000)

    @model_validator(mode="after")
    def _names_each_fact_once(self) -> Self:
        seen: set[str] = set()
        for fact in self.facts:
            if fact.fact_id in seen:
                raise ValueError(f"fact_id {fact.fact_id!r} appears more than once")
            seen.add(fact.fact_id)
        return self


class StateFacts(FactLibrary):
    """`facts/states/NY.json`: the facts that hold in one state."""

    state: StateCode
    name: Line

    @model_validator(mode="after")
    def _ids_name_the_state(self) -> Self:
        start = f"B-{self.state.lower()}-"
        for fact in self.facts:
            if not fact.fact_id.startswith(start):
                raise ValueError(f"fact_id {fact.fact_id!r} must start with {start}")
        return self

    def in_state(self) -> tuple[BackgroundFact, ...]:
        """The facts, marked with their state."""
        return tuple(fact.model_copy(update={"states": (self.state,)}) for fact in self.facts)
