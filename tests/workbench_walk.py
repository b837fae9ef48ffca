"""Every page of the workbench in a real browser, one after the other: readers look, people judge, one settles.

`python -m tests.workbench_walk --write` takes the pictures of docs/review.md and notes what the pages say; a slow test
walks again and compares what they say.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.browser import chromium, click, go, opened, reload_until, served, wait_for_tasks
from tests.runs import ROOT, SCENARIOS, newest, process

PICTURES = ROOT / "docs" / "review"
SAID = PICTURES / "pages.json"
WIDTHS = (1280, 390)
HEIGHT = 900
CHANGES = re.compile(
    r"\d{8}T\d{6}Z(-\d+)?|\d{4}-\d\d-\d\d(T[\d:.]+(Z|\+00:00))?|/\S*/(?=runs)|[0-9a-f]{12,}|(?<=latency_ms.: )[\d.]+"
)
"""What is different in every walk: time stamps, the folder, hashes, how long a call took."""


@dataclass(frozen=True)
class Stop:
    """A page that the walk has come to."""

    name: str
    page: Any

    def said(self) -> str:
        """What the page says, without what is different in every walk."""
        text = self.page.locator("body").inner_text()
        return CHANGES.sub("…", re.sub(r"\s+", " ", text))


def judge(page: Any, label: str, *, fact: bool = False) -> None:
    """Judge the claim on the page by keys alone. If the facts are doubted, insist; if they are refused, cite none."""
    before = page.url.partition("?")[0]
    page.keyboard.press({"SUPPORTED": "1", "CONTRADICTED": "2", "NOT_IN_KEY": "3"}[label])
    if fact:
        page.keyboard.press("j")
        page.keyboard.press("Space")
    go(page, "Control+Enter")
    if page.url.partition("?")[0] == before and page.locator(".problems").count():
        if page.locator("input[name=insist]").count() == 0:
            page.keyboard.press("j")  # what no answer may claim supports nothing
            page.keyboard.press("Space")
            page.keyboard.press("3")
        go(page, "Control+Enter")


def begin(page: Any) -> None:
    if page.locator("form.claim").count() == 0:
        page.locator("a.button").first.focus()
        go(page, "Enter")


def judge_all(page: Any, person: str) -> None:
    """r2 finds every third claim not in the key, so that there is something to settle."""
    begin(page)
    while page.locator("form.claim").count():
        claim = page.inner_text(".claimtext")
        settles = page.locator('input[name="evidence"]').count() == 0
        strict = person == "r2" and sum(map(ord, claim)) % 3 == 0
        judge(page, "NOT_IN_KEY" if strict else "SUPPORTED", fact=not strict and not settles)


def walk(browser: Any, folder: Path) -> Iterator[Stop]:
    """All pages, in the order of the guide."""
    runs = folder / "runs"
    targets = [word for name in ("careful", "partial", "wrong") for word in ("--target", f"fake:{name}")]
    scenarios = [word for number in (1, 2) for word in ("--scenario", SCENARIOS / f"scenario_00{number}.json")]
    made = process("run", *scenarios, *targets, "--out", runs, "--quiet")
    assert made.returncode == 0, made.stderr
    run = newest(runs)
    yield from _readers(browser, folder, run)
    yield from _reviewers(browser, folder, run)
    with served("view", cwd=folder) as view:
        page = opened(browser, view, "")
        page.goto(f"http://{view.host}/runs/{newest(runs).name}/agreement.html")
        yield Stop("agreement", page)
        page.context.close()


def _readers(browser: Any, folder: Path, run: Path) -> Iterator[Stop]:
    with served("view", cwd=folder) as view:
        page = opened(browser, view, "")
        yield Stop("runs", page)
        click(page.get_by_role("link", name=run.name))
        yield Stop("answer", page)
        page.goto(f"{page.url}#matrix")
        yield Stop("matrix", page)
        click(page.get_by_role("link", name="Evidence by target"))
        click(page.get_by_role("link", name="fake:wrong"))
        yield Stop("target", page)
        click(page.get_by_role("link", name="scenario_001").first)
        yield Stop("scenario", page)
        page.goto(f"http://{view.host}/runs/{run.name}/report.html#matrix")
        click(page.locator("td[data-label='fake:wrong'] a.code").first)
        page.locator("sup.C a").first.click()
        yield Stop("trial", page)
        trial = page.url.partition("#")[0]
        click(page.locator("details[open] a", has_text="Raw calls"))
        page.locator("summary").last.click()
        yield Stop("calls", page)
        page.goto(trial)
        page.locator("summary").first.click()
        click(page.locator("details[open] a", has_text="Mark as doubtful"))
        page.fill("textarea", "The reply speaks of the other enrollment period.")
        yield Stop("doubt", page)
        click(page.get_by_role("button", name="Mark"))
        page.goto(f"http://{view.host}/runs/{run.name}/report.html#doubts")
        yield Stop("doubts", page)
        page.goto(f"http://{view.host}/runs/{run.name}/errors.html")
        yield Stop("errors", page)
        page.context.close()


def _reviewers(browser: Any, folder: Path, run: Path) -> Iterator[Stop]:
    words = ("--reviewers", "r1,r2", "--adjudicator", "r3", "--sample", "1")
    with served("review", "start", f"runs/{run.name}", *words, cwd=folder) as review, ExitStack() as pages:
        one, two, three = (opened(browser, review, person) for person in ("r1", "r2", "r3"))
        for page in (one, two, three):
            pages.callback(page.context.close)
        yield Stop("review", one)
        begin(one)
        yield Stop("claim", one)
        one.keyboard.press("2")
        go(one, "Control+Enter")
        yield Stop("problem", one)
        judge(one, "SUPPORTED", fact=True)
        click(one.get_by_role("link", name="What the others said about it"))
        yield Stop("others", one)
        click(one.get_by_role("link", name="Back to your review"))
        judge_all(one, "r1")
        judge_all(two, "r2")
        wait_for_tasks(three)
        begin(three)
        yield Stop("settle", three)
        judge_all(three, "r3")
        reload_until(three, "text=The review is complete")
        yield Stop("done", three)


def fingerprint(stop: Stop) -> str:
    return hashlib.sha256(stop.said().encode()).hexdigest()[:16]


def take_pictures(folder: Path) -> dict[str, str]:
    """Take a picture of every page at both widths; what each says, as a fingerprint."""
    folder.mkdir(parents=True, exist_ok=True)
    said: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as work, chromium() as browser:
        for stop in walk(browser, Path(work)):
            said[stop.name] = fingerprint(stop)
            for width in WIDTHS:
                stop.page.set_viewport_size({"width": width, "height": HEIGHT})
                stop.page.wait_for_timeout(100)
                stop.page.screenshot(path=folder / f"{stop.name}-{width}.png")
            stop.page.set_viewport_size({"width": WIDTHS[0], "height": HEIGHT})
    return said


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.workbench_walk", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the pictures of docs/review.md")
    parser.add_argument("--to", type=Path, default=PICTURES, metavar="DIR")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.to if arguments.write else Path(scratch)
        said = take_pictures(folder)
        if arguments.write:
            (folder / SAID.name).write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
    kept = json.loads(SAID.read_text(encoding="utf-8"))
    changed = [name for name, found in said.items() if kept.get(name) != found]
    print(f"{len(said)} pages. Changed since the pictures were taken: {', '.join(changed) or 'none'}")
    return 1 if changed else 0


if __name__ == "__main__":
    raise SystemExit(main())
