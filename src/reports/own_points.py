"""The second set of points: questions that the study codes by its points, as our own points have them."""

from __future__ import annotations

from ..scoring.definitions import CODE_HEADINGS
from ..trials.row import OwnCode
from . import read_sections
from .document import Section
from .series import ReportedTarget, Runs


def own_points_section(runs: Runs) -> Section | None:
    """Codes and points made by our own points, for each target and question that has two sets; None if none has."""
    found: dict[tuple[ReportedTarget, str, str], list[OwnCode]] = {}
    for series in runs.series:
        for row in series.rows:
            for own in row.own:
                found.setdefault((series, row.scenario_id, own.group), []).append(own)
    return read_sections.section("own_points", runs=runs, found=found, headings=CODE_HEADINGS) if found else None
