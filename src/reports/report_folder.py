"""A report folder: a report takes the place of an earlier one when it is complete, and of nothing else.

The folder has a list of its files with their hashes. A file that is not on it, or that was changed since, belongs to
the user: a report that would replace it is refused. Files of an earlier report that the new one does not have are
removed. Evidence pages are too many for a list; their folder has a marker file and is replaced as a whole.

A page that a command writes where the user says replaces only one that this program wrote before.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .. import storage
from ..errors import InputError

LIST = "WRITTEN-BY-MEDICARE-EVAL.txt"
"""In the report folder, the list of files; in the evidence folder, the marker."""
EVIDENCE = "evidence"
_UNFINISHED = re.compile(r"\.report-(\d+)-[0-9a-f]{16}")
_LINE = re.compile(r"([0-9a-f]{64})  ([^\r\n]+)")
_FIRST = ("report.html", "report.md")
"""Files that every report has."""
_HINT = "Move it, or choose another --out."


def require_report_folder(out: Path, *, evidence: bool) -> None:
    """Refuse a folder in which a report would replace what is not a report's, before anything is computed.

    Raises:
        InputError: `out` is a file, or has files that no report wrote or that were changed since.
    """
    storage.require_folder(out)
    listed = _listed(out)
    for name in dict.fromkeys((*_FIRST, *listed)):
        _require_ours(out, name, listed)
    pages = out / EVIDENCE
    if evidence and (pages.is_symlink() or pages.exists()) and not (pages / LIST).is_file():
        raise InputError(
            f"{pages} exists and was not written by medicare-eval. Move it, choose another --out, or leave the "
            "evidence pages out with --no-evidence."
        )


def _require_ours(out: Path, name: str, listed: dict[str, str]) -> None:
    path = out / name
    if not path.exists():
        return
    if name not in listed:
        raise InputError(f"{path} exists, and no list of files says that a report wrote it. {_HINT}")
    if not path.is_file() or _hash(path) != listed[name]:
        raise InputError(f"{path} was changed after a report wrote it, and will not be replaced. {_HINT}")


@contextmanager
def report_folder(out: Path) -> Iterator[Path]:
    """A folder to write a report to. If the block ends without an error, what is in it takes its place in `out`."""
    out.mkdir(parents=True, exist_ok=True)
    _remove_unfinished(out)
    new = out / f".report-{os.getpid()}-{secrets.token_hex(8)}"
    new.mkdir()
    try:
        yield new
        _move_into_place(new, out)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _move_into_place(new: Path, out: Path) -> None:
    pages = new / EVIDENCE
    parts = [part for part in new.iterdir() if part != pages]
    files = [path for part in parts for path in (part.rglob("*") if part.is_dir() else (part,)) if path.is_file()]
    names = sorted(path.relative_to(new).as_posix() for path in files)
    before = _listed(out)
    for name in names:
        _require_ours(out, name, before)
    now = {name: _hash(new / name) for name in names}
    for name in names:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (new / name).replace(out / name)
    there = out / EVIDENCE
    if (there / LIST).is_file() and not there.is_symlink():
        there.rename(new / "earlier")
    if pages.exists():
        pages.rename(there)
    for name in before.keys() - now.keys():
        if (out / name).is_file() and _hash(out / name) == before[name]:
            (out / name).unlink()
    listed = new / LIST
    listed.write_text("".join(f"{digest}  {name}\n" for name, digest in now.items()), encoding="utf-8", newline="\n")
    listed.replace(out / LIST)


def _listed(out: Path) -> dict[str, str]:
    """The files that the last report wrote, with their hashes."""
    try:
        text = (out / LIST).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    found = (_LINE.fullmatch(line) for line in text.splitlines())
    return {one[2]: one[1] for one in found if one and (out / one[2]).resolve().is_relative_to(out.resolve())}


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remove_unfinished(out: Path) -> None:
    """Remove what reports left that were killed."""
    for path in out.iterdir():
        owner = _UNFINISHED.fullmatch(path.name)
        if owner and not _alive(int(owner[1])):
            shutil.rmtree(path, ignore_errors=True)


def _alive(process: int) -> bool:
    if os.name == "nt":  # there, asking a process whether it lives would end it
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


_HEAD = 8_192
"""Bytes of a file that are searched for the mark of ours."""


def require_own(path: Path, mark: str, kind: str) -> None:
    """Refuse a place that cannot be written to, before anything is computed. `mark` is in the head of our files.

    Raises:
        InputError: The file exists and is not an earlier one of ours, or is a folder, or is below a file.
        StorageError: It cannot be read.
    """
    storage.require_folder(path.parent)
    if path.is_dir():
        raise InputError(f"{path} is a folder. Give the name of a file in it, such as {path / f'page{_ending(kind)}'}.")
    try:
        if path.exists():
            with path.open("rb") as file:
                if mark.encode() not in file.read(_HEAD):
                    raise InputError(f"{path} exists and is not a {kind} of this program. Give another name.")
    except OSError as error:
        raise storage.storage_error(path, error) from None


def _ending(kind: str) -> str:
    return {"summary": ".md", "JUnit file": ".xml"}.get(kind, ".html")


def write_own(path: Path, text: str) -> Path:
    """Write a whole file, or leave the one that is there. First call `require_own`."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8", newline="\n")
        temporary.replace(path)
    except OSError as error:
        raise storage.storage_error(path, error) from None
    finally:
        temporary.unlink(missing_ok=True)
    return path
