"""Writers of CSV, JSON Lines, Parquet, Stata and SPSS files. Each writes as rows arrive and holds only a batch.

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
from ..trials.columns import Cell, Cells, DataColumn, DataTable
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


class BatchSink(ABC):
    """Holds the rows of each table until there are many."""

    def __init__(self) -> None:
        self._batches = {table.name: Batch(table) for table in TABLES}

    def add(self, table: DataTable[Any], row: Cells) -> None:
        batch = self._batches[table.name]
        batch.add(row)
        if self._is_full(batch):
            self._write(batch)
            self._batches[table.name] = Batch(table)

    @abstractmethod
    def _is_full(self, batch: Batch) -> bool: ...

    @abstractmethod
    def _write(self, batch: Batch) -> None: ...


class ParquetSink(BatchSink):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._arrow = optional("pyarrow")
        parquet = optional("pyarrow.parquet")
        self._paths = {table.name: folder / f"{table.name}.parquet" for table in TABLES}
        self._schemas = {table.name: self._schema(table) for table in TABLES}
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

    def _is_full(self, batch: Batch) -> bool:
        return batch.is_full(BATCH_ROWS, BATCH_CHARACTERS)

    def _write(self, batch: Batch) -> None:
        if batch.rows:
            name = batch.table.name
            made = self._arrow.RecordBatch.from_pylist(batch.rows, schema=self._schemas[name])
            self._writers[name].write_batch(made)

    def close(self) -> list[Path]:
        for batch in self._batches.values():
            self._write(batch)
        self.abandon()
        return list(self._paths.values())

    def abandon(self) -> None:
        for writer in self._writers.values():
            writer.close()


# Stata and SPSS files: numbers with labels, and a code per kind of missing value. A file is written in one go by
# pyreadstat, so a large table is split into several.

PIECE_ROWS = 100_000
PIECE_CHARACTERS = 64_000_000
PIECE_CELLS = 1_000_000_000
"""When a piece is written; the last limit is for rows times widths, since all rows are as wide as the widest."""
SPSS_BYTES = 32_767
"""The longest text that fits in an SPSS cell."""


class StatsSink(BatchSink):
    """Files of a statistics package."""

    suffix = ""
    added: tuple[DataColumn[Any], ...] = ()

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._pandas = optional("pandas")
        self._readstat = optional("pyreadstat")
        self._folder = folder
        self._paths: list[Path] = []
        self._pieces = dict.fromkeys(self._batches, 0)

    def _is_full(self, batch: Batch) -> bool:
        return batch.is_full(PIECE_ROWS, PIECE_CHARACTERS) or batch.is_wide(PIECE_CELLS)

    def close(self) -> list[Path]:
        for batch in self._batches.values():
            if batch.rows or not self._pieces[batch.table.name]:
                self._write(batch)
        return self._paths

    def abandon(self) -> None:
        self._batches.clear()

    def _write(self, batch: Batch) -> None:
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

    def _series(self, column: DataColumn[Any], rows: list[Cells]) -> Any:
        if column.kind in ("text", "reason"):
            cells: list[Any] = [self._text(row[column.name]) for row in rows]
            return self._pandas.Series(cells, dtype=object)
        codes = {value: number for number, value in enumerate(column.values, 1)}
        cells = [self._number(column, codes, row) for row in rows]
        letters = sorted({cell for cell in cells if isinstance(cell, str)})
        if not letters:
            return self._pandas.Series(cells, dtype="float64" if column.kind == "number" else "int32")
        # If the first hundred cells are letters, pyreadstat takes the column for text. For a categorical column it
        # looks at the categories instead, so the numbers go first there.
        numbers = sorted({cell for cell in cells if not isinstance(cell, str)})
        categories = self._pandas.Index([*numbers, *letters], dtype=object)
        return self._pandas.Series(self._pandas.Categorical(cells, categories=categories))

    def _number(self, column: DataColumn[Any], codes: dict[str, int], row: Cells) -> Any:
        value = row.get(column.name) if column is not TEXT_CUT else self._is_cut(row)
        if value is None:
            return self._missing(column, row)
        if column.kind == "category":
            return codes[str(value)]
        return float(value) if column.kind == "number" else int(value)

    def _labels(self, column: DataColumn[Any]) -> dict[Any, str]:
        if column.kind == "flag":
            found: dict[Any, str] = {0: "no", 1: "yes"}
        else:
            found = {n: value for n, value in enumerate(column.values, 1) if column.kind == "category"}
        return found | {self._code(one.name, column): one.name for one in column.missing}

    def _missing(self, column: DataColumn[Any], row: Cells) -> Any:
        return self._code(column.why_empty(row).name, column)

    def _text(self, value: Cell) -> str:
        return "" if value is None else str(value).replace("\0", "␀")

    def _is_cut(self, row: Cells) -> bool:
        return False

    @abstractmethod
    def _code(self, name: str, column: DataColumn[Any]) -> Any:
        """The code of a missing value."""

    @abstractmethod
    def _save(self, frame: Any, path: Path, table: DataTable[Any], labels: dict[str, dict[Any, str]]) -> None:
        """Write a table with its labels."""


class StataSink(StatsSink):
    suffix = "dta"

    def _code(self, name: str, column: DataColumn[Any]) -> Any:
        return next(one.stata for one in column.missing if one.name == name)

    def _save(self, frame: Any, path: Path, table: DataTable[Any], labels: dict[str, dict[Any, str]]) -> None:
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


class SpssSink(StatsSink):
    suffix = "sav"
    added = (TEXT_CUT,)

    def _code(self, name: str, column: DataColumn[Any]) -> Any:
        code = next(one.spss for one in column.missing if one.name == name)
        return float(code) if column.kind == "number" else code

    def _text(self, value: Cell) -> str:
        encoded = super()._text(value).encode("utf-8")
        return encoded[:SPSS_BYTES].decode("utf-8", "ignore")

    def _is_cut(self, row: Cells) -> bool:
        return any(
            isinstance(cell, str) and len(StatsSink._text(self, cell).encode()) > SPSS_BYTES for cell in row.values()
        )

    def _save(self, frame: Any, path: Path, table: DataTable[Any], labels: dict[str, dict[Any, str]]) -> None:
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
