"""Which lines a point adds to a series: computed from its folders alone, so that `verify` can compute them again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from math import fsum
from pathlib import Path

from .. import storage
from ..errors import IntegrityError
from ..findings.estimates import question_values, tallied_rows
from ..findings.judge_agreement import RECORD, read_record
from ..findings.read_run import Findings, gather
from ..judge_check.gold import load_gold
from ..records.judge_check import JudgeCheck, JudgeMeasured
from ..records.series import (
    Anchors,
    Cadence,
    CheckReference,
    MissingAnswers,
    Outcome,
    Point,
    PointCost,
    PointIntent,
    RightLabels,
    ScenarioValue,
    Segment,
    Series,
    TargetPoint,
)
from ..schemas import RunPlan
from ..store.strict_json import fingerprint
from ..trials.row import Row
from .design import changes, facts_sha256, plan_parts, segment_of
from .folder import SeriesLines, point_folder, relative, run_reference


def values_by_scenario(rows: Sequence[Row], outcome: Outcome) -> dict[str, ScenarioValue]:
    """Each question is averaged over repeats, then over variants; a scenario over its questions."""
    found: dict[str, list[float]] = {}
    for one in question_values(tallied_rows(rows, outcome)):
        found.setdefault(one.question.scenario_id, []).append(one.value)
    return {
        name: ScenarioValue(value=fsum(values) / len(values), questions=len(values))
        for name, values in sorted(found.items())
    }


def missing_answers(rows: Sequence[Row], outcome: Outcome) -> MissingAnswers:
    tallies = [tally for variants in tallied_rows(rows, outcome).values() for tally in variants.values()]
    missing = sum(tally.missing for tally in tallies)
    return MissingAnswers(missing=missing, of=missing + sum(tally.n for tally in tallies))


def target_points(found: Findings, outcomes: Sequence[Outcome]) -> dict[str, TargetPoint]:
    points = {}
    for target in found.plan_targets:
        rows = found.of_target(target)
        service = found.services.get(target)
        points[target] = TargetPoint(
            values={name: values_by_scenario(rows, name) for name in outcomes},
            missing={name: missing_answers(rows, name) for name in outcomes},
            served=tuple(sorted(service.served)) if service else (),
            fingerprints=tuple(sorted(service.fingerprints)) if service else (),
        )
    return points


def anchor_labels(record: JudgeCheck) -> dict[str, dict[str, RightLabels]]:
    """Of each verifier, and of all judges end to end: how many claims of each reply got the right label."""
    found = {str(one.model): _labels(one) for one in record.judges if one.model}
    if record.end_to_end:
        found["all judges, end to end"] = _labels(record.end_to_end)
    return found


def _labels(judge: JudgeMeasured) -> dict[str, RightLabels]:
    return {
        reply.reply_id: RightLabels(
            right=sum(one.claims for one in reply.confusion if one.given == one.gold),
            of=sum(one.claims for one in reply.confusion),
        )
        for reply in sorted(judge.replies, key=lambda one: one.reply_id)
        if reply.confusion
    }


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
    if (given := series.anchors) is None:
        return None
    gold = load_gold(given.split, gold_folder(folder, given)).drawn(given.limit, series.seed)
    return {item.reply.reply_id: len(item.claims) for item in gold.items}


def gold_folder(folder: Path, anchors: Anchors) -> Path | None:
    """A folder of other labels; also if the folder of the series does not exist yet."""
    return Path(os.path.normpath(folder.resolve() / anchors.gold)) if anchors.gold else None


def first_segment(folder: Path, series: Series, plan: RunPlan) -> Segment:
    why, anchors = ("the series begins",), anchor_sizes(folder, series)
    return segment_of(series, plan, series.study, number=1, judging=1, reasons=why, anchors=anchors)


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


def lines_of(folder: Path, series: Series, before: SeriesLines, intent: PointIntent) -> list[Segment | Point]:
    """The lines that a finished point adds."""
    lines = _restated(folder, series, before, intent) if intent.judges_changed else []
    known = SeriesLines((*before.lines, *lines), before.head)
    parts = folders_of(folder, intent)
    now = known.segments[-1]
    first = bool(intent.reasons) or not known.points_of(now)
    if intent.reasons:
        now = segment_of(
            series,
            storage.read_manifest(parts.run).plan,
            intent.study,
            number=now.number + 1,
            judging=now.judging,
            reasons=intent.reasons,
            anchors=anchor_sizes(folder, series),
        )
        lines.append(now)
    lines.append(make_point(folder, series, parts, now.number, intent, first=first))
    return lines


def _restated(folder: Path, series: Series, before: SeriesLines, intent: PointIntent) -> list[Segment | Point]:
    """Every earlier point, judged again by the new judges, in segments as before."""
    lines: list[Segment | Point] = []
    number, judging = before.segments[-1].number, before.segments[-1].judging + 1
    anchors = anchor_sizes(folder, series)
    for segment in before.shown:
        for place, old in enumerate(before.points_of(segment)):
            run = folder_in(restated_folder(folder, intent, old))
            if run is None:
                raise IntegrityError(f"{restated_folder(folder, intent, old)} has no run. Put it back.")
            if not place:
                plan = storage.read_manifest(run).plan
                number += 1
                reasons = segment.reasons if lines else (f"the judges changed: {_panel(plan)}",)
                study = {**intent.study, "targets": segment.study["targets"]}
                lines.append(
                    segment_of(series, plan, study, number=number, judging=judging, reasons=reasons, anchors=anchors)
                )
            parts = PointFolders(run, transcripts=asked_run(folder, old))
            lines.append(make_point(folder, series, parts, number, old, first=not place, restated=True))
    return lines


def _panel(plan: RunPlan) -> str:
    return ", ".join(dict.fromkeys(plan.verifiers))


def make_point(
    folder: Path,
    series: Series,
    parts: PointFolders,
    segment: int,
    of: PointIntent | Point,
    *,
    first: bool,
    restated: bool = False,
) -> Point:
    """A point from its folders; from `of`, what they do not say. `first`: of its segment."""
    found = gather(parts.run)
    frozen = gather(parts.frozen) if parts.frozen and not first else None
    check = read_record(parts.check / RECORD, JudgeCheck) if parts.check else None
    targets = target_points(found, series.outcomes)
    judged_again = targets if first else target_points(frozen, series.outcomes) if frozen else {}
    return Point(
        segment=segment,
        period=of.period,
        date=of.date,
        restated=restated,
        run=run_reference(folder, parts.run),
        transcripts=run_reference(folder, parts.transcripts) if parts.transcripts else None,
        frozen=run_reference(folder, frozen.folder) if frozen else None,
        check=_check_reference(folder, parts.check, check) if parts.check and check else None,
        targets=targets,
        rejudged={name: one.values for name, one in judged_again.items()},
        anchors=anchor_labels(check) if check else {},
        gold=_gold(check) if check else None,
        judges={
            name: tuple(sorted(found.services[name].served))
            for name in found.manifest.plan.judge_models()
            if name in found.services
        },
        facts=facts_sha256(found.manifest.plan),
        ended=of.ended,
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
    costs = [row.cost for row in found.calls.spending if row.part == "judges" or not judges_only]
    return None if None in costs else round(sum(cost for cost in costs if cost is not None), 9)


def reasons_for(before: SeriesLines, plan: RunPlan) -> tuple[str, ...]:
    """Why a plan needs a new segment, apart from its judges; empty if it does not."""
    return tuple(changes(before.segments[-1].parts, plan_parts(plan)))


def ended_before(lines: SeriesLines) -> set[str]:
    """Targets whose line has ended."""
    return {one.target for point in lines.points for one in point.ended}
