"""The pages as a process serves them, and a real browser that opens them."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import ROOT

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NEEDS_CHROMIUM = pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed here")
PROGRAM = [sys.executable, "-c", "import sys; from src.cli import main; sys.exit(main())"]


@dataclass
class Page:
    status: int
    headers: dict[str, str]
    text: str


@dataclass
class Served:
    process: subprocess.Popen[str]
    links: dict[str, str]

    @property
    def host(self) -> str:
        return next(iter(self.links.values())).split("/")[2]

    def ask(self, method: str, path: str, *, body: str | None = None, **headers: str) -> Page:
        connection = http.client.HTTPConnection(self.host, timeout=30)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        sent = {"host": self.host, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if body is not None:
            sent.setdefault("content-type", "application/x-www-form-urlencoded")
            sent["content-length"] = str(len(body.encode()))
        for name, value in sent.items():
            connection.putheader(name, value)
        connection.endheaders(None if body is None else body.encode())
        with closing(connection), connection.getresponse() as answer:
            return Page(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read().decode())

    def session(self, person: str) -> str:
        """The cookie that a person's link gives."""
        opened = self.ask("GET", self.links[person].partition(self.host)[2])
        assert opened.status == 303
        assert "HttpOnly" in opened.headers["set-cookie"] and "SameSite=lax" in opened.headers["set-cookie"]
        return opened.headers["set-cookie"].partition(";")[0]


@contextmanager
def served(*words: object, cwd: Path = ROOT) -> Iterator[Served]:
    """Pages as a command of the program serves them."""
    with running([*PROGRAM, *map(str, words), "--no-open"], cwd) as found:
        yield found


@contextmanager
def running(command: list[str], cwd: Path = ROOT) -> Iterator[Served]:
    """A process that prints links and then serves pages."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout
    links: dict[str, str] = {}
    try:
        for line in process.stdout:
            if found := re.search(r"(?:  (\S+)|open)\S* (http\S+)", line):
                links[(found[1] or "").rstrip(":")] = found[2]
            if "Ctrl-C" in line:
                break
        assert links, process.stderr.read() if process.stderr else ""
        yield Served(process, links)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


@contextmanager
def chromium() -> Iterator[Any]:
    """While it is open, no other event loop can run in this thread."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


def go(page: Any, key: str) -> None:
    """Press a key that leads to another page, and wait until that page with its script is loaded."""
    with page.expect_navigation():
        page.keyboard.press(key)


def click(found: Any) -> None:
    """Click what leads to another page, and wait until that page with its script is loaded.

    A click alone returns earlier, and keys that are pressed before the script is there are lost.
    """
    with found.page.expect_navigation():
        found.click()


def reload_until(page: Any, wanted: str, most: int = 300) -> None:
    """Load a page again until it has this element. The run goes on after an answer is saved, at its own pace."""
    for _ in range(most):
        page.reload()
        if page.locator(wanted).count():
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"{wanted} did not come: {page.inner_text('body')}")


def wait_for_tasks(page: Any) -> None:
    """Load the page of a person again until tasks wait for them and no more come."""
    reload_until(page, "a.button")
    same, before = 0, ""
    while same < 5:
        page.wait_for_timeout(200)
        page.reload()
        now = page.inner_text(".bar")
        same, before = (same + 1 if now == before else 0), now


def opened(browser: Any, served: Served, person: str, width: int = 1280) -> Any:
    page = browser.new_context(viewport={"width": width, "height": 900}).new_page()
    page.goto(served.links[person])
    return page
