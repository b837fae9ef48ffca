"""How stable a target's answers are: the same question again, and the same question put in another way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...stats.bounded import Bounded, bounded_by_cluster
from ...trials.missing import MISSING
from ...trials.row import Row


@dataclass(frozen=True)
class Stability:
    repeated: int
    """Questions of a script that were asked at least twice."""
    same_when_repeated: Bounded
    """Of these, the share that got the same code each time; scenarios are the independent units."""
    varied: int
    """Questions that were asked in at least two variants."""
    same_when_varied: Bounded
    """Of these, the share that got the same codes in every variant."""


def stability(rows: Iterable[Row]) -> Stability:
    codes: dict[tuple[str, str], dict[str, list[str]]] = {}
    for row in rows:
        for group, code in row.counted:
            if code != MISSING:
                codes.setdefault((row.scenario_id, group), {}).setdefault(row.variant or "", []).append(code)
    repeated = [
        (scenario_id, _same(answers))
        for (scenario_id, _), variants in codes.items()
        for answers in variants.values()
        if len(answers) > 1
    ]
    varied = [
        (scenario_id, _same([code for answers in variants.values() for code in answers]))
        for (scenario_id, _), variants in codes.items()
        if len(variants) > 1
    ]
    return Stability(len(repeated), bounded_by_cluster(repeated), len(varied), bounded_by_cluster(varied))


def _same(codes: Sequence[str]) -> float:
    return float(len(set(codes)) == 1)
