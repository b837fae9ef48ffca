"""Which lines a point adds to a series: computed from its folders alone, so that `verify` can compute them again.

A segment has the hashes of what must stay the same within it, and the thresholds of its lines, from a study's plan.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from math import ceil, fsum
from pathlib import Path
from typing import Any

from .. import storage
from ..errors import IntegrityError
from ..findings.estimates import Tallies, question_values, tallied_rows
from ..findings.judge_agreement import RECORD, read_record
from ..findings.read_run import Findings, gather, group_rules
from ..judge_check.gold import load_gold
from ..records.judge_check import JudgeCheck, JudgeMeasured
from ..records.series import (
    Anchors,
    Cadence,
    CheckReference,
    ClusterDesign,
    LineLimit,
    MissingAnswers,
    Outcome,
    PlanParts,
    Point,
    PointCost,
    PointIntent,
    RightLabels,
    ScenarioValue,
    Segment,
    Series,
    SimulatedPower,
    TargetPoint,
)
from ..schemas import RunPlan
from ..scoring.definitions import SCORES
from ..stats.monitoring import Cluster, Design
from ..stats.monitoring_limits import Drop, power, threshold
from ..store.strict_json import fingerprint
from .folder import SeriesLines, point_folder, relative, run_reference

CLUSTERS_SIMULATED = 24_000
"""For each kind of chance; so many series that a threshold takes some seconds, however many clusters there are."""
LEAST_SIMULATED, MOST_SIMULATED = 1_000, 2_000
"""Series for each kind of chance, unless the level needs more."""
LEAST_PASSING = 10
"""Simulated series beyond the threshold."""
POWER_SERIES = 400
AFTER = 6
"""Points before the change whose power is recorded: half a year of monthly points, or half of a shorter series."""
_DECIMALS = 4
"""Of recorded thresholds: more would differ between machines."""
_JUDGING = ("verifiers", "extractor", "scorer", "adjudicator", "judge_parameters", "isolation", "audit_sample")
_ASKING = ("repeats", "seed", "questioner")


def target_points(found: Findings, outcomes: Sequence[Outcome]) -> dict[str, TargetPoint]:
    points = {}
    for target in found.plan_targets:
        rows = found.of_target(target)
        service = found.services.get(target)
        tallied = {name: tallied_rows(rows, name) for name in outcomes}
        points[target] = TargetPoint(
            values={name: _values(one) for name, one in tallied.items()},
            missing={name: _missing(one) for name, one in tallied.items()},
            served=tuple(sorted(service.served)) if service else (),
            fingerprints=tuple(sorted(service.fingerprints)) if service else (),
        )
    return points


def _values(tallies: Tallies) -> dict[str, ScenarioValue]:
    """Each question is averaged over repeats, then over variants; a scenario over its questions."""
    found: dict[str, list[float]] = {}
    for one in question_values(tallies):
        found.setdefault(one.question.scenario_id, []).append(one.value)
    return {
        name: ScenarioValue(value=fsum(values) / len(values), questions=len(values))
        for name, values in sorted(found.items())
    }


def _missing(tallies: Tallies) -> MissingAnswers:
    each = [tally for variants in tallies.values() for tally in variants.values()]
    missing = sum(tally.missing for tally in each)
    return MissingAnswers(missing=missing, of=missing + sum(tally.n for tally in each))


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
            folder / intent.run, *(folder / one if one else None for one in (intent.frozen, intent.check))
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
    anchors = anchor_sizes(folder, series) if intent.judges_changed or intent.reasons else None
    lines = _restated(folder, series, before, intent, anchors) if intent.judges_changed else []
    known = SeriesLines((*before.lines, *lines), before.head)
    parts = folders_of(folder, intent)
    now = known.segments[-1]
    first = bool(intent.reasons) or not known.points_of(now)
    if intent.reasons:
        plan, number, why = storage.read_manifest(parts.run).plan, now.number + 1, intent.reasons
        now = segment_of(series, plan, intent.study, number=number, judging=now.judging, reasons=why, anchors=anchors)
        lines.append(now)
    lines.append(make_point(folder, series, parts, now.number, intent, first=first))
    return lines


def _restated(
    folder: Path, series: Series, before: SeriesLines, intent: PointIntent, anchors: Mapping[str, int] | None
) -> list[Segment | Point]:
    """Every earlier point, judged again by the new judges, in segments as before."""
    lines: list[Segment | Point] = []
    number, judging = before.segments[-1].number, before.segments[-1].judging + 1
    for segment in before.shown:
        for place, old in enumerate(before.points_of(segment)):
            run = folder_in(restated_folder(folder, intent, old))
            if run is None:
                raise IntegrityError(f"{restated_folder(folder, intent, old)} has no run. Put it back.")
            if not place:
                plan = storage.read_manifest(run).plan
                number += 1
                reasons = (
                    segment.reasons if lines else (f"the judges changed: {', '.join(dict.fromkeys(plan.verifiers))}",)
                )
                study = {**intent.study, "targets": segment.study["targets"]}
                lines.append(
                    segment_of(series, plan, study, number=number, judging=judging, reasons=reasons, anchors=anchors)
                )
            parts = PointFolders(run, transcripts=asked_run(folder, old))
            lines.append(make_point(folder, series, parts, number, old, first=not place, restated=True))
    return lines


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
    plan = found.manifest.plan
    frozen = gather(parts.frozen) if parts.frozen and not first else None
    check = read_record(parts.check / RECORD, JudgeCheck) if parts.check else None
    measured = (check.end_to_end or next(iter(check.judges), None)) if check else None
    replies = [reply.reply_id for reply in measured.replies] if measured else []
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
        check=CheckReference(
            folder=relative(folder, parts.check),
            check_id=check.check_id,
            record_sha256=storage.file_sha256(parts.check / RECORD),
        )
        if parts.check and check
        else None,
        targets=targets,
        rejudged={name: one.values for name, one in judged_again.items()},
        anchors=anchor_labels(check) if check else {},
        gold=fingerprint([check.gold, check.split, sorted(replies)]) if check else None,
        judges={
            name: tuple(sorted(found.services[name].served)) for name in plan.judge_models() if name in found.services
        },
        facts=fingerprint([fact.model_dump(mode="json") for fact in plan.background]),
        ended=of.ended,
        cost=PointCost(
            run=_cost(found, judges_only=found.manifest.transcripts is not None),
            frozen=_cost(frozen, judges_only=True) if frozen else 0.0,
            anchors=check.cost if check else 0.0,
        ),
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


# What must stay the same within a segment, and the thresholds of its lines


def plan_parts(plan: RunPlan) -> PlanParts:
    whole = plan.model_dump(mode="json")
    judges = plan.judge_models()
    own = whole.get("model_parameters", {})
    return PlanParts(
        plan_year=plan.plan_year,
        key=fingerprint([_scripts(whole, _key), whole.get("citation_checks")]),
        rubric=fingerprint({name: {**rubric["rubric"], "note": ""} for name, rubric in whole["rubrics"].items()}),
        judging=fingerprint(
            [
                {name: whole.get(name) for name in _JUDGING} | _by_target(whole),
                {model: [whole["api_ids"].get(model), own.get(model)] for model in judges},
                {role: prompt["text"] for role, prompt in whole["prompts"].items() if role != "questioner"},
            ]
        ),
        asking=fingerprint(
            [
                {name: whole.get(name) for name in _ASKING},
                _scripts(whole, lambda one, turns: [[turn["turn_id"] for turn in turns]]),
            ]
        ),
        questions=fingerprint(
            _scripts(whole, lambda one, turns: [one["scenario"]["persona"], [turn["user_message"] for turn in turns]])
        ),
        files=fingerprint([one["sha256"] for one in whole["scenarios"]]),
        targets={target: fingerprint(_target(whole, target)) for target in plan.targets},
    )


def _target(whole: Mapping[str, Any], target: str) -> list[Any]:
    """A target as it is asked; recorded conversations are another set at every point."""
    settings = dict(whole.get("target_settings", {}).get(target, {}))
    settings.pop("recorded", None)
    own = whole.get("model_parameters", {}).get(target) or whole["target_parameters"]
    return [whole["api_ids"].get(target), own, settings]


def _scripts(whole: Mapping[str, Any], read: Callable[[dict[str, Any], list[dict[str, Any]]], list[Any]]) -> list[Any]:
    """Every planned script with its name, and what `read` finds in it and its turns."""
    return [
        [one["scenario"]["scenario_id"], one.get("variant"), *read(one, one["scenario"]["scripted_turns"])]
        for one in whole["scenarios"]
    ]


def _key(one: dict[str, Any], turns: list[dict[str, Any]]) -> list[Any]:
    """All that decides what an answer is worth: the key, and what each question requires."""
    required = [{name: value for name, value in turn.items() if name != "user_message"} for turn in turns]
    return [one.get("state_code"), one["scenario"]["answer_key"], one["scenario"]["rubric_version"], required]


def changes(before: PlanParts, after: PlanParts) -> Iterator[str]:
    """Why points of the two cannot be compared, apart from the judges and what is asked."""
    if before.plan_year != after.plan_year:
        yield f"plan year {after.plan_year}"
        if before.files != after.files:
            yield "the scenario files changed"
    elif before.key != after.key:
        yield "the answer key changed"
    if before.rubric != after.rubric:
        yield "the rubric changed"


def other_study(before: PlanParts, after: PlanParts) -> Iterator[str]:
    """Why two plans are not of the same study."""
    if before.asking != after.asking:
        yield "the scenarios, their turns, the number of repeats or the seed changed"
    if before.plan_year == after.plan_year and before.questions != after.questions:
        yield "the questions changed"
    for target, settings in after.targets.items():
        if target not in before.targets:
            yield f"{target} is a new target"
        elif before.targets[target] != settings:
            yield f"the model id, the parameters or the settings of {target} changed"


def _by_target(whole: Mapping[str, Any]) -> dict[str, Any]:
    """Said only where targets have different judges, so that other studies have the hash they had."""
    return {name: whole[name] for name in ("judges_by_target",) if whole.get(name)}


def segment_of(
    series: Series,
    plan: RunPlan,
    study: Mapping[str, Any],
    *,
    number: int,
    judging: int,
    reasons: Sequence[str],
    anchors: Mapping[str, int] | None,
) -> Segment:
    """A segment with its thresholds. `anchors`: labeled replies and how many claims each has."""
    targets = {outcome: _clusters(plan, outcome) for outcome in series.outcomes}
    replies = {name: Cluster(claims, claims) for name, claims in sorted((anchors or {}).items())}
    lines = len(plan.targets) * len(series.outcomes)
    of_judges = lines + (len(set(plan.verifiers)) + 1 if replies else 0)
    return Segment(
        number=number,
        reasons=tuple(reasons),
        judging=judging,
        parts=plan_parts(plan),
        study=dict(study),
        verifiers=plan.verifiers,
        extractor=plan.extractor,
        scorer=plan.scorer,
        adjudicator=plan.adjudicator,
        targets={name: _limit(series, one, lines, with_power=True) for name, one in targets.items()},
        frozen={name: _limit(series, one, of_judges) for name, one in targets.items()},
        anchors=_limit(series, replies, of_judges) if replies else None,
    )


def _clusters(plan: RunPlan, outcome: Outcome) -> dict[str, Cluster]:
    scripts = Counter(planned.scenario.scenario_id for planned in plan.scenarios)
    questions: dict[str, int] = dict.fromkeys(scripts, 0)
    for (name, _), rule in group_rules(plan).items():
        questions[name] += not rule.closed
    if outcome in SCORES:
        questions = dict.fromkeys(scripts, 1)
    return {
        name: Cluster(questions[name], questions[name] * scripts[name] * plan.repeats)
        for name in sorted(scripts)
        if questions[name]
    }


def _limit(series: Series, clusters: Mapping[str, Cluster], lines: int, *, with_power: bool = False) -> LineLimit:
    level, pairs = series.alpha / lines, tuple(clusters.items())
    count = series_simulated(len(pairs), level)
    limit = _threshold(pairs, series.floor, series.points, level=level, seed=series.seed, series=count)
    return LineLimit(
        clusters={name: ClusterDesign(weight=one.weight, answers=one.answers) for name, one in pairs},
        points=series.points,
        level=level,
        limit=limit,
        series=count,
        seed=series.seed,
        power=_power(pairs, series.floor, series.points, level=level, seed=series.seed, limit=limit)
        if with_power
        else None,
    )


def series_simulated(clusters: int, level: float) -> int:
    """How many series are simulated for each kind of chance."""
    return max(LEAST_SIMULATED, min(MOST_SIMULATED, CLUSTERS_SIMULATED // clusters), ceil(LEAST_PASSING / level))


_Clusters = tuple[tuple[str, Cluster], ...]


@lru_cache(maxsize=64)
def _threshold(clusters: _Clusters, floor: float, points: int, *, level: float, seed: int, series: int) -> float:
    return round(
        threshold(Design(dict(clusters), floor), points=points, level=level, series=series, seed=seed), _DECIMALS
    )


@lru_cache(maxsize=64)
def _power(clusters: _Clusters, floor: float, points: int, *, level: float, seed: int, limit: float) -> SimulatedPower:
    """For a drop of the floor."""
    change = Drop(floor, min(AFTER, max(1, points // 2)))
    design = Design(dict(clusters), floor)
    alarm, claim = power(design, limit=limit, level=level, points=points, change=change, series=POWER_SERIES, seed=seed)
    return SimulatedPower(drop=change.drop, after=change.after, alarm=alarm, claim=claim)


def simulated_limit(limit: LineLimit, floor: float) -> float:
    """The threshold of a line, computed again."""
    clusters = tuple(design_of(limit, floor).clusters.items())
    return _threshold(clusters, floor, limit.points, level=limit.level, seed=limit.seed, series=limit.series)


def design_of(limit: LineLimit, floor: float) -> Design:
    return Design({name: Cluster(one.weight, one.answers) for name, one in limit.clusters.items()}, floor)
