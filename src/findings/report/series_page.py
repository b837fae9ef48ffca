"""The page of a series: the verdicts first, then a chart per target, what changed, every point, judges and cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from ...errors import HarnessError
from ...records.series import LineLimit, Point, RunReference
from ...scoring.definitions import CODE_HEADINGS, SHARES
from ...text.count import counted
from ...text.escape import plain
from ...text.rounded import percent, rounded
from ..analysis.drift import BETTER, ChangedAnswer, Drifts, TargetDrift, measure_drift
from ..analysis.read_run import gather
from ..analysis.rule_judge import OFFLINE_NOTICE, run_notices
from ..analysis.series import Line, SegmentFindings, SeriesFindings, TargetSegment, outcome_name
from .analysis_pages import Page, caveat, methods_section, notice_sections
from .analysis_sentences import points as in_points
from .document import (
    NOTHING,
    Block,
    Cell,
    Column,
    Count,
    Entry,
    Linked,
    Paragraph,
    Passage,
    Piece,
    Section,
    SideBySide,
    Table,
    Text,
    Words,
    say,
    words,
)
from .drift_page import SHOWN_REPLY, changed_questions
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


def nowhere(run: RunReference) -> str | None:
    """On a static page, runs have no address."""
    return None


def compare_answers(found: SeriesFindings) -> tuple[SegmentAnswers, ...]:
    """Read the two runs of every segment. What cannot be read is said, not raised."""
    return tuple(_compared(found, one) for one in found.segments)


def _compared(found: SeriesFindings, one: SegmentFindings) -> SegmentAnswers:
    first, last = one.points[0], one.points[-1]
    number, drifts = one.segment.number, None
    notices: tuple[str, ...] = ()
    problem = ""
    folders = [found.folder / point.run.folder for point in (first, last)]
    try:
        if first is last:
            notices = run_notices([gather(folders[0])])
        else:
            drifts = measure_drift(*folders, floor=found.series.floor)
            notices = drifts.notices
    except (HarnessError, OSError) as error:
        missing = [point.run.folder for point, place in zip((first, last), folders, strict=True) if not place.is_dir()]
        problem = f"The run folder {missing[0]} is missing." if missing else str(error)
    return SegmentAnswers(number, first, last, drifts, problem, notices)


def answer_section(
    compared: Sequence[SegmentAnswers], targets: Sequence[str], address: RunAddress = nowhere
) -> Section:
    """A part per target, the newest segment first."""
    return Section(
        words("What got better and worse"),
        tuple(_problems(compared)),
        tuple(
            Section(
                say(Text(target), ": answers"),
                tuple(_of_target(compared, target, place, address)),
                anchor=f"changed-{place}",
            )
            for place, target in enumerate(targets, 1)
        ),
        anchor="changed",
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
            yield Paragraph(say(f"Segment {one.number}: ", Text(one.problem), told))


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
    yield Paragraph((Words(start), Words(f"{better:,} better, {worse:,} worse", strong=True), Words(_how_many(found))))
    yield _questions(found, f"segment {one.number} of chart {chart}")
    links = [address(point.run) for point in (one.first, one.last)]
    yield from (_pair(one, answer, links) for answer in found.answers[:SHOWN_ANSWERS])


def _how_many(found: TargetDrift) -> str:
    shown = min(SHOWN_ANSWERS, len(found.answers))
    told = f" ({counted(found.answers_changed, 'answer')} with another code)."
    return told if shown == found.answers_changed else f"{told} {shown} of {found.answers_changed:,} are shown."


def _questions(found: TargetDrift, where: str) -> Table:
    moved = changed_questions(found.questions)
    columns = (Column("question", "text"), Column("better"), Column("worse"), Column("same"))
    rows = tuple((Text(one.question), Count(one.better), Count(one.worse), Count(one.same)) for one in moved)
    caption = f"Questions whose code changed in {where}: {len(moved)} of {len(found.questions)}"
    return Table(caption, columns, rows)


def _pair(one: SegmentAnswers, answer: ChangedAnswer, links: Sequence[str | None]) -> SideBySide:
    way = "Better" if BETTER.get(answer.after, 0) > BETTER.get(answer.before, 0) else "Worse"
    sides = []
    for point, said, code, link in zip(
        (one.first, one.last),
        (answer.old_reply, answer.new_reply),
        (answer.before, answer.after),
        links,
        strict=True,
    ):
        cells: tuple[Cell, ...] = (_reply(said),)
        if link:
            to = f"{link}/trials/{quote(answer.trial_id, safe='')}"
            cells = (*cells, Words(" "), Linked(Words(f"Trial in {point.period}"), to))
        sides.append(Entry(f"{point.period}: {NAMES.get(code, code)}", cells))
    return SideBySide(
        say(f"{way}: ", Text(answer.trial_id, code=True), " ", Text(answer.group)),
        say(Words("Asked: ", strong=True), Text(answer.question)),
        tuple(sides),
    )


def _reply(text: str) -> Cell:
    cut = f"{text[:SHOWN_REPLY]} […]" if len(text) > SHOWN_REPLY else text
    return Passage((Piece(cut, False),)) if cut else Words("no reply")


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
