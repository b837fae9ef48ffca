"""What the project may cost at most: the size of `src/`, and what the fast suite collects, makes and starts.

Raising a limit needs a reason in the commit that does it; lowering one needs none. Time is measured, not limited.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from src.storage import MANIFEST

LIMITS = {
    "lines of src/": 57_500,
    "files of src/": 300,
    "classes of src/": 790,
    "test cases": 3_550,
    "runs made": 700,
    "processes started": 190,
}
"""Runs, judge checks and the like that tests make in their own process; processes that they start themselves."""
SRC = Path(__file__).resolve().parent.parent / "src"
_STARTS = {"subprocess.Popen", "os.fork", "os.posix_spawn"}


def over(found: Mapping[str, int]) -> list[str]:
    """What is over its limit, in sentences."""
    return [
        f"{found[name]:,} {name}, and the budget is {LIMITS[name]:,}. Make it less, or raise the limit in "
        "tests/budget.py and give the reason in the commit."
        for name in LIMITS
        if found.get(name, 0) > LIMITS[name]
    ]


def size_of(src: Path = SRC) -> dict[str, int]:
    texts = [path.read_text(encoding="utf-8") for path in src.rglob("*.py")]
    classes = sum(isinstance(node, ast.ClassDef) for text in texts for node in ast.walk(ast.parse(text)))
    lines = sum(text.count("\n") for text in texts)
    return {"lines of src/": lines, "files of src/": len(texts), "classes of src/": classes}


class Counts:
    """A plugin that counts what tests make and start, over all workers of pytest-xdist, and fails a session over budget."""

    def __init__(self) -> None:
        self._here: Counter[str] = Counter()
        self._workers: Counter[str] = Counter()
        self._over: list[str] = []
        self._said = ""

    def heard(self, event: str, arguments: tuple[object, ...]) -> None:
        """A hook for `sys.addaudithook`."""
        if event in _STARTS:
            self._here["processes started"] += 1
        elif event == "open" and f"/.{MANIFEST}." in str(arguments[0]):  # how a manifest begins to be written
            self._here["runs made"] += 1

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """A worker of this process has ended."""
        self._workers.update(getattr(node, "workeroutput", {}).get("counted", {}))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        config = session.config
        if hasattr(config, "workeroutput"):
            config.workeroutput["counted"] = dict(self._here)
            return
        found = Counter(self._workers if self._workers or workers_of(config) else self._here)
        if is_whole(config):
            self._over = over({**found, "test cases": session.testscollected})
            if self._over and session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
        self._said = ", ".join(f"{number:,} {name}" for name, number in sorted(found.items()))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._said:
            terminalreporter.write_line(self._said)
        for line in self._over:
            terminalreporter.write_line(f"OVER BUDGET: {line}", red=True)


def workers_of(config: pytest.Config) -> int:
    return int(getattr(config.option, "numprocesses", None) or 0)


def is_whole(config: pytest.Config) -> bool:
    """Whether the session is the whole fast suite, and no part of it."""
    option = config.option
    chosen = option.keyword or option.deselect or option.ignore or option.ignore_glob or option.collectonly
    everything = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    return everything and not chosen and option.markexpr == "not slow and not nightly"
