"""Has a system changed, when the same study is repeated again and again? Pure functions; tested by simulation.

Testing every new run against the first one is wrong nearly half of the time within two years, and the chance error of
the first run never goes away. So each point is compared with the mean of all points before it, scenario by scenario.
Scaled by sqrt(n / (n + 1)), these differences are independent of each other as long as nothing changes (they are the
recursive residuals of a constant mean), whatever the level of a scenario is.

The alarm is a two-sided CUSUM, with a limit for single points besides, of one number per point: the weighted sum of
the differences over scenarios, divided by its standard error. The error comes from how much scenarios differ from each
other, in this point and in those before it. Scenarios are the independent units: what is asked within one may depend on
each other. What is learned of chance in one segment is kept in the next; the level is not. The threshold is simulated
for the study's own design (`monitoring_limits`).

The claim is an e-process: a bet against "nothing has ever changed", whose wealth exceeds 1/alpha with a probability of
at most alpha, at however many looks. For every scenario and point, the wealth is multiplied by 1 + b d, where d is the
difference, and b is fixed before it is seen and never so large that the wealth could be lost. The wealth is divided
among changes at every point and of several sizes, up and down. On average such a bet wins nothing if differences are
0 on average, given those before. With normal noise that is exact; for shares of answers, whose differences are only
uncorrelated, it was checked by simulation (docs/series_coverage.md), also where answers are nearly always right.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

SLACK = 0.5
"""Standard errors that a point must differ by before it adds to the CUSUM: half the shift that it finds fastest."""
JUMP = 1.0
"""A single point raises the alarm if it differs by the threshold less this: a large change need not wait for more."""
SIZES = (1.0, 2.0, 4.0)
"""The changes that the e-process bets on, as multiples of the floor."""
LEAST_FLIPS = 0.05
LEAST_DEGREES = 2
"""Chance is never taken to be less than if one answer in twenty were a matter of chance, and begins with two degrees of
freedom of that. So answers that never differed before do not make the first one that does an alarm."""
MOST_AT_STAKE = 0.8
"""The share of its wealth that a bet can lose on one scenario at one point."""
FIRST_BETS = 4
"""How many points the assumed spread of yes-or-no answers weighs in the size of bets. No guarantee depends on it."""
Direction = Literal["up", "down"]


@dataclass(frozen=True)
class Cluster:
    """What the design says of one scenario, or of another independent unit."""

    weight: float
    """Questions asked in it."""
    answers: float
    """Answers to them at one point."""


@dataclass(frozen=True)
class Design:
    clusters: Mapping[str, Cluster]
    floor: float
    """The smallest change that matters."""

    def scale(self, name: str) -> float:
        """A cluster's weight relative to the mean."""
        return self.clusters[name].weight * len(self.clusters) / sum(one.weight for one in self.clusters.values())

    def noise(self, share: float) -> float:
        """The mean variance of a cluster's part, if answers are independent and right with this probability."""
        parts = (self.scale(name) ** 2 / one.answers for name, one in self.clusters.items())
        return share * (1 - share) * math.fsum(parts) / len(self.clusters)


@dataclass(frozen=True)
class Step:
    """One point of a line."""

    value: float | None
    """The weighted mean over the clusters that are compared, or over all at the first point; None if there are none."""
    reference: float | None
    """The same of the points before it; None at the first point."""
    z: float
    """The difference in standard errors, as a normal deviate."""
    up: float
    down: float
    """The CUSUM after this point, in either direction."""
    low: float | None
    high: float | None
    """A value outside of these raises an alarm."""
    alarm: Direction | None
    """Raised at this point or before, and not since then the other way."""
    since: int | None
    """The first point after the change, by the CUSUM; points are counted from 0."""
    log_wealth: float
    """Of the e-process, natural logarithm."""
    claim: Direction | None
    """Once made, a claim stays."""


@dataclass(frozen=True)
class PointDifference:
    """A point compared with those before it."""

    parts: tuple[float, ...]
    """Of each cluster: the difference, times its weight, times sqrt(n / (n + 1))."""
    scales: tuple[float, ...]
    """Their weights, which no part can pass."""
    error: float
    """Standard error of the sum of the parts."""
    degrees: int
    """Its degrees of freedom."""
    reach: float
    """The sum, if all clusters had moved by 1."""

    @property
    def total(self) -> float:
        return math.fsum(self.parts)

    @property
    def z(self) -> float:
        return normal_deviate(self.total / self.error, self.degrees)


@dataclass(frozen=True)
class ChanceVariance:
    """What is known of chance: sums of squares about their means, and their degrees of freedom."""

    squares: float = 0.0
    degrees: int = 0


class Cusum:
    """How far the points have moved, up and down."""

    def __init__(self, design: Design, learned: ChanceVariance | None = None) -> None:
        """`learned`: from points that these are not compared with, such as those of last year's key."""
        self.scales = {name: design.scale(name) for name in design.clusters}
        self.points = 0
        self.up = self.down = 0.0
        self.top_up = self.top_down = 0.0
        """What is compared with the threshold: the CUSUM, or the last difference alone."""
        self.up_since = self.down_since = 0
        """The point at which the present rise of either began."""
        self.means: dict[str, float] = {}
        """Of each cluster, over the points so far."""
        self._counts: dict[str, int] = {}
        self._least = design.noise(LEAST_FLIPS)
        known = learned or ChanceVariance()
        self._spread = LEAST_DEGREES * self._least + known.squares
        self._degrees = LEAST_DEGREES + known.degrees

    @property
    def noise(self) -> ChanceVariance:
        return ChanceVariance(self._spread - LEAST_DEGREES * self._least, self._degrees - LEAST_DEGREES)

    def add(self, values: Mapping[str, float]) -> PointDifference | None:
        """The next point. None if there is nothing to compare it with."""
        known = {name: values[name] for name in self.scales if name in values}
        found = self._compare(known)
        for name, one in known.items():
            n = self._counts.get(name, 0)
            self.means[name] = (self.means.get(name, 0.0) * n + one) / (n + 1)
            self._counts[name] = n + 1
        if found:
            self._cumulate(found.z)
        self.points += 1
        return found

    def _compare(self, known: Mapping[str, float]) -> PointDifference | None:
        parts, reaches, scales = [], [], []
        for name, value in known.items():
            if n := self._counts.get(name):
                scales.append(self.scales[name])
                reaches.append(self.scales[name] * math.sqrt(n / (n + 1)))
                parts.append(reaches[-1] * (value - self.means[name]))
        if not parts:
            return None
        n, reach = len(parts), math.fsum(reaches)
        # About a move that all share: it is no noise, now or later. A single cluster has no such spread.
        moved = math.fsum(parts) / reach
        self._spread += math.fsum([(part - moved * own) ** 2 for part, own in zip(parts, reaches, strict=True)])
        self._degrees += n - 1
        error = math.sqrt(n * max(self._spread / self._degrees, self._least))
        found = PointDifference(tuple(parts), tuple(scales), error, self._degrees, reach)
        if n == 1:
            self._spread += parts[0] ** 2
            self._degrees += 1
        return found

    def _cumulate(self, z: float) -> None:
        if not self.up:
            self.up_since = self.points
        if not self.down:
            self.down_since = self.points
        self.up = max(0.0, self.up + z - SLACK)
        self.down = max(0.0, self.down - z - SLACK)
        self.top_up, self.top_down = max(self.up, z + JUMP), max(self.down, JUMP - z)


@dataclass
class _Bet:
    """A part of the wealth, on a change of one size in one direction after so many points."""

    after: int
    size: float
    sign: int
    log_wealth: float


class Wealth:
    """The e-process: how much a bet against "nothing has changed" has won."""

    def __init__(self, design: Design) -> None:
        self._floor = design.floor
        self._held = FIRST_BETS * len(design.clusters)
        self._variance = design.noise(0.5)
        self._squares, self._seen = 0.0, 0
        self._bets: list[_Bet] = []
        self._points = 0

    def add(self, found: PointDifference) -> None:
        """A point that follows on at least one other."""
        self._points = t = self._points + 1
        variance = (self._squares + self._held * self._variance) / (self._seen + self._held)
        share = math.log(1 / (2 * len(SIZES) * t * (t + 1)))
        self._bets += [_Bet(t, size, sign, share) for size in SIZES for sign in (1, -1)]
        moved = [(part, MOST_AT_STAKE / scale) for part, scale in zip(found.parts, found.scales, strict=True) if part]
        for bet in self._bets:
            stake = bet.size * self._floor * bet.after / math.sqrt(t * (t + 1)) / variance
            bet.log_wealth += math.fsum([math.log1p(bet.sign * min(stake, most) * part) for part, most in moved])
        self._squares += math.fsum([part * part for part in found.parts])
        self._seen += len(found.parts)

    @property
    def log(self) -> float:
        """The natural logarithm of all wealth; what is not bet yet counts as well."""
        logs = [bet.log_wealth for bet in self._bets] + [-math.log(self._points + 1)]
        most = max(logs)
        return most + math.log(math.fsum([math.exp(one - most) for one in logs]))

    @property
    def direction(self) -> Direction:
        """Of the bet that won most."""
        return "up" if max(self._bets, key=lambda bet: bet.log_wealth).sign > 0 else "down"


class Monitor:
    """Follows one line point by point."""

    def __init__(self, design: Design, *, limit: float, level: float, learned: ChanceVariance | None = None) -> None:
        """`limit` is the threshold of the CUSUM; a claim is made when the wealth reaches 1 / level."""
        self._limit = limit
        self._needed = -math.log(level)
        self._cusum, self._wealth = Cusum(design, learned), Wealth(design)
        self._alarm: Direction | None = None
        self._since: int | None = None
        self._claim: Direction | None = None

    @property
    def noise(self) -> ChanceVariance:
        """What is known of chance by now."""
        return self._cusum.noise

    def add(self, values: Mapping[str, float]) -> Step:
        """The next point: a value from 0 to 1 per cluster. Clusters that were not measured are left out."""
        cusum, held = self._cusum, (self._cusum.down, self._cusum.up)
        before = {name: mean for name, mean in cusum.means.items() if name in values}
        value = self._mean({name: values[name] for name in before} or values)
        reference = self._mean(before)
        found = cusum.add(values)
        if not found or reference is None:
            return self._step(value, None, 0.0)
        self._wealth.add(found)
        if cusum.top_up > self._limit and self._alarm != "up":
            self._alarm, self._since, cusum.down = "up", cusum.up_since, 0.0
        elif cusum.top_down > self._limit and self._alarm != "down":
            self._alarm, self._since, cusum.up = "down", cusum.down_since, 0.0
        if self._claim is None and self._wealth.log >= self._needed:
            self._claim = self._wealth.direction
        down, up = (
            student_deviate(min(self._limit + SLACK - one, self._limit - JUMP), found.degrees)
            * found.error
            / found.reach
            for one in held
        )
        return self._step(value, reference, found.z, max(0.0, reference - down), min(1.0, reference + up))

    def _mean(self, values: Mapping[str, float]) -> float | None:
        scales = {name: self._cusum.scales[name] for name in values if name in self._cusum.scales}
        if not scales:
            return None
        return math.fsum(scale * values[name] for name, scale in scales.items()) / math.fsum(scales.values())

    def _step(self, value: float | None, reference: float | None, z: float, *band: float) -> Step:
        low, high = band or (None, None)
        up, down, wealth = self._cusum.up, self._cusum.down, self._wealth.log
        return Step(value, reference, z, up, down, low, high, self._alarm, self._since, wealth, self._claim)


def follow(
    points: Sequence[Mapping[str, float]],
    design: Design,
    *,
    limit: float,
    level: float,
    learned: ChanceVariance | None = None,
) -> tuple[list[Step], ChanceVariance]:
    """Every point of a line, from the first on, and what is known of chance by then."""
    monitor = Monitor(design, limit=limit, level=level, learned=learned)
    return [monitor.add(values) for values in points], monitor.noise


def normal_deviate(t: float, degrees: float) -> float:
    """The normal deviate that is as rare as Student's t (Wallace 1959; to a hundredth from 8 degrees on)."""
    size = math.sqrt(degrees * math.log1p(t * t / degrees)) * (8 * degrees + 1) / (8 * degrees + 3)
    return math.copysign(size, t)


def student_deviate(z: float, degrees: float) -> float:
    """The other way around."""
    size = abs(z) * (8 * degrees + 3) / (8 * degrees + 1)
    return math.copysign(math.sqrt(degrees * math.expm1(min(700.0, size * size / degrees))), z)
