"""Exported tables as pandas data frames, for notebooks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import storage
from ..errors import InputError
from ..trials.columns import Cells, DataTable, Kind
from .tables import TABLES, Exported, run_rows, trial_rows
from .writers import optional

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]

TABLES_BY_NAME = {name: table for table in TABLES for name in (table.name, f"{table.name}s")}
"""Singular and plural: `trial` and `trials`."""
_TYPES: dict[Kind, str] = {
    "text": "string",
    "category": "category",
    "reason": "category",
    "integer": "Int64",
    "number": "Float64",
    "flag": "boolean",
}


def to_frame(folder: Path, table: str) -> pandas.DataFrame:
    """One table of a run, complete or not, as a data frame.

    Integers, numbers and yes/no columns are nullable, so a missing value is `pandas.NA` and its reason is in the column
    `<name>_missing`. Categories have all their possible values.

    Args:
        folder: A run folder.
        table: run, trial, judge, turn, claim, verdict, citation, question, dollar or counselor; the plural works too.

    Raises:
        InputError: Not a run folder, or an unknown table.
        ConfigError: pandas is not installed.
        IntegrityError: The results were changed after they were written.
    """
    if table not in TABLES_BY_NAME:
        known = ", ".join(one.name for one in TABLES)
        raise InputError(f"{table[:40]!r} is not a table of a run. Use {known}.")
    frames = optional("pandas")
    wanted = TABLES_BY_NAME[table]
    listed = _rows(folder, wanted)
    columns: dict[str, Any] = {}
    for column in wanted.columns:
        kind: Any = _TYPES[column.kind]
        if kind == "category":
            kind = frames.CategoricalDtype(list(column.values))
        columns[column.name] = frames.Series([row[column.name] for row in listed], dtype=kind)
    frame: pandas.DataFrame = frames.DataFrame(columns)
    return frame


def _rows(folder: Path, wanted: DataTable[Any]) -> list[Cells]:
    manifest = storage.read_manifest(folder)
    about = Exported.of(manifest)
    results = storage.StoredResults(folder, manifest, fast=True)
    listed = [row for result in results for table, row in trial_rows(result, about) if table is wanted]
    return listed + [row for table, row in run_rows(manifest, results, about) if table is wanted]
