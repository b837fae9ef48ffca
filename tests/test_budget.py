"""The project stays within the budget of `tests/budget.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.budget import LIMITS, Counts, over, size_of
from tests.runs import make_run, process


def test_the_source_is_within_its_budget() -> None:
    found = size_of()
    assert set(found) < set(LIMITS)
    assert not over(found), "\n".join(over(found))


def test_lines_files_and_classes_are_counted(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "one.py").write_text("class A:\n    class B: ...\n\n\nx = 1\n", encoding="utf-8")
    (tmp_path / "package" / "two.py").write_text("def f():\n    class C: ...\n", encoding="utf-8")
    (tmp_path / "package" / "data.json").write_text("[]\n", encoding="utf-8")
    assert size_of(tmp_path) == {"lines of src/": 7, "files of src/": 2, "classes of src/": 3}


def test_what_is_over_its_limit_is_said_with_what_to_do() -> None:
    assert over(LIMITS) == []
    (said,) = over({**LIMITS, "runs made": LIMITS["runs made"] + 1})
    assert said.startswith(f"{LIMITS['runs made'] + 1:,} runs made, and the budget is {LIMITS['runs made']:,}.")
    assert "give the reason in the commit" in said


def session(**output: Any) -> Any:
    option = SimpleNamespace(
        keyword="", deselect=None, ignore=None, ignore_glob=None, collectonly=False, numprocesses=None,
        markexpr="not slow and not nightly",
    )  # fmt: skip
    config = SimpleNamespace(option=option, args_source=pytest.Config.ArgsSource.TESTPATHS, **output)
    return SimpleNamespace(config=config, testscollected=1, exitstatus=pytest.ExitCode.OK)


def test_runs_and_processes_of_every_worker_are_counted_and_too_many_fail_the_session(tmp_path: Path) -> None:
    worker = Counts()
    sys.addaudithook(worker.heard)
    make_run(tmp_path)
    process("--version")
    one = session(workeroutput={})
    worker.pytest_sessionfinish(one)
    counted = one.config.workeroutput["counted"]
    assert counted == {"runs made": 1, "processes started": 1}
    many = {"runs made": LIMITS["runs made"]}
    controller = Counts()
    whole = session()
    whole.config.option.numprocesses = 2
    for output in ({"counted": many}, {}):
        controller.pytest_testnodedown(SimpleNamespace(workeroutput=output))
    controller.pytest_sessionfinish(whole)
    assert whole.exitstatus == pytest.ExitCode.OK
    controller.pytest_testnodedown(SimpleNamespace(workeroutput={"counted": counted}))
    controller.pytest_sessionfinish(whole)
    assert whole.exitstatus == pytest.ExitCode.TESTS_FAILED
    written: list[str] = []
    reporter = SimpleNamespace(write_line=lambda line, **_: written.append(line))
    controller.pytest_terminal_summary(cast(pytest.TerminalReporter, reporter))
    assert written[0] == f"1 processes started, {LIMITS['runs made'] + 1:,} runs made"
    assert written[1].startswith("OVER BUDGET: ") and len(written) == 2


def test_a_part_of_the_suite_has_no_budget() -> None:
    part = session()
    part.config.option.keyword = "cli"
    counts = Counts()
    for _ in range(LIMITS["processes started"] + 1):
        counts.heard("subprocess.Popen", ())
    counts.pytest_sessionfinish(part)
    assert part.exitstatus == pytest.ExitCode.OK
