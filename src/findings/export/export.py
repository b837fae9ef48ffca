"""A run's tables for other programs: CSV, JSON Lines, Parquet, Stata, SPSS, and logs that `inspect view` opens.

Results are read once, trial by trial, and each row goes to every file that was asked for; nothing is kept but a batch.
Files are made in a folder of their own and put in place when all are whole; one that is there is never replaced.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from ... import plugins, storage
from ...errors import InputError, IntegrityError, StorageError
from ...schemas import Manifest, TrialResult
from ...store import hash_chain
from . import tables
from .inspect_log import InspectSink
from .writers import SINKS, Sink

FORMATS = (*SINKS, "inspect")
CODEBOOK_CSV, CODEBOOK_MD = "codebook.csv", "codebook.md"


class _Trials:
    """A run's trials as they are read; afterwards `head` and `count` say what was there."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / storage.RESULTS
        self.head = hash_chain.GENESIS
        self.count = 0

    def __iter__(self) -> Iterator[TrialResult]:
        if not self._path.exists():
            return
        reader = hash_chain.ChainReader(self._path, hash_chain.GENESIS)
        for line in reader:
            try:
                yield TrialResult.model_validate_json(line.payload)
            except ValidationError as error:
                raise IntegrityError(
                    f"{self._path}: line {line.number} is not a result this version can read "
                    f"({error.error_count()} fields do not fit)."
                ) from None
            self.head, self.count = reader.head, reader.count


def export(folder: Path, out: Path, formats: Sequence[str]) -> list[Path]:
    """Write a run's tables, complete or not, and their codebook into `out`; gives the files written.

    InputError: no such run, no such format, or a file that is there already. ConfigError: a package is not installed.
    IntegrityError: the results are not what was written; then nothing is left in `out`.
    """
    chosen = tuple(dict.fromkeys(formats))
    for name in chosen:
        if name not in FORMATS and name not in (others := plugins.installed("exporter")):
            raise InputError(f"--to {name[:40]!r}: is not known; use {', '.join([*FORMATS, *others])}.")
    if not chosen:
        raise InputError(f"--to: name at least one of {', '.join(FORMATS)}.")
    manifest = storage.read_manifest(folder)
    _check_free(out, chosen)
    try:
        made = not out.exists()
        out.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=".export-", dir=out))
    except OSError as error:
        raise _refused(out, error) from None
    try:
        files = _write(folder, manifest, work, chosen)
        return _put_in_place(files, work, out)
    except OSError as error:
        raise _refused(out, error) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if made and not any(out.iterdir()):
            out.rmdir()


def _refused(out: Path, error: OSError) -> StorageError:
    return StorageError(
        f"{out}: could not be written ({error.strerror or error}); make room or choose another folder, then export."
    )


def _there_already(path: Path) -> InputError:
    return InputError(f"{path}: is there already; remove it, or choose another folder to export to.")


def _check_free(out: Path, formats: Sequence[str]) -> None:
    """A file of an earlier export stays; pieces of two exports must not come to lie side by side."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: is a file; name a folder.")
    for name in formats:
        there = [*out.glob("inspect/*.eval")] if name == "inspect" else []
        there += [path for table in tables.TABLES for path in out.glob(f"{table.name}*.{name}")]
        if there:
            raise _there_already(there[0])


def _write(folder: Path, manifest: Manifest, work: Path, formats: Sequence[str]) -> list[Path]:
    sinks: list[Sink] = []
    inspect: InspectSink | None = None
    try:
        for name in formats:
            if name == "inspect":
                inspect = InspectSink(work / "inspect", manifest)
            else:
                sinks.append(SINKS[name](work) if name in SINKS else plugins.installed("exporter")[name].make(work))
        about = tables.About.of(manifest)
        trials = _Trials(folder)
        for result in trials:
            for table, row in tables.trial_rows(result, about) if sinks else ():
                for sink in sinks:
                    sink.add(table, row)
            if inspect:
                inspect.add(result)
        sealed = (folder / storage.SEAL).exists()
        last = tables.run_row(manifest, head=trials.head, trials=trials.count, sealed=sealed)
        for sink in sinks:
            sink.add(tables.RUN, last)
        files = [path for sink in sinks for path in sink.close()]
        files += inspect.close() if inspect else []
    except BaseException:
        for sink in sinks:
            sink.abandon()
        raise
    for name, text in ((CODEBOOK_CSV, tables.codebook_csv()), (CODEBOOK_MD, tables.codebook_md())):
        (work / name).write_text(text, encoding="utf-8", newline="")
    return files


def _put_in_place(files: Sequence[Path], work: Path, out: Path) -> list[Path]:
    placed: list[Path] = []
    for path in files:
        there = out / path.relative_to(work)
        there.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, there)
        except OSError as error:
            for earlier in placed:
                earlier.unlink()
            if isinstance(error, FileExistsError):
                raise _there_already(there) from None
            raise
        placed.append(there)
    for name in (CODEBOOK_CSV, CODEBOOK_MD):
        (work / name).replace(out / name)
        placed.append(out / name)
    return placed
