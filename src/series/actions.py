"""A study that is run again and again: begin a series, add points to it, read what it says, and verify it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from .. import audit, storage
from ..api.runs import study as make_study_of
from ..calls.stop import Stop
from ..errors import InputError, IntegrityError, from_origin
from ..findings.judge_agreement import RECORD
from ..judge_check.gold import load_gold
from ..planning import clock
from ..planning.plan import make_plan
from ..planning.study_file import given, make_study, origin_of
from ..records.model_name import is_person
from ..records.series import Anchors, Cadence, EndedTarget, Outcome, Point, PointIntent, Segment, Series
from ..records.study import JudgeOptions, Study
from ..runner.new_run import versions
from ..runner.progress import OnProgress
from ..runner.wait import wait
from ..schemas import Manifest
from ..scoring.definitions import SHARES
from ..store import hash_chain
from ..store.failpoints import Failpoints
from ..store.input_files import problems_of
from ..store.run_folder import SERIES, PathLike, as_path
from ..text.escape import plain
from .carry_out import (
    OnStage,
    Work,
    begin_point,
    carry_out,
    decide_point,
    ensure_segment,
    finish,
    frozen_study,
    refuse_other_study,
    refuse_period,
    refuse_unlike_check,
    refuse_unlike_frozen,
    unfinished_point,
)
from .findings import SeriesFindings, read_findings
from .folder import (
    INTENT,
    SeriesLines,
    append_lines,
    pending_point,
    point_folder,
    read_intent,
    read_lines,
    read_series,
    relative,
    run_reference,
)
from .points import (
    PointFolders,
    ended_before,
    first_segment,
    make_point,
    period_of,
    plan_parts,
    reasons_for,
    segment_of,
    simulated_limit,
)

ANCHORS = 40
"""Labeled replies that judges label at every point, unless the user says otherwise."""


def init_series(
    folder: PathLike,
    source: Study | Mapping[str, Any] | PathLike | None = None,
    /,
    *,
    every: Cadence = "month",
    outcomes: Sequence[Outcome] = SHARES,
    floor: float = 0.05,
    alpha: float = 0.05,
    points: int = 24,
    anchors: int = ANCHORS,
    gold: PathLike | None = None,
    title: str | None = None,
    baseline: PathLike | None = None,
    on_stage: OnStage | None = None,
    **changes: Any,
) -> SeriesFindings:
    """Freeze a study to be run again and again, and compute the thresholds of its alarms. Calls nothing.

    Args:
        folder: a new folder for the series.
        source: a study file (TOML), a `Study`, or a dict of its fields. None: keywords, or the baseline's study.
        every: how often a point is made: day, week, month or quarter.
        outcomes: the primary outcomes; each target has a line for each.
        floor: the smallest change that matters.
        alpha: the share of unchanged series that may have a false alarm, over all targets and outcomes.
        points: points that the thresholds are made for.
        anchors: labeled replies that the judges label again at every point; 0: none.
        gold: a folder of labels to use instead of the bundled ones, such as people's (`review export`).
        title: what the series is called. None: the study's title, or the folder's name.
        baseline: a finished run of the study, to be the first point.
        on_stage: called with a sentence when a long step begins.
        changes: fields of `Study`; each replaces what the source says, except None, which leaves it.

    Returns:
        The series; it has a point only if a baseline was given.

    Raises:
        InputError: the folder exists, or a file, field or value cannot be used.
        ConfigError: a key or SDK is missing, or a judge is not allowed to judge a target.

    Example:
        >>> import medicare_eval as me
        >>> series = me.init_series(
        ...     "monthly", scenarios=["scenarios/v1/*.json"], targets=["fake:careful"], anchors=0, points=3
        ... )
        >>> series.series.cadence
        'month'
    """
    path = as_path(folder)
    storage.require_folder(path)
    if path.exists() and any(not one.name.startswith(f".{SERIES}.") for one in path.iterdir()):  # left by a kill
        raise InputError(f"{path} already exists and will not be overwritten. Give a new folder.")
    first = as_path(baseline) if baseline is not None else None
    with from_origin(origin_of(source, changes)):
        study = _study_of(source, changes, first)
        plan = make_plan(study)
    people = [name for name in plan.judge_models() if is_person(name)]
    if people:
        raise InputError(f"{people[0]} is a person, and a series runs by itself. Name judges that are models.")
    if anchors and plan.judges_by_target:
        raise InputError(
            "the targets have different judges, and labeled replies are judged by one set of judges. Name two judges "
            "that are of no target's family with `judges`, or do without labeled replies (0).",
            field="anchors",
        )
    if gold and not anchors:
        raise InputError(
            "labels are used only with anchors. Leave this out, or give a number of `anchors`.", field="gold"
        )
    chosen = Anchors(split="held_out", limit=anchors, gold=relative(path, as_path(gold)) if gold else None)
    if anchors:
        load_gold(chosen.split, as_path(gold) if gold else None)
    called = title or study.title or path.resolve().name
    if called != plain(called):
        raise InputError("a title is one line of printable characters.", field="title")
    fields = {
        "title": called,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "study": frozen_study(path, study, plan, with_year=study.plan_year is not None),
        "cadence": every,
        "outcomes": list(outcomes),
        "floor": floor,
        "alpha": alpha,
        "points": points,
        "anchors": chosen.model_dump(mode="json") if anchors else None,
        "seed": study.seed,
    }
    try:
        series = Series.model_validate_json(json.dumps(fields), strict=True)
    except ValidationError as error:
        refused = InputError(str(error))
        refused.problems = problems_of(error, Series)
        raise refused from None
    if on_stage:
        on_stage("Simulating the thresholds of the alarms ...")
    segment = first_segment(path, series, plan)
    if first:
        _whole_run(path, first, SeriesLines((), ""))
        refuse_other_study(first, segment, storage.read_manifest(first).plan, added=True)
    failpoints = Failpoints.from_environment()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage.storage_error(path, error) from None
    storage.write_once(path / SERIES, storage.encode_record(series) + b"\n", failpoints, "series")
    append_lines(path, [segment], failpoints)
    return add_to_series(path, first) if first else read_findings(path)


def _study_of(
    source: Study | Mapping[str, Any] | PathLike | None, changes: Mapping[str, Any], baseline: Path | None
) -> Study:
    if source is not None or given(changes) or baseline is None:
        return make_study_of(source, **changes)
    manifest = storage.read_manifest(baseline)
    if manifest.study is None:
        raise InputError(f"{baseline} does not contain its study. Give the study as well.", field="baseline")
    return make_study(manifest.study)


async def run_series_async(
    folder: PathLike,
    *,
    max_cost: float,
    end: Sequence[str] = (),
    judge_again: bool = False,
    set_aside: bool = False,
    progress: Callable[[], OnProgress | None] | None = None,
    on_stage: OnStage | None = None,
    stop: Stop | None = None,
    **changes: Any,
) -> SeriesFindings:
    """Like `run_series`, to be awaited."""
    path = as_path(folder)
    series = read_series(path)
    judging = {name: value for name, value in given(changes).items() if name in JudgeOptions.model_fields}
    settings = {name: value for name, value in given(changes).items() if name not in judging}
    with storage.RunLock(path):
        tell, progress = on_stage or (lambda stage: None), progress or (lambda: None)
        work = Work(path, series, max_cost, settings, progress, stop, tell, tuple(end), judging, judge_again)
        ensure_segment(path, series)
        pending = unfinished_point(work, begin_again=set_aside)
        if pending:
            await carry_out(work, pending)
        today = clock.today()
        period = period_of(today, series.cadence)
        if pending and pending.period == period:
            return read_findings(path)
        lines = read_lines(path)
        refuse_period(path, lines, period)
        await carry_out(work, decide_point(work, lines, today))
    return read_findings(path)


def run_series(
    folder: PathLike,
    *,
    max_cost: float,
    end: Sequence[str] = (),
    judge_again: bool = False,
    set_aside: bool = False,
    progress: Callable[[], OnProgress | None] | None = None,
    on_stage: OnStage | None = None,
    **changes: Any,
) -> SeriesFindings:
    """Make the point of the present period: run the study, check the judges, judge the first transcripts again.

    Args:
        folder: the series.
        max_cost: US dollars for everything that the point calls.
        end: targets whose line ends here, by their names in the series.
        judge_again: the judges changed on purpose: judge all earlier transcripts again, as a new segment.
        set_aside: begin an unfinished point again, for example because its target no longer answers. What it called
            is kept in a folder of another name.
        progress: makes a function that is called with a `RunProgress`, for each step.
        on_stage: called with a sentence when a step begins.
        changes: fields of `JudgeOptions`, to change the judges (all earlier transcripts are then judged again), and of
            `ExecutionOptions` (concurrency, batch and so on).

    Returns:
        What the series says with the new point.

    Raises:
        InputError: not a series, the period has a point already, or the study is no longer the frozen one.
        ConfigError: a judge has been retired, or a key or SDK is missing.
        IncompleteRun: it was stopped; the same call continues it, and no recorded call is made again.
        StorageError: another process is at work on the series.

    Example:
        >>> import medicare_eval as me
        >>> series = me.init_series(
        ...     "weekly", scenarios=["scenarios/v1/*.json"], targets=["fake:careful"], every="week", anchors=0, points=3
        ... )
        >>> me.run_series("weekly", max_cost=1.0).verdict
        'no alarm'
    """
    return wait(
        lambda stop: run_series_async(
            folder,
            max_cost=max_cost,
            end=end,
            judge_again=judge_again,
            set_aside=set_aside,
            progress=progress,
            on_stage=on_stage,
            stop=stop,
            **changes,
        )
    )


def add_to_series(
    folder: PathLike,
    run: PathLike,
    *,
    check: PathLike | None = None,
    frozen: PathLike | None = None,
    day: date | None = None,
) -> SeriesFindings:
    """Add a finished run of the frozen study that was made elsewhere, such as one merged from shards. Calls nothing.

    Args:
        folder: the series.
        run: the run. It stays where it is and must not be moved away from the series.
        check: a judge check of the same judges, made at the same time.
        frozen: the first transcripts of the segment, judged again at the same time (`rejudge`).
        day: the date that the run stands for. None: the day on which it was started.

    Returns:
        What the series says with the new point.

    Raises:
        InputError: not a run of the frozen study, or its period has a point already.
        IncompleteRun: the run is not complete.

    Example:
        >>> import medicare_eval as me
        >>> study = {"scenarios": ["scenarios/v1/*.json"], "targets": ["fake:careful"]}
        >>> first = me.run(study)
        >>> series = me.init_series("added", study, baseline=first, anchors=0, points=3)
        >>> series.segments[0].points[0].run.run_id == first.path.name
        True
    """
    path, added = as_path(folder), as_path(run)
    series = read_series(path)
    with storage.RunLock(path):
        ensure_segment(path, series)
        pending = pending_point(path)
        if pending and pending.run is None:
            command = f"medicare-eval series run {path} --max-cost USD"
            raise InputError(f"{path}: {pending.period} is not finished. First run: {command}")
        if pending:
            finish(path, series, pending)
        lines = read_lines(path)
        last = lines.segments[-1]
        manifest = _whole_run(path, added, lines)
        when = day or date.fromisoformat(manifest.created[:10])
        period = period_of(when, series.cadence)
        refuse_period(path, lines, period)
        if "plan_year" not in series.study and when.year != manifest.plan.plan_year:
            raise InputError(
                f"{added} is of plan year {manifest.plan.plan_year}, and {when} is not in it.", field="day"
            )
        refuse_other_study(path, last, manifest.plan, added=True)
        gone = {name for name in last.parts.targets if name not in manifest.plan.targets} - ended_before(lines)
        reasons = reasons_for(lines, manifest.plan)
        if check is not None:
            refuse_unlike_check(as_path(check), series, last)
        if frozen is not None:
            refuse_unlike_frozen(as_path(frozen), path, SeriesLines((), "") if reasons else lines)
        intent = PointIntent(
            period=period,
            date=when.isoformat(),
            lines=len(lines.lines),
            study=last.study,
            reasons=reasons,
            ended=tuple(EndedTarget(target=name, why="the run does not have it") for name in sorted(gone)),
            run=relative(path, added),
            check=relative(path, as_path(check)) if check is not None else None,
            frozen=relative(path, as_path(frozen)) if frozen is not None else None,
        )
        finish(path, series, begin_point(path, intent))
    return read_findings(path)


def _whole_run(path: Path, run: Path, lines: SeriesLines) -> Manifest:
    """The manifest of a complete run that asked the targets itself, and is not yet a point."""
    known = run_reference(path, run)
    if known.manifest_sha256 in [point.run.manifest_sha256 for point in lines.points]:
        raise InputError(f"{run} is a point of the series already.")
    manifest = storage.read_manifest(run)
    if manifest.transcripts or manifest.shard:
        raise InputError(f"{run} is not a whole run of the study: it judged others' transcripts or is a shard.")
    return manifest


def series_status(folder: PathLike) -> SeriesFindings:
    """What a series says, from its points. Reads, and calls nothing.

    Args:
        folder: the series.

    Returns:
        Its segments with every line, its events, and its verdict: "drifted", "cannot tell" or "no alarm".

    Raises:
        InputError: not a series.
        IntegrityError: a line of it was changed.

    Example:
        >>> import medicare_eval as me
        >>> _ = me.init_series("quiet", scenarios=["scenarios/v1/*.json"], targets=["fake:wrong"], anchors=0, points=3)
        >>> me.series_status("quiet").verdict
        'no alarm'
    """
    path = as_path(folder)
    found = read_findings(path)
    pending_point(path)  # whether lines are gone
    return found


def plot_series(folder: PathLike, html: PathLike) -> Path:
    """Write the page of a series: a chart per target with limits and events, and what got better and worse.

    Args:
        folder: the series.
        html: the file to write. Only an earlier page of this program is replaced.

    Returns:
        The file.

    Raises:
        InputError: not a series, or `html` is another file.
        StorageError: the page cannot be written.

    Example:
        >>> import medicare_eval as me
        >>> _ = me.init_series("drawn", scenarios=["scenarios/v1/*.json"], targets=["fake:wrong"], anchors=0, points=3)
        >>> _ = me.run_series("drawn", max_cost=1.0)
        >>> me.plot_series("drawn", "drawn.html").name
        'drawn.html'
    """
    from ..reports.analysis_pages import require_page, write_page
    from .page import series_page

    page = as_path(html)
    require_page(page)
    return write_page(series_page(read_findings(as_path(folder))), page)


@dataclass(frozen=True)
class VerifiedSeries:
    """A series that is what was written."""

    title: str
    points: int
    runs: int
    """Runs of its points, each checked in full."""
    checks: int
    head: str
    """The last chain value of `points.jsonl`."""


def verify_series(folder: PathLike, expect: str | None = None) -> VerifiedSeries:
    """Check that a series is exactly what was written: its chain, its runs, and every number of every point.

    Args:
        folder: the series.
        expect: the chain value of its last line that was kept elsewhere.

    Returns:
        How much was checked.

    Raises:
        IntegrityError: names the first thing that is wrong.

    Example:
        >>> import medicare_eval as me
        >>> _ = me.init_series("sound", scenarios=["scenarios/v1/*.json"], targets=["fake:wrong"], anchors=0, points=3)
        >>> me.verify_series("sound").points
        0
    """
    path = as_path(folder)
    series, lines = read_series(path), read_lines(path)
    if expect is not None and expect != lines.head:
        raise IntegrityError(f"{path}: the last chain value is {lines.head}, not {expect}.")
    pending_point(path)  # whether lines are gone
    runs: set[str] = set()
    for point in lines.points:
        for one in (point.run, point.transcripts, point.frozen):
            if one and one.folder not in runs:
                audit.verify(path / one.folder, one.results_head)
                runs.add(one.folder)
        _verify_check(path, point)
        _verify_point(path, series, lines, point)
    for segment in lines.segments:
        _verify_segment(path, series, lines, segment)
    checks = sum(point.check is not None for point in lines.points)
    return VerifiedSeries(series.title, len(lines.points), len(runs), checks, lines.head)


def _verify_check(path: Path, point: Point) -> None:
    """The journal of a judge check is a whole chain, and what was begun for the point is still there."""
    if not point.restated and read_intent(path, point.period) is None:
        raise IntegrityError(f"{point_folder(path, point.period) / INTENT} is gone. Restore it from a copy.")
    if point.check is None:
        return
    folder = path / point.check.folder
    if not (folder / RECORD).is_file() or not (folder / storage.MANIFEST).is_file():
        raise IntegrityError(f"{folder} is not the judge check of {point.period}. Restore it from a copy.")
    reader = hash_chain.ChainReader(folder / storage.JOURNAL, storage.manifest_sha256(folder))
    for _ in reader:
        pass
    if reader.torn:
        raise reader.broken()


def _verify_point(path: Path, series: Series, lines: SeriesLines, point: Point) -> None:
    """Compute a point again from its runs and its check."""
    segment = next(one for one in lines.segments if one.number == point.segment)
    first = lines.points_of(segment)[0] is point
    others = (path / one.folder if one else None for one in (point.frozen, point.check, point.transcripts))
    parts = PointFolders(path / point.run.folder, *others)
    if make_point(path, series, parts, segment.number, point, first=first, restated=point.restated) != point:
        raise IntegrityError(f"{path}: the point {point.period} is not what its runs and its check say.")
    made = plan_parts(storage.read_manifest(parts.run).plan)
    kept = {name: digest for name, digest in segment.parts.targets.items() if name in made.targets}
    if made != segment.parts.model_copy(update={"targets": kept, "files": made.files}):
        raise IntegrityError(f"{path}: the run of {point.period} is not of segment {segment.number}.")


def _verify_segment(path: Path, series: Series, lines: SeriesLines, segment: Segment) -> None:
    """Simulate the thresholds again, for the design of the segment's first run."""
    anchors = segment.anchors
    limits = [*segment.targets.values(), *segment.frozen.values(), *([anchors] if anchors else [])]
    for limit in limits:
        if simulated_limit(limit, series.floor) != limit.limit:
            raise IntegrityError(f"{path}: a threshold of segment {segment.number} is not what its design gives.")
    plans = [storage.read_manifest(path / point.run.folder).plan for point in lines.points_of(segment)[:1]]
    if not plans or set(plans[0].targets) != set(segment.parts.targets):
        return  # there is no run of this design
    made = segment_of(
        series,
        plans[0],
        segment.study,
        number=segment.number,
        judging=segment.judging,
        reasons=segment.reasons,
        anchors={name: int(one.weight) for name, one in anchors.clusters.items()} if anchors else None,
    )
    if made.model_copy(update={"parts": segment.parts}) != segment:
        raise IntegrityError(f"{path}: segment {segment.number} is not what its first run and the series say.")
