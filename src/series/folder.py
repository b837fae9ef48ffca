"""The folder of a series: `series.json`, written once, and `points.jsonl`, chained and only ever appended to.

SERIES/
  series.json                the frozen study and the rules of the series
  points.jsonl               segments and points, each line chained to the one before
  points/2026-11/point.json  what is done for a point, written before its first call
  points/2026-11/run/        the run of the study
  points/2026-11/check/      the judges on the labeled replies
  points/2026-11/frozen/     the first transcripts of the segment, judged again
  points/2026-11/restated/   after a change of judges: every earlier point, judged again
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from .. import storage
from ..errors import IncompleteRun, InputError, IntegrityError, StorageError
from ..records.series import Point, PointIntent, RunReference, Segment, Series, SeriesLine
from ..store import hash_chain
from ..store.failpoints import Failpoints
from ..store.run_files import encode_record, read_record
from ..store.run_folder import SERIES, is_series
from ..store.strict_json import sha256

POINTS, FOLDER, INTENT = "points.jsonl", "points", "point.json"
_LINE: TypeAdapter[Segment | Point] = TypeAdapter(SeriesLine)


def read_series(folder: Path) -> Series:
    """InputError: not the folder of a series. IntegrityError: it cannot be read."""
    if not is_series(folder):
        raise InputError(f"{folder} is not a series: it has no {SERIES}. Make one with: medicare-eval series init")
    return read_record(folder / SERIES, Series)


@dataclass(frozen=True)
class SeriesLines:
    """What `points.jsonl` has."""

    lines: tuple[Segment | Point, ...]
    head: str
    torn: tuple[hash_chain.Torn, ...] = ()
    """Half-written lines at its end."""
    ends_clean: bool = True

    @property
    def points(self) -> tuple[Point, ...]:
        return tuple(line for line in self.lines if isinstance(line, Point))

    @property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(line for line in self.lines if isinstance(line, Segment))

    @property
    def shown(self) -> tuple[Segment, ...]:
        """The segments of the present judges. Those that were restated by them are kept in the file."""
        return tuple(one for one in self.segments if one.judging == self.segments[-1].judging)

    def points_of(self, *segments: Segment) -> tuple[Point, ...]:
        numbers = {one.number for one in segments}
        return tuple(point for point in self.points if point.segment in numbers)

    @property
    def baseline(self) -> Point | None:
        """The first point of the last segment."""
        return next(iter(self.points_of(*self.segments[-1:])), None)

    def at(self, count: int) -> SeriesLines:
        """As it was with so many lines; only to compute what follows, never to append."""
        return SeriesLines(self.lines[:count], self.head)


def read_lines(folder: Path) -> SeriesLines:
    """IntegrityError: a line was changed, moved or removed."""
    path = folder / POINTS
    if not path.exists():
        return SeriesLines((), _genesis(folder))
    reader = hash_chain.ChainReader(path, _genesis(folder))
    lines: list[Segment | Point] = []
    for line in reader:
        if hash_chain.is_recovery(line.payload):
            continue
        try:
            lines.append(_LINE.validate_json(bytes(line.payload)))
        except ValidationError as error:
            problem = error.errors()[0]
            raise IntegrityError(
                f"{path}, line {line.number}: this version cannot read the line ({problem['msg']})."
            ) from None
    return SeriesLines(tuple(lines), reader.head, tuple(reader.torn), reader.ends_clean)


def _genesis(folder: Path) -> str:
    return sha256((folder / SERIES).read_bytes())


def append_lines(folder: Path, records: Sequence[Segment | Point], failpoints: Failpoints) -> None:
    """Add lines, each on disk before the next. A half-written last line is named in a recovery record first."""
    found = read_lines(folder)
    path, head = folder / POINTS, found.head
    try:
        with path.open("ab", buffering=0) as file:
            addition = b"" if found.ends_clean else b"\n"
            if found.torn:
                head, line = hash_chain.chained(head, hash_chain.recovery_payload(list(found.torn)))
                addition += line
            for record in records:
                head, line = hash_chain.chained(head, encode_record(record))
                _append(file.fileno(), addition + line, failpoints)
                addition = b""
            if addition:
                _append(file.fileno(), addition, failpoints)
    except OSError as error:
        raise StorageError(
            f"{path}: write failed ({error.strerror or error}). Data already saved is intact. Free some space, then "
            "give the same command again."
        ) from None


def _append(fd: int, data: bytes, failpoints: Failpoints) -> None:
    failpoints.hit("series.before_line")
    if failpoints.armed("series.torn_line"):
        os.write(fd, data[: len(data) // 2])
    failpoints.hit("series.torn_line")
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.fsync(fd)
    failpoints.hit("series.after_line")


def point_folder(folder: Path, period: str) -> Path:
    return folder / FOLDER / period


def set_aside(folder: Path, period: str) -> Path:
    """Give the folder of an unfinished point another name, so that the point can be begun again. Nothing is removed."""
    place = point_folder(folder, period)
    try:
        number = 1 + sum(1 for _ in place.parent.glob(f"{period}.set-aside-*"))
        return place.rename(place.with_name(f"{period}.set-aside-{number}"))
    except OSError as error:
        raise StorageError(f"{place} cannot be renamed ({error.strerror or error}).") from None


def read_intent(folder: Path, period: str) -> PointIntent | None:
    path = point_folder(folder, period) / INTENT
    return read_record(path, PointIntent) if path.is_file() else None


def intents(folder: Path) -> list[PointIntent]:
    """Everything that was begun and not set aside, in order."""
    periods = sorted(path.parent.name for path in (folder / FOLDER).glob(f"*/{INTENT}") if "." not in path.parent.name)
    return [intent for period in periods if (intent := read_intent(folder, period))]


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


def pending_point(path: Path) -> PointIntent | None:
    """A point that was begun and has not all of its lines. IntegrityError: lines of finished points are gone."""
    lines, begun = read_lines(path), intents(path)
    done = {point.period for point in lines.points if not point.restated}
    pending = [intent for intent in begun if intent.period not in done]
    lost = len(pending) > 1 or any(intent.period < max(done, default="") for intent in pending)
    if lost or any(intent.lines > len(lines.lines) for intent in begun):
        raise IntegrityError(f"{path / POINTS} has lost lines of finished points. Restore it from a copy.")
    return pending[0] if pending else None
