"""A workbook back into scenario files: the same checks as for JSON files, and errors that name the cell."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from ...errors import InputError, StorageError
from ...planning.house_rules import BrokenRule
from ...planning.library import Library
from ...planning.scenario_files import ScenarioFile
from ...schemas import AnswerKey, CanonicalFact, Persona, Record, Scenario, ScriptedTurn, Variant
from ...store.input_files import problems_of
from ...store.strict_json import encode, sha256
from .lint import lint
from .spreadsheet_drafts import ScenarioDraft, drafts_of
from .spreadsheet_read import Fault, read_workbook

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
                listed.append(f"{path}: {_lint_fault(draft, problem)}")
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


def _lint_fault(draft: ScenarioDraft, problem: BrokenRule) -> Fault:
    return _located(draft, problem.where, problem.what)


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
