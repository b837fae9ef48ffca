"""One point of a series, step by step: run the study, check the judges, judge the first transcripts again.

Every step leaves a folder of its own, and a step that was begun is resumed, so a point that was stopped or killed
anywhere goes on where it was. The lines of the series are written last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from .. import storage
from ..calls.budget import RunBudget
from ..calls.stop import Stop
from ..errors import IncompleteRun, IntegrityError, StorageError
from ..findings.analysis.judge_agreement import RECORD
from ..judge_check.check import CheckOptions, check_judges_async
from ..planning.plan import make_plan, replan
from ..planning.prices import prices_for
from ..planning.study_file import (
    completed,
    make_execution_options,
    make_judge_options,
    make_study,
    seen_from_here,
)
from ..records.judge_check import CheckManifest
from ..records.series import Point, PointIntent, Segment, Series
from ..records.study import ExecutionOptions, JudgeOptions, Study
from ..runner.call_resources import paid_calls
from ..runner.new_run import create_run, transcripts_of
from ..runner.progress import OnProgress
from ..schemas import CallHead, Price
from ..store.failpoints import Failpoints
from ..store.series_folder import SeriesLines, append_lines, point_folder, read_lines
from .runs import execute, resume_async
from .series_lines import (
    asked_run,
    baseline_of,
    folder_in,
    gold_folder,
    lines_of,
    points_now,
    restated_folder,
)

OnStage = Callable[[str], None]
_LEAST = 1e-6
"""Dollars: a budget that is used up still lets calls through that cost nothing."""
_NO_LIMIT = 1e9


@dataclass(frozen=True)
class Work:
    """How the steps are carried out."""

    folder: Path
    series: Series
    max_cost: float
    """US dollars for one point."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Fields of `ExecutionOptions`."""
    progress: Callable[[], OnProgress | None] = lambda: None
    """Makes what shows the progress of one step."""
    stop: Stop | None = None
    on_stage: OnStage = lambda stage: None


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
    place = point_folder(work.folder, intent.period)
    study = point_study(work.folder, intent)
    if intent.judges_changed:
        for old in points_now(before):
            work.on_stage(f"{intent.period}: judging {old.period} again with the new judges")
            await _rejudge(work, asked_run(work.folder, old), restated_folder(work.folder, intent, old), study, place)
    work.on_stage(f"{intent.period}: running the study")
    await _run(work, intent, place, study)
    if work.series.anchors:
        work.on_stage(f"{intent.period}: checking the judges on labeled replies")
        await _check(work, place, study)
    first = _first_transcripts(work, intent, before)
    if first:
        work.on_stage(f"{intent.period}: judging the first transcripts again")
        await _rejudge(work, first, place / "frozen", study, place)


def _first_transcripts(work: Work, intent: PointIntent, before: SeriesLines) -> Path | None:
    """The run whose transcripts show whether the judges drifted; None at the first point of a segment."""
    baseline = None if intent.reasons else baseline_of(before)
    return asked_run(work.folder, baseline) if baseline else None


def point_study(folder: Path, intent: PointIntent) -> Study:
    return make_study(seen_from_here(intent.study, folder))


def _settings(work: Work, place: Path, own: Path, prices: str | None) -> dict[str, Any]:
    """How a step is carried out, with what the other steps have left of the money."""
    spent = sum(cost for folder, cost in spent_in(place, prices) if folder != own)
    return {**work.settings, "max_cost": max(_LEAST, work.max_cost - spent)}


def spent_in(place: Path, prices: str | None = None) -> Iterator[tuple[Path, float]]:
    """What every run and check of a point may have cost so far. `prices`: the study's own price table."""
    table = Path(prices) if prices else None
    for path in sorted(place.rglob(storage.MANIFEST)):
        folder = path.parent
        if folder.parent.name == "check":
            plan = storage.read_record(path, CheckManifest).plan
            yield folder, _spent(prices_for(plan.api_ids, table), storage.call_heads(folder))
        else:
            manifest = storage.read_manifest(folder)
            yield folder, _spent(manifest.prices, paid_calls(folder, manifest))


def _spent(prices: Mapping[str, Price], calls: Iterable[CallHead]) -> float:
    return RunBudget(_NO_LIMIT, prices, (one for one in calls if one.model in prices)).budget.spent


async def _run(work: Work, intent: PointIntent, place: Path, study: Study) -> None:
    out = place / "run"
    found = folder_in(out)
    if found:
        await _resumed(work, place, found, study)
        return
    plan = make_plan(study, today=date.fromisoformat(intent.date))
    options = study.model_copy(update=_settings(work, place, out, study.prices))
    new = create_run(
        plan,
        out=out,
        options=options,
        prices=Path(study.prices) if study.prices else None,
        study=completed(study, plan),
    )
    await execute(new.folder, new.manifest, options, progress=work.progress(), stop=work.stop)


async def _resumed(work: Work, place: Path, run: Path, study: Study) -> None:
    if storage.read_seal(run, storage.read_manifest(run)) is None:
        await resume_async(run, progress=work.progress(), stop=work.stop, **_settings(work, place, run, study.prices))


async def _rejudge(work: Work, earlier: Path, out: Path, study: Study, place: Path) -> None:
    """Judge the transcripts of an earlier run again, with the judges of now.

    The first transcripts of a segment also get the library of now: if it changed what answers are worth, that is no
    change of a target.
    """
    found = folder_in(out)
    if found:
        await _resumed(work, place, found, study)
        return
    judging = study.model_dump(mode="json", exclude_none=True, include=set(JudgeOptions.model_fields))
    made = replan(
        storage.read_manifest(earlier).plan, make_judge_options({**judging, "judge_repeats": 0}), keep_claims=False
    )
    now = folder_in(place / "run")
    if now and out == place / "frozen":
        made = made.model_copy(update={"background": storage.read_manifest(now).plan.background})
    options = make_execution_options(_execution(study, _settings(work, place, out, study.prices)))
    new = create_run(
        made,
        out=out,
        options=options,
        prices=Path(study.prices) if study.prices else None,
        transcripts=transcripts_of(earlier, out, keep_claims=False),
    )
    await execute(new.folder, new.manifest, options, progress=work.progress(), stop=work.stop, earlier=earlier)


def _execution(study: Study, settings: dict[str, Any]) -> dict[str, Any]:
    own = study.model_dump(mode="json", exclude_none=True, include=set(ExecutionOptions.model_fields))
    return {**own, **settings}


async def _check(work: Work, place: Path, study: Study) -> None:
    out = place / "check"
    found = folder_in(out)
    if found and (found / RECORD).exists():
        return
    anchors = work.series.anchors
    assert anchors is not None
    judging = study.model_dump(mode="json", exclude_none=True, include=set(JudgeOptions.model_fields))
    execution = _execution(study, _settings(work, place, found or out, study.prices))
    for name in ("processes", "engine", "ray_address"):
        execution.pop(name, None)
    await check_judges_async(
        CheckOptions(
            judges=make_judge_options(judging),
            split=anchors.split,
            gold=gold_folder(work.folder, anchors),
            limit=anchors.limit,
            seed=work.series.seed,
            timeout=study.timeout,
            out=out,
            resume=found,
            prices=Path(study.prices) if study.prices else None,
            execution=make_execution_options(execution),
        ),
        progress=work.progress(),
        stop=work.stop,
    )
