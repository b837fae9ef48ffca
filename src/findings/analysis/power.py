"""What `power` does: how many pairs of trials a difference needs, or what a number of pairs can detect."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...errors import InputError
from ...stats.power import power_of, trials_needed
from .pairs import pilot_sd
from .read_run import gather

DIFFERENCES = (0.02, 0.05, 0.1, 0.2)
"""Shown beside the difference that was asked for."""


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


@dataclass(frozen=True)
class PairsNeeded:
    difference: float
    pairs: int | None
    """None if no number of pairs is enough with so few scenarios."""


def spread(pilot: Path | None, sd: float | None, measure: str) -> float:
    """The standard deviation to plan with: of a pilot run, or as given."""
    if pilot and sd is not None:
        raise InputError(
            "Give `pilot` or `sd`, not both: drop `sd` to use the pilot's spread, or `pilot` to use yours."
        )
    if pilot:
        return pilot_sd(gather(pilot), measure)
    if sd is None:
        raise InputError("Give `pilot`, a run, or `sd`, the standard deviation of the paired differences.")
    return sd


def pairs_needed(design: PowerDesign, difference: float) -> list[PairsNeeded]:
    """Pairs needed to detect this difference and those of `DIFFERENCES`."""
    try:
        return [
            PairsNeeded(
                one,
                trials_needed(
                    one, design.sd, power=design.power, alpha=design.alpha, clusters=design.clusters, icc=design.icc
                ),
            )
            for one in sorted({difference, *DIFFERENCES})
        ]
    except ValueError as error:
        raise InputError(f"power: {error}.") from None


def power_reached(design: PowerDesign, pairs: int, difference: float) -> float | None:
    """The chance that this many pairs detect this difference; None if there are too few to say."""
    try:
        return power_of(pairs, difference, design.sd, alpha=design.alpha, clusters=design.clusters, icc=design.icc)
    except ValueError as error:
        raise InputError(f"power: {error}.") from None
