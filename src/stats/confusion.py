"""A judge's errors: a confusion matrix, measures computed from it, and rates corrected for it. Pure functions.

A matrix counts claims by gold label and given label. A given label of None means that the judge gave nothing usable. It
counts as a miss in sensitivity and as an error in accuracy, but not as a false alarm in specificity. Resampling adds
half a claim to every cell of a gold label's row, so that an error that was not observed is not treated as impossible.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from .agreement import quantile
from .clustered import ClusteredShare, Tally, clustered_share

Matrix = Mapping[tuple[str, str | None], int]


Confusion = Mapping[tuple[str, str], int]
"""One reply's claims by gold label and by what they were given: a label, or the name of what happened instead."""


def share_right(replies: Sequence[Confusion]) -> ClusteredShare:
    """Of all gold claims, the share that got their gold label."""
    return clustered_share(
        [Tally(sum(n for (gold, given), n in one.items() if gold == given), sum(one.values())) for one in replies]
    )


def recall(replies: Sequence[Confusion], label: str) -> ClusteredShare:
    """Of the claims with this gold label, the share that got it."""
    return clustered_share(
        [Tally(one.get((label, label), 0), sum(n for (gold, _), n in one.items() if gold == label)) for one in replies]
    )


def precision(replies: Sequence[Confusion], label: str) -> ClusteredShare:
    """Of the gold claims that got this label, the share whose gold label it is."""
    return clustered_share(
        [Tally(one.get((label, label), 0), sum(n for (_, given), n in one.items() if given == label)) for one in replies]
    )


def resampled(matrix: Matrix, seed: int, resamples: int) -> list[Counter[tuple[str, str | None]]]:
    """Matrices of the same size, resampled from this one within each gold label."""
    draw = random.Random(seed)  # noqa: S311 - for resampling, not for secrets
    golds = sorted({gold for (gold, _), n in matrix.items() if n})
    rows: dict[str, list[tuple[tuple[str, str | None], float]]] = {}
    for gold in golds:
        given: list[str | None] = [*golds, *([None] if matrix.get((gold, None)) else [])]
        seen = [label for label in given if label is not None]
        rows[gold] = [((gold, label), matrix.get((gold, label), 0) + 0.5 * (label in seen)) for label in given]
    sizes = {gold: sum(n for (one, _), n in matrix.items() if one == gold) for gold in golds}
    found = []
    for _ in range(resamples):
        drawn: Counter[tuple[str, str | None]] = Counter()
        for gold, cells in rows.items():
            drawn.update(draw.choices([cell for cell, _ in cells], [n for _, n in cells], k=sizes[gold]))
        found.append(drawn)
    return found


def corrected_shares(observed: Mapping[str, float], matrix: Matrix, labels: Sequence[str]) -> dict[str, float] | None:
    """Rogan and Gladen's estimator for several labels: the true shares that would give these observed shares.

    The matrix is read as P(given | gold) over claims with a verdict. The solution is clipped to [0, 1] and scaled to
    sum to 1. None if the matrix does not distinguish the labels.
    """
    rows = {gold: [matrix.get((gold, given), 0) for given in labels] for gold in labels}
    totals = {gold: sum(rows[gold]) for gold in labels}
    if not all(totals.values()):
        return None
    # sum over gold of P(given | gold) * share(gold) = observed(given)
    table = [[rows[gold][column] / totals[gold] for gold in labels] for column in range(len(labels))]
    solved = solve(table, [observed.get(label, 0.0) for label in labels])
    if solved is None:
        return None
    clipped = [min(1.0, max(0.0, value)) for value in solved]
    total = fsum(clipped)
    return {label: value / total for label, value in zip(labels, clipped, strict=True)} if total else None


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


@dataclass(frozen=True)
class Corrected:
    """A rate as the judges gave it, and corrected for their errors with an interval."""

    raw: float | None
    value: float | None
    low: float | None
    high: float | None


def corrected_accuracy(
    trials: Sequence[Mapping[str, int]],
    matrix: Matrix,
    labels: tuple[str, str, str],
    *,
    seed: int,
    resamples: int = 1_000,
) -> Corrected:
    """Corrected accuracy over all claims of these trials; `labels` are supported, contradicted, neither.

    The interval resamples whole trials, and the gold claims within each label: it includes both the variation of the
    target's answers and the uncertainty about the judge.
    """

    def value(counts: Mapping[str, int], seen: Matrix) -> float | None:
        total = sum(counts.values())
        if not total:
            return None
        shares = corrected_shares({label: counts.get(label, 0) / total for label in labels}, seen, labels)
        if shares is None or shares[labels[0]] + shares[labels[1]] == 0:
            return None
        return shares[labels[0]] / (shares[labels[0]] + shares[labels[1]])

    pooled = _sum(trials)
    decided = pooled[labels[0]] + pooled[labels[1]]
    raw = pooled[labels[0]] / decided if decided else None
    point = value(pooled, matrix)
    if point is None or len(trials) < 2:
        return Corrected(raw, point, None, None)
    draw = random.Random(seed)  # noqa: S311 - for resampling, not for secrets
    found = []
    for drawn in resampled(matrix, seed + 1, resamples):
        again = value(_sum(draw.choices(trials, k=len(trials))), drawn)
        if again is not None:
            found.append(again)
    found.sort()
    return Corrected(raw, point, quantile(found, 0.025) if found else None, quantile(found, 0.975) if found else None)


def _sum(counts: Sequence[Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return total
