"""The report's section on how stable answers are over repeats and variants."""

from __future__ import annotations

from ..analysis.stability import stability
from .document import Cell, Column, Count, Paragraph, Proportion, Section, Table, words
from .series import Runs


def stability_section(runs: Runs) -> Section:
    """How often a target's code stays the same if a question is asked again, or in another variant."""
    rows: list[tuple[Cell, ...]] = []
    for series in runs.series:
        found = stability(series.rows)
        rows.append(
            (
                *runs.lead(series),
                Count(found.repeated),
                Proportion(found.same_when_repeated),
                Count(found.varied),
                Proportion(found.same_when_varied),
            )
        )
    columns = (
        *runs.lead_columns(),
        Column("questions repeated in the same words"),
        Column("same code each time (95% interval)", "share"),
        Column("questions asked in several variants"),
        Column("same code in all (95% interval)", "share"),
    )
    note = (
        "A person asks once. If the same question gets different codes when it is repeated word for word, or when "
        "another person asks it in another voice or place, the answer depends on chance. Repeats and variants show "
        "this; they do not count as more questions."
    )
    return Section(
        words("Stability"), (Paragraph(words(note)), Table("How often codes stay the same.", columns, tuple(rows)))
    )
