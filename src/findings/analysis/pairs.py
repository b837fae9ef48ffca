"""Like set beside like: trials of two targets, or of two runs, paired by scenario, variant and repetition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from .read_run import SCORES, Findings, Row

Key = tuple[str, str | None, int]
Pairs = list[tuple[str, float, float]]
"""Cluster (the scenario), value of the first, value of the second."""
MEASURES = (*SCORES, "accurate_complete", "incorrect")
"""The scores of a trial, and the share of its questions coded so."""


def key(row: Row) -> Key:
    return row.scenario_id, row.variant, row.repetition


def value(row: Row, measure: str) -> float | None:
    """A trial's score, or the share of its coded questions that got a code; None where it has none."""
    if measure in SCORES:
        return row.score(measure)
    codes = [code for _, code in row.codes if code != "incomplete_data"]
    return sum(code == measure for code in codes) / len(codes) if codes else None


@dataclass(frozen=True)
class Paired:
    """Pairs of trials with a value on both sides, and how many had none on one side or no partner."""

    pairs: Pairs
    one_sided: int
    unmatched: int


def pair(first: Iterable[Row], second: Iterable[Row], measure: str) -> Paired:
    others = {key(row): row for row in second}
    pairs: Pairs = []
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
            pairs.append((row.scenario_id, a, b))
    return Paired(pairs, one_sided, unmatched + len(others))


def by_system(found: Sequence[Findings]) -> dict[str, list[Row]]:
    """The rows of every target, named with its run where a target stands in several."""
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


def means(rows: Mapping[str, Sequence[Row]], measure: str) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for name, listed in rows.items():
        values = [one for row in listed if (one := value(row, measure)) is not None]
        found[name] = fmean(values) if values else None
    return found


CodePairs = list[tuple[str, str, str, str]]
"""Scenario, question group, code in the first, code in the second."""


def pair_codes(first: Iterable[Row], second: Iterable[Row]) -> CodePairs:
    others = {key(row): dict(row.codes) for row in second}
    found: CodePairs = []
    for row in first:
        theirs = others.get(key(row), {})
        found += [(row.scenario_id, group, code, theirs[group]) for group, code in row.codes if group in theirs]
    return found
