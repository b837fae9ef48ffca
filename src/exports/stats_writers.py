"""Writers of Stata and SPSS files: numbers with labels, and a code per kind of missing value.

A file is written in one go by pyreadstat, so a large table is split into several.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from ..trials.columns import Cell, Cells, DataColumn, DataTable
from .tables import TABLES, TEXT_CUT
from .writers import Batch, optional

PIECE_ROWS = 100_000
PIECE_CHARACTERS = 64_000_000
PIECE_CELLS = 1_000_000_000
"""When a piece is written; the last limit is for rows times widths, since all rows are as wide as the widest."""
SPSS_BYTES = 32_767
"""The longest text that fits in an SPSS cell."""


class _StatsSink(ABC):
    """Files of a statistics package."""

    suffix = ""
    added: tuple[DataColumn[Any], ...] = ()

    def __init__(self, folder: Path) -> None:
        self._pandas = optional("pandas")
        self._readstat = optional("pyreadstat")
        self._folder = folder
        self._batches = {table.name: Batch(table) for table in TABLES}
        self._paths: list[Path] = []
        self._pieces = dict.fromkeys(self._batches, 0)

    def add(self, table: DataTable[Any], row: Cells) -> None:
        batch = self._batches[table.name]
        batch.add(row)
        if batch.is_full(PIECE_ROWS, PIECE_CHARACTERS) or batch.is_wide(PIECE_CELLS):
            self._write(batch)

    def close(self) -> list[Path]:
        for batch in list(self._batches.values()):
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
        self._batches[table.name] = Batch(table)

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


class StataSink(_StatsSink):
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


class SpssSink(_StatsSink):
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
            isinstance(cell, str) and len(_StatsSink._text(self, cell).encode()) > SPSS_BYTES for cell in row.values()
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
