"""Whether a series is what was written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .. import audit, storage
from ..errors import IntegrityError
from ..findings.analysis.judge_agreement import RECORD
from ..findings.analysis.series_design import design_of, plan_parts, segment_of, simulated_limit
from ..records.series import Point, Segment, Series
from ..store import hash_chain
from ..store.run_folder import PathLike, as_path
from ..store.series_folder import INTENT, SeriesLines, point_folder, read_intent, read_lines, read_series
from .series_lines import AboutPoint, PointFolders, make_point
from .series_plan import pending_point


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
    mine = [one for one in lines.points if one.segment == point.segment]
    about = AboutPoint(
        point.segment, point.period, point.date, first=mine[0] is point, ended=point.ended, restated=point.restated
    )
    parts = PointFolders(
        path / point.run.folder,
        path / point.frozen.folder if point.frozen else None,
        path / point.check.folder if point.check else None,
        path / point.transcripts.folder if point.transcripts else None,
    )
    if make_point(path, series, about, parts) != point:
        raise IntegrityError(f"{path}: the point {point.period} is not what its runs and its check say.")
    segment = next(one for one in lines.segments if one.number == point.segment)
    made = plan_parts(storage.read_manifest(parts.run).plan)
    kept = {name: digest for name, digest in segment.parts.targets.items() if name in made.targets}
    if made != segment.parts.model_copy(update={"targets": kept, "files": made.files}):
        raise IntegrityError(f"{path}: the run of {point.period} is not of segment {segment.number}.")


def _verify_segment(path: Path, series: Series, lines: SeriesLines, segment: Segment) -> None:
    """Simulate the thresholds again, for the design of the segment's first run."""
    anchors = segment.anchors
    limits = [*segment.targets.values(), *segment.frozen.values(), *([anchors] if anchors else [])]
    for limit in limits:
        if simulated_limit(design_of(limit, series.floor), limit) != limit.limit:
            raise IntegrityError(f"{path}: a threshold of segment {segment.number} is not what its design gives.")
    first = next((point for point in lines.points if point.segment == segment.number), None)
    plan = storage.read_manifest(path / first.run.folder).plan if first else None
    if plan is None or set(plan.targets) != set(segment.parts.targets):
        return  # there is no run of this design
    made = segment_of(
        series,
        plan,
        segment.study,
        number=segment.number,
        judging=segment.judging,
        reasons=segment.reasons,
        anchors={name: int(one.weight) for name, one in anchors.clusters.items()} if anchors else None,
    )
    if made.model_copy(update={"parts": segment.parts}) != segment:
        raise IntegrityError(f"{path}: segment {segment.number} is not what its first run and the series say.")
