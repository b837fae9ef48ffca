"""What a series says, for machines and bots: one issue as Markdown, a JSON document, JUnit XML; the files it writes.

Names and titles may come from anyone. In Markdown they cannot ping, link or add markup; in XML they have no characters
that XML forbids.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..reports import read_sections
from ..reports.analysis_pages import require_page, write_page
from ..reports.analysis_sentences import signed_points
from ..reports.document import NOTHING, text_cell
from ..reports.drawing import cut
from ..reports.markdown import markdown
from ..reports.report_folder import require_own, write_own
from ..stats.bounded import Bounded
from ..store.strict_json import sha256
from ..text.escape import plain
from .findings import Line, SeriesFindings, TargetSegment, judge_drifted, outcome_name
from .page import WORDS, judge_value, judged, series_page

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
            {"period": event.period, "kind": event.kind, "subject": event.subject, "text": event.text}
            for event in found.events
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
    return {
        "target": target.target,
        "verdict": target.verdict,
        "why": target.why,
        "ended": target.ended,
        "lines": lines,
    }


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
    suite = ET.Element("testsuite", {"name": _xml(found.series.title)})
    for target in one.targets if one else ():
        for line, decided in zip(target.lines, target.by_line, strict=True):
            case = _case(suite, target.target, outcome_name(line.outcome))
            if decided.verdict != "no alarm":
                _said(case, "error" if decided.verdict == "cannot tell" else "failure", decided.verdict, decided.why)
    for line in one.judges if one else ():
        if line.steps:
            case = _case(suite, "judges", judged(line))
            if line.alarm is not None:
                last = judge_value(line, line.steps[-1].value)
                _said(case, "failure", "drifted", f"{judge_drifted(line)}; value now {last}")
    counts = {"tests": "testcase", "failures": "testcase/failure", "errors": "testcase/error"}
    for name, path in counts.items():
        suite.set(name, str(len(suite.findall(path))))
    ET.indent(suite)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{JUNIT_MARK}\n{ET.tostring(suite, encoding="unicode")}\n'


def _case(suite: ET.Element, subject: str, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", {"classname": _xml(subject), "name": _xml(name)})


def _said(case: ET.Element, kind: str, what: str, why: str) -> None:
    element = ET.SubElement(case, kind, {"message": _xml(why), "type": what})
    element.text = _xml(why)


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
