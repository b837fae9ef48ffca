"""Scenarios as a workbook: nothing is lost on the way there and back, edits arrive, and errors name the cell."""

from __future__ import annotations

import builtins
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from openpyxl.cell import Cell
from openpyxl.worksheet.worksheet import Worksheet

from src.cli import scenarios as command
from src.inputs.authoring import spreadsheet_layout as layout
from src.inputs.authoring import spreadsheet_write
from src.inputs.authoring.spreadsheet_import import checked, drafts_of, import_workbook
from src.inputs.authoring.spreadsheet_read import ReadBook, ReadRow
from src.inputs.authoring.spreadsheet_write import rows_of, workbook_bytes
from src.planning.library import Library
from src.planning.scenario_files import read_scenarios
from src.schemas import BackgroundFact, Scenario
from tests.cases import each_case
from tests.helpers import ROOT, fact_json, scenario_json
from tests.runs import Called, call

TODAY = date(2026, 11, 16)
BANK = str(ROOT / "scenarios")
SPEC = str(ROOT / "tests" / "spec_scenarios")
Edit = Callable[[Any], object]


@pytest.fixture(scope="module", autouse=True)
def _few_spare_rows() -> Iterator[None]:
    """Empty rows take long to write and to read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spreadsheet_write, "SPARE_ROWS", 5)
        yield


@pytest.fixture(scope="module")
def library() -> Library:
    return Library()


def small(**changes: Any) -> Scenario:
    """A scenario with a written-out fact, a library fact, a claim, and a variant with words of its own."""
    document = scenario_json() | {
        "scenario_id": "small",
        "themes": ["networks"],
        "persona": {
            "fictional": True,
            "name": "Ana Peñalver",
            "age": 67,
            "zip_code": "01384",
            "monthly_income": 1600.5,
        },
        "scripted_turns": [
            {"turn_id": "Q1", "user_message": "Do plans have networks?", "required_points": ["F1"]},
            {"turn_id": "Q2", "user_message": "¿Y qué más, señor?", "background": ["F1"]},
        ],
        "variation_knobs": {},
        "variants": [
            {"variant_id": "plain", "style": "plain"},
            {
                "variant_id": "worried",
                "style": "worried",
                "persona": {"state": "Ohio"},
                "turns": {"Q1": "I'm worried. Do plans have networks?", "Q2": "What else?"},
                "misstates": {"Q2": ["$5"]},
            },
        ],
    }
    document["answer_key"] = {
        "canonical_facts": [fact_json("F1")],
        "required_points": ["F1"],
        "disallowed_claims": ["Claiming to have looked it up"],
    }
    return Scenario.model_validate_json(json.dumps(document | changes))


def with_library_fact(library: Library) -> Scenario:
    return small(answer_key=small().answer_key.model_dump(mode="json") | {"library_facts": {"F2": first_id(library)}})


def first_id(library: Library) -> str:
    return next(name for name, fact in library.facts.items() if "{{" not in fact.statement and not fact.states)


def through_cells(scenarios: list[Scenario], library: Library) -> list[Scenario]:
    """Scenarios as the cells of a workbook say them, without a file."""
    book = ReadBook()
    rows = rows_of(scenarios, library.facts)
    for sheet in layout.EDITED:
        book.rows[sheet.name] = [
            ReadRow(
                {column.path: f"{sheet.name}!{column.header}" for column in sheet.columns},
                {path: str(cell) for path, cell in row.items() if not sheet.column(path).read_only},
            )
            for row in rows.of[sheet.name]
        ]
    made = [checked(draft) for draft in drafts_of(book, library.facts)]
    assert book.faults == []
    assert all(isinstance(one, Scenario) for one in made), made
    return [one for one in made if isinstance(one, Scenario)]


def through_file(scenarios: list[Scenario], library: Library, folder: Path) -> list[Scenario]:
    path = folder / "book.xlsx"
    named = {name for one in scenarios for name in one.answer_key.library_facts.values()}
    path.write_bytes(workbook_bytes(scenarios, {name: library.facts[name] for name in named & library.facts.keys()}))
    found = import_workbook(path, folder / "out", library, TODAY)
    read = [Scenario.model_validate_json(data) for data in found.data]
    assert read == [file.scenario for file in found.files]
    return read


def few(library: Library) -> dict[str, BackgroundFact]:
    """A library of one fact: a sheet of all of them takes long to write and to read."""
    return {first_id(library): library.facts[first_id(library)]}


def edited(folder: Path, scenario: Scenario, library: Library, edit: Edit) -> Path:
    """A workbook that its author changed."""
    book = openpyxl.load_workbook(io.BytesIO(workbook_bytes([scenario], few(library))))
    edit(book)
    path = folder / "edited.xlsx"
    book.save(path)
    return path


def imported(folder: Path, library: Library, edit: Edit, scenario: Scenario | None = None) -> Called:
    """What the command prints and writes."""
    path = edited(folder, scenario or small(), library, edit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "Library", lambda *_: library)  # it is read once for all tests
        return call("scenarios", "import", path, "--out", folder / "out")


def cell(page: Worksheet, header: str, row: int) -> Cell:
    place = [one.value for one in page[1]].index(header) + 1
    found = page.cell(row, place)
    assert isinstance(found, Cell)
    return found


def put(sheet: str, header: str, row: int, value: Any) -> Edit:
    def edit(book: Any) -> None:
        cell(book[sheet], header, row).value = value

    return edit


def all_of(*edits: Edit) -> Edit:
    def edit(book: Any) -> None:
        for one in edits:
            one(book)

    return edit


def renamed(name: str) -> Edit:
    """The scenario has another id, in every sheet."""

    def edit(book: Any) -> None:
        for sheet in layout.EDITED:
            for row in book[sheet.name].iter_rows(min_row=2):
                row[0].value = name if row[0].value else None

    return edit


def written(folder: Path) -> Any:
    return json.loads((folder / "out" / "small.json").read_text(encoding="utf-8"))


def test_every_scenario_of_the_bank_survives_as_cells(library: Library) -> None:
    scenarios = [file.scenario for file in read_scenarios([BANK, SPEC])]
    made = through_cells(scenarios, library)
    assert made == scenarios
    facts = [list(one.answer_key.library_facts) for one in scenarios]
    assert [list(one.answer_key.library_facts) for one in made] == facts


@pytest.mark.slow
def test_every_scenario_of_the_bank_survives_as_a_workbook(library: Library, tmp_path: Path) -> None:
    scenarios = [file.scenario for file in read_scenarios([BANK, SPEC])]
    assert through_file(scenarios, library, tmp_path) == scenarios


def test_scenarios_with_unusual_fields_survive_as_a_workbook(library: Library, tmp_path: Path) -> None:
    names = ["scenario_002.json", "study/dual_eligible.json"]
    files = [str(ROOT / "scenarios" / "v1" / name) for name in names]
    scenarios = [file.scenario for file in read_scenarios([*files, SPEC])]
    assert through_file(scenarios, library, tmp_path) == scenarios


@each_case(
    "text",
    [
        "=1+1", "+1 (614) is no number", "-5", "@SUM(A1)", "=HYPERLINK(\"https://example.com\")", "'quoted", "_x000D_",
        "línea uno\nlínea dos, ¿sí?", "a\x07b", "tab\there", " outer spaces ", "#REF!", "TRUE", "00123", "x" * 19_000,
        "one\r\ntwo", "a;b or c|d: e", "\u2028",
    ],
)  # fmt: skip
def test_any_text_stays_that_text(text: str, library: Library, tmp_path: Path) -> None:
    turns = [{"turn_id": "Q1", "user_message": text, "required_points": ["F1"]}, {"turn_id": "Q2", "user_message": "b"}]
    short = text[:900]
    variants = [{"variant_id": "v", "turns": {"Q1": text}, "misstates": {"Q1": [short]}, "persona": {"name": short}}]
    persona = {"fictional": True, "name": short, "attributes": {"one": short, "two": 2}}
    scenario = small(scripted_turns=turns, variants=variants, persona=persona, themes=[short], notes=short)
    assert through_file([scenario], library, tmp_path) == [scenario]


def test_no_cell_of_a_workbook_is_a_formula(library: Library) -> None:
    scenario = small(title="=cmd|' /C calc'!A0", notes="+1", themes=["@x"])
    book = openpyxl.load_workbook(io.BytesIO(workbook_bytes([scenario], few(library))))
    assert cell(book["Scenarios"], "Title", 2).value == scenario.title
    assert "f" not in {one.data_type for page in book.worksheets for row in page.iter_rows() for one in row}
    assert all(cell(book["Scenarios"], header, 2).quotePrefix for header in ("Title", "Notes", "Themes"))


def test_the_same_scenarios_give_the_same_bytes(library: Library) -> None:
    one = workbook_bytes([small()], few(library))
    assert one == workbook_bytes([small()], few(library))
    with zipfile.ZipFile(io.BytesIO(one)) as packed:
        assert {info.date_time for info in packed.infolist()} == {(2000, 1, 1, 0, 0, 0)}
        assert b"2000-01-01T00:00:00Z</dcterms:modified>" in packed.read("docProps/core.xml")
        assert not [name for name in packed.namelist() if "vba" in name.lower()]


def test_the_sheets_are_made_for_people(library: Library) -> None:
    scenario = with_library_fact(library)
    book = openpyxl.load_workbook(io.BytesIO(workbook_bytes([scenario], library.facts)))
    assert book.sheetnames == ["Read me", *(sheet.name for sheet in layout.EDITED), "Library"]
    assert {page.freeze_panes for page in book.worksheets[1:-1]} == {"C2"}
    facts = book["Facts"]
    assert cell(facts, "Statement", 2).value == library.facts[first_id(library)].statement
    assert cell(facts, "Statement", 2).fill.fgColor.rgb == "00EEEEEE"
    assert cell(facts, "Statement", 3).fill.fgColor.rgb != "00EEEEEE"
    lists = {one.formula1 for page in book.worksheets for one in page.data_validations.dataValidation}
    assert {'"low,medium,high"', '"primary,secondary,derived"', '"plain,worried,confused,misinformed"'} <= lists
    assert cell(book["Turns"], "Required points", 2).value == "F1"
    assert cell(facts, "Statement", 2).alignment.wrap_text
    assert book["Library"].max_row == len(library.facts) + 1


def test_points_are_written_as_people_read_them(library: Library, tmp_path: Path) -> None:
    path = ROOT / "scenarios" / "v1" / "topics" / "cobra.json"
    [file] = read_scenarios([str(path)])
    rows = rows_of([file.scenario], library.facts)
    shown = [row.get(("required_points",)) for row in rows.of["Turns"]]
    assert any(" or " in str(one) for one in shown)


def test_edits_arrive_in_the_file(library: Library, tmp_path: Path) -> None:
    def edit(book: Any) -> None:
        cell(book["Turns"], "Question", 2).value = "¿Tienen redes los planes?"
        cell(book["Turns"], "Required points", 2).value = "F1; F3 or F4"
        for number, name in ((3, "F3"), (4, "F4")):
            values: dict[str, Any] = {
                "Scenario": "small", "Fact": name, "Statement": f"Statement {name}.", "Source": "A book",
                "Severity if wrong": "high", "Valid from": datetime(2026, 1, 31), "Confirmed by": "primary",
            }  # fmt: skip
            for header, value in values.items():
                cell(book["Facts"], header, number).value = value
        cell(book["Scenarios"], "Age", 2).value = 70

    done = imported(tmp_path, library, edit)
    assert done.code == 0, done.err
    made = written(tmp_path)
    assert made["scripted_turns"][0]["user_message"] == "¿Tienen redes los planes?"
    assert made["scripted_turns"][0]["required_points"] == ["F1", {"any_of": ["F3", "F4"]}]
    assert made["answer_key"]["canonical_facts"][1] == {
        "fact_id": "F3", "statement": "Statement F3.", "source": "A book", "severity_if_wrong": "high",
        "valid_from": "2026-01-31", "confirmed_by": "primary",
    }  # fmt: skip
    assert (made["persona"]["age"], made["persona"]["zip_code"]) == (70, "01384")
    assert call("validate", tmp_path / "out" / "small.json").code == 0


def test_columns_and_rows_may_be_moved(library: Library, tmp_path: Path) -> None:
    def edit(book: Any) -> None:
        page = book["Turns"]
        rows = [[one.value for one in row] for row in page.iter_rows(max_row=3)]
        page.delete_rows(1, page.max_row)
        for row in (rows[0][::-1], [], rows[1][::-1], rows[2][::-1]):
            page.append(row)

    assert imported(tmp_path, library, edit).code == 0
    assert [turn["turn_id"] for turn in written(tmp_path)["scripted_turns"]] == ["Q1", "Q2"]


@pytest.mark.slow
@each_case(
    ("edit", "says"),
    [
        (put("Facts", "Severity if wrong", 2, "huge"), "Facts!H2: 'huge' is not allowed; use 'low', 'medium' or 'high'."),
        (put("Facts", "Fact", 2, "D1"), "Facts!B2: 'D1' is not an id"),
        (put("Facts", "Statement", 2, "=A1"), "Facts!D2: this is a formula"),
        (put("Facts", "Statement", 2, 12), "Facts!D2: must be text (got the number 12)"),
        (put("Facts", "Source", 2, None), "Facts!E2: required but missing."),
        (put("Facts", "Source", 2, "#REF!"), "Facts!E2: this cell shows the error #REF!"),
        (put("Facts", "Valid from", 2, "soon"), "Facts!I2: must be a date such as 2026-01-31 (got 'soon')."),
        (put("Facts", "Valid from", 2, 46000), "Facts!I2: must be a date such as 2026-01-31 (got the number 46000)"),
        (put("Facts", "Valid from", 2, datetime(2026, 1, 1, 8)), "Facts!I2: must be a date such as 2026-01-31"),
        (put("Facts", "Only plan years", 2, "next"), "Facts!N2: must be plan years such as 2026; 2027."),
        (put("Facts", "Library fact", 2, "B-no-such-fact"), "Facts!E2: B-no-such-fact has this in the library"),
        (put("Facts", "Statement", 2, "The year is {{figure.nothing}}."), "Facts!D2: answer_key fact F1: facts/"),
        (put("Facts", "Statement", 2, "REPLACE: a fact"), "Facts!D2: the placeholder REPLACE is still there"),
        (put("Facts", "Scenario", 2, "other"), "Facts!A2: the sheet Scenarios has no scenario 'other'"),
        (put("Turns", "Scenario", 3, "other"), "Turns!A3: the sheet Scenarios has no scenario 'other'"),
        (put("Turns", "Scenario", 3, None), "Turns!A3: required but missing."),
        (put("Turns", "Turn", 3, "Q1"), "Turns!B3: the turn 'Q1' is there twice in this scenario"),
        (put("Turns", "Question", 3, None), "Turns!C3: required but missing."),
        (put("Turns", "Question", 2, "In {{persona.town}}?"), "Turns!C2: turn Q1 user_message: unknown slot"),
        (put("Turns", "Question", 2, datetime(2026, 1, 1)), "Turns!C2: must be text (got the date 2026-01-01 00:00:00)"),
        (put("Turns", "Question", 2, True), "Turns!C2: must be text (got TRUE)"),
        (put("Turns", "Required points", 2, "F1; F9"), "Turns!E2: turn Q1 required_points names 'F9'"),
        (put("Turns", "Required points", 2, "F1, F2"), "Turns!E2: separate points with ; (got 'F1, F2')."),
        (put("Turns", "Required points", 2, "F 1"), "Turns!E2: 'F 1' is not a fact id; write points as F1; F2"),
        (put("Turns", "Background", 2, "F1, F2"), "Turns!G2: separate ids with ; (got 'F1, F2')."),
        (put("Turns", "Ask only if reply mentions", 2, "yes"), "Turns!J2: scripted_turns[0].condition: the first turn"),
        (put("Turns", "More (JSON)", 2, "{"), "Turns!K2: invalid JSON"),
        (put("Turns", "More (JSON)", 2, "[1]"), "Turns!K2: must be a JSON object"),
        (put("Turns", "More (JSON)", 2, '{"titel": 1}'), "Turns!K2: unknown field"),
        (put("Turns", "More (JSON)", 2, '{"user_message": "x"}'), "Turns!K2: user_message is given here and in a cell"),
        (put("Scenarios", "Title", 2, None), "Scenarios!B2: required but missing."),
        (put("Scenarios", "Scenario", 2, "a b"), "Turns!A2: the sheet Scenarios has no scenario 'small'"),
        (renamed("no/path"), "Scenarios!A2: 'no/path' is not an id"),
        (put("Scenarios", "Scenario", 3, "small"), "Scenarios!A3: the scenario 'small' is there twice; change one id."),
        (put("Scenarios", "Scenario", 3, "more"), "Scenarios!A3: more has no row in the sheet Turns; add one."),
        (put("Scenarios", "Age", 2, "old"), "Scenarios!I2: must be a number (got 'old')."),
        (put("Scenarios", "ZIP code", 2, 1384), "Scenarios!L2: must be text (got the number 1384)"),
        (put("Scenarios", "May be reworded", 2, "maybe"), "Scenarios!X2: must be yes or no (got 'maybe')."),
        (put("Scenarios", "Other details", 2, "nothing"), "Scenarios!R2: 'nothing' must have the form name: value"),
        (put("Scenarios", "Turns to shuffle", 2, "Q8; Q9"), "Scenarios!W2: variation_knobs.shuffle names turn 'Q8'"),
        (put("Scenarios", "More (JSON)", 2, '{"persona": {"fictional": false}}'), "fictional must be true"),
        (put("Scenarios", "More (JSON)", 2, '{"answer_key": []}'), "Scenarios!Y2: answer_key is given here and in a cell"),
        (put("Scenarios", "More (JSON)", 2, '{"variants": []}'), "Scenarios!Y2: variants cannot be written here; use the"),
        (all_of(put("Scenarios", "Plan file", 2, "nowhere"), put("Variants", "Plan", 2, "x")), "Scenarios!U2: plan_file 'nowhere'"),
        (put("Disallowed claims", "Claim", 2, "x" * 1_001), "Disallowed claims!C2: must have at most 1000 characters"),
        (put("Disallowed claims", "Scenario", 3, "small"), "Disallowed claims!C3: required but missing."),
        (put("Variants", "Turn", 3, "Q7"), "Variants!H3: there is no turn 'Q7'; the turns are Q1, Q2."),
        (put("Variants", "Turn", 4, "Q1"), "Variants!H4: the turn 'Q1' is there twice in this variant"),
        (put("Variants", "Turn", 4, None), "Variants!H4: required but missing."),
        (put("Variants", "Question", 3, None), "Variants!I3: required but missing; write the other words of the turn"),
        (put("Variants", "Question", 3, "In {{knob.x}}?"), "Variants!I3: turn Q1 of variant worried user_message: unknown"),
        (put("Variants", "Style", 3, "angry"), "Variants!C3: 'angry' is not allowed"),
        (put("Variants", "Style", 4, "plain"), "Variants!C4: write this on the first row of the variant, in Variants!C3."),
        (put("Variants", "Plan", 2, "nothing"), "Variants!B2: variant plain names a plan, doctor or place"),
        (put("Turns", "Turn", 1, "Trun"), "Turns!B1: there is no column 'Trun'"),
        (put("Turns", "Turn", 1, None), "Turns: the column 'Turn' is missing"),
        (put("Turns", "Turn", 1, "Question"), "Turns!C1: the column 'Question' is there twice"),
        (put("Turns", "Turn", 30_000, "Q1"), "Turns: at most 20,000 rows and 200 columns can be read"),
        (lambda book: book["Turns"].merge_cells("B2:C3"), "Turns!B2:C3: merged cells cannot be read; unmerge them."),
        (lambda book: book.remove(book["Facts"]), "Facts: this sheet is missing"),
        (lambda book: book["Scenarios"].delete_rows(2, 9), "Turns!A2: the sheet Scenarios has no scenario 'small'"),
    ],
)  # fmt: skip
def test_an_error_names_its_cell_and_nothing_is_written(
    edit: Edit, says: str, library: Library, tmp_path: Path
) -> None:
    done = imported(tmp_path, library, edit)
    assert (done.code, done.out) == (2, "")
    assert f"edited.xlsx: {says}" in done.err or (says.startswith("fictional") and f"!Y2: {says}" in done.err), done.err
    assert done.err.endswith("Nothing was written.\n")
    assert "Traceback" not in done.err
    assert not (tmp_path / "out").exists()


def test_the_statement_of_a_library_fact_cannot_be_changed(library: Library, tmp_path: Path) -> None:
    scenario = with_library_fact(library)
    done = imported(tmp_path, library, put("Facts", "Statement", 2, "Something else."), scenario)
    assert (
        f"Facts!D2: this is not what {first_id(library)} says in the library; clear this cell, or clear Facts!C2"
        in done.err
    )
    done = imported(tmp_path, library, put("Facts", "Library fact", 2, "B-no-such-fact"), scenario)
    assert "Facts!C2: answer_key.library_facts.F2: the library has no fact 'B-no-such-fact'" in done.err
    done = imported(tmp_path, library, put("Facts", "Fact", 2, "D7"), scenario)
    [fault] = faults(done)
    assert fault.startswith("Facts!B2: 'D7' is not an id")
    done = imported(tmp_path, library, put("Facts", "Statement", 2, None), scenario)
    assert (done.code, written(tmp_path)["answer_key"]["library_facts"]) == (0, {"F2": first_id(library)})


def test_a_fact_of_the_library_is_taken_by_its_id(library: Library, tmp_path: Path) -> None:
    def edit(book: Any) -> None:
        for header, value in {"Scenario": "small", "Fact": "F2", "Library fact": first_id(library)}.items():
            cell(book["Facts"], header, 3).value = value

    assert imported(tmp_path, library, edit).code == 0
    assert written(tmp_path)["answer_key"]["library_facts"] == {"F2": first_id(library)}


def test_house_rules_are_warnings_with_their_cell(library: Library, tmp_path: Path) -> None:
    def edit(book: Any) -> None:
        cell(book["Turns"], "Question", 2).value = "Be sure to say: do plans have networks?"
        cell(book["Variants"], "Question", 4).value = "My number is 614-234-5678. What else?"
        cell(book["Scenarios"], "Themes", 2).value = None
        cell(book["Scenarios"], "Age", 2).value = 400

    done = imported(tmp_path, library, edit)
    assert done.code == 0, done.err
    for says in (
        "Turns!C2: 'Be sure to' tells the target how to answer",
        "Variants!I4: '614-234-5678' looks like a phone number",
        "Scenarios!D2: there are none; add one or two",
        "Scenarios!I2: must be at most 130 (got 400).",
    ):
        assert f"medicare-eval: warning: {tmp_path / 'edited.xlsx'}: {says}" in done.err, done.err
    assert written(tmp_path)["persona"]["age"] == 400


def test_several_errors_are_all_listed(library: Library, tmp_path: Path) -> None:
    def edit(book: Any) -> None:
        cell(book["Facts"], "Source", 2).value = 5
        cell(book["Turns"], "Question", 2).value = 6

    done = imported(tmp_path, library, edit)
    assert [line.partition("edited.xlsx: ")[2][:9] for line in done.err.splitlines()[:2]] == ["Turns!C2:", "Facts!E2:"]


def faults(done: Called) -> list[str]:
    """What the command says is wrong, without the name of the workbook."""
    return [line.partition("edited.xlsx: ")[2] for line in done.err.splitlines()[:-1]]


def test_every_cell_of_a_row_that_is_wrong_is_named(library: Library, tmp_path: Path) -> None:
    edit = all_of(put("Facts", "Address", 2, "nota url"), put("Facts", "Valid from", 2, "2026-13-01"))
    date_fault, address_fault = faults(imported(tmp_path, library, edit))
    assert date_fault == "Facts!I2: must be a date such as 2026-01-31 (got '2026-13-01')."
    assert address_fault.startswith("Facts!F2: ")


@each_case(
    ("edit", "places"),
    [
        (put("Scenarios", "Age", 2, True), ["Scenarios!I2"]),
        (put("Facts", "Severity if wrong", 2, 5), ["Facts!H2"]),
        (put("Facts", "Fact", 2, None), ["Facts!B2"]),
        (put("Facts", "Scenario", 2, "other"), ["Facts!A2", "Scenarios!A2"]),
        (put("Variants", "Turn", 3, 7), ["Variants!H3"]),
        (put("Variants", "Turn", 3, None), ["Variants!H3"]),
        (put("Turns", "More (JSON)", 2, 5), ["Turns!K2"]),
    ],
)  # fmt: skip
def test_one_mistake_is_named_in_no_other_cell(edit: Edit, places: list[str], library: Library, tmp_path: Path) -> None:
    assert [fault.partition(":")[0] for fault in faults(imported(tmp_path, library, edit))] == places


@each_case(
    ("edit", "says"),
    [
        (put("Facts", "Source", 1, None), ["Facts: the column 'Source' is missing"]),
        (put("Facts", "Source", 1, "Sauce"), ["Facts!E1: there is no column 'Sauce'", "Facts: the column 'Source' is"]),
        (put("Scenarios", "Title", 1, None), ["Scenarios: the column 'Title' is missing"]),
        (lambda book: book.remove(book["Turns"]), ["Turns: this sheet is missing"]),
        (all_of(put("Facts", "Source", 1, None), put("Turns", "Question", 2, 6)),
         ["Turns!C2: must be text", "Facts: the column 'Source' is missing"]),
    ],
)  # fmt: skip
def test_rows_of_a_sheet_that_cannot_be_read_are_not_said_to_be_missing(
    edit: Edit, says: list[str], library: Library, tmp_path: Path
) -> None:
    found = faults(imported(tmp_path, library, edit))
    assert [fault[: len(one)] for fault, one in zip(found, says, strict=True)] == says


@each_case("library_id", ["B-{{county}}-x", "B-{{state}}-{{county}}", "part-b-premium"])
def test_a_library_id_that_cannot_be_one_is_named_at_its_own_cell(
    library_id: str, library: Library, tmp_path: Path
) -> None:
    done = imported(tmp_path, library, put("Facts", "Library fact", 2, library_id), with_library_fact(library))
    [fault] = faults(done)
    assert fault.startswith(f"Facts!C2: '{library_id}' is not the id of a library fact")


def test_nothing_is_overwritten(library: Library, tmp_path: Path) -> None:
    scenario = tmp_path / "small.json"
    scenario.write_text(small().model_dump_json(), encoding="utf-8")
    book = tmp_path / "book.xlsx"
    assert call("scenarios", "export", scenario, "--to", "xlsx", "--out", book).code == 0
    before = book.read_bytes()
    again = call("scenarios", "export", scenario, "--out", book)
    assert (again.code, book.read_bytes()) == (2, before)
    assert "already exists and will not be overwritten" in again.err
    both = [small(), small(scenario_id="zz")]
    book.write_bytes(workbook_bytes(both, few(library)))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "zz.json").write_text("mine", encoding="utf-8")
    done = call("scenarios", "import", book, "--out", tmp_path / "out")
    assert (done.code, done.out) == (2, "")
    assert f"{tmp_path / 'out' / 'zz.json'} already exists and will not be overwritten" in done.err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["zz.json"]
    assert (tmp_path / "out" / "zz.json").read_text(encoding="utf-8") == "mine"


def test_a_folder_that_cannot_be_written_leaves_no_file_behind(library: Library, tmp_path: Path) -> None:
    book = tmp_path / "book.xlsx"
    book.write_bytes(workbook_bytes([small()], few(library)))
    (tmp_path / "out").write_text("a file, not a folder", encoding="utf-8")
    done = call("scenarios", "import", book, "--out", tmp_path / "out")
    assert (done.code, done.err.count("Traceback")) == (6, 0)


def test_a_disk_that_fails_midway_leaves_no_file_behind(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = tmp_path / "book.xlsx"
    book.write_bytes(workbook_bytes([small(), small(scenario_id="zz")], few(library)))
    real = Path.open

    def fails(self: Path, *arguments: Any, **named: Any) -> Any:
        if self.name == "zz.json":
            raise OSError(28, "No space left on device")
        return real(self, *arguments, **named)

    monkeypatch.setattr(Path, "open", fails)
    done = call("scenarios", "import", book, "--out", tmp_path / "out")
    assert done.code == 6
    assert "zz.json: write failed (No space left on device)" in done.err
    assert list((tmp_path / "out").iterdir()) == []


@each_case("data", [b"", b"hello", b"PK\x03\x04 damaged", b"\xd0\xcf\x11\xe0 old excel"])
def test_a_file_that_is_no_workbook_is_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.xlsx"
    path.write_bytes(data)
    done = call("scenarios", "import", path, "--out", tmp_path / "out")
    assert (done.code, done.out) == (2, "")
    assert (
        done.err == f"medicare-eval: {path} is not a workbook that can be read. Save it as an Excel workbook (.xlsx).\n"
    )


def test_a_workbook_with_damaged_parts_is_refused(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "bad.xlsx"
    whole = io.BytesIO(workbook_bytes([small()], few(library)))
    with zipfile.ZipFile(whole) as packed, zipfile.ZipFile(path, "w") as made:
        for name in packed.namelist():
            made.writestr(name, packed.read(name)[: None if "sheet2" not in name else 300])
    done = call("scenarios", "import", path, "--out", tmp_path / "out")
    assert (done.code, "is not a workbook that can be read" in done.err) == (2, True)


@each_case(
    ("arguments", "says"),
    [
        (["export"], "scenarios export: the following arguments are required: --out."),
        (["export", "--out", "book.csv"], "--out: book.csv must end in .xlsx"),
        (["export", "--to", "ods", "--out", "b.xlsx"], "argument --to: invalid choice: 'ods'"),
        (["export", "--out", "b.xlsx", "--json"], "scenarios export: unrecognized arguments: --json."),
        (["import", "b.xlsx"], "scenarios import: the following arguments are required: --out."),
        (["import", "--out", "x"], "scenarios import: the following arguments are required: WORKBOOK."),
        (["import", "a.xlsx", "b.xlsx", "--out", "x"], "scenarios import: unrecognized arguments: b.xlsx."),
        (["import", "nowhere.xlsx", "--out", "x"], "nowhere.xlsx cannot be read (No such file or directory)."),
        (["export", "--out", "b.xlsx", "--facts", "nowhere.json"], "nowhere.json cannot be read"),
        (["export", "--out", "b.xlsx", "--invented-plans", "nowhere.json"], "nowhere.json cannot be read"),
        (["library", "scenarios"], "scenarios library: unrecognized arguments: scenarios."),
        (
            ["list", "--out", "x"],
            "scenarios list: unrecognized arguments: --out. Try: medicare-eval scenarios list --help",
        ),
    ],
)
def test_a_wrong_command_says_what_is_wrong(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("scenarios", *arguments)
    assert done.code == 2
    assert says in done.err
    assert list(tmp_path.iterdir()) == []


def test_without_openpyxl_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "openpyxl":
            raise ImportError(name)
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", missing)
    done = call("scenarios", "export", "--out", tmp_path / "book.xlsx")
    assert done.code == 3
    assert done.err.endswith("Run: python -m pip install 'openpyxl>=3.1.5,<4'\n")
    assert call("scenarios", "import", tmp_path / "book.xlsx", "--out", tmp_path).code == 3


def test_a_value_that_no_cell_can_hold_is_refused(library: Library, tmp_path: Path) -> None:
    scenario = tmp_path / "small.json"
    persona = {"fictional": True, "health": ["x" * 1_000] * 40}
    scenario.write_text(small(persona=persona).model_dump_json(), encoding="utf-8")
    done = call("scenarios", "export", scenario, "--out", tmp_path / "book.xlsx")
    assert (done.code, (tmp_path / "book.xlsx").exists()) == (2, False)
    assert "small: the scenario has more than 32,767 characters as JSON" in done.err
