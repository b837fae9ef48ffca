"""A sample of the fault matrix in the fast suite, every fault in every role in the slow one, and all of it nightly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from src.adapters.base import RETRYABLE
from tests import fault_matrix as matrix
from tests.fault_cells import FAULTS, NO_FAULT, PROVIDERS, ROLES, Cell, Role, cells, expected, outages, whole
from tests.loopback import Scripted

BY_NAME = {fault.name: fault for fault in (NO_FAULT, *FAULTS)}
SAMPLE = ("no fault", "400", "401", "429", "500", "reset", "malformed JSON")
"""One fault of each class that is over at once, and the control."""


HOW_MANY = [1, pytest.param(len(PROVIDERS), marks=pytest.mark.nightly)]
"""Providers that meet each fault of a role."""


def at_some(every: Sequence[Cell], providers: int, first: int = 0) -> list[Cell]:
    """The cells of so many providers for each fault, of others for the next fault."""
    faults = list(dict.fromkeys(cell.fault for cell in every))
    chosen = []
    for place, fault in enumerate(faults):
        turn = {PROVIDERS[(first + place + number) % len(PROVIDERS)] for number in range(providers)}
        chosen += [cell for cell in every if cell.fault == fault and cell.provider in turn]
    assert {cell.fault for cell in chosen} == set(faults)
    return chosen


def test_the_matrix_has_every_fault_in_every_role_at_every_provider() -> None:
    assert len([cell for cell in whole() if cell.fault is not NO_FAULT]) == 23 * 5 * 5 + 2 * 16 * 5 == 735
    assert [fault.name for fault in FAULTS if fault.name.isdigit()] == (
        ["400", "401", "402", "403", "404", "408", "409", "413", "422", "429", "500", "502", "503", "529"]
    )


def test_a_sample_of_faults_has_the_expected_outcome_in_every_role(tmp_path: Path) -> None:
    """Every role meets every fault of the sample, each at another provider."""
    chosen = [
        Cell(role, BY_NAME[name], PROVIDERS[(place + number) % len(PROVIDERS)])
        for place, role in enumerate(ROLES)
        for number, name in enumerate(SAMPLE)
    ]
    chosen += [
        Cell("target", BY_NAME["503"], "openai", outage=True),
        Cell("verifier", BY_NAME["reset"], "google", True),
    ]
    found = matrix.run(chosen, tmp_path)
    assert found.problems == []
    assert found.findings == {cell: expected(cell) for cell in chosen}


@pytest.mark.slow
@pytest.mark.parametrize("role", ["target", "verifier"])
@pytest.mark.parametrize("providers", HOW_MANY)
def test_an_outage_at_every_provider_is_never_a_result(tmp_path: Path, role: Role, providers: int) -> None:
    chosen = at_some(outages([role]), providers)
    found = matrix.run(chosen, tmp_path)
    assert found.problems == []
    assert found.findings == {cell: expected(cell) for cell in chosen}


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("providers", HOW_MANY)
def test_every_fault_at_every_provider_has_the_expected_outcome(tmp_path: Path, role: Role, providers: int) -> None:
    chosen = at_some(cells([role], [NO_FAULT, *FAULTS]), providers, first=ROLES.index(role))
    found = matrix.run(chosen, tmp_path)
    assert found.problems == []
    assert found.findings == {cell: expected(cell) for cell in chosen}


@pytest.mark.slow
@pytest.mark.parametrize("role", ["target", "extractor", "scorer", "adjudicator"])
def test_a_retry_that_succeeds_gives_an_answer_like_any_other(tmp_path: Path, role: Role) -> None:
    passing = [replace(fault, times=1) for fault in FAULTS if fault.outcome in RETRYABLE and not fault.slow]
    chosen = [Cell(role, fault, PROVIDERS[number % len(PROVIDERS)]) for number, fault in enumerate(passing)]
    found = matrix.run(chosen, tmp_path).findings
    assert {str(cell): str(finding) for cell, finding in found.items()} == {
        str(cell): f"{' '.join(sorted(['ok', cell.fault.outcome]))} x2 → scored" for cell in chosen
    }


def test_a_server_that_does_not_do_what_its_cell_says_is_a_problem(tmp_path: Path) -> None:
    wrong = {
        "answers": replace(BY_NAME["500"], scripted=Scripted(text=matrix.ANSWER)),
        "other class": replace(BY_NAME["429"], scripted=Scripted(status=401)),
        "other status": replace(BY_NAME["500"], scripted=Scripted(status=502)),
        "no body": replace(BY_NAME["`{}`"], scripted=Scripted(fault="reset")),
    }
    chosen = [Cell("target", replace(fault, name=name), "openai") for name, fault in wrong.items()]
    problems = matrix.run(chosen, tmp_path).problems
    assert {cell for cell in chosen if not any(problem.startswith(f"{cell}: ") for problem in problems)} == set()


def test_the_published_page_shows_the_expected_outcomes() -> None:
    """The page is written from what was found, and only if all of it was as expected, so it cannot go stale."""
    assert matrix.PAGE.read_text(encoding="utf-8") == matrix.page({cell: expected(cell) for cell in whole()}, 0)


def test_only_failures_that_may_pass_are_retried() -> None:
    again = {
        fault.name
        for fault in FAULTS
        if expected(Cell("target", fault, "openai")).attempts != 1 and fault.outcome != "denied"
    }
    assert again == {fault.name for fault in FAULTS if fault.outcome in RETRYABLE}
    assert {"400", "401", "402", "403", "404", "413", "422"} == {fault.name for fault in FAULTS} - again
