"""Where the variation of scores comes from: components of variance by restricted maximum likelihood. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from .comparison import ROUNDING
from .confusion import solve

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


# Components of variance of nested random effects by restricted maximum likelihood (REML). Pure functions.
#
# The model is: value = mean + effect of each nested group it is in + residual, where all effects are independent and
# normal. Groups of one parent are independent given the parent, so the likelihood factors from the innermost level
# outward: a group's mean has the variance 1 / (sum of the weights of its members) around the group's own level. No
# matrix larger than the number of components is needed, and one evaluation takes time in proportion to the groups.
#
# The maximum is found by scoring with the average information matrix (Gilmour, Thompson and Cullis 1995). Components
# stay at or above 0. A step that does not raise the likelihood is halved; if that does not help, other directions are
# tried, at last a step of the EM algorithm, which always raises it. Checked against lme4 and statsmodels.

MOST_STEPS = 200
_PRECISE = 1e-10
"""Stop if a full step would raise the log likelihood by less than this."""
_HALVINGS = 12


@dataclass(frozen=True)
class _Groups:
    """The groups of all levels, outermost first, and the values of the innermost ones summed up."""

    parents: list[list[int]]
    """For each level, the place of each group's parent in the level above; 0 at the outermost level."""
    sizes: list[int]
    means: list[float]
    within: float
    """The sum of squared distances of values from the mean of their innermost group."""

    @cached_property
    def n(self) -> int:
        return sum(self.sizes)


def reml(paths: Sequence[Sequence[Hashable]], values: Sequence[float]) -> list[float] | None:
    """The components of each level, outermost first, and of the residual.

    Args:
        paths: for each value, the name of its group at each level; a name is unique only within its parents. Every
            level must have more groups than the one above it, and fewer than there are values. Without a level, all
            variance is the residual's.
        values: as many as there are paths.

    Returns:
        None if the data cannot separate the components, or if the search does not end.
    """
    levels, n = len(paths[0]) if paths else 0, len(values)
    if n < (3 if levels else 2):
        return None
    mean = math.fsum(values) / n
    scale = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    if scale <= (1e-12 * max(map(abs, values))) ** 2:
        return [0.0] * (levels + 1)
    if not levels:
        return [scale]
    spread = math.sqrt(scale)
    groups = _grouped(paths, [(value - mean) / spread for value in values])
    if groups.within <= 1e-20 * n:
        # Equal values within every innermost group: its residual is 0, and the level takes the residual's place.
        return _without_residual(paths, values)
    found = _search(groups)
    return None if found is None else [scale * one for one in found]


def _without_residual(paths: Sequence[Sequence[Hashable]], values: Sequence[float]) -> list[float] | None:
    means = {tuple(path): value for path, value in zip(paths, values, strict=True)}
    if len(paths[0]) > 1:
        found = reml([path[:-1] for path in means], list(means.values()))
        return None if found is None else [*found, 0.0]
    mean = math.fsum(means.values()) / len(means)
    return [math.fsum((value - mean) ** 2 for value in means.values()) / (len(means) - 1), 0.0]


def _grouped(paths: Sequence[Sequence[Hashable]], values: Sequence[float]) -> _Groups:
    levels = len(paths[0])
    places: list[dict[tuple[Hashable, ...], int]] = [{} for _ in range(levels)]
    parents: list[list[int]] = [[] for _ in range(levels)]
    members: list[list[float]] = []
    for path, value in zip(paths, values, strict=True):
        whole = tuple(path)
        if whole not in places[-1]:
            above = 0
            for depth in range(levels):
                place = places[depth].setdefault(whole[: depth + 1], len(places[depth]))
                if place == len(parents[depth]):
                    parents[depth].append(above)
                above = place
            members.append([])
        members[places[-1][whole]].append(value)
    means = [math.fsum(found) / len(found) for found in members]
    within = math.fsum(
        math.fsum((value - mean) ** 2 for value in found) for found, mean in zip(members, means, strict=True)
    )
    return _Groups(parents, [len(found) for found in members], means, within)


@dataclass(frozen=True)
class _Weights:
    """What depends on the components alone: the weight of each group's mean, and the precision of its level."""

    components: Sequence[float]
    own: list[list[float]]
    """For each level, 1 / variance of each group's mean around the group's own level."""
    weights: list[list[float]]
    """For each level, 1 / variance of each group's mean around its parent's level."""
    above: list[list[float]]
    """For each level, the sum of weights of each parent; the first has one entry, for the mean of all."""


def _weigh(groups: _Groups, components: Sequence[float]) -> _Weights:
    own: list[list[float]] = [[size / components[-1] for size in groups.sizes]]
    weights: list[list[float]] = []
    for depth in reversed(range(len(groups.parents))):
        weights.append([one / (1 + components[depth] * one) for one in own[-1]])
        sums = [0.0] * (len(groups.parents[depth - 1]) if depth else 1)
        for parent, weight in zip(groups.parents[depth], weights[-1], strict=True):
            sums[parent] += weight
        own.append(sums)
    own.reverse()
    weights.reverse()
    return _Weights(components, own[1:], weights, own[:-1])


@dataclass(frozen=True)
class _Projected:
    """P times a vector, where P is the inverse covariance with the mean of all projected out, summed over groups."""

    sums: list[list[float]]
    """For each level, the sum over each group."""
    ends: list[float]
    """The distance of each innermost group's mean from its predicted level."""
    squares: float
    """The vector times P times the vector, without what varies within innermost groups."""


def _project(groups: _Groups, weighed: _Weights, means: Sequence[float]) -> _Projected:
    """For a vector with these means of innermost groups."""
    levels = len(groups.parents)
    at: list[Sequence[float]] = [means]
    squares = 0.0
    for depth in reversed(range(levels)):
        sums = [0.0] * len(weighed.above[depth])
        for parent, weight, value in zip(groups.parents[depth], weighed.weights[depth], at[-1], strict=True):
            sums[parent] += weight * value
        centers = [one / weight for one, weight in zip(sums, weighed.above[depth], strict=True)]
        squares += math.fsum(
            weight * (value - centers[parent]) ** 2
            for parent, weight, value in zip(groups.parents[depth], weighed.weights[depth], at[-1], strict=True)
        )
        at.append(centers)
    predicted: Sequence[float] = at.pop()
    found: list[list[float]] = []
    for depth in range(levels):
        here = at.pop()
        found.append(
            [
                weight * (value - predicted[parent])
                for parent, weight, value in zip(groups.parents[depth], weighed.weights[depth], here, strict=True)
            ]
        )
        component = weighed.components[depth]
        predicted = [
            predicted[parent] + component * one for parent, one in zip(groups.parents[depth], found[-1], strict=True)
        ]
    ends = [mean - one for mean, one in zip(means, predicted, strict=True)]
    return _Projected(found, ends, squares)


def _likelihood(groups: _Groups, weighed: _Weights, squares: float) -> float:
    """The restricted log likelihood, without its constant."""
    residual = weighed.components[-1]
    logs = (groups.n - len(groups.sizes)) * math.log(residual)
    for depth, weights in enumerate(weighed.weights):
        logs += math.fsum(map(math.log, weighed.above[depth])) - math.fsum(map(math.log, weights))
    return -0.5 * (logs + groups.within / residual + squares)


def _traces(groups: _Groups, weighed: _Weights) -> list[float]:
    """The trace of P times the covariance of each component, the residual last."""
    uncertain = [1 / weighed.above[0][0]]
    found = []
    for depth, weights in enumerate(weighed.weights):
        parents, component = groups.parents[depth], weighed.components[depth]
        found.append(math.fsum(w - w * w * uncertain[p] for p, w in zip(parents, weights, strict=True)))
        kept = [1 / (1 + component * own) for own in weighed.own[depth]]
        uncertain = [k * component + k * k * uncertain[p] for p, k in zip(parents, kept, strict=True)]
    residual = weighed.components[-1]
    lost = math.fsum(size * one for size, one in zip(groups.sizes, uncertain, strict=True))
    return [*found, groups.n / residual - lost / residual**2]


@dataclass(frozen=True)
class _Step:
    """The slope of the log likelihood at some components, the average information, and where EM would go."""

    slope: list[float]
    information: list[list[float]]
    em: list[float]


def _step(groups: _Groups, weighed: _Weights, projected: _Projected) -> _Step:
    components, residual = weighed.components, weighed.components[-1]
    sizes, last = groups.sizes, len(components) - 1
    squares = [math.fsum(one * one for one in sums) for sums in projected.sums]
    ends = [one / residual for one in projected.ends]
    squares.append(groups.within / residual**2 + math.fsum(m * e * e for m, e in zip(sizes, ends, strict=True)))
    traces = _traces(groups, weighed)
    slope = [0.5 * (square - trace) for square, trace in zip(squares, traces, strict=True)]
    counts = [*map(len, groups.parents), groups.n]
    em = [c + 2 * c * c * s / count for c, s, count in zip(components, slope, counts, strict=True)]
    information = [[0.0] * (last + 1) for _ in components]
    for at, means in enumerate([*_spread_out(groups, projected.sums), ends]):
        again = _project(groups, weighed, means)
        for other in range(min(at, last - 1) + 1):
            both = math.fsum(a * b for a, b in zip(projected.sums[other], again.sums[other], strict=True))
            information[at][other] = information[other][at] = 0.5 * both
        if at == last:
            inner = math.fsum(m * a * b for m, a, b in zip(sizes, ends, again.ends, strict=True)) / residual
            information[at][at] = 0.5 * (groups.within / residual**3 + inner)
    return _Step(slope, information, em)


def _spread_out(groups: _Groups, sums: Sequence[Sequence[float]]) -> list[list[float]]:
    """For each level, the number of each group, given to all innermost groups in it."""
    found: list[list[float]] = []
    for depth, parents in enumerate(groups.parents):
        found = [[one[parent] for parent in parents] for one in found]
        found.append(list(sums[depth]))
    return found


@dataclass(frozen=True)
class _Point:
    """Components tried in the search, and the likelihood there."""

    weighed: _Weights
    projected: _Projected
    likelihood: float


def _at(groups: _Groups, components: Sequence[float]) -> _Point:
    weighed = _weigh(groups, components)
    projected = _project(groups, weighed, groups.means)
    return _Point(weighed, projected, _likelihood(groups, weighed, projected.squares))


def _search(groups: _Groups) -> list[float] | None:
    """The components with the highest likelihood, for values of variance 1; None if the search does not end."""
    size = len(groups.parents) + 1
    point = _at(groups, [1 / size] * size)
    for _ in range(MOST_STEPS):
        now = list(point.weighed.components)
        step = _step(groups, point.weighed, point.projected)
        free = [at for at in range(size) if now[at] > 0 or step.slope[at] > 0]
        scored = solve([[step.information[a][b] for b in free] for a in free], [step.slope[at] for at in free])
        ahead = dict(zip(free, scored, strict=True)) if scored else _uphill(step, now, free)
        if math.fsum(step.slope[at] * ahead[at] for at in free) < _PRECISE:
            return [max(0.0, one + ahead.get(at, 0.0)) for at, one in enumerate(now)]
        point = (
            _raised(groups, point, ahead)
            or _raised(groups, point, _uphill(step, now, free))
            or _at(groups, [max(0.0, one) for one in step.em])
        )
    return None


def _uphill(step: _Step, now: Sequence[float], free: Sequence[int]) -> dict[int, float]:
    """A direction in which no component goes against its slope: those that fall go to 0, others as far as EM goes.

    It is needed far from the maximum, and where the average information is 0: at a level whose means do not differ.
    """
    last = len(now) - 1
    return {at: -now[at] if step.slope[at] < 0 and at < last else step.em[at] - now[at] for at in free}


def _raised(groups: _Groups, point: _Point, ahead: dict[int, float]) -> _Point | None:
    """A point of higher likelihood in this direction; None if there is none near."""
    now = point.weighed.components
    for halvings in range(_HALVINGS):
        new = [max(0.0, one + ahead.get(at, 0.0) / 2**halvings) for at, one in enumerate(now)]
        if new[-1] > 0:
            found = _at(groups, new)
            if found.likelihood > point.likelihood:
                return found
    return None
