"""Every page that this project writes, in a real browser: it fits, it prints, and nothing in it comes alive.

Needs the Chromium of the system and playwright; without either, these tests are skipped.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import src as me
from src import storage
from src.findings.judge_agreement import judging
from src.findings.read_run import gather
from src.reports.write import write_files
from src.schemas import TrialResult
from src.store import hash_chain
from tests.browser import NEEDS_CHROMIUM, chromium
from tests.findings.report_run import code, coded, small_manifest, small_run, study_scenario, write_run
from tests.findings.test_report import HOSTILE, hostile_run
from tests.helpers import plan, result, scenario

pytestmark = [pytest.mark.slow, NEEDS_CHROMIUM]
ANALYSES = ("compare.html", "judges.html", "drift.html", "sensitivity.html")
SIZES = {"desktop": (1280, 800), "phone": (390, 844)}
LONG_WORD = "Krankenversicherung" * 12
HOSTILE_WORDS = (" ".join((*HOSTILE[:6], LONG_WORD)), " ".join((LONG_WORD, *HOSTILE[6:])))
"""In two parts, because a title has at most 1,000 characters."""


@dataclass
class Visit:
    """What a browser did with a page."""

    requests: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    title: str = ""
    wide: int = 0
    """Width of what the page could be scrolled to."""
    window: int = 0
    executable: int = 0
    """Elements that could run or load something."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


def context_of(browser: Any, size: str, scheme: str = "light") -> Any:
    width, height = SIZES[size]
    return browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)


def visit(context: Any, path: Path) -> Visit:
    seen = Visit()

    def dismiss(dialog: Any) -> None:
        seen.messages.append(f"dialog {dialog.message}")
        dialog.dismiss()

    page = context.new_page()
    page.on("request", lambda request: seen.requests.append(request.url))
    page.on("console", lambda message: seen.messages.append(message.text))
    page.on("pageerror", lambda error: seen.messages.append(str(error)))
    page.on("dialog", dismiss)
    page.goto(path.as_uri())
    page.evaluate("() => document.querySelectorAll('details').forEach(one => one.open = true)")
    seen.title = page.title()
    seen.wide, seen.window = page.evaluate("() => [document.documentElement.scrollWidth, window.innerWidth]")
    seen.executable = page.evaluate(
        "() => document.querySelectorAll('script, iframe, object, embed, link, base, form, img').length"
    )
    page.close()
    return seen


def pages_in(folder: Path) -> list[Path]:
    found = sorted(folder.rglob("*.html"))
    assert found, "a folder without a page tests nothing"
    return found


def check(seen: Visit, path: Path) -> None:
    where = f"{path.name}: "
    assert seen.requests == [path.as_uri()], f"{where}nothing but the page itself is asked for"
    assert seen.messages == [], where
    assert "PWNED" not in seen.title.split(), where
    assert seen.executable == 0, where
    assert seen.wide <= seen.window, f"{where}the page scrolls sideways"


# A browser would show what these tests look for


def test_a_page_that_is_not_safe_is_seen_to_be_so(browser: Any, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    wide = "<p style='width: 3000px'>wide</p>"
    bad.write_text(
        f"<!DOCTYPE html><title>bad</title>{HOSTILE[0]}<img src=http://127.0.0.1:1/x>{wide}", encoding="utf-8"
    )
    context = context_of(browser, "phone")
    seen = visit(context, bad)
    context.close()
    assert seen.title == "PWNED" and "http://127.0.0.1:1/x" in seen.requests
    assert seen.wide > seen.window and seen.executable == 2 and seen.messages


# All pages


def judged_again(run: Path, folder: Path) -> Path:
    """The same replies, and every label of a claim another one."""
    lines = hash_chain.ChainReader(run / storage.RESULTS, hash_chain.GENESIS)
    results = []
    for line in lines:
        trial = TrialResult.model_validate_json(line.payload)
        claims = tuple(
            claim.model_copy(update={"label": "NOT_IN_KEY" if claim.label != "NOT_IN_KEY" else "SUPPORTED"})
            for claim in trial.final_claims
        )
        results.append(trial.model_copy(update={"final_claims": claims}))
    write_run(folder, results, gather(run).manifest)
    return folder


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages in which someone else's words are wherever they can be."""
    folder = tmp_path_factory.mktemp("hostile")
    for place, words in enumerate(HOSTILE_WORDS):
        hostile_run(folder / str(place), words)
    hostile_run(folder / "later", f"{HOSTILE_WORDS[1]} later")
    shutil.rmtree(folder / "later" / "out")
    first, second = (folder / str(place) / "run" for place in range(len(HOSTILE_WORDS)))
    me.compare([first, second], html=folder / "compare.html")
    me.compare([second, judged_again(second, folder / "again")], by="judges", html=folder / "judges.html")
    me.drift(second, folder / "later" / "run", html=folder / "drift.html")
    me.sensitivity(second, html=folder / "sensitivity.html")
    return folder


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ordinary")
    found, judges = small_run(folder / "run")
    (folder / "out").mkdir()
    write_files([found], [judges], folder / "out")
    me.compare([folder / "run"], html=folder / "compare.html")
    again = judged_again(folder / "run", folder / "again")
    me.compare([folder / "run", again], by="judges", html=folder / "judges.html")
    me.drift(folder / "run", folder / "run", html=folder / "drift.html")
    me.sensitivity(folder / "run", html=folder / "sensitivity.html")
    return folder


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["hostile", "ordinary"])
def test_every_page_fits_and_loads_and_runs_nothing(
    kind: str, size: str, scheme: str, browser: Any, request: pytest.FixtureRequest
) -> None:
    folder: Path = request.getfixturevalue(kind)
    paths = pages_in(folder)
    assert {"report.html", "index.html", *ANALYSES} <= {path.name for path in paths}, "every kind of page is there"
    context = context_of(browser, size, scheme)
    for path in paths:
        check(visit(context, path), path)
    context.close()


def test_hostile_words_are_on_the_page_as_words(hostile: Path, browser: Any) -> None:
    page = browser.new_page()
    text = ""
    for place in range(len(HOSTILE_WORDS)):
        page.goto((hostile / str(place) / "out" / "report.html").as_uri())
        text += page.evaluate("() => document.body.textContent")
    page.close()
    assert "document.title='PWNED'" in text and LONG_WORD in text and "right to left" in text
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200f]", text), "and no change of direction"


# The first screen

FOUR = [f"compatible:some-org/assistant-{name}-2026" for name in ("large", "medium", "small", "tiny")]


def four_targets() -> list[TrialResult]:
    return [
        coded(
            result(scenario_id=scenario_id, target=target),
            *(code(g, "accurate_complete" if place % 2 else "incorrect") for g in groups),
        )
        for place, target in enumerate(FOUR)
        for scenario_id, groups in (("medicare_only", ("g1", "g9")), ("s1", ("Q1",)))
    ]


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of four targets with long names that were asked the study's questions."""
    folder = tmp_path_factory.mktemp("full")
    of = plan(scenarios=[study_scenario(), scenario()], targets=FOUR, verifiers=["openai:x", "google:y"])
    write_run(folder / "run", four_targets(), small_manifest(of))
    found = gather(folder / "run")
    (folder / "out").mkdir()
    write_files([found], [judging(found)], folder / "out")
    return folder / "out" / "report.html"


def bottoms(browser: Any, path: Path, selectors: Sequence[str]) -> list[float]:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(path.as_uri())
    found = page.evaluate(
        "names => names.map(name => Math.max(...[...document.querySelectorAll(name)]"
        ".map(one => one.getBoundingClientRect().bottom)))",
        list(selectors),
    )
    page.close()
    return [float(one) for one in found]


def test_answers_chart_and_caveat_of_four_targets_are_on_the_first_screen(full: Path, browser: Any) -> None:
    answers, chart, caveat = bottoms(browser, full, (".answer", "main > figure.forest svg.wide", ".caveat"))
    assert 0 < answers < chart < caveat <= 800


def test_the_navigation_stays_in_view_and_leads_to_every_section(full: Path, browser: Any) -> None:
    for size in SIZES.values():
        page = browser.new_page(viewport={"width": size[0], "height": size[1]})
        page.goto(full.as_uri())
        links = page.evaluate("() => [...document.querySelectorAll('nav.sections a')].map(a => a.getAttribute('href'))")
        headings = page.evaluate("() => [...document.querySelectorAll('main > section > h2')].map(h => '#' + h.id)")
        assert links == headings and len(links) > 10
        page.goto(f"{full.as_uri()}{links[-1]}")
        nav, heading = page.evaluate(
            "id => [document.querySelector('nav.sections').getBoundingClientRect(),"
            " document.getElementById(id).getBoundingClientRect()].map(r => [r.top, r.bottom])",
            links[-1][1:],
        )
        assert 0 <= nav[0] <= 1, "still at the top"
        assert heading[0] >= 0, "and it does not hide the heading"
        page.close()


def test_a_chart_has_one_form_for_the_desktop_and_one_for_the_phone(full: Path, browser: Any) -> None:
    for name, size in SIZES.items():
        page = browser.new_page(viewport={"width": size[0], "height": size[1]})
        page.goto(full.as_uri())
        shown = page.evaluate(
            "() => [...document.querySelectorAll('main > figure.forest svg')]"
            ".filter(one => one.getBoundingClientRect().width > 0).map(one => one.getAttribute('class'))"
        )
        page.close()
        assert shown == (["wide"] if name == "desktop" else ["narrow"])


# On paper


@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_pages_print(paper: str, full: Path, browser: Any, tmp_path: Path) -> None:
    page = browser.new_page()
    page.goto(full.as_uri())
    wide = page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    page.emulate_media(media="print")
    hidden = page.evaluate("() => getComputedStyle(document.querySelector('nav.sections')).display")
    printed = tmp_path / "report.pdf"
    printed.write_bytes(page.pdf(format=paper))
    page.close()
    assert wide and hidden == "none"
    assert printed.read_bytes().startswith(b"%PDF-")
    if not shutil.which("pdftotext"):
        pytest.skip("no pdftotext (poppler-utils) here to read the PDF with")
    text = subprocess.run(["pdftotext", "-layout", printed, "-"], capture_output=True, text=True, check=True).stdout
    sheets = text.split("\f")[:-1]
    assert 3 <= len(sheets) <= 40
    assert "How well do AI assistants answer Medicare questions?" in sheets[0] and "Counselors by phone" in sheets[0]
    assert min(len(sheet.split()) for sheet in sheets) >= 8, "no sheet is all but empty"
    assert "Counts of counselors' answers by code." in " ".join(text.split()), "what is folded on a screen is printed"
