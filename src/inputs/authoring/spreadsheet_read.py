"""Read the rows of a workbook: each cell as text, with its place. Only what a cell may hold is checked here."""

from __future__ import annotations

import io
import warnings
import zipfile
from dataclasses import dataclass, field
from datetime import date, datetime, time
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from ...errors import InputError
from ...store.input_files import read_bytes
from . import spreadsheet_layout as layout
from .spreadsheet_layout import Path, Sheet, SheetColumn
from .spreadsheet_write import openpyxl

if TYPE_CHECKING:
    from openpyxl import Workbook
    from openpyxl.cell import Cell
    from openpyxl.worksheet.worksheet import Worksheet

MAX_BYTES = 20_000_000
MAX_UNPACKED = 400_000_000
MAX_ROWS = 20_000
MAX_COLUMNS = 200


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong in a workbook."""

    place: str
    """A cell such as Facts!G7, or a sheet."""
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text.rstrip('.')}."


@dataclass(frozen=True)
class ReadRow:
    """One row that is not empty."""

    cells: dict[Path, str]
    """Column to the place of its cell."""
    texts: dict[Path, str]
    """Column to what its cell says; blank cells are left out."""


@dataclass
class ReadBook:
    rows: dict[str, list[ReadRow]] = field(default_factory=dict)
    """By the name of the sheet."""
    faults: list[Fault] = field(default_factory=list)
    unread: bool = False
    """Whether a sheet could not be read, so that its rows are not known."""


def read_workbook(path: FilePath) -> ReadBook:
    """The rows of every sheet that is read back, and what is wrong with their cells."""
    book = _open(path)
    found = ReadBook()
    names = {page.title.strip().lower(): page for page in book.worksheets}
    for sheet in layout.EDITED:
        page = names.get(sheet.name.lower())
        if page is None:
            found.faults.append(Fault(sheet.name, "this sheet is missing; export a workbook again to get it"))
        rows = _read_sheet(page, sheet, found.faults) if page else None
        found.rows[sheet.name] = rows or []
        found.unread = found.unread or rows is None
    return found


def _open(path: FilePath) -> Workbook:
    module = openpyxl()
    data = read_bytes(path, MAX_BYTES)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            unpacked = sum(one.file_size for one in packed.infolist())
        if unpacked <= MAX_UNPACKED:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about drop-down lists and styles, which are not read
                book: Workbook = module.load_workbook(io.BytesIO(data))
            return book
    except Exception:  # a damaged file can fail in any way, in the library that reads it
        raise InputError(f"{path} is not a workbook that can be read. Save it as an Excel workbook (.xlsx).") from None
    raise InputError(f"{path} is larger than {MAX_UNPACKED:,} bytes when unpacked, the limit for a workbook.")


def _read_sheet(page: Worksheet, sheet: Sheet, faults: list[Fault]) -> list[ReadRow] | None:
    """The rows that are not empty; None if the sheet cannot be read."""
    if page.max_row > MAX_ROWS or page.max_column > MAX_COLUMNS:
        limit = f"at most {MAX_ROWS:,} rows and {MAX_COLUMNS} columns can be read; delete what lies outside the table"
        faults.append(Fault(sheet.name, limit))
        return None
    merged = [Fault(f"{sheet.name}!{one.coord}", "merged cells cannot be read; unmerge them")
              for one in page.merged_cells.ranges]  # fmt: skip
    faults += merged
    columns = _columns(page, sheet, faults)
    if merged or columns is None:
        return None
    rows = []
    for number in range(2, page.max_row + 1):
        row = ReadRow({}, {})
        for place, column in columns.items():
            cell = page.cell(number, place)
            row.cells[column.path] = f"{sheet.name}!{cell.coordinate}"
            try:
                text = "" if column.read_only else _text(cell, column)
            except ValueError as error:
                faults.append(Fault(row.cells[column.path], str(error)))
                text = "?"  # the row is not empty
            if text:
                row.texts[column.path] = text
        if row.texts:
            rows.append(row)
    return rows


def _columns(page: Worksheet, sheet: Sheet, faults: list[Fault]) -> dict[int, SheetColumn] | None:
    """Column number to column, by the headers in the first row; None if one is missing, unknown or there twice."""
    known = {column.header.lower(): column for column in sheet.columns}
    found: dict[int, SheetColumn] = {}
    before = len(faults)
    for place in range(1, page.max_column + 1):
        cell = page.cell(1, place)
        header = " ".join(str(cell.value).split()) if cell.value is not None else ""
        column = known.get(header.lower())
        where = f"{sheet.name}!{cell.coordinate}"
        if header and column is None:
            listed = ", ".join(one.header for one in sheet.columns)
            faults.append(Fault(where, f"there is no column {header[:60]!r}; the columns are {listed}"))
        elif column in found.values():
            faults.append(Fault(where, f"the column {header!r} is there twice; delete one"))
        elif column:
            found[place] = column
    for column in sheet.columns:
        if column not in found.values():
            faults.append(Fault(sheet.name, f"the column {column.header!r} is missing; add it to the first row"))
    return found if len(faults) == before else None


def _text(cell: Cell | Any, column: SheetColumn) -> str:
    """What a cell says; a ValueError says why it cannot be used."""
    value = cell.value
    if value is None:
        return ""
    if cell.data_type == "f":
        raise ValueError("this is a formula; write the text itself, in a cell that is formatted as text")
    if cell.data_type == "e":
        raise ValueError(f"this cell shows the error {value}; write the text itself")
    if isinstance(value, str):
        return value.replace("_x000D_", "").replace("\r\n", "\n").strip()
    if isinstance(value, datetime | date | time):
        return _date_text(value, column)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"must be text (got {str(value).upper()}); format the cell as text and type it again")  # noqa: TRY004
    if not column.form.numbers:
        kind = "a date such as 2026-01-31" if column.form.dates else "text"
        raise ValueError(f"must be {kind} (got the number {value}); format the cell as text and type it again")
    return str(int(value)) if float(value).is_integer() else str(value)


def _date_text(value: datetime | date | time, column: SheetColumn) -> str:
    if not column.form.dates:
        raise ValueError(f"must be text (got the date {value}); format the cell as text and type it again")
    if isinstance(value, time) or (isinstance(value, datetime) and value.time() != time()):
        raise ValueError(f"must be a date such as 2026-01-31 (got the time {value})")
    return value.strftime("%Y-%m-%d")
