"""Agreement of people with each other and with each judge, on the trials of a review.

Flagged and sampled trials are counted apart. For the whole run they are counted together with design weights: a trial
stands for N / n trials, where n of the N trials of its kind were judged by people. Intervals resample scenarios, as
those of the judges' agreement do.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Literal, NamedTuple

from ...stats.agreement import (
    Agreement,
    Coefficient,
    Pattern,
    bootstrap,
    cohen_kappa,
    krippendorff_alpha,
    percent_agreement,
)
from .judge_agreement import RESAMPLES, SEED
from .review import JUDGES, PEOPLE, STRATA, Rater, Review, Stratum

Part = Literal["flagged", "sampled", "whole run"]
LEAST_SCENARIOS = 3
"""Fewer give no interval, as with shares."""
On = Literal["labels", "codes"]


@dataclass(frozen=True)
class PairAgreement:
    """How far two raters agree in one part of a review."""

    first: Rater
    second: Rater
    on: On
    part: Part
    items: int
    """Claims, or questions, that both rated."""
    scenarios: int
    agreement: Agreement
    kappa: Agreement


@dataclass(frozen=True)
class PeopleAgreement:
    """How far all people agree with each other in one part of a review."""

    part: Part
    claims: int
    """That at least two people labeled."""
    alpha: Agreement


@dataclass(frozen=True)
class ReviewAgreement:
    people: tuple[PeopleAgreement, ...]
    pairs: tuple[PairAgreement, ...]
    why_no_whole: str | None
    """Why nothing is said of the whole run; None if it is."""


class _Item(NamedTuple):
    """A claim or a question with its ratings."""

    scenario_id: str
    stratum: Stratum
    pattern: Pattern


def review_agreement(review: Review, *, resamples: int = RESAMPLES) -> ReviewAgreement:
    """Every pair of people, every person with every judge, people together with judges, and all people."""
    parts = _parts(review)
    table = partial(_pair, parts, resamples)
    people = [Rater("person", name) for name in review.people]
    pairs = [
        *combinations(people, 2),
        *((one, two) for one in people for two in (*review.judges, JUDGES)),
        *((PEOPLE, two) for two in (*review.judges, JUDGES)),
    ]
    found = [one for pair in pairs for one in table(_claims(review, *pair), pair, "labels")]
    codes = [_Item(one.scenario_id, one.stratum, (one.people, one.judges)) for one in review.questions]
    found += table(codes, (PEOPLE, JUDGES), "codes")
    return ReviewAgreement(tuple(_all_people(review, people, parts, resamples)), tuple(found), _why_no_whole(review))


def _claims(review: Review, first: Rater, second: Rater) -> list[_Item]:
    return [
        _Item(claim.scenario_id, claim.stratum, (claim.labels[first], claim.labels[second]))
        for claim in review.claims
        if first in claim.labels and second in claim.labels
    ]


Weights = Mapping[Stratum, float]
"""What a trial of each stratum counts for; a stratum that is missing is not counted."""


def _parts(review: Review) -> dict[Part, Weights]:
    parts: dict[Part, Weights] = {stratum: {stratum: 1.0} for stratum in STRATA}
    if _why_no_whole(review) is None:
        parts["whole run"] = {name: review.population[name] / review.done[name] for name in STRATA if review.done[name]}
    return parts


def _why_no_whole(review: Review) -> str | None:
    if review.population["sampled"] and not review.done["sampled"]:
        return "no trial was drawn at random from those that were not flagged"
    if review.population["flagged"] and not review.done["flagged"]:
        return "no flagged trial was judged"
    return None


def _by_scenario(items: Iterable[_Item], weights: Weights) -> list[dict[Pattern, float]]:
    found: dict[str, defaultdict[Pattern, float]] = {}
    for one in items:
        if one.stratum in weights:
            found.setdefault(one.scenario_id, defaultdict(float))[one.pattern] += weights[one.stratum]
    return [dict(found[name]) for name in sorted(found)]


def _pair(
    parts: Mapping[Part, Weights], resamples: int, items: Sequence[_Item], raters: tuple[Rater, Rater], on: On
) -> Iterator[PairAgreement]:
    for part, weights in parts.items():
        clusters = _by_scenario(items, weights)
        n = sum(one.stratum in weights for one in items)
        if n:
            measured = _measured(clusters, resamples)
            yield PairAgreement(*raters, on, part, n, len(clusters), measured(percent_agreement), measured(cohen_kappa))


def _measured(clusters: Sequence[Mapping[Pattern, float]], resamples: int) -> Callable[[Coefficient], Agreement]:
    def measured(coefficient: Coefficient) -> Agreement:
        found = bootstrap(clusters, coefficient, seed=SEED, resamples=resamples)
        return found if len(clusters) >= LEAST_SCENARIOS else Agreement(found.value, None, None)

    return measured


def _all_people(
    review: Review, people: Sequence[Rater], parts: Mapping[Part, Weights], resamples: int
) -> Iterator[PeopleAgreement]:
    items = [
        _Item(claim.scenario_id, claim.stratum, pattern)
        for claim in review.claims
        for pattern in [tuple(claim.labels.get(rater) for rater in people)]
        if sum(label is not None for label in pattern) >= 2
    ]
    counts = Counter(one.stratum for one in items)
    for part, weights in parts.items():
        claims = sum(counts[stratum] for stratum in weights)
        if claims:
            yield PeopleAgreement(part, claims, _measured(_by_scenario(items, weights), resamples)(krippendorff_alpha))
