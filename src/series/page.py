"""What a series says: its page; for bots and programs, one issue as Markdown, a JSON document, JUnit XML.

The words are in the templates `series` and `series_summary`. A chart has a panel per outcome, a part per segment, and
the events that concern its target.

Names and titles may come from anyone. In Markdown they cannot ping, link or add markup; in XML they have no characters
that XML forbids.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..errors import HarnessError
from ..findings.drift import BETTER, Drifts, TargetDrift, measure_drift
from ..findings.read_run import gather
from ..findings.rule_judge import OFFLINE_NOTICE, run_notices
from ..records.series import LineLimit, Outcome, Point, RunReference
from ..reports import read_sections
from ..reports.analysis_pages import changed_questions, require_page, write_page
from ..reports.analysis_sentences import signed_points
from ..reports.document import NOTHING, Cell, ChartBlock, Contents, linked, number_cell, share_cell, shown, text_cell
from ..reports.document import Line as Cells
from ..reports.drawing import Tick, cut
from ..reports.links import slug
from ..reports.markdown import markdown
from ..reports.report_folder import require_own, write_own
from ..reports.time_chart import EventLook, TimeChart, TimeEvent, TimePanel, TimePoint
from ..scoring.definitions import CODE_HEADINGS, SHARES
from ..stats.bounded import Bounded
from ..store.strict_json import sha256
from ..text.escape import plain
from ..text.rounded import percent, rounded
from .findings import (
    Decided,
    Event,
    EventKind,
    Line,
    SegmentFindings,
    SeriesFindings,
    TargetSegment,
    capital,
    judge_drifted,
    outcome_name,
)

RunAddress = Callable[[RunReference], str | None]
"""Where the pages of a run are in the workbench; None if it has none."""
KINDS: dict[EventKind, str] = {
    "segment": "new segment",
    "served": "target served by another model",
    "judge served": "judge served by another model",
    "alarm": "alarm",
    "claim": "claim",
    "judge drifted": "judges drifted",
    "ended": "line ended",
    "facts": "other facts in the library",
}
_LOOKS: dict[EventKind, EventLook] = {"segment": "segment", "alarm": "alarm", "claim": "alarm"}
_STEPS = (0.02, 0.05, 0.1, 0.2, 0.25)
_MOST_TICKS = 6
CAPTION = (
    "Dots are values at each point; lines through them are 95% intervals over scenarios. A value outside of the gray "
    "band raises an alarm. The band is narrower if points before it moved the same way, and ends with the alarm. "
    "Numbers are events, explained in the table below. Scales need not begin at 0."
)
SHOWN_ANSWERS = 10
"""Pairs of answers of a target in a segment on the page, the largest changes first."""
SUMMARY_FORMAT = 1
SUMMARY_MARK = "<!-- medicare-eval series:"
JUNIT_MARK = "<!-- medicare-eval series -->"
"""By which files of ours are recognized, near their beginning."""
MOST_EVENTS = 20
LONGEST_NAME = 200
"""Characters of a name or a text of others in Markdown. An issue has room for about 65,000."""
_MARKER = re.compile(r"[^A-Za-z0-9 ._]+")
_REFERENCE = re.compile(r"(?i)gh\\-(?=\d)")
_BREAK = "&#8203;"
"""A space without width: what is before and after it is not read as one name."""


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

    def of(self, target: str) -> TargetDrift | None:
        return next((one for one in self.drifts.targets if one.target == target), None) if self.drifts else None


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


def series_page(found: SeriesFindings, address: RunAddress = lambda run: None) -> Contents:
    """The page of a series.

    Args:
        found: What `read_findings` of the series' folder returned.
        address: Where the pages of a run are, for links; without it, runs are named and not linked.
    """

    def run(point: Point) -> Cell:
        link = address(point.run)
        return linked(text_cell(point.period), f"{link}/report.html" if link else "")

    def trial(point: Point, trial_id: str) -> Cells:
        link = address(point.run)
        to = f"{link}/trials/{quote(trial_id, safe='')}"
        return (Cell(" "), linked(Cell(f"Trial in {point.period}"), to)) if link else ()

    compared = [_compared(found, one) for one in found.segments]
    return read_sections.contents(
        "series",
        **WORDS,
        found=found,
        compared=compared,
        notices=_notices(found, compared),
        judges=_judge_lines(found),
        costs=_costs(found),
        run=run,
        trial=trial,
        SHOWN_ANSWERS=SHOWN_ANSWERS,
    )


def _notices(found: SeriesFindings, compared: Sequence[SegmentAnswers]) -> tuple[str, ...]:
    """Of all runs that were read; that the judge is the rule-based one is known without reading a run."""
    notices = [notice for one in compared for notice in one.notices]
    judges = [name for one in found.segments for name in one.segment.verifiers]
    if not notices and any(name.startswith("offline:") for name in judges):
        notices.append(OFFLINE_NOTICE)
    return tuple(dict.fromkeys(notices))


def _judge_lines(found: SeriesFindings) -> list[tuple[str, Line]]:
    """Each line of the judges, with the segment that it is of."""
    frozen = [(str(one.segment.number), line) for one in found.segments for line in one.judges if line.kind == "frozen"]
    anchors = found.current.judges if found.current else ()
    return [*frozen, *(("all", line) for line in anchors if line.kind == "anchors")]


def _costs(found: SeriesFindings) -> list[float | None]:
    """The sums over all points; None where a price is unknown."""
    costs = [(one.cost.run, one.cost.frozen, one.cost.anchors, one.cost.total) for one in found.points]
    return [None if None in column else math.fsum(filter(None, column)) for column in zip(*costs, strict=True)]


def _outcomes(parts: Sequence[TargetSegment]) -> list[Outcome]:
    return list(dict.fromkeys(outcome for one in parts for outcome in one.levels))


def _limit(parts: Sequence[TargetSegment], outcome: Outcome) -> LineLimit:
    """Of the newest line."""
    return [line.limit for one in parts if (line := one.line(outcome))][-1]


def _band_text(line: Line, place: int) -> str:
    low, high = band(line, place)
    if low is None or high is None:
        return NOTHING
    if line.outcome in SHARES:
        return f"{percent(low)}–{percent(high)}%"
    return f"{rounded(low)}–{rounded(high)}"


def _result(line: Line, place: int) -> str:
    return " and ".join(name for name, at in (("alarm", line.alarm), ("claim", line.claim)) if at == place) or NOTHING


def e_value(log_wealth: float) -> str:
    """`0.92`, `80`, `1,200`, and a power of ten beyond a million."""
    if log_wealth > math.log(1e6):
        return f"10^{log_wealth / math.log(10):.0f}"
    value = math.exp(log_wealth)
    return f"{value:,.0f}" if value >= 10 else rounded(value)


def events_of(found: SeriesFindings, target: str) -> list[Event]:
    """Those about this target, about the judges, and about all."""
    judges = ("judge served", "judge drifted")
    return [event for event in found.events if event.kind in judges or event.subject in ("", target)]


def value_cell(outcome: str | None, share: Bounded) -> Cell:
    """`62% (54–70%)` for a share of questions, `0.62 (0.54–0.70)` for a score."""
    return share_cell(share) if outcome in SHARES else number_cell(share.value, share.low, share.high)


def plain_value(outcome: str | None, value: float | None) -> str:
    """The same without an interval."""
    return "–" if value is None else f"{percent(value)}%" if outcome in SHARES else rounded(value)


def panel_title(outcome: Outcome) -> str:
    return f"{capital(outcome_name(outcome))}{', of 100' if outcome in SHARES else ''}"


def chart_of(found: SeriesFindings, target: str, place: int, events: Sequence[Event]) -> ChartBlock:
    """The chart of a target; `place` is its number on the page."""
    parts = found.by_target[target]
    periods = sorted({period for one in parts for period in one.lines[0].periods})
    outcomes = list(dict.fromkeys(outcome for one in parts for outcome in one.levels))
    times = _times([*periods, *(event.period for event in events)])
    panels = tuple(_panel(outcome, parts, times) for outcome in outcomes)
    chart = TimeChart(
        f"series-{place}-{slug(target)}",
        f"Chart {place}: {target} over time",
        panels,
        tuple(Tick(times[period], period) for period in sorted(times)),
        tuple(TimeEvent(event.number, times[event.period], _LOOKS.get(event.kind, "other")) for event in events),
    )
    return ChartBlock(chart, CAPTION)


def _panel(outcome: Outcome, parts: Sequence[TargetSegment], times: dict[str, float]) -> TimePanel:
    drawn = tuple(
        tuple(_points(line, one.levels[outcome], times)) for one in parts if (line := one.line(outcome)) and line.steps
    )
    return TimePanel(panel_title(outcome), tuple(_scale(outcome, drawn)), drawn)


def _points(line: Line, levels: Sequence[Bounded], times: dict[str, float]) -> Iterator[TimePoint]:
    for place, (period, level, step) in enumerate(zip(line.periods, levels, line.steps, strict=True)):
        low, high = band(line, place)
        raised = line.alarm == place
        told = f"{period} {shown(value_cell(line.outcome, level))}{', alarm' if raised else ''}"
        yield TimePoint(times[period], level.value, level.low, level.high, told, step.reference, low, high, raised)


def band(line: Line, place: int) -> tuple[float | None, float | None]:
    """The values that raise no alarm; none at the first point, and none once an alarm was raised."""
    step = line.steps[place]
    return (None, None) if line.alarm is not None and place > line.alarm else (step.low, step.high)


def _scale(outcome: Outcome, parts: Sequence[Sequence[TimePoint]]) -> Iterator[Tick]:
    """Round numbers around all values, their intervals, and the last band of each segment."""
    ends = [end for part in parts for point in part for end in (point.value, point.low, point.high) if end is not None]
    for part in parts:
        bands = [(one.band_low, one.band_high) for one in part if one.band_low is not None]
        ends += [end for end in (bands[-1] if bands else ()) if end is not None]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    step = next((one for one in _STEPS if (high - low) / one <= _MOST_TICKS - 1), _STEPS[-1])
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 2)
    if last * step > 1:
        first, last = min(first, round(1 / step) - 2), round(1 / step)
    for number in range(max(0, first), last + 1):
        at = number * step
        yield Tick(at, percent(at) if outcome in SHARES else rounded(at))


def _times(periods: Iterable[str]) -> dict[str, float]:
    """Where periods are on the scale of time: as far apart as they are, or in order if they are of several kinds."""
    known = sorted(set(periods))
    try:
        if len({(len(period), period[5:6].isdigit()) for period in known}) == 1:
            return {period: _number(period) for period in known}
    except ValueError:  # no such day or week
        pass
    return {period: float(place) for place, period in enumerate(known)}


def _number(period: str) -> float:
    """2026-11-18, 2026-W47, 2026-11 or 2026-Q4 as a number of days, weeks, months or quarters."""
    year, part = int(period[:4]), period[5:]
    if part.startswith("Q"):
        return year * 4.0 + int(part[1:])
    if part.startswith("W"):
        return float(date.fromisocalendar(year, int(part[1:]), 1).toordinal() // 7)
    if "-" in part:
        return float(date.fromisoformat(period).toordinal())
    return year * 12.0 + int(part)


def judge_value(line: Line, value: float | None) -> str:
    return plain_value(line.outcome or SHARES[0], value)


def judged(line: Line) -> str:
    """What a line of the judges is about."""
    if line.kind == "frozen":
        return f"first transcripts of {line.name} again: {outcome_name(line.outcome)}"
    return f"labeled replies, right labels: {line.name}"


WORDS: dict[str, object] = {
    "BETTER": BETTER, "KINDS": KINDS, "NAMES": {str(code): name for code, name in CODE_HEADINGS.items()},
    "band_text": _band_text, "capital": capital, "changed_questions": changed_questions, "chart_of": chart_of,
    "e_value": e_value, "events_of": events_of, "judge_drifted": judge_drifted, "judge_value": judge_value,
    "judged": judged, "limit_of": _limit, "outcome_name": outcome_name, "outcomes": _outcomes,
    "panel_title": panel_title, "plain_value": plain_value, "result": _result, "value": value_cell,
}  # fmt: skip
"""What the templates of a series call."""


# For bots and programs


def marker(title: str) -> str:
    """The first line of the summary, by which a bot finds the issue to update."""
    name = _MARKER.sub("_", plain(title)).strip()
    return f"{SUMMARY_MARK} {name if name == title else f'{name} {sha256(title)[:8]}'} -->"


def summary_markdown(found: SeriesFindings) -> str:
    """A short text for one issue. Its first line says which series it is about, see `marker`."""
    contents = read_sections.contents(
        "series_summary",
        **WORDS,
        found=found,
        named=lambda text: text_cell(cut(text, LONGEST_NAME)),
        change=_change,
        MOST_EVENTS=MOST_EVENTS,
    )
    text = markdown(contents).replace("@", f"@{_BREAK}").replace("\\#", f"\\#{_BREAK}")
    return f"{marker(found.series.title)}\n{_REFERENCE.sub(lambda hit: f'{hit[0][:2]}{_BREAK}{hit[0][2:]}', text)}"


def _change(levels: Sequence[Bounded]) -> str:
    first, last = levels[0].value, levels[-1].value
    return NOTHING if first is None or last is None else signed_points(last - first)


def _at(line: Line, place: int | None) -> str | None:
    return None if place is None else line.periods[place]


def summary_json(found: SeriesFindings) -> dict[str, Any]:
    """The same as a document for programs. Fields are only ever added."""
    one = found.current
    point = one.points[-1] if one else None
    return {
        "format": SUMMARY_FORMAT,
        "title": found.series.title,
        "verdict": found.verdict,
        "period": found.last_period,
        "points": len(found.points),
        "segment": one.segment.number if one else None,
        "segment_began": one.baseline.period if one else None,
        "floor": found.series.floor,
        "targets": [_target_json(target) for target in one.targets] if one else [],
        "judges": [_line_json(line) for line in one.judges if line.steps] if one else [],
        "events": [
            {name: getattr(one, name) for name in ("period", "kind", "subject", "text")} for one in found.events
        ],
        "cost": {name: getattr(point.cost, name) for name in ("run", "frozen", "anchors", "total")} if point else None,
        "results_head": point.run.results_head if point else None,
        "head": found.head,
    }


def _target_json(target: TargetSegment) -> dict[str, Any]:
    lines = []
    for line in target.lines:
        share = target.levels[line.outcome][-1] if line.outcome else None
        interval = {"low": share.low, "high": share.high, "effective_n": share.effective} if share else {}
        lines.append({**_line_json(line), **interval})
    return {**{name: getattr(target, name) for name in ("target", "verdict", "why", "ended")}, "lines": lines}


def _line_json(line: Line) -> dict[str, Any]:
    first, last = line.steps[0], line.steps[-1]
    return {
        "kind": line.kind,
        "name": line.name,
        "outcome": line.outcome,
        "value": last.value,
        "first_value": first.value,
        "reference": last.reference,
        "cusum_up": last.up,
        "cusum_down": last.down,
        "limit": line.limit.limit,
        "log_wealth": last.log_wealth,
        "level": line.limit.level,
        "alarm": _at(line, line.alarm),
        "direction": line.direction,
        "worse": line.worse,
        "claim": _at(line, line.claim),
        "since": line.from_period,
    }


def junit_xml(found: SeriesFindings) -> str:
    """A test suite: a test per target and outcome, and per line of the judges.

    What drifted is a failure; what cannot be told is an error.
    """
    one = found.current
    cases: list[tuple[str, str, Decided]] = []
    for target in one.targets if one else ():
        for line, decided in zip(target.lines, target.by_line, strict=True):
            cases.append((target.target, outcome_name(line.outcome), decided))
    for line in one.judges if one else ():
        if line.steps:
            why = "" if line.alarm is None else judge_drifted(line)
            now = f"{why}; value now {judge_value(line, line.steps[-1].value)}"
            cases.append(("judges", judged(line), Decided("drifted" if why else "no alarm", now)))
    suite = ET.Element("testsuite", {"name": _xml(found.series.title)})
    for subject, name, decided in cases:
        case = ET.SubElement(suite, "testcase", {"classname": _xml(subject), "name": _xml(name)})
        if decided.verdict != "no alarm":
            kind = "error" if decided.verdict == "cannot tell" else "failure"
            said = ET.SubElement(case, kind, {"message": _xml(decided.why), "type": decided.verdict})
            said.text = _xml(decided.why)
    counts = {"tests": "testcase", "failures": "testcase/failure", "errors": "testcase/error"}
    for name, path in counts.items():
        suite.set(name, str(len(suite.findall(path))))
    ET.indent(suite)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{JUNIT_MARK}\n{ET.tostring(suite, encoding="unicode")}\n'


def _xml(text: str) -> str:
    """Without control characters, and without the two that XML forbids besides."""
    return plain(text).replace("\ufffe", "").replace("\uffff", "")


def check_outputs(*, summary: Path | None, junit: Path | None, html: Path | None) -> None:
    """Refuse places that cannot be written to, before anything is called. Only our own files are replaced."""
    for path, mark, kind in ((summary, SUMMARY_MARK, "summary"), (junit, JUNIT_MARK, "JUnit file")):
        if path:
            require_own(path, mark, kind)
    if html:
        require_page(html)


def write_outputs(
    found: SeriesFindings, *, summary: Path | None, junit: Path | None, html: Path | None
) -> Iterator[Path]:
    """Write what is asked for; the files written."""
    check_outputs(summary=summary, junit=junit, html=html)
    for path, text in ((summary, summary_markdown), (junit, junit_xml)):
        if path:
            yield write_own(path, text(found))
    if html:
        yield write_page(series_page(found), html)
