"""The sheets of a workbook of scenarios: their columns, and what each is for, as `spreadsheet_sheets.toml` has them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, get_args

from ..schemas import ConfirmedBy, Style
from . import spreadsheet_forms as forms
from .spreadsheet_forms import Form

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
        form=getattr(forms, given.get("form", "text").upper()),
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
