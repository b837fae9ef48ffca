"""Agreement of people with each other and with each judge, on the trials of a review.

Flagged and sampled trials are counted apart. For the whole run they are counted together with design weights: a trial
stands for N / n trials, where n of the N trials of its kind were judged by people. Intervals resample scenarios, as
those of the judges' agreement do.

Headlines are corrected by people's codes, which follow from their labels of claims. They labeled the claims that the
extractor found; a claim that it missed, they did not see. The estimate is the stratified difference estimator of
`stats.labeled_sample`, by target: flagged trials were all labeled, and of the others a simple random sample, which is
also one within each target. Scenarios are the independent units, as for the judges' own interval.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Literal

from ..scoring.definitions import SHARES, ShareName
from ..stats.agreement import (
    Agreement,
    Coefficient,
    Pattern,
    bootstrap,
    cohen_kappa,
    krippendorff_alpha,
    percent_agreement,
)
from ..stats.bounded import Bounded
from ..stats.labeled_sample import CorrectedByPeople, JudgedAnswer, StratumLabels, corrected_by_people
from ..trials.missing import MISSING
from ..trials.row import Row
from .estimates import Estimated, Question, estimate
from .judge_agreement import RESAMPLES, SEED
from .review import JUDGES, PEOPLE, STRATA, RatedItem, Rater, ReadReview, Stratum, unfinished

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


def review_agreement(review: ReadReview, *, resamples: int = RESAMPLES) -> ReviewAgreement:
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
    found += table(review.questions, (PEOPLE, JUDGES), "codes")
    return ReviewAgreement(tuple(_all_people(review, people, parts, resamples)), tuple(found), _why_no_whole(review))


def _claims(review: ReadReview, first: Rater, second: Rater) -> list[RatedItem]:
    return [
        RatedItem(claim.scenario_id, claim.stratum, (claim.labels[first], claim.labels[second]))
        for claim in review.claims
        if first in claim.labels and second in claim.labels
    ]


Weights = Mapping[Stratum, float]
"""What a trial of each stratum counts for; a stratum that is missing is not counted."""


def _parts(review: ReadReview) -> dict[Part, Weights]:
    parts: dict[Part, Weights] = {stratum: {stratum: 1.0} for stratum in STRATA}
    if _why_no_whole(review) is None:
        parts["whole run"] = {name: review.population[name] / review.done[name] for name in STRATA if review.done[name]}
    return parts


def _why_no_whole(review: ReadReview) -> str | None:
    if review.population["sampled"] and not review.done["sampled"]:
        return "no trial was drawn at random from those that were not flagged"
    if review.population["flagged"] and not review.done["flagged"]:
        return "no flagged trial was judged"
    return None


def _by_scenario(items: Iterable[RatedItem], weights: Weights) -> list[dict[Pattern, float]]:
    found: dict[str, defaultdict[Pattern, float]] = {}
    for one in items:
        if one.stratum in weights:
            found.setdefault(one.scenario_id, defaultdict(float))[one.pattern] += weights[one.stratum]
    return [dict(found[name]) for name in sorted(found)]


def _pair(
    parts: Mapping[Part, Weights], resamples: int, items: Sequence[RatedItem], raters: tuple[Rater, Rater], on: On
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
    review: ReadReview, people: Sequence[Rater], parts: Mapping[Part, Weights], resamples: int
) -> Iterator[PeopleAgreement]:
    items = [
        RatedItem(claim.scenario_id, claim.stratum, pattern)
        for claim in review.claims
        for pattern in [tuple(claim.labels.get(rater) for rater in people)]
        if sum(label is not None for label in pattern) >= 2
    ]
    counts = Counter(one.stratum for one in items)
    for part, weights in parts.items():
        claims = sum(counts[stratum] for stratum in weights)
        if claims:
            yield PeopleAgreement(part, claims, _measured(_by_scenario(items, weights), resamples)(krippendorff_alpha))


OUTSIDE, SETTLED = "outside", "settled"
"""Strata in which there is nothing to correct: what no judge judged, and what people alone gave a code."""


@dataclass(frozen=True)
class CorrectedHeadline:
    """One share of one target: as judged, and as people would have judged."""

    judged: Estimated
    corrected: CorrectedByPeople
    flagged: StratumLabels | None
    sampled: StratumLabels | None
    outside: int
    """Trials whose codes no judge gave, such as refusals, or that have no claims to show; they count as they are."""
    unsettled: int
    """Answers that people did not agree on."""

    @property
    def share(self) -> Bounded:
        """The corrected share as reports show shares."""
        one = self.corrected
        return Bounded(one.scenarios, one.value, one.low, one.high)


def corrected_headlines(review: ReadReview) -> dict[str, dict[ShareName, CorrectedHeadline]]:
    """By target and code."""
    return {
        target: {code: corrected_headline(review, target, code) for code in SHARES}
        for target in review.earlier.plan_targets
    }


def corrected_headline(review: ReadReview, target: str, code: ShareName) -> CorrectedHeadline:
    rows = review.earlier.of_target(target)
    judged = estimate(rows, code)
    found = _Answers(review, rows, code)
    not_yet = unfinished(review)
    corrected = (
        CorrectedByPeople(judged.value, why_not="the review is not finished")
        if not_yet
        else corrected_by_people(found.weighted())
    )
    strata = corrected.strata or {}
    return CorrectedHeadline(
        judged, corrected, strata.get("flagged"), strata.get("sampled"), len(found.outside), found.unsettled
    )


_Counts = tuple[str, float, float | None]
"""Stratum, and what judges and people said."""


def _counts(judged: float | None, labeled: float | None, stratum: Stratum | None) -> _Counts | None:
    """How an answer counts; None if it is missing. A flagged one that people leave open is missing, as with judges."""
    if stratum == "flagged":
        if labeled is None:
            return None
        return (SETTLED, labeled, labeled) if judged is None else (stratum, judged, labeled)
    if judged is None:
        return None
    return (OUTSIDE, judged, judged) if stratum is None else (stratum, judged, labeled)


class _Answers:
    """The answers of one target, with the judges' and the people's codes."""

    def __init__(self, review: ReadReview, rows: Sequence[Row], code: ShareName) -> None:
        people = {row.trial_id: dict(row.counted) for row in review.found.rows}
        chosen = frozenset(review.selected.chosen)
        self.outside: set[str] = set()
        self.unsettled = 0
        self.found: list[tuple[Question, str, str, _Counts]] = []
        """Question, variant and trial of each answer that counts."""
        for row in rows:
            stratum = _stratum(row, chosen)
            if stratum is None:
                self.outside.add(row.trial_id)
            reviewed = people.get(row.trial_id)
            for group, given in row.counted:
                said = reviewed.get(group, MISSING) if reviewed else MISSING
                judged, labeled = (None if one == MISSING else float(one == code) for one in (given, said))
                self.unsettled += reviewed is not None and labeled is None and judged is not None
                if counts := _counts(judged, labeled, stratum):
                    self.found.append((Question(row.scenario_id, group), row.variant or "", row.trial_id, counts))

    def weighted(self) -> list[JudgedAnswer]:
        """Repeats of a script, the variants of a question, and all questions have equal weights, as in every share."""
        repeats = Counter((question, variant) for question, variant, *_ in self.found)
        variants = Counter(question for question, _ in repeats)
        return [
            JudgedAnswer(question.scenario_id, trial_id, *counts, 1 / (variants[question] * repeats[question, variant]))
            for question, variant, trial_id, counts in self.found
        ]


def _stratum(row: Row, chosen: frozenset[str]) -> Stratum | None:
    """As the review was drawn; None for a trial that could not be drawn."""
    if row.trial_id in chosen:
        return "flagged"
    return "sampled" if row.outcome == "scored" and not row.review else None
