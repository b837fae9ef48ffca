"""Runs made once: kept by a hash of the command and of everything that decides its result, shared by all workers.

They lie in `.pytest_cache` of the checkout, below the hash of its inputs, so that a change of any of them makes all
runs again. Runs of other inputs are removed. A run that a test asks for is read by other tests too: who changes it
takes a copy.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from src.store.locking import locked

ROOT = Path(__file__).resolve().parent.parent
INPUTS = (
    "src", "prompts", "scenarios", "fakes", "facts", "plans", "rubrics", "baseline", "gold", "schemas", "sources",
    "requirements-dev.lock",
)  # fmt: skip
"""Files and folders of the checkout that decide what a command makes."""
KEPT = ROOT / ".pytest_cache" / "made"


class Made(NamedTuple):
    """What a command left: its folder, and what it printed."""

    folder: Path
    printed: str


def inputs_sha256(root: Path = ROOT) -> str:
    """One hash for the names and bytes of all inputs, and for the Python that reads them."""
    found = hashlib.sha256(sys.version.encode())
    for name in INPUTS:
        top = root / name
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file() and path.suffix != ".pyc":
                data = path.read_bytes()
                found.update(f"\0{path.relative_to(root)}\0{len(data)}\0".encode() + data)
    return found.hexdigest()


@cache
def _kept() -> Path:
    """The folder for what is made of the inputs as they are now."""
    here = KEPT / inputs_sha256()[:32]
    for other in KEPT.glob("*"):
        if other != here:
            shutil.rmtree(other, ignore_errors=True)
    here.mkdir(parents=True, exist_ok=True)
    return here


def key_of(command: tuple[str, ...]) -> str:
    """What tells one command from another: its words, the checkout it names files of, and the day it is run."""
    return hashlib.sha256(
        "\0".join([str(ROOT), os.environ.get("MEDICARE_EVAL_TODAY", ""), *command]).encode()
    ).hexdigest()[:32]


def made_once(command: tuple[str, ...], make: Callable[[Path], Made]) -> Made:
    """What `make` made for this command in the folder given to it, now or earlier, here or in another worker."""
    place = _kept() / key_of(command)
    done = place / "state"
    """Written last: without it, whoever made this was killed."""
    with place.with_suffix(".lock").open("wb") as lock, locked(lock):
        if not done.is_file():
            shutil.rmtree(place, ignore_errors=True)
            made = make(place / "out")
            (place / "printed").write_text(made.printed, encoding="utf-8")
            (place / "folder").write_text(str(made.folder.relative_to(place)), encoding="utf-8")
            done.write_text(_state(place / "out"), encoding="utf-8")
    assert done.read_text(encoding="utf-8") == _state(place / "out"), (
        f"a test changed what others read too, {place}: give it a copy of what `{' '.join(command)}` makes"
    )
    printed = (place / "printed").read_text(encoding="utf-8")
    return Made(place / (place / "folder").read_text(encoding="utf-8"), printed)


def _state(folder: Path) -> str:
    """Which files are there, how large, and when they were changed."""
    found = [(path, path.stat()) for path in sorted(folder.rglob("*")) if path.is_file()]
    return "\n".join(f"{path.relative_to(folder)} {stat.st_size} {stat.st_mtime_ns}" for path, stat in found)
