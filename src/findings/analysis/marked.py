"""Bounds on what marked passages did to a measure.

A reply that the screen marks is judged as it was written and without the marked passage. Which of the two is the
target's real answer is for a person to say, so the report gives the mean for both, and the lowest and the highest mean
that any choice between them gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import fsum

from .missing import MISSING, NOT_CODED
from .pairs import value
from .trial_row import SCORES, Row


@dataclass(frozen=True)
class Bounds:
    """Means of a measure over all scored trials of a target; None if no trial has a value."""

    measure: str
    as_written: float | None
    without: float | None
    """With every marked trial as if the passages had not been written."""
    low: float | None
    high: float | None


def bounds(rows: Iterable[Row], measure: str) -> Bounds:
    written: list[float | None] = []
    without: list[float | None] = []
    lowest: list[list[float | None]] = []
    highest: list[list[float | None]] = []
    for row in rows:
        here, there = value(row, measure), _without(row, measure)
        written.append(here)
        without.append(there)
        unknown = row.without is not None and row.without.scores is None and measure in SCORES
        lowest.append([here, 0.0 if unknown else there])
        highest.append([here, 1.0 if unknown else there])
    high = _least_mean([[None if one is None else -one for one in pair] for pair in highest])
    return Bounds(measure, _mean(written), _mean(without), _least_mean(lowest), None if high is None else -high + 0.0)


def _without(row: Row, measure: str) -> float | None:
    """The trial's value without its marked passages; its own if none is marked."""
    if row.without is None:
        return value(row, measure)
    if row.without.scores is None:
        return None
    counted = tuple(one._replace(value=MISSING) if one.value == NOT_CODED else one for one in row.without.codes)
    return value(replace(row, scores=row.without.scores, counted=counted), measure)


def _mean(values: Sequence[float | None]) -> float | None:
    there = [one for one in values if one is not None]
    return fsum(there) / len(there) if there else None


def _least_mean(choices: Sequence[Sequence[float | None]]) -> float | None:
    """The smallest mean over one choice per trial; None among its choices means that the trial may drop out."""
    must: list[float] = []
    may: list[float] = []
    for choice in choices:
        there = [one for one in choice if one is not None]
        if there:
            (may if None in choice else must).append(min(there))
    chosen = must or sorted(may)[:1]
    for one in sorted(may)[0 if must else 1 :]:
        if one < fsum(chosen) / len(chosen):
            chosen = [*chosen, one]
    return fsum(chosen) / len(chosen) if chosen else None
