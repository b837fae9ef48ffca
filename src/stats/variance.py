"""Where the variation of scores comes from: components of variance by restricted maximum likelihood. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from .comparison import ROUNDING
from .reml import reml

RESIDUAL = "residual"


@dataclass(frozen=True)
class Component:
    """One source of variance."""

    name: str
    groups: int
    """Number of groups of the factor; for the residual, number of observations."""
    variance: float | None
    share: float | None
    """Share of the sum of all components; None if the sum is 0."""


@dataclass(frozen=True)
class Components:
    n: int
    total: float | None
    parts: tuple[Component, ...]
    """In the order of the factors, the residual last.

    A factor's variance is None if it has a single group, or the same groups as an outer factor (whose variance then
    includes both). All are None if the data cannot separate them.
    """
    merged: tuple[str, ...]
    """Inner levels with one value per group: they cannot be separated from the residual and are counted in it."""
    method: Literal["REML", "none"]
    """How the components were estimated; none if there is no estimate."""

    def part(self, name: str) -> Component:
        return next(part for part in self.parts if part.name == name)


def nested(
    values: Sequence[tuple[Sequence[str], float]], levels: Sequence[str] = ("scenario", "variant", "repeat")
) -> Components:
    """Components of nested random effects; each value has a path with one name per level, outermost first.

    A name is unique only within its parents.
    """
    for path, _ in values:
        if len(path) != len(levels):
            raise ValueError(f"the path {tuple(path)} does not have one name for each of {tuple(levels)}")
    groups = [len({tuple(path[: depth + 1]) for path, _ in values}) for depth in range(len(levels))]
    names = list(levels)
    while len(names) > 1 and groups[len(names) - 1] == len(values):
        names.pop()
    apart = [at for at in range(len(names)) if groups[at] > (groups[at - 1] if at else 1)]
    found: list[float | None] = [None] * (len(names) + 1)
    if not apart or groups[apart[-1]] < len(values):
        paths = [[tuple(path[: at + 1]) for at in apart] for path, _ in values]
        estimates = reml(paths, [value for _, value in values])
        for at, one in zip((*apart, len(names)), estimates or (), strict=bool(estimates)):
            found[at] = one
    return _components(names, [*groups[: len(names)], len(values)], found, merged=tuple(levels[len(names) :]))


def crossed(values: Mapping[tuple[str, str], float]) -> Components:
    """Components of trials and judges as crossed random factors, from the trials that have a value of every judge.

    Their interaction cannot be separated from the residual and is counted in it. The share of trials is the intraclass
    correlation ICC(2,1), the reliability of one judge's value (unless a component is 0).
    """
    columns = list(dict.fromkeys(column for _, column in values))
    cells: dict[str, dict[str, float]] = {}
    for (row, column), value in values.items():
        cells.setdefault(row, {})[column] = value
    rows = [[found[column] for column in columns] for found in cells.values() if len(found) == len(columns)]
    found = _balanced(rows) if min(len(rows), len(columns)) > 1 else [None] * 3
    return _components(("trial", "judge"), [len(rows), len(columns), len(rows) * len(columns)], found)


def _balanced(rows: Sequence[Sequence[float]]) -> list[float | None]:
    """The components of rows, columns and the residual.

    With every cell filled, REML has a closed form: mean squares, of which one that is below the residual's is pooled
    with it, the smallest first.
    """
    n, k = len(rows), len(rows[0])
    by_row = [math.fsum(row) / k for row in rows]
    by_column = [math.fsum(column) / n for column in zip(*rows, strict=True)]
    mean = math.fsum(by_row) / n
    left = math.fsum(
        (value - row - column + mean) ** 2
        for values, row in zip(rows, by_row, strict=True)
        for value, column in zip(values, by_column, strict=True)
    )
    least = (ROUNDING * max(abs(value) for row in rows for value in row)) ** 2
    factors = [
        (k * math.fsum((one - mean) ** 2 for one in by_row), n - 1, k),
        (n * math.fsum((one - mean) ** 2 for one in by_column), k - 1, n),
    ]
    squares, degrees = left, (n - 1) * (k - 1)
    for own, free, _ in sorted(factors, key=lambda factor: factor[0] / factor[1]):
        if own / free < squares / degrees:
            squares, degrees = squares + own, degrees + free
    residual = squares / degrees
    found = [max(0.0, (own / free - residual) / each) for own, free, each in factors]
    return [0.0 if one <= least else one for one in (*found, residual)]


def _components(
    names: Sequence[str], groups: Sequence[int], found: Sequence[float | None], *, merged: tuple[str, ...] = ()
) -> Components:
    """Of the factors and the residual."""
    total = None if found[-1] is None else math.fsum(one for one in found if one is not None)
    parts = tuple(
        Component(name, number, one, one / total if total and one is not None else None)
        for name, number, one in zip((*names, RESIDUAL), groups, found, strict=True)
    )
    return Components(groups[-1], total, parts, merged, "none" if total is None else "REML")
