"""Scenario files: found, read strictly, and turned away with a sentence that names file, field and what is allowed."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from .canonical import StrictJSONError, loads, sha256
from .errors import InputError
from .schemas import PlannedScenario, Scenario

MAX_BYTES = 2_000_000
_BRANCHES = frozenset({"str", "int", "float", "bool", "AnyOf"})
"""How a validator names the sides of a union; no fields."""


def expand(arguments: list[str]) -> list[Path]:
    """Files, folders (searched for *.json) and globs -> files, each once, in the order given, folders sorted."""
    found: dict[Path, None] = {}
    for argument in arguments:
        try:
            matches = _matches(argument)
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
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise InputError(f"{path}: is larger than {MAX_BYTES:,} bytes; a scenario file is never that large.")
        text = data.decode("utf-8")
        loads(text)
        scenario = Scenario.model_validate_json(text)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text (byte {error.start}); save it as UTF-8.") from None
    except StrictJSONError as error:
        raise InputError(f"{path}: {error}; mend the file.") from None
    except ValidationError as error:
        raise InputError(f"{path}: {explain(error)}") from None
    return PlannedScenario(path=path.as_posix(), sha256=sha256(data), scenario=scenario)


def explain(error: ValidationError) -> str:
    """The first thing wrong, as a sentence: field, what, what is allowed; and how many more there are."""
    problems = error.errors(include_url=False)
    first = problems[0]
    field = _field(first["loc"])
    rest = f" ({len(problems) - 1} more after this one)" if len(problems) > 1 else ""
    return f"field {field}: {_what(first)}{rest}."


def _field(location: tuple[int | str, ...]) -> str:
    name = ""
    for part in location:
        if isinstance(part, int):
            name += f"[{part}]"
        elif part not in _BRANCHES and "[" not in part and part != "constrained-str":
            name += f".{part}" if name else part
    return name or "(whole file)"


def _what(problem: Any) -> str:
    kind, message, given = problem["type"], problem["msg"], problem.get("input")
    if kind == "missing":
        return "is missing; add it"
    if kind == "extra_forbidden":
        return "is not a field of this record; remove it or check its spelling"
    if kind == "literal_error":
        return f"{_short(given)} is not allowed; use {problem['ctx']['expected']}"
    if kind == "string_pattern_mismatch":
        return f"{_short(given)} is not an id: use letters, digits, - and _, 64 at most, D1, D2, ... being kept"
    if kind == "value_error":
        return str(problem["ctx"]["error"]).rstrip(".")
    return f"{message[0].lower()}{message[1:]}, but is {_short(given)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
