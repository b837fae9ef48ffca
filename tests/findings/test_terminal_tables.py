"""Tables for a terminal: never wider than it, and no word is broken while there is another way."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from src.cli.run import next_steps
from src.cli.tables import plain_table, wrapped
from src.schemas import CODES
from src.scoring.definitions import CODE_HEADINGS
from tests.cases import each_case
from tests.runs import ONE, call

NUMBERS = ("label", "first", "second")


def test_columns_are_aligned_and_two_spaces_apart() -> None:
    table = plain_table(NUMBERS, [["a", "1", "22"], ["longer", "333", "4"]], width=80)
    assert table.splitlines() == ["label   first  second", "a           1      22", "longer    333       4"]


def test_wide_numbers_wrap_before_a_word_of_the_first_column_breaks() -> None:
    cells = [[name, *(["100.0% (97.1-100.0%)"] * 4)] for name in ("SUPPORTED", "CONTRADICTED", "NOT_IN_KEY")]
    table = plain_table(("judge, label", *(f"measure {n}" for n in range(4))), cells, width=80)
    assert max(map(len, table.splitlines())) <= 80
    for name in ("SUPPORTED", "CONTRADICTED", "NOT_IN_KEY"):
        assert re.search(rf"^{name}\b", table, re.MULTILINE)


def test_the_widest_column_wraps_between_words() -> None:
    table = plain_table(("name", "detail"), [["key", "one two three four five"]], "ll", width=20)
    assert table.splitlines() == ["name  detail", "key   one two three", "      four five"]


def test_a_name_that_fits_nowhere_is_cut_and_nothing_is_lost() -> None:
    table = plain_table(("target", "n"), [["x" * 50, "1"]], width=20)
    lines = table.splitlines()
    assert max(map(len, lines)) <= 20
    assert "".join(line.split()[0] for line in lines[1:]) == "x" * 50
    assert lines[1].endswith(" 1")


def test_a_long_name_breaks_after_punctuation() -> None:
    table = plain_table(("target", "n"), [["compatible:flaky", "1"]], width=16)
    assert table.splitlines() == ["target         n", "compatible:    1", "flaky"]
    path = plain_table(("target", "n"), [["google/gemini-3.1-pro and more", "1"]], width=16)
    assert [line[:13].rstrip() for line in path.splitlines()[1:]] == ["google/", "gemini-3.1-", "pro and more"]


def test_a_name_is_cut_in_a_word_only_if_the_word_is_too_long_for_a_line() -> None:
    table = plain_table(("target", "n"), [["ab:cdefghijklmnopqrstuvwxyz", "1"]], width=16)
    assert [line.split()[0] for line in table.splitlines()[1:]] == ["ab:", "cdefghijklmno", "pqrstuvwxyz"]


def test_a_word_after_a_name_that_fills_its_last_line_begins_at_the_left() -> None:
    table = plain_table(("target", "n"), [[f"{'x' * 26} two", "1"]], width=16)
    assert table.splitlines() == ["target         n", f"{'x' * 13}  1", "x" * 13, "two"]


def test_line_breaks_in_cells_are_kept_and_captions_wrap() -> None:
    table = plain_table(("t", "a\nb"), [["x", "0.5\nn=2"]], caption="one two three", width=10)
    assert table.splitlines() == ["t    a", "     b", "x  0.5", "   n=2", "one two", "three"]


def test_a_name_with_hyphens_is_not_broken() -> None:
    name = "google:gemini-3.1-pro-preview"
    table = plain_table(("model", "note"), [[name, "one two three four five"]], "ll", width=40)
    assert name in table
    assert name in wrapped(f"The target is {name}, and nothing else.", 30).splitlines()[1]


def test_text_wraps_between_words_at_the_width_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    assert wrapped("one two three four five\n\nsix") == "one two three four\nfive\n\nsix"
    assert wrapped("x" * 30 + " y") == "x" * 30 + "\ny", "a word is never cut: it may be a path"
    assert wrapped("") == ""


@each_case(
    "command", ["models", "scenarios list", f"run --scenario {ONE} --target fake:careful --target fake:wrong --quiet"]
)
def test_commands_print_no_line_wider_than_80_columns(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    code, out, _ = call(*command.split())
    assert code == 0
    prose = [line for line in f"{out}\n{next_steps()}".splitlines() if not line.startswith("  ")]
    assert [line for line in prose if len(line) > 80] == [], "only indented paths and commands may be longer"


@pytest.mark.slow
def test_models_and_scenarios_are_listed_with_whole_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lists = ("scenarios list", "scenarios list --plan-year 2027")
    for command, field in (("models", "name"), *((words, "scenario_id") for words in lists)):
        names = [row[field] for row in json.loads(call(*command.split(), "--json")[1])]
        firsts = {line.split(" ")[0] for line in call(*command.split())[1].splitlines()}
        assert names
        assert set(names) <= firsts


def test_every_study_code_has_a_heading_in_the_order_of_the_levels() -> None:
    assert tuple(CODE_HEADINGS) == CODES


def test_control_characters_are_not_printed() -> None:
    assert "\x1b" not in plain_table(("a",), [["\x1b[31mred"]], width=40)


@each_case("name, value", [("FORCE_COLOR", "1"), ("TERM", "dumb"), ("COLUMNS", "30")])
def test_a_table_does_not_depend_on_what_else_is_known_of_the_terminal(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [["[red]x[/red] :smile:", "1" * 60, "2" * 60]]
    usual = plain_table(NUMBERS, rows, width=200)
    monkeypatch.setenv(name, value)
    assert plain_table(NUMBERS, rows, width=200) == usual
    assert usual.splitlines()[1].startswith("[red]x[/red] :smile:  1111") and "\x1b" not in usual


def test_wide_characters_take_two_columns() -> None:
    assert plain_table(("name", "n"), [["老人", "1"], ["ab", "2"]], width=80).splitlines() == [
        "name  n", "老人  1", "ab    2",
    ]  # fmt: skip


def test_a_table_without_rows_has_its_header() -> None:
    assert plain_table(NUMBERS, [], width=80) == "label  first  second"


def test_the_terminal_decides_without_a_width(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = "word " * 30
    for columns in (40, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        longest = max(map(len, plain_table(("a",), [[cell]]).splitlines()))
        assert columns - 5 <= longest <= columns


WORDS = st.text(alphabet="abcdefgh ", max_size=30)


@settings(deadline=None)
@given(st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=5), st.integers(30, 100))
def test_every_word_is_printed_and_no_line_is_too_long(rows: list[tuple[str, str, str]], width: int) -> None:
    table = plain_table(NUMBERS, rows, width=width)
    words = [word for row in rows for cell in row for word in cell.split()]
    fits = sum(max(map(len, [name, *" ".join(row[n] for row in rows).split()])) for n, name in enumerate(NUMBERS))
    if fits + 4 <= width:
        assert max(map(len, table.splitlines())) <= width
        assert sorted(table.split()) == sorted(["label", "first", "second", *words])
