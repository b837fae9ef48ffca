"""The first screen: the answer in one sentence per target, one chart, and one line on what the numbers are worth.

Its forest plots show targets and counselors, over all questions and by question group of the study.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from ..findings.estimates import Estimated, estimate, key_coverage
from ..findings.human_comparison import BesideCounselors, ComparedGroups, CounselorShare, Headline, headline
from ..findings.read_run import judged_offline
from ..findings.review import is_review
from ..schemas import Registration
from ..scoring.definitions import MEASURES, SHARES, Measure
from ..text.count import counted
from ..text.rounded import percent
from . import read_sections
from .charts import ForestChart, ForestRow, Mark
from .document import Block, ChartBlock, Line
from .drawing import Group, Panel, Tick
from .judge_section import judge_error_sentence
from .series import ReportedRun, ReportedTarget, Runs

COUNSELORS = {"phone": "Counselors by phone", "face_to_face": "Counselors face to face"}
OF_HUNDRED = tuple(Tick(share / 100, str(share)) for share in (0, 25, 50, 75, 100))
PANELS = (Panel("Accurate and complete, of 100", OF_HUNDRED), Panel("Wrong, of 100", OF_HUNDRED))


ROWS = 32
"""Rows of one chart by question group, so that it fits on a printed page."""


@dataclass(frozen=True)
class Answered:
    series: ReportedTarget
    found: Headline


def of_hundred(share: float) -> str:
    """A share as a number of 100; what is not 0 is not shown as 0."""
    return "fewer than 1" if 0 < share < 0.005 else percent(share)


def range_text(found: Estimated | CounselorShare) -> str:
    """`54–70`, or why there is no interval."""
    if found.low is not None and found.high is not None:
        return f"{percent(found.low)}–{percent(found.high)}"
    return f"no interval from {counted(found.units, found.unit)}" if isinstance(found, Estimated) else "no interval"


def _mark(found: Estimated | CounselorShare) -> Mark:
    if found.value is None:
        return Mark(None, None, None, "no answer")
    value = of_hundred(found.value)
    if found.low is not None and found.high is not None:
        return Mark(found.value, found.low, found.high, f"{value} ({range_text(found)})")
    note = f"only {counted(found.units, found.unit)}" if isinstance(found, Estimated) else ""
    return Mark(found.value, None, None, value, note)


def answer_figure(answered: Sequence[Answered]) -> ChartBlock:
    """Every target over all questions; where the study's were asked, these beside counselors."""
    rows = tuple(_row(one.series, one.found.complete, one.found.incorrect) for one in answered)
    compared = [(one.series, one.found.study) for one in answered if one.found.study]
    groups: tuple[Group[ForestRow], ...] = (Group("", rows),)
    if compared:
        title = "Questions of the published study, like for like"
        groups = (Group("All questions", rows), Group(title, _beside(compared)))
    asked = max((one.found.complete for one in answered), key=lambda found: found.questions)
    size = f"{counted(asked.questions, 'different question')} in {counted(asked.units, asked.unit)}"
    return ChartBlock(
        ForestChart("answer", "Complete answers and wrong answers", PANELS, groups),
        f"Dots are estimates from {size}; lines are 95% intervals, the range that fits the data. Other answers were "
        "incomplete or said nothing that helps.",
    )


def group_figures(runs: Runs) -> tuple[ChartBlock, ...]:
    """Every question group that is compared like for like: the targets, and counselors. A few groups per chart."""
    by_number: dict[int, list[tuple[ReportedTarget, ComparedGroups]]] = {}
    for series in runs.series:
        for one in series.beside_counselors.groups.get("like", ()):
            by_number.setdefault(one.numbers[0], []).append((series, one))
    groups = [
        Group(f"{number} {compared[0][1].topic}", _beside(compared)) for number, compared in sorted(by_number.items())
    ]
    if not groups:
        return ()
    most = max(1, ROWS // max(len(group.rows) for group in groups))
    each = ceil(len(groups) / ceil(len(groups) / most))
    charts = [
        ForestChart(f"groups-{place}", f"Question groups compared like for like, part {place}", PANELS, tuple(part))
        for place, start in enumerate(range(0, len(groups), each), 1)
        if (part := groups[start : start + each])
    ]
    return tuple(ChartBlock(chart, "The tables below have these numbers and the differences.") for chart in charts)


def _beside(compared: Sequence[tuple[ReportedTarget, ComparedGroups]]) -> tuple[ForestRow, ...]:
    """Targets, then counselors on the questions of the target that was asked most of them."""
    rows = [_row(series, *(one.outcomes[code].target for code in SHARES)) for series, one in compared]
    widest = max((one for _, one in compared), key=lambda one: len(one.numbers))
    for mode, name in COUNSELORS.items():
        shares = (widest.outcomes[code].counselors[mode] for code in SHARES)
        rows.append(ForestRow(name, tuple(map(_mark, shares)), "people"))
    return tuple(rows)


def _row(series: ReportedTarget, *found: Estimated) -> ForestRow:
    return ForestRow(series.chart_label, tuple(map(_mark, found)))


TITLE = "How well do AI assistants answer Medicare questions?"
LIMITS_ANCHOR, NOTICES_ANCHOR = "limits", "notices"


def about(runs: Runs) -> Line:
    """The line below the title: when, for which year, how many scenarios."""
    manifests = [run.found.manifest for run in runs.runs]
    dates = sorted(manifest.created[:10] for manifest in manifests)
    return read_sections.line(
        "first",
        "about",
        runs=runs,
        dates=(dates[0], dates[-1]),
        years=sorted({str(one.plan.plan_year) for one in manifests}),
        scenarios={planned.scenario.scenario_id for one in manifests for planned in one.plan.scenarios},
        incomplete=dict.fromkeys(run.found.incomplete for run in runs.runs if run.found.incomplete),
        review=any(map(is_review, manifests)),
        fake=_fake(runs),
    ) if manifests else ()  # fmt: skip


def _fake(runs: Runs) -> bool:
    return any(run.found.fake for run in runs.runs)


def first_blocks(runs: Runs, notices: int) -> tuple[Block, ...]:
    """What a reader sees first; `notices` is how many there are further down."""
    answered = [Answered(series, headline(series.rows, series.beside_counselors)) for series in runs.series]
    errors = [judge_error_sentence(series.judge_errors) for series in runs.series]
    on_study: dict[tuple[int, ...], list[tuple[ReportedTarget, ComparedGroups]]] = {}
    for one in answered:
        if one.found.study:
            on_study.setdefault(one.found.study.numbers, []).append((one.series, one.found.study))
    plans = [run.found.manifest.plan for run in runs.runs]
    has_answers = any(one.found.complete.value is not None for one in answered)
    return read_sections.blocks(
        "first",
        "screen",
        registered=[found for run in runs.runs if (found := _registered(runs, run))],
        answered=list(zip(answered, errors, strict=True)),
        shared_error=errors[0] if len(set(errors)) == 1 else "",
        on_study=on_study,
        figures=[answer_figure(answered)] if has_answers else [],
        fake=_fake(runs),
        offline=any(map(judged_offline, plans)),
        verifiers=dict.fromkeys(name for plan in plans for name in plan.all_verifiers),
        decided=key_coverage([row for run in runs.runs for row in run.found.rows]),
        notices=notices,
        limits_anchor=LIMITS_ANCHOR,
        notices_anchor=NOTICES_ANCHOR,
        estimate=estimate,
        of_hundred=of_hundred,
        range_text=range_text,
    )


class _Registered(NamedTuple):
    """A pre-registered primary outcome, and the results that it speaks of."""

    kept: Registration
    measure: Measure | None
    mode: str
    """Of the counselors, if it is a difference from them."""
    targets: list[ReportedTarget]
    compared: list[tuple[ReportedTarget, BesideCounselors]]
    """On the questions that are compared like for like."""


def _registered(runs: Runs, run: ReportedRun) -> _Registered | None:
    kept = run.found.manifest.registration
    if not kept:
        return None
    name, mode = named_measure(kept.primary_outcome), ""
    if name in SHARES and re.search(r"counsel", kept.primary_outcome, re.IGNORECASE):
        mode = "face_to_face" if re.search(r"face|in person", kept.primary_outcome, re.IGNORECASE) else "phone"
    targets = [series for series in runs.series if series.run is run]
    compared = [
        (series, primary.outcomes[code])
        for series in targets
        if (primary := series.beside_counselors.primary)
        for code in SHARES
        if code == name
    ]
    return _Registered(kept, MEASURES[name] if name else None, mode, targets, compared)


def named_measure(outcome: str) -> str | None:
    """The measure that a text names first."""
    found = {
        name: match.start()
        for name, one in MEASURES.items()
        if (match := re.search(one.named_by or one.heading.replace(" ", r"[\s_]"), outcome, re.IGNORECASE))
    }
    return min(found, key=lambda name: found[name]) if found else None
