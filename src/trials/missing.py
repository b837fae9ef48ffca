"""The one rule for missing data, used by reports, comparisons, drift, sensitivity and exports.

| what happened to the reply | study code | scores of the trial |
| --- | --- | --- |
| answered and judged | as coded | as scored |
| refused: the service declined | not substantive | if every question was refused: `IF_REFUSED` |
| blocked by a content filter, or empty | not substantive: the person got nothing | missing |
| failed, cut off, not asked | missing | missing |
| a judge or the questioner failed on it | missing | missing |
| judges left a claim open | missing, if the claim could change it | as scored, with a range |

What is missing is left out of an estimate. Beside it are the lowest and the highest value that the estimate could have:
with all missing answers at one end of the scale, and all scores at that end of their ranges. In runs of formats 1 to 5,
an open claim left a trial without some scores; these are missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..scoring.definitions import IF_REFUSED

MISSING = "missing"
"""In place of a study code."""
NOT_CODED = "incomplete_data"
NOTHING_CONVEYED = frozenset({"refused", "blocked", "empty"})
"""Outcomes of a turn after which the person has got nothing."""


@dataclass(frozen=True)
class Measured:
    """A trial's value of a score."""

    value: float | None
    missing: bool
    """Whether there would be a value if all had gone well. A scored trial may have no value and miss none."""


def counted_code(code: str, turn_outcomes: Iterable[str]) -> str:
    """A question's study code as it counts in estimates: one of the four levels, or `MISSING`."""
    if code != NOT_CODED:
        return code
    outcomes = [outcome for outcome in turn_outcomes if outcome != "skipped"]
    nothing = bool(outcomes) and all(outcome in NOTHING_CONVEYED for outcome in outcomes)
    return "not_substantive" if nothing else MISSING


def measured_score(outcome: str, name: str, score: float | None, *, undecided: bool = False) -> Measured:
    """A trial's score as it counts in estimates; `undecided` if it has none because claims are open."""
    if outcome == "scored":
        return Measured(score, missing=undecided and score is None)
    if outcome == "refused":
        return Measured(IF_REFUSED.get(name), missing=False)
    return Measured(None, missing=True)


def has_scores(outcome: str) -> bool:
    """Whether trials with this outcome have scores, if only those of a refusal."""
    return any(not measured_score(outcome, name, None).missing for name in IF_REFUSED)
