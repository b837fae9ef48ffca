"""How often a target gives answers of the same kind when it is asked the same question again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .missing import MISSING
from .trial_row import Row


@dataclass(frozen=True)
class Stability:
    """Of the questions that one script asked at least twice, how many got the same study code every time."""

    questions: int
    """Questions of scripts (a scenario with one of its variants) that have at least two codes; missing ones do not count."""
    same: int


def stability(rows: Iterable[Row]) -> Stability:
    """Of the trials of one target."""
    codes: dict[tuple[str, str | None, str], list[str]] = {}
    for row in rows:
        for question in row.counted:
            if question.value != MISSING:
                codes.setdefault((row.scenario_id, row.variant, question.group), []).append(question.value)
    repeated = [found for found in codes.values() if len(found) > 1]
    return Stability(len(repeated), sum(len(set(found)) == 1 for found in repeated))
