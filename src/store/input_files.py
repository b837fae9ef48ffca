"""Files that people write: read strictly; an error names the file, the field and what is allowed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, get_args

from pydantic import ValidationError

from ..errors import InputError, Problem
from ..schemas import Record
from .strict_json import StrictJSONError, encode, loads

MAX_BYTES = 2_000_000
SHOWN = 5
"""Problems of one file that an error names; the others are counted."""
_BRANCHES = frozenset({"str", "int", "float", "bool", "AnyOf"})
"""How a validator names the branches of a union; they are not fields."""
SAVE_AS_UTF8 = " Save it as UTF-8."
R = TypeVar("R", bound=Record)


def read_bytes(path: Path, limit: int = MAX_BYTES) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}). Check the path.") from None
    if len(data) > limit:
        raise InputError(f"{path} is larger than {limit:,} bytes, the limit for a file of this kind.")
    return data


class UserFile(NamedTuple, Generic[R]):
    """A JSON file's bytes, and the record in it."""

    data: bytes
    record: R


def read_user_file(path: Path, kind: type[R]) -> UserFile[R]:
    data = read_bytes(path)
    return UserFile(data, record_in(data, kind, path, prepared=without_comments))


def record_in(
    data: bytes,
    kind: type[R],
    where: object,
    *,
    prepared: Callable[[Any], Any] = lambda document: document,
    advice: str = SAVE_AS_UTF8,
) -> R:
    """The record in the bytes of a JSON document, read strictly. `advice` is for bytes that are not UTF-8."""
    text = text_in(data, where, advice)
    try:
        return kind.model_validate_json(encode(prepared(loads(text))))
    except StrictJSONError as error:
        raise InputError(f"{where}: {error}.") from None
    except ValidationError as error:
        raise InputError(f"{where}: {explain(error, kind)}") from None


def text_in(data: bytes, where: object, advice: str = SAVE_AS_UTF8) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{where} is not UTF-8 text (byte {error.start}).{advice}") from None


def without_comments(value: Any) -> Any:
    """The document without comments, which are fields whose names begin with two slashes."""
    if isinstance(value, dict):
        return {name: without_comments(inner) for name, inner in value.items() if not name.startswith("//")}
    return [without_comments(inner) for inner in value] if isinstance(value, list) else value


def explain(error: ValidationError, kind: type[Record]) -> str:
    """What is wrong with a document of this kind, in one sentence: each field, and what is allowed."""
    parts = [f"field {one.field}: {one.text}" if one.field else one.text for one in problems_of(error, kind)]
    return "; ".join(part.rstrip(".") for part in parts) + "."


def problems_of(error: ValidationError, kind: type[Record], *, table: str = "an object") -> list[Problem]:
    """The problems that a check found, one per field; `table` is what the file's format calls an object."""
    errors = error.errors(include_url=False)
    found: dict[str, Any] = {}
    for one in errors:
        if not _follows(one, errors):
            found.setdefault(_field(one["loc"]), one)
    problems = [Problem(f"{_what(one, kind, table)}.", field or None) for field, one in islice(found.items(), SHOWN)]
    more = len(found) - SHOWN
    return problems if more <= 0 else [*problems, Problem(f"and {more} more")]


def _follows(problem: Any, errors: Sequence[Any]) -> bool:
    """Whether a list is said to be too short only because one of its items is wrong."""
    place = problem["loc"]
    return problem["type"] == "too_short" and any(
        len(other["loc"]) > len(place) and other["loc"][: len(place)] == place for other in errors
    )


def _field(location: tuple[int | str, ...]) -> str:
    name = ""
    for part in location:
        if isinstance(part, int):
            name += f"[{part}]"
        elif not _is_branch(part):
            name += f".{part}" if name else part
    return name


def _is_branch(part: str) -> bool:
    return part in _BRANCHES or "[" in part or part == "constrained-str"


def _what(problem: Any, kind: type[Record], table: str) -> str:
    given, context = problem.get("input"), problem.get("ctx", {})
    if problem["type"] == "value_error":
        return str(context["error"]).rstrip(".")
    if problem["type"] == "extra_forbidden":
        return f"unknown field ({_meant(kind, problem['loc'])})"
    says = _words().get(_case(problem["type"], given, context))
    if says is None:
        message = problem["msg"]
        return f"{message[0].lower()}{message[1:]} (got {_short(given)})"
    values = {name: _number(value) for name, value in context.items()}
    return says.format(given=_short(given), quoted=_quoted(given), table=table, **values)


def _case(name: str, given: object, context: dict[str, Any]) -> str:
    """The key in `problem_words.json`: the validator's name of the problem, or one of ours where we say more."""
    if name in ("tuple_type", "list_type"):
        return "one_item" if isinstance(given, str) else "list_type"
    if context.get("min_length") == 1:
        return "empty"
    return "id" if "0,63" in context.get("pattern", "") else name


@cache
def _words() -> dict[str, str]:
    """What is said of a problem, by its key."""
    words: dict[str, str] = json.loads(Path(__file__).with_name("problem_words.json").read_text(encoding="utf-8"))
    return words


def _number(value: object) -> str:
    return f"{value:.0f}" if isinstance(value, float) and value.is_integer() else str(value)


def _quoted(value: object) -> str:
    return encode(str(value)[:60]).decode("utf-8")


def _meant(kind: type[Record], location: tuple[int | str, ...]) -> str:
    """The known field that an unknown one was probably meant to be."""
    *parents, name = location
    records = {kind}
    for part in parents:
        inner = {record for one in records if part in one.model_fields for record in _records(one, str(part))}
        records = inner or records  # an index, or the key of a mapping, leads no deeper
    known = [field for record in records for field in record.model_fields]
    close = get_close_matches(str(name), known, n=1)
    return f"did you mean {close[0]}?" if close else "remove it or check its spelling"


def _records(kind: type[Record], field: str) -> Iterator[type[Record]]:
    """The kinds of record in a field's type."""
    types: list[Any] = [kind.model_fields[field].annotation]
    for one in types:  # grows while it is read
        types.extend(get_args(one))
        if isinstance(one, type) and issubclass(one, Record):
            yield one


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
