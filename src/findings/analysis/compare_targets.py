"""Systems compared on the same trials: differences with intervals and tests, ranks and how stable they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import stdev

from ...stats.comparison import (
    Difference,
    SystemRank,
    benjamini_hochberg,
    holm,
    minimum_detectable,
    paired_difference,
    rank_stability,
    verdict,
)
from .judge_agreement import SEED
from .pairs import (
    MEASURES,
    by_cluster,
    by_system,
    means,
    pair,
)
from .read_run import Findings

ALPHA = 0.05
LESS_IS_BETTER = frozenset({"safety_risk", "incorrect"})
FLOOR = 0.05
"""A difference smaller than this is not worth the name, whatever its p."""


@dataclass(frozen=True)
class Comparison:
    measure: str
    first: str
    second: str
    difference: Difference
    one_sided: int
    """Pairs in which only one side could be scored: left out, and told."""
    unmatched: int
    p_holm: float | None
    p_bh: float | None
    minimum: float | None
    """The smallest true difference that this many pairs would show, four times in five."""
    verdict: str


@dataclass(frozen=True)
class Compared:
    systems: tuple[str, ...]
    measures: tuple[str, ...]
    resources: dict[str, dict[str, float | None]]
    """Measure to system to mean."""
    comparisons: tuple[Comparison, ...]
    ranks: dict[str, tuple[SystemRank, ...]]
    """By measure, the best first."""
    noise_floor: float | None = None


def compare(
    found: Sequence[Findings], measures: Sequence[str] = MEASURES, *, floor: float = FLOOR, noise: float | None = None
) -> Compared:
    """Every pair of systems on every measure, with corrections for the number of tests within a measure."""
    systems = by_system(found)
    comparisons: list[Comparison] = []
    for measure in measures:
        rows = [(a, b, pair(systems[a], systems[b], measure)) for a, b in combinations(systems, 2)]
        differences = [paired_difference(paired.pairs, seed=SEED) for _, _, paired in rows]
        adjusted, discovered = holm([d.p for d in differences]), benjamini_hochberg([d.p for d in differences])
        for (a, b, paired), difference, p_holm, p_bh in zip(rows, differences, adjusted, discovered, strict=True):
            gaps = [x - y for _, x, y in paired.pairs]
            minimum = minimum_detectable(stdev(gaps), len(gaps)) if len(gaps) > 1 else None
            comparisons.append(
                Comparison(
                    measure,
                    a,
                    b,
                    difference,
                    paired.one_sided,
                    paired.unmatched,
                    p_holm,
                    p_bh,
                    minimum,
                    _words(measure, a, b, replace(difference, p=p_holm), max(floor, noise or 0.0)),
                )
            )
    ranks = {}
    for measure in measures:
        sign = -1 if measure in LESS_IS_BETTER else 1
        scores = {
            name: {cluster: [sign * one for one in values] for cluster, values in by_cluster(rows, measure).items()}
            for name, rows in systems.items()
        }
        there = {name: clusters for name, clusters in scores.items() if clusters}
        found_ranks = rank_stability(there, seed=SEED) if len(there) > 1 else ()
        ranks[measure] = tuple(_signed(one, sign) for one in found_ranks)
    return Compared(
        tuple(systems), tuple(measures), {m: means(systems, m) for m in measures}, tuple(comparisons), ranks, noise
    )


def _signed(rank: SystemRank, sign: int) -> SystemRank:
    """A rank of a measure where less is better was found on its negative; its mean is told as it is."""
    if sign > 0 or rank.mean is None:
        return rank
    low, high = rank.low, rank.high
    return replace(rank, mean=-rank.mean, low=None if high is None else -high, high=None if low is None else -low)


def _words(measure: str, first: str, second: str, difference: Difference, floor: float) -> str:
    """Who is better, by name; `cannot tell` is an outcome."""
    found = verdict(difference, alpha=ALPHA, floor=floor)
    if found not in ("a better", "b better"):
        return found
    better = first if (found == "a better") != (measure in LESS_IS_BETTER) else second
    return f"{better} better"
