"""What `power` does: how many scenarios and pairs of trials a difference needs, or what a number of pairs can detect.

A pilot run tells how much paired differences vary, and how alike they are within a scenario (the intraclass
correlation, ICC). Differences of two targets are centered on their own mean, so that a large difference between targets
does not pass for spread. Scenarios are the independent units, as in `compare`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, fsum, sqrt
from pathlib import Path
from statistics import variance
from typing import Literal

from ..errors import InputError
from ..scoring.definitions import SCORES
from ..stats.comparison import ROUNDING
from ..stats.power import clusters_needed, most_power, power_of, trials_needed
from ..stats.variance import nested
from ..trials.row import Row
from .pairs import ScorePair, by_system, pair, value
from .read_run import Findings, gather

DIFFERENCES = (0.02, 0.05, 0.1, 0.2)
"""Shown beside the difference that was asked for."""
REPEATS_SHOWN = (1, 3, 10)
"""Pairs per scenario for which power is shown."""
IF_UNKNOWN = 1.0
"""The ICC if the pilot cannot tell it: repeats in a scenario then add nothing, which is never too optimistic."""


@dataclass(frozen=True)
class Pilot:
    """How paired differences vary in a run."""

    between: Literal["targets", "repeats"]
    """What was paired: trials of two targets, or two repeats of the only target."""
    pairs: int
    scenarios: int
    per_scenario: int
    """Pairs of the same two targets in a scenario, on average."""
    sd: float
    """Standard deviation of a difference, over scenarios and repeats."""
    icc: float | None
    """Of the differences within a scenario, by REML. None if no scenario has two pairs, or there is one scenario."""
    count_as: float
    """How many scenarios with equal numbers of questions would tell as much (Kish); for scores, all of them."""


@dataclass(frozen=True)
class PowerDesign:
    """A planned comparison by a paired t test."""

    sd: float
    """Standard deviation of the paired differences."""
    alpha: float = 0.05
    power: float = 0.8
    clusters: int | None = None
    """Scenarios the pairs come from; None takes all pairs as independent."""
    icc: float = 0.0
    """Correlation within a scenario."""
    pilot: Pilot | None = None
    """Where the numbers come from, if not from the user."""

    @property
    def per_scenario(self) -> int:
        return self.pilot.per_scenario if self.pilot else 1

    @property
    def evenness(self) -> float:
        """By how much fewer scenarios count, because some have many more questions than others; at most 1."""
        return self.pilot.count_as / self.pilot.scenarios if self.pilot else 1.0

    @property
    def clusters_that_count(self) -> int | None:
        return None if self.clusters is None else max(1, int(self.clusters * self.evenness))


@dataclass(frozen=True)
class Needed:
    """What one difference needs; None if no number is enough."""

    difference: float
    pairs: int | None
    """In the scenarios of the design; independent pairs, if it has none."""
    scenarios_once: int | None
    """Scenarios with one pair each."""
    scenarios: int | None
    """Scenarios with as many pairs each as in the pilot."""


@dataclass(frozen=True)
class PowerByRepeats:
    per_scenario: int | None
    """None: any number."""
    power: float | None


def planned_design(
    pilot: Path | None,
    sd: float | None,
    measure: str,
    *,
    alpha: float = 0.05,
    power: float = 0.8,
    clusters: int | None = None,
    icc: float | None = None,
) -> PowerDesign:
    """The design to plan with: from a pilot run, or from an assumed spread. `clusters` and `icc` override the pilot's.

    Raises:
        InputError: Both or neither given, not a run folder, or a pilot that shows no spread.
    """
    if pilot and sd is not None:
        raise InputError(
            "Give `pilot` or `sd`, not both: drop `sd` to use the pilot's spread, or `pilot` to use yours."
        )
    if not pilot and sd is None:
        raise InputError("Give `pilot`, a run, or `sd`, the standard deviation of the paired differences.")
    if pilot is None:
        return PowerDesign(sd or 0.0, alpha, power, clusters, icc or 0.0)
    read = read_pilot(gather(pilot), measure)
    found = IF_UNKNOWN if read.icc is None else read.icc
    return PowerDesign(read.sd, alpha, power, clusters or read.scenarios, found if icc is None else icc, read)


def read_pilot(found: Findings, measure: str) -> Pilot:
    """How paired differences vary in a run. InputError: there are too few of them, or they do not vary."""
    rows = [one.rows for one in by_system([found]).values()]
    by_targets = [pair(first, second, measure) for first, second in combinations(rows, 2)]
    spreads = [_centered(pairs) for pairs in by_targets if len(pairs) > 1]
    if not spreads and rows:
        spreads = [one for one in [_repeats(rows[0], measure)] if one]
    if not spreads:
        raise InputError(f"power: the pilot run has too few pairs of trials with {measure}. Give `sd` instead.")
    weights = fsum(one.weight for one in spreads)
    total = fsum(one.weight * one.variance for one in spreads) / weights
    if total <= ROUNDING:
        raise InputError(
            f"power: paired differences in {measure} do not vary in the pilot run, so it cannot tell how many trials "
            "are needed. Give `sd` instead."
        )
    known = [one for one in spreads if one.between_scenarios is not None and one.variance > ROUNDING]
    spread = fsum(one.weight * one.variance for one in known)
    shared = fsum(one.weight * (one.between_scenarios or 0.0) for one in known)
    scenarios = max(one.scenarios for one in spreads)
    pairs = sum(one.pairs for one in spreads)
    return Pilot(
        spreads[0].between,
        pairs,
        scenarios,
        max(1, round(max(one.pairs / one.scenarios for one in spreads))),
        sqrt(total),
        shared / spread if spread else None,
        scenarios if measure in SCORES else min(float(scenarios), _equal_sized(rows)),
    )


def _equal_sized(systems: Sequence[Sequence[Row]]) -> float:
    """Kish's number of scenarios, by their numbers of different questions."""
    questions = {(row.scenario_id, one.group) for rows in systems for row in rows for one in row.counted}
    sizes = Counter(scenario_id for scenario_id, _ in questions)
    return sum(sizes.values()) ** 2 / sum(size * size for size in sizes.values())


@dataclass(frozen=True)
class _Spread:
    """Of the differences between two targets, or between repeats."""

    between: Literal["targets", "repeats"]
    pairs: int
    scenarios: int
    variance: float
    between_scenarios: float | None
    """The part of the variance that is between scenarios."""
    weight: float
    """Degrees of freedom."""


def _centered(pairs: Sequence[ScorePair]) -> _Spread:
    """The variance of differences around their own mean, in two parts if the data tell them apart."""
    gaps = [((one.scenario_id,), one.first - one.second) for one in pairs]
    scenarios = len({path for path, _ in gaps})
    parts = nested(gaps, ("scenario",))
    shared = parts.part("scenario").variance
    whole = parts.total if shared is not None and parts.total is not None else variance(gap for _, gap in gaps)
    return _Spread("targets", len(gaps), scenarios, whole, shared, len(gaps) - 1)


def _repeats(rows: Sequence[Row], measure: str) -> _Spread | None:
    """Of the differences between two repeats of one target: twice the variance within a script.

    Repeats differ by chance alone, so there is no part between scenarios.
    """
    scripts: dict[tuple[str, str | None], list[float]] = {}
    for row in rows:
        one = value(row, measure)
        if one is not None:
            scripts.setdefault((row.scenario_id, row.variant), []).append(one)
    repeated = {name: values for name, values in scripts.items() if len(values) > 1}
    degrees = sum(len(values) - 1 for values in repeated.values())
    if degrees < 2:
        return None
    within = fsum((len(values) - 1) * variance(values) for values in repeated.values()) / degrees
    scenarios = len({scenario for scenario, _ in repeated})
    return _Spread("repeats", degrees, scenarios, 2 * within, 0.0, degrees)


def needed(design: PowerDesign, difference: float) -> list[Needed]:
    """What is needed to detect this difference and those of `DIFFERENCES`."""
    try:
        return [_needed(design, one) for one in sorted({difference, *DIFFERENCES})]
    except ValueError as error:
        raise InputError(f"power: {error}.") from None


def _needed(design: PowerDesign, difference: float) -> Needed:
    sd, power, alpha, icc = design.sd, design.power, design.alpha, design.icc
    pairs = trials_needed(difference, sd, power=power, alpha=alpha, clusters=design.clusters_that_count, icc=icc)
    once = clusters_needed(difference, sd, power=power, alpha=alpha)
    several = clusters_needed(difference, sd, per_cluster=design.per_scenario, power=power, alpha=alpha, icc=icc)
    return Needed(difference, *(None if one is None else ceil(one / design.evenness) for one in (pairs, once, several)))


def power_reached(design: PowerDesign, pairs: int, difference: float) -> float | None:
    """The chance that this many pairs detect this difference; None if there are too few to say."""
    clusters = design.clusters_that_count
    pairs = max(1, int(pairs * design.evenness))
    if design.pilot and clusters and pairs < clusters:
        clusters = pairs  # Fewer pairs than the pilot's scenarios: one pair in each of so many.
    try:
        return power_of(pairs, difference, design.sd, alpha=design.alpha, clusters=clusters, icc=design.icc)
    except ValueError as error:
        raise InputError(f"power: {error}.") from None


def power_by_repeats(design: PowerDesign, difference: float) -> list[PowerByRepeats]:
    """The power with more and more pairs in the scenarios of the design, which must have several."""
    clusters = design.clusters
    if clusters is None or clusters < 2:
        return []
    found = [PowerByRepeats(each, power_reached(design, each * clusters, difference)) for each in REPEATS_SHOWN]
    counting = design.clusters_that_count or clusters
    limit = most_power(difference, design.sd, clusters=counting, icc=design.icc, alpha=design.alpha)
    return [*found, PowerByRepeats(None, limit)]
