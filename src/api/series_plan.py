"""What the next point of a series will be: decided and written down before anything is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from .. import storage
from ..adapters.models import row_for
from ..adapters.registry import canonical_name
from ..errors import ConfigError, InputError, IntegrityError
from ..findings.analysis.judge_agreement import RECORD, read_record
from ..findings.analysis.series_design import other_study, plan_parts
from ..planning.plan import make_plan
from ..planning.study_file import as_document, completed, make_study, seen_from, seen_from_here
from ..planning.targets import planned_targets
from ..records.judge_check import JudgeCheck
from ..records.series import EndedTarget, PointIntent, Segment, Series
from ..records.study import Study
from ..schemas import CallParameters, RunPlan
from ..store.failpoints import Failpoints
from ..store.series_folder import (
    INTENT,
    POINTS,
    SeriesLines,
    append_lines,
    intents,
    point_folder,
    read_lines,
    set_aside,
)
from .series_lines import baseline_of, ended_before, first_segment, period_of, reasons_for, run_reference


def ensure_segment(path: Path, series: Series) -> None:
    """`init` may have been killed before its last line."""
    if not read_lines(path).lines and not pending_point(path):
        plan = make_plan(make_study(seen_from_here(series.study, path)))
        append_lines(path, [first_segment(path, series, plan)], Failpoints.from_environment())


def pending_point(path: Path) -> PointIntent | None:
    """A point that was begun and has not all of its lines. IntegrityError: lines of finished points are gone."""
    lines, begun = read_lines(path), intents(path)
    done = {point.period for point in lines.points if not point.restated}
    pending = [intent for intent in begun if intent.period not in done]
    lost = len(pending) > 1 or any(intent.period < max(done, default="") for intent in pending)
    if lost or any(intent.lines > len(lines.lines) for intent in begun):
        raise IntegrityError(f"{path / POINTS} has lost lines of finished points. Restore it from a copy.")
    return pending[0] if pending else None


@dataclass(frozen=True)
class Asked:
    """What a user wants to be different from now on."""

    end: tuple[str, ...] = ()
    judging: Mapping[str, Any] = field(default_factory=dict)
    judge_again: bool = False


def unfinished_point(path: Path, asked: Asked, *, begin_again: bool) -> PointIntent | None:
    """The point that must be finished first, if there is one. It is set aside if nothing was called for it yet.

    InputError: it was begun with other judges or targets than the user asks for now.
    """
    pending = pending_point(path)
    if pending is None:
        return None
    place = point_folder(path, pending.period)
    called = pending.run is not None or any(place.rglob(storage.MANIFEST))
    if begin_again or not called:
        set_aside(path, pending.period)
        return None
    if asked != Asked():
        raise InputError(
            f"{path}: {pending.period} was begun and is not finished, so its judges and targets cannot be changed. "
            "Finish it without these options, or add `set_aside` to begin it again."
        )
    return pending


def refuse_period(path: Path, lines: SeriesLines, period: str) -> None:
    periods = [point.period for point in lines.points]
    if period in periods:
        raise InputError(f"{path} already has a point for {period}. The next one is due in the next period.")
    if periods and period < max(periods):
        raise InputError(f"{path}: {period} is before {max(periods)}, the last point. Points are added in order.")


def decide_point(path: Path, series: Series, lines: SeriesLines, today: date, asked: Asked) -> PointIntent:
    """Decide what the point will be, and write it down before anything is called."""
    last = lines.segments[-1]
    study = dict(last.study)
    if asked.judging:
        # Without judges that were chosen for the ones before.
        study = {name: value for name, value in study.items() if name not in ("adjudicator", "reader")}
        study |= dict(asked.judging)
    checked = make_study(seen_from_here(study, path))
    ended = _ended(checked, lines, today, asked.end)
    gone = {*ended_before(lines), *(one.target for one in ended)}
    kept = [option for name, option in _named(checked) if name not in gone]
    if not kept:
        raise InputError(f"{path}: the lines of all targets have ended, so the series has ended.")
    _refuse_retired_judges(checked, today)
    checked = checked.model_copy(update={"targets": tuple(kept)})
    plan = make_plan(checked, today=today)
    changed = bool(asked.judging) or asked.judge_again
    refuse_other_study(path, last, plan, judges_changed=changed)
    document = seen_from(as_document(completed(checked, plan)), path)
    for name in ("out", *(() if "plan_year" in series.study else ("plan_year",))):
        document.pop(name, None)
    reasons = reasons_for(lines, plan)
    if changed and not lines.points:
        reasons = (*reasons, "other judges before the first point")
    intent = PointIntent(
        period=period_of(today, series.cadence),
        date=today.isoformat(),
        lines=len(lines.lines),
        study=document,
        reasons=reasons,
        judges_changed=changed and bool(lines.points),
        ended=tuple(ended),
    )
    return begin_point(path, intent)


def begin_point(path: Path, intent: PointIntent) -> PointIntent:
    place = point_folder(path, intent.period)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage.storage_error(place, error) from None
    storage.write_once(
        place / INTENT, storage.encode_record(intent) + b"\n", Failpoints.from_environment(), "series_point"
    )
    return intent


def _named(study: Study) -> list[tuple[str, Any]]:
    parameters = CallParameters(temperature=study.temperature, max_tokens=study.max_tokens)
    names = [one.name for one in planned_targets(study.targets, parameters)]
    return list(zip(names, study.targets, strict=True))


def _ended(study: Study, lines: SeriesLines, today: date, end: Sequence[str]) -> list[EndedTarget]:
    known = {name: option for name, option in _named(study) if name not in ended_before(lines)}
    for name in end:
        if name not in known:
            there = ", ".join(known) or "none"
            raise InputError(f"{name} is not a target whose line goes on. Targets: {there}.", field="end")
    found = [EndedTarget(target=name, why="ended by the user") for name in dict.fromkeys(end)]
    for name, option in known.items():
        row = row_for(option.model)
        if name not in end and not study.allow_retired and row and row.status_on(today) == "retired":
            since = f" since {row.since.isoformat()}" if row.since else ""
            found.append(EndedTarget(target=name, why=f"its provider has retired it{since}"))
    return found


def _refuse_retired_judges(study: Study, today: date) -> None:
    for judge in study.judges:
        row = row_for(canonical_name(judge.model))
        if row and row.status_on(today) == "retired" and not study.allow_retired:
            instead = f"{row.provider}:{row.successors[0]}" if row.successors else "P:M"
            raise ConfigError(
                f"The judge {judge.model} has been retired. Name other judges with `judges`, for example {instead}: "
                "all earlier transcripts are then judged again by them, as a new segment."
            )


_JUDGE_AGAIN = "Add `judge_again` to judge all earlier transcripts again, as a new segment."


def refuse_unlike_check(check: Path, series: Series, last: Segment) -> None:
    """A judge check that was made elsewhere must be one of the segment's judges, on the labels of the series."""
    if not (check / RECORD).is_file():
        raise InputError(f"{check} is not a finished judge check.", field="check")
    record = read_record(check / RECORD, JudgeCheck)
    if (record.verifiers, record.extractor, record.adjudicator) != (last.verifiers, last.extractor, last.adjudicator):
        raise InputError(f"{check} is not of the judges of the series: {', '.join(last.verifiers)}.", field="check")
    anchors = series.anchors
    if anchors and (record.split, record.limit) != (anchors.split, anchors.limit):
        text = f"the series uses split {anchors.split} with limit {anchors.limit}, seed {series.seed}"
        raise InputError(f"{check} was made on other labels: {text}.", field="check")


def refuse_unlike_frozen(frozen: Path, path: Path, lines: SeriesLines) -> None:
    """Transcripts that were judged again must be those of the segment's first point, by the judges of the segment."""
    run_reference(path, frozen)
    manifest, first = storage.read_manifest(frozen), baseline_of(lines)
    if first is None:
        raise InputError("The first point of a segment has no earlier transcripts. Leave this out.", field="frozen")
    wanted = first.transcripts or first.run
    if manifest.transcripts is None or manifest.transcripts.manifest_sha256 != wanted.manifest_sha256:
        text = f"Judge {path / wanted.folder} again with `medicare-eval rejudge`."
        raise InputError(f"{frozen} did not judge the segment's first transcripts again. {text}", field="frozen")
    if plan_parts(manifest.plan).judging != lines.segments[-1].parts.judging:
        raise InputError(f"{frozen} was not judged by the judges of the series.", field="frozen")


def refuse_other_study(
    path: Path, last: Segment, plan: RunPlan, *, judges_changed: bool, advice: str = _JUDGE_AGAIN
) -> None:
    parts = plan_parts(plan)
    different = list(other_study(last.parts, parts))
    if different:
        raise InputError(
            f"{path}: this is no longer the frozen study: {'; '.join(different)}. Put the study's files back, or begin "
            "a new series."
        )
    if last.parts.judging != parts.judging and not judges_changed:
        raise InputError(
            f"{path}: the judging changed since the last point (models, prompts or settings), so points cannot be "
            f"compared. {advice}"
        )
