"""Study codes by run, scenario, target and question group, compared with those of human counselors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from ...records.study_code import HEADINGS
from ...schemas import CODES, GroupRule, StudyCode
from ...stats.comparison import newcombe
from ...stats.intervals import wilson
from ..analysis.baseline import (
    MODES,
    Baseline,
    Counts,
    load_baseline,
)
from .charts import Bar, BarGroup, BarPanel, StackChart
from .coverage_section import COVERAGE_COLUMNS, coverage_cells, of_group
from .document import (
    Block,
    Bullets,
    Cell,
    Column,
    Count,
    Figure,
    Gap,
    Link,
    Paragraph,
    Part,
    Proportion,
    Section,
    Table,
    Text,
    Words,
    say,
    words,
)
from .own_points import own_points_section
from .series import Runs, Series, slug

STUDY_SCENARIOS = ("medicare_only", "dual_eligible")
MODE_NAMES = {"phone": "phone", "face_to_face": "face to face"}
ANSWERS = ("yes", "no", "unsure")
COMPARABLE = "Groups on which a counselor and a model can be compared"
OTHER_RULES = "Groups not coded by the study's points: not comparable"
LOOKED_UP = "Lookup groups: not comparable"
FIRST_EDITION_OWN_POINTS = frozenset({3, 8, 10, 11})
"""Groups whose points or levels were not the study's in rubrics that do not state whether they are."""


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


class QuestionKey(NamedTuple):
    series: Series
    scenario_id: str
    group: str


Counted = dict[QuestionKey, CodeCounts]


def count_codes(runs: Runs) -> Counted:
    """Codes and closed answers of every question, in the order of the scenarios' turns."""
    counted: Counted = {}
    for series in runs.series:
        found = series.run.found
        for row in series.rows:
            for group, code in row.codes:
                key = QuestionKey(series, row.scenario_id, group)
                counted.setdefault(key, CodeCounts()).codes[cast(StudyCode, code)] += 1
            for group, answer in row.answers:
                key = QuestionKey(series, row.scenario_id, group)
                counted.setdefault(key, CodeCounts()).answers[answer] += 1
        order = {rule: place for place, rule in enumerate(found.rules)}
        mine = sorted(
            (key for key in counted if key.series is series),
            key=lambda key: order.get((key.scenario_id, key.group), len(order)),
        )
        for key in mine:
            counted[key] = counted.pop(key)
    return counted


def _study_number(series: Series, scenario_id: str, group: str) -> int | None:
    """A group's number in the published study, if the scenario is one of the study's; else None."""
    rule = series.run.found.rules.get((scenario_id, group))
    return rule.study_group if rule and scenario_id in STUDY_SCENARIOS else None


def by_study_group(counted: Counted, series: Series) -> dict[int, CodeCounts]:
    """The groups of the published study, over both scenarios, in the order of their numbers."""
    found: dict[int, CodeCounts] = {}
    for (mine, scenario_id, group), counts in counted.items():
        number = _study_number(series, scenario_id, group)
        if mine is series and number:
            found.setdefault(number, CodeCounts()).add(counts)
    return dict(sorted(found.items()))


def _study_rules(series: Series) -> dict[int, GroupRule]:
    """The rules of the study's groups that this run asked for, by the group's number."""
    rules = series.run.found.rules
    return {
        rule.study_group: rule
        for (scenario_id, _), rule in rules.items()
        if rule.study_group and scenario_id in STUDY_SCENARIOS
    }


def _is_faithful(number: int, rule: GroupRule | None) -> bool:
    """Whether the group's code means what the study's code means."""
    if rule is None or rule.study_faithful is None:
        return number not in FIRST_EDITION_OWN_POINTS
    return rule.study_faithful


def _gap(k1: int, n1: int, k2: int, n2: int, *, interval: bool) -> Gap:
    """First share minus second."""
    found = newcombe(k1, n1, k2, n2)
    bounds = (found.low, found.high) if interval else (None, None)
    return Gap(found.value, *bounds, n=min(n1, n2))


def study_section(runs: Runs, counted: Counted) -> Section:
    """The tables of the published study for each target, compared with its human counselors."""
    title = words("Study codes compared with human counselors")
    grouped = {series: by_study_group(counted, series) for series in runs.series}
    if not any(grouped.values()):
        return Section(
            title, (Paragraph(words("No question of the published study was asked and answered in these runs.")),)
        )
    baseline = load_baseline()
    asked = sorted({number for groups in grouped.values() for number in groups if number in baseline.groups})
    blocks: list[Block] = [
        Paragraph(
            words(
                "Share of answers that were accurate and complete, for the AI and for human counselors by phone and "
                "face to face; then how many percentage points the AI's share is above (+) or below (−) theirs, with "
                "a 95% interval; then the AI's answers by code. Question groups have the study's numbers. Incomplete "
                "data counts in every n, as in the study. Pooled rows have no interval, because answers within one "
                "conversation are not independent."
            )
        )
    ]
    parts = [_of_target(series, groups, baseline) for series, groups in grouped.items() if groups]
    if own := own_points_section(runs):
        parts.append(own)
    parts.append(_counselors(asked, baseline))
    closed = _closed_table(runs, grouped)
    if closed:
        parts.append(Section(words("Group 2, help in Spanish"), (closed,)))
    return Section(title, tuple(blocks), tuple(parts))


def _of_target(series: Series, groups: Mapping[int, CodeCounts], baseline: Baseline) -> Section:
    scored = {n: counts for n, counts in groups.items() if n in baseline.groups and counts.n}
    rules = _study_rules(series)
    unlike = {n: c for n, c in scored.items() if baseline.groups[n].lookup_dependent}
    like = {n: c for n, c in scored.items() if n not in unlike and _is_faithful(n, rules.get(n))}
    other = {n: c for n, c in scored.items() if n not in unlike and n not in like}
    blocks: list[Block] = []
    if like:
        blocks.append(_group_table(f"{COMPARABLE}.", like, baseline))
    if other:
        blocks.append(_group_table(f"{OTHER_RULES}.", other, baseline))
    if unlike:
        blocks.append(
            Paragraph(
                say(
                    Words("Not comparable:", strong=True),
                    " for the questions in the next table counselors had Plan Finder, and the AI could not look "
                    "anything up.",
                )
            )
        )
        blocks.append(_group_table(f"{LOOKED_UP}.", unlike, baseline))
    if notes := [f"Group {n}: {rules[n].differs}" for n in scored if n in rules and rules[n].differs]:
        blocks.append(Paragraph(words("Where our rules still differ from the study's:")))
        blocks.append(Bullets(tuple((Text(note),) for note in notes)))
    if scored:
        panels = tuple(
            BarPanel(name, tuple(_bars(number, counts, baseline) for number, counts in part.items()))
            for name, part in ((COMPARABLE, like), (OTHER_RULES, other), (LOOKED_UP, unlike))
            if part
        )
        name = f"study-codes-{slug(series.label)}-{series.place}"
        chart = StackChart(name, f"Study codes: {series.label} and counselors", tuple(HEADINGS.values()), panels)
        blocks.append(Figure(chart, "See the tables above and the counselors' table below for the numbers."))
    return Section((Text(series.label),), tuple(blocks))


def _bars(number: int, counts: CodeCounts, baseline: Baseline) -> BarGroup:
    group = baseline.groups[number]
    human = [Bar(MODE_NAMES[mode], tuple(group.by_mode[mode].codes[code] for code in CODES)) for mode in MODES]
    return BarGroup(f"{number} {group.topic}", (Bar("AI", counts.in_order()), *human))


def _group_table(caption: str, groups: Mapping[int, CodeCounts], baseline: Baseline) -> Table:
    columns = (
        Column("group", "text"),
        Column("n"),
        Column("AI, complete (95% interval)", "share"),
        *(Column(f"{MODE_NAMES[mode]}, complete", "other") for mode in MODES),
        *(Column(f"AI minus {MODE_NAMES[mode]} (points)", "other") for mode in MODES),
        *(Column(f"AI: {heading}") for heading in HEADINGS.values()),
    )
    rows = [
        _group_row(Text(f"{number} {baseline.groups[number].topic}"), counts, _human(baseline, [number]), pooled=False)
        for number, counts in groups.items()
    ]
    if len(groups) > 1:
        everything = CodeCounts()
        for counts in groups.values():
            everything.add(counts)
        rows.append(_group_row(Words("all of these, pooled"), everything, _human(baseline, groups), pooled=True))
    return Table(caption, columns, tuple(rows))


def _human(baseline: Baseline, numbers: Iterable[int]) -> list[Counts]:
    listed = list(numbers)
    return [Counts.pooled(baseline.groups[number].by_mode[mode] for number in listed) for mode in MODES]


def _group_row(name: Cell, counts: CodeCounts, human: Sequence[Counts], *, pooled: bool) -> tuple[Cell, ...]:
    complete = counts.codes["accurate_complete"]
    gaps = [_gap(complete, counts.n, one.codes["accurate_complete"], one.shops, interval=not pooled) for one in human]
    return (
        name,
        Count(counts.n),
        Part(complete, counts.n) if pooled else Proportion(wilson(complete, counts.n)),
        *(Part(one.codes["accurate_complete"], one.shops) for one in human),
        *gaps,
        *(Count(counts.codes[code]) for code in CODES),
    )


def _counselors(asked: Sequence[int], baseline: Baseline) -> Section:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            Text(f"{number} {baseline.groups[number].topic}"),
            Words("yes" if baseline.groups[number].lookup_dependent else "no"),
            Words(MODE_NAMES[mode]),
            Count(counts.shops),
            *(Count(counts.codes[code]) for code in CODES),
        )
        for number in asked
        for mode, counts in baseline.groups[number].by_mode.items()
    )
    columns = (
        Column("group", "text"),
        Column("lookup", "text"),
        Column("mode", "text"),
        Column("n"),
        *(Column(heading) for heading in HEADINGS.values()),
    )
    notes = baseline.notes
    return Section(
        words("Human counselors, as published"),
        (
            Table("Counts of counselors' answers by code.", columns, rows),
            Paragraph(say(Text(notes.citation), " ", Link(notes.address))),
            Bullets(tuple((Text(caveat),) for caveat in notes.caveats)),
        ),
    )


def _closed_table(runs: Runs, grouped: Mapping[Series, Mapping[int, CodeCounts]]) -> Table | None:
    rows = tuple(
        (*runs.lead(series), *(Count(groups[2].answers[answer]) for answer in ANSWERS))
        for series, groups in grouped.items()
        if 2 in groups
    )
    columns = (*runs.lead_columns(), *(Column(answer) for answer in ANSWERS))
    return Table("Answers to a closed question, which gets no study code.", columns, rows) if rows else None


def question_table(runs: Runs, counted: Counted) -> Table:
    """One line per target, scenario and question group, for a CSV file."""
    columns = (
        *runs.lead_columns(),
        Column("scenario", "text", "scenario_id"),
        Column("question group", "text", "question_group"),
        Column("study group", "text", "study_group"),
        Column("topic", "text", "topic"),
        Column("lookup", "text", "lookup_dependent"),
        Column("n", key="n"),
        *(Column(heading, key=code) for code, heading in HEADINGS.items()),
        Column("share complete (95% interval)", "share", "accurate_complete"),
        *(Column(answer, key=f"answer_{answer}") for answer in ANSWERS),
        *COVERAGE_COLUMNS,
    )
    rows = []
    for (series, scenario_id, group), counts in counted.items():
        rule = series.run.found.rules.get((scenario_id, group))
        rows.append(
            (
                *runs.lead(series),
                Text(scenario_id),
                Text(group),
                Text(str(rule.study_group or "") if rule else ""),
                Text(rule.topic if rule else ""),
                Words("yes" if rule and rule.lookup_dependent else "no"),
                Count(counts.n),
                *(Count(counts.codes[code]) for code in CODES),
                Proportion(wilson(counts.codes["accurate_complete"], counts.n)),
                *(Count(counts.answers[answer]) for answer in ANSWERS),
                *coverage_cells(of_group(series, scenario_id, group)),
            )
        )
    return Table("Codes by question.", columns, tuple(rows))


def topic_section(runs: Runs, counted: Counted) -> Section:
    """Codes of the questions that are not from the published study, by scenario."""
    pooled: dict[tuple[str, Series], CodeCounts] = {}
    for (series, scenario_id, group), counts in counted.items():
        if counts.n and not _study_number(series, scenario_id, group):
            pooled.setdefault((scenario_id, series), CodeCounts()).add(counts)
    title = words("Codes of other questions")
    if not pooled:
        return Section(title, (Paragraph(words("No other question was coded.")),))
    scenarios = list(dict.fromkeys(scenario_id for scenario_id, _ in pooled))
    rows = tuple(
        (
            Text(scenario_id),
            *runs.lead(series),
            Count(counts.n),
            *(Count(counts.codes[code]) for code in CODES),
            Proportion(wilson(counts.codes["accurate_complete"], counts.n)),
        )
        for scenario in scenarios
        for (scenario_id, series), counts in pooled.items()
        if scenario_id == scenario
    )
    columns = (
        Column("scenario", "text"),
        *runs.lead_columns(),
        Column("questions"),
        *(Column(heading) for heading in HEADINGS.values()),
        Column("share complete (95% interval)", "share"),
    )
    note = words("Questions that have no counterpart in the published study. per_question.csv has each of them.")
    return Section(title, (Paragraph(note), Table("Counts of answers by code and scenario.", columns, rows)))
