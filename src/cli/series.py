"""`series`: the same study, again and again."""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..calls.stop import Stop
from ..reports.document import share_text
from ..series import actions
from ..series.findings import Line, SegmentFindings, SeriesFindings, capital, outcome_name
from ..series.folder import read_lines
from ..series.page import check_outputs, summary_json, write_outputs
from ..text.count import counted
from ..text.escape import plain_lines
from ..text.money import money_text
from ..text.rounded import percent, rounded
from . import tables
from .analyze import CANNOT_TELL, DRIFTED
from .options import own
from .progress import ShowProgress, stop_on_signal

EVENTS_SHOWN = 20
PAGE = "series.html"


def init(arguments: argparse.Namespace) -> int:
    found = actions.init_series(
        arguments.series, arguments.study, on_stage=_say, **own(arguments, without="series study json")
    )
    _print(found, _begun(arguments.series, found), as_json=arguments.json)
    return 0


def _print(found: SeriesFindings, lines: Iterable[str], *, as_json: bool) -> None:
    told = json.dumps(summary_json(found), indent=2, ensure_ascii=False) if as_json else plain_lines("\n".join(lines))
    print(told)


def _begun(folder: Path, found: SeriesFindings) -> Iterator[str]:
    series = found.series
    segment = read_lines(folder).segments[0]
    yield f"{folder}: {series.title}, one point every {series.cadence}, thresholds for {series.points} points."
    for outcome, limit in segment.targets.items():
        scenarios = counted(len(limit.clusters), "scenario")
        yield tables.wrapped(f"  {outcome_name(outcome)}: alarm if the CUSUM passes {limit.limit:.2f}; {scenarios}.")
        if limit.power:
            alarm, claim = (percent(one.share) for one in (limit.power.alarm, limit.power.claim))
            yield tables.wrapped(
                f"    A drop of {rounded(limit.power.drop)} after {limit.power.after} points is found in {alarm}% of "
                f"simulated series, and can be claimed in {claim}%."
            )
    if len(segment.targets) and min(len(limit.clusters) for limit in segment.targets.values()) < 10:
        yield tables.wrapped("Few scenarios find only large changes: see docs/series.md.")
    yield f"Next: medicare-eval series run {folder} --max-cost USD"


def run(arguments: argparse.Namespace) -> int:
    async def main() -> SeriesFindings:
        stop = Stop()
        stop_on_signal(stop)
        return await actions.run_series_async(
            arguments.series,
            progress=(lambda: None) if arguments.quiet else ShowProgress,
            on_stage=(lambda stage: None) if arguments.quiet else _say,
            stop=stop,
            **own(arguments, without="series json junit summary html quiet"),
        )

    check_outputs(**_outputs(arguments))
    return _tell(asyncio.run(main()), arguments)


def _say(stage: str) -> None:
    print(stage, file=sys.stderr, flush=True)


def add(arguments: argparse.Namespace) -> int:
    check_outputs(**_outputs(arguments))
    found = actions.add_to_series(arguments.series, **own(arguments, without="series json junit summary html"))
    return _tell(found, arguments)


def status(arguments: argparse.Namespace) -> int:
    check_outputs(**_outputs(arguments))
    return _tell(actions.series_status(arguments.series), arguments)


def plot(arguments: argparse.Namespace) -> int:
    print(actions.plot_series(arguments.series, arguments.html or arguments.series / PAGE))
    return 0


def _outputs(arguments: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(arguments, name) for name in ("summary", "junit", "html")}


def _tell(found: SeriesFindings, arguments: argparse.Namespace) -> int:
    """Print what the series says, write what was asked for, and return the exit code of `drift`."""
    for path in write_outputs(found, **_outputs(arguments)):
        if not getattr(arguments, "quiet", False):
            print(f"Written: {path}", file=sys.stderr)
    _print(found, status_lines(found), as_json=arguments.json)
    return {"drifted": DRIFTED, "cannot tell": CANNOT_TELL}.get(found.verdict, 0)


def status_lines(found: SeriesFindings) -> Iterator[str]:
    now = found.current
    if now is None:
        yield f"{found.series.title}: no point yet."
        yield f"Make the first: medicare-eval series run {found.folder} --max-cost USD"
        return
    yield tables.wrapped(
        f"{found.series.title}: {found.verdict}. Point {now.points[-1].period}, no. {len(now.points)} of its segment "
        f"({'; '.join(now.segment.reasons)})."
    )
    for target in now.targets:
        ended = f" Its line has ended: {target.ended}." if target.ended else ""
        yield tables.wrapped(f"  {target.target}: {target.verdict}. {capital(target.why)}.{ended}")
    yield ""
    yield _table(now)
    for earlier in found.segments[:-1]:
        yield tables.wrapped(
            f"Earlier segment, {earlier.baseline.period} to {earlier.points[-1].period} "
            f"({'; '.join(earlier.segment.reasons)}): "
            + "; ".join(f"{target.target} {target.verdict}" for target in earlier.targets)
        )
    yield from _events(found)
    cost = now.points[-1].cost
    parts = f"study {money_text(cost.run)}, judges on old transcripts {money_text(cost.frozen)}"
    yield tables.wrapped(f"Cost of {now.points[-1].period}: {parts}, on labeled replies {money_text(cost.anchors)}.")
    if len(now.points) - 1 > found.series.points:
        yield tables.wrapped(f"The thresholds were made for {found.series.points} points. Begin a new series.")
    yield "Chain value of the last line (save this somewhere else; check it later with"
    yield f"`medicare-eval verify {found.folder} --expect HASH`):"
    yield f"  {found.head}"


def _table(now: SegmentFindings) -> str:
    headings = ("line", "first", "latest", "CUSUM up", "down", "limit", "evidence", "needed")
    rows = []
    for target in now.targets:
        for line in target.lines:
            levels = target.levels[line.outcome] if line.outcome else ()
            ends = [share_text(levels[place]).replace("–", "-") for place in (0, -1)]
            rows.append(_row(f"{target.target} {line.outcome}", line, ends))
    for line in now.judges:
        about = f"{line.outcome} of old {line.name}" if line.outcome else f"labels of {line.name}"
        values = [f"{percent(step.value)}%" for step in line.steps if step.value is not None] or ["-"]
        rows.append(_row(f"judges, {about}", line, [values[0], values[-1]]))
    caption = (
        "An alarm is raised when a CUSUM passes its limit, or one point alone is about as far. Evidence is the wealth "
        "of a bet against no change; a claim is made when it reaches what is needed, and holds at any number of looks."
    )
    return tables.plain_table(headings, rows, caption=caption)


def _row(name: str, line: Line, ends: Sequence[str]) -> list[str]:
    step = line.steps[-1]
    evidence = f"{math.exp(min(step.log_wealth, 20.0)):,.1f}"
    return [
        name, *ends, f"{step.up:.1f}", f"{step.down:.1f}", f"{line.limit.limit:.1f}", evidence,
        f"{1 / line.limit.level:,.0f}",
    ]  # fmt: skip


def _events(found: SeriesFindings) -> Iterator[str]:
    shown = found.events[-EVENTS_SHOWN:]
    more = f", the last {len(shown)} of {len(found.events)}" if len(shown) < len(found.events) else ""
    yield f"Events{more}:"
    for event in shown:
        subject = f"{event.subject}: " if event.subject and event.subject not in event.text else ""
        yield tables.wrapped(f"  {event.period}  {event.kind}: {subject}{event.text}")
