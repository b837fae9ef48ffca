"""Has a system changed between two runs of the same trials? Pure functions.

A difference that is not significant is not evidence of no change. For that, the interval must be within the smallest
change that matters, which is the same as two one-sided tests of equivalence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .bounded import DIFFERENCE, bounded_by_cluster
from .comparison import Difference, Pairs, holm, paired_difference, sign_test
from .intervals import Share, wilson

DriftVerdict = Literal["drifted", "no change", "no evidence", "cannot tell"]


@dataclass(frozen=True)
class Drift:
    difference: Difference
    """After minus before, with its 1 - alpha interval."""
    low: float | None
    high: float | None
    """The 1 - 2 alpha interval that decides the verdict "no evidence"."""
    floor: float
    alpha: float
    clusters_needed: int | None
    """How many unchanged scenarios would exclude a change as large as the floor; None if something changed."""
    verdict: DriftVerdict


def drift(pairs: Pairs, *, floor: float, alpha: float = 0.05, seed: int) -> Drift:
    """Pairs are (cluster, before, after); the difference is after minus before, so above 0 means that scores rose.

    No change: every pair has the same value before and after. Drifted: p < alpha (sign flips of clusters), the mean is
    at least `floor` in size, and the interval excludes 0. No evidence: the 1 - 2 alpha interval is within (-floor,
    floor), which equals two one-sided tests at alpha, and clusters unlike these that cannot be excluded could not
    reach the floor. Otherwise: cannot tell.
    """
    if floor <= 0 or not 0 < alpha < 0.5:
        raise ValueError(f"drift needs a floor above 0 and an alpha between 0 and 0.5, not {floor} and {alpha}")
    swapped = [(cluster, after, before) for cluster, before, after in pairs]
    difference = paired_difference(swapped, seed=seed, confidence=1 - alpha)
    inner = bounded_by_cluster(((c, after - before) for c, after, before in swapped), DIFFERENCE, 1 - 2 * alpha)
    low, high = inner.low, inner.high
    same = bool(pairs) and all(before == after for _, before, after in pairs)
    needed = math.ceil(math.log(alpha) / math.log1p(-floor)) if same and floor < 1 else None
    verdict: DriftVerdict = "cannot tell"
    if same:
        verdict = "no change"
    elif difference.mean is not None and difference.p is not None:
        outside = (
            difference.low is not None and difference.high is not None and not difference.low <= 0 <= difference.high
        )
        if difference.p < alpha and abs(difference.mean) >= floor and outside:
            verdict = "drifted"
        elif low is not None and high is not None and -floor < low and high < floor and (inner.unseen or 0.0) < floor:
            verdict = "no evidence"
    return Drift(difference, low, high, floor, alpha, needed, verdict)


@dataclass(frozen=True)
class QuestionDrift:
    """How the codes of one question changed. `rose` is the share of changes that are improvements."""

    question: str
    n: int
    better: int
    worse: int
    same: int
    missing: int
    """Pairs without a code on one side; n does not include them."""
    rose: Share
    p: float | None
    p_holm: float | None
    """p adjusted for the number of questions."""


def question_drift(codes: Sequence[tuple[str, float | None, float | None]]) -> tuple[QuestionDrift, ...]:
    """Each (question, before, after) is one trial's code as a number; higher is better, and None means no code.

    p is from the exact two-sided sign test of better versus worse, without the unchanged ones; it is None if n is 0.
    The trials of a question are treated as independent. Questions are in the order of their first occurrence.
    """
    found: dict[str, list[int]] = {}
    for question, before, after in codes:
        counts = found.setdefault(question, [0, 0, 0, 0])
        if before is None or after is None:
            counts[3] += 1
        else:
            counts[0 if after > before else 1 if after < before else 2] += 1
    p_values = [sign_test(counts[0], counts[1]) if sum(counts[:3]) else None for counts in found.values()]
    return tuple(
        QuestionDrift(question, up + down + same, up, down, same, missing, wilson(up, up + down), p, adjusted)
        for (question, (up, down, same, missing)), p, adjusted in zip(
            found.items(), p_values, holm(p_values), strict=True
        )
    )
