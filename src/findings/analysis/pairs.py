"""Trials of two targets, or of two runs, paired by scenario, variant and repetition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, stdev
from typing import NamedTuple

from ...errors import InputError
from .read_run import Findings
from .trial_row import SCORES, Row

MEASURES = (*SCORES, "accurate_complete", "incorrect")
"""The scores of a trial, and the shares of its questions with these study codes."""


class TrialKey(NamedTuple):
    """What two trials must share to be a pair."""

    scenario_id: str
    variant: str | None
    repetition: int


class ScorePair(NamedTuple):
    """The values of two paired trials, and the scenario they belong to."""

    scenario_id: str
    first: float
    second: float


class CodePair(NamedTuple):
    """The study codes of one question in two paired trials."""

    scenario_id: str
    group: str
    first: str
    second: str


def key(row: Row) -> TrialKey:
    return TrialKey(row.scenario_id, row.variant, row.repetition)


def value(row: Row, measure: str) -> float | None:
    """A trial's score, or the share of its coded questions that got a code; None if it has no value."""
    if measure in SCORES:
        return row.score(measure)
    codes = [one.value for one in row.codes if one.value != "incomplete_data"]
    return sum(code == measure for code in codes) / len(codes) if codes else None


def values_of(rows: Iterable[Row], measure: str) -> list[float]:
    return [one for row in rows if (one := value(row, measure)) is not None]


@dataclass(frozen=True)
class Paired:
    """Pairs of trials with a value on both sides, and how many trials were left out."""

    pairs: list[ScorePair]
    one_sided: int
    """Pairs with a value on one side only."""
    unmatched: int
    """Trials without a partner."""


def pair(first: Iterable[Row], second: Iterable[Row], measure: str) -> Paired:
    others = {key(row): row for row in second}
    pairs: list[ScorePair] = []
    one_sided = unmatched = 0
    for row in first:
        other = others.pop(key(row), None)
        if other is None:
            unmatched += 1
            continue
        a, b = value(row, measure), value(other, measure)
        if a is None or b is None:
            one_sided += a is not b
        else:
            pairs.append(ScorePair(row.scenario_id, a, b))
    return Paired(pairs, one_sided, unmatched + len(others))


def by_system(found: Sequence[Findings]) -> dict[str, list[Row]]:
    """The rows of every target; a target that is in several runs is named with its run."""
    names = [target for one in found for target in one.plan_targets]
    systems: dict[str, list[Row]] = {}
    for one in found:
        for target in one.plan_targets:
            name = target if names.count(target) == 1 else f"{target} ({one.manifest.run_id})"
            if name in systems:
                name = f"{target} ({one.folder})"
            systems[name] = one.of_target(target)
    return systems


def by_cluster(rows: Iterable[Row], measure: str) -> dict[str, list[float]]:
    """Values by scenario."""
    found: dict[str, list[float]] = {}
    for row in rows:
        one = value(row, measure)
        if one is not None:
            found.setdefault(row.scenario_id, []).append(one)
    return found


def means(systems: Mapping[str, Sequence[Row]], measure: str) -> dict[str, float | None]:
    values = {name: values_of(rows, measure) for name, rows in systems.items()}
    return {name: fmean(listed) if listed else None for name, listed in values.items()}


def pair_codes(first: Iterable[Row], second: Iterable[Row]) -> list[CodePair]:
    """The codes of every question that both trials of a pair have."""
    others = {key(row): dict(row.codes) for row in second}
    found: list[CodePair] = []
    for row in first:
        theirs = others.get(key(row), {})
        found += [CodePair(row.scenario_id, group, code, theirs[group]) for group, code in row.codes if group in theirs]
    return found


def pilot_sd(found: Findings, measure: str) -> float:
    """The standard deviation of paired differences between a run's targets, or between repeats of its one target."""
    rows = list(by_system([found]).values())
    gaps = [
        one.first - one.second
        for first, second in pairwise(rows)
        for one in pair(first, second, measure).pairs
    ]  # fmt: skip
    if not gaps and rows:
        repeats: dict[tuple[str, str | None], list[float]] = {}
        for row in rows[0]:
            one = value(row, measure)
            if one is not None:
                repeats.setdefault((row.scenario_id, row.variant), []).append(one)
        gaps = [b - a for values in repeats.values() for a, b in pairwise(values)]
    if len(gaps) < 2:
        raise InputError(f"power: the pilot run has too few pairs of trials with {measure}. Give `sd` instead.")
    sd = stdev(gaps)
    if not sd:
        raise InputError(f"power: all paired differences in {measure} are equal in the pilot run. Give `sd` instead.")
    return sd
