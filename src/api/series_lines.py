"""Which lines a point adds to a series: computed from its folders alone, so that `verify` can compute them again."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from .. import storage
from ..errors import IncompleteRun, IntegrityError
from ..findings.analysis.cost import Spending
from ..findings.analysis.judge_agreement import RECORD, read_record
from ..findings.analysis.read_run import Findings, gather
from ..findings.analysis.series_design import changes, facts_sha256, plan_parts, segment_of
from ..findings.analysis.series_line import anchor_labels, served_judges, target_points, values_of_targets
from ..judge_check.gold import load_gold
from ..records.judge_check import JudgeCheck
from ..records.series import (
    Anchors,
    Cadence,
    CheckReference,
    EndedTarget,
    Point,
    PointCost,
    PointIntent,
    RunReference,
    Segment,
    Series,
)
from ..schemas import RunPlan
from ..store.series_folder import SeriesLines, point_folder
from ..store.strict_json import fingerprint

FIRST = "the series begins"
JUDGES = "the judges changed: "


def period_of(day: date, cadence: Cadence) -> str:
    """The period that a day falls into."""
    match cadence:
        case "day":
            return day.isoformat()
        case "week":
            year, week, _ = day.isocalendar()
            return f"{year}-W{week:02}"
        case "month":
            return f"{day.year}-{day.month:02}"
        case "quarter":
            return f"{day.year}-Q{(day.month + 2) // 3}"


@dataclass(frozen=True)
class PointFolders:
    """Where the parts of a point are. None: there is no such part."""

    run: Path
    frozen: Path | None = None
    check: Path | None = None
    transcripts: Path | None = None
    """The run that asked the targets, if `run` judged its transcripts again."""


def anchor_sizes(folder: Path, series: Series) -> dict[str, int] | None:
    """The labeled replies of a series, and how many claims each has."""
    if series.anchors is None:
        return None
    given = series.anchors
    gold = load_gold(given.split, gold_folder(folder, given)).drawn(given.limit, series.seed)
    return {item.reply.reply_id: len(item.claims) for item in gold.items}


def gold_folder(folder: Path, anchors: Anchors) -> Path | None:
    """A folder of other labels; also if the folder of the series does not exist yet."""
    return Path(os.path.normpath(folder.resolve() / anchors.gold)) if anchors.gold else None


def first_segment(folder: Path, series: Series, plan: RunPlan) -> Segment:
    return segment_of(
        series, plan, series.study, number=1, judging=1, reasons=[FIRST], anchors=anchor_sizes(folder, series)
    )


def run_reference(folder: Path, run: Path) -> RunReference:
    """A complete run as a line names it."""
    manifest = storage.read_manifest(run)
    seal = storage.read_seal(run, manifest)
    if seal is None:
        raise IncompleteRun(f"{run} is not complete. First run: medicare-eval resume {run}", run=run)
    return RunReference(
        folder=relative(folder, run),
        run_id=manifest.run_id,
        results_head=seal.results_head,
        manifest_sha256=seal.files[storage.MANIFEST],
    )


def relative(folder: Path, path: Path) -> str:
    return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()


def folder_in(parent: Path) -> Path | None:
    """The run, or the check, of a folder that has one. One that was killed before its manifest made no call."""
    found = sorted(parent.glob(f"*/{storage.MANIFEST}"))
    return found[0].parent if found else None


def folders_of(folder: Path, intent: PointIntent) -> PointFolders:
    """Where a point's parts are, once they are done."""
    place = point_folder(folder, intent.period)
    if intent.run:
        return PointFolders(
            folder / intent.run,
            folder / intent.frozen if intent.frozen else None,
            folder / intent.check if intent.check else None,
        )
    run = folder_in(place / "run")
    if run is None:
        raise IntegrityError(f"{place / 'run'} has no run, though {intent.period} was begun. Put it back.")
    return PointFolders(run, folder_in(place / "frozen"), folder_in(place / "check"))


def restated_folder(folder: Path, intent: PointIntent, old: Point) -> Path:
    return point_folder(folder, intent.period) / "restated" / old.period


def asked_run(folder: Path, point: Point) -> Path:
    """The run that asked the targets of a point."""
    return folder / (point.transcripts or point.run).folder


def points_now(before: SeriesLines) -> list[Point]:
    """The points of the present judges."""
    judging = before.segments[-1].judging
    numbers = {segment.number for segment in before.segments if segment.judging == judging}
    return [point for point in before.points if point.segment in numbers]


def baseline_of(before: SeriesLines) -> Point | None:
    """The first point of the last segment."""
    if not before.segments:
        return None
    number = before.segments[-1].number
    return next((point for point in before.points if point.segment == number), None)


def lines_of(folder: Path, series: Series, before: SeriesLines, intent: PointIntent) -> list[Segment | Point]:
    """The lines that a finished point adds."""
    lines: list[Segment | Point] = []
    known = before
    if intent.judges_changed:
        lines += _restated(folder, series, before, intent)
        known = SeriesLines((*before.lines, *lines), before.head)
    parts = folders_of(folder, intent)
    manifest = storage.read_manifest(parts.run)
    now = known.segments[-1]
    if intent.reasons:
        segment = segment_of(
            series,
            manifest.plan,
            intent.study,
            number=now.number + 1,
            judging=now.judging,
            reasons=intent.reasons,
            anchors=anchor_sizes(folder, series),
        )
        lines.append(segment)
        now = segment
    first = not any(point.segment == now.number for point in known.points)
    about = AboutPoint(now.number, intent.period, intent.date, first=first, ended=intent.ended)
    lines.append(make_point(folder, series, about, parts))
    return lines


def _restated(folder: Path, series: Series, before: SeriesLines, intent: PointIntent) -> list[Segment | Point]:
    """Every earlier point, judged again by the new judges, in segments as before."""
    lines: list[Segment | Point] = []
    number, last_segment = before.segments[-1].number, None
    said = {segment.number: segment.reasons for segment in before.segments}
    anchors = anchor_sizes(folder, series)
    judging = before.segments[-1].judging + 1
    for old in points_now(before):
        run = folder_in(restated_folder(folder, intent, old))
        if run is None:
            raise IntegrityError(f"{restated_folder(folder, intent, old)} has no run. Put it back.")
        if old.segment != last_segment:
            plan = storage.read_manifest(run).plan
            number += 1
            reasons = said[old.segment] if last_segment else (f"{JUDGES}{', '.join(dict.fromkeys(plan.verifiers))}",)
            study = {**intent.study, "targets": before_targets(before, old.segment)}
            lines.append(
                segment_of(series, plan, study, number=number, judging=judging, reasons=reasons, anchors=anchors)
            )
        parts = PointFolders(run, transcripts=asked_run(folder, old))
        first = old.segment != last_segment
        about = AboutPoint(number, old.period, old.date, first=first, ended=old.ended, restated=True)
        lines.append(make_point(folder, series, about, parts))
        last_segment = old.segment
    return lines


def before_targets(before: SeriesLines, number: int) -> object:
    return next(segment.study["targets"] for segment in before.segments if segment.number == number)


@dataclass(frozen=True)
class AboutPoint:
    """What the folders of a point do not say."""

    segment: int
    period: str
    date: str
    first: bool
    """Whether it is the first of its segment."""
    ended: tuple[EndedTarget, ...] = ()
    restated: bool = False


def make_point(folder: Path, series: Series, about: AboutPoint, parts: PointFolders) -> Point:
    found = gather(parts.run)
    frozen = gather(parts.frozen) if parts.frozen and not about.first else None
    check = read_record(parts.check / RECORD, JudgeCheck) if parts.check else None
    judged_again = found if about.first else frozen
    return Point(
        segment=about.segment,
        period=about.period,
        date=about.date,
        restated=about.restated,
        run=run_reference(folder, parts.run),
        transcripts=run_reference(folder, parts.transcripts) if parts.transcripts else None,
        frozen=run_reference(folder, frozen.folder) if frozen else None,
        check=_check_reference(folder, parts.check, check) if parts.check and check else None,
        targets=target_points(found, series.outcomes),
        rejudged=values_of_targets(judged_again, series.outcomes) if judged_again else {},
        anchors=anchor_labels(check) if check else {},
        gold=_gold(check) if check else None,
        judges=served_judges(found),
        facts=facts_sha256(found.manifest.plan),
        ended=about.ended,
        cost=PointCost(
            run=_cost(found, judges_only=found.manifest.transcripts is not None),
            frozen=_cost(frozen, judges_only=True) if frozen else 0.0,
            anchors=check.cost if check else 0.0,
        ),
    )


def _gold(check: JudgeCheck) -> str:
    """Of the labels, and of the replies that were drawn."""
    measured = check.end_to_end or next(iter(check.judges), None)
    replies = sorted(reply.reply_id for reply in measured.replies) if measured else []
    return fingerprint([check.gold, check.split, replies])


def _check_reference(folder: Path, path: Path, check: JudgeCheck) -> CheckReference:
    return CheckReference(
        folder=relative(folder, path), check_id=check.check_id, record_sha256=storage.file_sha256(path / RECORD)
    )


def _cost(found: Findings, *, judges_only: bool) -> float | None:
    """What the calls of a run cost; those that it took from an earlier run were paid for there."""
    return cost_of(found.calls.spending, judges_only=judges_only)


def cost_of(spending: Sequence[Spending], *, judges_only: bool) -> float | None:
    costs = [row.cost for row in spending if row.part == "judges" or not judges_only]
    return None if None in costs else round(sum(cost for cost in costs if cost is not None), 9)


def reasons_for(before: SeriesLines, plan: RunPlan) -> tuple[str, ...]:
    """Why a plan needs a new segment, apart from its judges; empty if it does not."""
    return tuple(changes(before.segments[-1].parts, plan_parts(plan)))


def ended_before(lines: SeriesLines) -> Mapping[str, EndedTarget]:
    """Targets whose line has ended."""
    return {one.target: one for point in lines.points for one in point.ended}
