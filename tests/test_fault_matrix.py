"""A slice of the fault matrix with every run of the suite; all of it: `python -m tests.fault_matrix`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from src.adapters.base import RETRYABLE
from tests import fault_matrix as matrix
from tests.fault_matrix import FAULTS, NO_FAULT, PROVIDERS, ROLES, Cell, Role, expected, whole
from tests.loopback import Scripted

JUDGES: tuple[Role, ...] = ROLES[1:]


def test_the_matrix_is_whole() -> None:
    assert len([cell for cell in whole() if cell.fault is not NO_FAULT]) == 22 * 5 * 5 == 550
    assert [fault.name for fault in FAULTS if fault.name.isdigit()] == (
        ["400", "401", "403", "404", "408", "409", "413", "422", "429", "500", "502", "503", "529"]
    )


def test_targets(tmp_path: Path) -> None:
    assert matrix.run(matrix.cells(["target"], [NO_FAULT, *FAULTS]), tmp_path).problems == []


@pytest.mark.parametrize("role", JUDGES)
def test_judges(tmp_path: Path, role: Role) -> None:
    """Every fault once, each at the next provider; another provider begins for each role."""
    turn = JUDGES.index(role)
    chosen = [
        Cell(role, fault, PROVIDERS[(turn + number) % len(PROVIDERS)])
        for number, fault in enumerate([NO_FAULT, *FAULTS])
    ]
    assert matrix.run(chosen, tmp_path).problems == []


@pytest.mark.parametrize("role", ["target", "extractor", "scorer", "adjudicator"])
def test_a_fault_that_passes_is_got_over(tmp_path: Path, role: Role) -> None:
    """What is worth a retry and comes right at the second attempt is an answer like any other."""
    passing = [replace(fault, times=1) for fault in FAULTS if fault.outcome in RETRYABLE and not fault.slow]
    chosen = [Cell(role, fault, PROVIDERS[number % len(PROVIDERS)]) for number, fault in enumerate(passing)]
    found = matrix.run(chosen, tmp_path).findings
    assert {str(cell): str(finding) for cell, finding in found.items()} == {
        str(cell): f"{' '.join(sorted(['ok', cell.fault.outcome]))} x2 → scored" for cell in chosen
    }


def test_the_examination_sees_what_it_should(tmp_path: Path) -> None:
    """A cell whose server does not do what the cell says is a problem: the checks can fail."""
    by_name = {fault.name: fault for fault in FAULTS}
    wrong = {
        "answers": replace(by_name["500"], scripted=Scripted(text=matrix.ANSWER)),
        "other class": replace(by_name["429"], scripted=Scripted(status=401)),
        "other status": replace(by_name["500"], scripted=Scripted(status=502)),
        "no body": replace(by_name["`{}`"], scripted=Scripted(fault="reset")),
    }
    for name, fault in wrong.items():
        cell = Cell("target", replace(fault, name=name), "openai")
        assert matrix.run([cell], tmp_path / name).problems, name


def test_the_page_says_what_is_expected() -> None:
    """The page is written from what was found, and only where all of it was as expected: so it cannot go stale."""
    assert matrix.PAGE.read_text(encoding="utf-8") == matrix.page({cell: expected(cell) for cell in whole()}, 0)


def test_only_the_worthwhile_is_tried_again() -> None:
    again = {fault.name for fault in FAULTS if expected(Cell("target", fault, "openai")).attempts > 1}
    assert again == {fault.name for fault in FAULTS if fault.outcome in RETRYABLE}
    assert {"400", "401", "403", "404", "413", "422"} == {fault.name for fault in FAULTS} - again
