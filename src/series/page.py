"""The page of a series: the verdicts first, then a chart per target, what changed, every point, judges and cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from ..errors import HarnessError
from ..findings.drift import BETTER, ChangedAnswer, Drifts, TargetDrift, measure_drift
from ..findings.read_run import gather
from ..findings.rule_judge import OFFLINE_NOTICE, run_notices
from ..records.series import Point, RunReference, Series
from ..reports.analysis_pages import caveat, methods_section, notice_sections
from ..reports.analysis_sentences import points as in_points
from ..reports.document import (
    NOTHING,
    Block,
    Bullets,
    Cell,
    Column,
    Contents,
    Exhibit,
    Paragraph,
    Section,
    Table,
    code_cell,
    count_cell,
    linked,
    money_cell,
    passage_cell,
    say,
    text_cell,
    words,
)
from ..reports.drift_page import SHOWN_REPLY, changed_questions
from ..scoring.definitions import CODE_HEADINGS, SHARES
from ..stats.monitoring import Step
from ..text.count import counted
from ..text.escape import plain
from ..text.rounded import percent, rounded
from .chart import band, capital, chart_of, events_of, events_table, panel_title, plain_value, value_cell
from .findings import Line, SegmentFindings, SeriesFindings, TargetSegment, judge_drifted, outcome_name

RunAddress = Callable[[RunReference], str | None]
"""Where the pages of a run are in the workbench; None if it has none."""
SHOWN_ANSWERS = 10
"""Pairs of answers of a target in a segment on the page, the largest changes first."""
NAMES: dict[str, str] = {str(code): name for code, name in CODE_HEADINGS.items()}


@dataclass(frozen=True)
class SegmentAnswers:
    """The last point of a segment compared with its first."""

    number: int
    first: Point
    last: Point
    drifts: Drifts | None
    problem: str
    """Why they could not be compared; empty if they were."""
    notices: tuple[str, ...]


def _compared(found: SeriesFindings, one: SegmentFindings) -> SegmentAnswers:
    """Read the two runs of a segment. What cannot be read is said, not raised."""
    first, last = one.points[0], one.points[-1]
    drifts, problem = None, ""
    notices: tuple[str, ...] = ()
    folders = [found.folder / point.run.folder for point in (first, last)]
    try:
        drifts = None if first is last else measure_drift(*folders, floor=found.series.floor)
        notices = drifts.notices if drifts else run_notices([gather(folders[0])])
    except (HarnessError, OSError) as error:
        missing = [point.run.folder for point, place in zip((first, last), folders, strict=True) if not place.is_dir()]
        problem = f"The run folder {missing[0]} is missing." if missing else str(error)
    return SegmentAnswers(one.segment.number, first, last, drifts, problem, notices)


def _answer_section(compared: Sequence[SegmentAnswers], targets: Sequence[str], address: RunAddress) -> Section:
    """A part per target, the newest segment first."""
    parts = [tuple(_of_target(compared, target, place, address)) for place, target in enumerate(targets, 1)]
    about = _of_each(targets, "answers", parts, anchor="changed")
    return Section(words("What got better and worse"), tuple(_problems(compared)), about, anchor="changed")


def _of_each(
    targets: Sequence[str], what: str, parts: Sequence[tuple[Block, ...]], *, anchor: str
) -> tuple[Section, ...]:
    return tuple(
        Section(say(text_cell(target), f": {what}"), blocks, anchor=f"{anchor}-{place}")
        for place, (target, blocks) in enumerate(zip(targets, parts, strict=True), 1)
    )


def _problems(compared: Sequence[SegmentAnswers]) -> Iterator[Block]:
    yield Paragraph(
        words(
            "For each segment, the answers of its last point are compared with those of its first. Single answers "
            "differ by chance too: whether a target changed is decided by its line, not by these examples."
        )
    )
    for one in compared:
        if one.problem:
            told = " The answers of this segment cannot be shown side by side; its values above do not depend on them."
            yield Paragraph(say(f"Segment {one.number}: ", text_cell(one.problem), told))


def _of_target(compared: Sequence[SegmentAnswers], target: str, chart: int, address: RunAddress) -> Iterator[Block]:
    told = False
    for one in reversed(compared):
        if one.problem or target not in one.first.targets:
            continue
        told = True
        if one.drifts is None:
            yield Paragraph(words(f"Segment {one.number} has only one point ({one.first.period}): nothing to compare."))
            continue
        found = next((drift for drift in one.drifts.targets if drift.target == target), None)
        if found is None:
            yield Paragraph(words(f"Segment {one.number}: no answers in {one.last.period}."))
            continue
        yield from _changed(one, found, chart, address)
    if not told:
        yield Paragraph(words("There is nothing to compare."))


def _changed(one: SegmentAnswers, found: TargetDrift, chart: int, address: RunAddress) -> Iterator[Block]:
    better, worse = (sum(getattr(q, way) for q in found.questions) for way in ("better", "worse"))
    start = f"Segment {one.number}, {one.last.period} against {one.first.period}: "
    if not found.answers_changed:
        yield Paragraph(words(f"{start}no answer got another code."))
        return
    shown, told = found.answers[:SHOWN_ANSWERS], f" ({counted(found.answers_changed, 'answer')} with another code)."
    if len(shown) != found.answers_changed:
        told += f" {len(shown)} of {found.answers_changed:,} are shown."
    yield Paragraph((Cell(start), Cell(f"{better:,} better, {worse:,} worse", "strong"), Cell(told)))
    moved = changed_questions(found.questions)
    columns = (Column("question", "text"), Column("better"), Column("worse"), Column("same"))
    rows = tuple((text_cell(q.question), count_cell(q.better), count_cell(q.worse), count_cell(q.same)) for q in moved)
    where = f"segment {one.number} of chart {chart}"
    yield Table(f"Questions whose code changed in {where}: {len(moved)} of {len(found.questions)}", columns, rows)
    links = [address(point.run) for point in (one.first, one.last)]
    yield from (_pair(one, answer, links) for answer in shown)


def _pair(one: SegmentAnswers, answer: ChangedAnswer, links: Sequence[str | None]) -> Exhibit:
    way = "Better" if BETTER.get(answer.after, 0) > BETTER.get(answer.before, 0) else "Worse"
    sides = []
    for point, said, code, link in (
        (one.first, answer.old_reply, answer.before, links[0]),
        (one.last, answer.new_reply, answer.after, links[1]),
    ):
        text = f"{said[:SHOWN_REPLY]} […]" if len(said) > SHOWN_REPLY else said
        cells: tuple[Cell, ...] = (passage_cell([(text, False)]) if text else Cell("no reply"),)
        if link:
            to = f"{link}/trials/{quote(answer.trial_id, safe='')}"
            cells = (*cells, Cell(" "), linked(Cell(f"Trial in {point.period}"), to))
        sides.append((f"{point.period}: {NAMES.get(code, code)}", cells))
    return Exhibit(
        say(f"{way}: ", code_cell(answer.trial_id), " ", text_cell(answer.group)),
        tuple(sides),
        above=say(Cell("Asked: ", "strong"), text_cell(answer.question)),
    )


def series_page(found: SeriesFindings, address: RunAddress = lambda run: None) -> Contents:
    """The page of a series.

    Args:
        found: What `read_findings` of the series' folder returned.
        address: Where the pages of a run are, for links; without it, runs are named and not linked.
    """
    title = plain(found.series.title)
    if not found.segments:
        none = say("There is no point yet. Make the first one with: ", code_cell("medicare-eval series run"))
        return Contents(words(title), _about(found), (Paragraph(none, "answer"),), (hashes(found),))
    targets = list(found.by_target)
    compared = [_compared(found, one) for one in found.segments]
    notices = _notices(found, compared)
    return Contents(
        words(f"{title}: {found.verdict}"),
        _about(found),
        (*(_sentence(found, target) for target in targets), caveat(targets, notices), *_charts(found, targets)),
        (
            _answer_section(compared, targets, address),
            _points_section(found, address),
            judge_section(found),
            cost_section(found),
            segment_section(found),
            methods_section(methods(found)),
            *notice_sections(notices),
            hashes(found),
        ),
    )


def _about(found: SeriesFindings) -> tuple[Cell, ...]:
    series = found.series
    told = f"A study repeated every {series.cadence}: {counted(len(found.points), 'point')}"
    if found.segments:
        first, last = found.points[0].period, found.last_period
        told += f" from {first} to {last}" if first != last else f", {first}"
        told += f", {counted(len(found.segments), 'segment')}"
    told += f". A change of {in_points(series.floor)} or more matters."
    if found.replaced:
        told += f" {counted(found.replaced, 'point')} of earlier judges are kept in the file and not shown."
    return words(told)


def _sentence(found: SeriesFindings, target: str) -> Paragraph:
    """`fake:x: drifted. Incorrect answers became worse in 2026-12: ... Latest, 2027-01: ...`"""
    *earlier, now = found.by_target[target]
    cells: list[Cell] = [text_cell(target), Cell(": "), *_verdict(now)]
    for outcome, levels in now.levels.items():
        start = f" Latest, {levels[-1].period}: " if outcome == next(iter(now.levels)) else "; "
        cells += [Cell(f"{start}{outcome_name(outcome)} "), value_cell(outcome, levels[-1].share)]
    cells.append(Cell("."))
    ends = [event.text for event in found.events if (event.kind, event.subject) == ("ended", target)]
    if ends:
        cells += say(" Its line ended: ", text_cell(ends[-1]), ".")
    for one in earlier:
        if one.verdict != "no alarm":
            periods = one.lines[0].periods
            cells += [Cell(f" In the segment before, {periods[0]} to {periods[-1]}: "), *_verdict(one)]
    return Paragraph(tuple(cells), "answer")


def _verdict(one: TargetSegment) -> Iterator[Cell]:
    yield Cell(f"{one.verdict}.", "strong")
    yield Cell(" ")
    yield text_cell(f"{capital(one.why)}.")


def _charts(found: SeriesFindings, targets: Sequence[str]) -> Iterator[Block]:
    for place, target in enumerate(targets, 1):
        mine = events_of(found, target)
        yield chart_of(found, target, place, mine)
        yield events_table(f"Events in chart {place}", mine)


def _notices(found: SeriesFindings, compared: Sequence[SegmentAnswers]) -> tuple[str, ...]:
    """Of all runs that were read; that the judge is the rule-based one is known without reading a run."""
    notices = [notice for one in compared for notice in one.notices]
    judges = [name for one in found.segments for name in one.segment.verifiers]
    if not notices and any(name.startswith("offline:") for name in judges):
        notices.append(OFFLINE_NOTICE)
    return tuple(dict.fromkeys(notices))


def _points_section(found: SeriesFindings, address: RunAddress) -> Section:
    told = (
        "The CUSUM adds up how far points differ from those before them, in standard errors; beyond its "
        "limit it raises an alarm. The e-value is what a bet against “nothing has ever changed” has won; "
        "from the e-value that is needed on, a change can be reported."
    )
    by_target = found.by_target
    tables = [tuple(_point_tables(parts, place, address)) for place, parts in enumerate(by_target.values(), 1)]
    about = _of_each(list(by_target), "points", tables, anchor="points")
    return Section(words("Every point"), (Paragraph(words(told)),), about, anchor="points")


def _point_tables(parts: Sequence[TargetSegment], chart: int, address: RunAddress) -> Iterator[Block]:
    columns = (
        Column("point", "text"),
        Column("segment"),
        *_others("value (95% interval)"),
        Column("effective n"),
        Column("missing answers"),
        *_others("mean before", "no alarm between", "CUSUM up", "CUSUM down", "e-value"),
        Column("result", "word"),
    )
    for outcome in dict.fromkeys(outcome for one in parts for outcome in one.levels):
        lines = [(one, line) for one in parts if (line := one.line(outcome))]
        rows = tuple(row for one, line in lines for row in _point_rows(one, line, address))
        limit = lines[-1][1].limit
        needed = f"Alarm above a CUSUM of {rounded(limit.limit)}; e-value needed: {1 / limit.level:,.0f}"
        yield Table(f"{panel_title(outcome)}, as in chart {chart}. {needed}", columns, rows)


def _others(*headings: str) -> list[Column]:
    return [Column(heading, "other") for heading in headings]


def _point_rows(one: TargetSegment, line: Line, address: RunAddress) -> Iterator[tuple[Cell, ...]]:
    assert line.outcome
    for place, (point, level, step) in enumerate(zip(one.points, one.levels[line.outcome], line.steps, strict=True)):
        low, high = band(line, place, step)
        lost = point.targets[one.target].missing.get(line.outcome)
        link = address(point.run)
        result = [name for name, at in (("alarm", line.alarm), ("claim", line.claim)) if at == place]
        yield (
            linked(text_cell(point.period), f"{link}/report.html") if link else text_cell(point.period),
            count_cell(point.segment),
            value_cell(line.outcome, level.share),
            Cell(f"{level.share.effective:,.0f}" if level.share.effective else NOTHING),
            count_cell(lost.missing if lost else 0),
            Cell(plain_value(line.outcome, step.reference)),
            Cell(_band_text(line, low, high), "whole"),
            *_evidence(step),
            Cell(" and ".join(result) or NOTHING),
        )


def _evidence(step: Step) -> tuple[Cell, ...]:
    return Cell(rounded(step.up)), Cell(rounded(step.down)), Cell(e_value(step.log_wealth))


def _band_text(line: Line, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return NOTHING
    if line.outcome in SHARES:
        return f"{percent(low)}–{percent(high)}%"
    return f"{rounded(low)}–{rounded(high)}"


def e_value(log_wealth: float) -> str:
    """`0.92`, `80`, `1,200`, and a power of ten beyond a million."""
    if log_wealth > math.log(1e6):
        return f"10^{log_wealth / math.log(10):.0f}"
    value = math.exp(log_wealth)
    return f"{value:,.0f}" if value >= 10 else rounded(value)


def judge_section(found: SeriesFindings) -> Section:
    frozen = [(str(one.segment.number), line) for one in found.segments for line in one.judges if line.kind == "frozen"]
    lines = [*frozen, *(("all", line) for line in found.segments[-1].judges if line.kind == "anchors")]
    told = [
        say(text_cell(capital(judge_drifted(line))), f"; the alarm was raised in {line.periods[line.alarm]}.")
        for _, line in lines
        if line.alarm is not None
    ]
    none = (
        "No judge drifted."
        if any(line.steps for _, line in lines)
        else "The judges were not checked, so an alarm about a target cannot be trusted."
    )
    why = (
        "A change of judge looks like a change of target. So at every point the judges judge the transcripts "
        "of the segment's first point again, and label replies that people have labeled."
    )
    blocks = (Paragraph(words(why)), Bullets(tuple(told)) if told else Paragraph(words(none)), _judge_table(lines))
    every = Section(
        words("The judges at every point"),
        (_judge_points([line for _, line in lines]),),
        folded=True,
        anchor="judge-points",
    )
    return Section(words("Judges"), blocks, (every,), anchor="judges")


def _judge_table(lines: Sequence[tuple[str, Line]]) -> Table:
    """Each line with the segment that it is of."""
    columns = (
        Column("judged", "text"),
        Column("segment", "word"),
        *_others("first", "last"),
        Column("points"),
        *_others("CUSUM up", "CUSUM down", "limit"),
        Column("result", "word"),
    )
    rows = tuple(
        (
            judged(line),
            Cell(segment),
            Cell(judge_value(line, line.steps[0].value)),
            Cell(judge_value(line, line.steps[-1].value)),
            count_cell(len(line.steps)),
            Cell(rounded(line.steps[-1].up)),
            Cell(rounded(line.steps[-1].down)),
            Cell(rounded(line.limit.limit)),
            Cell("no alarm" if line.alarm is None else f"drifted, alarm in {line.periods[line.alarm]}"),
        )
        for segment, line in lines
        if line.steps
    )
    return Table("The judges' lines", columns, rows)


def _judge_points(lines: Sequence[Line]) -> Table:
    columns = (
        Column("judged", "text"),
        Column("point", "word"),
        *_others("value", "CUSUM up", "CUSUM down", "e-value"),
    )
    rows = tuple(
        (judged(line), text_cell(period), Cell(judge_value(line, step.value)), *_evidence(step))
        for line in lines
        for period, step in zip(line.periods, line.steps, strict=True)
    )
    return Table("Every line of the judges at every point", columns, rows)


def judge_value(line: Line, value: float | None) -> str:
    return plain_value(line.outcome or SHARES[0], value)


def judged(line: Line) -> Cell:
    """What a line of the judges is about."""
    if line.kind == "frozen":
        return text_cell(f"first transcripts of {line.name} again: {outcome_name(line.outcome)}")
    return text_cell(f"labeled replies, right labels: {line.name}")


def cost_section(found: SeriesFindings) -> Section:
    columns = (Column("point", "text"), *_others("run", "first transcripts, judged again", "labeled replies", "total"))
    costs = [(one.cost.run, one.cost.frozen, one.cost.anchors, one.cost.total) for one in found.points]
    sums = [None if None in column else math.fsum(filter(None, column)) for column in zip(*costs, strict=True)]
    rows: list[tuple[Cell, ...]] = [
        (text_cell(one.period), *map(money_cell, parts)) for one, parts in zip(found.points, costs, strict=True)
    ]
    rows.append((Cell("all points", "strong"), *map(money_cell, sums)))
    return Section(words("Cost"), (Table("US dollars per point", columns, tuple(rows)),), anchor="cost")


def segment_section(found: SeriesFindings) -> Section:
    columns = (
        Column("segment"), Column("points", "word"), Column("number of points"), Column("why it began", "text"),
        Column("plan year"), Column("judges", "text"),
    )  # fmt: skip
    rows = tuple(
        (
            count_cell(one.segment.number),
            Cell(f"{one.points[0].period} to {one.points[-1].period}"),
            count_cell(len(one.points)),
            text_cell("; ".join(one.segment.reasons)),
            text_cell(str(one.segment.parts.plan_year)),
            text_cell(", ".join(dict.fromkeys(one.segment.verifiers))),
        )
        for one in found.segments
    )
    told = "Points are compared only within a segment: a new key, rubric or plan year measures something else."
    return Section(
        words("Segments"),
        (Paragraph(words(told)), Table("Where each segment begins, and why", columns, rows)),
        anchor="segments",
    )


def methods(found: SeriesFindings) -> Iterator[str]:
    """Settings are those of the last segment."""
    series, one = found.series, found.segments[-1]
    limit = next(iter(one.segment.targets.values()))
    yield (
        "An alarm is raised by a two-sided CUSUM: each point is compared with the mean of all points before it in its "
        "segment, scenario by scenario, and differences are added up in standard errors. What is learned "
        "of chance is kept from one segment to the next; the level is not. The limit was simulated for "
        f"this study's design, with {limit.series:,} series without a change for each kind of chance, and recorded "
        f"when the segment began: at most {percent(series.alpha)}% of unchanged series may have a false alarm over all "
        f"targets and outcomes ({percent(limit.level, 2)}% per line). A single point "
        "that differs by nearly as much raises it at once. An alarm says: look."
    )
    yield (
        "A claim is made by an e-process, a bet against “nothing has ever changed” that wins on average nothing if "
        f"that is true. It is made when the bet has won {1 / limit.level:,.0f} times its stake. It may be looked at "
        "any number of times. A claim says: this can be reported."
    )
    yield from _power(one)
    yield _horizon(series, one)
    yield (
        "Intervals are 95% intervals of single values, over scenarios as the independent units; the effective n is the "
        "number of independent yes-or-no answers that would tell as much. The band is another thing: a point is "
        "compared with earlier answers to the same questions. Whether a target changed is decided by its line, not by "
        "whether two intervals overlap."
    )
    yield (
        "A verdict is “cannot tell” if the judges drifted before the alarm, moved by half or more of what the target "
        "seems to have moved, or were not checked, and if too many answers are missing."
    )


def _power(one: SegmentFindings) -> Iterator[str]:
    for outcome, limit in one.segment.targets.items():
        if not (power := limit.power):
            continue
        delays = [
            f"{percent(found.share)}% of simulated series{_delay(found.delay)}" for found in (power.alarm, power.claim)
        ]
        yield (
            f"Simulated power for {outcome_name(outcome)}: a change of {in_points(power.drop)} of 100 after the first "
            f"{counted(power.after, 'point')} of a segment raises an alarm in {delays[0]}, and leads to a claim "
            f"in {delays[1]}, within {counted(limit.points, 'point')}."
        )


def _delay(delay: float | None) -> str:
    return f" (in the middle one after {delay:g} points)" if delay is not None else ""


def _horizon(series: Series, one: SegmentFindings) -> str:
    now = len(one.points) - 1
    told = (
        f"Limits are made for {series.points:,} points after the first of a segment; this segment has {now:,}. Beyond "
        "that, false alarms become more frequent than promised, while claims keep their guarantee. A new segment "
        "begins to count again."
    )
    if now > series.points:
        told += " This segment is beyond it: trust an alarm only with a claim, or begin a new series."
    return told


def hashes(found: SeriesFindings) -> Section:
    head = Paragraph(
        say(
            "Head of points.jsonl: ",
            code_cell(found.head),
            ". Keep it elsewhere, to see later that no point was changed.",
        )
    )
    columns = (Column("point", "text"), Column("run", "text"), Column("results head", "text"))
    rows = tuple(
        (text_cell(point.period), code_cell(point.run.folder), code_cell(point.run.results_head))
        for point in found.points
    )
    return Section(
        words("Hashes"), (head, *([Table("Runs of the points", columns, rows)] if rows else ())), anchor="hashes"
    )
