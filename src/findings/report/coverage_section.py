"""Key coverage beside accuracy: how much of what was said the answer keys could decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ...stats.clustered import ClusteredShare
from ...trials.row import Row
from ..analysis.estimates import group_coverage, key_coverage
from ..analysis.read_run import GroupKey
from .document import Cell, Column, Count, Linked, Of, Paragraph, Proportion, Table, Text, say, share_text
from .links import of_question, of_scenario
from .series import Runs, Series

LEAST_COVERED = 10
"""Question groups with the lowest key coverage that a report lists."""
UNDECIDED = "the judges found nothing in the keys that decides the rest"


def coverage_sentence(share: ClusteredShare) -> str:
    """What accuracy speaks of, and what it is silent about."""
    if not share.n:
        return "Key coverage: no factual claim has a final label, so accuracy speaks of none."
    return f"Key coverage: accuracy speaks of {share_text(share)} of the factual claims; {UNDECIDED}."


COVERAGE_COLUMNS = (
    Column("key coverage (95% interval)", "share", "key_coverage"),
    Column("key decided", key="key_decided", where="csv"),
    Column("factual claims", key="factual_claims", where="csv"),
)


def coverage_cells(share: ClusteredShare) -> tuple[Cell, ...]:
    return Proportion(share), Count(share.count), Count(share.n)


def coverage_paragraphs(runs: Runs) -> list[Paragraph]:
    """One sentence per run."""
    return [
        Paragraph(
            say(
                *((Text(run.name), ": ") if runs.several else ()),
                coverage_sentence(key_coverage(run.found.rows)),
            )
        )
        for run in runs.runs
    ]


def of_group(series: Series, scenario_id: str, group: str) -> ClusteredShare:
    counts = series.run.found.group_claims.get(GroupKey(series.target, scenario_id, group))
    return group_coverage(counts or Counter())


class _Group(NamedTuple):
    series: Series
    scenario_id: str
    group: str
    share: ClusteredShare

    def evidence(self) -> str:
        """A turn outside all question groups has no place of its own on the page of its scenario."""
        known = (self.scenario_id, self.group) in self.series.run.found.rules
        where = of_question(self.series, self.scenario_id, self.group)
        return where if known else of_scenario(self.series, self.scenario_id)


def least_covered_table(runs: Runs) -> Table:
    """The question groups about which the keys say least, so that one knows where to extend them."""
    groups = [
        _Group(series, key.scenario_id, key.group, group_coverage(counts))
        for series in runs.series
        for key, counts in series.run.found.group_claims.items()
        if key.target == series.target
    ]
    groups.sort(key=lambda one: (one.share.value or 0.0, -one.share.n, one.scenario_id, one.group))
    rows = tuple(
        (
            *runs.lead(one.series),
            Text(one.scenario_id),
            Linked(Text(one.group), one.evidence()),
            Of(one.share.count, one.share.n),
            Proportion(one.share),
        )
        for one in groups[:LEAST_COVERED]
    )
    columns = (
        *runs.lead_columns(),
        Column("scenario", "text"),
        Column("question group", "text"),
        Column("claims decided", "other"),
        COVERAGE_COLUMNS[0],
    )
    left = len(groups) - len(rows)
    more = f"; {left} more are in per_question.csv" if left > 0 else ""
    return Table(f"Question groups with the lowest key coverage{more}.", columns, rows)


def of_rows(rows: Sequence[Row]) -> tuple[Cell, ...]:
    return coverage_cells(key_coverage(rows))
