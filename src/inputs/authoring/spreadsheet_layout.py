"""The sheets of a workbook of scenarios, as `spreadsheet_sheets.toml` has them, and how cells hold values."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path as FilePath
from typing import Any, get_args

from ...schemas import ConfirmedBy, Style
from ...store.strict_json import StrictJSONError, encode, loads

# How a value of a scenario is written in one cell of a workbook, and read back.
#
# A form that cannot show a value exactly is not used for it: the value then goes into the row's JSON column.

Cell = str | int | float
MAX_CELL = 32_767
"""The most characters that a cell of a workbook can hold."""
_NOT_PLAIN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
"""What a workbook does not keep: control characters, and what Excel reads as one (_x000D_)."""
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,10})?")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_OR = re.compile(r"\s+or\s+")


@dataclass(frozen=True)
class Form:
    """One way to write a value. `read` raises ValueError with what is expected; `show` raises if it cannot."""

    show: Callable[[Any], Cell]
    read: Callable[[str], Any]
    numbers: bool = False
    """Whether a cell may hold a number."""
    dates: bool = False
    """Whether a cell may hold a date."""


def shown(form: Form, value: Any) -> Cell | None:
    """The cell that stands for exactly this value; None if there is none."""
    try:
        cell = form.show(value)
        text = str(cell)
        same = bool(text) and encode(form.read(text)) == encode(value)
    except (ValueError, TypeError, AttributeError, KeyError):
        return None
    return cell if same and len(text) <= MAX_CELL and not _NOT_PLAIN.search(text) else None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _show_number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    return int(value) if float(value).is_integer() else value


def _read_whole(text: str) -> int | float:
    number = _read_amount(text)
    return int(number) if number.is_integer() else number


def _read_amount(text: str) -> float:
    if not _NUMBER.fullmatch(text.strip()):
        raise ValueError(f"must be a number (got {text[:60]!r})")
    return float(text)


def _read_date(text: str) -> str:
    try:
        return date.fromisoformat(text.strip()).isoformat()
    except ValueError:
        raise ValueError(f"must be a date such as 2026-01-31 (got {text[:60]!r})") from None


def _read_lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _show_points(points: Any) -> str:
    return "; ".join(one if isinstance(one, str) else " or ".join(one["any_of"]) for one in points)


def _read_points(text: str) -> list[Any]:
    points: list[Any] = []
    for part in _parts(text):
        facts = [one.strip() for one in _OR.split(part)]
        for one in facts:
            if "," in one:
                raise ValueError(f"separate points with ; (got {one[:60]!r})")
            if not _NAME.fullmatch(one):
                raise ValueError(f"{one[:60]!r} is not a fact id; write points as F1; F2; F3 or F4")
        points.append({"any_of": facts} if len(facts) > 1 else facts[0])
    return points


def _parts(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"[;\n]", text) if part.strip()]


def _show_ids(ids: Any) -> str:
    return "; ".join(_text(one) for one in ids)


def _read_ids(text: str) -> list[str]:
    for one in _parts(text):
        if "," in one:
            raise ValueError(f"separate ids with ; (got {one[:60]!r})")
        if not _NAME.fullmatch(one):
            raise ValueError(f"{one[:60]!r} is not an id; write ids as F1; F2; F3")
    return _parts(text)


def _read_years(text: str) -> list[int]:
    if not all(part.isdecimal() and part.isascii() and len(part) == 4 for part in _parts(text)):
        raise ValueError("must be plan years such as 2026; 2027")
    return [int(part) for part in _parts(text)]


def _show_details(details: Any) -> str:
    return "\n".join(f"{name}: {_text(value)}" for name, value in details.items())


def _named(text: str) -> dict[str, str]:
    """The lines of a cell, each `name: value`."""
    found: dict[str, str] = {}
    for line in _read_lines(text):
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not colon or not _NAME.fullmatch(name) or not value:
            raise ValueError(f"{line[:60]!r} must have the form name: value, one to a line")
        if name in found:
            raise ValueError(f"{name} is there twice")
        found[name] = value
    return found


def _show_choices(choices: Any) -> str:
    return "\n".join(f"{name}: {' | '.join(values)}" for name, values in choices.items())


def _read_choices(text: str) -> dict[str, list[str]]:
    return {name: [one.strip() for one in values.split("|")] for name, values in _named(text).items()}


def _show_yes(value: Any) -> str:
    if not isinstance(value, bool):
        raise TypeError
    return "yes" if value else "no"


def _read_yes(text: str) -> bool:
    if text.strip().lower() not in ("yes", "no"):
        raise ValueError(f"must be yes or no (got {text[:60]!r})")
    return text.strip().lower() == "yes"


LINES = Form(lambda values: "\n".join(map(_text, values)), _read_lines)
FORMS = {
    "text": Form(_text, str.strip),
    "date": Form(_text, _read_date, dates=True),
    "whole": Form(_show_number, _read_whole, numbers=True),
    "amount": Form(_show_number, _read_amount, numbers=True),
    "lines": LINES,
    "points": Form(_show_points, _read_points),
    "ids": Form(_show_ids, _read_ids),
    "years": Form(lambda years: "; ".join(map(str, years)), _read_years, numbers=True),
    "details": Form(_show_details, _named),  # a number would look like a text, so it goes into the JSON column
    "choices": Form(_show_choices, _read_choices),
    "groups": Form(
        lambda groups: "\n".join(map(_show_ids, groups)), lambda text: [_read_ids(line) for line in _read_lines(text)]
    ),
    "yes": Form(_show_yes, _read_yes),
}
"""By their names in `spreadsheet_sheets.toml`."""


def show_json(value: Any) -> str:
    """JSON in which everything that a workbook does not keep is escaped."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _NOT_PLAIN.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def read_json(text: str) -> dict[str, Any]:
    try:
        value = loads(text)
    except StrictJSONError as error:
        raise ValueError(str(error)) from None
    if not isinstance(value, dict):
        raise ValueError('must be a JSON object such as {"name": "value"}')  # noqa: TRY004 - the form's one error
    return value


# The sheets and their columns.

Path = tuple[str, ...]
"""A field of a record, such as ("persona", "age")."""
SEVERITIES = ("low", "medium", "high")


@dataclass(frozen=True)
class SheetColumn:
    header: str
    path: Path
    help: str
    form: Form
    width: int
    choices: tuple[str, ...]
    read_only: bool
    """Shown for reading; not read back."""


@dataclass(frozen=True)
class Sheet:
    name: str
    about: str
    columns: tuple[SheetColumn, ...]

    def column(self, path: Path) -> SheetColumn:
        return next(column for column in self.columns if column.path == path)


SCENARIO = ("scenario_id",)
LIBRARY_ID = ("library",)
STATEMENT = ("statement",)
REST: Path = ()
"""The JSON column: every field of the row that has no other cell."""
README = "Read me"
_CHOICES = {
    "style": get_args(Style),
    "severity": SEVERITIES,
    "confirmed_by": get_args(ConfirmedBy),
    "yes": ("yes", "no"),
}


def _column(given: dict[str, Any]) -> SheetColumn:
    return SheetColumn(
        header=given["header"],
        path=tuple(filter(None, given["path"].split("."))),
        help=given.get("help", ""),
        form=FORMS[given.get("form", "text")],
        width=given.get("width", 18),
        choices=_CHOICES.get(given.get("choices", ""), ()),
        read_only=given.get("read_only", False),
    )


_FILE = tomllib.loads(FilePath(__file__).with_name("spreadsheet_sheets.toml").read_text(encoding="utf-8"))
READ_ME = tuple(_FILE["read_me"])
SCENARIOS, TURNS, FACTS, CLAIMS, VARIANTS, LIBRARY = (
    Sheet(one["name"], one["about"], tuple(map(_column, one["columns"]))) for one in _FILE["sheets"]
)
EDITED = SCENARIOS, TURNS, FACTS, CLAIMS, VARIANTS
"""The sheets that are read back."""
