"""The numbers that answer the question first: per target, how many questions were answered completely, and wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...trials.row import Row
from .estimates import Estimated, estimate
from .human_comparison import ComparedGroups, HumanComparison


@dataclass(frozen=True)
class Headline:
    complete: Estimated
    """Of all coded questions, the share that was answered accurately and completely."""
    incorrect: Estimated
    study: ComparedGroups | None
    """The same on the study's questions that are compared like for like, beside counselors; None if none was asked."""


def headline(rows: Sequence[Row], compared: HumanComparison) -> Headline:
    return Headline(estimate(rows, "accurate_complete"), estimate(rows, "incorrect"), compared.primary)
