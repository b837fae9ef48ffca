"""Parts of the page of a series: its judges, cost, segments, methods and hashes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ...records.series import Series
from ...scoring.definitions import SHARES
from ...text.count import counted
from ...text.rounded import percent, rounded
from ..analysis.series import Line, SegmentFindings, SeriesFindings, outcome_name
from ..analysis.series_verdict import judge_drifted
from .analysis_sentences import points as in_points
from .document import Block, Bullets, Cell, Column, Count, Money, Paragraph, Section, Table, Text, Words, say, words
from .series_chart import capital, plain_value


def e_value(log_wealth: float) -> str:
    """`0.92`, `80`, `1,200`, and a power of ten beyond a million."""
    if log_wealth > math.log(1e6):
        return f"10^{log_wealth / math.log(10):.0f}"
    value = math.exp(log_wealth)
    return f"{value:,.0f}" if value >= 10 else rounded(value)


def judge_section(found: SeriesFindings) -> Section:
    frozen = [(one.segment.number, line) for one in found.segments for line in one.judges if line.kind == "frozen"]
    anchors = [(None, line) for line in (found.segments[-1].judges if found.segments else ()) if line.kind == "anchors"]
    lines: list[tuple[int | None, Line]] = [*frozen, *anchors]
    drifted = [line for _, line in lines if line.alarm is not None]
    told: list[tuple[Cell, ...]] = [
        say(Text(capital(judge_drifted(line))), f"; the alarm was raised in {line.periods[line.alarm or 0]}.")
        for line in drifted
    ]
    checked = any(line.steps for _, line in lines)
    none = (
        "No judge drifted." if checked else "The judges were not checked, so an alarm about a target cannot be trusted."
    )
    blocks: list[Block] = [
        Paragraph(
            words(
                "A change of judge looks like a change of target. So at every point the judges judge the transcripts "
                "of the segment's first point again, and label replies that people have labeled."
            )
        ),
        Bullets(tuple(told)) if told else Paragraph(words(none)),
        _judge_table(lines),
    ]
    every = Section(words("The judges at every point"), (_judge_points(lines),), folded=True, anchor="judge-points")
    return Section(words("Judges"), tuple(blocks), (every,), anchor="judges")


def _judge_table(lines: Sequence[tuple[int | None, Line]]) -> Table:
    columns = (
        Column("judged", "text"),
        Column("segment", "word"),
        Column("first", "other"),
        Column("last", "other"),
        Column("points"),
        Column("CUSUM up", "other"),
        Column("CUSUM down", "other"),
        Column("limit", "other"),
        Column("result", "word"),
    )
    rows = tuple(_judge_row(number, line) for number, line in lines if line.steps)
    return Table("The judges' lines", columns, rows)


def _judge_points(lines: Sequence[tuple[int | None, Line]]) -> Table:
    columns = (
        Column("judged", "text"), Column("point", "word"), Column("value", "other"), Column("CUSUM up", "other"),
        Column("CUSUM down", "other"), Column("e-value", "other"),
    )  # fmt: skip
    rows = tuple(
        (
            judged(line),
            Text(period),
            Words(judge_value(line, step.value)),
            Words(rounded(step.up)),
            Words(rounded(step.down)),
            Words(e_value(step.log_wealth)),
        )
        for _, line in lines
        for period, step in zip(line.periods, line.steps, strict=True)
    )
    return Table("Every line of the judges at every point", columns, rows)


def judge_value(line: Line, value: float | None) -> str:
    return plain_value(line.outcome or SHARES[0], value)


def judged(line: Line) -> Cell:
    """What a line of the judges is about."""
    if line.kind == "frozen":
        return Text(f"first transcripts of {line.name} again: {outcome_name(line.outcome)}")
    return Text(f"labeled replies, right labels: {line.name}")


def _judge_row(number: int | None, line: Line) -> tuple[Cell, ...]:
    last = line.steps[-1]
    return (
        judged(line),
        Words("all" if number is None else str(number)),
        Words(judge_value(line, line.steps[0].value)),
        Words(judge_value(line, last.value)),
        Count(len(line.steps)),
        Words(rounded(last.up)),
        Words(rounded(last.down)),
        Words(rounded(line.limit.limit)),
        Words("no alarm" if line.alarm is None else f"drifted, alarm in {line.periods[line.alarm]}"),
    )


def cost_section(found: SeriesFindings) -> Section:
    points = [point for one in found.segments for point in one.points]
    columns = (
        Column("point", "text"), Column("run", "other"), Column("first transcripts, judged again", "other"),
        Column("labeled replies", "other"), Column("total", "other"),
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (Text(one.period), *(Money(part) for part in (one.cost.run, one.cost.frozen, one.cost.anchors, one.cost.total)))
        for one in points
    ]
    parts = [[one.cost.run, one.cost.frozen, one.cost.anchors, one.cost.total] for one in points]
    sums = [None if None in column else math.fsum(filter(None, column)) for column in zip(*parts, strict=True)]
    rows.append((Words("all points", strong=True), *map(Money, sums)))
    return Section(words("Cost"), (Table("US dollars per point", columns, tuple(rows)),), anchor="cost")


def segment_section(found: SeriesFindings) -> Section:
    columns = (
        Column("segment"), Column("points", "word"), Column("number of points"), Column("why it began", "text"),
        Column("plan year"), Column("judges", "text"),
    )  # fmt: skip
    rows = tuple(
        (
            Count(one.segment.number),
            Words(f"{one.points[0].period} to {one.points[-1].period}"),
            Count(len(one.points)),
            Text("; ".join(one.segment.reasons)),
            Text(str(one.segment.parts.plan_year)),
            Text(", ".join(dict.fromkeys(one.segment.verifiers))),
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
            Text(found.head, code=True),
            ". Keep it elsewhere, to see later that no point was changed.",
        )
    )
    columns = (Column("point", "text"), Column("run", "text"), Column("results head", "text"))
    rows = tuple(
        (Text(point.period), Text(point.run.folder, code=True), Text(point.run.results_head, code=True))
        for one in found.segments
        for point in one.points
    )
    return Section(
        words("Hashes"), (head, *([Table("Runs of the points", columns, rows)] if rows else ())), anchor="hashes"
    )
