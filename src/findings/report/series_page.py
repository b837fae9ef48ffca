"""The page of a series: the verdicts first, then a chart per target, what changed, every point, judges and cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...records.series import LineLimit, Point
from ...scoring.definitions import SHARES
from ...text.count import counted
from ...text.escape import plain
from ...text.rounded import percent, rounded
from ..analysis.rule_judge import OFFLINE_NOTICE
from ..analysis.series import Line, SegmentFindings, SeriesFindings, TargetSegment, outcome_name
from .analysis_pages import Page, caveat, methods_section, notice_sections
from .analysis_sentences import points as in_points
from .document import (
    NOTHING,
    Block,
    Cell,
    Column,
    Count,
    Linked,
    Paragraph,
    Section,
    Table,
    Text,
    Words,
    say,
    words,
)
from .series_answers import RunAddress, SegmentAnswers, answer_section, compare_answers, nowhere
from .series_chart import (
    band,
    capital,
    chart_of,
    events_of,
    events_table,
    numbered,
    panel_title,
    parts_of,
    plain_value,
    target_names,
    value_cell,
)
from .series_sections import cost_section, e_value, hashes, judge_section, methods, segment_section


def series_page(found: SeriesFindings, address: RunAddress = nowhere) -> Page:
    """The page of a series.

    Args:
        found: What `read_findings` of the series' folder returned.
        address: Where the pages of a run are, for links; without it, runs are named and not linked.
    """
    title = plain(found.series.title)
    title = f"{title}: {found.verdict}" if found.segments else title
    if not found.segments:
        none = say("There is no point yet. Make the first one with: ", Text("medicare-eval series run", code=True))
        return Page(title, _about(found), (Paragraph(none, "answer"),), (hashes(found),))
    targets = target_names(found)
    compared = compare_answers(found)
    notices = _notices(found, compared)
    return Page(
        title,
        _about(found),
        (*(_sentence(found, target) for target in targets), caveat(targets, notices), *_charts(found, targets)),
        (
            answer_section(compared, targets, address),
            _points_section(found, targets, address),
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
    points = sum(len(one.points) for one in found.segments)
    told = f"A study repeated every {series.cadence}: {counted(points, 'point')}"
    if found.segments:
        first, last = found.segments[0].points[0].period, found.last_period
        told += f" from {first} to {last}" if first != last else f", {first}"
        told += f", {counted(len(found.segments), 'segment')}"
    told += f". A change of {in_points(series.floor)} or more matters."
    if found.replaced:
        told += f" {counted(found.replaced, 'point')} of earlier judges are kept in the file and not shown."
    return words(told)


def _sentence(found: SeriesFindings, target: str) -> Paragraph:
    """`fake:x: drifted. Incorrect answers became worse in 2026-12: ... Latest, 2027-01: ...`"""
    *earlier, now = parts_of(found, target)
    cells: list[Cell] = [Text(target), Words(": "), *_verdict(now)]
    for outcome, levels in now.levels.items():
        start = f" Latest, {levels[-1].period}: " if outcome == next(iter(now.levels)) else "; "
        cells += [Words(f"{start}{outcome_name(outcome)} "), value_cell(outcome, levels[-1].share)]
    cells.append(Words("."))
    ends = [event.text for event in found.events if (event.kind, event.subject) == ("ended", target)]
    if ends:
        cells += say(" Its line ended: ", Text(ends[-1]), ".")
    for one in earlier:
        if one.verdict != "no alarm":
            periods = one.lines[0].periods
            cells += [Words(f" In the segment before, {periods[0]} to {periods[-1]}: "), *_verdict(one)]
    return Paragraph(tuple(cells), "answer")


def _verdict(one: TargetSegment) -> Iterator[Cell]:
    yield Words(f"{one.verdict}.", strong=True)
    yield Words(" ")
    yield Text(f"{capital(one.why)}.")


def _charts(found: SeriesFindings, targets: Sequence[str]) -> Iterator[Block]:
    events = numbered(found)
    for place, target in enumerate(targets, 1):
        mine = events_of(events, target)
        yield chart_of(found, target, place, mine)
        yield events_table(f"Events in chart {place}", mine)


def _notices(found: SeriesFindings, compared: Sequence[SegmentAnswers]) -> tuple[str, ...]:
    """Of all runs that were read; that the judge is the rule-based one is known without reading a run."""
    notices = [notice for one in compared for notice in one.notices]
    judges = [name for one in found.segments for name in one.segment.verifiers]
    if not notices and any(name.startswith("offline:") for name in judges):
        notices.append(OFFLINE_NOTICE)
    return tuple(dict.fromkeys(notices))


def _run_cell(point: Point, address: RunAddress) -> Cell:
    link = address(point.run)
    return Linked(Text(point.period), f"{link}/report.html") if link else Text(point.period)


def _points_section(found: SeriesFindings, targets: Sequence[str], address: RunAddress) -> Section:
    return Section(
        words("Every point"),
        (
            Paragraph(
                words(
                    "The CUSUM adds up how far points differ from those before them, in standard errors; beyond its "
                    "limit it raises an alarm. The e-value is what a bet against “nothing has ever changed” has won; "
                    "from the e-value that is needed on, a change can be reported."
                )
            ),
        ),
        tuple(
            Section(
                say(Text(target), ": points"),
                tuple(_point_tables(found, target, place, address)),
                anchor=f"points-{place}",
            )
            for place, target in enumerate(targets, 1)
        ),
        anchor="points",
    )


def _point_tables(found: SeriesFindings, target: str, chart: int, address: RunAddress) -> Iterator[Block]:
    columns = (
        Column("point", "text"),
        Column("segment"),
        Column("value (95% interval)", "other"),
        Column("effective n"),
        Column("missing answers"),
        Column("mean before", "other"),
        Column("no alarm between", "other"),
        Column("CUSUM up", "other"),
        Column("CUSUM down", "other"),
        Column("e-value", "other"),
        Column("result", "word"),
    )
    outcomes = dict.fromkeys(line.outcome for one in parts_of(found, target) for line in one.lines if line.outcome)
    for outcome in outcomes:
        rows: list[tuple[Cell, ...]] = []
        limits: list[LineLimit] = []
        for segment in found.segments:
            for one in segment.targets:
                line = next((line for line in one.lines if line.outcome == outcome), None)
                if one.target == target and line:
                    limits.append(line.limit)
                    rows += _point_rows(segment, one, line, address)
        caption = f"{panel_title(outcome)}, as in chart {chart}. {_limit_text(limits)}"
        yield Table(caption, columns, tuple(rows))


def _limit_text(limits: Sequence[LineLimit]) -> str:
    """The limit of the CUSUM and the e-value that is needed, of the last segment."""
    last = limits[-1]
    return f"Alarm above a CUSUM of {rounded(last.limit)}; e-value needed: {1 / last.level:,.0f}"


def _point_rows(
    segment: SegmentFindings, one: TargetSegment, line: Line, address: RunAddress
) -> Iterator[tuple[Cell, ...]]:
    assert line.outcome
    asked = [point for point in segment.points if one.target in point.targets]
    for place, (point, level, step) in enumerate(zip(asked, one.levels[line.outcome], line.steps, strict=True)):
        low, high = band(line, place, step)
        lost = point.targets[one.target].missing.get(line.outcome)
        yield (
            _run_cell(point, address),
            Count(segment.segment.number),
            value_cell(line.outcome, level.share),
            Words(f"{level.share.effective:,.0f}" if level.share.effective else NOTHING),
            Count(lost.missing if lost else 0),
            Words(plain_value(line.outcome, step.reference)),
            Words(_band_text(line, low, high), whole=True),
            Words(rounded(step.up)),
            Words(rounded(step.down)),
            Words(e_value(step.log_wealth)),
            Words(_result(line, place)),
        )


def _band_text(line: Line, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return NOTHING
    if line.outcome in SHARES:
        return f"{percent(low)}–{percent(high)}%"
    return f"{rounded(low)}–{rounded(high)}"


def _result(line: Line, place: int) -> str:
    """What happened at a point."""
    told = [name for name, at in (("alarm", line.alarm), ("claim", line.claim)) if at == place]
    return " and ".join(told) or NOTHING
