"""How far raters agree beyond chance. Pure functions on tables of ratings; a missing rating is None.

A table has one row an item and one column a rater, as judges' verdicts are: nominal labels, some missing. Every
coefficient is None where it is not defined (nothing rated twice, or chance agreement is total). Definitions:

- percent agreement: share of pairs of ratings of one item that are equal, items weighted equally.
- Cohen's kappa: two raters, items both rated; chance from each rater's own base rates.
- Fleiss' kappa: items with at least two ratings; chance from the pooled base rates. With unequal numbers of ratings it
  is Gwet's generalisation, which is Fleiss' own where every item has as many.
- Krippendorff's alpha, nominal: items with at least two ratings, by coincidences.
- Gwet's AC1: chance from how evenly the labels are used; steady where one label dominates.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum

Label = Hashable
Ratings = Sequence[Sequence[Label | None]]
Coefficient = Callable[[Ratings], float | None]


def _counts(ratings: Ratings) -> list[Counter[Label]]:
    return [Counter(label for label in item if label is not None) for item in ratings]


def _pair_agreement(counts: Sequence[Counter[Label]]) -> float | None:
    """Mean over items rated at least twice of the share of their pairs that agree."""
    shares = []
    for count in counts:
        n = sum(count.values())
        if n >= 2:
            shares.append(sum(k * (k - 1) for k in count.values()) / (n * (n - 1)))
    return fsum(shares) / len(shares) if shares else None


def percent_agreement(ratings: Ratings) -> float | None:
    return _pair_agreement(_counts(ratings))


def _beyond_chance(observed: float, chance: float) -> float | None:
    return None if chance >= 1 else (observed - chance) / (1 - chance)


def cohen_kappa(ratings: Ratings) -> float | None:
    """For two raters; over the items that both rated."""
    pairs = [(item[0], item[1]) for item in ratings if item[0] is not None and item[1] is not None]
    if not pairs:
        return None
    n = len(pairs)
    first, second = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    observed = sum(a == b for a, b in pairs) / n
    chance = fsum(first[label] * second[label] for label in first) / (n * n)
    return _beyond_chance(observed, chance)


def fleiss_kappa(ratings: Ratings) -> float | None:
    counts = _counts(ratings)
    observed = _pair_agreement(counts)
    if observed is None:
        return None
    return _beyond_chance(observed, fsum(share * share for share in _base_rates(counts).values()))


def gwet_ac1(ratings: Ratings, labels: int | None = None) -> float | None:
    """`labels`: how many there are to choose from, used or not; without it, how many were used."""
    counts = _counts(ratings)
    observed = _pair_agreement(counts)
    rates = _base_rates(counts)
    choices = labels or len(rates)
    if observed is None or choices < 2:
        return None
    return _beyond_chance(observed, fsum(share * (1 - share) for share in rates.values()) / (choices - 1))


def _base_rates(counts: Sequence[Counter[Label]]) -> dict[Label, float]:
    """Each label's share, items that were rated weighted equally."""
    rated = [count for count in counts if count]
    labels = dict.fromkeys(label for count in rated for label in count)
    return {label: fsum(count[label] / sum(count.values()) for count in rated) / len(rated) for label in labels}


def base_rates(ratings: Ratings) -> dict[Label, float]:
    return _base_rates(_counts(ratings))


def krippendorff_alpha(ratings: Ratings) -> float | None:
    """Nominal alpha: one minus observed over expected disagreement, by coincidences."""
    counts = [count for count in _counts(ratings) if sum(count.values()) >= 2]
    totals: Counter[Label] = Counter()
    for count in counts:
        totals.update(count)
    n = sum(totals.values())
    if n < 2:
        return None
    observed = fsum(
        (sum(count.values()) ** 2 - sum(k * k for k in count.values())) / (sum(count.values()) - 1) for count in counts
    )
    expected = (n * n - sum(k * k for k in totals.values())) / (n - 1)
    return None if expected == 0 else 1 - observed / expected


@dataclass(frozen=True)
class Agreement:
    """One coefficient with a bootstrap interval over clusters."""

    value: float | None
    low: float | None
    high: float | None
    undefined: int = 0
    """Resamples in which the coefficient is not defined, and that the interval leaves out."""


COEFFICIENTS: dict[str, Coefficient] = {
    "percent agreement": percent_agreement,
    "Fleiss' kappa": fleiss_kappa,
    "Krippendorff's alpha": krippendorff_alpha,
    "Gwet's AC1": gwet_ac1,
}


def mean_cohen_kappa(ratings: Ratings) -> float | None:
    """The mean over all pairs of raters; with two raters it is their kappa."""
    raters = max((len(item) for item in ratings), default=0)
    values = []
    for a, b in combinations(range(raters), 2):
        value = cohen_kappa([(item[a], item[b]) for item in ratings if len(item) > b])
        if value is not None:
            values.append(value)
    return fsum(values) / len(values) if values else None


def bootstrap(
    clusters: Sequence[Ratings],
    coefficient: Coefficient,
    *,
    seed: int,
    resamples: int = 1_000,
    confidence: float = 0.95,
) -> Agreement:
    """A coefficient over all items, with a percentile interval from drawing whole clusters (trials) anew."""
    value = coefficient([item for cluster in clusters for item in cluster])
    if value is None or len(clusters) < 2:
        return Agreement(value, None, None)
    draw = random.Random(seed)  # noqa: S311 - resampling, no secret
    found = []
    for _ in range(resamples):
        drawn = coefficient([item for cluster in draw.choices(clusters, k=len(clusters)) for item in cluster])
        if drawn is not None:
            found.append(drawn)
    if not found:
        return Agreement(value, None, None)
    found.sort()
    tail = (1 - confidence) / 2
    return Agreement(value, quantile(found, tail), quantile(found, 1 - tail), resamples - len(found))


def quantile(ordered: Sequence[float], p: float) -> float:
    """Linear interpolation between order statistics, as numpy's default."""
    at = p * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)
