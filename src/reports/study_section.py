"""Study codes by run, scenario, target and question group, compared with those of human counselors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from ..findings.code_error import JudgeError
from ..findings.estimates import Estimated, estimate, estimate_questions, tallied_rows
from ..findings.human_comparison import (
    MODES,
    STUDY_SCENARIOS,
    Baseline,
    ComparedGroups,
    HumanComparison,
    Kind,
    corrected_gaps,
    load_baseline,
    study_rules,
)
from ..schemas import CODES, StudyCode
from ..scoring.definitions import CODE_HEADINGS, MEASURES, SHARES, ShareName
from ..text.rounded import rounded
from .charts import Bar, BarGroup, BarPanel, StackChart
from .document import (
    NOTHING,
    Block,
    Bullets,
    Cell,
    Column,
    Figure,
    Paragraph,
    Section,
    Table,
    count_cell,
    gap_cell,
    link_cell,
    linked,
    range_cell,
    say,
    share_cell,
    text_cell,
    words,
)
from .judge_section import judge_error_cell, study_judge_errors
from .links import of_scenario, of_study, of_study_group, slug
from .own_points import own_points_section
from .score_section import COVERAGE_COLUMNS, coverage_cells, of_group
from .series import Runs, Series

MODE_NAMES = {"phone": "phone", "face_to_face": "face to face"}
ANSWERS = ("yes", "no", "unsure")
CAPTIONS: dict[Kind, str] = {
    "like": "Like for like",
    "other_rules": "Not like for like, because these groups are not coded by the study's points",
    "lookup": "Not like for like, because counselors could look these up",
}
ADJUSTED = "†"
CORRECTED_NOTE = (
    "A judge check was given: where it can correct a share for judge error, the differences are those of the corrected "
    f"share, and {ADJUSTED} also needs the difference as judged to exclude 0 after adjustment."
)
LOOKUP_NOTE = " for the questions in the next tables counselors had Plan Finder, and the AI could not look anything up."


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


@dataclass(frozen=True)
class _Place:
    """Where a table's numbers come from: a target, some of its groups, and how they compare."""

    series: Series
    groups: tuple[ComparedGroups, ...]
    pooled: ComparedGroups | None
    errors: dict[tuple[int, ...], dict[ShareName, JudgeError]]
    """By the numbers of the groups."""

    @property
    def rows(self) -> list[ComparedGroups]:
        return [*self.groups, *([self.pooled] if self.pooled else [])]


def study_section(runs: Runs, counted: Counted) -> Section:
    """The tables of the published study for each target, compared with its human counselors."""
    title = words("Question groups beside human counselors")
    grouped = {series: by_study_group(counted, series) for series in runs.series}
    if not any(grouped.values()):
        return Section(
            title, (Paragraph(words("No question of the published study was asked and answered in these runs.")),)
        )
    baseline = load_baseline()
    asked = sorted({number for groups in grouped.values() for number in groups if number in baseline.groups})
    compared = {series: series.beside_counselors for series, groups in grouped.items() if groups}
    parts = [_of_target(series, grouped[series], found, baseline) for series, found in compared.items()]
    if own := own_points_section(runs):
        parts.append(own)
    parts.append(_counselors(asked, baseline))
    closed = _closed_table(runs, grouped)
    if closed:
        parts.append(Section(words("Group 2, help in Spanish"), (closed,)))
    notes = [*_notes(compared.values(), registered=any(run.found.manifest.registration for run in runs.runs))]
    if any(run.judging and run.judging.check for run in runs.runs):
        notes.append(words(CORRECTED_NOTE))
    return Section(title, tuple(map(Paragraph, notes)), tuple(parts))


def _notes(compared: Iterable[HumanComparison], *, registered: bool) -> Iterator[tuple[Cell, ...]]:
    yield words(
        "The published study sent mystery shoppers to counselors of State Health Insurance Assistance Programs, by "
        "phone and face to face. Question groups have the study's numbers. A question is fixed here, so the "
        "independent units are the scripts (a scenario with one of its variants) in which it was asked; repeats are "
        "averaged first. Two scripts give a wide interval, one gives none. Answers that are missing are left out on "
        "both sides. For several groups together, every question weighs the same on both sides, and the counselors' "
        "interval takes the answers of one counselor as all alike."
    )
    most = max((one.comparisons for one in compared), default=0)
    if most:
        primary = (
            "The primary outcome was registered and is on the first screen. All differences here"
            if registered
            else "The primary comparison is the row of all like-for-like groups together, accurate and complete, by "
            f"phone. The other differences, up to {most - 1} for a target,"
        )
        yield words(
            f"{primary} are exploratory: their intervals are not adjusted for their number, and about one in twenty "
            f"excludes 0 by chance alone. {ADJUSTED} marks a difference whose interval excludes 0 also after "
            f"adjustment for {most} comparisons (Bonferroni)."
        )


def _of_target(series: Series, groups: Mapping[int, CodeCounts], found: HumanComparison, baseline: Baseline) -> Section:
    rules = study_rules(series.run.found.rules)
    blocks: list[Block] = []
    for kind, caption in CAPTIONS.items():
        place = _Place(series, found.groups.get(kind, ()), found.pooled.get(kind), {})
        if not place.groups:
            continue
        place.errors.update({one.numbers: study_judge_errors(series, one.numbers) for one in place.rows})
        if kind == "lookup":
            blocks.append(Paragraph(say(Cell("Not like for like:", "strong"), LOOKUP_NOTE)))
        blocks += [_comparison_table(place, code, f"{caption}: {MEASURES[code].caption.lower()}.") for code in SHARES]
    scored = {n: counts for n, counts in groups.items() if n in baseline.groups and counts.n}
    if notes := [f"Group {n}: {rules[n].differs}" for n in scored if n in rules and rules[n].differs]:
        blocks.append(Paragraph(words("Where our rules still differ from the study's:")))
        blocks.append(Bullets(tuple((text_cell(note),) for note in notes)))
    if scored:
        blocks.append(_code_table(series, scored, baseline))
        for kind in CAPTIONS:
            if numbers := [n for one in found.groups.get(kind, ()) for n in one.numbers if n in scored]:
                blocks.append(_code_figure(series, kind, tuple(_bars(n, scored[n], baseline) for n in numbers)))
    return Section((text_cell(series.label),), tuple(blocks))


def _code_figure(series: Series, kind: Kind, bars: tuple[BarGroup, ...]) -> Figure:
    """One for each kind of group, so that each fits on a printed page."""
    chart = StackChart(
        f"study-codes-{slug(series.label)}-{series.place}-{slug(kind)}",
        f"Study codes: {series.label} and counselors",
        tuple(CODE_HEADINGS.values()),
        (BarPanel(CAPTIONS[kind], bars),),
    )
    return Figure(chart, "See the tables above and the counselors' table below for the numbers.")


def _bars(number: int, counts: CodeCounts, baseline: Baseline) -> BarGroup:
    group = baseline.groups[number]
    human = [Bar(MODE_NAMES[mode], tuple(group.by_mode[mode].codes[code] for code in CODES)) for mode in MODES]
    return BarGroup(f"{number} {group.topic}", (Bar("AI", counts.in_order()), *human))


def _comparison_table(place: _Place, code: ShareName, caption: str) -> Table:
    missing = any(one.outcomes[code].target.missing for one in place.rows)
    columns = (
        Column("group", "text"),
        Column("AI (95% interval)", "share"),
        Column("effective n"),
        Column("judge error", "text"),
        *((Column("AI, if missing answers were no or yes", "other"),) if missing else ()),
        *(
            column
            for mode in MODES
            for column in (
                Column(f"counselors, {MODE_NAMES[mode]} (95% interval)", "share"),
                Column(f"AI minus {MODE_NAMES[mode]} (points)", "other"),
            )
        ),
    )
    rows = [_comparison_row(place, one, code, missing=missing) for one in place.rows]
    return Table(caption, columns, tuple(rows))


def _comparison_row(place: _Place, one: ComparedGroups, code: ShareName, *, missing: bool) -> tuple[Cell, ...]:
    beside = one.outcomes[code]
    target = beside.target
    alone = len(one.numbers) == 1
    name: Cell = text_cell(f"{one.numbers[0]} {one.topic}") if alone else Cell("all of these together", "strong")
    href = of_study_group(place.series, one.numbers[0]) if alone else of_study(place.series)
    cells: list[Cell] = [linked(name, href), share_cell(target)]
    cells.append(Cell(NOTHING if target.effective is None else rounded(target.effective, 1)))
    error = place.errors[one.numbers][code]
    cells.append(Cell(judge_error_cell(error)))
    if missing:
        cells.append(range_cell(target.lowest, target.highest, in_percent=True))
    gaps = corrected_gaps(beside, error.corrected.estimated(target)) if error.corrected else beside.gaps
    for mode in MODES:
        gap, people = gaps[mode], beside.counselors[mode]
        mark = ADJUSTED if gap.after_adjustment else ""
        cells += [share_cell(people), gap_cell(gap.value, gap.low, gap.high, n=1, mark=mark)]
    return tuple(cells)


def _code_table(series: Series, groups: Mapping[int, CodeCounts], baseline: Baseline) -> Table:
    columns = (Column("group", "text"), Column("answers"), *(Column(heading) for heading in CODE_HEADINGS.values()))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            linked(text_cell(f"{number} {baseline.groups[number].topic}"), of_study_group(series, number)),
            count_cell(counts.n),
            *(count_cell(counts.codes[code]) for code in CODES),
        )
        for number, counts in groups.items()
    )
    return Table("The same answers by code, every repeat and variant counted.", columns, rows)


def _counselors(asked: Sequence[int], baseline: Baseline) -> Section:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            text_cell(f"{number} {baseline.groups[number].topic}"),
            Cell("yes" if baseline.groups[number].lookup_dependent else "no"),
            Cell(MODE_NAMES[mode]),
            count_cell(counts.shops),
            *(count_cell(counts.codes[code]) for code in CODES),
        )
        for number in asked
        for mode, counts in baseline.groups[number].by_mode.items()
    )
    columns = (
        Column("group", "text"),
        Column("lookup", "text"),
        Column("mode", "text"),
        Column("n"),
        *(Column(heading) for heading in CODE_HEADINGS.values()),
    )
    notes = baseline.notes
    return Section(
        words("Human counselors, as published"),
        (
            Table("Counts of counselors' answers by code.", columns, rows),
            Paragraph(say(text_cell(notes.citation), " ", link_cell(notes.address))),
            Bullets(tuple((text_cell(caveat),) for caveat in notes.caveats)),
        ),
    )


def _closed_table(runs: Runs, grouped: Mapping[Series, Mapping[int, CodeCounts]]) -> Table | None:
    rows = tuple(
        (*runs.lead(series), *(count_cell(groups[2].answers[answer]) for answer in ANSWERS))
        for series, groups in grouped.items()
        if 2 in groups
    )
    columns = (*runs.lead_columns(), *(Column(answer) for answer in ANSWERS))
    return Table("Answers to a closed question, which gets no study code.", columns, rows) if rows else None


def _of_scenario(series: Series, scenario_id: str) -> Estimated:
    return estimate([row for row in series.rows if row.scenario_id == scenario_id], "accurate_complete")


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
        *(Column(heading, key=code) for code, heading in CODE_HEADINGS.items()),
        Column("share complete (95% interval)", "share", "accurate_complete"),
        *(Column(answer, key=f"answer_{answer}") for answer in ANSWERS),
        *COVERAGE_COLUMNS,
    )
    tallies = {series: tallied_rows(series.rows, "accurate_complete") for series in runs.series}
    rows = []
    for (series, scenario_id, group), counts in counted.items():
        rule = series.run.found.rules.get((scenario_id, group))
        rows.append(
            (
                *runs.lead(series),
                text_cell(scenario_id),
                text_cell(group),
                text_cell(str(rule.study_group or "") if rule else ""),
                text_cell(rule.topic if rule else ""),
                Cell("yes" if rule and rule.lookup_dependent else "no"),
                count_cell(counts.n),
                *(count_cell(counts.codes[code]) for code in CODES),
                share_cell(estimate_questions(tallies[series], {(scenario_id, group)})),
                *(count_cell(counts.answers[answer]) for answer in ANSWERS),
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
            linked(text_cell(scenario_id), of_scenario(series, scenario_id)),
            *runs.lead(series),
            count_cell(counts.n),
            *(count_cell(counts.codes[code]) for code in CODES),
            share_cell(_of_scenario(series, scenario_id)),
        )
        for scenario in scenarios
        for (scenario_id, series), counts in pooled.items()
        if scenario_id == scenario
    )
    columns = (
        Column("scenario", "text"),
        *runs.lead_columns(),
        Column("questions"),
        *(Column(heading) for heading in CODE_HEADINGS.values()),
        Column("complete", "share"),
    )
    note = words("Questions that have no counterpart in the published study. per_question.csv has each of them.")
    return Section(title, (Paragraph(note), Table("Counts of answers by code and scenario.", columns, rows)))
