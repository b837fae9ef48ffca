"""Components of variance by Henderson's method 1, with any group of observations left out. Pure functions.

For each random factor, for the observations and for the total, the uncorrected sum of squares T = sum over groups of
(sum of group)**2 / (size of group) is set equal to its expectation, which is linear in the components; the equations
are then solved. The method assumes neither balance nor normality, only that all effects are independent with mean 0
and, within a factor, equal variance. For balanced data, these are the ANOVA estimates. An estimate can be below 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from .comparison import ROUNDING
from .confusion import solve

Factor = Sequence[Hashable]
"""The group of each observation."""


@dataclass(frozen=True)
class _Sums:
    """What the equation of one factor needs."""

    squares: float
    """T."""
    groups: int
    coefficients: tuple[float, ...]
    """Of each other factor's component in the expectation of T: the sum of n(g and h)**2 / n(g) over groups g of this
    factor and h of the other."""
    pairs: tuple[int, ...]
    """Number of combinations of groups with each other factor."""


class _Grouping:
    """The observations by the groups of one factor."""

    def __init__(self, factor: Factor, others: Sequence[Factor], values: Sequence[float]) -> None:
        self.factor, self.others, self.values = factor, others, values
        self.sizes = Counter(factor)
        self.totals = _totals(factor, values)
        self.both = [Counter(zip(factor, other, strict=True)) for other in others]
        self.overlaps: list[Counter[Hashable]] = []
        for counts in self.both:
            overlap: Counter[Hashable] = Counter()
            for (group, _), count in counts.items():
                overlap[group] += count * count
            self.overlaps.append(overlap)
        self.sums = _Sums(
            math.fsum(total * total / self.sizes[group] for group, total in self.totals.items()),
            len(self.sizes),
            tuple(
                math.fsum(count / self.sizes[group] for group, count in overlap.items()) for overlap in self.overlaps
            ),
            tuple(map(len, self.both)),
        )

    def without(self, gone: Sequence[int]) -> _Sums:
        """The sums with these observations left out; only their groups are looked at."""
        if not gone:
            return self.sums
        factor = [self.factor[at] for at in gone]
        fewer, less = Counter(factor), _totals(factor, [self.values[at] for at in gone])
        squares = self.sums.squares
        for group, size in fewer.items():
            left, total = self.sizes[group] - size, self.totals[group]
            squares += ((total - less[group]) ** 2 / left if left else 0.0) - total * total / self.sizes[group]
        coefficients, pairs = [], []
        for at, other in enumerate(self.others):
            counts = self.both[at]
            removed = Counter(zip(factor, (other[one] for one in gone), strict=True))
            change: Counter[Hashable] = Counter()
            for pair, count in removed.items():
                change[pair[0]] += (counts[pair] - count) ** 2 - counts[pair] ** 2
            found = self.sums.coefficients[at]
            for group, size in fewer.items():
                overlap, left = self.overlaps[at][group], self.sizes[group] - size
                found += ((overlap + change[group]) / left if left else 0.0) - overlap / self.sizes[group]
            coefficients.append(found)
            pairs.append(self.sums.pairs[at] - sum(counts[pair] == count for pair, count in removed.items()))
        groups = self.sums.groups - sum(self.sizes[group] == size for group, size in fewer.items())
        return _Sums(squares, groups, tuple(coefficients), tuple(pairs))


def _totals(factor: Factor, values: Sequence[float]) -> dict[Hashable, float]:
    found: dict[Hashable, list[float]] = {}
    for group, value in zip(factor, values, strict=True):
        found.setdefault(group, []).append(value)
    return {group: math.fsum(members) for group, members in found.items()}


class Moments:
    """Observations with their factors, ready to be estimated with any of them left out."""

    def __init__(self, factors: Sequence[Factor], values: Sequence[float]) -> None:
        n = len(values)
        mean = math.fsum(values) / n if n else 0.0
        centered = [value - mean for value in values]  # Keeps the sums small; nothing else changes.
        self._n = n
        self._rounding = ROUNDING * max(map(abs, values), default=0.0) ** 2
        self._squares = [value * value for value in centered]
        self._all_squares = math.fsum(self._squares)
        self._total = _Grouping([None] * n, factors, centered)
        self._factors = [_Grouping(factor, factors, centered) for factor in factors]

    def separate(self) -> list[int]:
        """The places of the factors that have several groups, which are not those of an earlier factor."""
        return _separate([factor.sums for factor in self._factors])

    def estimate(self, gone: Iterable[int] = ()) -> list[float | None]:
        """The unclipped components, the residual last, without these observations.

        None for a factor with a single group, or with the same groups as an earlier factor, whose component then
        includes both. All are None if the data cannot separate them.
        """
        out = list(gone)
        n = self._n - len(out)
        found: list[float | None] = [None] * (len(self._factors) + 1)
        if n < 2:
            return found
        total = self._total.without(out)
        sums = [factor.without(out) for factor in self._factors]
        apart = _separate(sums)
        base = [*(total.coefficients[at] for at in apart), 1.0]
        table, wanted = [], []
        for at in apart:
            row = [*(sums[at].coefficients[other] for other in apart), float(sums[at].groups)]
            table.append([(a - b) / n for a, b in zip(row, base, strict=True)])
            wanted.append((sums[at].squares - total.squares) / n)
        table.append([(n - b) / n for b in base])
        squares = self._all_squares - math.fsum(self._squares[at] for at in out)
        wanted.append((squares - total.squares) / n)
        solved = solve(table, wanted)
        if solved is not None:
            for at, value in zip((*apart, len(sums)), solved, strict=True):
                found[at] = 0.0 if abs(value) <= self._rounding else value
        return found


def _separate(sums: Sequence[_Sums]) -> list[int]:
    return [
        at
        for at, one in enumerate(sums)
        if one.groups > 1 and not any(sums[o].groups == one.groups == one.pairs[o] for o in range(at))
    ]
