"""Which lines a point adds to a series: computed from its folders alone, so that `verify` can compute them again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import fsum
from pathlib import Path

from .. import storage
from ..errors import IntegrityError
from ..findings.analysis.cost import Spending
from ..findings.analysis.estimates import question_values, tallied_rows
from ..findings.analysis.judge_agreement import RECORD, read_record
from ..findings.analysis.read_run import Findings, gather
from ..judge_check.gold import load_gold
from ..records.judge_check import JudgeCheck, JudgeMeasured
from ..records.series import (
    Anchors,
    Cadence,
    CheckReference,
    EndedTarget,
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

END_TO_END = "all judges, end to end"


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


def target_points(found: Findings, outcomes: Iterable[Outcome]) -> dict[str, TargetPoint]:
    chosen = tuple(outcomes)
    points = {}
    for target in found.plan_targets:
        rows = found.of_target(target)
        service = found.services.get(target)
        points[target] = TargetPoint(
            values={name: values_by_scenario(rows, name) for name in chosen},
            missing={name: missing_answers(rows, name) for name in chosen},
            served=tuple(sorted(service.served)) if service else (),
            fingerprints=tuple(sorted(service.fingerprints)) if service else (),
        )
    return points


def values_of_targets(
    found: Findings, outcomes: Iterable[Outcome]
) -> dict[str, dict[Outcome, dict[str, ScenarioValue]]]:
    """What the judges made of each target's transcripts."""
    chosen = tuple(outcomes)
    return {
        target: {name: values_by_scenario(found.of_target(target), name) for name in chosen}
        for target in found.plan_targets
    }


def served_judges(found: Findings) -> dict[str, tuple[str, ...]]:
    judges = found.manifest.plan.judge_models()
    return {name: tuple(sorted(found.services[name].served)) for name in judges if name in found.services}


def anchor_labels(record: JudgeCheck) -> dict[str, dict[str, RightLabels]]:
    """Of each verifier, and of all judges end to end: how many claims of each reply got the right label."""
    found = {name_of(one): _labels(one) for one in record.judges if one.model}
    if record.end_to_end:
        found[END_TO_END] = _labels(record.end_to_end)
    return found


def name_of(judge: JudgeMeasured) -> str:
    return str(judge.model)


def _labels(judge: JudgeMeasured) -> dict[str, RightLabels]:
    return {
        reply.reply_id: RightLabels(
            right=sum(one.claims for one in reply.confusion if one.given == one.gold),
            of=sum(one.claims for one in reply.confusion),
        )
        for reply in sorted(judge.replies, key=lambda one: one.reply_id)
        if reply.confusion
    }


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
