"""One point of a series: what it will be, decided and written down before anything is called, and then its steps.

The steps run the study, check the judges and judge the first transcripts again. Every step leaves a folder of its own,
and a step that was begun is resumed, so a point that was stopped or killed anywhere goes on where it was. The lines of
the series are written last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from .. import storage
from ..adapters.models import row_for
from ..adapters.registry import canonical_name
from ..api.runs import execute, resume_async
from ..calls.budget import RunBudget
from ..calls.stop import Stop
from ..errors import ConfigError, IncompleteRun, InputError, IntegrityError, StorageError
from ..findings.judge_agreement import RECORD, read_record
from ..judge_check.check import CheckOptions, check_judges_async
from ..planning.limits import prices_for
from ..planning.plan import make_plan, replan
from ..planning.study_file import (
    as_document,
    completed,
    make_execution_options,
    make_judge_options,
    make_study,
    seen_from,
    seen_from_here,
)
from ..planning.targets import planned_targets
from ..records.judge_check import CheckManifest, JudgeCheck
from ..records.series import Anchors, EndedTarget, Point, PointIntent, Segment, Series
from ..records.study import ExecutionOptions, JudgeOptions, Study
from ..runner.call_resources import paid_calls
from ..runner.new_run import create_run, transcripts_of
from ..runner.progress import OnProgress
from ..schemas import CallHead, CallParameters, Price, RunPlan
from ..store.failpoints import Failpoints
from .folder import INTENT, SeriesLines, append_lines, pending_point, point_folder, read_lines, run_reference, set_aside
from .points import (
    asked_run,
    ended_before,
    first_segment,
    folder_in,
    gold_folder,
    lines_of,
    other_study,
    period_of,
    plan_parts,
    reasons_for,
    restated_folder,
)

OnStage = Callable[[str], None]
_LEAST = 1e-6
"""Dollars: a budget that is used up still lets calls through that cost nothing."""
_NO_LIMIT = 1e9
_JUDGE_AGAIN = "Add `judge_again` to judge all earlier transcripts again, as a new segment."


def ensure_segment(path: Path, series: Series) -> None:
    """`init` may have been killed before its last line."""
    if not read_lines(path).lines and not pending_point(path):
        plan = make_plan(make_study(seen_from_here(series.study, path)))
        append_lines(path, [first_segment(path, series, plan)], Failpoints.from_environment())


@dataclass(frozen=True)
class Work:
    """How a point is made, and what a user wants to be different from now on."""

    folder: Path
    series: Series
    max_cost: float
    """US dollars for one point."""
    settings: dict[str, Any]
    """Fields of `ExecutionOptions`."""
    progress: Callable[[], OnProgress | None]
    """Makes what shows the progress of one step."""
    stop: Stop | None
    on_stage: OnStage
    end: tuple[str, ...]
    """Targets whose line ends."""
    judging: Mapping[str, Any]
    """Fields of `JudgeOptions`."""
    judge_again: bool


def unfinished_point(work: Work, *, begin_again: bool) -> PointIntent | None:
    """The point that must be finished first, if there is one. It is set aside if nothing was called for it yet.

    InputError: it was begun with other judges or targets than the user asks for now.
    """
    pending = pending_point(work.folder)
    if pending is None:
        return None
    place = point_folder(work.folder, pending.period)
    called = pending.run is not None or any(place.rglob(storage.MANIFEST))
    if begin_again or not called:
        set_aside(work.folder, pending.period)
        return None
    if work.end or work.judging or work.judge_again:
        raise InputError(
            f"{work.folder}: {pending.period} was begun and is not finished, so its judges and targets cannot be "
            "changed. Finish it without these options, or add `set_aside` to begin it again."
        )
    return pending


def refuse_period(path: Path, lines: SeriesLines, period: str) -> None:
    periods = [point.period for point in lines.points]
    if period in periods:
        raise InputError(f"{path} already has a point for {period}. The next one is due in the next period.")
    if periods and period < max(periods):
        raise InputError(f"{path}: {period} is before {max(periods)}, the last point. Points are added in order.")


def decide_point(work: Work, lines: SeriesLines, today: date) -> PointIntent:
    """Decide what the point will be, and write it down before anything is called."""
    path, series, last = work.folder, work.series, lines.segments[-1]
    study = dict(last.study)
    if work.judging:
        # Without judges that were chosen for the ones before.
        study = {name: value for name, value in study.items() if name not in ("adjudicator", "reader")}
        study |= dict(work.judging)
    checked = make_study(seen_from_here(study, path))
    ended = _ended(checked, lines, today, work.end)
    gone = {*ended_before(lines), *(one.target for one in ended)}
    kept = [option for name, option in _named(checked) if name not in gone]
    if not kept:
        raise InputError(f"{path}: the lines of all targets have ended, so the series has ended.")
    _refuse_retired_judges(checked, today)
    checked = checked.model_copy(update={"targets": tuple(kept)})
    plan = make_plan(checked, today=today)
    changed = bool(work.judging) or work.judge_again
    refuse_other_study(path, last, plan, judges_changed=changed)
    reasons = reasons_for(lines, plan)
    if changed and not lines.points:
        reasons = (*reasons, "other judges before the first point")
    intent = PointIntent(
        period=period_of(today, series.cadence),
        date=today.isoformat(),
        lines=len(lines.lines),
        study=frozen_study(path, checked, plan, with_year="plan_year" in series.study),
        reasons=reasons,
        judges_changed=changed and bool(lines.points),
        ended=tuple(ended),
    )
    return begin_point(path, intent)


def frozen_study(path: Path, study: Study, plan: RunPlan, *, with_year: bool) -> dict[str, Any]:
    """As in a study file in the folder of the series. Without a year, each point has that of its date."""
    document = seen_from(as_document(completed(study, plan)), path)
    left_out = {"out"} if with_year else {"out", "plan_year"}
    return {name: value for name, value in document.items() if name not in left_out}


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
    manifest, first = storage.read_manifest(frozen), lines.baseline
    if first is None:
        raise InputError("The first point of a segment has no earlier transcripts. Leave this out.", field="frozen")
    wanted = first.transcripts or first.run
    if manifest.transcripts is None or manifest.transcripts.manifest_sha256 != wanted.manifest_sha256:
        text = f"Judge {path / wanted.folder} again with `medicare-eval rejudge`."
        raise InputError(f"{frozen} did not judge the segment's first transcripts again. {text}", field="frozen")
    if plan_parts(manifest.plan).judging != lines.segments[-1].parts.judging:
        raise InputError(f"{frozen} was not judged by the judges of the series.", field="frozen")


def refuse_other_study(
    path: Path, last: Segment, plan: RunPlan, *, judges_changed: bool = False, added: bool = False
) -> None:
    """`added`: it is of a run that was made elsewhere."""
    parts = plan_parts(plan)
    different = list(other_study(last.parts, parts))
    if different:
        raise InputError(
            f"{path}: this is no longer the frozen study: {'; '.join(different)}. Put the study's files back, or begin "
            "a new series."
        )
    if last.parts.judging != parts.judging and not judges_changed:
        like = f"Add a run judged as the series is, by {', '.join(dict.fromkeys(last.verifiers))}."
        raise InputError(
            f"{path}: the judging changed since the last point (models, prompts or settings), so points cannot be "
            f"compared. {like if added else _JUDGE_AGAIN}"
        )


async def carry_out(work: Work, intent: PointIntent) -> list[Segment | Point]:
    """Do what is left of a point, and write its lines. IncompleteRun: it was stopped; the same command continues it."""
    before = read_lines(work.folder).at(intent.lines)
    try:
        if not intent.run:
            await _steps(work, intent, before)
    except IncompleteRun as stopped:
        said = str(stopped).partition(" To continue:")[0]
        raise IncompleteRun(f"{said} To continue: {_again(work)}", run=stopped.run) from None
    except StorageError as error:
        raise StorageError(re.sub(r"`medicare-eval [^`]*`", f"`{_again(work)}`", str(error))) from None
    return finish(work.folder, work.series, intent)


def _again(work: Work) -> str:
    return f"medicare-eval series run {work.folder} --max-cost {work.max_cost:g}"


def finish(folder: Path, series: Series, intent: PointIntent) -> list[Segment | Point]:
    """Write the lines of a point whose parts are done, or the rest of them."""
    found = read_lines(folder)
    lines = lines_of(folder, series, found.at(intent.lines), intent)
    written = found.lines[intent.lines :]
    if list(written) != lines[: len(written)]:
        raise IntegrityError(
            f"{folder}: the lines of {intent.period} are not what its runs say. Something was changed."
        )
    append_lines(folder, lines[len(written) :], Failpoints.from_environment())
    return lines


async def _steps(work: Work, intent: PointIntent, before: SeriesLines) -> None:
    """Each of them does nothing if it is done already."""
    folder, place = work.folder, point_folder(work.folder, intent.period)
    study = make_study(seen_from_here(intent.study, folder))
    if intent.judges_changed:
        for old in before.points_of(*before.shown):
            work.on_stage(f"{intent.period}: judging {old.period} again with the new judges")
            await _rejudge(work, asked_run(folder, old), restated_folder(folder, intent, old), study, place)
    work.on_stage(f"{intent.period}: running the study")
    await _run(work, intent, place, study)
    if work.series.anchors:
        work.on_stage(f"{intent.period}: checking the judges on labeled replies")
        await _check(work, work.series.anchors, place, study)
    # Whether the judges drifted is not asked at the first point of a segment.
    if before.baseline and not intent.reasons:
        work.on_stage(f"{intent.period}: judging the first transcripts again")
        await _rejudge(work, asked_run(folder, before.baseline), place / "frozen", study, place)


def _settings(work: Work, place: Path, own: Path, study: Study) -> dict[str, Any]:
    """How a step is carried out, with what the other steps have left of the money."""
    spent = sum(cost for folder, cost in spent_in(place, _prices(study)) if folder != own)
    return {**work.settings, "max_cost": max(_LEAST, work.max_cost - spent)}


def _prices(study: Study) -> Path | None:
    """The study's own price table."""
    return Path(study.prices) if study.prices else None


def spent_in(place: Path, prices: Path | None = None) -> Iterator[tuple[Path, float]]:
    """What every run and check of a point may have cost so far."""
    for path in sorted(place.rglob(storage.MANIFEST)):
        folder = path.parent
        if folder.parent.name == "check":
            plan = storage.read_record(path, CheckManifest).plan
            yield folder, _spent(prices_for(plan.api_ids, prices), storage.call_heads(folder))
        else:
            manifest = storage.read_manifest(folder)
            yield folder, _spent(manifest.prices, paid_calls(folder, manifest))


def _spent(prices: Mapping[str, Price], calls: Iterable[CallHead]) -> float:
    return RunBudget(_NO_LIMIT, prices, (one for one in calls if one.model in prices)).budget.spent


def _part(study: Study, of: type[JudgeOptions | ExecutionOptions]) -> dict[str, Any]:
    return study.model_dump(mode="json", exclude_none=True, include=set(of.model_fields))


async def _run(work: Work, intent: PointIntent, place: Path, study: Study) -> None:
    out = place / "run"
    if await _resumed(work, place, out, study):
        return
    plan = make_plan(study, today=date.fromisoformat(intent.date))
    options = study.model_copy(update=_settings(work, place, out, study))
    new = create_run(plan, out=out, options=options, prices=_prices(study), study=completed(study, plan))
    await execute(new.folder, new.manifest, options, progress=work.progress(), stop=work.stop)


async def _resumed(work: Work, place: Path, out: Path, study: Study) -> bool:
    """Whether the run of a step was begun before. What is left of it is done."""
    run = folder_in(out)
    if run and storage.read_seal(run, storage.read_manifest(run)) is None:
        await resume_async(run, progress=work.progress(), stop=work.stop, **_settings(work, place, run, study))
    return run is not None


async def _rejudge(work: Work, earlier: Path, out: Path, study: Study, place: Path) -> None:
    """Judge the transcripts of an earlier run again, with the judges of now.

    The first transcripts of a segment also get the library of now: if it changed what answers are worth, that is no
    change of a target.
    """
    if await _resumed(work, place, out, study):
        return
    judges = make_judge_options({**_part(study, JudgeOptions), "judge_repeats": 0})
    made = replan(storage.read_manifest(earlier).plan, judges, keep_claims=False)
    now = folder_in(place / "run")
    if now and out == place / "frozen":
        made = made.model_copy(update={"background": storage.read_manifest(now).plan.background})
    options = make_execution_options({**_part(study, ExecutionOptions), **_settings(work, place, out, study)})
    transcripts = transcripts_of(earlier, out, keep_claims=False)
    new = create_run(made, out=out, options=options, prices=_prices(study), transcripts=transcripts)
    await execute(new.folder, new.manifest, options, progress=work.progress(), stop=work.stop, earlier=earlier)


async def _check(work: Work, anchors: Anchors, place: Path, study: Study) -> None:
    out = place / "check"
    found = folder_in(out)
    if found and (found / RECORD).exists():
        return
    execution = {**_part(study, ExecutionOptions), **_settings(work, place, found or out, study)}
    for name in ("processes", "engine", "ray_address"):
        execution.pop(name, None)
    await check_judges_async(
        CheckOptions(
            judges=make_judge_options(_part(study, JudgeOptions)),
            split=anchors.split,
            gold=gold_folder(work.folder, anchors),
            limit=anchors.limit,
            seed=work.series.seed,
            timeout=study.timeout,
            out=out,
            resume=found,
            prices=_prices(study),
            execution=make_execution_options(execution),
        ),
        progress=work.progress(),
        stop=work.stop,
    )
