"""Writers of CSV, JSON Lines, Parquet, Stata and SPSS files. Each writes as rows arrive and holds only a batch.

Packages that only some formats need are imported when such a file is started; without them the error names the extra.
"""

from __future__ import annotations

import csv
import json
import re
from abc import ABC, abstractmethod
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TextIO

from ...errors import ConfigError
from ...text.escape import defused
from .tables import (
    TABLES,
    TEXT_CUT,
    Cell,
    Column,
    Row,
    Table,
)

BATCH_ROWS = 5_000
BATCH_CHARACTERS = 8_000_000
"""Rows go to the Parquet writer when there are this many, or this much text."""
PIECE_ROWS = 100_000
PIECE_CHARACTERS = 64_000_000
PIECE_CELLS = 1_000_000_000
"""Stata and SPSS files are written in one go, so a large table is split; the last limit is for rows times widths."""
SPSS_BYTES = 32_767
"""The longest text that fits in an SPSS cell."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def optional(module: str, extra: str) -> Any:
    """Import a package of an extra; a ConfigError says how to install it."""
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise ConfigError(f"{package} is not installed. Run: pip install 'medicare-eval[{extra}]'") from None


class Sink(Protocol):
    """Accepts rows; `close` returns the files written."""

    def add(self, table: Table, row: Row) -> None: ...

    def close(self) -> list[Path]: ...

    def abandon(self) -> None:
        """Close open files after an error; what was written will be deleted."""


def shown(text: str) -> str:
    """Text for a CSV cell: no formula, no terminal escape, no change of text direction."""
    return defused(text if text.isprintable() else _CONTROL.sub(_escaped, text))


def _escaped(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


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
    def add(self, table: Table, row: Row) -> None: ...

    def close(self) -> list[Path]:
        self.abandon()
        return list(self._paths.values())

    def abandon(self) -> None:
        for file in self._open.values():
            file.close()


class CsvSink(_TextSink):
    suffix = "csv"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._writers = {name: csv.writer(file, lineterminator="\n") for name, file in self._open.items()}
        for table in TABLES:
            self._writers[table.name].writerow([column.name for column in table.columns])

    def add(self, table: Table, row: Row) -> None:
        self._writers[table.name].writerow([_csv_cell(row[column.name]) for column in table.columns])


class JsonlSink(_TextSink):
    suffix = "jsonl"

    def add(self, table: Table, row: Row) -> None:
        ordered = {column.name: row[column.name] for column in table.columns}
        self._open[table.name].write(json.dumps(ordered, ensure_ascii=False, allow_nan=False) + "\n")


class _Batch:
    """Rows of one table that are not written yet."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.rows: list[Row] = []
        self.characters = 0
        self.widths: dict[str, int] = {}

    def add(self, row: Row) -> None:
        self.rows.append(row)
        for name, value in row.items():
            if isinstance(value, str):
                self.characters += len(value)
                if len(value) > self.widths.get(name, 0):
                    self.widths[name] = len(value)

    def is_full(self, rows: int, characters: int) -> bool:
        return len(self.rows) >= rows or self.characters >= characters

    def is_wide(self) -> bool:
        """Whether the file would get too large, since all rows are stored as wide as the widest."""
        return (len(self.rows) + 1) * sum(self.widths.values()) > PIECE_CELLS


class ParquetSink:
    def __init__(self, folder: Path) -> None:
        self._arrow = optional("pyarrow", "export")
        parquet = optional("pyarrow.parquet", "export")
        self._paths = {table.name: folder / f"{table.name}.parquet" for table in TABLES}
        self._schemas = {table.name: self._schema(table) for table in TABLES}
        self._batches = {table.name: _Batch(table) for table in TABLES}
        self._writers = {
            name: parquet.ParquetWriter(path, self._schemas[name], compression="zstd")
            for name, path in self._paths.items()
        }

    def _schema(self, table: Table) -> Any:
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

    def add(self, table: Table, row: Row) -> None:
        batch = self._batches[table.name]
        batch.add(row)
        if batch.is_full(BATCH_ROWS, BATCH_CHARACTERS):
            self._write(batch)

    def _write(self, batch: _Batch) -> None:
        name = batch.table.name
        if batch.rows:
            made = self._arrow.RecordBatch.from_pylist(batch.rows, schema=self._schemas[name])
            self._writers[name].write_batch(made)
        self._batches[name] = _Batch(batch.table)

    def close(self) -> list[Path]:
        for batch in list(self._batches.values()):
            self._write(batch)
        self.abandon()
        return list(self._paths.values())

    def abandon(self) -> None:
        for writer in self._writers.values():
            writer.close()


class _StatsSink(ABC):
    """Files of a statistics package, by pyreadstat: numbers with labels, and a code per kind of missing value."""

    suffix = ""
    added: tuple[Column, ...] = ()

    def __init__(self, folder: Path) -> None:
        self._pandas = optional("pandas", "export")
        self._readstat = optional("pyreadstat", "export")
        self._folder = folder
        self._batches = {table.name: _Batch(table) for table in TABLES}
        self._paths: list[Path] = []
        self._pieces = dict.fromkeys(self._batches, 0)

    def add(self, table: Table, row: Row) -> None:
        batch = self._batches[table.name]
        batch.add(row)
        if batch.is_full(PIECE_ROWS, PIECE_CHARACTERS) or batch.is_wide():
            self._write(batch)

    def close(self) -> list[Path]:
        for batch in list(self._batches.values()):
            if batch.rows or not self._pieces[batch.table.name]:
                self._write(batch)
        return self._paths

    def abandon(self) -> None:
        self._batches.clear()

    def _write(self, batch: _Batch) -> None:
        table = batch.table
        self._pieces[table.name] += 1
        number = self._pieces[table.name]
        path = self._folder / (f"{table.name}.{self.suffix}" if number == 1 else f"{table.name}.{number}.{self.suffix}")
        columns = (*table.columns, *self.added)
        frame = self._pandas.DataFrame({column.name: self._series(column, batch.rows) for column in columns})
        labels = {column.name: self._labels(column) for column in columns if self._labels(column)}
        try:
            self._save(frame, path, table, labels)
        except (self._readstat.ReadstatError, self._readstat.PyreadstatError) as error:
            raise OSError(f"{path.name}: {error}") from None
        self._paths.append(path)
        self._batches[table.name] = _Batch(table)

    def _series(self, column: Column, rows: list[Row]) -> Any:
        if column.kind in ("text", "reason"):
            cells: list[Any] = [self._text(row[column.name]) for row in rows]
            return self._pandas.Series(cells, dtype=object)
        codes = {value: number for number, value in enumerate(column.values, 1)}
        cells = [self._number(column, codes, row) for row in rows]
        mixed = any(isinstance(cell, str) for cell in cells)
        return self._pandas.Series(cells, dtype=object if mixed else "float64" if column.kind == "number" else "int32")

    def _number(self, column: Column, codes: dict[str, int], row: Row) -> Any:
        value = row.get(column.name) if column is not TEXT_CUT else self._is_cut(row)
        if value is None:
            return self._missing(column, row)
        if column.kind == "category":
            return codes[str(value)]
        return float(value) if column.kind == "number" else int(value)

    def _labels(self, column: Column) -> dict[Any, str]:
        if column.kind == "flag":
            found: dict[Any, str] = {0: "no", 1: "yes"}
        else:
            found = {n: value for n, value in enumerate(column.values, 1) if column.kind == "category"}
        return found | {self._code(one.name, column): one.name for one in column.missing}

    def _missing(self, column: Column, row: Row) -> Any:
        return self._code(column.why_empty(row).name, column)

    def _text(self, value: Cell) -> str:
        return "" if value is None else str(value).replace("\0", "␀")

    def _is_cut(self, row: Row) -> bool:
        return False

    @abstractmethod
    def _code(self, name: str, column: Column) -> Any:
        """The code of a missing value."""

    @abstractmethod
    def _save(self, frame: Any, path: Path, table: Table, labels: dict[str, dict[Any, str]]) -> None:
        """Write a table with its labels."""


class StataSink(_StatsSink):
    suffix = "dta"

    def _code(self, name: str, column: Column) -> Any:
        return next(one.stata for one in column.missing if one.name == name)

    def _save(self, frame: Any, path: Path, table: Table, labels: dict[str, dict[Any, str]]) -> None:
        missing = {c.name: [one.stata for one in c.missing] for c in table.columns if c.missing}
        self._readstat.write_dta(
            frame,
            path,
            file_label=f"medicare-eval: {table.name}",
            column_labels={column.name: column.meaning[:80] for column in table.columns},
            version=14,
            variable_value_labels=labels,
            missing_user_values=missing,
        )


class SpssSink(_StatsSink):
    suffix = "sav"
    added = (TEXT_CUT,)

    def _code(self, name: str, column: Column) -> Any:
        code = next(one.spss for one in column.missing if one.name == name)
        return float(code) if column.kind == "number" else code

    def _text(self, value: Cell) -> str:
        encoded = super()._text(value).encode("utf-8")
        return encoded[:SPSS_BYTES].decode("utf-8", "ignore")

    def _is_cut(self, row: Row) -> bool:
        return any(
            isinstance(cell, str) and len(_StatsSink._text(self, cell).encode()) > SPSS_BYTES for cell in row.values()
        )

    def _save(self, frame: Any, path: Path, table: Table, labels: dict[str, dict[Any, str]]) -> None:
        columns = (*table.columns, *self.added)
        ranges = {
            c.name: [{"lo": min(one.spss for one in c.missing), "hi": max(one.spss for one in c.missing)}]
            for c in columns
            if c.missing
        }
        measures = {"integer": "scale", "number": "scale"}
        self._readstat.write_sav(
            frame,
            path,
            file_label=f"medicare-eval: {table.name}",
            column_labels={column.name: column.meaning[:250] for column in columns},
            row_compress=True,
            variable_value_labels=labels,
            missing_ranges=ranges,
            variable_measure={column.name: measures.get(column.kind, "nominal") for column in columns},
        )


SINKS: dict[str, type[CsvSink | JsonlSink | ParquetSink | StataSink | SpssSink]] = {
    "csv": CsvSink,
    "jsonl": JsonlSink,
    "parquet": ParquetSink,
    "dta": StataSink,
    "sav": SpssSink,
}
