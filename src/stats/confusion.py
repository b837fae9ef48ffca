"""Judges' errors on gold claims: shares computed from them, and accuracy corrected for them. Pure functions.

Judges give a gold claim a label, or none: they miss it, or leave it open. They also give labels to spurious claims,
which are no gold claims. Let `t[i][j]` be the number of labels `j` that a run would hold for each true claim of label
`i`: the share of gold claims `i` that got `j`, plus the spurious labels `j` per gold claim. If a run has `x[i]` true
claims of each label, it holds `n[j] = sum of x[i] t[i][j]` labels. So the observed `n` give `x`, and `x` accuracy.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from statistics import NormalDist

from .agreement import quantile
from .bounded import Interval, mid_p_limits
from .clustered import ClusterCount, ClusteredShare, clustered_share, effective_size
from .intervals import student_quantile

Confusion = Mapping[tuple[str, str], int]
"""One reply's claims by gold label and by what they were given: a label, or the name of what happened instead."""
LEAST_GOLD_CLAIMS = 20
"""Of each label. With fewer, the judges' error on that label is hardly known."""
LEAST_GOLD_REPLIES = 10
"""With fewer, how much replies differ is hardly known."""
MOST_AMPLIFIED = 10.0
"""By how much an error in the observed shares may grow in the corrected ones (the 1-norm of the inverse matrix)."""
DRAWS = 1_000
PSEUDO_COUNT = 0.5
"""Added to each cell, as Jeffreys' prior does, so that an error that was not observed is not held impossible."""
_TAIL = 0.025
_STEPS = 2_000


def share_right(replies: Sequence[Confusion]) -> ClusteredShare:
    """Of all gold claims, the share that got their gold label."""
    return clustered_share(
        [
            ClusterCount(sum(n for (gold, given), n in one.items() if gold == given), sum(one.values()))
            for one in replies
        ]
    )


def recall(replies: Sequence[Confusion], label: str) -> ClusteredShare:
    """Of the claims with this gold label, the share that got it."""
    return clustered_share(
        [
            ClusterCount(one.get((label, label), 0), sum(n for (gold, _), n in one.items() if gold == label))
            for one in replies
        ]
    )


def precision(replies: Sequence[Confusion], label: str) -> ClusteredShare:
    """Of the gold claims that got this label, the share whose gold label it is."""
    return clustered_share(
        [
            ClusterCount(one.get((label, label), 0), sum(n for (_, given), n in one.items() if given == label))
            for one in replies
        ]
    )


@dataclass(frozen=True)
class JudgedGold:
    """What judges did with one reply of a gold set."""

    confusion: Confusion
    spurious: Mapping[str, int]
    """Labels given to claims that are no gold claims."""


def precision_with_spurious(replies: Sequence[JudgedGold], label: str) -> ClusteredShare:
    """Like `precision`, if every spurious claim that got this label counts as wrong."""
    return clustered_share(
        [
            ClusterCount(
                one.confusion.get((label, label), 0),
                sum(n for (_, given), n in one.confusion.items() if given == label) + one.spurious.get(label, 0),
            )
            for one in replies
        ]
    )


@dataclass(frozen=True)
class Labels:
    supported: str
    contradicted: str
    neither: str

    @property
    def all(self) -> tuple[str, str, str]:
        return self.supported, self.contradicted, self.neither


@dataclass(frozen=True)
class Corrected:
    """A share as the judges gave it, and corrected for their errors with a 95% interval."""

    raw: float | None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    why_not: str | None = None
    """Why it cannot be corrected; None if it is."""


Table = list[list[float]]
"""`t[i][j]`: labels `j` per true claim of label `i`."""


def corrected_accuracy(
    clusters: Sequence[Mapping[str, int]], gold: Sequence[JudgedGold], labels: Labels, *, seed: int, draws: int = DRAWS
) -> Corrected:
    """Accuracy over claims, supported among supported and contradicted, corrected for the judges' errors.

    `clusters`: labels counted in each cluster of the run; a cluster is a scenario or a trial. `seed` and `draws`: of
    the interval.
    """
    observed: Counter[str] = Counter()
    for one in clusters:
        observed.update(one)
    decided = observed[labels.supported] + observed[labels.contradicted]
    if not decided:
        return Corrected(None, why_not="no claim was labeled SUPPORTED or CONTRADICTED")
    raw = observed[labels.supported] / decided
    why_not = _unusable(gold, labels)
    if why_not:
        return Corrected(raw, why_not=why_not)
    point = true_counts([float(observed[label]) for label in labels.all], table(gold, labels))
    if point[0] + point[1] <= 0:
        return Corrected(raw, why_not="what the judges labeled is what they would label if nothing were in the key")
    value = point[0] / (point[0] + point[1])
    found = _drawn(clusters, gold, labels, random.Random(seed), draws)  # noqa: S311 - for draws, not for secrets
    if isinstance(found, str):
        return Corrected(raw, why_not=found)
    return Corrected(raw, value, min(value, found.low), max(value, found.high))


def table(gold: Sequence[JudgedGold], labels: Labels) -> Table:
    """The table of a gold set, as observed."""
    cells, spurious = _cells(gold, labels)
    everything = fsum(map(fsum, cells))
    return [[row[j] / fsum(row) + spurious[j] / everything for j in range(len(labels.all))] for row in cells]


def _cells(gold: Sequence[JudgedGold], labels: Labels) -> tuple[Table, list[float]]:
    """Claims by gold label (rows) and by label given, the last column for none; and spurious labels."""
    confusion: Counter[tuple[str, str]] = Counter()
    spurious: Counter[str] = Counter()
    for one in gold:
        confusion.update(one.confusion)
        spurious.update(one.spurious)
    rows = []
    for label in labels.all:
        given = [float(confusion[label, other]) for other in labels.all]
        whole = sum(n for (is_, _), n in confusion.items() if is_ == label)
        rows.append([*given, whole - fsum(given)])
    return rows, [float(spurious[label]) for label in labels.all]


def _unusable(gold: Sequence[JudgedGold], labels: Labels) -> str | None:
    """Why this gold set cannot correct anything."""
    cells, _ = _cells(gold, labels)
    for label, row in zip(labels.all, cells, strict=True):
        if fsum(row) < LEAST_GOLD_CLAIMS:
            few = f"the gold set has {fsum(row):.0f} {label} claims, and {LEAST_GOLD_CLAIMS} of each label are needed"
            return f"{few}; measure the judges on more of it"
    if len(gold) < LEAST_GOLD_REPLIES:
        return f"the judges were measured on {len(gold)} gold replies, and {LEAST_GOLD_REPLIES} are needed"
    grows = amplification(table(gold, labels))
    if grows is None or grows > MOST_AMPLIFIED:
        by = "without limit" if grows is None else f"by a factor of {grows:.0f}"
        return (
            f"the judges do not tell the labels apart: an error in the observed shares would grow {by} "
            f"(limit: {MOST_AMPLIFIED:.0f})"
        )
    return None


def amplification(t: Table) -> float | None:
    """The 1-norm of the inverse of the table with rows scaled to sum to 1; None if it is singular."""
    size = len(t)
    if not all(fsum(row) for row in t):
        return None
    across = [[t[i][j] / fsum(t[i]) for i in range(size)] for j in range(size)]
    columns = [solve(across, [float(at == one) for at in range(size)]) for one in range(size)]
    norms = [fsum(map(abs, column)) for column in columns if column is not None]
    return max(norms) if len(norms) == size else None


def true_counts(observed: Sequence[float], t: Table) -> list[float]:
    """The true claims of each label that make the observed labels most likely; none is below 0."""
    size = len(t)
    solved = _solved(observed, t)
    if solved is not None and min(solved) >= 0:
        return solved
    # Where the solution is out of range, the most likely shares in range, by expectation and maximization.
    detected = [fsum(row) for row in t]
    share = [1 / size] * size
    total = fsum(observed)
    for _ in range(_STEPS):
        seen = [fsum(share[i] * t[i][j] / detected[i] for i in range(size)) for j in range(size)]
        share = [
            fsum(observed[j] * share[i] * t[i][j] / detected[i] / seen[j] for j in range(size) if seen[j]) / total
            for i in range(size)
        ]
    return [total * share[i] / detected[i] for i in range(size)]


def _solved(observed: Sequence[float], t: Table) -> list[float] | None:
    size = len(t)
    return solve([[t[i][j] for i in range(size)] for j in range(size)], observed)


def _drawn(
    clusters: Sequence[Mapping[str, int]], gold: Sequence[JudgedGold], labels: Labels, draw: random.Random, draws: int
) -> Interval | str:
    """The interval, or why there is none.

    Each draw is of the judges' table and of the run's shares. Its limits are those of all draws, cut off at 0 and 1,
    widened to those of the draws in range: where most draws are out of range, the first alone would have no width.
    """
    shares = _Shares(clusters, labels)
    tables = _Tables(gold, labels)
    values: list[float] = []
    in_range: list[float] = []
    undefined = 0
    for _ in range(draws):
        solved = _solved(shares.draw(draw), tables.draw(draw))
        decided = solved[0] + solved[1] if solved else 0.0
        if solved is None or decided <= 0:
            undefined += 1
            continue
        values.append(solved[0] / decided)
        if 0 <= values[-1] <= 1:
            in_range.append(values[-1])
    if undefined > _TAIL * draws:
        return "the share of claims that the key decides cannot be distinguished from 0"
    if len(in_range) < _TAIL * draws:
        return (
            "their false alarms on the gold set alone would give more of a label than this run has, so the gold set "
            "does not fit the run"
        )
    values.sort()
    in_range.sort()
    limits = [quantile(one, tail) for one in (values, in_range) for tail in (_TAIL, 1 - _TAIL)]
    return Interval(max(0.0, min(limits)), min(1.0, max(limits)))


class _Shares:
    """Draws of a run's shares of labels: of claims that are decided, and of decided claims that are supported."""

    def __init__(self, clusters: Sequence[Mapping[str, int]], labels: Labels) -> None:
        supported, contradicted = labels.supported, labels.contradicted
        right = [
            ClusterCount(one.get(supported, 0), one.get(supported, 0) + one.get(contradicted, 0)) for one in clusters
        ]
        decided = [ClusterCount(one.n, sum(c.get(label, 0) for label in labels.all))
                   for one, c in zip(right, clusters, strict=True)]  # fmt: skip
        self._right, self._decided = _counts(right), _counts(decided)

    def draw(self, draw: random.Random) -> list[float]:
        right = draw.betavariate(*self._right)
        decided = draw.betavariate(*self._decided)
        return [decided * right, decided * (1 - right), 1 - decided]


def _counts(clusters: Sequence[ClusterCount]) -> tuple[float, float]:
    """The parameters of a Beta distribution that tells as much as these clusters."""
    n, size = sum(one.n for one in clusters), effective_size(clusters)
    share = sum(one.count for one in clusters) / n
    return share * size + PSEUDO_COUNT, (1 - share) * size + PSEUDO_COUNT


class _Tables:
    """Draws of the judges' table: gold replies with random weights, and a pseudo-count in each cell."""

    def __init__(self, gold: Sequence[JudgedGold], labels: Labels) -> None:
        self._size = len(labels.all)
        cells = [_cells([one], labels) for one in gold]
        self._replies = [
            [(at, n) for at, n in enumerate([*(n for row in rows for n in row), *spurious]) if n]
            for rows, spurious in cells
        ]
        """The cells of each reply that are not 0: rows one after another, then spurious labels."""
        k = len(self._replies)
        # With few replies, weights vary more, as Student's quantile is larger than the normal one.
        ratio = NormalDist().inv_cdf(1 - _TAIL) / student_quantile(1 - _TAIL, k - 1)
        self._shape = (k - 1) / (k + 1) * ratio**2

    def draw(self, draw: random.Random) -> Table:
        size, wide = self._size, self._size + 1
        cells = [draw.gammavariate(PSEUDO_COUNT, 1.0) for _ in range(size * wide + size)]
        for reply in self._replies:
            weight = draw.gammavariate(self._shape, 1 / self._shape)
            for at, n in reply:
                cells[at] += weight * n
        spurious = cells[size * wide :]
        everything = fsum(cells[: size * wide])
        rows = [cells[i * wide : (i + 1) * wide] for i in range(size)]
        return [[row[j] / fsum(row) + spurious[j] / everything for j in range(size)] for row in rows]


def solve(table: Sequence[Sequence[float]], wanted: Sequence[float]) -> list[float] | None:
    """Solve a small linear system by elimination with pivoting; None if it is singular."""
    rows = [[*row, value] for row, value in zip(table, wanted, strict=True)]
    size = len(rows)
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        if abs(rows[pivot][column]) < 1e-9:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for row in range(size):
            if row != column:
                factor = rows[row][column] / rows[column][column]
                rows[row] = [a - factor * b for a, b in zip(rows[row], rows[column], strict=True)]
    return [rows[row][size] / rows[row][row] for row in range(size)]


# A share of things of a kind, corrected for the errors of what tells the kind. Pure functions, checked by simulation.
#
# A test finds a share of those that are of the kind (its sensitivity) and wrongly gives the kind to a share of the
# others (its false alarms). Both were counted where the truth is known. So an observed share is corrected by Rogan and
# Gladen's formula: (observed - false alarms) / (sensitivity - false alarms), cut off at 0 and 1.

PREVALENCE_DRAWS = 4_000
_LEAST_SIZE, _MOST_SIZE = 0.01, 1e6
_HALVINGS = 25
"""Of the ratio of these two: to five digits."""


@dataclass(frozen=True)
class ErrorRates:
    """What a test did where the truth is known."""

    found: tuple[ClusterCount, ...]
    """Of those of the kind, how many the test gave the kind, in each cluster, such as the scenarios."""
    wrongly: tuple[ClusterCount, ...]
    """Of the others, how many it gave the kind."""

    @property
    def sensitivity(self) -> float:
        return _share(self.found)

    @property
    def false_alarms(self) -> float:
        return _share(self.wrongly)


def _share(clusters: Sequence[ClusterCount]) -> float:
    return sum(one.count for one in clusters) / sum(one.n for one in clusters)


def rogan_gladen(observed: float, sensitivity: float, false_alarms: float) -> float:
    """The true share behind an observed one, if the test's rates are known; may be below 0 or above 1."""
    return (observed - false_alarms) / (sensitivity - false_alarms)


def independent_size(share: float, limits: Interval) -> float:
    """How many independent yes-or-no values would give a share limits as far apart as these, by the mid-P method."""
    width = limits.high - limits.low
    least, most = _LEAST_SIZE, _MOST_SIZE
    for _ in range(_HALVINGS):
        middle = math.sqrt(least * most)
        found = mid_p_limits(share, middle)
        least, most = (middle, most) if found.high - found.low > width else (least, middle)
    return most


def corrected_limits(
    observed: float, size: float, rates: ErrorRates, *, seed: int, draws: int = PREVALENCE_DRAWS
) -> Interval | None:
    """95% limits of a corrected share, that carry the error of the observed share and of both rates.

    Limits are those of all draws, cut off at 0 and 1, widened to those of the draws in range: where most draws are out
    of range, the first alone would have no width. None if hardly any draw is in range: the rates then do not fit what
    was observed. `size` is the number of independent values that the observed share rests on.
    """
    draw = random.Random(seed)  # noqa: S311 - for draws, not for secrets
    values: list[float] = []
    found_n, wrongly_n = (effective_size(clusters) for clusters in (rates.found, rates.wrongly))
    for _ in range(draws):
        share = _draw(draw, observed * size, size)
        found = _draw(draw, rates.sensitivity * found_n, found_n)
        wrongly = _draw(draw, rates.false_alarms * wrongly_n, wrongly_n)
        if found > wrongly:
            values.append(rogan_gladen(share, found, wrongly))
    values.sort()
    in_range = [value for value in values if 0 <= value <= 1]
    if len(in_range) < _TAIL * draws or len(values) < (1 - _TAIL) * draws:
        return None
    ends = [quantile(listed, tail) for listed in (values, in_range) for tail in (_TAIL, 1 - _TAIL)]
    return Interval(max(0.0, min(ends)), min(1.0, max(ends)))


def _draw(draw: random.Random, count: float, n: float) -> float:
    return draw.betavariate(count + PSEUDO_COUNT, n - count + PSEUDO_COUNT)
