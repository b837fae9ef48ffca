"""Which background facts a run may use: those that hold on its day in the plan year, with their figures filled in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from ..errors import InputError
from ..schemas import BackgroundFact, PlannedScenario
from .fill_facts import fill_background
from .library import Library


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
    day = _day_in(plan_year, library.today)
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


def _day_in(plan_year: int, today: date) -> date:
    """Today, or the day of the plan year that is nearest to it."""
    return min(max(today, date(plan_year, 1, 1)), date(plan_year, 12, 31))


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
