"""Study codes by run, scenario, target and question group, compared with those of human counselors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from ..findings.code_error import JudgedShare
from ..findings.estimates import Estimated, estimate, estimate_questions, tallied_rows
from ..findings.human_comparison import (
    MODES,
    STUDY_SCENARIOS,
    Baseline,
    ComparedGroups,
    CounselorShare,
    Gap,
    HumanComparison,
    Kind,
    corrected_gaps,
    load_baseline,
    study_rules,
)
from ..schemas import CODES, StudyCode
from ..scoring.definitions import CODE_HEADINGS, MEASURES, SHARES, ShareName
from ..text.rounded import rounded
from ..trials.row import OwnCode
from . import read_sections
from .charts import Bar, StackChart
from .document import NOTHING, Cell, ChartBlock, Column, Section, Table, linked, text_cell
from .drawing import Group
from .judge_section import judge_error_cell, study_judge_errors
from .links import of_study, of_study_group, slug
from .score_section import COVERAGE_COLUMNS, coverage_cells, of_group
from .series import ReportedTarget, Runs

MODE_NAMES = {"phone": "phone", "face_to_face": "face to face"}
ANSWERS = ("yes", "no", "unsure")
CAPTIONS: dict[Kind, str] = {
    "like": "Like for like",
    "other_rules": "Not like for like, because these groups are not coded by the study's points",
    "lookup": "Not like for like, because counselors could look these up",
}


@dataclass
class CodeCounts:
    """Codes and closed answers given to some questions."""

    codes: Counter[StudyCode] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)

    @property
    def n(self) -> int:
        return sum(self.codes.values())

    def add(self, other: CodeCounts) -> None:
        self.codes.update(other.codes)
        self.answers.update(other.answers)

    def in_order(self) -> tuple[int, ...]:
        return tuple(self.codes[code] for code in CODES)

    def answered(self) -> list[int]:
        return [self.answers[answer] for answer in ANSWERS]


class QuestionKey(NamedTuple):
    series: ReportedTarget
    scenario_id: str
    group: str


Counted = dict[QuestionKey, CodeCounts]


def count_codes(runs: Runs) -> Counted:
    """Codes and closed answers of every question, in the order of the scenarios' turns."""
    counted: Counted = {}
    for series in runs.series:
        found = series.run.found
        alike = Counter([(row.scenario_id, row.codes, row.answers) for row in series.rows])
        for (scenario_id, codes, answers), n in alike.items():
            for group, code in codes:
                key = QuestionKey(series, scenario_id, group)
                counted.setdefault(key, CodeCounts()).codes[cast(StudyCode, code)] += n
            for group, answer in answers:
                key = QuestionKey(series, scenario_id, group)
                counted.setdefault(key, CodeCounts()).answers[answer] += n
        order = {rule: place for place, rule in enumerate(found.rules)}
        mine = sorted(
            (key for key in counted if key.series is series),
            key=lambda key: order.get((key.scenario_id, key.group), len(order)),
        )
        for key in mine:
            counted[key] = counted.pop(key)
    return counted


def _study_number(series: ReportedTarget, scenario_id: str, group: str) -> int | None:
    """A group's number in the published study, if the scenario is one of the study's; else None."""
    rule = series.run.found.rules.get((scenario_id, group))
    return rule.study_group if rule and scenario_id in STUDY_SCENARIOS else None


def by_study_group(counted: Counted, series: ReportedTarget) -> dict[int, CodeCounts]:
    """The groups of the published study, over both scenarios, in the order of their numbers."""
    found: dict[int, CodeCounts] = {}
    for (mine, scenario_id, group), counts in counted.items():
        number = _study_number(series, scenario_id, group)
        if mine is series and number:
            found.setdefault(number, CodeCounts()).add(counts)
    return dict(sorted(found.items()))


class _Row(NamedTuple):
    """A question group, or several together, of one target in one table."""

    name: Cell
    target: Estimated
    effective: str
    error: str
    modes: list[tuple[CounselorShare, Gap]]


class _Target(NamedTuple):
    series: ReportedTarget
    kinds: list[tuple[Kind, list[tuple[ShareName, list[_Row]]]]]
    """For each kind of groups, the rows of one table per code."""
    differs: list[tuple[int, str]]
    """Groups whose rules still differ from the study's."""
    counts: dict[int, CodeCounts]
    """By group."""
    figures: list[ChartBlock]


def study_sections(runs: Runs, counted: Counted, figures: Sequence[ChartBlock]) -> tuple[Section, ...]:
    """The tables of the published study for each target, beside its counselors; and codes of all other questions.

    If there are figures of all targets, they come first, and the tables of each target are folded below them.
    """
    grouped = {series: by_study_group(counted, series) for series in runs.series}
    baseline = load_baseline()
    asked = sorted({number for groups in grouped.values() for number in groups if number in baseline.groups})
    compared = {series: series.beside_counselors for series, groups in grouped.items() if groups}
    return read_sections.sections(
        "study",
        runs=runs,
        figures=figures,
        targets=[_target(series, grouped[series], found, baseline) for series, found in compared.items()],
        most=max((one.comparisons for one in compared.values()), default=0),
        registered=any(run.found.manifest.registration for run in runs.runs),
        checked=any(run.judging and run.judging.check for run in runs.runs),
        captions=CAPTIONS,
        measures=MEASURES,
        modes=MODE_NAMES,
        codes=CODE_HEADINGS,
        baseline=baseline,
        own=_own_points(runs),
        asked=[baseline.groups[number] for number in asked],
        answers=ANSWERS,
        closed=[(series, groups[2].answered()) for series, groups in grouped.items() if 2 in groups],
        topics=list(_topics(counted)),
    )


def _own_points(runs: Runs) -> dict[QuestionKey, list[OwnCode]]:
    """By question that has two sets of points: its codes by our own points."""
    found: dict[QuestionKey, list[OwnCode]] = {}
    for series in runs.series:
        for row in series.rows:
            for own in row.own:
                found.setdefault(QuestionKey(series, row.scenario_id, own.group), []).append(own)
    return found


def _target(
    series: ReportedTarget, groups: Mapping[int, CodeCounts], found: HumanComparison, baseline: Baseline
) -> _Target:
    rules = study_rules(series.run.found.rules)
    counts = {n: one for n, one in groups.items() if n in baseline.groups and one.n}
    numbers = {kind: [n for one in found.groups.get(kind, ()) for n in one.numbers if n in counts] for kind in CAPTIONS}
    return _Target(
        series,
        [(kind, _tables(series, found, kind)) for kind in CAPTIONS if found.groups.get(kind)],
        [(n, differs) for n in counts if n in rules and (differs := rules[n].differs)],
        counts,
        [
            _code_figure(series, kind, tuple(_bars(n, counts[n], baseline) for n in listed))
            for kind, listed in numbers.items()
            if listed
        ],
    )


def _tables(series: ReportedTarget, found: HumanComparison, kind: Kind) -> list[tuple[ShareName, list[_Row]]]:
    pooled = found.pooled.get(kind)
    listed = [*found.groups[kind], *([pooled] if pooled else [])]
    errors = [study_judge_errors(series, one.numbers) for one in listed]
    return [
        (code, [_row(series, one, code, of_one[code]) for one, of_one in zip(listed, errors, strict=True)])
        for code in SHARES
    ]


def _row(series: ReportedTarget, one: ComparedGroups, code: ShareName, error: JudgedShare) -> _Row:
    beside = one.outcomes[code]
    target, number = beside.target, one.numbers[0]
    gaps = corrected_gaps(beside, error.corrected) if error.corrected else beside.gaps
    return _Row(
        linked(text_cell(f"{number} {one.topic}"), of_study_group(series, number))
        if len(one.numbers) == 1
        else linked(Cell("all of these together", "strong"), of_study(series)),
        target,
        NOTHING if target.effective is None else rounded(target.effective, 1),
        judge_error_cell(error),
        [(beside.counselors[mode], gaps[mode]) for mode in MODES],
    )


def _code_figure(series: ReportedTarget, kind: Kind, bars: tuple[Group[Bar], ...]) -> ChartBlock:
    """One for each kind of group, so that each fits on a printed page."""
    chart = StackChart(
        f"study-codes-{slug(series.label)}-{series.place}-{slug(kind)}",
        f"Study codes: {series.label} and counselors",
        CAPTIONS[kind],
        tuple(CODE_HEADINGS.values()),
        bars,
    )
    return ChartBlock(chart, "See the tables above and the counselors' table below for the numbers.")


def _bars(number: int, counts: CodeCounts, baseline: Baseline) -> Group[Bar]:
    group = baseline.groups[number]
    human = [Bar(MODE_NAMES[mode], tuple(group.by_mode[mode].codes[code] for code in CODES)) for mode in MODES]
    return Group(f"{number} {group.topic}", (Bar("AI", counts.in_order()), *human))


def question_table(runs: Runs, counted: Counted) -> Table:
    """One line per target, scenario and question group, for a CSV file."""
    tallies = {series: tallied_rows(series.rows, "accurate_complete") for series in runs.series}
    found = [
        (
            one,
            one.series.run.found.rules.get((one.scenario_id, one.group)),
            counts,
            estimate_questions(tallies[one.series], {(one.scenario_id, one.group)}),
            coverage_cells(of_group(*one)),
        )
        for one, counts in counted.items()
    ]
    return read_sections.table(
        "parts",
        "questions",
        runs=runs,
        found=found,
        code_columns=[Column(heading, key=code) for code, heading in CODE_HEADINGS.items()],
        answer_columns=[Column(answer, key=f"answer_{answer}") for answer in ANSWERS],
        coverage_columns=COVERAGE_COLUMNS,
    )


def _topics(counted: Counted) -> Iterator[tuple[ReportedTarget, str, CodeCounts, Estimated]]:
    """Codes of the questions that are not from the published study, by scenario and target."""
    pooled: dict[str, dict[ReportedTarget, CodeCounts]] = {}
    for (series, scenario_id, group), counts in counted.items():
        if counts.n and not _study_number(series, scenario_id, group):
            pooled.setdefault(scenario_id, {}).setdefault(series, CodeCounts()).add(counts)
    for scenario_id, by_series in pooled.items():
        for series, counts in by_series.items():
            rows = [row for row in series.rows if row.scenario_id == scenario_id]
            yield series, scenario_id, counts, estimate(rows, "accurate_complete")
