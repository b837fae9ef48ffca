"""The report's sections on what happened to the trials, how they scored, and how stable answers are.

Beside accuracy is key coverage: how much of what was said the answer keys could decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ..findings.estimates import Estimated, claims_behind, estimate, group_coverage, key_coverage
from ..findings.pairs import values_of
from ..findings.read_run import Findings, GroupKey
from ..findings.sensitivity import stability
from ..schemas import TrialOutcome
from ..scoring.definitions import KEY_COVERAGE, MEASURES, SCORE_HEADINGS, SCORES
from ..stats.bounded import LEAST_UNITS
from ..stats.clustered import ClusteredShare
from ..trials.row import OUTCOMES, Row
from . import read_sections
from .charts import BINS, Bar, ForestChart, ForestRow, Histogram, Mark
from .document import (
    Cell,
    ChartBlock,
    Column,
    Paragraph,
    Section,
    Table,
    count_cell,
    estimate_text,
    mean_cell,
    say,
    share_cell,
    share_text,
    text_cell,
)
from .drawing import Group, Panel, Tick
from .links import of_question, of_scenario
from .series import ReportedTarget, Runs

LEAST_COVERED = 10
"""Question groups with the lowest key coverage that a report lists."""
UNDECIDED = "the judges found nothing in the keys that decides the rest"
COVERAGE_COLUMNS = (
    Column("key coverage (95% interval)", "share", "key_coverage"),
    Column("key decided", key="key_decided", csv_only=True),
    Column("factual claims", key="factual_claims", csv_only=True),
)
CLAIM_COLUMNS = (Column("claims", key="claims"), Column("of these open", key="open_claims"))
ANSWERED: tuple[TrialOutcome, ...] = ("tampered", "judge_failure", "scored")
UNANSWERED: tuple[TrialOutcome, ...] = ("questioner_failure", "failed", "refused", "blocked", "truncated", "empty")
OUTCOME_NAMES = {outcome: outcome.replace("_", " ") for outcome in OUTCOMES} | {"truncated": "cut off"}
MARKING = 3
"""The first format in which the screen marks passages and the replies are scored."""
_QUARTERS = tuple(Tick(tick / 4, f"{tick / 4:.2f}") for tick in range(5))
SEE_TABLE = "See the table above for the numbers."


def coverage_sentence(share: ClusteredShare) -> str:
    """What accuracy speaks of, and what it is silent about."""
    if not share.n:
        return "Key coverage: no factual claim has a final label, so accuracy speaks of none."
    return f"Key coverage: accuracy speaks of {share_text(share)} of the factual claims; {UNDECIDED}."


def coverage_cells(share: ClusteredShare) -> tuple[Cell, ...]:
    return share_cell(share), count_cell(share.count), count_cell(share.n)


def of_group(series: ReportedTarget, scenario_id: str, group: str) -> ClusteredShare:
    counts = series.run.found.group_claims.get(GroupKey(series.target, scenario_id, group))
    return group_coverage(counts or Counter())


class _Group(NamedTuple):
    series: ReportedTarget
    scenario_id: str
    group: str
    share: ClusteredShare

    def evidence(self) -> str:
        """A turn outside all question groups has no place of its own on the page of its scenario."""
        known = (self.scenario_id, self.group) in self.series.run.found.rules
        where = of_question(self.series, self.scenario_id, self.group)
        return where if known else of_scenario(self.series, self.scenario_id)


def _covered_groups(runs: Runs) -> list[_Group]:
    """The question groups about which the keys say least come first, so that one knows where to extend them."""
    groups = [
        _Group(series, key.scenario_id, key.group, group_coverage(counts))
        for series in runs.series
        for key, counts in series.run.found.group_claims.items()
        if key.target == series.target
    ]
    return sorted(groups, key=lambda one: (one.share.value or 0.0, -one.share.n, one.scenario_id, one.group))


def knows_tampered(found: Findings) -> bool:
    """Whether a run can have the outcome `tampered`, which only earlier releases wrote."""
    return found.manifest.format < MARKING or any(row.outcome == "tampered" for row in found.rows)


def scored(rows: Sequence[Row]) -> int:
    return sum(row.outcome == "scored" for row in rows)


def _score_columns() -> tuple[Column, ...]:
    accuracy, *others = (Column(heading, "mean", name) for name, heading in SCORE_HEADINGS.items())
    return *CLAIM_COLUMNS, accuracy, *COVERAGE_COLUMNS, *others


def _score_cells(rows: Sequence[Row]) -> tuple[Cell, ...]:
    claims = claims_behind(row for row in rows if row.outcome == "scored")
    accuracy, *others = (mean_cell(estimate(rows, name)) for name in SCORES)
    counts = count_cell(claims.judged), count_cell(claims.open)
    return *counts, accuracy, *coverage_cells(key_coverage(rows)), *others


def scenario_table(runs: Runs) -> Table:
    found = []
    for run in runs.runs:
        mine = [series for series in runs.series if series.run is run]
        planned = [one.scenario.scenario_id for one in run.found.manifest.plan.scenarios]
        for scenario_id in dict.fromkeys((*planned, *(row.scenario_id for row in run.found.rows))):
            for series in mine:
                trials = [row for row in series.rows if row.scenario_id == scenario_id]
                found.append((series, scenario_id, len(trials), scored(trials), _score_cells(trials)))
    return read_sections.table("parts", "scenarios", runs=runs, score_columns=_score_columns(), found=found)


def score_sections(runs: Runs) -> tuple[Section, ...]:
    """What happened to the trials, their scores, how accuracy is distributed, and how stable answers are."""
    tampered = any(knows_tampered(run.found) for run in runs.runs)
    beyond = any(len(series.rows) > series.planned for series in runs.series)
    answered = [outcome for outcome in ANSWERED if tampered or outcome != "tampered"]
    kinds = sorted(
        {kind for run in runs.runs for _, kind in run.found.turns}, key=lambda kind: (kind != "answered", kind)
    )
    covered = _covered_groups(runs)
    spread = [(series, *_tenths(series)) for series in runs.series]
    return read_sections.sections(
        "scores",
        runs=runs,
        lead=runs.lead_columns(),
        tampered=tampered,
        beyond=beyond,
        unanswered=[OUTCOME_NAMES[outcome] for outcome in UNANSWERED],
        answered=[OUTCOME_NAMES[outcome] for outcome in answered],
        flow=[(series, _flow(series, answered, beyond=beyond)) for series in runs.series],
        kinds=[kind.replace("_", " ") for kind in kinds],
        turns=[(one, [one.run.found.turns[one.target, kind] for kind in kinds]) for one in runs.series],
        least_units=LEAST_UNITS,
        explained=[
            *((heading, MEASURES[name].clause) for name, heading in SCORE_HEADINGS.items()),
            (KEY_COVERAGE.heading, KEY_COVERAGE.brief),
        ],
        covered=coverage_paragraphs(runs),
        score_columns=_score_columns(),
        scores=[
            (
                series,
                scored(series.rows),
                len({row.scenario_id for row in series.rows if row.outcome == "scored"}),
                _score_cells(series.rows),
            )
            for series in runs.series
        ],
        headings=list(SCORE_HEADINGS.values()),
        unsure=_unsure(runs),
        score_chart=_score_chart(runs),
        by_scenario=scenario_table(runs),
        coverage_columns=COVERAGE_COLUMNS,
        least_covered=covered[:LEAST_COVERED],
        left=len(covered) - LEAST_COVERED,
        tenths=[f"{place / BINS:.1f}–{(place + 1) / BINS:.1f}" for place in range(BINS)],
        spread=spread,
        spread_chart=_spread_chart(spread),
        stable=[(series, stability(series.rows)) for series in runs.series],
    )


def coverage_paragraphs(runs: Runs) -> list[Paragraph]:
    """One sentence per run."""
    return [
        Paragraph(
            say(*((text_cell(run.name), ": ") if runs.several else ()), coverage_sentence(key_coverage(run.found.rows)))
        )
        for run in runs.runs
    ]


def _flow(series: ReportedTarget, answered: Sequence[TrialOutcome], *, beyond: bool) -> list[int]:
    """Planned trials and what happened to each: first those without an answer, then those with one."""
    outcomes = Counter(row.outcome for row in series.rows)
    more = len(series.rows) - series.planned
    ends = [outcomes[outcome] for outcome in answered]
    lost = (outcomes[outcome] for outcome in UNANSWERED)
    return [series.planned, *([max(0, more)] if beyond else []), max(0, -more), *lost, sum(ends), *ends]


class _Unsure(NamedTuple):
    """A target with trials that lack a score or have open claims, and estimates with what these could change."""

    series: ReportedTarget
    missing: int
    open: int
    estimates: list[Estimated]


def _unsure(runs: Runs) -> list[_Unsure]:
    found = [(series, [estimate(series.rows, name) for name in SCORES]) for series in runs.series]
    every = [
        _Unsure(series, max(one.missing for one in each), max(one.open for one in each), each) for series, each in found
    ]
    return [one for one in every if one.missing or one.open]


def _score_chart(runs: Runs) -> list[ChartBlock]:
    if not any(scored(series.rows) for series in runs.series):
        return []
    panels = tuple(Panel(heading, _QUARTERS) for heading in SCORE_HEADINGS.values())
    marks = tuple(ForestRow(one.chart_label, tuple(_mark(one, name) for name in SCORES)) for one in runs.series)
    chart = ForestChart("scores", "Scores with 95% intervals", panels, (Group("", marks),), stacked=True)
    return [ChartBlock(chart, SEE_TABLE)]


def _mark(series: ReportedTarget, name: str) -> Mark:
    found = estimate(series.rows, name)
    return Mark(found.value, found.low, found.high, estimate_text(found))


def _tenths(series: ReportedTarget) -> tuple[tuple[int, ...], int]:
    """How many scored trials are in each tenth of the accuracy scale, and how many had nothing to check."""
    values = values_of(series.rows, "accuracy")
    tenths = Counter(min(BINS - 1, int(round(value * BINS, 9))) for value in values)
    return tuple(tenths[place] for place in range(BINS)), scored(series.rows) - len(values)


def _spread_chart(spread: Sequence[tuple[ReportedTarget, tuple[int, ...], int]]) -> list[ChartBlock]:
    bars = [
        Bar(series.chart_label, counts, (f"n={sum(counts)}", *((f"nothing to check: {empty}",) if empty else ())))
        for series, counts, empty in spread
    ]
    if not any(sum(bar.counts) for bar in bars):
        return []
    return [ChartBlock(Histogram("accuracy", "Scored trials by accuracy", tuple(bars)), SEE_TABLE)]
