"""The pages in a real browser: accessible at both widths, usable by keys alone, inert text, live progress."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from src.reading import Run
from tests.browser import NEEDS_CHROMIUM, chromium, click, go, opened, served
from tests.findings.test_report import HOSTILE, hostile_run
from tests.loopback import Loopback, Scripted
from tests.runs import ONE, ROOT, call, command, environment, newest, process
from tests.workbench_walk import HEIGHT, PICTURES, SAID, WIDTHS, fingerprint, walk

pytestmark = [pytest.mark.slow, NEEDS_CHROMIUM]
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}


def violations(page: Any) -> list[str]:
    """What axe-core, an independent checker of accessibility, finds wrong: labels, roles, contrast, headings, order."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page, options=RULES).response["violations"]
    return [f"{one['id']}: {node['html'][:120]}" for one in found for node in one["nodes"]]


def sideways(page: Any) -> int:
    """How far the page itself can be scrolled sideways."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def color_only(page: Any) -> list[str]:
    """Marks of codes and claims that have no text, so that only their color would tell them apart."""
    found: list[str] = page.evaluate(
        "[...document.querySelectorAll('.code, sup, summary b')].filter(e => !e.textContent.trim()).map(e => e.outerHTML)"
    )
    return found


def test_every_page_is_accessible_at_both_widths_and_says_what_the_guide_shows(tmp_path: Path) -> None:
    problems: list[str] = []
    said: dict[str, str] = {}
    messages: list[str] = []
    with chromium() as browser:
        for stop in walk(browser, tmp_path):
            said[stop.name] = fingerprint(stop)
            stop.page.on("console", lambda one: messages.append(one.text))
            for width in WIDTHS:
                stop.page.set_viewport_size({"width": width, "height": HEIGHT})
                for scheme in ("light", "dark"):
                    stop.page.emulate_media(color_scheme=scheme)
                    where = f"{stop.name}, {width}, {scheme}"
                    problems += [f"{where}: {one}" for one in violations(stop.page)]
                    problems += [f"{where}: only color: {one}" for one in color_only(stop.page)]
                    if sideways(stop.page):
                        problems.append(f"{where}: {sideways(stop.page)} pixels too wide")
            stop.page.emulate_media(color_scheme="light")
            stop.page.set_viewport_size({"width": WIDTHS[0], "height": HEIGHT})
    assert problems == [], "\n".join(dict.fromkeys(problems))
    assert [one for one in messages if "422" not in one] == []  # a form that was refused
    kept = json.loads(SAID.read_text(encoding="utf-8"))
    assert said == kept, "pages have changed; take the pictures again: make guide"
    for name in said:
        for width in WIDTHS:
            assert (PICTURES / f"{name}-{width}.png").is_file()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    code, _, err = call("run", "--scenario", ONE, "--target", "fake:careful", "--out", out, "--quiet")
    assert code == 0, err
    return out


def tab_to(page: Any, wanted: str, most: int = 300) -> None:
    """Press Tab until this element has the focus, and see that the focus can be seen."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", wanted):
            shown = page.evaluate(
                "(() => { const s = getComputedStyle(document.activeElement); return s.outlineStyle !== 'none'; })()"
            )
            assert shown, f"the focus on {wanted} cannot be seen"
            return
    raise AssertionError(f"{wanted} cannot be reached with Tab")


def test_a_claim_is_judged_with_tab_space_and_enter_alone(runs: Path, tmp_path: Path) -> None:
    words = ("--reviewers", "r1,r2", "--adjudicator", "r3", "--sample", "1", "--out", tmp_path)
    with chromium() as browser, served("review", "start", newest(runs), *words) as review:
        page = opened(browser, review, "r1", 390)
        tab_to(page, "a.button")
        go(page, "Enter")
        tab_to(page, "input[name=label]")
        page.keyboard.press("Space")
        assert page.locator("input[name=label]:checked").get_attribute("value") == "SUPPORTED"
        tab_to(page, "input[name=evidence]")
        page.keyboard.press("Space")
        tab_to(page, "textarea")
        page.keyboard.type("1 2 3 are letters here")
        assert page.locator("input[name=label]:checked").get_attribute("value") == "SUPPORTED"
        tab_to(page, "button[type=submit]")
        go(page, "Enter")
        assert page.locator(".saved, .problems").count() == 1


def test_a_reader_gets_from_runs_to_a_verdict_by_keys_alone(runs: Path) -> None:
    with chromium() as browser, served("view", runs) as view:
        page = opened(browser, view, "")
        tab_to(page, "th a")
        go(page, "Enter")
        assert page.url.endswith("/report.html")
        tab_to(page, "td a.code")
        go(page, "Enter")
        assert "/trials/" in page.url
        tab_to(page, ".claims summary")
        page.keyboard.press("Enter")
        assert page.locator(".claims details[open]").count() == 1


@contextmanager
def other_site(html: str) -> Iterator[str]:
    """A page of another site, such as webmail. Browsers take `localhost` and `127.0.0.1` for two sites."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()


def test_a_link_in_a_mail_opens_the_pages_and_a_form_of_another_site_does_nothing(runs: Path) -> None:
    before = sorted(runs.iterdir())
    with served("view", runs) as view, chromium() as browser:
        page = browser.new_context().new_page()
        with other_site(f'<a href="{view.links[""]}">Your link</a>') as mail:
            page.goto(mail)
            click(page.locator("a"))
            assert page.inner_text("h1") == "Runs"
        trial = next(Run(newest(runs)).trials())
        there = (
            f"http://{view.host}/runs/{newest(runs).name}/doubt/{trial.trial_id}?claim={trial.final_claims[0].claim_id}"
        )
        form = f'<form method="post" action="{there}"><input name="note" value="x"><button>Go</button></form>'
        with other_site(form) as elsewhere:
            page.goto(elsewhere)
            click(page.locator("button"))
            assert "not sent from a page of this program" in page.inner_text("body")
    assert sorted(runs.iterdir()) == before


@contextmanager
def watched(page: Any, host: str) -> Iterator[list[str]]:
    """What a page did that it should not: dialogs, messages, requests to elsewhere, another title."""
    seen: list[str] = []

    def dismiss(dialog: Any) -> None:
        seen.append(f"dialog {dialog.message}")
        dialog.dismiss()

    page.on("dialog", dismiss)
    page.on("console", lambda one: seen.append(f"console {one.text}"))
    page.on("request", lambda one: None if one.url.startswith(f"http://{host}/") else seen.append(one.url))
    yield seen
    if "PWNED" in page.title():
        seen.append(page.title())


def inert(page: Any) -> None:
    foreign = page.evaluate(
        "[...document.querySelectorAll('iframe, object, embed, base, form[action^=http], a[href^=javascript], img, "
        'script:not([src="/static/keys.js"]), style, svg a\')].map(e => e.outerHTML)'
    )
    assert foreign == []
    acting = page.evaluate(
        "[...document.querySelectorAll('[onload], [onerror], [onclick], [style]')].map(e => e.outerHTML)"
    )
    assert acting == []


@pytest.mark.parametrize("place", [0, 1])
def test_hostile_words_are_inert_on_every_page_for_readers(tmp_path: Path, place: int) -> None:
    words = " ".join(HOSTILE[:9] if place == 0 else HOSTILE[9:])
    hostile_run(tmp_path / "made", words)
    with served("view", tmp_path / "made") as view, chromium() as browser:
        page = opened(browser, view, "")
        with watched(page, view.host) as seen:
            pages = ["/", "/runs/run/report.html", "/runs/run/errors.html", "/runs/run/evidence/index.html"]
            visited: list[str] = []
            while pages and len(visited) < 40:
                path = pages.pop(0)
                visited.append(path)
                page.goto(f"http://{view.host}{path}")
                inert(page)
                for href in page.evaluate("[...document.links].map(a => a.href)"):
                    there = href.partition("#")[0].removeprefix(f"http://{view.host}")
                    if there.startswith("/runs/") and there not in (*visited, *pages):
                        pages.append(there)
        assert any("/trials/" in path for path in visited)
        assert any("/calls/" in path for path in visited)
        assert any("/doubt/" in path for path in visited)
        assert seen == []


def test_hostile_replies_are_inert_in_a_review(tmp_path: Path) -> None:
    reply = "A Medicare Advantage plan has a network. " + " ".join(HOSTILE[:9])
    with Loopback(default=Scripted(text=reply)) as server:
        words = ("--target", "compatible:hostile", "--judge-model", "offline:rules", "--scenario", ONE, "--no-probe")
        made = process("run", *words, "--out", tmp_path, "--quiet", env={"COMPATIBLE_BASE_URL": server.url("openai")})
    assert made.returncode == 0, made.stderr
    review_words = ("--reviewers", "r1,r2", "--sample", "1", "--out", tmp_path / "reviews")
    with served("review", "start", newest(tmp_path), *review_words) as review, chromium() as browser:
        page = opened(browser, review, "r1")
        with watched(page, review.host) as seen:
            judged = 0
            while judged < 3 and page.locator("a.button").count():
                click(page.locator("a.button").first)
                assert "document.title" in page.inner_text("main")
                inert(page)
                page.keyboard.press("3")
                page.fill("textarea", HOSTILE[0])
                click(page.get_by_role("button", name="Save"))
                click(page.get_by_role("link", name="What the others said about it"))
                inert(page)
                assert HOSTILE[0] in page.inner_text("main")
                click(page.get_by_role("link", name="Back to your review"))
                judged += 1
            assert judged
        assert seen == []


def test_progress_of_a_running_evaluation_is_live(tmp_path: Path) -> None:
    with Loopback(default=Scripted(text="A plan may have a network.", delay_s=0.3)) as server:
        env = environment({"COMPATIBLE_BASE_URL": server.url("openai")})
        words = ("--target", "compatible:slow", "--judge-model", "offline:rules", "--scenario", ONE, "--repeats", "6")
        started = command("run", *words, "--concurrency", "1", "--no-probe", "--out", tmp_path, "--quiet")
        running = subprocess.Popen(started, cwd=ROOT, env=env, stdout=subprocess.DEVNULL)
        try:
            while not list(tmp_path.glob("*/calls.jsonl")):
                assert running.poll() is None
            seen = follow(tmp_path)
        finally:
            running.wait(timeout=120)
    assert running.returncode == 0
    counts = [int(one.split()[0]) for one in seen]
    assert counts == sorted(counts)
    assert len(set(counts)) >= 3, seen
    assert seen[-1] == "6 of 6 trials"


def follow(runs: Path) -> list[str]:
    """What the list of runs shows from now until the run is complete, without anybody loading it again."""
    with served("view", runs) as view, chromium() as browser:
        page = opened(browser, view, "")
        seen: list[str] = []
        while True:
            state = page.locator("td[data-label=state]").inner_text()  # first: the page may load again in between
            now = page.locator("td[data-label=progress]").inner_text()
            if not seen or seen[-1] != now:
                seen.append(now)
            if state == "complete":
                return seen
            page.wait_for_timeout(50)
