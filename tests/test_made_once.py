"""Runs that tests share are what the command makes, and are made again when anything that decides them changes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import get_args

import pytest

from src import storage
from src.store.package_data import DataKind
from tests import made_once
from tests.runs import ONE, ROOT, copied_run, make_run, shared, shared_run

FILES = (storage.RESULTS, storage.JOURNAL, storage.MANIFEST)


def test_a_shared_run_has_the_results_of_a_fresh_one_and_is_made_once(tmp_path: Path) -> None:
    run = shared_run()
    assert shared_run() == run
    fresh = make_run(tmp_path)
    assert (run / storage.RESULTS).read_bytes() == (fresh / storage.RESULTS).read_bytes()
    assert {path.name for path in run.iterdir()} == {path.name for path in fresh.iterdir()}


def test_a_copy_has_the_bytes_of_the_shared_run(tmp_path: Path) -> None:
    run, copy = shared_run(), copied_run(tmp_path)
    assert [(copy / name).read_bytes() for name in FILES] == [(run / name).read_bytes() for name in FILES]


def test_every_input_is_listed() -> None:
    assert {"src", *get_args(DataKind)} <= set(made_once.INPUTS)
    assert all((ROOT / name).exists() for name in made_once.INPUTS)


def test_a_change_of_any_input_makes_another_key(tmp_path: Path) -> None:
    for name in made_once.INPUTS:
        file = tmp_path / name / "deep" / "file.json" if (ROOT / name).is_dir() else tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("1", encoding="utf-8")
    seen = {made_once.inputs_sha256(tmp_path)}
    for path in sorted(path for path in tmp_path.rglob("*") if path.is_file()):
        path.write_text("2", encoding="utf-8")
        seen.add(made_once.inputs_sha256(tmp_path))
    assert len(seen) == len(made_once.INPUTS) + 1
    before = made_once.inputs_sha256(tmp_path)
    shutil.move(tmp_path / "facts" / "deep", tmp_path / "facts" / "elsewhere")
    assert made_once.inputs_sha256(tmp_path) != before


def test_the_day_and_every_word_of_a_command_are_part_of_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {made_once.key_of(words) for words in (("run", "a b"), ("run", "a", "b"), ("run",), ("demo",))}
    assert len(keys) == 4
    monkeypatch.setenv("MEDICARE_EVAL_TODAY", "2027-01-01")
    assert made_once.key_of(("run",)) not in keys


def test_what_a_test_changed_is_noticed_and_what_was_half_made_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made_once, "_kept", lambda: tmp_path)
    run = shared("run", "--scenario", ONE, "--target", "fake:wrong").folder
    half = run.parent.parent / "state"
    half.unlink()
    (run / storage.SEAL).unlink()
    again = shared("run", "--scenario", ONE, "--target", "fake:wrong").folder
    assert (again / storage.SEAL).is_file()
    with (again / storage.SEAL).open("ab") as file:
        file.write(b" ")
    with pytest.raises(AssertionError, match="a test changed what others read too"):
        shared("run", "--scenario", ONE, "--target", "fake:wrong")
