"""The page of a series: the verdicts first, then a chart per target, what changed, every point, judges and cost.

Its words are in the template `series`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from ..errors import HarnessError
from ..findings.drift import BETTER, Drifts, TargetDrift, measure_drift
from ..findings.read_run import gather
from ..findings.rule_judge import OFFLINE_NOTICE, run_notices
from ..records.series import LineLimit, Outcome, Point, RunReference
from ..reports import read_sections
from ..reports.analysis_pages import changed_questions
from ..reports.document import NOTHING, Cell, Contents, linked, text_cell
from ..reports.document import Line as Cells
from ..scoring.definitions import CODE_HEADINGS, SHARES
from ..text.rounded import percent, rounded
from .chart import KINDS, band, capital, chart_of, events_of, panel_title, plain_value, value_cell
from .findings import Line, SegmentFindings, SeriesFindings, TargetSegment, judge_drifted, outcome_name

RunAddress = Callable[[RunReference], str | None]
"""Where the pages of a run are in the workbench; None if it has none."""
SHOWN_ANSWERS = 10
"""Pairs of answers of a target in a segment on the page, the largest changes first."""


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
