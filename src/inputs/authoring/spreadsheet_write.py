"""Write a workbook of scenarios. The same scenarios give the same bytes."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path as FilePath
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ...errors import ConfigError, InputError, StorageError
from ...schemas import BackgroundFact, Scenario, Variant
from . import spreadsheet_layout as layout
from .spreadsheet_layout import (
    LIBRARY_ID,
    LINES,
    MAX_CELL,
    REST,
    SCENARIO,
    STATEMENT,
    Cell,
    Path,
    Sheet,
    SheetColumn,
    show_json,
    shown,
)

if TYPE_CHECKING:
    from openpyxl import Workbook
    from openpyxl.worksheet.worksheet import Worksheet

_WRITTEN = datetime(2000, 1, 1)
_MODIFIED = re.compile(rb"(<dcterms:modified[^>]*>)[^<]*")
_EDITED, _NUMBER, _FOR_READING, _JSON = "Scenario text", "Scenario number", "Scenario for reading", "Scenario JSON"
_STARTS_A_FORMULA = ("=", "+", "-", "@")
SPARE_ROWS = 100
"""Rows below the last one that have the drop-down lists and the text format too."""


def openpyxl() -> ModuleType:
    """The library that reads and writes workbooks; a ConfigError says how to install it."""
    try:
        import openpyxl as module
    except ImportError:
        raise ConfigError(
            "Workbooks need openpyxl, which is not installed. Run: python -m pip install 'openpyxl>=3.1.5,<4'"
        ) from None
    return module


def write_workbook(scenarios: Sequence[Scenario], library: Mapping[str, BackgroundFact], path: FilePath) -> None:
    """Write scenarios to a new workbook. An existing file is never overwritten."""
    openpyxl()
    if path.exists():
        raise InputError(f"{path} already exists and will not be overwritten. Choose another file with --out.")
    data = workbook_bytes(scenarios, library)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(data)
    except OSError as error:
        raise StorageError(f"{path}: write failed ({error.strerror}). Choose another file with --out.") from None


def workbook_bytes(scenarios: Sequence[Scenario], library: Mapping[str, BackgroundFact]) -> bytes:
    book: Workbook = openpyxl().Workbook()
    assert book.active is not None
    book.remove(book.active)
    _add_styles(book)
    _write_read_me(book.create_sheet(layout.README))
    rows = rows_of(scenarios, library)
    for sheet in layout.EDITED:
        _write_sheet(book.create_sheet(sheet.name), sheet, rows.of[sheet.name])
    listed = book.create_sheet(layout.LIBRARY.name)
    _write_sheet(listed, layout.LIBRARY, library_rows(library))
    listed.protection.sheet = True  # against slips; it has no password
    listed.protection.autoFilter = False
    listed.auto_filter.ref = listed.dimensions
    book.properties.creator = "medicare-eval"
    book.properties.created = _WRITTEN
    saved = io.BytesIO()
    book.save(saved)
    return _without_times(saved.getvalue())


def _without_times(data: bytes) -> bytes:
    """The same workbook without the time at which it was written."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            part = old.read(name)
            if name == "docProps/core.xml":
                part = _MODIFIED.sub(rb"\g<1>" + f"{_WRITTEN:%Y-%m-%dT%H:%M:%SZ}".encode(), part)
            new.writestr(zipfile.ZipInfo(name, _WRITTEN.timetuple()[:6]), part, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def _write_read_me(page: Worksheet) -> None:
    from openpyxl.styles import Alignment, Font

    lines: list[tuple[str, str]] = [("How to use this workbook", "")]
    lines += [("", line) for line in layout.READ_ME]
    for sheet in (*layout.EDITED, layout.LIBRARY):
        lines += [("", ""), (sheet.name, sheet.about)]
        lines += [("", f"{column.header}: {column.help}") for column in sheet.columns if column.help]
    for number, (heading, text) in enumerate(lines, 1):
        page.cell(number, 1, heading).font = Font(bold=True)
        page.cell(number, 2, text).alignment = Alignment(wrap_text=True, vertical="top")
    page.column_dimensions["A"].width = 26
    page.column_dimensions["B"].width = 110


def _write_sheet(page: Worksheet, sheet: Sheet, rows: Sequence[Row]) -> None:
    from openpyxl.comments import Comment
    from openpyxl.styles import Alignment, Font, PatternFill
    from openpyxl.utils import get_column_letter

    for number, column in enumerate(sheet.columns, 1):
        head = page.cell(1, number, column.header)
        head.font, head.fill = Font(bold=True), PatternFill("solid", fgColor="DDE6F0")
        head.alignment = Alignment(wrap_text=True, vertical="top")
        if column.help:
            head.comment = Comment(column.help, "medicare-eval", width=320, height=110)
        page.column_dimensions[get_column_letter(number)].width = column.width
    page.freeze_panes = "C2" if sheet.columns[0].path == SCENARIO else "B2"
    last = len(rows) + 1 + (0 if sheet is layout.LIBRARY else SPARE_ROWS)
    for number, column in enumerate(sheet.columns, 1):
        _add_choices(page, column, f"{get_column_letter(number)}2:{get_column_letter(number)}{last}")
    for row_number in range(2, last + 1):
        row = rows[row_number - 2] if row_number - 2 < len(rows) else {}
        _write_row(page, sheet, row_number, row)


def _add_choices(page: Worksheet, column: SheetColumn, cells: str) -> None:
    from openpyxl.worksheet.datavalidation import DataValidation

    if column.choices:
        listed = DataValidation(type="list", formula1=f'"{",".join(column.choices)}"', allow_blank=True)
        listed.showErrorMessage = True
        listed.error = f"Choose one of: {', '.join(column.choices)}"
        listed.add(cells)
        page.add_data_validation(listed)


def _add_styles(book: Workbook) -> None:
    """Styles by name: far faster than a style for each cell, and authors can use them for cells of their own."""
    from openpyxl.styles import Alignment, Font, NamedStyle, PatternFill

    wrapped, gray = Alignment(wrap_text=True, vertical="top"), PatternFill("solid", fgColor="EEEEEE")
    pale = Font(color="666666")
    book.add_named_style(NamedStyle(_EDITED, alignment=wrapped, number_format="@"))
    book.add_named_style(NamedStyle(_NUMBER, alignment=wrapped))
    book.add_named_style(NamedStyle(_FOR_READING, alignment=wrapped, number_format="@", fill=gray, font=pale))
    book.add_named_style(NamedStyle(_JSON, alignment=wrapped, number_format="@", font=pale))


def _write_row(page: Worksheet, sheet: Sheet, number: int, row: Row) -> None:
    from_library = LIBRARY_ID in row and sheet is layout.FACTS
    for place, column in enumerate(sheet.columns, 1):
        cell = page.cell(number, place)
        cell.style = _style(column, from_library)
        value = row.get(column.path)
        if value is not None:
            cell.value = value
        if isinstance(value, str):
            cell.data_type = "s"  # a text that begins with = is a text
            cell.quotePrefix = value[:1] in _STARTS_A_FORMULA  # and stays one when its author edits it


def _style(column: SheetColumn, from_library: bool) -> str:
    if column.read_only or (from_library and column.path not in (SCENARIO, ("fact_id",), LIBRARY_ID)):
        return _FOR_READING
    if column.path == REST:
        return _JSON
    return _NUMBER if column.form.numbers else _EDITED


# Scenarios as rows of a workbook. Every field is in a cell of its own or in the JSON column of its row.

Row = dict[Path, Cell]
_CONTAINERS = ("persona", "variation_knobs", "condition", "only", "answer_key")
"""Fields whose own fields have columns."""
STATE_SLOT = "{{state}}"


@dataclass
class Rows:
    """The rows of each sheet that is read back, by the sheet's name."""

    of: dict[str, list[Row]] = field(default_factory=lambda: {sheet.name: [] for sheet in layout.EDITED})

    def add(self, sheet: Sheet, row: Row) -> None:
        self.of[sheet.name].append(row)


def rows_of(scenarios: Iterable[Scenario], library: Mapping[str, BackgroundFact]) -> Rows:
    """The rows that stand for these scenarios; statements of library facts are added for reading."""
    rows = Rows()
    for scenario in scenarios:
        try:
            _add_scenario(rows, scenario, library)
        except _TooLongError as error:
            raise InputError(
                f"{scenario.scenario_id}: {error} has more than {MAX_CELL:,} characters as JSON, and a cell of a "
                "workbook cannot hold more. Edit this scenario as JSON."
            ) from None
    return rows


def library_rows(library: Mapping[str, BackgroundFact]) -> list[Row]:
    """The sheet Library: shown for reading, so a value that no cell can show exactly is left out."""
    columns = layout.LIBRARY.columns
    rows = []
    for fact in library.values():
        document = fact.model_dump(mode="json")
        cells = {column.path: shown(column.form, document.get(column.path[0])) for column in columns}
        rows.append({path: cell for path, cell in cells.items() if cell is not None})
    return rows


class _TooLongError(Exception):
    """The JSON column of a row would be too long; the message says which row."""


def _add_scenario(rows: Rows, scenario: Scenario, library: Mapping[str, BackgroundFact]) -> None:
    name = scenario.scenario_id
    document = scenario.model_dump(mode="json", exclude_defaults=True)
    turns, key = document.pop("scripted_turns"), document["answer_key"]
    document.pop("variants", None)
    facts, claims = key.pop("canonical_facts"), key.pop("disallowed_claims", [])
    referred = key.pop("library_facts", {})
    rows.add(layout.SCENARIOS, _row(layout.SCENARIOS, document, "the scenario"))
    for turn in turns:
        rows.add(layout.TURNS, {SCENARIO: name, **_row(layout.TURNS, turn, f"turn {turn['turn_id']}")})
    for fact_id, library_id in referred.items():
        row: Row = {SCENARIO: name, ("fact_id",): fact_id, LIBRARY_ID: library_id}
        rows.add(layout.FACTS, row | {STATEMENT: library_statement(library_id, library)})
    for fact in facts:
        row = _row(layout.FACTS, fact, f"fact {fact['fact_id']}", skip=(LIBRARY_ID,))
        rows.add(layout.FACTS, {SCENARIO: name, **row})
    for number, claim in enumerate(claims, 1):
        row = _row(layout.CLAIMS, {"claim": claim}, f"disallowed claim {number}")
        rows.add(layout.CLAIMS, {SCENARIO: name, ("claim_id",): f"D{number}", **row})
    for variant in scenario.variants:
        for row in _variant_rows(variant):
            rows.add(layout.VARIANTS, {SCENARIO: name, **row})


def library_statement(library_id: str, library: Mapping[str, BackgroundFact]) -> str:
    """What the sheet Facts shows for a library fact."""
    if STATE_SLOT in library_id:
        return "(the fact of the person’s own state)"
    found = library.get(library_id)
    return found.statement.strip() if found else "(not in the library)"


def _row(sheet: Sheet, document: dict[str, Any], what: str, skip: Sequence[Path] = ()) -> Row:
    """The cells of a record; what no cell shows exactly goes into the JSON column."""
    rest = {name: dict(value) if name in _CONTAINERS else value for name, value in document.items()}
    row: Row = {}
    for column in sheet.columns:
        if column.path == REST or column.path in skip or column.read_only:
            continue
        *parents, name = column.path
        inside = rest.get(parents[0], {}) if parents else rest
        cell = shown(column.form, inside[name]) if name in inside else None
        if cell is not None or inside.get(name) in ([], {}):  # an empty list or map is what a blank cell means
            del inside[name]
        if cell is not None:
            row[column.path] = cell
    for name in _CONTAINERS:
        if name in rest and not rest[name]:
            del rest[name]
    return row | _rest_cell(rest, what)


def _rest_cell(rest: dict[str, Any], what: str) -> Row:
    if not rest:
        return {}
    text = show_json(rest)
    if len(text) > MAX_CELL:
        raise _TooLongError(what)
    return {REST: text}


def _variant_rows(variant: Variant) -> list[Row]:
    """One row for each turn in other words; the variant's own fields are on the first."""
    document = variant.model_dump(mode="json", exclude_defaults=True)
    turns, misstates = document.pop("turns", {}), document.pop("misstates", {})
    wording = [_wording_row(turn_id, turns, misstates) for turn_id in {**turns, **misstates}]
    whole = [row for row in wording if row is not None]
    if len(whole) < len(wording):
        document |= {"turns": turns, "misstates": misstates}
        whole = []
    first = _row(layout.VARIANTS, document, f"variant {variant.variant_id}")
    later: Row = {("variant_id",): variant.variant_id}
    return [(later if number else first) | row for number, row in enumerate(whole or [{}])]


def _wording_row(turn_id: str, turns: Mapping[str, str], misstates: Mapping[str, list[str]]) -> Row | None:
    """The cells of one turn of a variant; None if they cannot show it exactly."""
    row: Row = {("turn_id",): turn_id}
    if turn_id in turns:
        cell = shown(layout.VARIANTS.column(("user_message",)).form, turns[turn_id])
        if cell is None:
            return None
        row["user_message",] = cell
    if turn_id in misstates:
        listed = shown(LINES, misstates[turn_id])
        if listed is None:
            return None
        row["misstates",] = listed
    return row
