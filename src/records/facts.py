"""Files that answer keys refer to: the figures of a plan year, invented plans and doctors, another wording."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from .base import Ident, Line, Record, Text

Address = Annotated[str, StringConstraints(pattern=r"^https?://[^\s]+$", max_length=500)]
ConfirmedBy = Literal["primary", "secondary", "derived"]
"""primary: read in the source itself. secondary: in one that cites it. derived: computed, the rationale shows how."""
PlanKind = Literal["HMO", "PPO"]
PlanYear = Annotated[int, Field(ge=2006, le=2100)]


CostClass = Literal["priced", "exposure", "unpriced"]


class CostIfWrong(Record):
    """What it costs a person who acts on the opposite of a fact: first order, one person, today's prices.

    `priced`: dollars that follow from the rules. `exposure`: a bill that may come, at most or for an assumed case.
    `unpriced`: no defensible amount; the fact's severity stands alone.
    """

    cost_class: CostClass
    formula: Line | None = None
    """Arithmetic over figures of the plan year by name, `years`, `stated` (the amount that the answer gave) and
    numbers of the persona's attributes. When a run is planned, numbers take the place of figures and attributes."""
    horizon: tuple[Annotated[int, Field(ge=1, le=50)], ...] = (1,)
    """For how many years the amount is reported; several for what is paid for life."""
    note: str = Field("", max_length=1_000)
    """What is assumed, and where the rule is."""

    @model_validator(mode="after")
    def _is_priced_by_a_formula(self) -> Self:
        if (self.cost_class == "unpriced") != (self.formula is None):
            raise ValueError("an unpriced cost has no formula; any other cost has one")
        if not self.horizon or list(self.horizon) != sorted(set(self.horizon)):
            raise ValueError("horizon must hold different years, from the shortest to the longest")
        return self


Month = Annotated[str, StringConstraints(pattern=r"^20\d\d-(0[1-9]|1[0-2])$")]


class Figure(Record):
    """One figure of one plan year, with its source; or the news that it is not published yet."""

    value: Line | None
    """As a person writes it: $202.90, SLMB. Null if it is not published."""
    status: Literal["published", "not_published"] = "published"
    expected: Month | None = None
    """The month in which a figure that is not published should be. After it, nothing is known of the figure here."""
    what: Line
    source: Line
    address: Address
    locator: Line
    confirmed_by: ConfirmedBy
    rationale: str = Field("", max_length=4_000)

    @model_validator(mode="after")
    def _is_published_or_expected(self) -> Self:
        if self.status == "published" and (self.value is None or self.expected):
            raise ValueError("a published figure has a value and no expected month; or set status to not_published")
        if self.status == "not_published" and (self.value is not None or not self.expected):
            raise ValueError("a figure that is not_published has the value null and the month in which it is expected")
        return self

    def awaited(self, today: date) -> bool:
        """Whether it is known that the figure is not published: until the month in which it is expected is over."""
        return self.expected is not None and f"{today:%Y-%m}" <= self.expected


class YearFacts(Record):
    """`facts/2026.json`: every figure that changes with the plan year, once."""

    plan_year: PlanYear
    valid_from: date
    valid_until: date
    compiled: date
    """When the figures were last read in their sources."""
    figures: dict[Ident, Figure]

    @model_validator(mode="after")
    def _ends_after_it_begins(self) -> Self:
        if self.valid_until < self.valid_from:
            raise ValueError("valid_until is before valid_from")
        return self


class Drug(Record):
    name: Line
    covered: bool
    note: str = Field("", max_length=500)


class InventedPlan(Record):
    """A Medicare Advantage plan that no insurer sells. What a key says about it is true of this plan only."""

    fictional: Literal[True]
    name: Line
    kind: PlanKind
    monthly_premium: Line
    primary_care_copay: Line
    specialist_copay: Line
    out_of_pocket_limit: Line
    includes_drugs: bool
    network: tuple[Ident, ...]
    """Doctors of this file who are in the plan's network."""
    brand_drug: Drug
    generic_drug: Drug


class InventedDoctor(Record):
    fictional: Literal[True]
    name: Line
    note: str = Field("", max_length=500)


class InventedPlace(Record):
    """Where a shopper lives, and what is sold there."""

    city: Line
    state: Line
    zip_code: Line
    county: Line
    dual_plans_sold: bool
    """Whether special needs plans for people with both programs are sold there."""


class InventedPlans(Record):
    """`plans/invented.json`: the plans, doctors and places that scenarios name. All invented, and marked so."""

    fictional: Literal[True]
    note: Line
    valid_from: date
    valid_until: date
    plans: dict[Ident, InventedPlan]
    doctors: dict[Ident, InventedDoctor]
    places: dict[Ident, InventedPlace]

    @model_validator(mode="after")
    def _names_known_doctors(self) -> Self:
        for name, plan in self.plans.items():
            for doctor in plan.network:
                if doctor not in self.doctors:
                    raise ValueError(f"plans.{name}.network names {doctor!r}, who is not one of the doctors")
        return self


class Wording(Record):
    """Another wording of some turns, for example the published study's own, which belongs to its authors."""

    title: Line
    """What a report calls this wording."""
    scenarios: dict[Ident, dict[Ident, Text]] = Field(min_length=1)
    """Scenario id to turn id to the words that replace ours; the same slots may be used."""
