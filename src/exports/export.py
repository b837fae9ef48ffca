"""Write a run's tables for other programs: CSV, JSON Lines, Parquet, Stata, SPSS, and logs for `inspect view`.

Results are read once, trial by trial, and each row goes to every format that was requested; only a batch is held in
memory. Each format is written to a temporary folder of its own and moved into place when it is complete, so a format
that fails leaves nothing behind and does not stop the others. An existing file is never replaced.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import plugins, storage
from ..errors import ExportError, HarnessError, InputError, StorageError
from ..schemas import Manifest, TrialResult
from ..text.escape import plain
from ..trials.columns import Cells, DataTable, Kind
from .inspect_log import InspectSink
from .tables import (
    CODEBOOK_CSV,
    CODEBOOK_MD,
    TABLES,
    TEXTS,
    Exported,
    TableRow,
    codebook_csv,
    codebook_md,
    run_rows,
    trial_rows,
)
from .writers import CsvSink, JsonlSink, ParquetSink, Sink, SpssSink, StataSink, optional

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]

SINKS: dict[str, type[CsvSink | JsonlSink | ParquetSink | StataSink | SpssSink]] = {
    "csv": CsvSink,
    "jsonl": JsonlSink,
    "parquet": ParquetSink,
    "dta": StataSink,
    "sav": SpssSink,
}
FORMATS = (*SINKS, "inspect")
STARTERS = ("start.R", "start.do", "start.py")
"""Scripts that load the tables; stored here with .txt at the end, because they are no part of this program."""


def export(folder: Path, out: Path, formats: Sequence[str]) -> list[Path]:
    """Write the tables of a run, complete or not, into `out`, with a codebook and scripts that load them.

    See `api.findings.export`. IntegrityError: the results were changed after they were written; nothing is left.
    """
    chosen = _chosen(formats)
    manifest = storage.read_manifest(folder)
    _check_free(out, chosen)
    try:
        made = not out.exists()
        out.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=".export-", dir=out))
    except OSError as error:
        raise _refused(out, error) from None
    try:
        written = _write(folder, manifest, work, chosen)
        complete = [one for one in written if one.error is None]
        failed = [one for one in written if one.error is not None]
        if not complete:
            raise _failure(failed[0], out) from None
        files = _move_into_place(complete, work, out)
    except OSError as error:
        raise _refused(out, error) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if made and not any(out.iterdir()):
            out.rmdir()
    if failed:
        raise ExportError(_what_failed(failed, complete), written=files)
    return files


def _chosen(formats: Sequence[str]) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(formats))
    for name in chosen:
        if name not in FORMATS and name not in (others := plugins.installed("exporter")):
            raise InputError(f"`to`: {name[:40]!r} is not a known format. Use {', '.join([*FORMATS, *others])}.")
    if not chosen:
        raise InputError(f"`to`: no format was given. Use one or more of {', '.join(FORMATS)}.")
    return chosen


class _Format:
    """One format that is being written. After an error it takes no more rows, and nothing of it is kept."""

    def __init__(self, name: str, folder: Path, manifest: Manifest) -> None:
        self.name = name
        self.folder = folder
        self.files: list[Path] = []
        self.error: Exception | None = None
        self._sink: Sink | InspectSink | None = None
        try:
            folder.mkdir()
            self._sink = _sink(name, folder, manifest)
        except Exception as error:
            self._fail(error)

    def add(self, result: TrialResult | None, listed: Iterable[TableRow]) -> None:
        """Add a trial and its rows in the tables; None for rows that belong to no trial."""
        if self.error is not None or self._sink is None:
            return
        try:
            if not isinstance(self._sink, InspectSink):
                for table, row in listed:
                    self._sink.add(table, row)
            elif result:
                self._sink.add(result)
        except Exception as error:
            self._fail(error)

    def close(self) -> None:
        if self.error is not None or self._sink is None:
            return
        try:
            self.files = self._sink.close()
        except Exception as error:
            self._fail(error)

    def abandon(self) -> None:
        """Close open files; what was written will be deleted."""
        if self._sink is not None and not isinstance(self._sink, InspectSink):
            with suppress(Exception):  # a writer that failed may fail again when it is closed
                self._sink.abandon()

    def _fail(self, error: Exception) -> None:
        self.error = error
        self.abandon()


def _sink(name: str, folder: Path, manifest: Manifest) -> Sink | InspectSink:
    if name == "inspect":
        return InspectSink(folder / "inspect", manifest)
    sink: Sink = SINKS[name](folder) if name in SINKS else plugins.installed("exporter")[name].make(folder)
    return sink


def _reason(error: Exception) -> str:
    """Why a format could not be written, as the end of a sentence."""
    if isinstance(error, OSError):
        return f"write failed ({error.strerror or error})"
    if isinstance(error, HarnessError):
        return str(error).rstrip(".")
    return f"{type(error).__name__}: {plain(' '.join(str(error).split()))[:300]}"


def _failure(one: _Format, out: Path) -> HarnessError:
    """The error to raise if nothing was written."""
    if isinstance(one.error, HarnessError):
        return one.error
    if isinstance(one.error, OSError):
        return _refused(out, one.error)
    assert one.error is not None
    return ExportError(f"{one.name} could not be written: {_reason(one.error)}.")


def _what_failed(failed: Sequence[_Format], complete: Sequence[_Format]) -> str:
    why = "; ".join(f"{one.name} could not be written: {_reason(one.error)}" for one in failed if one.error)
    return f"{why}. Complete: {', '.join(one.name for one in complete)}."


def _refused(out: Path, error: OSError) -> StorageError:
    why = error.strerror or error
    return StorageError(f"{out}: write failed ({why}). Free some space or pick a writable folder, then export again.")


def _exists_already(path: Path) -> InputError:
    return InputError(f"{path} already exists and will not be overwritten. Remove it, or choose another folder.")


def _check_free(out: Path, formats: Sequence[str]) -> None:
    """Refuse to write beside files of an earlier export in the same format: their pieces would get mixed."""
    storage.require_folder(out)
    for name in formats:
        there = [*out.glob("inspect/*.eval")] if name == "inspect" else []
        there += [*out.glob(TEXTS)] if name == "csv" else []
        there += [path for table in TABLES for path in out.glob(f"{table.name}*.{name}")]
        if there:
            raise _exists_already(there[0])


def _write(folder: Path, manifest: Manifest, work: Path, names: Sequence[str]) -> list[_Format]:
    formats = [_Format(name, work / str(place), manifest) for place, name in enumerate(names)]
    tabular = any(name != "inspect" for name in names)
    try:
        about = Exported.of(manifest)
        results = storage.StoredResults(folder, manifest, fast=True)
        for result in results:
            listed = list(trial_rows(result, about)) if tabular else []
            for one in formats:
                one.add(result, listed)
            if all(one.error is not None for one in formats):
                return formats
        last = list(run_rows(manifest, results, about))
        for one in formats:
            one.add(None, last)
            one.close()
    except BaseException:
        for one in formats:
            one.abandon()
        raise
    starters = Path(__file__).with_name("starters")
    texts = {CODEBOOK_CSV: codebook_csv(), CODEBOOK_MD: codebook_md()}
    texts |= {name: (starters / f"{name}.txt").read_text(encoding="utf-8") for name in STARTERS}
    for name, text in texts.items():
        (work / name).write_text(text, encoding="utf-8", newline="")
    return formats


def _move_into_place(formats: Sequence[_Format], work: Path, out: Path) -> list[Path]:
    placed: list[Path] = []
    for path, there in [(path, out / path.relative_to(one.folder)) for one in formats for path in one.files]:
        there.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, there)
        except OSError as error:
            for earlier in placed:
                earlier.unlink()
            if isinstance(error, FileExistsError):
                raise _exists_already(there) from None
            raise
        placed.append(there)
    for name in (CODEBOOK_CSV, CODEBOOK_MD):
        (work / name).replace(out / name)
        placed.append(out / name)
    for name in STARTERS:
        with suppress(FileExistsError):  # the user may have changed it
            os.link(work / name, out / name)
            placed.append(out / name)
    return placed


# Tables as pandas data frames, for notebooks

TABLES_BY_NAME = {name: table for table in TABLES for name in (table.name, f"{table.name}s")}
"""Singular and plural: `trial` and `trials`."""
_TYPES: dict[Kind, str] = {
    "text": "string",
    "category": "category",
    "reason": "category",
    "integer": "Int64",
    "number": "Float64",
    "flag": "boolean",
}


def to_frame(folder: Path, table: str) -> pandas.DataFrame:
    """One table of a run, complete or not, as a data frame; see `reading.Run.to_frame`.

    Integers, numbers and yes/no columns are nullable, so a missing value is `pandas.NA` and its reason is in the column
    `<name>_missing`. Categories have all their possible values.
    """
    if table not in TABLES_BY_NAME:
        known = ", ".join(one.name for one in TABLES)
        raise InputError(f"{table[:40]!r} is not a table of a run. Use {known}.")
    frames = optional("pandas")
    wanted = TABLES_BY_NAME[table]
    listed = _rows(folder, wanted)
    columns: dict[str, Any] = {}
    for column in wanted.columns:
        kind: Any = _TYPES[column.kind]
        if kind == "category":
            kind = frames.CategoricalDtype(list(column.values))
        columns[column.name] = frames.Series([row[column.name] for row in listed], dtype=kind)
    frame: pandas.DataFrame = frames.DataFrame(columns)
    return frame


def _rows(folder: Path, wanted: DataTable[Any]) -> list[Cells]:
    manifest = storage.read_manifest(folder)
    about = Exported.of(manifest)
    results = storage.StoredResults(folder, manifest, fast=True)
    listed = [row for result in results for table, row in trial_rows(result, about) if table is wanted]
    return listed + [row for table, row in run_rows(manifest, results, about) if table is wanted]
