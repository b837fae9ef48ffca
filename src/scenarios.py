"""Scenario files: found, read strictly, and turned away with a sentence that names file, field and what is allowed."""

from __future__ import annotations

import glob
from pathlib import Path

from .canonical import sha256
from .errors import InputError
from .schemas import PlannedScenario, Scenario
from .userfiles import read_user_file


def expand(arguments: list[str]) -> list[Path]:
    """Files, folders (searched for *.json) and globs -> files, each once, in the order given, folders sorted."""
    found: dict[Path, None] = {}
    for argument in arguments:
        try:
            matches = _matches(argument) if argument.strip() else []
        except (OSError, ValueError):
            matches = []
        if not matches:
            shown = repr(argument[:80])[1:-1]
            raise InputError(f"{shown}: no scenario file is there; give a .json file, a folder or a glob.")
        found.update(dict.fromkeys(matches))
    return list(found)


def _matches(argument: str) -> list[Path]:
    path = Path(argument)
    if path.is_dir():
        return sorted(path.rglob("*.json"))
    if path.is_file():
        return [path]
    found = glob.glob(argument, recursive=True)  # noqa: PTH207 - takes absolute patterns, Path.glob does not
    return sorted(path for path in map(Path, found) if path.is_file())


def load_scenarios(arguments: list[str]) -> tuple[PlannedScenario, ...]:
    planned = tuple(load_scenario(path) for path in expand(arguments))
    by_id: dict[str, str] = {}
    for one in planned:
        other = by_id.setdefault(one.scenario.scenario_id, one.path)
        if other != one.path:
            raise InputError(
                f"{one.path}: field scenario_id: {one.scenario.scenario_id!r} is also that of {other}; change one."
            )
    return planned


def load_scenario(path: Path) -> PlannedScenario:
    if not str(path).isprintable():  # a manifest is text, and so is every message that names the file
        raise InputError(f"{str(path)!r}: this file name is not printable text; rename the file.")
    data, scenario = read_user_file(path, Scenario)
    return PlannedScenario(path=path.as_posix(), sha256=sha256(data), scenario=scenario)
