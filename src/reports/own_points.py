"""The second set of points: questions that the study codes by its points, as our own points have them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from ..schemas import CODES, StudyCode
from ..scoring.definitions import CODE_HEADINGS
from .document import Column, Paragraph, Section, Table, count_cell, linked, part_cell, text_cell, words
from .links import of_question
from .series import Runs, Series


class _Question(NamedTuple):
    series: Series
    scenario_id: str
    group: str


@dataclass
class _OwnCounts:
    codes: Counter[StudyCode] = field(default_factory=Counter)
    made: int = 0
    points: int = 0


def _count(runs: Runs) -> dict[_Question, _OwnCounts]:
    found: dict[_Question, _OwnCounts] = {}
    for series in runs.series:
        for row in series.rows:
            for own in row.own:
                counts = found.setdefault(_Question(series, row.scenario_id, own.group), _OwnCounts())
                counts.codes[cast(StudyCode, own.code)] += 1
                counts.made += own.made
                counts.points += own.points
    return found


def own_points_section(runs: Runs) -> Section | None:
    """Codes and points made by our own points, for each target and question that has two sets; None if none has."""
    counted = _count(runs)
    if not counted:
        return None
    rows = []
    for (series, scenario_id, group), counts in counted.items():
        rule = series.run.found.rules.get((scenario_id, group))
        name = f"{rule.study_group or group} {rule.topic}" if rule else group
        n = counts.codes.total()
        rows.append(
            (
                *runs.lead(series),
                linked(text_cell(name), of_question(series, scenario_id, group)),
                count_cell(n),
                *(count_cell(counts.codes[code]) for code in CODES),
                part_cell(counts.codes["accurate_complete"], n),
                part_cell(counts.made, counts.points),
            )
        )
    columns = (
        *runs.lead_columns(),
        Column("group", "text"),
        Column("n"),
        *(Column(heading) for heading in CODE_HEADINGS.values()),
        Column("complete", "other"),
        Column("points made", "other"),
    )
    note = words(
        "The study's points for these questions are few and general. Our own ask for more. The tables above go by the "
        "study's points; this one goes by ours, with the same rules for errors, and has no counterpart in the study. "
        "Completeness goes by our own points."
    )
    table = Table("Codes by our own points, and the share of these points that were made.", columns, tuple(rows))
    return Section(words("Our own points"), (Paragraph(note), table))
