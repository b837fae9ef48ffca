"""Write a run's tables for other programs: CSV, JSON Lines, Parquet, Stata, SPSS, and logs for `inspect view`.

Results are read once, trial by trial, and each row goes to every file that was requested; only a batch is held in
memory. Files are written to a temporary folder and moved into place when all are complete. An existing file is never
replaced.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ... import plugins, storage
from ...errors import InputError, StorageError
from ...schemas import Manifest
from . import rows
from .codebook import CODEBOOK_CSV, CODEBOOK_MD, codebook_csv, codebook_md
from .inspect_log import InspectSink
from .tables import RUN, TABLES
from .writers import SINKS, Sink

FORMATS = (*SINKS, "inspect")


def export(folder: Path, out: Path, formats: Sequence[str]) -> list[Path]:
    """Write the tables of a run, complete or not, and their codebook into `out`; returns the files written.

    Raises:
        InputError: Not a run folder, an unknown format, or a file that already exists.
        ConfigError: A package that a format needs is not installed, or a plugin cannot be used.
        IntegrityError: The results were changed after they were written; nothing is left in `out`.
    """
    chosen = tuple(dict.fromkeys(formats))
    for name in chosen:
        if name not in FORMATS and name not in (others := plugins.installed("exporter")):
            raise InputError(f"`to`: {name[:40]!r} is not a known format. Use {', '.join([*FORMATS, *others])}.")
    if not chosen:
        raise InputError(f"`to`: no format was given. Use one or more of {', '.join(FORMATS)}.")
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
        return _move_into_place(files, work, out)
    except OSError as error:
        raise _refused(out, error) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if made and not any(out.iterdir()):
            out.rmdir()


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
        there += [path for table in TABLES for path in out.glob(f"{table.name}*.{name}")]
        if there:
            raise _exists_already(there[0])


def _write(folder: Path, manifest: Manifest, work: Path, formats: Sequence[str]) -> list[Path]:
    sinks: list[Sink] = []
    inspect: InspectSink | None = None
    try:
        for name in formats:
            if name == "inspect":
                inspect = InspectSink(work / "inspect", manifest)
            else:
                sinks.append(SINKS[name](work) if name in SINKS else plugins.installed("exporter")[name].make(work))
        about = rows.About.of(manifest)
        results = storage.StoredResults(folder, manifest)
        for result in results:
            for table, row in rows.trial_rows(result, about) if sinks else ():
                for sink in sinks:
                    sink.add(table, row)
            if inspect:
                inspect.add(result)
        last = rows.run_row(manifest, results)
        for sink in sinks:
            sink.add(RUN, last)
        files = [path for sink in sinks for path in sink.close()]
        files += inspect.close() if inspect else []
    except BaseException:
        for sink in sinks:
            sink.abandon()
        raise
    for name, text in ((CODEBOOK_CSV, codebook_csv()), (CODEBOOK_MD, codebook_md())):
        (work / name).write_text(text, encoding="utf-8", newline="")
    return files


def _move_into_place(files: Sequence[Path], work: Path, out: Path) -> list[Path]:
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
                raise _exists_already(there) from None
            raise
        placed.append(there)
    for name in (CODEBOOK_CSV, CODEBOOK_MD):
        (work / name).replace(out / name)
        placed.append(out / name)
    return placed
