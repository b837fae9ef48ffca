"""Scenarios as rows of a workbook. Every field is in a cell of its own or in the JSON column of its row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import InputError
from ..schemas import BackgroundFact, Scenario, Variant
from . import spreadsheet_layout as layout
from .spreadsheet_forms import LINES, MAX_CELL, Cell, show_json, shown
from .spreadsheet_layout import LIBRARY_ID, REST, SCENARIO, STATEMENT, Path, Sheet

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
