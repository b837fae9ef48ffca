"""Fill the slots of a scenario: facts of the library, figures of the plan year, an invented plan, doctor and place.

A key never states a figure itself. It names one of `facts/<year>.json`, so that a new plan year is one new file. The
result is a plain `Scenario` without slots in its key, which is what a run's manifest contains.

A fact whose figure is not published yet says that, and no point can ask for it. A fact whose figure is not known at
all, for lack of an entry or because its month has passed, is left out with the points that only it could make.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TypeVar

from ..errors import InputError
from ..schemas import (
    AnswerKey,
    AnyOf,
    CanonicalFact,
    Only,
    Persona,
    RequiredPoint,
    Scenario,
    ScriptedTurn,
    UnpublishedPoint,
    Variant,
    Wording,
    point_facts,
    point_name,
)
from ..store.input_files import read_user_file
from ..store.strict_json import sha256
from .fill_facts import FactFiller, holds_in, plain_fact
from .library import Library

T = TypeVar("T")
_SHOP_FIELDS = ("city", "state", "zip_code", "county")
_STATE = "{{state}}"
COMING_FROM = (10, 15)
"""Month and day from which next year's key may be used: the first day of Open Enrollment."""


@dataclass(frozen=True)
class Resolved:
    """A scenario that is ready to be asked."""

    scenario: Scenario
    unpublished: tuple[UnpublishedPoint, ...]
    """Points that nobody can make, because their figures are not known."""
    left_out: tuple[str, ...]
    """Library facts of the key that state no figure, because it is not known."""


def resolve(
    scenario: Scenario, variant: Variant | None, plan_year: int, library: Library, wording: Wording | None = None
) -> Resolved:
    """One variant of a scenario for one plan year. An `InputError` names the field that is missing something."""
    return _Resolver(scenario, variant or Variant(variant_id="only"), plan_year, library).resolve(wording)


class _Resolver(FactFiller):
    def __init__(self, scenario: Scenario, variant: Variant, plan_year: int, library: Library) -> None:
        super().__init__(plan_year, library)
        self._scenario = scenario
        self._variant = variant
        self._plan_kind: str | None = None
        self._shop = self._read_shop()
        given = self._persona().attributes
        self._attributes = given if isinstance(given, dict) else {}
        self._lacking: set[str] = set()
        """Facts of the key whose figures are not known."""
        self._left_out: list[str] = []
        self._points_lost: dict[UnpublishedPoint, None] = {}

    def resolve(self, wording: Wording | None) -> Resolved:
        scenario, variant = self._scenario, self._variant
        facts = self._facts()
        if not facts:
            raise InputError(f"answer_key.canonical_facts: no fact belongs to plan year {self._plan_year}.")
        own = wording.scenarios.get(scenario.scenario_id, {}) if wording else {}
        known = {fact.fact_id for fact in facts}
        turns = tuple(self._turn(turn, own.get(turn.turn_id), known) for turn in scenario.scripted_turns)
        # Built again and not copied, so that the result is checked like any scenario file.
        ready = Scenario(
            scenario_id=scenario.scenario_id,
            title=scenario.title,
            effective_date=scenario.effective_date,
            themes=scenario.themes,
            style=variant.style or scenario.style,
            notes=scenario.notes,
            persona=self._persona(),
            scripted_turns=turns,
            variation_knobs=scenario.variation_knobs,
            answer_key=AnswerKey(
                canonical_facts=facts,
                required_points=self._kept(scenario.answer_key.required_points, known, None),
                disallowed_claims=tuple(
                    self.fill_text(claim, f"answer_key.disallowed_claims[{n}]")
                    for n, claim in enumerate(scenario.answer_key.disallowed_claims)
                ),
            ),
            rubric_version=scenario.rubric_version,
            plan_file=scenario.plan_file,
            variants=(),
        )
        return Resolved(ready, tuple(self._points_lost), tuple(self._left_out))

    def _facts(self) -> tuple[CanonicalFact, ...]:
        """The facts of the key for this plan year and persona, in the order of their ids."""
        key, begins = self._scenario.answer_key, self._scenario.effective_date
        if key.library_facts:
            self._library.year(self._plan_year)  # in a year that we know nothing of, rules may be others too
        listed = [fact for fact in key.canonical_facts if self._belongs(fact.only)]
        listed += [fact for fact_id, named in key.library_facts.items() if (fact := self._from_library(fact_id, named))]
        facts: list[CanonicalFact] = []
        said: set[str] = set()
        for fact in sorted(listed, key=lambda fact: _natural(fact.fact_id)):
            filled = self.fact(fact, begins, f"answer_key fact {fact.fact_id}")
            if filled is None or filled.not_published:
                self._lacking.add(fact.fact_id)
                self._left_out += [fact.library] if fact.library else []
            # Several facts may wait for one figure; that it is not published is said once.
            if filled and not (filled.not_published and filled.statement in said):
                facts.append(filled)
                said.add(filled.statement)
        return tuple(facts)

    def _from_library(self, fact_id: str, named: str) -> CanonicalFact | None:
        """A fact of the library; None if it does not hold in this plan year, or in the persona's state."""
        facts, where = self._library.facts, f"answer_key.library_facts.{fact_id}"
        wanted = named
        code = self._library.state_code(self._persona().state)
        if _STATE in named:
            if named.removeprefix(f"B-{_STATE}-") not in self._library.state_topics:
                raise InputError(f"{where}: no state has a fact {named!r}. Check the name in facts/states.")
            wanted = named.replace(_STATE, (code or "").lower())
            if wanted not in facts:
                return None
        if wanted not in facts:
            raise InputError(f"{where}: the library has no fact {wanted!r}. Check the name in facts/library.")
        fact = facts[wanted]
        if fact.states and code not in fact.states:
            raise InputError(
                f"{where}: {wanted!r} holds only in {', '.join(fact.states)}, where this person does not live. "
                f"Write B-{_STATE}-... for a fact of the person's own state."
            )
        return plain_fact(fact, fact_id) if holds_in(fact, self._plan_year) else None

    def _read_shop(self) -> dict[str, str]:
        """The values of the slots for plan, doctor and place."""
        variant, name = self._variant, self._scenario.plan_file
        if not name or not (variant.plan or variant.doctor or variant.place):
            return {}
        file = self._plans = self._library.invented_plans(name)
        slots: dict[str, str] = {}
        where = f"variant {variant.variant_id}"
        if variant.plan:
            insurance = _named(file.plans, variant.plan, f"{where} plan")
            self._plan_kind = insurance.kind
            in_network = variant.doctor in insurance.network
            slots |= {
                "plan.name": insurance.name,
                "plan.kind": insurance.kind,
                "plan.monthly_premium": insurance.monthly_premium,
                "plan.primary_care_copay": insurance.primary_care_copay,
                "plan.specialist_copay": insurance.specialist_copay,
                "plan.out_of_pocket_limit": insurance.out_of_pocket_limit,
                "plan.includes_drugs": "includes" if insurance.includes_drugs else "does not include",
                "plan.has_doctor": "is" if in_network else "is not",
                "plan.brand_drug": insurance.brand_drug.name,
                "plan.brand_covered": "covers" if insurance.brand_drug.covered else "does not cover",
                "plan.generic_drug": insurance.generic_drug.name,
                "plan.generic_covered": "covers" if insurance.generic_drug.covered else "does not cover",
            }
        if variant.doctor:
            slots["doctor.name"] = _named(file.doctors, variant.doctor, f"{where} doctor").name
        if variant.place:
            place = _named(file.places, variant.place, f"{where} place")
            slots |= {f"place.{name}": getattr(place, name) for name in _SHOP_FIELDS}
            slots["place.dual_plans_sold"] = "are sold" if place.dual_plans_sold else "are not sold"
        return slots

    def _persona(self) -> Persona:
        fields = self._scenario.persona.model_dump()
        fields |= {name: self._shop[f"place.{name}"] for name in _SHOP_FIELDS if f"place.{name}" in self._shop}
        attributes = fields["attributes"]
        for name, value in self._variant.persona.items():
            own = name in fields and name not in ("attributes", "fictional")
            (fields if own or not isinstance(attributes, dict) else attributes)[name] = value
        return Persona.model_validate(fields)

    def _belongs(self, only: Only) -> bool:
        return (not only.plan_years or self._plan_year in only.plan_years) and (
            not only.plan_kinds or self._plan_kind in only.plan_kinds
        )

    def _kept(self, points: Iterable[RequiredPoint], known: set[str], turn_id: str | None) -> tuple[RequiredPoint, ...]:
        """The points that facts of this year and plan can meet. Those lost for lack of a figure are noted."""
        kept: list[RequiredPoint] = []
        for point in points:
            facts = point_facts(point)
            left = tuple(fact for fact in facts if fact in known - self._lacking)
            if not left and self._lacking.intersection(facts):
                self._points_lost[UnpublishedPoint(turn_id=turn_id, point=point_name(point))] = None
            kept += [AnyOf(any_of=left)] if len(left) > 1 else left
        return tuple({point_name(point): point for point in kept}.values())

    def _turn(self, turn: ScriptedTurn, overlaid: str | None, known: set[str]) -> ScriptedTurn:
        variant = self._variant
        text = overlaid or variant.turns.get(turn.turn_id, turn.user_message)
        return turn.model_copy(
            update={
                "user_message": self.fill_text(text, f"turn {turn.turn_id} user_message", keep=("persona", "knob")),
                "required_points": self._kept(turn.required_points, known, turn.turn_id),
                "partial_points": tuple(fact for fact in turn.partial_points if fact in known - self._lacking),
                "background": tuple(fact for fact in turn.background if fact in known),
                "misstates": (*turn.misstates, *variant.misstates.get(turn.turn_id, ())),
            }
        )


def _named(table: Mapping[str, T], name: str, where: str) -> T:
    if name not in table:
        raise InputError(f"{where}: {name!r} is not in the file of invented plans, which has {', '.join(table)}.")
    return table[name]


def _natural(fact_id: str) -> list[tuple[int, str]]:
    """F2 before F10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", fact_id) if part]


def is_coming(plan_year: int, today: date) -> bool:
    """Whether the plan year has not begun."""
    return today < date(plan_year, 1, 1)


def out_of_date(scenario: Scenario, plan_year: int, today: date) -> str | None:
    """Why a key may not be used on a day, or for a plan year; None if it may.

    From the first day of Open Enrollment, the key of the coming year may be used.
    """
    facts = [fact for fact in scenario.answer_key.canonical_facts if not fact.not_published]
    begins = max((fact.valid_from or scenario.effective_date for fact in facts), default=scenario.effective_date)
    ends = min((fact.valid_until for fact in facts if fact.valid_until), default=None)
    window = f"from {begins}" + (f" to {ends}" if ends else " on")
    opens, closes = date(plan_year - 1, *COMING_FROM), date(plan_year, 12, 31)
    if today < opens:
        return f"the key of {plan_year} may be used from {opens}, and today is {today}"
    if today > closes:
        return f"its plan year {plan_year} ended on {closes}, and today is {today}"
    day = max(today, date(plan_year, 1, 1))
    if date(plan_year, 12, 31) < begins or (ends and date(plan_year, 1, 1) > ends):
        return f"its key is valid {window}, and the plan year is {plan_year}"
    if day < begins or (ends and day > ends):
        return f"its key is valid {window}, and today is {today}"
    return None


@dataclass(frozen=True)
class Overlay:
    """A wording file as it was read."""

    path: Path
    sha256: str
    wording: Wording


def read_wording(path: Path, scenarios: Mapping[str, Scenario]) -> Overlay:
    """A wording file. Its turns must be turns of the scenarios given; it may name other scenarios too."""
    data, wording = read_user_file(path, Wording)
    for scenario_id, turns in wording.scenarios.items():
        if scenario_id not in scenarios:
            continue  # one file may serve both scenarios of the study
        known = [turn.turn_id for turn in scenarios[scenario_id].scripted_turns]
        for turn_id in turns:
            if turn_id not in known:
                raise InputError(
                    f"{path}: field scenarios.{scenario_id}.{turn_id}: that scenario has no such turn. "
                    f"Its turns are {', '.join(known)}."
                )
    if not set(wording.scenarios) & set(scenarios):
        raise InputError(f"{path} names none of the scenarios given ({', '.join(scenarios)}).")
    return Overlay(path, sha256(data), wording)
