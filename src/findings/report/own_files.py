"""Files that a command writes where the user says: only one that this program wrote before is replaced."""

from __future__ import annotations

import secrets
from pathlib import Path

from ... import storage
from ...errors import InputError

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
