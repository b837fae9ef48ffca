"""The files of a run folder, their hashes, and what the seal says about them. Nothing here needs the records."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError, IntegrityError

if TYPE_CHECKING:
    from ..records.run import Seal

PathLike = str | os.PathLike[str]
MANIFEST, JOURNAL, RESULTS, SEAL = "manifest.json", "calls.jsonl", "results.jsonl", "seal.json"
SEALED = (MANIFEST, JOURNAL, RESULTS)
"""The files whose hashes the seal has."""
SERIES = "series.json"
"""The file that makes a folder a series (`series.folder`)."""
RESTORE = "Restore the run folder from a copy"


def as_path(value: object) -> Path:
    """A path that a caller gave: text, a `Path`, or a `Run`."""
    if isinstance(value, str | os.PathLike):
        return Path(value)
    raise InputError(f"Expected a path, not {value!r}.")


def is_series(folder: Path) -> bool:
    return (folder / SERIES).is_file()


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def manifest_sha256(folder: Path) -> str:
    return file_sha256(folder / MANIFEST)


def check_seal(folder: Path, seal: Seal, written: int, trials: int) -> None:
    """Raise if a seal is not that of a manifest of this format and so many trials, or if a file is missing."""
    for name in (JOURNAL, RESULTS):
        if not (folder / name).is_file():
            raise IntegrityError(f"{folder / name} is missing from a sealed run. {RESTORE}.")
    if seal.files.get(MANIFEST) != manifest_sha256(folder):
        raise differs_from_seal(folder / MANIFEST)
    if set(seal.files) != set(SEALED) or seal.format != written or seal.trials != trials:
        raise IntegrityError(f"{folder / SEAL} was changed: it is not the seal of this run. {RESTORE}.")


def check_count(path: Path, what: str, found: int, sealed: int) -> None:
    """Raise if a chained file of a sealed run has fewer or more trials, or calls, than the seal says."""
    if found != sealed:
        count = f"{found:,} {what}" if found == 1 else f"{found:,} {what}s"
        how = "removed from" if found < sealed else "added at"
        raise IntegrityError(f"{path} has {count}; the seal says {sealed:,}. Lines were {how} its end. {RESTORE}.")


def differs_from_seal(path: Path, hint: str = "") -> IntegrityError:
    return IntegrityError(
        f"{path} does not match {SEAL}: one of the two was changed after the run was complete. {RESTORE}{hint}."
    )
