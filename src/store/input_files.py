"""Files that people write: read strictly; an error names the file, the field and what is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import ValidationError

from ..errors import InputError
from ..schemas import Record
from .strict_json import StrictJSONError, encode, loads

MAX_BYTES = 2_000_000
_BRANCHES = frozenset({"str", "int", "float", "bool", "AnyOf"})
"""How a validator names the branches of a union; they are not fields."""
R = TypeVar("R", bound=Record)


def read_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}). Check the path.") from None
    if len(data) > MAX_BYTES:
        raise InputError(f"{path} is larger than {MAX_BYTES:,} bytes, the limit for a file of this kind.")
    return data


class UserFile(NamedTuple, Generic[R]):
    """A JSON file's bytes, and the record in it."""

    data: bytes
    record: R


def read_user_file(path: Path, kind: type[R]) -> UserFile[R]:
    data = read_bytes(path)
    try:
        document = without_comments(loads(data.decode("utf-8")))
        return UserFile(data, kind.model_validate_json(encode(document)))
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start}). Save it as UTF-8.") from None
    except StrictJSONError as error:
        raise InputError(f"{path}: {error}.") from None
    except ValidationError as error:
        raise InputError(f"{path}: {explain(error)}") from None


def without_comments(value: Any) -> Any:
    """The document without comments, which are fields whose names begin with two slashes."""
    if isinstance(value, dict):
        return {name: without_comments(inner) for name, inner in value.items() if not name.startswith("//")}
    return [without_comments(inner) for inner in value] if isinstance(value, list) else value


def explain(error: ValidationError) -> str:
    """The first problem as a sentence (field, what is wrong, what is allowed), and how many more there are."""
    problems = [problem for problem in error.errors(include_url=False) if not _follows(problem, error)]
    first, more = problems[0], len(problems) - 1
    field = _field(first["loc"])
    rest = f" (and {more} more {'problem' if more == 1 else 'problems'})" if more else ""
    return f"{f'field {field}: ' if field else ''}{_what(first)}{rest}."


def _follows(problem: Any, error: ValidationError) -> bool:
    """Whether a list is said to be too short only because one of its items is wrong."""
    place = problem["loc"]
    inner = (other["loc"] for other in error.errors() if len(other["loc"]) > len(place))
    return problem["type"] == "too_short" and any(other[: len(place)] == place for other in inner)


def _field(location: tuple[int | str, ...]) -> str:
    name = ""
    for part in location:
        if isinstance(part, int):
            name += f"[{part}]"
        elif part not in _BRANCHES and "[" not in part and part != "constrained-str":
            name += f".{part}" if name else part
    return name


def _what(problem: Any) -> str:
    kind, message, given = problem["type"], problem["msg"], _short(problem.get("input"))
    context = problem.get("ctx", {})
    if kind == "value_error":
        return str(context["error"]).rstrip(".")
    if kind == "string_pattern_mismatch" and "0,63" in context["pattern"]:
        return f"{given} is not an id; use up to 64 letters, digits, - and _ (D1, D2, ... are reserved)"
    known = {
        "missing": "required but missing",
        "extra_forbidden": "unknown field; remove it or check its spelling",
        "literal_error": f"{given} is not allowed; use {context.get('expected')}",
        "string_pattern_mismatch": f"{given} has the wrong format",
    }
    return known.get(kind, f"{message[0].lower()}{message[1:]} (got {given})")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
