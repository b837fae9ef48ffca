"""Inspect's own viewer, in a real browser, shows every exported log with its counts, scores and explanations."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from src.exports.export import export

from ..browser import NEEDS_CHROMIUM
from .made_runs import nothing_to_check, of_outcome, planned, rich, write_run
from .test_pages_in_browser import browser

__all__ = ["browser"]

pytestmark = [
    pytest.mark.slow,
    NEEDS_CHROMIUM,
    pytest.mark.skipif(find_spec("inspect_ai") is None, reason="inspect_ai is not installed here"),
]
LONGEST = 60_000
"""Milliseconds after which a page that shows nothing has failed."""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of Inspect's viewer on logs of two targets: one with scores, and one that has none to show."""
    folder = tmp_path_factory.mktemp("viewer")
    silent = [nothing_to_check(n) for n in (1, 2)]
    other = {"name": "openai:gpt-x"}
    silent = [one.model_copy(update={"target": one.target.model_copy(update=other)}) for one in silent]
    results = [rich(1), rich(2), of_outcome("failed", 3), *silent]
    export(write_run(folder / "run", results, planned()), folder / "out", ["inspect"])
    port = free_port()
    command = [sys.executable, "-m", "inspect_ai", "view", "start", "--log-dir", str(folder / "out" / "inspect")]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    environment = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        until = time.monotonic() + 120
        while not answers(port):
            assert server.poll() is None and time.monotonic() < until, "the viewer does not start"
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.terminate()
        server.wait(30)


def words_of(page: Any, selector: str = "body") -> str:
    return " ".join(str(page.locator(selector).first.inner_text()).split())


def test_the_viewer_counts_the_samples_of_every_log_and_explains_a_score(viewer: str, browser: Any) -> None:
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.set_default_timeout(LONGEST)
    for name, samples in (("openai/gpt-x", 2), ("fake/careful", 3)):
        page.goto(viewer)
        page.get_by_text(name).first.click()
        page.get_by_text(f"{samples} Samples").first.wait_for()
        shown = words_of(page)
        assert name in shown and "NaN" not in shown
    page.locator('[role="row"]').filter(has_text="s1").first.click()
    page.get_by_role("tab", name="Scoring").first.click()
    page.get_by_text("Explanation").first.wait_for()
    shown = words_of(page)
    page.close()
    assert "No explanation" not in shown
    assert "accurate_complete" in shown and "the judges left a claim open" in shown, shown
