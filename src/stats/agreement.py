"""How far raters agree beyond chance. Pure functions on tables of ratings; a missing rating is None.

A table has one row per item and one column per rater. The ratings, such as judges' verdicts, are nominal labels. A
coefficient is None if it is undefined (nothing is rated twice, or agreement by chance is certain). Definitions:

- percent agreement: share of equal pairs among the ratings of one item; items have equal weight.
- Cohen's kappa: two raters, items that both rated; chance from each rater's own base rates.
- Krippendorff's alpha, nominal: items with at least two ratings, by coincidences.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum
from typing import Any, Protocol

Label = Hashable
Ratings = Sequence[Sequence[Label | None]]
Weights = Sequence[float] | None
"""How many items each row of a table represents, not always a whole number; None means one."""


Pattern = tuple[Any, ...]
"""The labels that the raters gave one item, in their order."""


class Coefficient(Protocol):
    def __call__(self, ratings: Ratings, weights: Weights = None) -> float | None: ...


_Counts = list[tuple[Counter[Label], float]]


def _counts(ratings: Ratings, weights: Weights) -> _Counts:
    """The counted labels of each row, and how many items the row represents."""
    given = weights if weights is not None else [1] * len(ratings)
    return [
        (Counter(label for label in item if label is not None), weight)
        for item, weight in zip(ratings, given, strict=True)
    ]


def _pair_agreement(counts: _Counts) -> float | None:
    """The mean share of pairs that agree, over items rated at least twice."""
    shares, items = [], 0.0
    for count, weight in counts:
        n = sum(count.values())
        if n >= 2:
            shares.append(weight * sum(k * (k - 1) for k in count.values()) / (n * (n - 1)))
            items += weight
    return fsum(shares) / items if items else None


def percent_agreement(ratings: Ratings, weights: Weights = None) -> float | None:
    return _pair_agreement(_counts(ratings, weights))


def cohen_kappa(ratings: Ratings, weights: Weights = None) -> float | None:
    """For two raters, over the items that both rated."""
    pairs: defaultdict[tuple[Label, Label], float] = defaultdict(float)
    for item, weight in zip(ratings, weights if weights is not None else [1] * len(ratings), strict=True):
        if item[0] is not None and item[1] is not None:
            pairs[item[0], item[1]] += weight
    n = sum(pairs.values())
    if not n:
        return None
    first: defaultdict[Label, float] = defaultdict(float)
    second: defaultdict[Label, float] = defaultdict(float)
    for (a, b), count in pairs.items():
        first[a] += count
        second[b] += count
    observed = sum(count for (a, b), count in pairs.items() if a == b) / n
    chance = fsum(first[label] * second[label] for label in first) / (n * n)
    return None if chance >= 1 else (observed - chance) / (1 - chance)


def _base_rates(counts: _Counts) -> dict[Label, float]:
    """Each label's share; rated items have equal weight."""
    rated = [(count, weight) for count, weight in counts if count and weight]
    items = sum(weight for _, weight in rated)
    labels = dict.fromkeys(label for count, _ in rated for label in count)
    return {
        label: fsum(weight * count[label] / sum(count.values()) for count, weight in rated) / items for label in labels
    }


def base_rates(ratings: Ratings, weights: Weights = None) -> dict[Label, float]:
    return _base_rates(_counts(ratings, weights))


def krippendorff_alpha(ratings: Ratings, weights: Weights = None) -> float | None:
    """Nominal alpha: one minus observed disagreement divided by expected disagreement, by coincidences."""
    counts = [(count, weight) for count, weight in _counts(ratings, weights) if sum(count.values()) >= 2]
    totals: defaultdict[Label, float] = defaultdict(float)
    for count, weight in counts:
        for label, k in count.items():
            totals[label] += weight * k
    n = sum(totals.values())
    if n < 2:
        return None
    observed = fsum(
        weight * (sum(count.values()) ** 2 - sum(k * k for k in count.values())) / (sum(count.values()) - 1)
        for count, weight in counts
    )
    expected = (n * n - sum(k * k for k in totals.values())) / (n - 1)
    return None if expected == 0 else 1 - observed / expected


@dataclass(frozen=True)
class Agreement:
    """One coefficient with a bootstrap interval over clusters."""

    value: float | None
    low: float | None
    high: float | None


def mean_cohen_kappa(ratings: Ratings, weights: Weights = None) -> float | None:
    """The mean over all pairs of raters; with two raters, their kappa."""
    raters = max((len(item) for item in ratings), default=0)
    values = []
    for a, b in combinations(range(raters), 2):
        given = weights if weights is not None else [1] * len(ratings)
        both = [((item[a], item[b]), weight) for item, weight in zip(ratings, given, strict=True) if len(item) > b]
        value = cohen_kappa([pair for pair, _ in both], [weight for _, weight in both])
        if value is not None:
            values.append(value)
    return fsum(values) / len(values) if values else None


def bootstrap(
    clusters: Sequence[Mapping[Pattern, float]],
    coefficient: Coefficient,
    *,
    seed: int,
    resamples: int = 1_000,
    confidence: float = 0.95,
) -> Agreement:
    """A coefficient over all items, with a percentile interval from resampling whole clusters, without the resamples
    in which the coefficient is undefined.

    A cluster (a trial, or a block of trials) maps each pattern of labels to the number of its items with that pattern,
    or of items that they represent.
    """
    value = _pooled(clusters, coefficient)
    if value is None or len(clusters) < 2:
        return Agreement(value, None, None)
    draw = random.Random(seed)  # noqa: S311 - for resampling, not for secrets
    found = []
    for _ in range(resamples):
        drawn = _pooled(draw.choices(clusters, k=len(clusters)), coefficient)
        if drawn is not None:
            found.append(drawn)
    if not found:
        return Agreement(value, None, None)
    found.sort()
    tail = (1 - confidence) / 2
    low, high = quantile(found, tail), quantile(found, 1 - tail)
    if low == high:
        # Resampling clusters that are all alike shows no spread. If none of G differs, at most a certain share does;
        # what that means for a coefficient beyond chance is not known.
        at_most = 1 - (1 - confidence) ** (1 / len(clusters))
        plain = coefficient is percent_agreement
        return Agreement(value, value * (1 - at_most) if plain else None, value if plain else None)
    return Agreement(value, low, high)


def _pooled(clusters: Sequence[Mapping[Pattern, float]], coefficient: Coefficient) -> float | None:
    total: defaultdict[Pattern, float] = defaultdict(float)
    for cluster in clusters:
        for pattern, count in cluster.items():
            total[pattern] += count
    patterns = sorted(total, key=str)
    return coefficient(patterns, [total[pattern] for pattern in patterns])


def quantile(ordered: Sequence[float], p: float) -> float:
    """Linear interpolation between order statistics, like numpy's default."""
    at = p * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)
