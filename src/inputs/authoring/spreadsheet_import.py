"""A workbook back into scenario files: the same checks as for JSON files, and errors that name the cell."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path as FilePath
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ...errors import InputError, StorageError
from ...planning.library import Library
from ...planning.scenario_files import ScenarioFile
from ...records.answer_key import LibraryFactId
from ...records.base import FactId
from ...schemas import AnswerKey, BackgroundFact, CanonicalFact, Persona, Record, Scenario, ScriptedTurn, Variant
from ...store.input_files import problems_of
from ...store.strict_json import encode, sha256
from . import spreadsheet_layout as layout
from .lint import lint
from .spreadsheet_layout import LIBRARY_ID, REST, SCENARIO, STATEMENT, Path, Sheet, read_json
from .spreadsheet_read import Fault, ReadBook, ReadRow, read_workbook
from .spreadsheet_write import STATE_SLOT, library_statement

_ACROSS_ROWS = (None, "answer_key", "scripted_turns")
"""Fields of problems that are not of one row."""


@dataclass
class Imported:
    """The scenarios of a workbook as files that are not written yet, and what was found in it."""

    files: list[ScenarioFile] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)
    """The bytes of each file."""
    errors: list[str] = field(default_factory=list)
    """If there are any, nothing can be written."""
    warnings: list[str] = field(default_factory=list)
    """House rules that are broken."""


def import_workbook(path: FilePath, folder: FilePath, library: Library, today: date) -> Imported:
    """Read and check a workbook whose scenarios go to `folder/ID.json`. Nothing is written."""
    book = read_workbook(path)
    drafts = [] if book.unread else drafts_of(book, library.facts)  # without a sheet, its rows would seem forgotten
    if book.faults:
        return Imported(errors=[f"{path}: {fault}" for fault in [*book.faults, *_more_faults(drafts, book.faults)]])
    found = Imported()
    for draft in drafts:
        target = folder / f"{draft.scenario_id}.json"
        made = checked(draft)
        if isinstance(made, Scenario):
            data = _bytes(draft.document)
            file = ScenarioFile(target, sha256(data), made, target.as_posix())
            found.files.append(file)
            found.data.append(data)
            for problem in lint(file, library, today):
                listed = found.errors if problem.error else found.warnings
                listed.append(f"{path}: {_located(draft, problem.where, problem.what)}")
        else:
            found.errors += [f"{path}: {fault}" for fault in made]
    return found


def write_imported(found: Imported) -> list[FilePath]:
    """Write all files, or none. An existing file is never overwritten."""
    for file in found.files:
        if file.path.exists():
            raise InputError(f"{file.path} already exists and will not be overwritten. Choose another folder.")
    written: list[FilePath] = []
    try:
        for file, data in zip(found.files, found.data, strict=True):
            file.path.parent.mkdir(parents=True, exist_ok=True)
            with file.path.open("xb") as out:
                written.append(file.path)
                out.write(data)
    except OSError as error:
        for path in written:
            path.unlink(missing_ok=True)
        raise StorageError(f"{file.path}: write failed ({error.strerror}). Choose another folder.") from None
    return written


def checked(draft: ScenarioDraft) -> Scenario | list[Fault]:
    """The scenario, or what is wrong with it."""
    try:
        return Scenario.model_validate_json(encode(draft.document))
    except ValidationError as error:
        return [_located(draft, problem.field, problem.text) for problem in problems_of(error, Scenario)]


def _more_faults(drafts: Sequence[ScenarioDraft], faults: Sequence[Fault]) -> Iterator[Fault]:
    """What is wrong in cells that have no fault yet.

    What rows say of each other is left out: it may seem wrong only because a cell could not be read.
    """
    places = {fault.place for fault in faults}
    for draft in drafts:
        try:
            Scenario.model_validate_json(encode(draft.document))
        except ValidationError as error:
            for problem in problems_of(error, Scenario):
                fault = _located(draft, problem.field, problem.text)
                if problem.field not in _ACROSS_ROWS and fault.place not in places:
                    yield fault


def _located(draft: ScenarioDraft, where: str | None, text: str) -> Fault:
    """The problem with the cell that it is in; the field is named where the cell alone does not say it."""
    cell = draft.cell_of(where) if where else draft.cell_named_in(text)
    if cell:
        return Fault(cell, text)
    return Fault(draft.cells["scenario_id"], f"field {where}: {text}" if where else text)


def _bytes(document: dict[str, Any]) -> bytes:
    """The scenario file: fields in the order of the records, as people write them."""
    made = _in_order(Scenario, document)
    made["persona"] = _in_order(Persona, document["persona"])
    income = made["persona"].get("monthly_income")
    if isinstance(income, float) and income.is_integer():
        made["persona"]["monthly_income"] = int(income)
    made["scripted_turns"] = [_in_order(ScriptedTurn, turn) for turn in document["scripted_turns"]]
    key = _in_order(AnswerKey, document["answer_key"])
    key["canonical_facts"] = [_in_order(CanonicalFact, fact) for fact in key["canonical_facts"]]
    made["answer_key"] = key
    if "variants" in made:
        made["variants"] = [_in_order(Variant, variant) for variant in document["variants"]]
    return (json.dumps(made, indent=2, ensure_ascii=False) + "\n").encode("utf-8")


def _in_order(kind: type[Record], document: dict[str, Any]) -> dict[str, Any]:
    known = {name: document[name] for name in kind.model_fields if name in document}
    return known | document


# Rows of a workbook put together to scenario documents that are not checked yet; each field knows its cell.

_FACT_ID: TypeAdapter[str] = TypeAdapter(FactId)
_LIBRARY_FACT_ID: TypeAdapter[str] = TypeAdapter(LibraryFactId)
_FACT, _TURN, _VARIANT, _WORDS, _MISSTATES = (
    ("fact_id",),
    ("turn_id",),
    ("variant_id",),
    ("user_message",),
    ("misstates",),
)
_OF_A_TURN = (_TURN, _WORDS, _MISSTATES)
"""Columns of Variants that differ from row to row."""

_SHEET_OF = {
    "scripted_turns": layout.TURNS,
    "canonical_facts": layout.FACTS,
    "library_facts": layout.FACTS,
    "disallowed_claims": layout.CLAIMS,
    "variants": layout.VARIANTS,
}


@dataclass
class ScenarioDraft:
    """A scenario as JSON, and the cell of each of its fields."""

    scenario_id: str
    document: dict[str, Any]
    cells: dict[str, str] = field(default_factory=dict)
    """A field as errors name it, such as `scripted_turns[0].user_message` or `turn Q1`, to its cell."""

    def cell_of(self, where: str) -> str | None:
        """The cell of a field, or of the nearest thing that contains it."""
        while where and where not in self.cells:
            where = where[: max(where.rfind("."), where.rfind("["), where.rfind(" "), 0)]
        return self.cells.get(where)

    def cell_named_in(self, text: str) -> str | None:
        """The cell of the field that a message begins with."""
        named = [name for name in self.cells if re.match(rf"{re.escape(name)}(?![\w-])", text)]
        return self.cells[max(named, key=len)] if named else None


def _fits(kind: TypeAdapter[str], text: str) -> bool:
    try:
        kind.validate_python(text)
    except ValidationError:
        return False
    return True


def drafts_of(book: ReadBook, library: Mapping[str, BackgroundFact]) -> list[ScenarioDraft]:
    """One draft for each row of the sheet Scenarios; what is wrong is added to the book's faults."""
    return _Reader(book, library).drafts()


class _Reader:
    def __init__(self, book: ReadBook, library: Mapping[str, BackgroundFact]) -> None:
        self._rows = book.rows
        self._faults = book.faults
        self._unreadable = {fault.place for fault in book.faults}
        self._library = library

    def drafts(self) -> list[ScenarioDraft]:
        drafts: dict[str, ScenarioDraft] = {}
        for row in self._rows[layout.SCENARIOS.name]:
            draft = self._scenario(row)
            if draft.scenario_id in drafts:
                self._fault(row, SCENARIO, f"the scenario {draft.scenario_id!r} is there twice; change one id")
            elif draft.scenario_id:
                drafts[draft.scenario_id] = draft
        rows = {sheet.name: self._by_scenario(sheet, drafts) for sheet in layout.EDITED[1:]}
        for name, draft in drafts.items():
            self._turns(draft, rows[layout.TURNS.name][name])
            self._facts(draft, rows[layout.FACTS.name][name])
            self._claims(draft, rows[layout.CLAIMS.name][name])
            self._variants(draft, rows[layout.VARIANTS.name][name])
        if not self._rows[layout.SCENARIOS.name] and not self._faults:
            self._faults.append(Fault(layout.SCENARIOS.name, "there is no scenario; add a row"))
        return list(drafts.values())

    def _fault(self, row: ReadRow, path: Path, text: str) -> None:
        self._fault_at(row.cells[path], text)

    def _fault_at(self, place: str, text: str) -> None:
        if place not in self._unreadable:  # what such a cell says is not known
            self._faults.append(Fault(place, text))

    def _required(self, row: ReadRow, path: Path) -> str:
        """What the cell says; a blank one is a fault."""
        if path not in row.texts:
            self._fault(row, path, "required but missing")
        return row.texts.get(path, "")

    def _scenario(self, row: ReadRow) -> ScenarioDraft:
        draft = ScenarioDraft(self._required(row, SCENARIO), {})
        self._fill(draft, draft.document, layout.SCENARIOS, row)
        document = draft.document
        self._refuse_misplaced(document, row)
        document["persona"] = {"fictional": True, **document.get("persona", {})}
        document.setdefault("variation_knobs", {})
        key = document.setdefault("answer_key", {})
        draft.cells.setdefault("answer_key", row.cells[SCENARIO])
        draft.cells["persona"] = row.cells[REST if REST in row.texts else ("persona", "description")]
        key.setdefault("required_points", [])
        key["canonical_facts"] = []
        return draft

    def _refuse_misplaced(self, document: dict[str, Any], row: ReadRow) -> None:
        """Fields in the JSON column of a scenario that have a sheet of their own, or are no objects."""
        for name in ("persona", "answer_key"):
            if not isinstance(document.get(name, {}), dict):
                self._fault(row, REST, f"{name} must be an object")
                del document[name]
        for name, sheet in _SHEET_OF.items():
            for inside in (document, document.get("answer_key", {})):
                if name in inside:
                    self._fault(row, REST, f"{name} cannot be written here; use the sheet {sheet.name}")

    def _by_scenario(self, sheet: Sheet, drafts: Mapping[str, ScenarioDraft]) -> dict[str, list[ReadRow]]:
        found: dict[str, list[ReadRow]] = {name: [] for name in drafts}
        for row in self._rows[sheet.name]:
            name = self._required(row, SCENARIO)
            if name in found:
                found[name].append(row)
            elif name:
                self._fault(
                    row, SCENARIO, f"the sheet Scenarios has no scenario {name[:60]!r}; add it or correct the id"
                )
        return found

    def _fill(
        self,
        draft: ScenarioDraft,
        into: dict[str, Any],
        sheet: Sheet,
        row: ReadRow,
        *,
        prefix: str = "",
        skip: Sequence[Path] = (),
    ) -> None:
        """Put what a row says into a document, and note the cell of each field."""
        for column in sheet.columns:
            path = column.path
            if path == REST or path in skip or column.read_only:
                continue
            draft.cells[prefix + ".".join(path)] = row.cells[path]
            if path not in row.texts:
                continue
            if len(path) > 1:
                draft.cells.setdefault(prefix + path[0], row.cells[path])
            try:
                value = column.form.read(row.texts[path])
            except ValueError as error:
                self._fault(row, path, str(error))
                continue
            inside = into.setdefault(path[0], {}) if len(path) > 1 else into
            inside[path[-1]] = value
        self._add_rest(draft, into, row, prefix)

    def _add_rest(self, draft: ScenarioDraft, into: dict[str, Any], row: ReadRow, prefix: str) -> None:
        """Add the fields of the JSON column. A field that has a cell of its own cannot be there too."""
        try:
            rest = read_json(row.texts[REST]) if REST in row.texts else {}
        except ValueError as error:
            self._fault(row, REST, str(error))
            return
        for name, value in rest.items():
            inner = into.get(name)
            both = isinstance(value, dict) and isinstance(inner, dict)
            given = {f"{name}.{one}": one for one in value} if both else {name: name}
            held = inner if both and inner is not None else into
            for where, one in given.items():
                draft.cells[f"{prefix}{where}"] = row.cells[REST]
                if one in held:
                    self._fault(row, REST, f"{where} is given here and in a cell of its own; remove one")
                held[one] = value[one] if both else value

    def _turns(self, draft: ScenarioDraft, rows: list[ReadRow]) -> None:
        draft.document["scripted_turns"] = turns = []
        cells = draft.cells
        if not rows:
            self._fault_at(cells["scenario_id"], f"{draft.scenario_id} has no row in the sheet Turns; add one")
        for number, row in enumerate(self._once(rows, _TURN, "turn")):
            prefix, turn = f"scripted_turns[{number}]", dict[str, Any]()
            cells[prefix] = row.cells[_TURN]
            self._fill(draft, turn, layout.TURNS, row, prefix=f"{prefix}.", skip=(SCENARIO,))
            turns.append(turn)
            name = f"turn {row.texts.get(_TURN, '')}"
            cells[name] = cells[f"{name} user_message"] = row.cells[_WORDS]
            for field_name in ("required_points", "partial_points", "background"):
                cells[f"{name} {field_name}"] = row.cells[field_name,]

    def _once(self, rows: list[ReadRow], path: Path, what: str) -> Iterator[ReadRow]:
        """The rows, without those that repeat an id."""
        seen: set[str] = set()
        for row in rows:
            name = self._required(row, path)
            if name in seen:
                self._fault(row, path, f"the {what} {name!r} is there twice in this scenario; change one id")
            else:
                seen.add(name)
                yield row

    def _facts(self, draft: ScenarioDraft, rows: list[ReadRow]) -> None:
        key, cells = draft.document["answer_key"], draft.cells
        if not rows:
            self._fault_at(cells["scenario_id"], f"{draft.scenario_id} has no row in the sheet Facts; add one")
        for row in self._once(rows, _FACT, "fact"):
            fact_id = row.texts.get(_FACT, "")
            if LIBRARY_ID in row.texts:
                self._library_fact(row, fact_id)
                if _fits(_FACT_ID, fact_id):
                    key.setdefault("library_facts", {})[fact_id] = row.texts[LIBRARY_ID]
                cells[f"answer_key.library_facts.{fact_id}"] = row.cells[LIBRARY_ID]
                cells[f"answer_key fact {fact_id}"] = row.cells[LIBRARY_ID]
                continue
            prefix, fact = f"answer_key.canonical_facts[{len(key['canonical_facts'])}]", dict[str, Any]()
            cells[prefix] = cells[f"answer_key fact {fact_id}"] = row.cells[STATEMENT]
            self._fill(draft, fact, layout.FACTS, row, prefix=f"{prefix}.", skip=(SCENARIO, LIBRARY_ID))
            key["canonical_facts"].append(fact)

    def _library_fact(self, row: ReadRow, fact_id: str) -> None:
        """A row that names a library fact: nothing else in it is read, so nothing else may have been changed."""
        library_id = row.texts[LIBRARY_ID]
        or_own = f"or clear {row.cells[LIBRARY_ID]} and write a fact of your own"
        if fact_id and not _fits(_FACT_ID, fact_id):
            self._fault(row, _FACT, f"{fact_id[:60]!r} is not an id; use F1, F2, ... (D1, D2, ... are reserved)")
        if not _fits(_LIBRARY_FACT_ID, library_id):
            instead = f"copy one from the sheet Library; {STATE_SLOT} after B- is the only slot"
            self._fault(row, LIBRARY_ID, f"{library_id[:60]!r} is not the id of a library fact; {instead}")
            return
        expected = library_statement(library_id, self._library)
        known = STATE_SLOT in library_id or library_id in self._library
        if known and STATEMENT in row.texts and row.texts[STATEMENT] != expected:
            self._fault(row, STATEMENT, f"this is not what {library_id} says in the library; clear this cell, {or_own}")
        for path in row.texts:
            if path not in (SCENARIO, _FACT, LIBRARY_ID, STATEMENT):
                self._fault(row, path, f"{library_id} has this in the library; clear this cell, {or_own}")

    def _claims(self, draft: ScenarioDraft, rows: list[ReadRow]) -> None:
        claims = []
        for number, row in enumerate(rows):
            given: dict[str, Any] = {}
            where = f"answer_key.disallowed_claims[{number}]"
            self._fill(draft, given, layout.CLAIMS, row, prefix=f"{where}.", skip=(SCENARIO,))
            draft.cells[where] = row.cells["claim",]
            for name in given.keys() - {"claim"}:
                self._fault(row, REST, f"a disallowed claim has no field {name[:60]!r}; remove it")
            if "claim" not in given and REST not in row.texts:
                self._fault(row, ("claim",), "required but missing")
            claims.append(given.get("claim"))
        if claims:
            draft.document["answer_key"]["disallowed_claims"] = claims

    def _variants(self, draft: ScenarioDraft, rows: list[ReadRow]) -> None:
        by_name: dict[str, list[ReadRow]] = {}
        for row in rows:
            by_name.setdefault(self._required(row, _VARIANT), []).append(row)
        if by_name:
            draft.document["variants"] = [
                self._variant(draft, number, name, own) for number, (name, own) in enumerate(by_name.items())
            ]

    def _variant(self, draft: ScenarioDraft, number: int, name: str, rows: list[ReadRow]) -> dict[str, Any]:
        first, prefix = rows[0], f"variants[{number}]"
        variant: dict[str, Any] = {}
        draft.cells[prefix] = draft.cells[f"variant {name}"] = first.cells[_VARIANT]
        draft.cells[f"variant {name} persona"] = first.cells["persona",]
        self._fill(draft, variant, layout.VARIANTS, first, prefix=f"{prefix}.", skip=(SCENARIO, *_OF_A_TURN))
        for row in rows[1:]:
            for path, text in row.texts.items():
                if path not in (SCENARIO, _VARIANT, *_OF_A_TURN) and text != first.texts.get(path):
                    self._fault(row, path, f"write this on the first row of the variant, in {first.cells[path]}")
        turns = [turn.get("turn_id") for turn in draft.document["scripted_turns"]]
        seen: set[str] = set()
        for row in rows:
            if _TURN not in row.texts and not {_WORDS, _MISSTATES} & row.texts.keys():
                if len(rows) > 1:
                    self._fault(row, _TURN, "required but missing; a variant of several rows names a turn in each")
                continue
            turn_id = self._required(row, _TURN)
            if turn_id in seen:
                self._fault(row, _TURN, f"the turn {turn_id!r} is there twice in this variant; delete one")
            elif turn_id and turn_id not in turns:
                self._fault(
                    row, _TURN, f"there is no turn {turn_id[:60]!r}; the turns are {', '.join(map(str, turns))}"
                )
            seen.add(turn_id)
            if turn_id in turns:
                self._wording(draft, variant, row, prefix, name)
        return variant

    def _wording(self, draft: ScenarioDraft, variant: dict[str, Any], row: ReadRow, prefix: str, name: str) -> None:
        """The words of one turn of a variant, and the figures that they get wrong."""
        turn_id, words = row.texts.get(_TURN, ""), row.cells[_WORDS]
        if not {_WORDS, _MISSTATES} & row.texts.keys():
            self._fault(row, _WORDS, "required but missing; write the other words of the turn, or clear the turn")
        for path, field_name in ((_WORDS, "turns"), (_MISSTATES, "misstates")):
            draft.cells[f"{prefix}.{field_name}.{turn_id}"] = row.cells[path]
            if path in row.texts:
                value = layout.VARIANTS.column(path).form.read(row.texts[path])
                variant.setdefault(field_name, {})[turn_id] = value
        if _WORDS in row.texts:
            for alias in (f"turn {turn_id} of variant {name}", f"variant {name} turn {turn_id}"):
                draft.cells[alias] = draft.cells[f"{alias} user_message"] = words
