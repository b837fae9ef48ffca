"""What wrong answers could cost the person who asked: the errors that have a cost, and their dollars by class.

An error is a claim with the final label CONTRADICTED that cites a fact of the scenario's own key with a cost, in a
scored trial. A background fact never counts: the person did not ask about it, so nobody knows that they would act on
it. A claim that sounds uncertain (confidence low) does not count either. One loss counts once in a trial: a fact counts
once, and so do facts whose formulas are the same, because one person loses the money once. A claim that cites several
facts without a price counts once among those.

Amounts of different classes or scenarios are never added up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from ..records.base import Severity
from ..schemas import CanonicalFact, CostClass, CostIfWrong, FinalClaim, RunPlan, TrialResult
from ..stats.agreement import quantile
from ..text.figures import figures
from ..text.formula import dollars, fill, names_in
from ..text.quantities import speaks_of_month, speaks_of_year

LEAST_GIVEN = 130
"""Smaller numbers of a persona without a dollar sign are ages and counts of people, not amounts."""
_MONEY = re.compile(r"\$([0-9]{1,9}(?:\.[0-9]{1,4})?)")
_BARE = re.compile(r"n?([0-9]{1,9}(?:\.[0-9]{1,4})?)")
"""A number without a unit; one that could be a calendar year has no n before it."""
HIGH_SHARE = 0.9


class Amount(NamedTuple):
    years: int
    dollars: Decimal


@dataclass(frozen=True, slots=True)
class CostlyError:
    """One loss that one trial's answers could bring."""

    trial_id: str
    target: str
    claim_id: str
    turn_id: str
    severity: Severity
    fact: CanonicalFact
    cost_class: CostClass
    horizon: tuple[int, ...]
    needs_stated: bool
    """Whether the formula needs an amount from the claim."""
    stated: Decimal | None
    amounts: tuple[Amount, ...]
    """One for each year of the horizon; none if no amount can be computed."""

    def dollars(self, years: int) -> Decimal | None:
        return next((one.dollars for one in self.amounts if one.years == years), None)

    @property
    def formula(self) -> str | None:
        """The formula in numbers; `years` stays if there are amounts for several."""
        text = self.fact.cost_if_wrong.formula if self.fact.cost_if_wrong else None
        values = {"stated": self.stated} if self.stated is not None else {}
        if len(self.horizon) == 1:
            values["years"] = Decimal(self.horizon[0])
        return fill(text, values) if text else None


@dataclass(frozen=True)
class KeyCosts:
    """What one scenario and variant knows about costs."""

    facts: dict[str, CanonicalFact]
    """The facts of its key that have a cost, by id."""
    given: frozenset[Decimal]
    """Amounts that the persona gives."""


Costs = dict[tuple[str, str | None], KeyCosts]
"""By scenario and variant; only those with a cost."""


@dataclass
class Dollars:
    """The errors of one run that have a cost."""

    costs: Costs = field(default_factory=dict)
    errors: list[CostlyError] = field(default_factory=list)

    def add(self, trial: TrialResult) -> None:
        """Take in one trial."""
        self.errors += errors_of(trial, self.costs)

    def of(self, target: str, cost_class: CostClass) -> list[CostlyError]:
        return [one for one in self.errors if (one.target, one.cost_class) == (target, cost_class)]


@dataclass(frozen=True)
class Spread:
    """The errors of one target and class whose amounts are reported for a number of years."""

    errors: int
    trials: int
    """Trials with at least one of these errors."""
    with_dollars: int
    """Of the errors, those with an amount that is not zero. Only these are in the median and the percentile."""
    no_loss: int
    """Of the errors, those that cost nothing."""
    median: float | None
    high: float | None
    """The 90th percentile."""


def costs_of(plan: RunPlan) -> Costs:
    found: Costs = {}
    for planned in plan.scenarios:
        scenario = planned.scenario
        facts = {fact.fact_id: fact for fact in scenario.answer_key.canonical_facts if fact.cost_if_wrong}
        if facts:
            given = _given(scenario.persona.model_dump_json())
            found[scenario.scenario_id, planned.variant] = KeyCosts(facts, given)
    return found


def errors_of(trial: TrialResult, costs: Costs) -> list[CostlyError]:
    """The losses that a trial's answers could bring, in the order of its claims."""
    key = costs.get((trial.scenario_id, trial.variant))
    if key is None or trial.outcome != "scored":
        return []
    unsure = {claim.claim_id for claim in trial.claims if claim.confidence == "low"}
    given = key.given.union(*(_given(exchange.user_message) for exchange in trial.conversation))
    found: dict[str, CostlyError] = {}
    for claim in trial.final_claims:
        if claim.label == "CONTRADICTED" and claim.claim_id not in unsure:
            for loss, fact in _losses(claim, key).items():
                error = _error(trial, claim, fact, given)
                if loss not in found or (error.amounts and not found[loss].amounts):
                    found[loss] = error
    return list(found.values())


def spread(errors: Iterable[CostlyError], years: int) -> Spread:
    """How the amounts are spread over errors of one target and class."""
    there = [one for one in errors if years in one.horizon]
    computed = [amount for one in there if (amount := one.dollars(years)) is not None]
    amounts = sorted(float(amount) for amount in computed if amount)
    return Spread(
        len(there),
        len({one.trial_id for one in there}),
        len(amounts),
        len(computed) - len(amounts),
        quantile(amounts, 0.5) if amounts else None,
        quantile(amounts, HIGH_SHARE) if amounts else None,
    )


def _losses(claim: FinalClaim, key: KeyCosts) -> dict[str, CanonicalFact]:
    """The cited facts with a cost, by what is lost: a formula, or without one the first such fact."""
    losses: dict[str, CanonicalFact] = {}
    unpriced = False
    for cited in claim.evidence:
        fact = key.facts.get(cited)
        if fact is None or fact.cost_if_wrong is None:
            continue
        formula = fact.cost_if_wrong.formula
        if formula:
            losses.setdefault(f"{fact.cost_if_wrong.cost_class} {formula}", fact)
        elif not unpriced:
            unpriced = True
            losses[fact.fact_id] = fact
    return losses


def _error(trial: TrialResult, claim: FinalClaim, fact: CanonicalFact, given: frozenset[Decimal]) -> CostlyError:
    cost = fact.cost_if_wrong
    assert cost is not None
    needs_stated = _needs_stated(cost)
    stated = stated_amount(claim.text, fact.statement, given) if needs_stated else None
    return CostlyError(
        trial.trial_id,
        trial.target.name,
        claim.claim_id,
        claim.turn_id,
        claim.severity,
        fact,
        cost.cost_class,
        cost.horizon,
        needs_stated,
        stated,
        _amounts(cost, stated),
    )


def _needs_stated(cost: CostIfWrong) -> bool:
    try:
        return cost.formula is not None and "stated" in names_in(cost.formula)
    except ValueError:
        return False


def _amounts(cost: CostIfWrong, stated: Decimal | None) -> tuple[Amount, ...]:
    """One for each year of the horizon; none if one cannot be computed.

    A formula is tried out when a run is planned, but not with the amount of this claim.
    """
    if cost.formula is None:
        return ()
    values = {} if stated is None else {"stated": stated}
    try:
        return tuple(
            Amount(years, dollars(cost.formula, {**values, "years": Decimal(years)})) for years in cost.horizon
        )
    except ValueError:
        return ()


def stated_amount(claim: str, fact: str, given: frozenset[Decimal]) -> Decimal | None:
    """The one dollar amount that a wrong claim states in place of the fact's.

    None if it states none or several. Amounts that the person gave, or that the fact states too, are not the error. An
    amount for a month cannot be compared with one for a year.
    """
    own = set(_dollar_amounts(claim) - given - _dollar_amounts(fact))
    return own.pop() if len(own) == 1 and _same_period(claim, fact) else None


def _same_period(claim: str, fact: str) -> bool:
    monthly, yearly = speaks_of_month(claim), speaks_of_year(claim)
    if monthly == yearly:
        return True
    return speaks_of_month(fact) if monthly else not speaks_of_month(fact) or speaks_of_year(fact)


def _dollar_amounts(text: str) -> frozenset[Decimal]:
    return frozenset(Decimal(found[1]) for token in figures(text) if (found := _MONEY.fullmatch(token)))


@lru_cache(maxsize=4096)
def _given(text: str) -> frozenset[Decimal]:
    """Amounts in a text of the person's, also without a dollar sign (`"monthly_income": 1600`)."""
    bare = (Decimal(found[1]) for token in figures(text) if (found := _BARE.fullmatch(token)))
    return _dollar_amounts(text) | {number for number in bare if number >= LEAST_GIVEN}
