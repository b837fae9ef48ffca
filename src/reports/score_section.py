"""The report's sections on what happened to the trials, how they scored, and how stable answers are.

Beside accuracy is key coverage: how much of what was said the answer keys could decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ..findings.estimates import estimate, group_coverage, key_coverage
from ..findings.pairs import values_of
from ..findings.read_run import Findings, GroupKey
from ..findings.sensitivity import stability
from ..schemas import TrialOutcome
from ..scoring.definitions import KEY_COVERAGE, MEASURES, SCORE_HEADINGS, SCORES
from ..stats.bounded import LEAST_UNITS
from ..stats.clustered import ClusteredShare
from ..trials.row import OUTCOMES, Row
from .charts import BINS, Histogram, HistogramRow
from .document import (
    Block,
    Cell,
    Column,
    Figure,
    Paragraph,
    Section,
    Table,
    count_cell,
    estimate_text,
    linked,
    mean_cell,
    of_cell,
    range_cell,
    say,
    share_cell,
    share_text,
    text_cell,
    words,
)
from .forest import ForestChart, ForestGroup, ForestPanel, ForestRow, Mark, Tick
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
    Column("key decided", key="key_decided", csv_only=True),
    Column("factual claims", key="factual_claims", csv_only=True),
)


def coverage_cells(share: ClusteredShare) -> tuple[Cell, ...]:
    return share_cell(share), count_cell(share.count), count_cell(share.n)


def coverage_paragraphs(runs: Runs) -> list[Paragraph]:
    """One sentence per run."""
    return [
        Paragraph(
            say(*((text_cell(run.name), ": ") if runs.several else ()), coverage_sentence(key_coverage(run.found.rows)))
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
            text_cell(one.scenario_id),
            linked(text_cell(one.group), one.evidence()),
            of_cell(one.share.count, one.share.n),
            share_cell(one.share),
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


ANSWERED: tuple[TrialOutcome, ...] = ("tampered", "judge_failure", "scored")
UNANSWERED: tuple[TrialOutcome, ...] = ("questioner_failure", "failed", "refused", "blocked", "truncated", "empty")
OUTCOME_NAMES = {outcome: outcome.replace("_", " ") for outcome in OUTCOMES} | {"truncated": "cut off"}
MARKING = 3
"""The first format in which replies that speak to their checkers are marked and scored."""
_QUARTERS = tuple(Tick(tick / 4, f"{tick / 4:.2f}") for tick in range(5))
SEE_TABLE = "See the table above for the numbers."


def knows_tampered(found: Findings) -> bool:
    """Whether a run can have the outcome `tampered`, which only earlier releases wrote."""
    return found.manifest.format < MARKING or any(row.outcome == "tampered" for row in found.rows)


def flow_section(runs: Runs) -> Section:
    """Planned trials and what happened to each: first those without an answer, then those with one."""
    tampered = any(knows_tampered(run.found) for run in runs.runs)
    answered = tuple(outcome for outcome in ANSWERED if tampered or outcome != "tampered")
    beyond = any(len(series.rows) > series.planned for series in runs.series)
    columns = (
        *runs.lead_columns(),
        Column("planned"),
        *((Column("beyond the plan"),) if beyond else ()),
        Column("not yet run"),
        *(Column(OUTCOME_NAMES[outcome]) for outcome in UNANSWERED),
        Column("answered"),
        *(Column(OUTCOME_NAMES[outcome]) for outcome in answered),
    )
    rows = []
    for series in runs.series:
        outcomes = Counter(row.outcome for row in series.rows)
        done = len(series.rows)
        rows.append(
            (
                *runs.lead(series),
                count_cell(series.planned),
                *((count_cell(max(0, done - series.planned)),) if beyond else ()),
                count_cell(max(0, series.planned - done)),
                *(count_cell(outcomes[outcome]) for outcome in UNANSWERED),
                count_cell(sum(outcomes[outcome] for outcome in answered)),
                *(count_cell(outcomes[outcome]) for outcome in answered),
            )
        )
    note = (
        f"Planned{' plus beyond the plan' if beyond else ''} is the sum of the columns from not yet run to answered; "
        "answered is the sum of the columns after it. Only scored trials have scores."
    )
    if tampered:
        note += (
            " Tampered, in runs of releases before 0.3: the reply tried to address or instruct the judge, so it was "
            "not scored."
        )
    table = Table("Planned trials, and what happened to them.", columns, tuple(rows))
    return Section(words("Flow"), (Paragraph(words(note)), table, _turn_table(runs)))


def _turn_table(runs: Runs) -> Table:
    kinds = list(dict.fromkeys(kind for run in runs.runs for _, kind in sorted(run.found.turns)))
    kinds.sort(key=lambda kind: (kind != "answered", kind))
    rows = []
    for series in runs.series:
        counts = {kind: series.run.found.turns[series.target, kind] for kind in kinds}
        rows.append(
            (*runs.lead(series), count_cell(sum(counts.values())), *(count_cell(counts[kind]) for kind in kinds))
        )
    columns = (*runs.lead_columns(), Column("turns"), *(Column(kind.replace("_", " ")) for kind in kinds))
    return Table("Turns of these trials, by outcome.", columns, tuple(rows))


def _mean(rows: Sequence[Row], name: str) -> Cell:
    return mean_cell(estimate(rows, name))


def scored(rows: Sequence[Row]) -> int:
    return sum(row.outcome == "scored" for row in rows)


def _score_columns() -> tuple[Column, ...]:
    accuracy, *others = (Column(heading, "mean", name) for name, heading in SCORE_HEADINGS.items())
    return accuracy, *COVERAGE_COLUMNS, *others


def _score_cells(rows: Sequence[Row]) -> tuple[Cell, ...]:
    accuracy, *others = (_mean(rows, name) for name in SCORES)
    return accuracy, *of_rows(rows), *others


def scenario_table(runs: Runs) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for run in runs.runs:
        mine = [series for series in runs.series if series.run is run]
        planned = [one.scenario.scenario_id for one in run.found.manifest.plan.scenarios]
        for scenario_id in dict.fromkeys((*planned, *(row.scenario_id for row in run.found.rows))):
            for series in mine:
                trials = [row for row in series.rows if row.scenario_id == scenario_id]
                named = linked(text_cell(scenario_id), of_scenario(series, scenario_id))
                cells = [*runs.lead(series), named, count_cell(len(trials)), count_cell(scored(trials))]
                rows.append((*cells, *_score_cells(trials)))
    columns = (
        *runs.lead_columns(),
        Column("scenario", "text", "scenario_id"),
        Column("trials", key="trials"),
        Column("scored", key="scored"),
        *_score_columns(),
    )
    return Table(
        "Scores by scenario: mean over repeats and variants. One scenario has no interval.", columns, tuple(rows)
    )


def score_section(runs: Runs) -> Section:
    rows = tuple(
        (
            *runs.lead(series),
            count_cell(scored(series.rows)),
            count_cell(len({row.scenario_id for row in series.rows if row.outcome == "scored"})),
            *_score_cells(series.rows),
        )
        for series in runs.series
    )
    columns = (*runs.lead_columns(), Column("scored"), Column("scenarios"), *_score_columns())
    explained = [(heading, MEASURES[name].clause) for name, heading in SCORE_HEADINGS.items()]
    explained.append((KEY_COVERAGE.heading, KEY_COVERAGE.brief))
    note = (
        "Mean over scenarios with its 95% interval. Within a scenario, repeats are averaged first, then variants, so "
        f"neither adds to n; scenarios are the independent units, and {LEAST_UNITS} are needed for an interval. "
        f"{' '.join(f'{heading.capitalize()}: {clause}.' for heading, clause in explained)}"
    )
    blocks: list[Block] = [
        Paragraph(words(note)),
        *coverage_paragraphs(runs),
        Table("Scores by target.", columns, rows),
        *_missing_table(runs),
    ]
    if any(scored(series.rows) for series in runs.series):
        panels = tuple(ForestPanel(heading, _QUARTERS) for heading in SCORE_HEADINGS.values())
        marks = tuple(ForestRow(one.chart_label, tuple(_mark(one, name) for name in SCORES)) for one in runs.series)
        chart = ForestChart("scores", "Scores with 95% intervals", panels, (ForestGroup("", marks),), stacked=True)
        blocks.append(Figure(chart, SEE_TABLE))
    return Section(words("Scores"), (*blocks, scenario_table(runs), least_covered_table(runs)))


def _missing_table(runs: Runs) -> list[Block]:
    """The lowest and highest mean that trials without a score allow; nothing if there is none."""
    rows: list[tuple[Cell, ...]] = []
    for series in runs.series:
        found = {name: estimate(series.rows, name) for name in SCORES}
        missing = max(one.missing for one in found.values())
        if missing:
            ends = [range_cell(one.lowest, one.highest) for one in found.values()]
            rows.append((*runs.lead(series), of_cell(missing, len(series.rows)), *ends))
    columns = (
        *runs.lead_columns(),
        Column("trials missing", "other"),
        *(Column(heading, "other") for heading in SCORE_HEADINGS.values()),
    )
    caption = "What the means could be if every missing trial had scored 0, or 1."
    return [Table(caption, columns, tuple(rows))] if rows else []


def _mark(series: Series, name: str) -> Mark:
    found = estimate(series.rows, name)
    return Mark(found.value, found.low, found.high, estimate_text(found))


def distribution_section(runs: Runs) -> Section:
    """How many scored trials fall into each tenth of the accuracy scale."""
    rows, bars = [], []
    for series in runs.series:
        values = values_of(series.rows, "accuracy")
        tenths = Counter(min(BINS - 1, int(round(value * BINS, 9))) for value in values)
        counts = tuple(tenths[place] for place in range(BINS))
        empty = scored(series.rows) - len(values)
        rows.append((*runs.lead(series), *(count_cell(count) for count in counts), count_cell(empty)))
        notes = (f"n={len(values)}", *((f"nothing to check: {empty}",) if empty else ()))
        bars.append(HistogramRow(series.chart_label, counts, notes))
    headings = [f"{place / BINS:.1f}–{(place + 1) / BINS:.1f}" for place in range(BINS)]
    columns = (*runs.lead_columns(), *(Column(heading) for heading in headings), Column("nothing to check"))
    caption = "Scored trials by accuracy; a value on a boundary counts in the higher column."
    blocks: list[Block] = [Table(caption, columns, tuple(rows))]
    if any(sum(bar.counts) for bar in bars):
        blocks.append(Figure(Histogram("accuracy", "Scored trials by accuracy", tuple(bars)), SEE_TABLE))
    return Section(words("Distribution of accuracy"), tuple(blocks))


def stability_section(runs: Runs) -> Section:
    """How often a target's code stays the same if a question is asked again, or in another variant."""
    rows: list[tuple[Cell, ...]] = []
    for series in runs.series:
        found = stability(series.rows)
        rows.append(
            (
                *runs.lead(series),
                count_cell(found.repeated),
                share_cell(found.same_when_repeated),
                count_cell(found.varied),
                share_cell(found.same_when_varied),
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
