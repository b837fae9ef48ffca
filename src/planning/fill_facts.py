"""Fill the slots of one fact: figures of the plan year, and what a variant says of a plan, a doctor and a place.

A fact whose figure is not published yet says that. A fact whose figure is not known at all, for lack of an entry or
because the month in which it was expected has passed, cannot be filled.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from ..errors import InputError
from ..schemas import (
    SLOT,
    BackgroundFact,
    CanonicalFact,
    ConfirmedBy,
    CostIfWrong,
    Figure,
    InventedPlans,
    Only,
    PlannedScenario,
)
from ..text.formula import dollars, fill, names_in
from .library import Library

_CONFIRMED: tuple[ConfirmedBy, ...] = ("primary", "secondary", "derived")
"""From the most certain on: a fact is only as certain as the least certain thing it rests on."""
FREE_NAMES = frozenset({"years", "stated"})
"""Names in the formula of a cost that get their values from the error and the report."""
_TRIED = Decimal("123.45")
"""An amount that an answer could state, to try a formula out with."""


def fill_background(fact: BackgroundFact, plan_year: int, library: Library) -> BackgroundFact | None:
    """A background fact for one plan year; None if its figure is not known."""
    if "{{" not in fact.statement + fact.rationale and not fact.cost_if_wrong:
        return fact
    if plan_year not in library.years and "{{figure." in fact.statement + fact.rationale:
        return None
    filled = FactFiller(plan_year, library).fact(plain_fact(fact), fact.valid_from, f"background fact {fact.fact_id}")
    if filled is None:
        return None
    shared = BackgroundFact.model_fields.keys() & CanonicalFact.model_fields.keys()
    return fact.model_copy(update={name: getattr(filled, name) for name in shared})


def holds_in(fact: BackgroundFact, plan_year: int) -> bool:
    """Whether a library fact holds on some day of a plan year."""
    if fact.plan_years and plan_year not in fact.plan_years:
        return False
    return fact.valid_from <= date(plan_year, 12, 31) and (fact.valid_until or date.max) >= date(plan_year, 1, 1)


def plain_fact(fact: BackgroundFact, fact_id: str | None = None) -> CanonicalFact:
    """A library fact as a fact of a key."""
    fields = fact.model_dump(include=set(CanonicalFact.model_fields))
    return CanonicalFact.model_validate({**fields, "fact_id": fact_id or fact.fact_id, "library": fact.fact_id})


class FactFiller:
    """Fills the slots of facts for one plan year."""

    def __init__(self, plan_year: int, library: Library) -> None:
        self._plan_year = plan_year
        self._library = library
        self._plans: InventedPlans | None = None
        self._shop: dict[str, str] = {}
        """The values of the slots for plan, doctor and place."""
        self._attributes: Mapping[str, object] = {}
        """Of the persona; their numbers may be part of a cost."""

    def fact(self, fact: CanonicalFact, begins: date, where: str) -> CanonicalFact | None:
        """The fact with its slots filled; it is valid from the day given, unless it gives its own dates.

        None if it rests on a figure that is not known.
        """
        slots = SLOT.findall(fact.statement + fact.rationale)
        names = [slot.removeprefix("figure.") for slot in dict.fromkeys(slots) if slot.startswith("figure.")]
        found = [self._figure(name, where) for name in names]
        rests_on = [figure for figure in found if figure]
        waiting = next((figure for figure in rests_on if figure.value is None), None)
        if len(rests_on) < len(found) or (waiting and not waiting.awaited(self._library.today)):
            return None
        if waiting and not self._library.is_amount(names[found.index(waiting)]):
            return None
        if waiting:
            return self._not_published(fact, waiting, names[found.index(waiting)])
        begins, ends = fact.valid_from or begins, fact.valid_until
        if rests_on:
            year = self._library.year(self._plan_year)
            begins, ends = max(begins, year.valid_from), min(ends or year.valid_until, year.valid_until)
        plans = self._plans
        if plans and any(slot.partition(".")[0] in ("plan", "doctor", "place") for slot in slots):
            begins, ends = max(begins, plans.valid_from), min(ends or plans.valid_until, plans.valid_until)
        if ends and begins > ends:
            raise InputError(f"{where} is valid from {begins}, after plan year {self._plan_year}.")
        said = [fact.confirmed_by, *(figure.confirmed_by for figure in rests_on)]
        confirmed = max((one for one in said if one), key=_CONFIRMED.index, default=None)
        return fact.model_copy(
            update={
                "statement": self.fill_text(fact.statement, f"{where} statement"),
                "rationale": self._rationale(fact, rests_on, where),
                "address": fact.address or next((figure.address for figure in rests_on), None),
                "locator": fact.locator or next((figure.locator for figure in rests_on), None),
                "valid_from": begins,
                "valid_until": ends,
                "confirmed_by": confirmed,
                "plan_year": self._plan_year if rests_on or "plan_year" in slots else None,
                "tells": tuple(self.fill_text(one, f"{where} tells") for one in fact.tells),
                "only": Only(),
                "cost_if_wrong": self._cost(fact.cost_if_wrong, where),
            }
        )

    def _cost(self, cost: CostIfWrong | None, where: str) -> CostIfWrong | None:
        """The cost with numbers in place of figures and attributes; None if one of them is not known."""
        if cost is None or cost.formula is None:
            return cost
        try:
            wanted = names_in(cost.formula) - FREE_NAMES
        except ValueError as error:
            raise InputError(f"{where} cost_if_wrong: {error}.") from None
        known_year = self._plan_year in self._library.years
        figures = self._library.year(self._plan_year).figures if known_year else {}
        published = {name: figure.value for name, figure in figures.items()}
        known: dict[str, Decimal] = {}
        for values in (published, self._attributes):
            known |= {name: number for name in wanted if (number := _number(values.get(name))) is not None}
        if wanted - known.keys():
            return None
        formula = fill(cost.formula, known)
        for years in cost.horizon:
            try:
                dollars(formula, {"years": Decimal(years), "stated": _TRIED})
            except ValueError as error:
                raise InputError(f"{where} cost_if_wrong: {formula} with years = {years}: {error}.") from None
        return cost.model_copy(update={"formula": formula})

    def _rationale(self, fact: CanonicalFact, rests_on: Iterable[Figure], where: str) -> str:
        text = self.fill_text(fact.rationale, f"{where} rationale")
        for figure in rests_on:
            if figure.rationale not in text:
                text = f"{text} {figure.rationale}".lstrip()
        return text

    def _not_published(self, fact: CanonicalFact, figure: Figure, name: str) -> CanonicalFact:
        """What a fact says while its figure is not published."""
        year = self._library.year(self._plan_year)
        assert figure.expected
        text = (
            f"As of {year.compiled}, this amount for {self._plan_year} is not published yet: {figure.what}. "
            f"An exact amount given as that of {self._plan_year} is a guess."
        )
        before = self._library.years.get(self._plan_year - 1)
        last = self._library.year(self._plan_year - 1).figures.get(name) if before else None
        if last and last.value:
            text += f" The amount for {self._plan_year - 1} is {last.value}."
        return fact.model_copy(
            update={
                "statement": text,
                "rationale": figure.rationale,
                "source": figure.source,
                "address": figure.address,
                "locator": figure.locator,
                "valid_from": year.compiled,
                "valid_until": None,
                "confirmed_by": figure.confirmed_by,
                "plan_year": self._plan_year,
                "tells": (),
                "only": Only(),
                "cost_if_wrong": None,
                "not_published": figure.expected,
            }
        )

    def _figure(self, name: str, where: str) -> Figure | None:
        """A figure of the year; None if only other years have it."""
        found = self._library.year(self._plan_year).figures.get(name)
        if found is None and not self._library.names_figure(name):
            path = self._library.years[self._plan_year]
            file = path if path == self._library.facts_file else f"facts/{path.name}"
            raise InputError(f"{where}: {file} has no figure {name!r}. Add it or check the name.")
        return found

    def fill_text(self, text: str, where: str, keep: tuple[str, ...] = ()) -> str:
        def value(slot: str) -> str:
            root = slot.partition(".")[0]
            if slot == "plan_year":
                return str(self._plan_year)
            if root == "figure":
                figure = self._figure(slot.removeprefix("figure."), where)
                return (figure and figure.value) or f"(an amount not yet known for {self._plan_year})"
            if root in keep:
                return f"{{{{{slot}}}}}"
            if slot in self._shop:
                return self._shop[slot]
            raise InputError(
                f"{where}: unknown slot {{{{{slot}}}}}. "
                "Use plan_year, figure.NAME, or plan., doctor. or place. with a variant that names one."
            )

        return SLOT.sub(lambda match: value(match.group(1)), text)


def _number(value: object) -> Decimal | None:
    """The number that a text such as $202.90 or 24 states by itself; a percent is none, because 20% is not 20."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value).strip().removeprefix("$").replace(",", "")
    return Decimal(text) if re.fullmatch(r"\d+(?:\.\d+)?", text) else None


# Which background facts a run may use: those that hold on its day in the plan year, with their figures filled in.


@dataclass(frozen=True)
class Background:
    facts: tuple[BackgroundFact, ...]
    """Without slots, sorted by id."""
    left_out: Mapping[str, str]
    """Fact id to the reason why the fact cannot be used for this plan year."""


def background_for(plan_year: int, library: Library, states: Iterable[object] = ()) -> Background:
    """The background facts of a plan year, and of the states (names or codes) in which personas live.

    A background fact is optional, so one that does not hold, or whose figure is not known for the year, is left out
    and is no error.
    """
    facts: list[BackgroundFact] = []
    waiting: dict[str, str] = {}
    """What says that a figure is not published, to the id of the first fact that says so."""
    left_out: dict[str, str] = {}
    day = min(max(library.today, date(plan_year, 1, 1)), date(plan_year, 12, 31))  # of the plan year, the nearest
    codes = {library.state_code(state) for state in states}
    for fact in library.facts.values():
        if fact.states and not codes.intersection(fact.states):
            continue
        if reason := _does_not_hold(fact, plan_year, day):
            left_out[fact.fact_id] = reason
            continue
        filled = fill_background(fact, plan_year, library)
        if filled is None:
            left_out[fact.fact_id] = f"it needs a figure that is not known for {plan_year}"
        elif reason := _does_not_hold(filled, plan_year, day):  # a fact holds no longer than its figures
            left_out[fact.fact_id] = reason
        elif filled.not_published and waiting.setdefault(filled.statement, fact.fact_id) != fact.fact_id:
            left_out[fact.fact_id] = f"it waits for the same figure as {waiting[filled.statement]}"
        else:
            facts.append(filled)
    return Background(tuple(facts), left_out)


def _does_not_hold(fact: BackgroundFact, plan_year: int, day: date) -> str | None:
    if fact.not_published:
        return None
    if fact.plan_years and plan_year not in fact.plan_years:
        return f"it is for plan year {', '.join(map(str, fact.plan_years))}"
    if fact.valid_from > day:
        return f"it is valid only from {fact.valid_from}"
    if fact.valid_until and fact.valid_until < day:
        return f"it is valid only until {fact.valid_until}"
    return None


def check_ids(planned: Iterable[PlannedScenario], background: Background) -> None:
    """A verdict cites a fact by its id, so no scenario may use the id of a background fact for a fact of its own."""
    taken = {fact.fact_id for fact in background.facts}
    for one in planned:
        for fact in one.scenario.answer_key.canonical_facts:
            if fact.fact_id in taken:
                raise InputError(
                    f"{one.path}: field answer_key.canonical_facts: {fact.fact_id!r} is the id of a background fact. "
                    "Choose another id."
                )
