"""The runs and the series of a folder, read and never locked or written."""

from __future__ import annotations

import mmap
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import msgspec

from .. import storage
from ..errors import InputError
from ..findings.read_run import Findings, gather
from ..findings.review import is_review
from ..records.model_name import is_person
from ..reports.evidence import Evidence
from ..reports.evidence_script import Script, scripts_of
from ..reports.series import ReportedTarget, Runs, runs_of
from ..reports.trial_page import decode
from ..schemas import Manifest, TrialResult
from ..series.folder import FOLDER
from ..store.projection import projection
from ..store.run_folder import SERIES, is_series
from ..text.count import counted

FRESH_S = 30.0
"""Where the system lists no locks, a run whose journal grew within this time is running."""
_BEFORE_CALL = len('{"chain":"') + 64
"""Bytes of a line of the journal before the name of its call."""
State = Literal["complete", "running", "stopped", "damaged"]


_decode = projection(
    Manifest,
    {
        "": "created",
        "plan": "targets verifiers judges_by_target repeats",
        "plan.scenarios": "variant",
        "plan.target_settings.recorded": "conversations",
        "transcripts": "run_id",
        "transcripts.selected": "chosen sampled",
    },
)


@dataclass(frozen=True)
class RunHead:
    """What the list of runs shows."""

    name: str
    targets: tuple[str, ...]
    judges: tuple[str, ...]
    planned: int
    done: int
    calls: int
    state: State
    reviews: str | None
    """The run whose transcripts it judges again, if it does."""

    @property
    def by_people(self) -> bool:
        return all(map(is_person, self.judges))

    @property
    def progress(self) -> str:
        calls = f", {counted(self.calls, 'call')}" if self.state == "running" else ""
        return f"{self.done:,} of {counted(self.planned, 'trial')}{calls}"


class RunFolders:
    """Runs and series by name. A name is looked up in a listing, never joined to a path."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise InputError(f"{folder} is not a folder. Give a folder of runs, a run, or a series.")
        one = (folder / storage.MANIFEST).is_file() or is_series(folder)
        self.root = folder.resolve().parent if one else folder
        """The folder of runs."""
        self._only = folder.resolve().name if one else None
        self._opened: dict[str, OpenRun] = {}
        self._lines: dict[Path, LineCount] = {}

    def _beside(self, name: str) -> dict[str, Path]:
        """Folders that have a file of this name."""
        found = (one for one in self.root.iterdir() if (one / name).is_file() and not one.is_symlink())
        return {one.name: one for one in sorted(found) if self._only in (None, one.name)}

    def series(self) -> dict[str, Path]:
        """The folders of series."""
        return self._beside(SERIES)

    def folders(self) -> dict[str, Path]:
        """All runs: first those of series, by the way to them, then others by the names of their folders."""
        inside = {name: run for of, folder in self.series().items() for name, run in series_runs(of, folder)}
        return inside | self._beside(storage.MANIFEST)

    def heads(self) -> list[RunHead]:
        """All runs that are of no series, the newest first."""
        locked = locked_files()
        return [self._head(name, one, locked) for name, one in reversed(self._beside(storage.MANIFEST).items())]

    def head(self, name: str) -> RunHead | None:
        folder = self.folders().get(name)
        return self._head(name, folder, locked_files()) if folder else None

    def open(self, name: str) -> OpenRun | None:
        """A run by its name, read again only if its files have changed."""
        folder = self.folders().get(name)
        if folder is None:
            return None
        known = self._opened.get(name)
        if known is None or known.stamp != stamp(folder):
            series = next((of for of, where in self.series().items() if where in folder.parents), None)
            known = self._opened[name] = OpenRun(folder, name, series)
        return known

    def _head(self, name: str, folder: Path, locked: frozenset[int] | None) -> RunHead:
        try:
            manifest = _decode((folder / storage.MANIFEST).read_bytes())
            state = state_of(folder, locked)
        except (OSError, msgspec.MsgspecError):
            return RunHead(name, (), (), 0, 0, 0, "damaged", None)
        plan, again = manifest.plan, manifest.transcripts
        own = [one.recorded for one in plan.target_settings.values() if one.recorded]
        planned = len(plan.scenarios) * (len(plan.targets) - len(own)) * plan.repeats
        planned += sum(len(ids) for one in own for ids in one.conversations.values())
        if again and again.selected:
            planned = len(again.selected.chosen) + len(again.selected.sampled)
        named = [plan.verifiers, *(one.verifiers for one in plan.judges_by_target.values())]
        judges = tuple(dict.fromkeys(name for verifiers in named for name in verifiers))
        done = planned if state == "complete" else self._count(folder / storage.RESULTS)
        calls = self._count(folder / storage.JOURNAL) if state == "running" else 0
        reviews = again.run_id if again else None
        targets = tuple(plan.targets)
        return RunHead(name, targets, judges, planned, done, calls, state, reviews)

    def _count(self, path: Path) -> int:
        return self._lines.setdefault(path, LineCount(path)).now()


def series_runs(name: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """The runs in the folder of a series, named `SERIES:2026-11:run:20261118T060000Z`. Links are not followed."""
    points = folder / FOLDER
    for where, below, files in os.walk(points):
        if storage.MANIFEST in files:
            below.clear()
            run = Path(where)
            yield ":".join((name, *run.relative_to(points).parts)), run
        below.sort()


class LineCount:
    """Lines of a file that grows; what was counted is not read again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = self._lines = 0
        self._lock = threading.Lock()

    def now(self) -> int:
        try:
            with self._lock, self._path.open("rb") as file:
                if os.fstat(file.fileno()).st_size < self._size:
                    self._size = self._lines = 0
                file.seek(self._size)
                while chunk := file.read(1 << 20):
                    self._lines += chunk.count(b"\n")
                    self._size += len(chunk)
        except FileNotFoundError:
            return 0
        return self._lines


def stamp(folder: Path) -> tuple[int, ...]:
    """Changes whenever the results or the seal do."""
    sizes = []
    for name in (storage.MANIFEST, storage.RESULTS, storage.SEAL):
        try:
            found = (folder / name).stat()
            sizes += [found.st_size, found.st_mtime_ns]
        except FileNotFoundError:
            sizes += [0, 0]
    return tuple(sizes)


def locked_files(listing: Path = Path("/proc/locks")) -> frozenset[int] | None:
    """Inodes that somebody has locked; None where the system does not list them. Nothing is locked to find out."""
    try:
        lines = listing.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    places = (word for line in lines for word in line.split() if word.count(":") == 2)
    return frozenset(int(place.rpartition(":")[2]) for place in places if place.rpartition(":")[2].isdigit())


def state_of(folder: Path, locked: frozenset[int] | None, clock: Callable[[], float] = time.time) -> State:
    """What a run does now: it is running if a process holds it or, where that is not known, if its journal grows."""
    if (folder / storage.SEAL).exists():
        return "complete"
    if locked is not None:
        return "running" if folder.stat().st_ino in locked else "stopped"
    journal = folder / storage.JOURNAL
    changed = (journal if journal.exists() else folder / storage.MANIFEST).stat().st_mtime
    return "running" if clock() - changed < FRESH_S else "stopped"


class OpenRun:
    """One run with its results."""

    def __init__(self, folder: Path, name: str, series_name: str | None) -> None:
        self.folder = folder
        self.name = name
        self.series_name = series_name
        """Of the series that it is a run of."""
        self.stamp = stamp(folder)

    @cached_property
    def found(self) -> Findings:
        return gather(self.folder)

    @cached_property
    def runs(self) -> Runs:
        return runs_of([self.found], [None])

    @cached_property
    def scripts(self) -> dict[tuple[str, str | None], Script]:
        return scripts_of(self.found.manifest.plan)

    @cached_property
    def evidence(self) -> Evidence:
        return Evidence(self.runs)

    @cached_property
    def series(self) -> dict[str, ReportedTarget]:
        """By target."""
        return {one.target: one for one in self.runs.series}

    @property
    def reviews(self) -> bool:
        """Whether people judged it."""
        return is_review(self.found.manifest)

    def trial(self, trial_id: str) -> TrialResult | None:
        if trial_id not in self.found.places:
            return None
        (trial,) = self.found.decoded([trial_id], decode)
        return trial

    def calls(self, trial_id: str) -> Iterator[bytes]:
        """The lines of the journal about a trial. They are looked for, not indexed: `verify` checks the chain."""
        wanted = b'","call":"' + trial_id.encode() + b"|"
        path = self.folder / storage.JOURNAL
        if not path.exists() or not path.stat().st_size:
            return
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as journal:
            at = journal.find(wanted)
            while at >= 0:
                start, end = journal.rfind(b"\n", 0, at) + 1, journal.find(b"\n", at)
                end = end if end >= 0 else len(journal)
                if at - start == _BEFORE_CALL:
                    yield journal[start:end]
                at = journal.find(wanted, end)
