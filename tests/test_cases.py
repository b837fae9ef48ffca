"""Cases in a loop: each is run, and each that fails is named."""

from __future__ import annotations

import inspect
import os
from pathlib import Path

import pytest

from tests.cases import each_case


def test_every_case_is_run_and_those_that_fail_are_all_named() -> None:
    seen: list[tuple[int, str]] = []

    @each_case("number, word", [(1, "one"), (2, "two"), (3, "three")])
    def odd(number: int, word: str) -> None:
        seen.append((number, word))
        assert number == 2, word

    with pytest.raises(ExceptionGroup, match="2 of 3 cases fail") as found:
        odd()
    assert seen == [(1, "one"), (2, "two"), (3, "three")]
    assert [error.__notes__ for error in found.value.exceptions] == [
        ["case 1 of 3: 1, 'one'"],
        ["case 3 of 3: 3, 'three'"],
    ]


def test_one_case_that_fails_fails_as_itself() -> None:
    @each_case("number", [pytest.param(1, id="one"), 2], ids=lambda number: f"number {number}")
    def first(number: int) -> None:
        if number == 1:
            raise KeyError("why")

    with pytest.raises(KeyError, match="why") as found:
        first()
    assert found.value.__notes__ == ["case 1 of 2: 'number 1'"]


def test_other_arguments_stay_fixtures_and_loops_may_be_nested() -> None:
    seen: list[object] = []

    @each_case("b", "xy")
    @each_case("a", [1, 2])
    def all_of(a: int, b: str, capsys: str) -> None:
        seen.append((a, b, capsys))

    assert list(inspect.signature(all_of).parameters) == ["capsys"]
    all_of(capsys="here")
    assert seen == [(1, "x", "here"), (2, "x", "here"), (1, "y", "here"), (2, "y", "here")]


def test_each_case_has_a_folder_of_its_own_and_leaves_no_patch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = []

    @each_case("number", [1, 2])
    def writes(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert list(tmp_path.iterdir()) == [] and "CASE" not in os.environ
        (tmp_path / "file").touch()
        monkeypatch.setenv("CASE", str(number))
        folders.append(tmp_path)

    writes(tmp_path=tmp_path, monkeypatch=monkeypatch)
    assert len(set(folders)) == 2
    assert "CASE" not in os.environ


def test_no_cases_and_cases_with_marks_are_refused() -> None:
    with pytest.raises(AssertionError, match="no cases"):
        each_case("a", [])
    with pytest.raises(AssertionError, match="mark"):
        each_case("a", [pytest.param(1, marks=pytest.mark.slow)])
