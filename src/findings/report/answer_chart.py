"""Forest plots of the answer: targets and counselors, over all questions and by question group of the study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from ...scoring.definitions import SHARES
from ...text.count import counted
from ...text.rounded import percent
from ..analysis.estimates import Estimated
from ..analysis.human_comparison import ComparedGroups, CounselorShare, Headline
from .document import Figure
from .forest import ForestChart, ForestGroup, ForestPanel, ForestRow, Mark, Tick
from .series import Runs, Series

COUNSELORS = {"phone": "Counselors by phone", "face_to_face": "Counselors face to face"}
OF_HUNDRED = tuple(Tick(share / 100, str(share)) for share in (0, 25, 50, 75, 100))
PANELS = (ForestPanel("Accurate and complete, of 100", OF_HUNDRED), ForestPanel("Wrong, of 100", OF_HUNDRED))


ROWS = 32
"""Rows of one chart by question group, so that it fits on a printed page."""


@dataclass(frozen=True)
class Answered:
    series: Series
    found: Headline


def of_hundred(share: float) -> str:
    """A share as a number of 100; what is not 0 is not shown as 0."""
    return "fewer than 1" if 0 < share < 0.005 else percent(share)


def range_text(found: Estimated | CounselorShare) -> str:
    """`54–70`, or why there is no interval."""
    if found.low is not None and found.high is not None:
        return f"{percent(found.low)}–{percent(found.high)}"
    return f"no interval from {counted(found.units, found.unit)}" if isinstance(found, Estimated) else "no interval"


def _mark(found: Estimated | CounselorShare) -> Mark:
    if found.value is None:
        return Mark(None, None, None, "no answer")
    value = of_hundred(found.value)
    if found.low is not None and found.high is not None:
        return Mark(found.value, found.low, found.high, f"{value} ({range_text(found)})")
    note = f"only {counted(found.units, found.unit)}" if isinstance(found, Estimated) else ""
    return Mark(found.value, None, None, value, note)


def answer_figure(answered: Sequence[Answered]) -> Figure:
    """Every target over all questions; where the study's were asked, these beside counselors."""
    rows = tuple(_row(one.series, one.found.complete, one.found.incorrect) for one in answered)
    compared = [(one.series, one.found.study) for one in answered if one.found.study]
    groups: tuple[ForestGroup, ...] = (ForestGroup("", rows),)
    if compared:
        title = "Questions of the published study, like for like"
        groups = (ForestGroup("All questions", rows), ForestGroup(title, _beside(compared)))
    asked = max((one.found.complete for one in answered), key=lambda found: found.questions)
    size = f"{counted(asked.questions, 'different question')} in {counted(asked.units, asked.unit)}"
    return Figure(
        ForestChart("answer", "Complete answers and wrong answers", PANELS, groups),
        f"Dots are estimates from {size}; lines are 95% intervals, the range that fits the data. Other answers were "
        "incomplete or said nothing that helps.",
    )


def group_figures(runs: Runs) -> tuple[Figure, ...]:
    """Every question group that is compared like for like: the targets, and counselors. A few groups per chart."""
    by_number: dict[int, list[tuple[Series, ComparedGroups]]] = {}
    for series in runs.series:
        for one in series.beside_counselors.groups.get("like", ()):
            by_number.setdefault(one.numbers[0], []).append((series, one))
    groups = [
        ForestGroup(f"{number} {compared[0][1].topic}", _beside(compared))
        for number, compared in sorted(by_number.items())
    ]
    if not groups:
        return ()
    most = max(1, ROWS // max(len(group.rows) for group in groups))
    each = ceil(len(groups) / ceil(len(groups) / most))
    charts = [
        ForestChart(f"groups-{place}", f"Question groups compared like for like, part {place}", PANELS, tuple(part))
        for place, start in enumerate(range(0, len(groups), each), 1)
        if (part := groups[start : start + each])
    ]
    return tuple(Figure(chart, "The tables below have these numbers and the differences.") for chart in charts)


def _beside(compared: Sequence[tuple[Series, ComparedGroups]]) -> tuple[ForestRow, ...]:
    """Targets, then counselors on the questions of the target that was asked most of them."""
    rows = [_row(series, *(one.outcomes[code].target for code in SHARES)) for series, one in compared]
    widest = max((one for _, one in compared), key=lambda one: len(one.numbers))
    for mode, name in COUNSELORS.items():
        shares = (widest.outcomes[code].counselors[mode] for code in SHARES)
        rows.append(ForestRow(name, tuple(map(_mark, shares)), "people"))
    return tuple(rows)


def _row(series: Series, *found: Estimated) -> ForestRow:
    return ForestRow(series.chart_label, tuple(map(_mark, found)))
