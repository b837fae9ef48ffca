"""Files that people write: read strictly, turned away with a sentence that names file, field and what is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from ..errors import InputError
from ..schemas import Record
from .strict_json import StrictJSONError, encode, loads

MAX_BYTES = 2_000_000
_BRANCHES = frozenset({"str", "int", "float", "bool", "AnyOf"})
"""How a validator names the sides of a union; no fields."""
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


def read_user_file(path: Path, kind: type[R]) -> tuple[bytes, R]:
    """A JSON file's bytes and the record it holds."""
    data = read_bytes(path)
    try:
        document = without_comments(loads(data.decode("utf-8")))
        return data, kind.model_validate_json(encode(document))
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text (byte {error.start}); save it as UTF-8.") from None
    except StrictJSONError as error:
        raise InputError(f"{path}: {error}; mend the file.") from None
    except ValidationError as error:
        raise InputError(f"{path}: {explain(error)}") from None


def without_comments(value: Any) -> Any:
    """The document less its comments: fields whose name begins with two slashes, anywhere."""
    if isinstance(value, dict):
        return {name: without_comments(inner) for name, inner in value.items() if not name.startswith("//")}
    return [without_comments(inner) for inner in value] if isinstance(value, list) else value


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
    kind, message, given = problem["type"], problem["msg"], _short(problem.get("input"))
    context = problem.get("ctx", {})
    if kind == "value_error":
        return str(context["error"]).rstrip(".")
    if kind == "string_pattern_mismatch" and "0,63" in context["pattern"]:
        return f"{given} is not an id: use letters, digits, - and _, 64 at most, D1, D2, ... being kept"
    said = {
        "missing": "is missing; add it",
        "extra_forbidden": "is not a field of this record; remove it or check its spelling",
        "literal_error": f"{given} is not allowed; use {context.get('expected')}",
        "string_pattern_mismatch": f"{given} does not have the right form",
    }
    return said.get(kind, f"{message[0].lower()}{message[1:]}, but is {given}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
