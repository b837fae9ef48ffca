"""What `compare` does: targets on the same trials, with differences, intervals and tests, or judges on the same
transcripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Literal

from .. import storage
from ..errors import InputError
from ..scoring.definitions import LESS_IS_BETTER, MEASURES
from ..stats.clustered import ClusteredShare
from ..stats.comparison import Difference, holm, paired_difference, verdict
from ..stats.power import detectable
from .compare_judges import JudgesCompared, compare_judges, same_transcripts
from .estimates import Estimated, estimate, key_coverage
from .judge_agreement import SEED, judging
from .pairs import PairedQuestions, System, by_system, pair_systems
from .processes import collector_paused
from .read_run import Findings, gather, gather_all
from .rule_judge import run_notices

ALPHA = 0.05
FEWEST_FOR_P = 6
"""With fewer scenarios no p from sign flips is below 0.05, so nothing can be detected."""
FLOOR = 0.05
"""A smaller difference is not meaningful, whatever its p."""


@dataclass(frozen=True)
class Comparison:
    measure: str
    first: str
    second: str
    difference: Difference
    """Over questions, each averaged over repeats and variants; scenarios are the independent units."""
    paired: PairedQuestions
    """What is behind it, and what is missing."""
    p_holm: float | None
    minimum: float | None
    """The smallest true difference that would be detected with 80% power, from the error of the interval."""
    verdict: str


@dataclass(frozen=True)
class Compared:
    systems: tuple[str, ...]
    measures: tuple[str, ...]
    means: dict[str, dict[str, Estimated]]
    """Measure to system to its own estimate, over all its questions."""
    comparisons: tuple[Comparison, ...]
    noise_floor: float | None = None
    coverage: dict[str, ClusteredShare] = field(default_factory=dict)
    """System to its key coverage."""
    notices: tuple[str, ...] = ()
    """What every reader must know before the numbers."""


def compare_targets(
    found: Sequence[Findings],
    measures: Sequence[str] = tuple(MEASURES),
    *,
    floor: float = FLOOR,
    noise: float | None = None,
) -> Compared:
    """Every pair of systems on every measure, with p adjusted for the number of pairs within a measure."""
    systems = by_system(found)
    least = max(floor, noise or 0.0)
    return Compared(
        tuple(systems),
        tuple(measures),
        {measure: {name: estimate(one.rows, measure) for name, one in systems.items()} for measure in measures},
        tuple(one for measure in measures for one in compare_systems(systems, measure, least)),
        noise,
        {name: key_coverage(one.rows) for name, one in systems.items()},
        run_notices(found),
    )


def compare_systems(systems: dict[str, System], measure: str, floor: float) -> list[Comparison]:
    """Every pair of systems on one measure."""
    names = list(combinations(systems, 2))
    paired = [pair_systems(systems[a], systems[b], measure) for a, b in names]
    differences = [paired_difference(one.pairs, seed=SEED) for one in paired]
    p_values = [difference.p for difference in differences]
    return [
        Comparison(
            measure,
            a,
            b,
            difference,
            one,
            p_holm,
            _detectable(difference),
            _verdict((a, b), replace(difference, p=p_holm), one, floor=floor, less=measure in LESS_IS_BETTER),
        )
        for (a, b), one, difference, p_holm in zip(names, paired, differences, holm(p_values), strict=True)
    ]


def _detectable(difference: Difference) -> float | None:
    if difference.error is None or difference.degrees is None or difference.clusters < FEWEST_FOR_P:
        return None
    return detectable(difference.error, difference.degrees)


def best_first(found: Compared, measure: str) -> list[str]:
    """The systems by their own estimates; those without one come last."""
    sign = 1 if measure in LESS_IS_BETTER else -1

    def place(system: str) -> tuple[bool, float, str]:
        value = found.means[measure][system].value
        return (value is None, sign * (value or 0.0), system)

    return sorted(found.systems, key=place)


def _verdict(
    names: tuple[str, str], difference: Difference, paired: PairedQuestions, *, floor: float, less: bool
) -> str:
    """Which system is better, by name; `cannot tell` is an outcome."""
    found = verdict(difference, alpha=ALPHA, floor=floor)
    ends = [abs(end) for end in (paired.lowest, paired.highest) if end is not None]
    if found == "no meaningful difference" and max(ends, default=0.0) >= floor:
        return "cannot tell"  # what is missing could hide a difference that matters
    if found not in ("a better", "b better"):
        return found
    better = names[(found == "a better") == less]
    return f"{better} better"


@collector_paused()
def compare_runs(
    runs: Sequence[Path], *, by: Literal["target", "judges"], measures: Sequence[str] | None, floor: float
) -> Compared | JudgesCompared:
    """What `api.findings.compare` returns: targets compared, or two judgings of the same transcripts."""
    chosen = tuple(measures or MEASURES)
    unknown = [name for name in chosen if name not in MEASURES]
    if unknown:
        raise InputError(f"{unknown[0][:40]!r} is not a measure. Use {', '.join(MEASURES)}.")
    for run in runs:
        storage.read_manifest(run)
    if by == "judges" and len(runs) != 2:
        raise InputError(f"Comparing judges takes two runs of the same transcripts, not {len(runs)}.")
    if len(runs) == 2 and (by == "judges" or same_transcripts(*runs)):
        return compare_judges(runs[0], runs[1])
    found = gather_all(runs)
    if len(by_system(found)) < 2:  # of one target, only its runs can be compared
        found = [gather(run) for run in runs]
    if len(by_system(found)) < 2:
        raise InputError("compare needs two targets, but there is only one. Give a run of several, or several runs.")
    noise = max((one.noise_floor for one in map(judging, found) if one.noise_floor is not None), default=None)
    return compare_targets(found, chosen, floor=floor, noise=noise)
