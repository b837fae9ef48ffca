"""Writers of CSV, JSON Lines and Parquet files. Each writes as rows arrive and holds only a batch.

Packages that only some formats need are imported when such a file is started; without them the error names the package.
"""

from __future__ import annotations

import csv
import json
import re
from abc import ABC, abstractmethod
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TextIO

from ..errors import ConfigError
from ..text.escape import defused
from ..trials.columns import Cell, Cells, DataTable
from .tables import TABLES, TEXT_CUT, TEXTS

BATCH_ROWS = 5_000
BATCH_CHARACTERS = 8_000_000
"""Rows go to the Parquet writer when there are this many, or this much text."""
EXCEL_UNITS = 32_767
"""The longest text that fits in a cell of Excel, in UTF-16 units, which is how Excel counts."""
CUT_NOTE = f" … [cut here; the whole text is in {TEXTS}]"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def optional(module: str) -> Any:
    """Import a package that only some formats need; a ConfigError says how to install it."""
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        name = package.replace("_", "-")  # the package itself: no public index has this project under its name
        raise ConfigError(f"{package} is not installed. Run: python -m pip install {name}") from None


class Sink(Protocol):
    """Accepts rows; `close` returns the files written."""

    def add(self, table: DataTable[Any], row: Cells) -> None: ...

    def close(self) -> list[Path]: ...

    def abandon(self) -> None:
        """Close open files after an error; what was written will be deleted."""


def shown(text: str) -> str:
    """Text for a CSV cell: no formula, no terminal escape, no change of text direction."""
    return defused(text if text.isprintable() else _CONTROL.sub(_escaped, text))


def _escaped(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


def fits_excel(text: str) -> bool:
    """Whether Excel can hold a text in one cell."""
    return 2 * len(text) <= EXCEL_UNITS or len(text.encode("utf-16-le")) <= 2 * EXCEL_UNITS


def _cut(text: str) -> str:
    """The start of a text, as much as fits in a cell with a note that says where the rest is."""
    room = 2 * (EXCEL_UNITS - len(CUT_NOTE))
    return text.encode("utf-16-le")[:room].decode("utf-16-le", "ignore") + CUT_NOTE


def _csv_cell(value: Cell) -> Cell:
    if isinstance(value, str):
        return shown(value)
    return str(value).lower() if isinstance(value, bool) else value


class _TextSink(ABC):
    """One text file per table, opened at the start, so that an empty table gets a file too."""

    suffix = ""

    def __init__(self, folder: Path) -> None:
        self._paths = {table.name: folder / f"{table.name}.{self.suffix}" for table in TABLES}
        self._open: dict[str, TextIO] = {}
        for name, path in self._paths.items():
            self._open[name] = path.open("x", encoding="utf-8", newline="")

    @abstractmethod
    def add(self, table: DataTable[Any], row: Cells) -> None: ...

    def close(self) -> list[Path]:
        self.abandon()
        return list(self._paths.values())

    def abandon(self) -> None:
        for file in self._open.values():
            file.close()


class CsvSink(_TextSink):
    """CSV files that Excel can open. Texts too long for one of its cells are cut, and are whole in a file beside."""

    suffix = "csv"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._whole_texts = folder / TEXTS
        self._writers = {name: csv.writer(file, lineterminator="\n") for name, file in self._open.items()}
        for table in TABLES:
            self._writers[table.name].writerow([column.name for column in (*table.columns, TEXT_CUT)])

    def add(self, table: DataTable[Any], row: Cells) -> None:
        cells: list[Cell] = []
        cut = False
        for column in table.columns:
            cell = _csv_cell(row[column.name])
            if isinstance(cell, str) and not fits_excel(cell):
                self._keep_whole(table, row, column.name)
                cell = _cut(cell)
                cut = True
            cells.append(cell)
        self._writers[table.name].writerow([*cells, _csv_cell(cut)])

    def _keep_whole(self, table: DataTable[Any], row: Cells, column: str) -> None:
        if TEXTS not in self._open:
            self._open[TEXTS] = self._whole_texts.open("x", encoding="utf-8", newline="")
            self._paths[TEXTS] = self._whole_texts
        keys = {key: row[key] for key in table.keys}
        whole = {"table": table.name, "column": column, **keys, "text": row[column]}
        self._open[TEXTS].write(json.dumps(whole, ensure_ascii=False) + "\n")


class JsonlSink(_TextSink):
    suffix = "jsonl"

    def add(self, table: DataTable[Any], row: Cells) -> None:
        ordered = {column.name: row[column.name] for column in table.columns}
        self._open[table.name].write(json.dumps(ordered, ensure_ascii=False, allow_nan=False) + "\n")


class Batch:
    """Rows of one table that are not written yet."""

    def __init__(self, table: DataTable[Any]) -> None:
        self.table = table
        self.rows: list[Cells] = []
        self.characters = 0
        self.widths: dict[str, int] = {}

    def add(self, row: Cells) -> None:
        self.rows.append(row)
        for name, value in row.items():
            if isinstance(value, str):
                self.characters += len(value)
                if len(value) > self.widths.get(name, 0):
                    self.widths[name] = len(value)

    def is_full(self, rows: int, characters: int) -> bool:
        return len(self.rows) >= rows or self.characters >= characters

    def is_wide(self, cells: int) -> bool:
        """Whether rows times widths would be more than this, if all rows were as wide as the widest."""
        return (len(self.rows) + 1) * sum(self.widths.values()) > cells


class ParquetSink:
    def __init__(self, folder: Path) -> None:
        self._arrow = optional("pyarrow")
        parquet = optional("pyarrow.parquet")
        self._paths = {table.name: folder / f"{table.name}.parquet" for table in TABLES}
        self._schemas = {table.name: self._schema(table) for table in TABLES}
        self._batches = {table.name: Batch(table) for table in TABLES}
        self._writers = {
            name: parquet.ParquetWriter(path, self._schemas[name], compression="zstd")
            for name, path in self._paths.items()
        }

    def _schema(self, table: DataTable[Any]) -> Any:
        arrow = self._arrow
        kinds = {"integer": arrow.int64(), "number": arrow.float64(), "flag": arrow.bool_()}
        fields = [
            arrow.field(
                column.name,
                kinds.get(column.kind, arrow.string()),
                nullable=bool(column.absent or column.reasons),
                metadata={"meaning": column.meaning},
            )
            for column in table.columns
        ]
        return arrow.schema(fields, metadata={"table": table.name, "meaning": table.meaning})

    def add(self, table: DataTable[Any], row: Cells) -> None:
        batch = self._batches[table.name]
        batch.add(row)
        if batch.is_full(BATCH_ROWS, BATCH_CHARACTERS):
            self._write(batch)

    def _write(self, batch: Batch) -> None:
        name = batch.table.name
        if batch.rows:
            made = self._arrow.RecordBatch.from_pylist(batch.rows, schema=self._schemas[name])
            self._writers[name].write_batch(made)
        self._batches[name] = Batch(batch.table)

    def close(self) -> list[Path]:
        for batch in list(self._batches.values()):
            self._write(batch)
        self.abandon()
        return list(self._paths.values())

    def abandon(self) -> None:
        for writer in self._writers.values():
            writer.close()
